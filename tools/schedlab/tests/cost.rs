//! What a yield costs, and the gate, by a make that only pretends.

mod common;

use common::{Ended, Lab, assert_begins, assert_ends, assert_has, assert_lacks};

const GATE: &str = "docs/gate.csv";

/// A project with stock policies of both kinds, where a yield costs 200 but in PBG.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.write("policies", "sched_rr sched_pbg stock_fifo stock_rr\n");
    lab
}

/// The gate, as make calls it.
fn gate(lab: &Lab, more: &[&str]) -> Ended {
    let path = lab.path(GATE);
    let path = path.to_str().expect("text");
    lab.run(&[&["cost", "--arch=x86_64", "--gate", path], more].concat())
}

#[test]
fn the_table_has_a_line_for_each_phase_and_so_have_the_files() {
    let lab = lab();
    let end = lab.run(&["cost", "--policy=sched_pbg,stock_rr", "--phases=2"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let table = "\
x86_64: instructions per yield, by the number of tasks

 scheduler        4     256
----------------------------
 pbg idle     197.0   197.0
 pbg replay   139.0   139.0
 stock-rr     200.0   200.0

riscv64: ";
    assert_begins(&end.out, table);
    let csv = lab.read("target/cost/cost.csv");
    assert_eq!(csv.lines().count(), 1 + 2 * 6, "{csv}");
    let line = "riscv64,1,icount,1,pbg replay,256,instructions,139.0,139.0,139.0,139.0,2\n";
    assert_has(&csv, line);
    assert_has(
        lab.read("target/cost/table.md"),
        "\n| pbg replay | 139.0 | 139.0 |\n",
    );
    let lines = lab.read("target/cost/x86_64-sched_pbg.txt");
    assert_eq!(lines.lines().count(), 12, "{lines}");
    assert!(
        !lines.contains('\r') && !lines.contains("booting"),
        "{lines}"
    );
    assert_eq!((lab.calls("build"), lab.calls("lab-boot")), (4, 8));
    let calls = lab.read("calls");
    assert_has(&calls, "lab-boot x86_64-cost-stock_rr 1 1 icount  at 500");
}

#[test]
fn a_cell_that_fails_leaves_no_table() {
    for (what, expected) in [
        (
            "panic",
            "cost: x86_64/cost/stock_rr: the guest panicked at src/main.rs:1 oh no\n",
        ),
        ("not-passed", "\"pass\":false in phase `run`\n"),
        (
            "no-build",
            "cost: x86_64/cost/stock_rr: make build: exit status: 2\n",
        ),
        (
            "other-policy",
            "expected results with sched `stock-rr`, found `other`",
        ),
    ] {
        let lab = lab();
        lab.behave("x86_64-cost-stock_rr", what);
        let end = lab.run(&["cost", "--policy=stock_rr", "--arch=x86_64"]);
        assert_eq!(end.code, Some(1), "{what}: {end:?}");
        assert!(end.err.contains(expected), "{what}: {}", end.err);
        assert!(
            !lab.exists("target/cost/cost.csv") && end.out.is_empty(),
            "{end:?}"
        );
    }
}

#[test]
fn the_gate_tells_more_from_less_and_both_from_as_before() {
    let lab = lab();
    let none = gate(&lab, &[]);
    assert_eq!((none.code, lab.calls("build")), (Some(2), 0), "{none:?}");
    let written = gate(&lab, &["--update"]);
    assert_eq!(written.code, Some(0), "{written:?}");
    let file = lab.read(GATE);
    assert_begins(
        &file,
        "policy,architecture,tasks,instructions,compiler\nsched_rr,x86_64,4,200.0,a compiler\n",
    );
    assert_has(&file, "\nsched_pbg replay,x86_64,256,139.0,a compiler\n");

    let same = gate(&lab, &[]);
    assert_eq!(same.code, Some(0), "{same:?}");
    assert_ends(
        &same.out,
        "cost-gate: 10 figures: 10 as before, 0 more, 0 less, 0 without a line\n",
    );
    assert_has(
        lab.read("calls"),
        "lab-boot x86_64-cost-sched_rr 1 8 icount",
    );

    lab.behave("x86_64-cost-sched_rr", "costs-201.0");
    let more = gate(&lab, &["--policy=sched_rr"]);
    assert_eq!(more.code, Some(1), "{more:?}");
    let sentence = "cost-gate: more: sched_rr on x86_64, 4 tasks: 200.0 instructions before, 201.0 after: +1.0, allowed is +0.5\n";
    assert_has(&more.out, sentence);
    assert_has(
        &more.out,
        "cost-gate: 6 figures: 4 as before, 2 more, 0 less",
    );

    lab.behave("x86_64-cost-sched_rr", "costs-199.0");
    let less = gate(&lab, &["--policy=sched_rr"]);
    assert_eq!(less.code, Some(0), "{less:?}");
    assert_has(
        &less.out,
        "less: sched_rr on x86_64, 4 tasks: 200.0 instructions before, 199.0 after",
    );
    assert_eq!(lab.read(GATE), file, "only an update writes");
    gate(&lab, &["--policy=sched_rr", "--update"]);
    let expected = file.replace("sched_rr,x86_64,4,200.0", "sched_rr,x86_64,4,199.0");
    let expected = expected.replace("sched_rr,x86_64,256,200.0", "sched_rr,x86_64,256,199.0");
    assert_eq!(lab.read(GATE), expected, "the others stay");
}

#[test]
fn of_another_compiler_the_ratio_counts() {
    let lab = lab();
    assert_eq!(gate(&lab, &["--update"]).code, Some(0));
    lab.write("compiler", "a better compiler\n");
    for policy in ["sched_rr", "stock_rr", "stock_fifo"] {
        lab.behave(&format!("x86_64-cost-{policy}"), "costs-180.0");
    }
    assert_eq!(gate(&lab, &["--policy=sched_rr"]).code, Some(0));
    lab.behave("x86_64-cost-sched_rr", "costs-182.0");
    let more = gate(&lab, &["--policy=sched_rr"]);
    assert_eq!(more.code, Some(1), "{more:?}");
    let sentence = "more: sched_rr on x86_64, 4 tasks: 200.0 instructions before, 182.0 after, by another compiler; of stock_rr 1.0000 before, 1.0111 after: +1.11 %, allowed is +1.00 %\n";
    assert_has(&more.out, sentence);

    // One architecture, one compiler: some of its lines are not written, and nothing is built.
    let builds = lab.calls("build");
    let part = gate(&lab, &["--policy=sched_rr", "--update"]);
    assert_eq!(
        (part.code, lab.calls("build")),
        (Some(2), builds),
        "{part:?}"
    );
    assert_has(
        &part.err,
        "is of `a compiler`, and this is `a better compiler`; allowed is to update all policies at once\n",
    );
    assert_eq!(gate(&lab, &["--update"]).code, Some(0));
    assert_lacks(lab.read(GATE), ",a compiler\n");
}
