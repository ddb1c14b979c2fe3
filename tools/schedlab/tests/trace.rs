//! `schedlab trace` of a recording: the files, the report, and what is refused.

mod common;

use std::fs;

use common::{Ended, Lab, assert_begins, assert_has, assert_lacks};

/// The committed recording of batch, with the committed costs.
const BATCH: &str = "#modules/axsched-ext/tests/data/batch-x86_64.pbg --scale 10 \
     --costs #docs/results/cost.csv --results #docs/results/tables.csv";

/// Runs `schedlab trace` on that recording.
fn trace(lab: &Lab, line: &str) -> Ended {
    lab.call(&format!("trace {BATCH} {line}"))
}

#[test]
fn each_policy_and_number_of_cpus_has_a_file() {
    let lab = Lab::new();
    let out = lab.path("traces");
    let cells = "--policy rr,pbg --cpus 1,4";
    let runs = [(); 2].map(|()| trace(&lab, &format!("{cells} --out @traces")));
    assert_eq!((runs[0].code, runs[0].err.as_str()), (Some(0), ""));
    assert_eq!(runs[0].out, runs[1].out);
    let written = |line: &&str| line.starts_with("written: ");
    assert_eq!(runs[0].out.lines().filter(written).count(), 4);
    for (name, title) in [
        ("cpus1-rr", "rr on 1 CPU"),
        ("cpus1-pbg", "pbg, replay, on 1 CPU"),
        ("cpus4-rr", "rr on 4 CPUs"),
        ("cpus4-pbg", "pbg, replay, on 4 CPUs"),
    ] {
        let file = |ending| out.join(format!("batch-x86_64-scale10-{name}-model.{ending}"));
        let trace = fs::read(file("perfetto-trace")).expect("a trace");
        let said = format!("{} bytes; open it", trace.len());
        assert_has(&runs[0].out, &said);
        let lines = fs::read_to_string(file("log")).expect("result lines");
        assert_has(&lines, "\"timing\":\"model\"");
        let title = format!("batch under {title} (model)");
        let out = &runs[0].out;
        assert!(out.lines().any(|line| line == title), "{title}: {out}");
    }
}

/// CPUs that share the work are hardly ever idle while a task is ready.
#[test]
fn cpus_share_the_work_unless_they_are_told_not_to() {
    let lab = Lab::new();
    let idle_beside = |balance: &str, title: &str| {
        let cell = format!("--policy rr,pbg --cpus 4 --balance {balance}");
        let ended = trace(&lab, &cell);
        let of_run = ended.out.split_once(title).expect(title).1;
        let ms = of_run.split_once("idle while a task was ready for ");
        let ms = ms.and_then(|(_, rest)| rest.split_once(" ms"));
        ms.expect("a sum").0.parse::<f64>().expect("a number")
    };
    for (title, alone) in [
        ("rr on 4 CPUs", "rr on 4 CPUs, which share nothing (model)"),
        (
            "pbg, replay, on 4 CPUs",
            "pbg (no plan) on 4 CPUs, which share nothing (model)",
        ),
    ] {
        let [shared, alone] = [idle_beside("y", title), idle_beside("n", alone)];
        assert!(10.0 * shared <= alone, "{title}: {shared} of {alone} ms");
    }
    let out = lab.path("traces");
    let cell = "--policy rr --cpus 1,4 --balance n --out @traces";
    trace(&lab, cell);
    for name in ["cpus1-rr", "cpus4-rr-unbalanced"] {
        let file = format!("batch-x86_64-scale10-{name}-model.perfetto-trace");
        assert!(out.join(&file).exists(), "{file}");
    }
}

#[test]
fn one_run_may_go_into_one_file_with_a_picture() {
    let lab = Lab::new();
    let [file, chart] = ["one.perfetto-trace", "one.svg"].map(|name| lab.path(name));
    let run = "--policy rr --cpus 4 --tick-phase 500 --out @one.perfetto-trace";
    let ended = trace(&lab, &format!("{run} --picture @one.svg"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(file.exists());
    let drawn = fs::read_to_string(&chart).expect("a chart");
    assert_has(&drawn, "4 CPUs, model, scale 10");
    assert_lacks(&drawn, "takes some time");
}

#[test]
fn events_that_a_full_log_lost_are_counted_and_reported() {
    let lab = Lab::new();
    let few = "--policy rr --cpus 4 --most 200";
    let ended = trace(&lab, &format!("{few} --out @few.perfetto-trace"));
    assert_eq!(ended.code, Some(0));
    let said = "batch under rr on 4 CPUs (model): the model's log was full; ";
    assert_begins(&ended.err, said);
    assert_has(&ended.out, &ended.err);
}

/// A file that is no recording is read as a console, which has no policies to choose from.
#[test]
fn files_and_options_that_do_not_fit_are_refused() {
    let lab = Lab::new();
    lab.write("boot.log", "a console without result lines\n");
    let refused = [
        "--policy rr,cfs --out @a.perfetto-trace",
        "--policy lottery --out @a.perfetto-trace",
        "--policy rr --cpus 1,2 --out traces --picture a.svg",
        "--policy rr --out @a.perfetto-trace --picture a.png",
        "--policy rr --out @a.perfetto-trace --app yield",
    ];
    let recordings = refused.map(|words| format!("trace {BATCH} {words}"));
    let consoles = [
        "trace @boot.log",
        "trace @boot.log --policy rr",
        "trace @boot.log --cpus 4",
        "trace none.log",
    ];
    let recordings = recordings.iter().map(String::as_str);
    let all: Vec<_> = recordings.chain(consoles).collect();
    lab.assert_session("trace-refused.txt", &all);
    assert!(!lab.has_path("a.perfetto-trace"));
}
