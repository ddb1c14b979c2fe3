//! Results of one app on one architecture as a table: rows are schedulers,
//! columns are tasks and totals. What is printed or drawn comes from here.

use crate::{
    project::{Cell, short},
    record::{Outcome, Phase, TaskLine},
};

/// A cell that has results.
pub struct Results {
    pub cell: Cell,
    pub outcome: Outcome,
    /// What it was made from, where that is known.
    pub sources: Option<String>,
}

/// What the columns of tasks show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskFigure {
    Turnaround,
    /// Time on a CPU: where all tasks end at the same time.
    RunTime,
    /// Work done by then.
    Groups,
}

/// Which value of a column is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Best {
    Lowest,
    Highest,
    /// Neither is better by itself.
    None,
}

#[derive(Clone, Debug, PartialEq)]
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
    /// The registry's own.
    pub stock: bool,
    /// A phase that is not the scheduler's result does not compete for the best.
    pub competes: bool,
    /// One for each column.
    pub values: Vec<Option<f64>>,
}

#[derive(Clone, Debug)]
pub struct Table {
    pub app: String,
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    pub task_figure: TaskFigure,
    /// How many of the columns are tasks; they come first.
    pub tasks: usize,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Its cells were not all made from the same sources.
    pub mixed: bool,
}

/// The titles of totals, by which figures find them.
pub const AVERAGE: &str = "average";
pub const PER_YIELD: &str = "ns/yield";
pub const PER_YIELD_AND_LOOP: &str = "ns/yield+loop";

/// What is known about the cost of a yield.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum YieldCost {
    /// The app took its loops out of it.
    Alone,
    /// The makespan over all yields. The two do not belong into one column.
    WithLoop,
}

impl Table {
    /// `1 CPU, icount time, scale 1`.
    pub fn setting(&self) -> String {
        let cpus = if self.smp == 1 { "" } else { "s" };
        format!(
            "{} CPU{cpus}, {} time, scale {}",
            self.smp, self.timing, self.scale
        )
    }

    /// What the columns of tasks are, with their unit.
    pub fn task_title(&self) -> &'static str {
        match self.task_figure {
            TaskFigure::Turnaround => "turnaround in ms",
            TaskFigure::RunTime => "time on a CPU in ms",
            TaskFigure::Groups => "groups of work done",
        }
    }

    /// The best value of a column, unless all rows are as good.
    pub fn best(&self, column: usize) -> Option<f64> {
        let values = || {
            self.rows
                .iter()
                .filter(|row| row.competes)
                .filter_map(|row| row.values[column])
        };
        let lowest = values().min_by(f64::total_cmp)?;
        let highest = values().max_by(f64::total_cmp)?;
        match self.columns[column].best {
            Best::Lowest if lowest < highest => Some(lowest),
            Best::Highest if lowest < highest => Some(highest),
            _ => None,
        }
    }

    /// Whether this row's value in the column is the best.
    pub fn is_best(&self, row: &Row, column: usize) -> bool {
        row.competes && row.values[column].is_some() && row.values[column] == self.best(column)
    }
}

/// The tables of these results, in their order. Cells that were run in another
/// setting are not comparable and get a table of their own. Each table has a row
/// for each policy, with results or without.
pub fn tables(all: &[Results], policies: &[String], long: bool) -> Vec<Table> {
    let key = |r: &Results| {
        let run = r.outcome.last();
        (
            run.arch.clone(),
            run.app.clone(),
            run.smp,
            run.timing.clone(),
            run.scale,
        )
    };
    let mut keys = Vec::new();
    for results in all {
        if !keys.contains(&key(results)) {
            keys.push(key(results));
        }
    }
    let of = |wanted| all.iter().filter(|r| key(r) == wanted).collect::<Vec<_>>();
    keys.into_iter()
        .map(|key| table(&of(key), policies, long))
        .collect()
}

