//! Results of one app on one architecture as a table, which is then printed or drawn. Rows are
//! schedulers; columns are tasks and totals.

use std::ops::RangeInclusive;

use sched_tests_results::{Account, TaskLine};

use crate::{
    distinct::distinct,
    project::{Cell, short},
    record::{Outcome, Phase, REAL},
    spread::{Spread, letters},
    store::Inputs,
};

/// A cell that has results.
pub struct Results {
    pub cell: Cell,
    /// One for each boot, at least one.
    pub outcomes: Vec<Outcome>,
    /// The tools and sources, if they are known.
    pub sources: Option<Inputs>,
}

/// Which value of a column is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    Lowest,
    Highest,
    /// Neither end is better.
    None,
}

/// The figure in the columns of tasks.
struct TaskFigure {
    /// The title with the unit.
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
/// The figure of an app whose tasks all end at the same time.
const RUN_TIME: TaskFigure = TaskFigure {
    title: "time on a CPU in ms",
    unit: "ms",
    decimals: 3,
    best: Best::None,
    of: |task| ms(task.run_ns),
};
/// The figure of an app with a time limit that counts groups of work.
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
    /// True for a scheduler of the registry's `axsched`.
    pub stock: bool,
    /// False for a phase that is not the scheduler's result: it cannot be the best.
    pub competes: bool,
    /// The value in each column, over the boots of the cell.
    pub values: Vec<Option<Spread>>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    /// The title of the figure in the columns of tasks, with its unit.
    pub task_title: &'static str,
    /// The number of columns of tasks, which come first.
    pub tasks: usize,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// True if the cells were made from different tools or sources.
    pub mixed: bool,
    /// The fewest and the most boots of a row. In counted time each boot is at its own tick phase.
    pub boots: RangeInclusive<usize>,
    /// One for each row whose boots report on PBG's profile.
    pub followed: Vec<Followed>,
}

/// Counts the boots of a row in which exactly the planned tasks followed PBG's plan to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Followed {
    pub label: String,
    pub whole: usize,
    pub boots: usize,
}

/// The titles of totals, by which charts find them.
pub const AVERAGE: &str = "average";
const MAKESPAN: &str = "makespan";
const OVER_BOUND: &str = "avg/SRPT";
const OUTSIDE: &str = "outside";
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

/// The totals of every app.
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

/// The cost of a yield without the app's loop.
const ALONE: Total = (PER_YIELD, "ns", 1, Best::Lowest, |p| p.run.ns_per_yield);

/// The makespan per yield, which includes the app's loop.
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
    /// Returns `1 CPU, icount time, scale 1`, and the number of tick phases or boots if there are
    /// several.
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

    /// Returns true if figures have a range.
    pub fn has_ranges(&self) -> bool {
        *self.boots.end() > 1
    }

    /// Returns true if time is the host's; several boots are then shown by their median.
    pub fn is_real(&self) -> bool {
        self.timing == REAL
    }

    /// Returns the letters of each row: two rows share one if the ranges of their average
    /// turnarounds overlap.
    pub fn letters(&self) -> Vec<String> {
        let average = self.columns.iter().position(|c| c.title == AVERAGE);
        let ranges: Vec<_> = self.rows.iter().map(|row| row.values[average?]).collect();
        letters(&ranges)
    }

    /// Returns the best value of a column by its mean or median; `None` if all rows overlap.
    fn best(&self, column: usize) -> Option<Spread> {
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

    /// Returns true if this row's value in the column is the best or its range overlaps the best.
    pub fn is_best(&self, row: &Row, column: usize) -> bool {
        let best = self.best(column);
        row.competes
            && row.values[column]
                .zip(best)
                .is_some_and(|(value, best)| value.overlaps(&best))
    }
}

/// Returns the tables of these results, in their order. Each app, architecture and setting has
/// its own table, and each table a row for every policy, with results or without.
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
    // In `unequal` all tasks end when the time is up, and differ in how far they got.
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

/// Makes a spread of one figure over several boots: [`Spread::of`] or [`Spread::of_boots`].
type Over = fn(&[f64]) -> Option<Spread>;

/// Returns the spread of each column over the boots; `None` if a boot lacks the value.
fn spreads(boots: &[Vec<Option<f64>>], spread: Over) -> Vec<Option<Spread>> {
    let columns = boots.first().map_or(0, Vec::len);
    let column = |i: usize| {
        let values: Option<Vec<f64>> = boots.iter().map(|boot| boot[i]).collect();
        spread(&values?)
    };
    (0..columns).map(column).collect()
}

/// Returns the phases that have a row, each with its label and whether it competes. The result of
/// PBG is its replay.
fn shown<'a>(label: &str, outcome: &'a Outcome, long: bool) -> Vec<(String, &'a Phase, bool)> {
    let name = |phase: &Phase| match phase.name() {
        // Without a measurement PBG's base policy ran, which is not PBG's result.
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
        // Where the time is limited, an early end is no merit.
        best: match title {
            AVERAGE | MAKESPAN | OVER_BOUND => figure.best,
            _ => best,
        },
    };
    let of_tasks = tasks.iter().map(of_task);
    of_tasks.chain(totals.iter().map(of_run)).collect()
}

/// Returns the values of a phase, in the order of [`columns`].
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
pub mod tests;
