//! What is drawn: which bars, in which groups, under which words.

use crate::spread::Spread;

use super::table::{AVERAGE, PER_YIELD, PER_YIELD_AND_LOOP, Row, Slowdown, Table, TaskFigure};

/// With more tasks than this, a bar for each of them under each policy fills screens.
const MANY: usize = 16;

/// Whose bar it is; each kind has its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Ours,
    Pbg,
    Stock,
}

#[derive(Clone, Debug)]
pub struct Bar {
    pub label: String,
    pub kind: Kind,
    /// Its mean or median is the bar's length; its range, if it has one, is drawn as a whisker.
    pub value: Option<Spread>,
}

#[derive(Clone, Debug)]
pub struct Group {
    /// Empty if there is but one.
    pub title: String,
    pub bars: Vec<Bar>,
}

#[derive(Clone, Debug)]
pub struct Figure {
    /// The file's name, without its ending.
    pub name: String,
    pub title: String,
    pub subtitle: String,
    pub plot: Plot,
}

#[derive(Clone, Debug)]
pub enum Plot {
    Bars(Bars),
    /// One panel for each policy.
    Dots(Vec<Dots>),
}

#[derive(Clone, Debug)]
pub struct Bars {
    /// The axis, with its unit.
    pub axis: String,
    pub decimals: usize,
    pub groups: Vec<Group>,
}

/// What a policy did to each task.
#[derive(Clone, Debug)]
pub struct Dots {
    pub label: String,
    pub kind: Kind,
    pub slowdowns: Vec<Slowdown>,
}

impl Dots {
    /// Half of the tasks have this slowdown or less.
    pub fn median(&self) -> Option<f64> {
        let mut times: Vec<_> = self.slowdowns.iter().map(|task| task.times).collect();
        times.sort_by(f64::total_cmp);
        times.get(times.len().saturating_sub(1) / 2).copied()
    }
}

/// The figures of a table: one bar chart of its tasks for every app, and the
/// two of the report where they belong.
pub fn figures(table: &Table) -> Vec<Figure> {
    let mut figures = Vec::new();
    // Each where the table has its column.
    figures.extend(total(
        table,
        PER_YIELD,
        "yield-cost",
        "Cost of a yield",
        &format!("{} per yield", time_unit(table)),
    ));
    figures.extend(total(
        table,
        PER_YIELD_AND_LOOP,
        "yield-cost",
        "Cost of a yield and its loop",
        &format!("{} per yield, with the loop before it", time_unit(table)),
    ));
    if table.app == "realtime" {
        figures.extend(total(
            table,
            AVERAGE,
            "average-turnaround",
            "Average turnaround",
            "average turnaround, ms",
        ));
    }
    let many = table.task_figure == TaskFigure::Turnaround && table.tasks > MANY;
    figures.push(if many {
        slowdown(table)
    } else {
        per_task(table)
    });
    figures
}

/// One bar per scheduler.
fn total(table: &Table, column: &str, name: &str, title: &str, axis: &str) -> Option<Figure> {
    let column = table.columns.iter().position(|c| c.title == column)?;
    Some(Figure {
        name: file_name(table, name),
        title: format!("{title}: {} on {}", table.app, table.arch),
        subtitle: subtitle(table, "less is better"),
        plot: Plot::Bars(Bars {
            axis: axis.to_owned(),
            decimals: table.columns[column].decimals,
            groups: vec![group(table, column, String::new())],
        }),
    })
}

/// A dot for each task: its slowdown over its own length, a panel for each policy.
///
/// It shows whom a policy makes wait, which neither a bar per task nor a distribution of
/// slowdowns does: where dots fall to the right it is the short ones that wait for the long
/// ones, where they rise the long ones let the short ones by. The height of the cloud is
/// what a task waits, in its own lengths.
fn slowdown(table: &Table) -> Figure {
    let dots = |row: &Row| Dots {
        label: row.label.clone(),
        kind: kind(row),
        slowdowns: row.slowdowns.clone(),
    };
    Figure {
        name: file_name(table, &format!("slowdown-{}", table.app)),
        title: format!("Slowdown of each task: {} on {}", table.app, table.arch),
        subtitle: format!(
            "{}{}; low is better",
            setting(table),
            match (table.has_ranges(), table.is_real()) {
                (true, true) => "; medians",
                (true, false) => "; means",
                (false, _) => "",
            }
        ),
        plot: Plot::Dots(table.rows.iter().map(dots).collect()),
    }
}

