//! Rows of published tables that are out of date are named, with the command that makes them again.
//! The program runs in `apps/realtime` of the lab, so that is where the folder `results` is.

mod common;

use common::{Ended, Lab, assert_has, assert_lacks};

/// A lab whose make tells what images were made from.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("scripts/sources.sh", "");
    lab.write("shared.rs", "1");
    lab.write("apps/realtime/results/sources.csv", "");
    lab
}

fn good(ended: Ended) -> Ended {
    assert_eq!(ended.code, Some(0), "{ended:?}");
    ended
}

/// Measures an app and publishes its rows.
fn publish(lab: &Lab, app: &str) {
    good(lab.run(&["matrix", "--app", app, "--arch", "x86_64"]));
    good(compare(lab, &["--app", app]));
}

fn compare(lab: &Lab, words: &[&str]) -> Ended {
    let mut all = vec!["compare", "--arch", "x86_64", "--out", "results"];
    all.extend(words);
    lab.run(&all)
}

/// Returns whether `stale` is content, and its lines.
fn stale(lab: &Lab) -> (bool, Vec<String>) {
    let ended = lab.run(&["stale", "results"]);
    assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    let lines = ended.out.lines().map(str::to_owned).collect();
    (ended.code == Some(0), lines)
}

fn out_of_date(app: &str, schedulers: &str) -> String {
    format!(
        "results/tables.csv: {app} on x86_64 under {schedulers}: out of date; `make matrix A={app} ARCH=x86_64 && make compare A={app} ARCH=x86_64 LAB='--out results'` makes them again"
    )
}

#[test]
fn edit_of_a_source_makes_the_rows_of_its_images_out_of_date() {
    let lab = lab();
    publish(&lab, "realtime");
    publish(&lab, "yield");
    let all_is_well = vec!["stale: 0 of 6 cells out of date".to_owned()];
    assert_eq!(stale(&lab), (true, all_is_well.clone()));
    // No image has this file.
    lab.write("scripts/lab.mk", "2");
    assert_eq!(stale(&lab), (true, all_is_well.clone()));
    let [realtime, yields] = ["realtime", "yield"].map(|app| out_of_date(app, "rr pbg stock-rr"));
    lab.write("apps/yield/src/main.rs", "2");
    let found = vec![yields.clone(), "stale: 3 of 6 cells out of date".to_owned()];
    assert_eq!(stale(&lab), (false, found));
    publish(&lab, "yield");
    assert_eq!(stale(&lab), (true, all_is_well));
    lab.write("shared.rs", "2");
    let found = vec![
        realtime,
        yields,
        "stale: 6 of 6 cells out of date".to_owned(),
    ];
    assert_eq!(stale(&lab), (false, found));
}

#[test]
fn row_made_stale_by_hand_is_named() {
    let lab = lab();
    publish(&lab, "realtime");
    let ledger = lab.read("apps/realtime/results/sources.csv");
    let line = ledger.lines().find(|line| line.contains(",pbg,")).unwrap();
    let found = |ledger: &str| {
        lab.write("apps/realtime/results/sources.csv", ledger);
        stale(&lab)
    };
    let (hash, rest) = (
        line.rsplit(',').next().unwrap(),
        ledger.replace(&format!("{line}\n"), ""),
    );
    let named = vec![
        out_of_date("realtime", "pbg"),
        "stale: 1 of 3 cells out of date".to_owned(),
    ];
    // Another hash, or none.
    let changed = line.replace(hash, "0123456789abcdef");
    assert_eq!(
        found(&ledger.replace(line, &changed)),
        (false, named.clone())
    );
    assert_eq!(found(&rest), (false, named));
    assert!(found(&ledger).0);
    // A row that was never measured.
    let tables = lab.read("apps/realtime/results/tables.csv");
    let row = tables.lines().last().unwrap().replace("stock-rr", "mlfq");
    lab.write(
        "apps/realtime/results/tables.csv",
        &format!("{tables}{row}\n"),
    );
    assert_eq!(stale(&lab).1[0], out_of_date("realtime", "mlfq"));
}

