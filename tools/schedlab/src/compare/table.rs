//! Results of one app on one architecture as a table: rows are schedulers,
//! columns are tasks and totals. What is printed or drawn comes from here.

use std::ops::RangeInclusive;

use sched_tests_results::{Account, TaskLine};

use crate::{
    distinct::distinct,
    project::{Cell, short},
    record::{Outcome, Phase, REAL},
    spread::{Spread, letters},
};

/// A cell that has results.
pub struct Results {
    pub cell: Cell,
    /// One for each boot, at least one.
    pub outcomes: Vec<Outcome>,
    /// What it was made from, where that is known.
    pub sources: Option<String>,
}

/// Which value of a column is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    Lowest,
    Highest,
    /// Neither is better by itself.
    None,
}

/// A figure of each task, which has a column.
struct TaskFigure {
    /// With its unit.
    title: &'static str,
    unit: &'static str,
    decimals: usize,
    best: Best,
    of: fn(&TaskLine) -> Option<f64>,
}

const TURNAROUND: TaskFigure = TaskFigure {
    title: "turnaround in ms",
    unit: "ms",
    decimals: 3,
    best: Best::Lowest,
    of: |task| ms(task.turnaround_ns),
};
/// Where all tasks end at the same time.
const RUN_TIME: TaskFigure = TaskFigure {
    title: "time on a CPU in ms",
    unit: "ms",
    decimals: 3,
    best: Best::None,
    of: |task| ms(task.run_ns),
};
/// Groups of work that were done: where the time is limited.
const GROUPS: TaskFigure = TaskFigure {
    title: "groups of work done",
    unit: "groups",
    decimals: 0,
    best: Best::None,
    of: |task| task.groups.map(|groups| groups as f64),
};

#[derive(Clone, Debug)]
pub struct Column {
    pub title: String,
    pub unit: &'static str,
    pub decimals: usize,
    pub best: Best,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// `rr`, `stock-rr`, `pbg (measuring)`.
    pub label: String,
    /// Whether it is the registry's own scheduler.
    pub stock: bool,
    /// A phase that is not the scheduler's result does not compete for the best.
    pub competes: bool,
    /// One for each column, over the boots of its cell.
    pub values: Vec<Option<Spread>>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    /// The figure in the columns of tasks, with its unit.
    pub task_title: &'static str,
    /// How many of the columns are tasks; they come first.
    pub tasks: usize,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Its cells were not all made from the same sources.
    pub mixed: bool,
    /// The fewest and the most boots of a row: in counted time each is at a tick phase of its
    /// own.
    pub boots: RangeInclusive<usize>,
    /// Of rows whose boots say what became of PBG's profile.
    pub followed: Vec<Followed>,
}

/// In how many boots of a row PBG's plan was followed to its end by all and no others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    pub label: String,
    pub whole: usize,
    pub boots: usize,
}

/// The titles of totals, by which figures find them.
pub const AVERAGE: &str = "average";
const MAKESPAN: &str = "makespan";
const OVER_BOUND: &str = "avg/SRPT";
pub const OUTSIDE: &str = "outside";
pub const PER_YIELD: &str = "ns/yield";
pub const PER_YIELD_AND_LOOP: &str = "ns/yield+loop";

/// A figure of a whole run: title, unit, decimals, the best, and its value in a phase.
type Total = (
    &'static str,
    &'static str,
    usize,
    Best,
    fn(&Phase) -> Option<f64>,
);

/// Those of every app.
const TOTALS: [Total; 6] = [
    (AVERAGE, "ms", 3, Best::Lowest, |p| {
        ms(p.run.avg_turnaround_ns)
    }),
    (MAKESPAN, "ms", 3, Best::Lowest, |p| ms(p.run.makespan_ns)),
    ("switches", "", 0, Best::Lowest, |p| {
        Some(p.run.context_switches as f64)
    }),
    ("Jain", "", 6, Best::Highest, |p| Some(p.run.jain)),
    (OVER_BOUND, "", 4, Best::Lowest, |p| {
        ratio(p.run.avg_turnaround_ns, p.run.srpt_bound_ns)
    }),
    (OUTSIDE, "%", 2, Best::None, |p| {
        let account = Account::of(&p.run).ok()?;
        Some(account.percent(account.outside_ns()))
    }),
];

