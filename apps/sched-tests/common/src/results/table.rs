//! The table for people: milliseconds with three decimals, at most 100 columns.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{
    numbers::{ms, ratio},
    phase::{Phase, Question, Setting, TaskResult},
};

/// The width of the column of names; a longer one pushes its row out of line.
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
        "\n{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{}\n",
        "total, ms",
        "average",
        "max",
        "makespan",
        "SRPT bound",
        "avg/bound",
        "switches",
        phases.first().map_or("".into(), answer_title),
    );
    for phase in phases {
        let (average, bound) = (phase.avg_turnaround_ns(), phase.srpt_bound_ns(setting.smp));
        out += &format!(
            "{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>10}{}\n",
            phase.name,
            ms(average),
            ms(phase.max_turnaround_ns()),
            ms(phase.makespan_ns()),
            ms(bound),
            ratio(average, bound),
            phase.context_switches,
            answer(setting, phase),
        );
    }
    out + &accounts(phases)
}

/// Where the CPU time went, and a line where much of it was not the tasks'.
fn accounts(phases: &[Phase]) -> String {
    let known = || {
        phases
            .iter()
            .filter_map(|phase| Some((phase, phase.account?)))
    };
    if known().next().is_none() {
        return "".into();
    }
    let mut out = format!(
        "\n{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>15}\n",
        "CPU time, ms", "tasks", "main", "gc", "rest", "idle", "sum/makespan",
    );
    for (phase, account) in known() {
        out += &format!(
            "{:NAME_WIDTH$}{:>12}{:>12}{:>12}{:>12}{:>12}{:>15}{}\n",
            phase.name,
            ms(account.tasks_run_ns),
            ms(account.main_run_ns),
            ms(account.gc_run_ns),
            ms(account.rest_run_ns),
            ms(account.idle_ns),
            ratio(account.sum_ns() as u64, account.available_ns() as u64),
            verdict(account.closes()),
        );
    }
    for (phase, account) in known().filter(|(_, account)| account.is_noted()) {
        out += &format!(
            "{}: {:.1} % of the CPU time was no task's (gc {:.1} %){}.\n",
            phase.name,
            account.percent(account.outside_ns()),
            account.percent(account.gc_run_ns.into()),
            if phase.holds_handles {
                ": main held handles of ended tasks"
            } else {
                ""
            },
        );
    }
    out
}

/// The heading of the column for the answer to the application's question, if it has one.
fn answer_title(phase: &Phase) -> String {
    match phase.question {
        Question::Ends => "".into(),
        Question::EndOf(name) => format!("{:>14}", format!("end of {name}")),
        Question::Shares { .. } => format!("{:>14}", "Jain's index"),
        Question::YieldCost { .. } => format!("{:>14}", "ns per yield"),
    }
}

/// The answer to the application's question, below [`answer_title`].
fn answer(setting: &Setting, phase: &Phase) -> String {
    match phase.question {
        Question::Ends => "".into(),
        Question::EndOf(name) => {
            let task = phase.tasks.iter().find(|task| task.name == name);
            format!("{:>14}", task.map_or("-".into(), |t| ms(t.finish_ns)))
        }
        Question::Shares { .. } => format!("{:>14.6}", phase.jain()),
        Question::YieldCost { .. } => match phase.ns_per_yield(setting) {
            Some(ns) => format!("{ns:>14.3}"),
            None => format!("{:>14}", "-"),
        },
    }
}

