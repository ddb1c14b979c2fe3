//! Tables, figures and differences of what a pretended matrix left.

mod common;

use common::{Lab, assert_has};

/// A project with results of all its cells.
fn filled() -> Lab {
    let lab = Lab::new();
    lab.good("matrix");
    lab
}

const CELL: &str = "target/lab/x86_64/realtime/sched_rr.jsonl";

#[test]
fn tables_have_a_row_for_each_policy_and_missing_cells_are_counted() {
    let lab = filled();
    lab.shows("compare --arch x86_64 --app realtime --long --strict");
    lab.remove(CELL);
    lab.shows("compare");
    lab.shows("compare --arch x86_64 --app realtime --strict");
    lab.matches("compare/tables");
}

#[test]
fn report_has_tables_and_figures() {
    let lab = filled();
    lab.good("compare --out /not/this/one --out @report");
    for arch in ["x86_64", "riscv64"] {
        for name in ["yield-cost", "average-turnaround"] {
            let svg = lab.read(&format!("report/{name}-{arch}.svg"));
            assert!(svg.contains("<svg") && svg.contains("stock-rr"), "{name}");
        }
    }
    lab.shows_file("report/tables.md");
    lab.shows_file("report/tables.csv");
    lab.matches("compare/report");
}

#[test]
fn wrong_or_absent_results_are_refused_in_one_line() {
    let lab = Lab::new();
    lab.shows("compare");
    lab.shows("compare --scale 5 --smp=2 --app=yield,realtime --policy=rr");
    lab.shows("compare /no/such");
    lab.write("target/lab/x86_64/none", "");
    lab.shows("compare --arch x86_64");
    lab.good("matrix --arch=x86_64 --app=realtime --policy=rr");
    let good = lab.read(CELL);
    for (from, to) in [
        ("SCHED-RUN", "SCHED-RAN"),
        (r#""sched":"rr""#, r#""sched":"fifo""#),
    ] {
        lab.write(CELL, &good.replace(from, to));
        lab.shows("compare");
    }
    lab.matches("compare/refused");
}

#[test]
fn two_folders_are_compared_cell_by_cell() {
    let lab = filled();
    lab.good("matrix --results @second");
    lab.shows("compare @target/lab @second");
    let makespan = |ns: u64| format!("\"makespan_ns\":{ns}");
    let other = lab
        .read(CELL)
        .replace(&makespan(2000000), &makespan(2000100));
    lab.write(CELL, &other);
    lab.remove("second/riscv64/yield/stock_rr.jsonl");
    lab.shows("compare @target/lab @second");
    lab.shows("compare @target/lab @second --arch=x86_64 --app=realtime --policy=rr");
    lab.shows("compare @target/lab /no/such");
    lab.matches("compare/folders");
}

#[test]
fn two_policies_are_compared_by_their_last_phases() {
    let lab = filled();
    for (policy, long) in [
        ("sched_pbg", "--long"),
        ("sched_pbg", ""),
        ("sched_rr", ""),
        ("sched_none", ""),
    ] {
        let cells = "--policy=sched_rr --app=yield --arch=x86_64";
        let folders = "@target/lab @target/lab";
        lab.shows(&format!(
            "compare {long} --against {policy} {folders} {cells}"
        ));
    }
    lab.matches("compare/policies");
}

#[test]
fn over_several_tick_phases_tables_have_ranges_and_charts_whiskers() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "wide");
    let cells = "--arch=x86_64 --app=realtime";
    lab.good(&format!("matrix --phases=4 {cells}"));
    lab.shows(&format!("compare {cells} --out @report"));
    lab.shows_file("report/tables.csv");
    lab.matches("compare/tick-phases");
    let svg = lab.read("report/average-turnaround-x86_64.svg");
    assert_has(&svg, "2.375 ±15.79 %");
}
