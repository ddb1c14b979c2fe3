//! The advice for recordings of the test programs, compared with the measured matrix.
//!
//! `recordings/` has what `make advise` made of each on x86_64: the recording of a kernel that
//! preempts and of one that does not (`-coop`), and the result lines of both consoles. `poll` is
//! the selftest `poll-sleep-gate`.

mod common;

use std::fs;

use common::{Lab, assert_begins, assert_has, assert_lacks};

const RESULTS: &str = "#docs/results";
const RECORDINGS: &str = "#tools/schedlab/tests/recordings";

/// Returns the command line for the recordings of a program.
fn line(app: &str) -> String {
    let app = format!("{RECORDINGS}/{app}");
    format!(
        "advise {app}.pbg --cooperative {app}-coop.pbg --metered --phases 1 \
         --costs {RESULTS}/cost.csv --results {RESULTS}/tables.csv --errors {RESULTS}/simulate.csv"
    )
}

/// Runs `schedlab advise` on the recordings and the consoles of a program.
fn advise(app: &str, more: &str) -> String {
    let [one, other] = ["", "-coop"].map(|end| format!("--console {RECORDINGS}/{app}{end}.log"));
    let ended = Lab::new().call(&format!("{} {one} {other} {more}", line(app)));
    assert_eq!(ended.code, Some(0), "{app}: {}", ended.err);
    ended.out
}

/// Returns the advice in one line, and the policy that it names, as tables call it.
fn advice(app: &str) -> (String, String) {
    let said = advise(app, "");
    assert!(said.lines().count() <= 24, "{said}");
    let fits = |line: &str| line.chars().count() <= 100;
    assert!(said.lines().all(fits), "{said}");
    let words: Vec<_> = said.split_whitespace().collect();
    (words.join(" "), taken(&said))
}

/// Returns the word after `take`.
fn taken(said: &str) -> String {
    let mut words = said.split_whitespace();
    words.find(|word| word.eq_ignore_ascii_case("take"));
    let feature = words.next().expect(said).trim_end_matches([':', ',']);
    let name = feature.strip_prefix("sched_").unwrap_or(feature);
    name.replace('_', "-")
}

/// Returns the measured mean of each policy on x86_64.
fn measured(app: &str, kind: &str, figure: &str) -> Vec<(String, f64)> {
    let tables = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/results/tables.csv");
    let csv = fs::read_to_string(tables).expect("a file");
    let rows = csv.lines().filter_map(|line| {
        let words: Vec<&str> = line.split(',').collect();
        let is_meant = words[0] == "x86_64" && words[1] == app && words[6..8] == [kind, figure];
        is_meant.then(|| (words[5].to_owned(), words[11].parse().expect("a mean")))
    });
    rows.collect()
}

/// Returns by which part the policy's figure is above the least.
fn above_least(of: &[(String, f64)], policy: &str) -> f64 {
    let least = of
        .iter()
        .map(|(_, mean)| *mean)
        .fold(f64::INFINITY, f64::min);
    let its = of.iter().find(|(name, _)| name == policy);
    its.unwrap_or_else(|| panic!("{policy}: {of:?}")).1 / least - 1.0
}

#[test]
fn advised_policy_has_the_lowest_measured_turnaround() {
    for app in ["yield", "equal", "batch", "batch-at-once", "realtime"] {
        let (said, taken) = advice(app);
        let above = above_least(&measured(app, "total", "average"), &taken);
        assert!(above < 0.005, "{taken} is {above} above the least: {said}");
        assert_has(&said, "the best without a plan");
        assert_has(&said, "replays on QEMU: ");
    }
}

#[test]
fn advised_policy_ends_first_the_task_that_ends_by_itself() {
    let (said, taken) = advice("occupy");
    let above = above_least(&measured("occupy", "task", "long"), &taken);
    assert!(above < 0.005, "{taken} is {above} above the least: {said}");
    assert_has(&said, "short1 and short2 run as long as they are let");
    assert_has(&said, "behind on QEMU");
}

#[test]
fn fairest_policy_is_advised_if_no_task_ends_by_itself() {
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
fn plan_is_not_advised_if_tasks_poll_and_its_replay_was_behind() {
    let (said, taken) = advice("poll");
    assert!(!taken.starts_with("pbg"), "{said}");
    assert_has(&said, "wait by polling");
    assert_has(
        &said,
        "PBG will not help, its replay on QEMU took 1.20 times",
    );
    // Tasks that poll have little work and end soon after the others, so the average of all tasks
    // tells about the others.
    let above = above_least(&measured("polling", "total", "average"), &taken);
    assert!(above < 0.02, "{taken} is {above} above the least: {said}");
}

/// QEMU has measured nothing there: a replay on one CPU says nothing of several.
#[test]
fn plan_is_advised_on_several_cpus_unless_tasks_poll() {
    let said = advise("batch-at-once", "--cpus 4");
    assert_begins(&said, "batch-at-once on x86_64, 4 CPUs: ");
    assert_eq!(taken(&said), "pbg-coop", "{said}");
    assert_has(&said, "on several CPUs this is not known");
    assert_lacks(&said, "on QEMU");

    let said = advise("poll", "--cpus 2");
    assert!(!taken(&said).starts_with("pbg"), "{said}");
}

#[test]
fn missing_console_is_reported_and_a_wrong_one_refused() {
    let lab = Lab::new();
    let ended = lab.call(&line("equal"));
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert_has(&ended.out, "no console of a replay");
    let lines = [
        &*format!("--console {RECORDINGS}/yield.log"),
        &format!("--console {RECORDINGS}/nowhere.log"),
        "--errors nowhere.log",
        "--cpus 65",
        "--app yield",
    ]
    .map(|more| format!("{} {more}", line("equal")));
    let lines = lines.iter().map(String::as_str).collect::<Vec<_>>();
    lab.assert_session("advise-refused.txt", &lines);
}
