//! The table for people: milliseconds with three decimals, at most 100 columns.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{Phase, Setting, TaskResult};

/// Names longer than this push their row out of line.
const NAME_WIDTH: usize = 12;

/// The tasks of each phase, then one line of totals for each phase.
///
/// A run of one phase shows all figures of a task; two phases stand side by side.
pub fn table(setting: &Setting, phases: &[Phase]) -> String {
    let mut out = match phases {
        [before, after] => side_by_side(before, after),
        _ => phases.iter().map(single).collect(),
    };
    out += &format!(
        "\n{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n",
        "total, ms", "average", "max", "makespan", "SRPT bound", "avg/bound", "switches",
    );
    for phase in phases {
        let (average, bound) = (phase.avg_turnaround_ns(), phase.srpt_bound_ns(setting.smp));
        out += &format!(
            "{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n",
            phase.name,
            ms(average),
            ms(phase.max_turnaround_ns()),
            ms(phase.makespan_ns()),
            ms(bound),
            ratio(average, bound),
            phase.context_switches,
        );
    }
    out
}

fn single(phase: &Phase) -> String {
    let mut out = format!(
        "{:NAME_WIDTH$}{:>10}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}\n",
        "task, ms", "submit", "first run", "finish", "turnaround", "run", "dispatches", "yields",
    );
    for task in &phase.tasks {
        out += &format!(
            "{:NAME_WIDTH$}{:>10}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{}\n",
            task.name,
            ms(task.submit_ns),
            ms(task.first_run_ns),
            ms(task.finish_ns),
            ms(task.turnaround_ns()),
            ms(task.run_ns),
            task.dispatches,
            task.yields,
            mark(task.ok),
        );
    }
    out
}

fn side_by_side(before: &Phase, after: &Phase) -> String {
    let mut out = format!(
        "{:NAME_WIDTH$}{:>24}{:>24}{:>20}\n{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>10}{:>10}{:>10}\n",
        "",
        "turnaround, ms",
        "run, ms",
        "dispatches",
        "task",
        before.name,
        after.name,
        before.name,
        after.name,
        before.name,
        after.name,
        "yields",
    );
    for (a, b) in pairs(before, after) {
        let both = |text: fn(&TaskResult) -> String, width| {
            let cell = |t: Option<&TaskResult>| t.map_or("-".into(), text);
            format!("{:>width$}{:>width$}", cell(a), cell(b))
        };
        out += &format!(
            "{:NAME_WIDTH$}{}{}{}{:>10}{}\n",
            a.or(b).map_or("", |t| &t.name),
            both(|t| ms(t.turnaround_ns()), 12),
            both(|t| ms(t.run_ns), 12),
            both(|t| t.dispatches.to_string(), 10),
            a.or(b).map_or(0, |t| t.yields),
            mark([a, b].into_iter().flatten().all(|t| t.ok)),
        );
    }
    out
}

/// The rows of two phases by position: both phases run the same workload.
fn pairs<'a>(
    before: &'a Phase,
    after: &'a Phase,
) -> Vec<(Option<&'a TaskResult>, Option<&'a TaskResult>)> {
    (0..before.tasks.len().max(after.tasks.len()))
        .map(|i| (before.tasks.get(i), after.tasks.get(i)))
        .collect()
}

fn mark(ok: bool) -> &'static str {
    if ok { "" } else { "  WRONG" }
}

/// Nanoseconds as milliseconds, rounded to the microsecond.
fn ms(ns: u64) -> String {
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

fn ratio(of: u64, to: u64) -> String {
    if to == 0 {
        return "-".into();
    }
    format!("{:.4}", of as f64 / to as f64)
}

#[cfg(test)]
mod tests {
    use super::{super::Fairness, *};

    const SETTING: Setting = Setting {
        app: "realtime",
        arch: "x86_64",
        smp: 1,
        sched: "pbg",
        timing: "icount",
        scale: 1,
    };

    fn phase(name: &'static str, factor: u64) -> Phase {
        let task = |name: &str, finish_ns: u64, run_ns, yields| TaskResult {
            name: name.into(),
            submit_ns: 1_500,
            first_run_ns: 2_499,
            finish_ns: finish_ns * factor,
            run_ns,
            dispatches: yields * factor,
            yields,
            ok: true,
        };
        Phase {
            name,
            tasks: [
                task("long", 3_399_000_000, 3_200_000_000, 8),
                task("short4", 500_000_000, 199_000_000, 500_000),
            ]
            .into(),
            context_switches: 850_023 * factor,
            fairness: Fairness::FinishTime,
            pass: true,
        }
    }

    #[test]
    fn milliseconds_are_rounded_to_the_microsecond() {
        assert_eq!(ms(0), "0.000");
        assert_eq!(ms(1_499), "0.001");
        assert_eq!(ms(1_500), "0.002");
        assert_eq!(ms(999_999_999), "1000.000");
        assert_eq!(ms(u64::MAX), "18446744073709.552");
    }

    #[test]
    fn one_phase() {
        let expected = "\
task, ms        submit   first run      finish  turnaround         run  dispatches    yields
long             0.002       0.002    3399.000    3398.999    3200.000           8         8
short4           0.002       0.002     500.000     499.999     199.000      500000    500000

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
run             1949.499    3398.999    3398.999    1799.000      1.0837    850023
";
        assert_eq!(table(&SETTING, &[phase("run", 1)]), expected);
    }

    #[test]
    fn two_phases_side_by_side() {
        let mut after = phase("replay", 2);
        after.tasks[1].ok = false;
        let expected =
            "                      turnaround, ms                 run, ms          dispatches
task             measure      replay     measure      replay   measure    replay    yields
long            3398.999    6797.999    3200.000    3200.000         8        16         8
short4           499.999     999.999     199.000     199.000    500000   1000000    500000  WRONG

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
measure         1949.499    3398.999    3398.999    1799.000      1.0837    850023
replay          3898.999    6797.999    6797.999    1799.000      2.1673   1700046
";
        let text = table(&SETTING, &[phase("measure", 1), after]);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 100));
    }
}