fn table(cells: &[&Results], policies: &[String], long: bool) -> Table {
    let first = cells[0].outcome.last();
    let phases = || cells.iter().flat_map(|cell| &cell.outcome.phases);
    let mut tasks: Vec<&str> = Vec::new();
    for task in phases().flat_map(|phase| &phase.tasks) {
        if !tasks.contains(&task.task.as_str()) {
            tasks.push(&task.task);
        }
    }
    let task_figure = task_figure(&first.app, phases().flat_map(|phase| &phase.tasks));
    let alone = phases().any(|phase| phase.run.ns_per_yield.is_some());
    let cost = if alone {
        YieldCost::Alone
    } else {
        YieldCost::WithLoop
    };
    let yields = (first.app == "yield").then_some(cost);

    let mut rows = Vec::new();
    for policy in policies {
        let label = short(policy);
        let stock = label.starts_with("stock-");
        match cells.iter().find(|cell| cell.cell.policy == *policy) {
            None => rows.push(Row {
                label,
                stock,
                competes: true,
                values: Vec::new(),
            }),
            Some(cell) => {
                for (label, phase, competes) in shown(&label, &cell.outcome, long) {
                    let values = values(phase, &tasks, task_figure, yields);
                    rows.push(Row {
                        label,
                        stock,
                        competes,
                        values,
                    });
                }
            }
        }
    }
    let columns = columns(&tasks, task_figure, yields);
    for row in &mut rows {
        row.values.resize(columns.len(), None);
    }
    let sources = |cell: &&&Results| cell.sources != cells[0].sources;
    Table {
        app: first.app.clone(),
        arch: first.arch.clone(),
        smp: first.smp,
        timing: first.timing.clone(),
        scale: first.scale,
        task_figure,
        tasks: tasks.len(),
        columns,
        rows,
        mixed: cells.iter().find(sources).is_some(),
    }
}

/// In `unequal` all tasks end when the time is up: what tells them apart is how
/// far they got.
fn task_figure<'a>(app: &str, mut tasks: impl Iterator<Item = &'a TaskLine>) -> TaskFigure {
    match app {
        "unequal" if tasks.all(|task| task.groups.is_some()) => TaskFigure::Groups,
        "unequal" => TaskFigure::RunTime,
        _ => TaskFigure::Turnaround,
    }
}

