//! Consoles of traced runs become a chart.

mod common;

use common::{Ended, Lab, assert_has, assert_lacks};
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

fn gantt(files: &[(&str, String)], out: &str) -> (Lab, Ended) {
    let lab = Lab::new();
    let mut words = vec!["gantt".to_owned()];
    for (name, text) in files {
        lab.write(name, text);
        words.push(lab.path(name).display().to_string());
    }
    words.extend(["--out".to_owned(), lab.path(out).display().to_string()]);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let end = lab.run(&words);
    (lab, end)
}

#[test]
fn the_phases_of_all_files_are_drawn() {
    let files = [
        ("rr.log", console("realtime", "rr", "run")),
        (
            "pbg.log",
            console("realtime", "pbg", "measure") + &console("realtime", "pbg", "replay"),
        ),
    ];
    let (lab, end) = gantt(&files, "charts/a.svg");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_has(&end.out, "2 panels");
    let svg = lab.read("charts/a.svg");
    assert!(svg.contains("RR: in turn (rr)") && svg.contains("\npbg, following its plan\n"));
    assert_lacks(&svg, "pbg, measuring");
    let (lab, _) = gantt(&files, "charts/a.svg");
    let again = lab.read("charts/a.svg");
    assert_eq!(svg, again, "the same chart each time");
}

#[test]
fn what_cannot_be_drawn_is_said_in_one_line() {
    let good = console("realtime", "rr", "run");
    let untraced: String = good
        .lines()
        .filter(|line| !line.starts_with("SCHED-TRACE"))
        .map(|line| format!("{line}\n"))
        .collect();
    for (files, out, said) in [
        (
            vec![("a.log", untraced)],
            "a.svg",
            "a.log: 4: expected a SCHED-TRACE line for task `long`",
        ),
        (
            vec![("a.log", String::new())],
            "a.svg",
            "a.log: 1: expected a SCHED-RUN line, found none",
        ),
        (
            vec![
                ("a.log", good.clone()),
                ("b.log", console("yield", "rr", "run")),
            ],
            "a.svg",
            "b.log: expected realtime on x86_64, SMP=1 TIMING=icount SCALE=1, as in the first file, found yield",
        ),
        (
            vec![("a.log", good.clone())],
            "a.jpg",
            "expected a name that ends in .svg",
        ),
    ] {
        let (lab, end) = gantt(&files, out);
        assert_eq!(end.code, Some(2), "{end:?}");
        assert_has(&end.err, said);
        assert_eq!(end.err.lines().count(), 1, "{end:?}");
        assert!(!lab.exists(out));
    }
}