/// A figure of a task: its heading, the width of its column, its text.
type Column = (&'static str, usize, fn(&TaskResult) -> String);

/// One phase, with all figures of each task.
fn single(phase: &Phase) -> String {
    const SUBMIT: Column = ("submit", 10, |t| ms(t.submit_ns));
    const FIRST_RUN: Column = ("first run", 12, |t| ms(t.first_run_ns));
    const FINISH: Column = ("finish", 12, |t| ms(t.finish_ns));
    const TURNAROUND: Column = ("turnaround", 12, |t| ms(t.turnaround_ns()));
    const RUN: Column = ("run", 12, |t| ms(t.run_ns));
    const IN_WINDOW: Column = ("in window", 12, |t| or_dash(t.run_in_window_ns.map(ms)));
    const DISPATCHES: Column = ("dispatches", 12, |t| t.dispatches.to_string());
    const YIELDS: Column = ("yields", 10, |t| t.yields.to_string());
    const GROUPS: Column = ("groups", 8, |t| or_dash(t.groups.map(|n| n.to_string())));
    const TURN: [Column; 4] = [FIRST_RUN, FINISH, TURNAROUND, RUN];

    let columns = match phase.question {
        // No room for the submission, which is at once, nor for the yields: one a group.
        Question::Shares { .. } => [&TURN[..], &[IN_WINDOW, DISPATCHES, GROUPS]].concat(),
        Question::EndOf(_) => [&[SUBMIT], &TURN[..], &[DISPATCHES, YIELDS, GROUPS]].concat(),
        _ => [&[SUBMIT], &TURN[..], &[DISPATCHES, YIELDS]].concat(),
    };
    let row = |name: &str, cell: &dyn Fn(&Column) -> String, verdict: &str| {
        let cells = columns.iter().map(|c| format!("{:>1$}", cell(c), c.1));
        format!("{name:NAME_WIDTH$}{}{verdict}\n", cells.collect::<String>())
    };
    let heading = row("task, ms", &|&(heading, ..)| heading.into(), "");
    let tasks = phase.tasks.iter();
    let rows = tasks.map(|t| row(&t.name, &|&(.., text)| text(t), verdict(t.ok)));
    [heading].into_iter().chain(rows).collect()
}

/// Two phases, with each figure that may differ shown of both.
fn side_by_side(before: &Phase, after: &Phase) -> String {
    const TURNAROUND: Column = ("turnaround, ms", 12, |t| ms(t.turnaround_ns()));
    const RUN: Column = ("run, ms", 12, |t| ms(t.run_ns));
    const IN_WINDOW: Column = ("run in window, ms", 12, |t| {
        or_dash(t.run_in_window_ns.map(ms))
    });
    const DISPATCHES: Column = ("dispatches", 10, |t| t.dispatches.to_string());
    const YIELDS: Column = ("yields", 10, |t| t.yields.to_string());
    const GROUPS: Column = ("groups", 10, |t| or_dash(t.groups.map(|n| n.to_string())));

    let columns = match before.question {
        Question::Shares { .. } => [TURNAROUND, IN_WINDOW, DISPATCHES, GROUPS],
        _ => [TURNAROUND, RUN, DISPATCHES, YIELDS],
    };
    let pairs = pairs(before, after);
    // Work that does not depend on the schedule is the same in both phases.
    let same_work = pairs.iter().all(|(a, b)| match (a, b) {
        (Some(a), Some(b)) => (a.yields, a.groups) == (b.yields, b.groups),
        _ => true,
    });
    let (pairwise, once) = columns.split_at(if same_work { 3 } else { 4 });

    let mut out = format!("{:NAME_WIDTH$}", "");
    for (heading, width, _) in pairwise {
        out += &format!("{heading:>0$}", 2 * width);
    }
    out += &format!("\n{:NAME_WIDTH$}", "task");
    for (_, width, _) in pairwise {
        out += &format!("{:>width$}{:>width$}", before.name, after.name);
    }
    for (heading, width, _) in once {
        out += &format!("{heading:>width$}");
    }
    for (a, b) in pairs {
        let cell = |task: Option<&TaskResult>, &(_, width, text): &Column| {
            format!("{:>width$}", or_dash(task.map(text)))
        };
        out += &format!("\n{:NAME_WIDTH$}", a.or(b).map_or("", |t| &t.name));
        for column in pairwise {
            out += &(cell(a, column) + &cell(b, column));
        }
        for column in once {
            out += &cell(a.or(b), column);
        }
        out += verdict([a, b].into_iter().flatten().all(|t| t.ok));
    }
    out + "\n"
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

/// The end of a row: a word if something in it is wrong.
fn verdict(ok: bool) -> &'static str {
    if ok { "" } else { "  WRONG" }
}

fn or_dash(text: Option<String>) -> String {
    text.unwrap_or("-".into())
}

#[cfg(test)]
mod tests {
    use sched_tests_results::Account;

    use super::{super::phase::tests::SETTING, *};

    fn phase(name: &'static str, factor: u64) -> Phase {
        let task = |name: &str, finish_ns: u64, run_ns, yields| TaskResult {
            name: name.into(),
            submit_ns: 1_500,
            first_run_ns: 2_499,
            finish_ns: finish_ns * factor,
            run_ns,
            run_in_window_ns: None,
            dispatches: yields * factor,
            yields,
            groups: None,
            ok: true,
            timeline: None,
        };
        Phase {
            name,
            tasks: [
                task("long", 3_399_000_000, 3_200_000_000, 8),
                task("short4", 500_000_000, 199_000_000, 500_000),
            ]
            .into(),
            context_switches: 850_023 * factor,
            pass: true,
            ..Phase::default()
        }
    }

    #[test]
    fn one_phase() {
        let expected = "\
task, ms        submit   first run      finish  turnaround         run  dispatches    yields
long             0.002       0.002    3399.000    3398.999    3200.000           8         8
short4           0.002       0.002     500.000     499.999     199.000      500000    500000

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023
";
        assert_eq!(table(&SETTING, &[phase("run", 1)]), expected);
    }

    #[test]
    fn the_cpu_time_is_accounted_for_and_what_is_much_is_said() {
        let mut phase = phase("run", 1);
        let account = Account {
            tasks_run_ns: 3_399_000_000,
            main_run_ns: 100_000,
            gc_run_ns: 51_000_000,
            rest_run_ns: 2_000_000,
            idle_ns: 47_900_000,
            makespan_ns: 3_500_000_000,
            cpus: 1,
            is_counted: true,
        };
        phase.account = Some(account);
        let expected = "
CPU time, ms       tasks        main          gc        rest        idle   sum/makespan
run             3399.000       0.100      51.000       2.000      47.900         1.0000
";
        assert!(table(&SETTING, &[phase.clone()]).ends_with(expected));
        phase.account = Some(Account {
            gc_run_ns: 301_000_000,
            ..account
        });
        let expected = "301.000       2.000      47.900         1.0714  WRONG
run: 8.7 % of the CPU time was no task's (gc 8.6 %).
";
        assert!(table(&SETTING, &[phase.clone()]).ends_with(expected));
        phase.holds_handles = true;
        let text = table(&SETTING, &[phase]);
        let words = text.lines().last().unwrap();
        assert!(words.len() <= 100 && text.ends_with("%): main held handles of ended tasks.\n"));
    }

    /// [`phase`], asked about shares, with four tasks that differ in time and groups.
    fn shares(name: &'static str, factor: u64) -> Phase {
        let mut phase = phase(name, factor);
        phase.question = Question::Shares {
            window_ns: 5_000_000_000,
        };
        let task = phase.tasks[0].clone();
        phase.tasks.resize(4, task);
        for (i, task) in (1..).zip(&mut phase.tasks) {
            task.name = format!("task{i}");
            task.run_in_window_ns = Some(1_250_000_000 - factor * i * 50_000_000);
            task.groups = Some(factor * 12 / i);
        }
        phase
    }

    #[test]
    fn shares_have_a_window_and_groups() {
        let expected = "\
task, ms       first run      finish  turnaround         run   in window  dispatches  groups
task1              0.002    3399.000    3398.999    3200.000    1200.000           8      12
task2              0.002     500.000     499.999     199.000    1150.000      500000       6
task3              0.002    3399.000    3398.999    3200.000    1100.000           8       4
task4              0.002    3399.000    3398.999    3200.000    1050.000           8       3

total, ms        average         max    makespan  SRPT bound   avg/bound  switches  Jain's index
run             2674.249    3398.999    3399.000    4999.000      0.5350    850023      0.997537
";
        assert_eq!(table(&SETTING, &[shares("run", 1)]), expected);
    }

    #[test]
    fn work_that_differs_between_phases_is_shown_of_both() {
        let expected = "                      turnaround, ms       run in window, ms          dispatches              groups
task             measure      replay     measure      replay   measure    replay   measure    replay
task1           3398.999    6797.999    1200.000    1150.000         8        16        12        24
task2            499.999     999.999    1150.000    1050.000    500000   1000000         6        12
task3           3398.999    6797.999    1100.000     950.000         8        16         4         8
task4           3398.999    6797.999    1050.000     850.000         8        16         3         6

total, ms        average         max    makespan  SRPT bound   avg/bound  switches  Jain's index
measure         2674.249    3398.999    3399.000    4999.000      0.5350    850023      0.997537
replay          5348.499    6797.999    6798.000    4999.000      1.0699   1700046      0.987654
";
        let text = table(&SETTING, &[shares("measure", 1), shares("replay", 2)]);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 100));
    }

    #[test]
    fn the_end_of_one_task_stands_beside_the_totals() {
        let mut phase = phase("run", 1);
        phase.question = Question::EndOf("long");
        phase.tasks[1].groups = Some(37);
        let expected = "\
task, ms        submit   first run      finish  turnaround         run  dispatches    yields  groups
long             0.002       0.002    3399.000    3398.999    3200.000           8         8       -
short4           0.002       0.002     500.000     499.999     199.000      500000    500000      37

total, ms        average         max    makespan  SRPT bound   avg/bound  switches   end of long
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023      3399.000
";
        let text = table(&SETTING, &[phase.clone()]);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 100));
        phase.question = Question::EndOf("nobody");
        assert!(table(&SETTING, &[phase]).ends_with(" 850023             -\n"));
    }

    #[test]
    fn the_price_of_a_yield_stands_beside_the_totals() {
        let mut phase = phase("run", 1);
        phase.question = Question::YieldCost { rounds: 100 };
        let price = format!("{:>14.3}\n", phase.ns_per_yield(&SETTING).unwrap());
        let text = table(&SETTING, &[phase.clone()]);
        assert!(text.contains("  switches  ns per yield\n"), "{text}");
        assert!(text.ends_with(&price), "{text}");
        let real = Setting {
            timing: "real",
            ..SETTING
        };
        assert!(table(&real, &[phase]).ends_with(" 850023             -\n"));
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
measure         1949.499    3398.999    3399.000    1799.000      1.0837    850023
replay          3898.999    6797.999    6798.000    1799.000      2.1673   1700046
";
        let text = table(&SETTING, &[phase("measure", 1), after]);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 100));
    }
}