/// The cost of a yield, from which the app took its loops.
const ALONE: Total = (PER_YIELD, "ns", 1, Best::Lowest, |p| p.run.ns_per_yield);

/// The makespan over all yields. The two do not belong into one column.
const WITH_LOOP: Total = (PER_YIELD_AND_LOOP, "ns", 1, Best::Lowest, |p| {
    let yields = p.tasks.iter().map(|task| task.yields).sum();
    ratio(p.run.makespan_ns, yields)
});

fn ms(ns: u64) -> Option<f64> {
    Some(ns as f64 / 1e6)
}

fn ratio(a: u64, b: u64) -> Option<f64> {
    (b != 0).then(|| a as f64 / b as f64)
}

impl Table {
    /// `1 CPU, icount time, scale 1`, and the tick phases or the boots if there are several.
    pub fn setting(&self) -> String {
        let cpus = if self.smp == 1 { "" } else { "s" };
        let what = if self.is_real() {
            "boots"
        } else {
            "tick phases"
        };
        let boots = match (self.boots.start(), self.boots.end()) {
            (_, 1) => String::new(),
            (fewest, most) if fewest == most => format!(", {most} {what}"),
            (fewest, most) => format!(", {fewest} to {most} {what}"),
        };
        format!(
            "{} CPU{cpus}, {} time, scale {}{boots}",
            self.smp, self.timing, self.scale
        )
    }

    /// Whether figures have a range.
    pub fn has_ranges(&self) -> bool {
        *self.boots.end() > 1
    }

    /// Whether time is the host's: what stands for several boots is then their median.
    pub fn is_real(&self) -> bool {
        self.timing == REAL
    }

    /// For each row the letters that it shares with those whose average turnaround
    /// has a range that overlaps with its own.
    pub fn letters(&self) -> Vec<String> {
        let average = self.columns.iter().position(|c| c.title == AVERAGE);
        let ranges: Vec<_> = self.rows.iter().map(|row| row.values[average?]).collect();
        letters(&ranges)
    }

    /// The rows that have results and no account of the CPU time.
    pub fn without_account(&self) -> Vec<&str> {
        // A model's tasks have all there is.
        if self.timing == "model" {
            return Vec::new();
        }
        let outside = self.columns.iter().position(|c| c.title == OUTSIDE);
        let lacks = |row: &&Row| {
            row.values.iter().any(Option::is_some)
                && outside.is_some_and(|column| row.values[column].is_none())
        };
        let rows = self.rows.iter().filter(lacks);
        rows.map(|row| row.label.as_str()).collect()
    }

    /// The best value of a column by its mean or median, unless all rows are as good.
    pub fn best(&self, column: usize) -> Option<Spread> {
        let values = || {
            self.rows
                .iter()
                .filter(|row| row.competes)
                .filter_map(|row| row.values[column])
        };
        let by_middle = |a: &Spread, b: &Spread| a.middle().total_cmp(&b.middle());
        let lowest = values().min_by(by_middle)?;
        let highest = values().max_by(by_middle)?;
        if values().all(|value| value.overlaps(&lowest)) {
            return None;
        }
        match self.columns[column].best {
            Best::Lowest => Some(lowest),
            Best::Highest => Some(highest),
            Best::None => None,
        }
    }

    /// Whether this row's value in the column is the best, or cannot be told from it
    /// as their ranges overlap.
    pub fn is_best(&self, row: &Row, column: usize) -> bool {
        let best = self.best(column);
        row.competes
            && row.values[column]
                .zip(best)
                .is_some_and(|(value, best)| value.overlaps(&best))
    }
}

