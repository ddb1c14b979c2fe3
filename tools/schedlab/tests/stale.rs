//! Rows of published tables that are out of date are named, with the command that makes them
//! again.
//!
//! The program runs in `apps/realtime` of the lab, so that is where the folder `results` is.

mod common;

use common::{Lab, assert_has, assert_lacks};

const RESULTS: &str = "apps/realtime/results";

/// A lab whose make tells what images were made from.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("scripts/sources.sh", "");
    lab.write("shared.rs", "1");
    lab.write(&format!("{RESULTS}/sources.csv"), "");
    lab
}

/// Measures an app and publishes its rows.
fn publish(lab: &Lab, app: &str) {
    lab.good(&format!("matrix --app {app} --arch x86_64"));
    lab.good(&format!("compare --app {app} --arch x86_64 --out results"));
}

#[test]
fn change_of_a_source_makes_the_rows_of_its_images_out_of_date() {
    let lab = lab();
    publish(&lab, "realtime");
    publish(&lab, "yield");
    lab.shows("stale results");
    // No image has this file.
    lab.write("scripts/lab.mk", "2");
    lab.shows("stale results");
    lab.write("apps/yield/src/main.rs", "2");
    lab.shows("stale results");
    publish(&lab, "yield");
    lab.shows("stale results");
    lab.write("shared.rs", "2");
    lab.shows("stale results");
    publish(&lab, "yield");
    publish(&lab, "realtime");
    lab.shows("stale results");
    lab.write("compiler", "another compiler");
    lab.shows("stale results");
    lab.matches("stale/sources");
}

#[test]
fn row_without_its_stamp_is_out_of_date() {
    let lab = lab();
    publish(&lab, "realtime");
    let path = format!("{RESULTS}/sources.csv");
    let ledger = lab.read(&path);
    let mut lines = ledger.lines();
    let line = lines.find(|line| line.contains(",pbg,")).expect("a line");
    let (before, _) = line.rsplit_once(',').expect("a hash");
    let other = format!("{before},0123456789abcdef\n");
    let line = format!("{line}\n");
    for text in [ledger.replace(&line, &other), ledger.replace(&line, "")] {
        lab.write(&path, &text);
        lab.shows("stale results");
    }
    lab.write(&path, &ledger);
    lab.shows("stale results");
    // A row that was never measured.
    let tables = lab.read(&format!("{RESULTS}/tables.csv"));
    let row = tables
        .lines()
        .last()
        .expect("a row")
        .replace("stock-rr", "mlfq");
    lab.write(
        &format!("{RESULTS}/tables.csv"),
        &format!("{tables}{row}\n"),
    );
    lab.shows("stale results");
    lab.matches("stale/stamps");
}

/// Its rows would have the stamp of contents that the image may not have.
#[test]
fn image_whose_source_changed_while_it_was_built_is_refused() {
    let lab = lab();
    lab.behave("x86_64-realtime-sched_rr", "edited-while-built");
    let end = lab.call("matrix --app realtime --arch x86_64");
    assert_eq!(end.code, Some(1), "{end:?}");
    let why = "shared.rs changed while the image was built: run the command again";
    assert_has(&end.out, why);
}

/// No row of a table may stay behind as if it were measured again.
#[test]
fn part_of_a_table_is_not_published() {
    let lab = lab();
    publish(&lab, "realtime");
    let before = lab.read(&format!("{RESULTS}/tables.csv"));
    let end = lab.call("compare --app realtime --arch x86_64 --policy rr --out results");
    assert_eq!(end.code, Some(2), "{end:?}");
    assert_has(&end.err, "has rows of pbg for realtime on x86_64");
    assert_eq!(lab.read(&format!("{RESULTS}/tables.csv")), before);
}

/// A file that no page shows is not added to the published ones.
#[test]
fn published_figures_are_renewed_and_none_is_added() {
    let lab = lab();
    let [shown, other] =
        ["average-turnaround", "yield-cost"].map(|name| format!("{RESULTS}/{name}-x86_64.svg"));
    lab.write(&shown, "an old one");
    publish(&lab, "realtime");
    publish(&lab, "yield");
    assert_has(lab.read(&shown), "<svg");
    assert!(!lab.has_path(&other) && !lab.has_path(&format!("{RESULTS}/tables.md")));
}

#[test]
fn cost_of_some_policies_is_published_beside_that_of_others() {
    let lab = lab();
    lab.write("apps/cost/src/main.rs", "1");
    let cost = "cost --app apps/cost --arch x86_64 --csv results/cost.csv --policy";
    lab.good(&format!("{cost} rr,pbg"));
    lab.write("shared.rs", "2");
    lab.shows("stale results");
    lab.good(&format!("{cost} rr"));
    lab.shows("stale results");
    lab.matches("stale/cost");
    assert_has(lab.read(&format!("{RESULTS}/cost.csv")), "pbg replay");
}

#[test]
fn rows_of_real_time_count_for_a_release_only() {
    let lab = lab();
    let cells = "--app realtime --arch x86_64 --smp 2";
    lab.good(&format!("matrix {cells}"));
    lab.good(&format!("compare {cells} --totals results/four-cpus.csv"));
    assert_lacks(lab.read(&format!("{RESULTS}/four-cpus.csv")), ",task,");
    lab.shows("stale results");
    lab.write("shared.rs", "2");
    lab.shows("stale results");
    lab.shows("stale results --release");
    lab.matches("stale/real-time");
}
