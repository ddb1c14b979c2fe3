//! The table that a run prints for people, made of its result lines: milliseconds with three decimals,
//! at most 100 columns.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use crate::{Account, Followed, RunLine, TaskLine};

/// The lines of one phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PhaseLines {
    /// The phase as a whole.
    pub run: RunLine,
    /// Its tasks, in the order of submission.
    pub tasks: Vec<TaskLine>,
}

/// The width of the column of names. A longer name pushes its row out of line.
const NAME_WIDTH: usize = 12;

/// Returns the tasks of each phase, then a line of totals for each phase, then the account of the CPU
/// time.
///
/// A run of one phase shows all figures of a task. Several phases stand side by side.
pub fn table(phases: &[PhaseLines]) -> String {
    tasks(phases) + &totals(phases) + &accounts(phases)
}

/// A figure of a task: its title, its unit beside other units, the width of its column, its text.
type Column = (&'static str, &'static str, usize, fn(&TaskLine) -> String);

const SUBMIT: Column = ("submit", ", ms", 10, |t| ms(t.submit_ns));
const FIRST_RUN: Column = ("first run", ", ms", 12, |t| ms(t.first_run_ns));
const FINISH: Column = ("finish", ", ms", 12, |t| ms(t.finish_ns));
const TURNAROUND: Column = ("turnaround", ", ms", 12, |t| ms(t.turnaround_ns));
const RUN: Column = ("run", ", ms", 12, |t| ms(t.run_ns));
const IN_WINDOW: Column = ("in window", ", ms", 12, |t| {
    or_dash(t.run_in_window_ns.map(ms))
});
const DISPATCHES: Column = ("dispatches", "", 11, |t| t.dispatches.to_string());
const YIELDS: Column = ("yields", "", 9, |t| t.yields.to_string());
const GROUPS: Column = ("groups", "", 8, |t| {
    or_dash(t.groups.map(|n| n.to_string()))
});

/// Returns the columns. Where tasks share a window, all are submitted at once and yield once a group.
fn columns(phases: &[PhaseLines]) -> Vec<Column> {
    let any = |of: fn(&TaskLine) -> Option<u64>| {
        let mut tasks = phases.iter().flat_map(|phase| &phase.tasks);
        tasks.any(|task| of(task).is_some())
    };
    let (in_window, in_groups) = (any(|t| t.run_in_window_ns), any(|t| t.groups));
    let alone = phases.len() == 1;
    [
        (SUBMIT, alone && !in_window),
        (FIRST_RUN, alone),
        (FINISH, alone),
        (TURNAROUND, true),
        (RUN, alone || !in_window),
        (IN_WINDOW, in_window),
        (DISPATCHES, true),
        (YIELDS, !in_window),
        (GROUPS, in_groups && (alone || in_window)),
    ]
    .into_iter()
    .filter_map(|(column, is_shown)| is_shown.then_some(column))
    .collect()
}

/// Returns a row for each task. Phases run the same workload, so its place tells which task it is.
fn tasks(phases: &[PhaseLines]) -> String {
    let columns = columns(phases);
    let count = phases.iter().map(|phase| phase.tasks.len()).max();
    let rows: Vec<Vec<Option<&TaskLine>>> = (0..count.unwrap_or(0))
        .map(|row| phases.iter().map(|phase| phase.tasks.get(row)).collect())
        .collect();
    // The last column is the work. It is the same in all phases unless it depends on the schedule.
    let is_same = |column: &Column| {
        rows.iter().all(|row| {
            let mut texts = row.iter().flatten().map(|task| (column.3)(task));
            let first = texts.next();
            texts.all(|text| Some(text) == first)
        })
    };
    let merges_last = columns.last().is_some_and(is_same);
    let cells = |at: usize| {
        if merges_last && at + 1 == columns.len() {
            1
        } else {
            phases.len()
        }
    };

    let mut out = String::new();
    if phases.len() > 1 {
        out += &format!("{:NAME_WIDTH$}", "");
        let pairs = columns.iter().enumerate().filter(|(at, _)| cells(*at) > 1);
        for (at, (title, unit, width, _)) in pairs {
            out += &format!("{:>1$}", format!("{title}{unit}"), cells(at) * width);
        }
        out += &format!("\n{:NAME_WIDTH$}", "task");
    } else {
        out += &format!("{:NAME_WIDTH$}", "task, ms");
    }
    for (at, &(title, _, width, _)) in columns.iter().enumerate() {
        if cells(at) == 1 {
            out += &format!("{title:>width$}");
        } else {
            for phase in phases {
                out += &format!("{:>width$}", phase.run.context.phase);
            }
        }
    }
    for row in &rows {
        let there = || row.iter().copied().flatten();
        let first = [there().next()];
        let name = first[0].map_or("", |task| &task.task);
        out += &format!("\n{name:NAME_WIDTH$}");
        for (at, &(_, _, width, text)) in columns.iter().enumerate() {
            for task in if cells(at) == 1 { &first[..] } else { row } {
                out += &format!("{:>width$}", or_dash(task.map(text)));
            }
        }
        out += verdict(!there().any(|task| task.wrong));
    }
    out + "\n"
}

