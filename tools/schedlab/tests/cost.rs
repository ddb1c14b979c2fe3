//! The cost of a yield and its gate, by a make that only pretends.

mod common;

use common::{Lab, assert_has};

/// Returns a project with stock policies of both kinds. A yield costs 200 instructions in each
/// but PBG.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("policies", "sched_rr sched_pbg stock_fifo stock_rr\n");
    lab
}

#[test]
fn table_and_files_have_a_line_for_each_phase() {
    let lab = lab();
    lab.shows("cost --jobs=1 --policy=sched_pbg,stock_rr --phases=2");
    lab.shows_file("target/cost/cost.csv");
    lab.shows_file("target/cost/table.md");
    lab.shows_file("target/cost/x86_64-sched_pbg.txt");
    lab.matches("cost/tables");
    assert_eq!((lab.calls("build"), lab.calls("lab-boot")), (4, 8));
    let calls = lab.read("calls");
    assert_has(&calls, "lab-boot x86_64-cost-stock_rr 1 1 icount  at 500");
}

#[test]
fn failed_cell_leaves_no_table() {
    let lab = lab();
    for what in ["panic", "not-passed", "no-build", "other-policy"] {
        lab.behave("x86_64-cost-stock_rr", what);
        lab.shows("cost --policy=stock_rr --arch=x86_64");
    }
    lab.matches("cost/failed");
    assert!(!lab.has_path("target/cost/cost.csv"));
}

#[test]
fn gate_compares_with_the_committed_figures() {
    let lab = lab();
    let gate = |more: &str| {
        lab.shows(&format!(
            "cost --jobs=1 --arch=x86_64 --gate @gate.csv {more}"
        ));
    };
    gate("");
    assert_eq!(lab.calls("build"), 0);
    gate("--update");
    lab.shows_file("gate.csv");
    gate("");
    assert_has(
        lab.read("calls"),
        "lab-boot x86_64-cost-sched_rr 1 8 icount",
    );
    lab.behave("x86_64-cost-sched_rr", "costs-201.0");
    gate("--policy=sched_rr");
    lab.behave("x86_64-cost-sched_rr", "costs-199.0");
    gate("--policy=sched_rr");
    // Only an update writes, and the lines of the other policies stay.
    lab.shows_file("gate.csv");
    gate("--policy=sched_rr --update");
    lab.shows_file("gate.csv");
    lab.matches("cost/gate");
}

#[test]
fn gate_compares_the_ratio_to_stock_under_another_compiler() {
    let lab = lab();
    lab.good("cost --arch=x86_64 --gate @gate.csv --update");
    lab.write("compiler", "a better compiler\n");
    let gate = |cost: &str, more: &str| {
        lab.behave("x86_64-cost-sched_rr", cost);
        lab.shows(&format!(
            "cost --jobs=1 --arch=x86_64 --gate @gate.csv {more}"
        ));
    };
    for policy in ["stock_rr", "stock_fifo"] {
        lab.behave(&format!("x86_64-cost-{policy}"), "costs-180.0");
    }
    gate("costs-180.0", "--policy=sched_rr");
    gate("costs-182.0", "--policy=sched_rr");
    // All lines of an architecture name one compiler: an update of some is refused before a build.
    let builds = lab.calls("build");
    gate("costs-182.0", "--policy=sched_rr --update");
    assert_eq!(lab.calls("build"), builds);
    gate("costs-182.0", "--update");
    lab.shows_file("gate.csv");
    lab.matches("cost/gate-of-another-compiler");
}
