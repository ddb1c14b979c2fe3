//! Consoles of traced runs become a chart.

mod common;

use common::{Lab, assert_has, assert_lacks};
use sched_tests_results::{COUNTED, Context, ResultLine, RunLine, TaskLine, TraceLine};

/// A boot with one phase: `long` has the CPU for 4 bins, then `short` for half a one.
fn console(app: &str, sched: &str, phase: &str) -> String {
    let context = Context {
        app: app.into(),
        arch: "x86_64".into(),
        smp: 1,
        sched: sched.into(),
        phase: phase.into(),
    };
    let task = |name: &str, first_run_ns: u64, finish_ns: u64, bins: &[u64]| {
        let task = TaskLine {
            context: context.clone(),
            task: name.into(),
            first_run_ns,
            finish_ns,
            turnaround_ns: finish_ns,
            run_ns: bins.iter().sum(),
            dispatches: 1,
            yields: 1,
            ..TaskLine::default()
        };
        let trace = TraceLine {
            context: context.clone(),
            task: name.into(),
            bin_ns: 1_000,
            run_ns: bins.into(),
            blocked_ns: Vec::new(),
        };
        [task.to_line(), trace.to_line()]
    };
    let run = RunLine {
        context: context.clone(),
        timing: COUNTED.into(),
        scale: 1,
        tasks: 2,
        avg_turnaround_ns: 4_250,
        max_turnaround_ns: 4_500,
        makespan_ns: 4_500,
        context_switches: 2,
        srpt_bound_ns: 2_500,
        jain: 1.0,
        traced: true,
        pass: true,
        ..RunLine::default()
    };
    let long = task("long", 0, 4_000, &[1_000; 4]);
    let short = task("short", 4_000, 4_500, &[0, 0, 0, 0, 500]);
    let lines = long.into_iter().chain(short).chain([run.to_line()]);
    let lines: Vec<_> = lines.collect();
    format!("booting\r\n{}\r\n", lines.join("\r\n"))
}

/// Returns a lab with the consoles of a run under RR, of one that was not traced, of one under PBG
/// with both phases, and of another app.
fn lab() -> Lab {
    let lab = Lab::new();
    let rr = console("realtime", "rr", "run");
    let is_kept = |line: &&str| !line.starts_with("SCHED-TRACE");
    let untraced: Vec<_> = rr.lines().filter(is_kept).collect();
    lab.write("untraced.log", &untraced.join("\n"));
    lab.write("rr.log", &rr);
    let pbg = ["measure", "replay"].map(|phase| console("realtime", "pbg", phase));
    lab.write("pbg.log", &pbg.concat());
    lab.write("yield.log", &console("yield", "rr", "run"));
    lab.write("empty.log", "");
    lab
}

#[test]
fn phases_of_all_files_are_drawn() {
    let lab = lab();
    let [one, two] = ["charts/one.svg", "charts/two.svg"].map(|chart| {
        let end = lab.call(&format!("gantt @rr.log @pbg.log --out @{chart}"));
        assert_eq!(end.code, Some(0), "{end:?}");
        assert_has(&end.out, "2 panels");
        lab.read(chart)
    });
    assert!(one.contains("RR: in turn (rr)") && one.contains("\npbg, following its plan\n"));
    assert_lacks(&one, "pbg, measuring");
    assert_eq!(one, two, "the same chart each time");
}

#[test]
fn consoles_that_do_not_fit_are_refused() {
    let lab = lab();
    lab.assert_session(
        "gantt-refused.txt",
        &[
            "gantt @untraced.log --out @a.svg",
            "gantt @empty.log --out @a.svg",
            "gantt @rr.log @yield.log --out @a.svg",
            "gantt @rr.log --out @a.jpg",
        ],
    );
    assert!(!lab.has_path("a.svg") && !lab.has_path("a.jpg"));
}