/// Its rows would be stamped with contents that the image may not have.
#[test]
fn image_whose_source_changed_while_it_was_built_is_refused() {
    let lab = lab();
    lab.behave("x86_64-realtime-sched_rr", "edited-while-built");
    let ended = lab.run(&["matrix", "--app", "realtime", "--arch", "x86_64"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let why = "shared.rs changed while the image was built: run the command again";
    assert_has(format!("{ended:?}"), why);
}

#[test]
fn another_compiler_makes_all_rows_out_of_date() {
    let lab = lab();
    publish(&lab, "realtime");
    lab.write("compiler", "another compiler");
    assert_eq!(stale(&lab).1[1], "stale: 3 of 3 cells out of date");
}

/// No row of a table may stay behind as if it were measured again.
#[test]
fn part_of_a_table_is_not_published() {
    let lab = lab();
    publish(&lab, "realtime");
    let before = lab.read("apps/realtime/results/tables.csv");
    let ended = compare(&lab, &["--app", "realtime", "--policy", "rr"]);
    assert_eq!(ended.code, Some(2), "{ended:?}");
    assert_has(&ended.err, "has rows of pbg for realtime on x86_64");
    assert_eq!(lab.read("apps/realtime/results/tables.csv"), before);
}

/// What no page shows is not added to the published files.
#[test]
fn published_figures_are_renewed_and_none_is_added() {
    let lab = lab();
    let [shown, other] = ["average-turnaround", "yield-cost"]
        .map(|name| format!("apps/realtime/results/{name}-x86_64.svg"));
    lab.write(&shown, "an old one");
    publish(&lab, "realtime");
    publish(&lab, "yield");
    assert_has(lab.read(&shown), "<svg");
    let page = "apps/realtime/results/tables.md".to_owned();
    for absent in [&other, &page] {
        assert!(!lab.exists(absent), "{absent}");
    }
}

#[test]
fn cost_of_some_policies_is_published_beside_that_of_others() {
    let lab = lab();
    lab.write("apps/cost/src/main.rs", "1");
    let cost = |policy: &str| {
        let words = [
            "cost",
            "--app",
            "apps/cost",
            "--arch",
            "x86_64",
            "--policy",
            policy,
            "--csv",
            "results/cost.csv",
        ];
        good(lab.run(&words));
    };
    cost("rr,pbg");
    lab.write("shared.rs", "2");
    assert_eq!(stale(&lab).1[1], "stale: 2 of 2 cells out of date");
    cost("rr");
    assert_eq!(
        stale(&lab).1,
        [
            "results/cost.csv: cost on x86_64 under pbg: out of date; `make cost ARCH=x86_64 FEATURES=sched_pbg LAB='--csv results/cost.csv'` makes them again",
            "stale: 1 of 2 cells out of date",
        ]
    );
    assert_has(lab.read("apps/realtime/results/cost.csv"), "pbg replay");
}

#[test]
fn rows_of_real_time_count_for_a_release_only() {
    let lab = lab();
    good(lab.run(&[
        "matrix", "--app", "realtime", "--arch", "x86_64", "--smp", "2",
    ]));
    let words = [
        "compare",
        "--app",
        "realtime",
        "--arch",
        "x86_64",
        "--smp",
        "2",
        "--totals",
        "results/four-cpus.csv",
    ];
    good(lab.run(&words));
    assert_lacks(lab.read("apps/realtime/results/four-cpus.csv"), ",task,");
    assert!(stale(&lab).0);
    lab.write("shared.rs", "2");
    let (is_content, lines) = stale(&lab);
    assert!(is_content);
    assert_eq!(
        lines[1],
        "stale: 0 of 3 cells out of date; 3 more of real time, which count for a release"
    );
    let release = lab.run(&["stale", "results", "--release"]);
    assert_eq!(release.code, Some(1), "{release:?}");
}