/// The tables of these results, in their order. Cells that were run in another
/// setting are not comparable and get a table of their own. Each table has a row
/// for each policy, with results or without.
pub fn tables(all: &[Results], policies: &[String], long: bool) -> Vec<Table> {
    let key = |r: &Results| {
        let run = r.outcomes[0].last();
        (
            run.context.arch.clone(),
            run.context.app.clone(),
            run.context.smp,
            run.timing.clone(),
            run.scale,
        )
    };
    let of = |wanted| all.iter().filter(|r| key(r) == wanted).collect::<Vec<_>>();
    let keys = distinct(all.iter().map(key)).into_iter();
    keys.map(|key| table(&of(key), policies, long)).collect()
}

fn table(cells: &[&Results], policies: &[String], long: bool) -> Table {
    let first = cells[0].outcomes[0].last();
    let boots = || cells.iter().flat_map(|cell| &cell.outcomes);
    let phases = || boots().flat_map(|boot| &boot.phases);
    let tasks = phases().flat_map(|phase| &phase.tasks);
    let tasks = distinct(tasks.map(|task| task.task.as_str()));
    // In `unequal` all tasks end when the time is up: what tells them apart is how far they got.
    let counts_groups =
        || phases().all(|phase| phase.tasks.iter().all(|task| task.groups.is_some()));
    let figure = match first.context.app.as_str() {
        "unequal" if counts_groups() => &GROUPS,
        "unequal" => &RUN_TIME,
        _ => &TURNAROUND,
    };
    let alone = phases().any(|phase| phase.run.ns_per_yield.is_some());
    let per_yield = if alone { ALONE } else { WITH_LOOP };
    let per_yield = (first.context.app == "yield").then_some(per_yield);
    let totals: Vec<Total> = TOTALS.into_iter().chain(per_yield).collect();
    let columns = columns(&tasks, figure, &totals);

    let spread = match first.timing.as_str() {
        REAL => Spread::of_boots,
        _ => Spread::of,
    };
    let mut rows = Vec::new();
    let mut followed = Vec::new();
    for policy in policies {
        let label = short(policy);
        let stock = label.starts_with("stock-");
        match cells.iter().find(|cell| cell.cell.policy == *policy) {
            None => rows.push(Row {
                label,
                stock,
                competes: true,
                values: vec![None; columns.len()],
            }),
            Some(cell) => {
                if cell.outcomes.iter().any(|boot| !boot.profiles.is_empty()) {
                    let whole = cell.outcomes.iter().filter(|boot| boot.is_followed());
                    followed.push(Followed {
                        label: label.clone(),
                        whole: whole.count(),
                        boots: cell.outcomes.len(),
                    });
                }
                for (label, phase, competes) in shown(&label, &cell.outcomes[0], long) {
                    let of_boot = |boot: &Outcome| {
                        let same = |other: &&Phase| other.name() == phase.name();
                        let phase = boot.phases.iter().find(same)?;
                        Some(values(phase, &tasks, figure, &totals))
                    };
                    let boots: Vec<_> = cell.outcomes.iter().filter_map(of_boot).collect();
                    rows.push(Row {
                        label,
                        stock,
                        competes,
                        values: spreads(&boots, spread),
                    });
                }
            }
        }
    }
    let counts = || cells.iter().map(|cell| cell.outcomes.len());
    let sources = |cell: &&&Results| cell.sources != cells[0].sources;
    Table {
        app: first.context.app.clone(),
        arch: first.context.arch.clone(),
        smp: first.context.smp,
        timing: first.timing.clone(),
        scale: first.scale,
        task_title: figure.title,
        tasks: tasks.len(),
        columns,
        rows,
        mixed: cells.iter().find(sources).is_some(),
        boots: counts().min().unwrap_or(1)..=counts().max().unwrap_or(1),
        followed,
    }
}

/// What one figure is over several boots: [`Spread::of`] or [`Spread::of_boots`].
type Over = fn(&[f64]) -> Option<Spread>;