/// A group of bars per task.
fn per_task(table: &Table) -> Figure {
    let (name, title, axis, reading) = match table.task_figure {
        TaskFigure::Turnaround => (
            "turnaround",
            "Turnaround of each task",
            "turnaround, ms",
            "less is better",
        ),
        TaskFigure::RunTime => (
            "run-time",
            "CPU time of each task",
            "time on a CPU, ms",
            "equal is fair",
        ),
        TaskFigure::Groups => (
            "groups",
            "Work done by each task",
            "groups of work done",
            "a group of a later task is longer",
        ),
    };
    Figure {
        name: file_name(table, &format!("{name}-{}", table.app)),
        title: format!("{title}: {} on {}", table.app, table.arch),
        subtitle: subtitle(table, reading),
        plot: Plot::Bars(Bars {
            axis: axis.to_owned(),
            decimals: table.columns.first().map_or(0, |column| column.decimals),
            groups: (0..table.tasks)
                .map(|i| group(table, i, table.columns[i].title.clone()))
                .collect(),
        }),
    }
}

fn kind(row: &Row) -> Kind {
    match (row.stock, row.label.starts_with("pbg")) {
        (true, _) => Kind::Stock,
        (_, true) => Kind::Pbg,
        _ => Kind::Ours,
    }
}

fn group(table: &Table, column: usize, title: String) -> Group {
    let bar = |row: &Row| Bar {
        label: row.label.clone(),
        kind: kind(row),
        value: row.values[column],
    };
    Group {
        title,
        bars: table.rows.iter().map(bar).collect(),
    }
}

/// What a nanosecond is: short times are read as what was counted.
fn time_unit(table: &Table) -> &'static str {
    match table.timing.as_str() {
        "icount" => "instructions",
        _ => "ns",
    }
}

/// The figure's file, named after the table's setting where that is not the usual one.
fn file_name(table: &Table, name: &str) -> String {
    let mut name = format!("{name}-{}", table.arch);
    if table.scale != 1 {
        name += &format!("-scale{}", table.scale);
    }
    if table.smp != 1 {
        name += &format!("-smp{}", table.smp);
    } else if table.timing != "icount" {
        name += &format!("-{}", table.timing);
    }
    name
}

fn setting(table: &Table) -> String {
    table
        .setting()
        .replace("icount time", "icount time (1 ns is 1 instruction)")
}

fn subtitle(table: &Table, reading: &str) -> String {
    let setting = setting(table);
    let bars = match (table.has_ranges(), table.is_real()) {
        (true, true) => "; median and range",
        (true, false) => "; mean and range",
        (false, _) => "",
    };
    format!("{setting}{bars}; {reading}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::table::{
        tables,
        tests::{over_boots, over_tick_phases, results},
    };

    #[test]
    fn a_figure_says_what_its_bars_are() {
        let subtitle = |table: &Table| figures(table)[0].subtitle.clone();
        assert_eq!(
            subtitle(&over_boots()),
            "4 CPUs, real time, scale 1, 5 boots; median and range; less is better"
        );
        assert!(subtitle(&over_tick_phases()).contains("; mean and range; "));
    }

    #[test]
    fn a_yield_costs_what_time_is_counted_in() {
        let all = [results("yield", "sched_rr", &[("run", 20_000)])];
        let mut table = tables(&all, &["sched_rr".to_owned()], false).remove(0);
        let axis = |table: &Table| match &figures(table)[0].plot {
            Plot::Bars(bars) => bars.axis.clone(),
            Plot::Dots(_) => panic!("bars"),
        };
        let end = "per yield, with the loop before it";
        assert_eq!(axis(&table), format!("instructions {end}"));
        table.timing = "real".to_owned();
        assert_eq!(axis(&table), format!("ns {end}"));
    }
}