/// The phases that get a row, with its label. PBG's result is its replay.
fn shown<'a>(label: &str, outcome: &'a Outcome, long: bool) -> Vec<(String, &'a Phase, bool)> {
    let name = |phase: &Phase| match phase.run.phase.as_str() {
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

fn columns(tasks: &[&str], figure: TaskFigure, yields: Option<YieldCost>) -> Vec<Column> {
    let column = |title: &str, unit, decimals, best| Column {
        title: title.to_owned(),
        unit,
        decimals,
        best,
    };
    let mut columns: Vec<_> = tasks
        .iter()
        .map(|task| match figure {
            TaskFigure::Turnaround => column(task, "ms", 3, Best::Lowest),
            TaskFigure::RunTime => column(task, "ms", 3, Best::None),
            TaskFigure::Groups => column(task, "groups", 0, Best::None),
        })
        .collect();
    // Tasks that are stopped when the time is up do not finish early by merit.
    let early = if figure == TaskFigure::Turnaround {
        Best::Lowest
    } else {
        Best::None
    };
    columns.extend([
        column(AVERAGE, "ms", 3, early),
        column("makespan", "ms", 3, early),
        column("switches", "", 0, Best::Lowest),
        column("Jain", "", 6, Best::Highest),
        column("avg/SRPT", "", 4, early),
    ]);
    columns.extend(yields.map(|cost| match cost {
        YieldCost::Alone => column(PER_YIELD, "ns", 1, Best::Lowest),
        YieldCost::WithLoop => column(PER_YIELD_AND_LOOP, "ns", 1, Best::Lowest),
    }));
    columns
}

/// A row's values, in the order of [`columns`].
fn values(
    phase: &Phase,
    tasks: &[&str],
    figure: TaskFigure,
    yields: Option<YieldCost>,
) -> Vec<Option<f64>> {
    let run = &phase.run;
    let ms = |ns: u64| Some(ns as f64 / 1e6);
    let mut values: Vec<_> = tasks
        .iter()
        .map(|name| {
            let task = phase.tasks.iter().find(|task| task.task == *name)?;
            match figure {
                TaskFigure::Turnaround => ms(task.turnaround_ns),
                TaskFigure::RunTime => ms(task.run_ns),
                TaskFigure::Groups => task.groups.map(|groups| groups as f64),
            }
        })
        .collect();
    values.extend([
        ms(run.avg_turnaround_ns),
        ms(run.makespan_ns),
        Some(run.context_switches as f64),
        Some(run.jain),
        ratio(run.avg_turnaround_ns as f64, run.srpt_bound_ns),
    ]);
    values.extend(yields.map(|cost| match cost {
        YieldCost::Alone => run.ns_per_yield,
        YieldCost::WithLoop => ratio(
            run.makespan_ns as f64,
            phase.tasks.iter().map(|task| task.yields).sum(),
        ),
    }));
    values
}

fn ratio(a: f64, b: u64) -> Option<f64> {
    (b != 0).then(|| a / b as f64)
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{
        project::App,
        record::{parse, tests::sample},
    };

    pub fn results(app: &str, policy: &str, phases: &[(&str, u64)]) -> Results {
        let outcome = parse(&sample(app, &short(policy), phases)).unwrap();
        let app = App {
            name: app.into(),
            folder: app.into(),
        };
        Results {
            cell: Cell {
                arch: "x86_64".into(),
                app,
                policy: policy.into(),
            },
            outcome,
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
                "long", "short", "average", "makespan", "switches", "Jain", "avg/SRPT"
            ]
        );
        assert_eq!(
            table.rows[2].values,
            [4.0, 0.0, 2.0, 2.0, 7.0, 0.5, 2.0].map(Some)
        );
        assert_eq!(table.rows[1].values, [None; 7]);
        assert!(table.rows[3].stock && !table.rows[0].stock);
    }

    #[test]
    fn the_long_form_shows_measuring_which_does_not_compete() {
        let table = realtime(true);
        assert_eq!(
            labels(&table),
            ["rr", "cfs", "pbg", "pbg (measuring)", "stock-rr"]
        );
        assert_eq!(table.rows[3].values[2], Some(2.5));
        assert!(!table.rows[3].competes);
    }

    #[test]
    fn the_best_of_a_column_is_marked_unless_all_are_the_same() {
        let table = realtime(true);
        assert_eq!(table.best(0), Some(4.0));
        assert!(table.is_best(&table.rows[2], 0));
        assert!(!table.is_best(&table.rows[0], 0));
        assert_eq!(table.best(4), None, "all switch seven times");
        assert!(
            !table.is_best(&table.rows[1], 4),
            "a missing value is not the best"
        );
    }

    #[test]
    fn a_yield_costs_what_the_app_says_or_else_what_it_does_with_its_loop() {
        let policies = policies(&["sched_rr", "sched_fifo"]);
        let column = |all: &[Results]| {
            let table = tables(all, &policies, false).remove(0);
            let values: Vec<_> = table
                .rows
                .iter()
                .map(|row| *row.values.last().unwrap())
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
        all[0].outcome.phases[0].run.ns_per_yield = Some(162.5);
        assert_eq!(column(&all), (PER_YIELD.into(), vec![Some(162.5), None]));
    }

    #[test]
    fn unequal_shows_groups_where_they_are_counted_and_run_time_elsewhere() {
        let policies = policies(&["sched_rr"]);
        let mut rr = results("unequal", "sched_rr", &[("run", 2_000_000)]);
        let table = tables(std::slice::from_ref(&rr), &policies, false).remove(0);
        assert_eq!(table.task_figure, TaskFigure::RunTime);
        assert_eq!(table.rows[0].values[0], Some(4.0));
        for (groups, task) in (7..).zip(&mut rr.outcome.phases[0].tasks) {
            task.groups = Some(groups);
        }
        let table = tables(&[rr], &policies, false).remove(0);
        assert_eq!(table.task_figure, TaskFigure::Groups);
        assert_eq!(table.rows[0].values[..2], [Some(7.0), Some(8.0)]);
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
        scaled.outcome.phases[0].run.scale = 10;
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