/// Column by column over the boots; a value that some boot lacks is missing.
fn spreads(boots: &[Vec<Option<f64>>], spread: Over) -> Vec<Option<Spread>> {
    let columns = boots.first().map_or(0, Vec::len);
    let column = |i: usize| {
        let values: Option<Vec<f64>> = boots.iter().map(|boot| boot[i]).collect();
        spread(&values?)
    };
    (0..columns).map(column).collect()
}

/// The phases that get a row, with its label. PBG's result is its replay.
fn shown<'a>(label: &str, outcome: &'a Outcome, long: bool) -> Vec<(String, &'a Phase, bool)> {
    let name = |phase: &Phase| match phase.name() {
        // On several CPUs PBG's base policy runs alone, and that is not PBG's result.
        "run" if label.starts_with("pbg") => (format!("{label} (not measured)"), false),
        "run" | "replay" => (label.to_owned(), true),
        "measure" => (format!("{label} (measuring)"), false),
        other => (format!("{label} ({other})"), false),
    };
    let rows = outcome.phases.iter().map(|phase| {
        let (label, competes) = name(phase);
        (label, phase, competes)
    });
    let only = outcome.phases.len() == 1;
    let mut rows: Vec<_> = rows
        .filter(|(_, _, competes)| long || *competes || only)
        .collect();
    rows.sort_by_key(|(_, _, competes)| !competes);
    rows
}

fn columns(tasks: &[&str], figure: &TaskFigure, totals: &[Total]) -> Vec<Column> {
    let of_task = |task: &&str| Column {
        title: (*task).to_owned(),
        unit: figure.unit,
        decimals: figure.decimals,
        best: figure.best,
    };
    let of_run = |&(title, unit, decimals, best, _): &Total| Column {
        title: title.to_owned(),
        unit,
        decimals,
        // Tasks that are stopped when the time is up do not finish early by merit.
        best: match title {
            AVERAGE | MAKESPAN | OVER_BOUND => figure.best,
            _ => best,
        },
    };
    let of_tasks = tasks.iter().map(of_task);
    of_tasks.chain(totals.iter().map(of_run)).collect()
}

/// A row's values, in the order of [`columns`].
fn values(
    phase: &Phase,
    tasks: &[&str],
    figure: &TaskFigure,
    totals: &[Total],
) -> Vec<Option<f64>> {
    let of_task = |name: &&str| {
        let task = phase.tasks.iter().find(|task| task.task == **name)?;
        (figure.of)(task)
    };
    let of_tasks = tasks.iter().map(of_task);
    let of_run = totals.iter().map(|(.., of)| of(phase));
    of_tasks.chain(of_run).collect()
}

#[cfg(test)]
pub mod tests {
    use sched_tests_results::{PbgLine, ResultLine, TickPhase};

    use super::*;
    use crate::record::{
        parse, parse_boots,
        tests::{sample, sample_at},
    };

    pub fn results(app: &str, policy: &str, phases: &[(&str, u64)]) -> Results {
        results_of(app, policy, &[sample(app, &short(policy), phases)])
    }

    /// Of boots at so many tick phases: the phase `run` with these averages.
    pub fn results_at(app: &str, policy: &str, averages: &[u64]) -> Results {
        let boots: Vec<_> = TickPhase::evenly(averages.len() as u16)
            .zip(averages)
            .map(|(at, avg)| sample_at(at.into(), app, &short(policy), &[("run", *avg)]))
            .collect();
        results_of(app, policy, &boots)
    }

