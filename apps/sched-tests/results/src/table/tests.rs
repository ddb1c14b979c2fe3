use alloc::vec;

use super::*;
use crate::{COUNTED, Context};

/// A phase of two tasks, whose ends, dispatches and switches grow with `factor`.
fn phase(name: &str, factor: u64) -> PhaseLines {
    let context = Context {
        phase: name.into(),
        smp: 1,
        ..Context::default()
    };
    let task = |name: &str, finish_ns: u64, run_ns, yields| TaskLine {
        context: context.clone(),
        task: name.into(),
        submit_ns: 1_500,
        first_run_ns: 2_499,
        finish_ns: finish_ns * factor,
        turnaround_ns: finish_ns * factor - 1_500,
        run_ns,
        dispatches: yields * factor,
        yields,
        ..TaskLine::default()
    };
    PhaseLines {
        run: RunLine {
            context: context.clone(),
            timing: COUNTED.into(),
            avg_turnaround_ns: 1_949_498_500 * factor,
            max_turnaround_ns: 3_398_998_500 * factor,
            makespan_ns: 3_399_000_000 * factor,
            srpt_bound_ns: 1_799_000_000,
            context_switches: 850_023 * factor,
            jain: 0.5 / factor as f64,
            pass: true,
            ..RunLine::default()
        },
        tasks: [
            task("long", 3_399_000_000, 3_200_000_000, 8),
            task("short4", 500_000_000, 199_000_000, 500_000),
        ]
        .into(),
    }
}

/// [`phase`] with tasks that share a window, and differ in time and groups.
fn shares(name: &str, factor: u64) -> PhaseLines {
    let mut phase = phase(name, factor);
    for (i, task) in (1..).zip(&mut phase.tasks) {
        task.run_in_window_ns = Some(1_250_000_000 - factor * i * 50_000_000);
        task.groups = Some(factor * 12 / i);
    }
    phase
}

fn with(mut phase: PhaseLines, change: fn(&mut PhaseLines)) -> PhaseLines {
    change(&mut phase);
    phase
}

