//! What is advised of recordings of the test programs, beside the matrix that was measured.
//!
//! `recordings/` has what `make advise` made of each on x86_64: the recording of a kernel that
//! preempts and of one that does not (`-coop`), and the result lines of both consoles. `poll` is
//! the selftest `poll-sleep-gate`.

mod common;

use std::{fs, path::PathBuf};

use common::{Ended, Lab, assert_begins, assert_has, assert_lacks};

fn folder(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

fn text(path: PathBuf) -> String {
    path.to_str().expect("text").to_owned()
}

/// Runs `schedlab advise` on the recordings of a program, with these words after it.
fn advise(app: &str, with_consoles: bool, more: &[&str]) -> Ended {
    let recording = |end: &str| text(folder("tests/recordings").join(format!("{app}{end}")));
    let results = |name: &str| text(folder("../../docs/results").join(name));
    let mut words = vec!["advise".to_owned(), recording(".pbg")];
    words.extend(["--cooperative".to_owned(), recording("-coop.pbg")]);
    for (option, name) in [
        ("--costs", "cost.csv"),
        ("--results", "tables.csv"),
        ("--errors", "simulate.csv"),
    ] {
        words.extend([option.to_owned(), results(name)]);
    }
    words.extend(["--metered", "--phases", "1"].map(str::to_owned));
    if with_consoles {
        for end in [".log", "-coop.log"] {
            words.extend(["--console".to_owned(), recording(end)]);
        }
    }
    words.extend(more.iter().map(|word| (*word).to_owned()));
    Lab::new().run(&words.iter().map(String::as_str).collect::<Vec<_>>())
}

/// All that is said, and the policy that is to be taken, as tables call it.
fn advice(app: &str) -> (String, String) {
    let ended = advise(app, true, &[]);
    assert_eq!(ended.code, Some(0), "{app}: {}", ended.err);
    let said = ended.out;
    assert!(said.lines().count() <= 24, "{said}");
    assert!(
        said.lines().all(|line| line.chars().count() <= 100),
        "{said}"
    );
    (
        said.split_whitespace().collect::<Vec<_>>().join(" "),
        taken(&said),
    )
}

/// What follows the word take.
fn taken(said: &str) -> String {
    let words: Vec<&str> = said.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| matches!(*word, "Take" | "take"));
    let feature = words[at.expect(said) + 1].trim_end_matches([':', ',']);
    let name = feature.strip_prefix("sched_").unwrap_or(feature);
    name.replace('_', "-")
}

/// What was measured of each policy on x86_64: `(policy, mean)`.
fn measured(app: &str, kind: &str, figure: &str) -> Vec<(String, f64)> {
    let csv = fs::read_to_string(folder("../../docs/results/tables.csv")).expect("a file");
    let rows = csv.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(',').collect();
        let is_meant = words[0] == "x86_64" && words[1] == app && words[6..8] == [kind, figure];
        is_meant.then(|| (words[5].to_owned(), words[11].parse().expect("a mean")))
    });
    rows.collect()
}

/// How much more the policy has than the one with least, in parts of it.
fn above_least(of: &[(String, f64)], policy: &str) -> f64 {
    let least = of
        .iter()
        .map(|(_, mean)| *mean)
        .fold(f64::INFINITY, f64::min);
    let its = of.iter().find(|(name, _)| name == policy);
    its.unwrap_or_else(|| panic!("{policy}: {of:?}")).1 / least - 1.0
}

#[test]
fn what_is_advised_has_the_lowest_turnaround_that_was_measured() {
    for app in ["yield", "equal", "batch", "batch-at-once", "realtime"] {
        let (said, taken) = advice(app);
        let above = above_least(&measured(app, "total", "average"), &taken);
        assert!(above < 0.005, "{taken} is {above} above the least: {said}");
        assert_has(&said, "the best without a plan");
        assert_has(&said, "replays on QEMU: ");
    }
}

#[test]
fn among_tasks_that_never_end_the_other_is_done_soonest() {
    let (said, taken) = advice("occupy");
    let above = above_least(&measured("occupy", "task", "long"), &taken);
    assert!(above < 0.005, "{taken} is {above} above the least: {said}");
    assert_has(&said, "short1 and short2 run as long as they are let");
    assert_has(&said, "behind on QEMU");
}

#[test]
fn where_all_run_as_long_as_they_are_let_the_fairest_is_taken() {
    let (said, taken) = advice("unequal");
    // Jain's index over the CPU time.
    let fair = measured("unequal", "total", "Jain");
    let unfair: Vec<_> = fair
        .into_iter()
        .map(|(name, jain)| (name, 1.0 / jain))
        .collect();
    let above = above_least(&unfair, &taken);
    assert!(above < 0.001, "{taken} is {above} above the least: {said}");
    assert_has(&said, "All 4 tasks run as long as they are let (task");
    assert_has(&said, "25.0 % is fair");
}

#[test]
fn where_tasks_poll_and_the_replay_was_behind_pbg_will_not_help() {
    let (said, taken) = advice("poll");
    assert!(!taken.starts_with("pbg"), "{said}");
    assert_has(&said, "wait by polling");
    assert_has(
        &said,
        "PBG will not help, its replay on QEMU took 1.20 times",
    );
    // What polls has little to do, so the average is the others' and when those were done.
    let above = above_least(&measured("polling", "total", "average"), &taken);
    assert!(above < 0.02, "{taken} is {above} above the least: {said}");
}

#[test]
fn without_a_console_that_is_said() {
    let ended = advise("equal", false, &[]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_has(&ended.out, "no console of a replay");
}

/// QEMU has measured nothing there: what a replay on one CPU took says nothing of several.
#[test]
fn on_several_cpus_a_plan_is_weighed_and_where_tasks_poll_it_is_not_known() {
    let ended = advise("batch-at-once", true, &["--cpus", "4"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let said = &ended.out;
    assert_begins(said, "batch-at-once on x86_64, 4 CPUs: ");
    assert_eq!(taken(said), "pbg-coop", "{said}");
    assert_has(said, "on several nobody knows");
    assert_lacks(said, "on QEMU");

    let ended = advise("poll", true, &["--cpus", "2"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let said = &ended.out;
    assert!(!taken(said).starts_with("pbg"), "{said}");
}

#[test]
fn what_does_not_fit_is_refused_in_a_line() {
    let other = text(folder("tests/recordings/yield.log"));
    let nowhere = text(folder("tests/recordings/nowhere.log"));
    for (more, part) in [
        (
            ["--console", other.as_str()],
            "--console: expected one of equal, found one of yield",
        ),
        (["--console", nowhere.as_str()], "nowhere.log: "),
        (
            ["--errors", nowhere.as_str()],
            "cannot be used multiple times",
        ),
        (["--cpus", "65"], "65 is not in 1..=64"),
        (
            ["--app", "yield"],
            "expected a recording of yield at scale 1",
        ),
    ] {
        let ended = advise("equal", false, &more);
        assert_eq!(ended.code, Some(2), "{more:?}: {}", ended.err);
        assert!(ended.err.contains(part), "{more:?}: {}", ended.err);
    }
}