    /// Of boots in real time on four CPUs: the one phase with these averages, and whether
    /// PBG's plan was followed in it, where that is said.
    pub fn results_in_real_time(app: &str, policy: &str, boots: &[(u64, Option<bool>)]) -> Results {
        let phase = if policy.ends_with("pbg") {
            "replay"
        } else {
            "run"
        };
        let boot = |(avg, followed): &(u64, Option<bool>)| {
            let lines = sample(app, &short(policy), &[(phase, *avg)])
                .replace("icount", REAL)
                .replace(r#""smp":1"#, r#""smp":4"#);
            let line = |whole: &bool| {
                let followed = sched_tests_results::Followed {
                    planned: 2,
                    matched: 2,
                    dropped: !whole,
                    ..Default::default()
                };
                PbgLine::Followed(followed).to_line() + "\n"
            };
            lines + &followed.as_ref().map(line).unwrap_or_default()
        };
        let boots: Vec<_> = boots.iter().map(boot).collect();
        results_of(app, policy, &boots)
    }

    fn results_of(app: &str, policy: &str, boots: &[String]) -> Results {
        let outcomes = parse_boots(&boots.join("\n")).unwrap();
        Results {
            cell: Cell::new("x86_64", app, policy),
            outcomes,
            sources: Some("s".into()),
        }
    }

    fn policies(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn pbg_that_could_not_measure_is_shown_and_does_not_compete() {
        let outcome = parse(&sample("realtime", "pbg", &[("run", 1)])).unwrap();
        for long in [false, true] {
            let rows = shown("pbg", &outcome, long);
            let [(label, _, false)] = &rows[..] else {
                panic!("{rows:?}")
            };
            assert_eq!(label, "pbg (not measured)");
        }
    }

    /// Round robin, PBG that measures and replays, stock round robin, no CFS.
    pub fn realtime(long: bool) -> Table {
        let all = [
            results("realtime", "sched_rr", &[("run", 3_000_000)]),
            results(
                "realtime",
                "sched_pbg",
                &[("measure", 2_500_000), ("replay", 2_000_000)],
            ),
            results("realtime", "stock_rr", &[("run", 3_100_000)]),
        ];
        let policies = policies(&["sched_rr", "sched_cfs", "sched_pbg", "stock_rr"]);
        let mut tables = tables(&all, &policies, long);
        assert_eq!(tables.len(), 1);
        tables.remove(0)
    }

    fn labels(table: &Table) -> Vec<&str> {
        table.rows.iter().map(|row| row.label.as_str()).collect()
    }

    #[test]
    fn rows_are_policies_and_pbg_is_its_replay() {
        let table = realtime(false);
        assert_eq!(labels(&table), ["rr", "cfs", "pbg", "stock-rr"]);
        let titles: Vec<_> = table
            .columns
            .iter()
            .map(|column| column.title.as_str())
            .collect();
        assert_eq!(
            titles,
            [
                "long", "short", "average", "makespan", "switches", "Jain", "avg/SRPT", "outside"
            ]
        );
        let means = |row: usize| {
            let values = table.rows[row].values.iter();
            values.map(|v| v.map(|v| v.mean)).collect::<Vec<_>>()
        };
        let pbg = [4.0, 0.0, 2.0, 2.0, 7.0, 0.5, 2.0];
        assert_eq!(means(2)[..7], pbg.map(Some));
        assert_eq!(means(2)[7..], [None], "there is no account");
        assert_eq!(means(1), [None; 8]);
        assert_eq!(table.without_account(), ["rr", "pbg", "stock-rr"]);
        assert!(table.rows[3].stock && !table.rows[0].stock);
    }

    #[test]
    fn the_long_form_shows_measuring_which_does_not_compete() {
        let table = realtime(true);
        assert_eq!(
            labels(&table),
            ["rr", "cfs", "pbg", "pbg (measuring)", "stock-rr"]
        );
        assert_eq!(table.rows[3].values[2], Spread::of(&[2.5]));
        assert!(!table.rows[3].competes);
    }

    #[test]
    fn the_best_of_a_column_is_marked_unless_all_are_the_same() {
        let table = realtime(true);
        assert_eq!(table.best(0), Spread::of(&[4.0]));
        assert!(table.is_best(&table.rows[2], 0));
        assert!(!table.is_best(&table.rows[0], 0));
        assert_eq!(table.best(4), None, "all switch seven times");
        assert!(
            !table.is_best(&table.rows[1], 4),
            "a missing value is not the best"
        );
    }

    /// Round robin and PBG with so many tasks, the nth of which takes n * n ms; no CFS.
    pub fn many_tasks(count: u64) -> Table {
        let all = ["sched_rr", "sched_pbg"].map(|policy| {
            let mut results = results("batch", policy, &[("run", 1_000_000)]);
            let phase = &mut results.outcomes[0].phases[0];
            let like = phase.tasks[0].clone();
            phase.tasks = (1..=count)
                .map(|n| TaskLine {
                    task: format!("compress{n}"),
                    turnaround_ns: n * n * 1_000_000,
                    ..like.clone()
                })
                .collect();
            results
        });
        let policies = policies(&["sched_rr", "sched_cfs", "sched_pbg"]);
        tables(&all, &policies, false).remove(0)
    }

    /// Over four tick phases: CFS and SJF overlap, RR and MLFQ stand apart.
    pub fn over_tick_phases() -> Table {
        let ms = |averages: [u64; 4]| averages.map(|ms| ms * 1_000_000);
        let all = [
            results_at("realtime", "sched_rr", &ms([400, 401, 399, 400])),
            results_at("realtime", "sched_cfs", &ms([200, 210, 205, 205])),
            results_at("realtime", "sched_sjf", &ms([208, 212, 210, 210])),
            results_at("realtime", "sched_mlfq", &ms([300, 303, 297, 300])),
        ];
        let policies = policies(&["sched_rr", "sched_cfs", "sched_sjf", "sched_mlfq"]);
        tables(&all, &policies, false).remove(0)
    }

    #[test]
    fn a_value_is_the_mean_over_the_tick_phases_with_its_range() {
        let table = over_tick_phases();
        assert_eq!(
            table.setting(),
            "1 CPU, icount time, scale 1, 4 tick phases"
        );
        let cfs = table.rows[1].values[2].unwrap();
        assert_eq!(
            (cfs.first, cfs.least, cfs.mean, cfs.most, cfs.count),
            (200.0, 200.0, 205.0, 210.0, 4)
        );
        assert_eq!(table.rows[0].values[7].unwrap().mean, 1.0, "1 % is main's");
        assert_eq!(table.without_account(), [""; 0]);
    }

    /// Over five boots in real time, one of which the host has spoilt.
    pub fn over_boots() -> Table {
        let boots = |ms: [u64; 5]| ms.map(|ms| (ms * 1_000_000, None));
        let mut pbg = boots([200, 210, 900, 205, 190]);
        for (boot, followed) in pbg.iter_mut().zip([true, true, false, true, true]) {
            boot.1 = Some(followed);
        }
        let all = [
            results_in_real_time("realtime", "sched_rr", &boots([400, 401, 399, 430, 400])),
            results_in_real_time("realtime", "sched_sjf", &boots([300, 303, 297, 300, 398])),
            results_in_real_time("realtime", "sched_mlfq", &boots([302, 303, 301, 302, 400])),
            results_in_real_time("realtime", "sched_pbg", &pbg),
        ];
        let policies = policies(&["sched_rr", "sched_sjf", "sched_mlfq", "sched_pbg"]);
        tables(&all, &policies, false).remove(0)
    }

    #[test]
    fn in_real_time_a_value_is_the_median_over_the_boots() {
        let table = over_boots();
        assert_eq!(table.setting(), "4 CPUs, real time, scale 1, 5 boots");
        let average = |row: usize| {
            let value = table.rows[row].values[2].unwrap();
            (value.middle(), value.least, value.most, value.count)
        };
        assert_eq!(average(0), (400.0, 399.0, 430.0, 5));
        assert_eq!(average(3), (205.0, 190.0, 900.0, 5));
        assert_eq!(table.letters(), ["", "a", "a", ""]);
        // By the medians and quartiles, whatever one boot that the host has spoilt does to the
        // mean, 341, and to the range.
        let best: Vec<_> = table.rows.iter().map(|row| table.is_best(row, 2)).collect();
        assert_eq!(best, [false, false, false, true]);
        let followed = Followed {
            label: "pbg".into(),
            whole: 4,
            boots: 5,
        };
        assert_eq!(table.followed, [followed]);
    }

    #[test]
    fn rows_whose_ranges_overlap_share_a_letter_and_the_best_place() {
        let table = over_tick_phases();
        assert_eq!(table.letters(), ["", "a", "a", ""]);
        let best: Vec<_> = table.rows.iter().map(|row| table.is_best(row, 2)).collect();
        assert_eq!(best, [false, true, true, false]);
    }

    #[test]
    fn rows_of_fewer_tick_phases_are_told() {
        let all = [
            results_at("realtime", "sched_rr", &[100]),
            results_at("realtime", "sched_cfs", &[100, 200]),
        ];
        let table = tables(&all, &policies(&["sched_rr", "sched_cfs"]), false).remove(0);
        assert!(table.setting().ends_with(", 1 to 2 tick phases"));
        assert!(table.has_ranges());
    }

    #[test]
    fn a_yield_costs_what_the_app_says_or_else_what_it_does_with_its_loop() {
        let policies = policies(&["sched_rr", "sched_fifo"]);
        let column = |all: &[Results]| {
            let table = tables(all, &policies, false).remove(0);
            let values: Vec<_> = table
                .rows
                .iter()
                .map(|row| row.values.last().unwrap().map(|value| value.mean))
                .collect();
            (table.columns.last().unwrap().title.clone(), values)
        };
        let mut all = [
            results("yield", "sched_rr", &[("run", 20_000)]),
            results("yield", "sched_fifo", &[("run", 10_000)]),
        ];
        // 20 and 10 µs for 2 tasks of 50 yields.
        assert_eq!(
            column(&all),
            (PER_YIELD_AND_LOOP.into(), vec![Some(200.0), Some(100.0)])
        );
        all[0].outcomes[0].phases[0].run.ns_per_yield = Some(162.5);
        assert_eq!(column(&all), (PER_YIELD.into(), vec![Some(162.5), None]));
    }

    #[test]
    fn unequal_shows_groups_where_they_are_counted_and_run_time_elsewhere() {
        let policies = policies(&["sched_rr"]);
        let mut rr = results("unequal", "sched_rr", &[("run", 2_000_000)]);
        let table = tables(std::slice::from_ref(&rr), &policies, false).remove(0);
        assert_eq!(table.task_title, RUN_TIME.title);
        assert_eq!(table.rows[0].values[0], Spread::of(&[4.0]));
        for (groups, task) in (7..).zip(&mut rr.outcomes[0].phases[0].tasks) {
            task.groups = Some(groups);
        }
        let table = tables(&[rr], &policies, false).remove(0);
        assert_eq!(table.task_title, GROUPS.title);
        let groups = [Spread::of(&[7.0]), Spread::of(&[8.0])];
        assert_eq!(table.rows[0].values[..2], groups);
        let judged: Vec<_> = table
            .columns
            .iter()
            .filter(|c| c.best != Best::None)
            .map(|c| &c.title)
            .collect();
        assert_eq!(judged, ["switches", "Jain"]);
    }

    #[test]
    fn another_setting_or_app_is_another_table_and_other_sources_are_noticed() {
        let policies = policies(&["sched_rr", "sched_fifo"]);
        let mut scaled = results("realtime", "sched_fifo", &[("run", 1_000)]);
        scaled.outcomes[0].phases[0].run.scale = 10;
        let mut other = results("yield", "sched_fifo", &[("run", 1_000)]);
        other.sources = Some("t".into());
        let all = [
            results("realtime", "sched_rr", &[("run", 1_000)]),
            scaled,
            results("yield", "sched_rr", &[("run", 1_000)]),
            other,
        ];
        let tables = tables(&all, &policies, false);
        let keys: Vec<_> = tables
            .iter()
            .map(|t| (t.app.as_str(), t.scale, t.mixed))
            .collect();
        assert_eq!(
            keys,
            [
                ("realtime", 1, false),
                ("realtime", 10, false),
                ("yield", 1, true)
            ]
        );
    }
}