#[test]
fn table_of_one_phase_has_all_figures_and_of_two_shows_both() {
    let cases = [
        (vec![phase("run", 1)], "\
task, ms        submit   first run      finish  turnaround         run dispatches   yields
long             0.002       0.002    3399.000    3398.999    3200.000          8        8
short4           0.002       0.002     500.000     499.999     199.000     500000   500000

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023
"),
        // Tasks that do as much as they can, without a window and with one.
        (vec![with(phase("run", 1), |it| it.tasks[1].groups = Some(37))], "\
task, ms        submit   first run      finish  turnaround         run dispatches   yields  groups
long             0.002       0.002    3399.000    3398.999    3200.000          8        8       -
short4           0.002       0.002     500.000     499.999     199.000     500000   500000      37

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023
"),
        (vec![shares("run", 1)], "\
task, ms       first run      finish  turnaround         run   in window dispatches  groups
long               0.002    3399.000    3398.999    3200.000    1200.000          8      12
short4             0.002     500.000     499.999     199.000    1150.000     500000       6

total, ms        average         max    makespan  SRPT bound   avg/bound  switches  Jain's index
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023      0.500000
"),
        (vec![shares("measure", 1), shares("replay", 2)], "                      turnaround, ms           in window, ms            dispatches          groups
task             measure      replay     measure      replay    measure     replay measure  replay
long            3398.999    6797.999    1200.000    1150.000          8         16      12      24
short4           499.999     999.999    1150.000    1050.000     500000    1000000       6      12

total, ms        average         max    makespan  SRPT bound   avg/bound  switches  Jain's index
measure         1949.499    3398.999    3399.000    1799.000      1.0837    850023      0.500000
replay          3898.997    6797.997    6798.000    1799.000      2.1673   1700046      0.250000
"),
        // The work is the same in both phases, so it has one column.
        (vec![phase("measure", 1), with(phase("replay", 2), |it| it.tasks[1].wrong = true)], "                      turnaround, ms                 run, ms            dispatches
task             measure      replay     measure      replay    measure     replay   yields
long            3398.999    6797.999    3200.000    3200.000          8         16        8
short4           499.999     999.999     199.000     199.000     500000    1000000   500000  WRONG

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
measure         1949.499    3398.999    3399.000    1799.000      1.0837    850023
replay          3898.997    6797.997    6798.000    1799.000      2.1673   1700046
"),
        // A task that one phase lacks.
        (vec![with(phase("measure", 1), |it| _ = it.tasks.pop()), phase("replay", 2)], "                      turnaround, ms                 run, ms            dispatches
task             measure      replay     measure      replay    measure     replay   yields
long            3398.999    6797.999    3200.000    3200.000          8         16        8
short4                 -     999.999           -     199.000          -    1000000   500000

total, ms        average         max    makespan  SRPT bound   avg/bound  switches
measure         1949.499    3398.999    3399.000    1799.000      1.0837    850023
replay          3898.997    6797.997    6798.000    1799.000      2.1673   1700046
"),
        (vec![with(phase("run", 1), |it| it.run.ns_per_yield = Some(71.4286))], "\
task, ms        submit   first run      finish  turnaround         run dispatches   yields
long             0.002       0.002    3399.000    3398.999    3200.000          8        8
short4           0.002       0.002     500.000     499.999     199.000     500000   500000

total, ms        average         max    makespan  SRPT bound   avg/bound  switches  ns per yield
run             1949.499    3398.999    3399.000    1799.000      1.0837    850023        71.429
"),
    ];
    for (phases, expected) in cases {
        let text = table(&phases);
        assert_eq!(text, expected);
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}

#[test]
fn account_shows_parts_and_notes_time_outside_tasks() {
    let run = |gc_run_ns, holds_handles| {
        let mut phase = phase("run", 1);
        phase.run = RunLine {
            makespan_ns: 3_500_000_000,
            tasks_run_ns: Some(3_399_000_000),
            main_run_ns: Some(100_000),
            gc_run_ns: Some(gc_run_ns),
            rest_run_ns: Some(2_000_000),
            idle_ns: Some(47_900_000),
            holds_handles,
            ..phase.run
        };
        table(&[phase])
    };
    let of_most = "301.000       2.000      47.900         1.0714  WRONG
run: 8.7 % of the CPU time was no task's (gc 8.6 %)";
    for (gc_run_ns, holds_handles, end) in [
        (
            51_000_000,
            false,
            "
CPU time, ms       tasks        main          gc        rest        idle   sum/makespan
run             3399.000       0.100      51.000       2.000      47.900         1.0000
"
            .into(),
        ),
        (301_000_000, false, format!("{of_most}.\n")),
        (
            301_000_000,
            true,
            format!("{of_most}: main held handles of ended tasks.\n"),
        ),
    ] {
        let text = run(gc_run_ns, holds_handles);
        assert!(text.ends_with(&end), "{text}");
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }
}

#[test]
fn slow_replay_has_a_remark() {
    let replay = |slower, behind, dropped| Followed {
        measured_avg_turnaround_ns: 1_000_000,
        slower,
        behind,
        dropped,
        ..Followed::default()
    };
    let to_the_end = "PBG was behind the measured run and followed its plan to the end: average \
                      turnaround 1.051 ms, measured 1.000 (1.0510 times as long).\n";
    assert_eq!(replay(false, false, true).remark(1_051_000), None);
    let remark = |slower, behind, dropped| replay(slower, behind, dropped).remark(1_051_000);
    assert_eq!(remark(true, false, false).unwrap(), to_the_end);
    assert_eq!(remark(false, true, false).unwrap(), to_the_end);
    assert!(
        remark(true, false, true)
            .unwrap()
            .contains("and gave its plan up: ")
    );
}

#[test]
fn numbers_are_rounded_for_people() {
    let cases = [
        (0, "0.000"),
        (1_499, "0.001"),
        (1_500, "0.002"),
        (999_999_999, "1000.000"),
        (u64::MAX, "18446744073709.552"),
    ];
    for (ns, text) in cases {
        assert_eq!(ms(ns), text);
    }
    assert_eq!(
        [ratio(3, 2), ratio(0, 2), ratio(3, 0)],
        ["1.5000", "0.0000", "-"]
    );
}
