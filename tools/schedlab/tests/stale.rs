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

/// A lab in which each image has a file of RR and one of PBG.
fn with_policies() -> Lab {
    let lab = lab();
    let manifest = "[features]\nsched_rr = []\nsched_pbg = []\n";
    lab.write("apps/sched-tests/common/Cargo.toml", manifest);
    lab.write("modules/sched-policies/src/rr.rs", "1");
    lab.write("modules/pbg/src/plan.rs", "1");
    lab
}

/// Measures a part of a table and publishes its rows.
fn publish_again(lab: &Lab, policies: &str) {
    let cells = format!("--app realtime --arch x86_64 --policy {policies}");
    lab.good(&format!("matrix {cells}"));
    lab.good(&format!("compare {cells} --out results"));
}

/// PBG measures under RR.
#[test]
fn source_of_one_policy_makes_the_rows_that_use_it_out_of_date() {
    let lab = with_policies();
    publish(&lab, "realtime");
    lab.shows("stale results");
    lab.write("modules/pbg/src/plan.rs", "2");
    lab.shows("stale results");
    publish_again(&lab, "pbg");
    lab.shows("stale results");
    lab.write("modules/sched-policies/src/rr.rs", "2");
    lab.shows("stale results");
    publish_again(&lab, "rr,pbg");
    lab.shows("stale results");
    lab.matches("stale/policies");
}

#[test]
fn new_rows_of_a_table_stand_beside_those_that_are_up_to_date() {
    let lab = with_policies();
    let tables = format!("{RESULTS}/tables.csv");
    let chart = format!("{RESULTS}/average-turnaround-x86_64.svg");
    lab.write(&chart, "an old one");
    publish(&lab, "realtime");
    let (before, drawn) = (lab.read(&tables), lab.read(&chart));
    // Results of the others are gone, as in another clone.
    for policy in ["sched_rr", "stock_rr"] {
        lab.remove(&format!("target/lab/x86_64/realtime/{policy}.jsonl"));
    }
    lab.good("compare --app realtime --arch x86_64 --out results");
    assert_eq!(lab.read(&tables), before);
    assert_eq!(lab.read(&chart), drawn);
    lab.write("modules/pbg/src/plan.rs", "2");
    lab.behave("x86_64-realtime-sched_pbg", "measured-later");
    publish_again(&lab, "pbg");
    let after = lab.read(&tables);
    let [old, new] = [&before, &after].map(|text| text.lines().collect::<Vec<_>>());
    assert_eq!(old.len(), new.len());
    for (old, new) in old.iter().zip(&new).filter(|(old, new)| old != new) {
        assert!(old.contains(",pbg,") && new.contains(",pbg,"), "{new}");
    }
    assert_has(&after, ",pbg,total,average,ms,1.500,");
    assert_has(lab.read(&chart), "stock-rr");
}

/// No row of a table may stay behind as if it were up to date.
#[test]
fn row_that_is_out_of_date_does_not_stay_in_a_table() {
    let lab = lab();
    publish(&lab, "realtime");
    lab.write("shared.rs", "2");
    let before = lab.read(&format!("{RESULTS}/tables.csv"));
    lab.good("matrix --app realtime --arch x86_64 --policy rr");
    let end = lab.call("compare --app realtime --arch x86_64 --policy rr --out results");
    assert_eq!(end.code, Some(2), "{end:?}");
    assert_has(&end.err, "has rows of pbg for realtime on x86_64");
    assert_eq!(lab.read(&format!("{RESULTS}/tables.csv")), before);
}

/// Its row would not be out of date after a change of that file.
#[test]
fn image_with_code_that_its_row_leaves_out_is_refused() {
    let lab = with_policies();
    lab.write("program", "..._RNvMNtCs1_3pbg4planNtB2_4Plan3new...");
    lab.good("matrix --app realtime --arch x86_64 --policy pbg");
    let end = lab.call("matrix --app realtime --arch x86_64 --policy rr");
    assert_eq!(end.code, Some(1), "{end:?}");
    assert_has(
        &end.out,
        "the image of rr has code of modules/pbg/src/plan.rs",
    );
}

/// Two makes may build the same program with other policies, in the same place.
#[test]
fn program_that_another_build_has_replaced_is_built_again() {
    let lab = with_policies();
    lab.write("program", "..._RNvMNtCs1_3pbg4planNtB2_4Plan3new...");
    lab.behave("x86_64-realtime-sched_rr", "replaced");
    lab.good("matrix --app realtime --arch x86_64 --policy rr");
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
