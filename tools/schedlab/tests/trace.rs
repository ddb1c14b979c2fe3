//! Each switch of a recording that is played: where the files go, what is said, what is refused.

mod common;

use std::fs;

use common::{Ended, Lab, assert_begins, assert_has, assert_lacks};

/// Calls `goal` for the committed recording of batch, with the committed costs.
fn call(lab: &Lab, goal: &str, line: &str) -> Ended {
    let recording = "#modules/axsched-ext/tests/data/batch-x86_64.pbg --scale 10";
    let costs = "--costs #docs/results/cost.csv --results #docs/results/tables.csv";
    lab.call(&format!("{goal} {recording} {costs} {line}"))
}

#[test]
fn of_each_policy_and_number_of_cpus_there_is_a_file() {
    let lab = Lab::new();
    let out = lab.path("traces");
    let cells = "--policy rr,pbg --cpus 1,4";
    let runs = [(); 2].map(|()| call(&lab, "trace", &format!("{cells} --out @traces")));
    assert_eq!((runs[0].code, runs[0].err.as_str()), (Some(0), ""));
    assert_eq!(runs[0].out, runs[1].out);
    let written = |line: &&str| line.starts_with("written: ");
    assert_eq!(runs[0].out.lines().filter(written).count(), 4);
    for name in ["cpus1-rr", "cpus1-pbg", "cpus4-rr", "cpus4-pbg"] {
        let file = |ending| out.join(format!("batch-x86_64-scale10-{name}-model.{ending}"));
        let trace = fs::read(file("perfetto-trace")).expect("a trace");
        let said = format!("{} bytes; open it", trace.len());
        assert_has(&runs[0].out, &said);
        let lines = fs::read_to_string(file("log")).expect("result lines");
        assert_has(&lines, "\"timing\":\"model\"");
    }
    for name in [
        "rr on 1 CPU",
        "pbg, replay, on 1 CPU",
        "rr on 4 CPUs",
        "pbg, replay, on 4 CPUs",
    ] {
        let title = format!("batch under {name} (model)");
        assert!(
            runs[0].out.lines().any(|line| line == title),
            "{title}: {}",
            runs[0].out
        );
    }
}

/// Where they share the work hardly any time is left in which a CPU idles beside a ready task.
#[test]
fn cpus_share_the_work_unless_they_are_told_not_to() {
    let lab = Lab::new();
    let idle_beside = |balance: &str, title: &str| {
        let cell = format!("--policy rr,pbg --cpus 4 --balance {balance}");
        let ended = call(&lab, "trace", &cell);
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
    call(&lab, "trace", cell);
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
    let ended = call(&lab, "trace", &format!("{run} --picture @one.svg"));
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    assert!(file.exists());
    let drawn = fs::read_to_string(&chart).expect("a chart");
    assert_has(&drawn, "4 CPUs, model, scale 10");
    assert_lacks(&drawn, "takes some time");
}

#[test]
fn what_a_log_has_no_room_for_is_counted_and_said() {
    let lab = Lab::new();
    let few = "--policy rr --cpus 4 --most 200";
    let said = "batch under rr on 4 CPUs (model): the model's log was full; ";
    let ended = call(&lab, "trace", &format!("{few} --out @few.perfetto-trace"));
    assert_eq!(ended.code, Some(0));
    assert_begins(&ended.err, said);
    assert_has(&ended.out, said);
    let lost = |text: &str| {
        text.split_once("; ")
            .expect("a count")
            .1
            .split(' ')
            .next()
            .map(str::to_owned)
    };
    let of_table = ended
        .out
        .lines()
        .find(|line| line.starts_with(said))
        .expect("a line");
    assert_eq!(lost(&ended.err), lost(of_table));
}

#[test]
fn what_cannot_be_is_refused_in_one_line() {
    let lab = Lab::new();
    let file = lab.path("a.perfetto-trace");
    for (arguments, words) in [
        (
            "--policy rr,cfs --out @a.perfetto-trace",
            "one file for 2 runs; expected a folder",
        ),
        (
            "--policy lottery --out @a.perfetto-trace",
            "--policy lottery: expected some of",
        ),
        (
            "--policy rr --cpus 1,2 --out traces --picture a.svg",
            "--picture a.svg: several numbers of CPUs; expected one",
        ),
        (
            "--policy rr --out @a.perfetto-trace --picture a.png",
            "a.png: expected a name that ends in .svg",
        ),
        (
            "--policy rr --out @a.perfetto-trace --app yield",
            "expected a recording of yield",
        ),
    ] {
        let ended = call(&lab, "trace", arguments);
        assert_eq!(ended.code, Some(2), "{words}");
        assert_has(&ended.err, words);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
        assert!(!file.exists());
    }
}

/// What is no recording is read as a console, which has no policies to choose from.
#[test]
fn a_console_is_of_one_run_and_says_what_it_lacks() {
    let lab = Lab::new();
    lab.write("boot.log", "a console without result lines\n");
    for (words, reason) in [
        ("trace @boot.log", "SCHED-RUN"),
        (
            "trace @boot.log --policy rr",
            "expected a recording with --policy or --cpus, found a console",
        ),
        ("trace @boot.log --cpus 4", "found a console"),
        ("trace none.log", "No such file"),
    ] {
        let ended = lab.call(words);
        assert_eq!(ended.code, Some(2), "{words:?}");
        assert!(ended.err.contains(reason), "{words:?}: {}", ended.err);
        assert_eq!(ended.err.lines().count(), 1, "{}", ended.err);
    }
}