/// Returns a line of totals for each phase, with the answer to the application's question.
fn totals(phases: &[PhaseLines]) -> String {
    type Answer = (&'static str, fn(&PhaseLines) -> Option<String>);
    const ANSWERS: [Answer; 2] = [
        ("Jain's index", |phase| {
            let mut tasks = phase.tasks.iter();
            let in_window = tasks.any(|task| task.run_in_window_ns.is_some());
            in_window.then(|| format!("{:.6}", phase.run.jain))
        }),
        ("ns per yield", |phase| {
            phase.run.ns_per_yield.map(|ns| format!("{ns:.3}"))
        }),
    ];
    let answers = ANSWERS
        .iter()
        .filter(|(_, of)| phases.iter().any(|phase| of(phase).is_some()));
    let line = |cells: [&str; 7], answers: String| {
        let [name, rest @ .., switches] = cells;
        let rest: String = rest.iter().map(|cell| format!("{cell:>12}")).collect();
        format!("{name:NAME_WIDTH$}{rest}{switches:>10}{answers}\n")
    };
    let titles = [
        "total, ms",
        "average",
        "max",
        "makespan",
        "SRPT bound",
        "avg/bound",
        "switches",
    ];
    let mut out = String::from("\n");
    out += &line(
        titles,
        answers
            .clone()
            .map(|(title, _)| format!("{title:>14}"))
            .collect(),
    );
    for phase in phases {
        let run = &phase.run;
        let cells = [
            run.context.phase.clone(),
            ms(run.avg_turnaround_ns),
            ms(run.max_turnaround_ns),
            ms(run.makespan_ns),
            ms(run.srpt_bound_ns),
            ratio(run.avg_turnaround_ns, run.srpt_bound_ns),
            run.context_switches.to_string(),
        ];
        let answers = answers
            .clone()
            .map(|(_, of)| format!("{:>14}", or_dash(of(phase))));
        out += &line(cells.each_ref().map(String::as_str), answers.collect());
    }
    out
}

/// Returns the account of each phase, and a line where much of the CPU time belonged to no task.
fn accounts(phases: &[PhaseLines]) -> String {
    let known: Vec<_> = phases
        .iter()
        .filter_map(|phase| Some((&phase.run, Account::of(&phase.run).ok()?)))
        .collect();
    if known.is_empty() {
        return String::new();
    }
    let mut out = format!(
        "\n{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>15}\n",
        "CPU time, ms", "tasks", "main", "gc", "rest", "idle", "sum/makespan",
    );
    for (run, account) in &known {
        out += &format!(
            "{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>15}{}\n",
            run.context.phase,
            ms(account.tasks_run_ns),
            ms(account.main_run_ns),
            ms(account.gc_run_ns),
            ms(account.rest_run_ns),
            ms(account.idle_ns),
            ratio(account.sum_ns() as u64, account.available_ns() as u64),
            verdict(account.is_balanced()),
        );
    }
    for (run, account) in known.iter().filter(|(_, account)| account.is_noted()) {
        out += &format!(
            "{}: {:.1} % of the CPU time was no task's (gc {:.1} %){}.\n",
            run.context.phase,
            account.percent(account.outside_ns()),
            account.percent(account.gc_run_ns.into()),
            if run.holds_handles {
                ": main held handles of ended tasks"
            } else {
                ""
            },
        );
    }
    out
}

impl Followed {
    /// Returns a sentence for people if the replay, of this average turnaround, was slower than the
    /// measured run or behind it.
    pub fn remark(&self, replayed_ns: u64) -> Option<String> {
        if !self.slower && !self.behind {
            return None;
        }
        let plan = if self.dropped {
            "gave its plan up"
        } else {
            "followed its plan to the end"
        };
        let measured_ns = self.measured_avg_turnaround_ns;
        Some(format!(
            "PBG was behind the measured run and {plan}: average turnaround {} ms, measured {} ({} times as long).\n",
            ms(replayed_ns),
            ms(measured_ns),
            ratio(replayed_ns, measured_ns),
        ))
    }
}

/// Returns the end of a row: a word if something in it is wrong.
fn verdict(is_right: bool) -> &'static str {
    if is_right { "" } else { "  WRONG" }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or("-".into())
}

/// Returns nanoseconds as milliseconds, rounded to the microsecond.
fn ms(ns: u64) -> String {
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

/// Returns a ratio with four decimals; a dash if there is nothing to compare with.
fn ratio(of: u64, to: u64) -> String {
    if to == 0 {
        return "-".into();
    }
    format!("{:.4}", of as f64 / to as f64)
}

#[cfg(test)]
mod tests;
