//! Tables, figures and differences of what a pretended matrix left.

mod common;

use std::fs;

use common::{Lab, assert_begins, assert_ends, assert_has};

/// A project with results of all its cells.
fn filled() -> Lab {
    let lab = Lab::new();
    let end = lab.call("matrix");
    assert_eq!(end.code, Some(0), "{end:?}");
    lab
}

const CELL: &str = "target/lab/x86_64/realtime/sched_rr.jsonl";

#[test]
fn tables_of_a_full_matrix() {
    let lab = filled();
    let end = lab.call("compare --arch x86_64 --app realtime --long --strict");
    assert_eq!(end.code, Some(0), "{end:?}");
    let expected = "\
realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1)

  scheduler         long  short  average  makespan  switches      Jain  avg/SRPT  outside
";
    assert_begins(&end.out, expected);
    let row = |label: &str| {
        end.out
            .lines()
            .find(|line| line.trim_start().starts_with(label))
            .map(str::trim)
    };
    let words = |label| row(label).map(|row| row.split_whitespace().collect::<Vec<_>>());
    assert_eq!(
        words("pbg  ").expect("a row"),
        [
            "pbg", "2.000*", "0.000", "1.000*", "1.000*", "7", "0.500000", "1.0000*", "1.00"
        ]
    );
    assert!(
        row("pbg (measuring)").expect("a row").contains(" 3.000 "),
        "{}",
        end.out
    );
    assert_ends(&end.out, "all 3 cells have results\n");
    // No line is ragged: what is right-aligned ends in the same column.
    let ends: Vec<_> = end
        .out
        .lines()
        .skip(4)
        .take(4)
        .map(|line| line.trim_end_matches('*').len())
        .collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{}", end.out);
}

#[test]
fn missing_cells_are_shown_and_counted() {
    let lab = filled();
    fs::remove_file(lab.path(CELL)).expect("it was there");
    let end = lab.call("compare");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(
        end.out
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>()
                == ["rr", "-", "-", "-", "-", "-", "-", "-", "-"]),
        "{}",
        end.out
    );
    assert_ends(
        &end.out,
        "1 of 12 cells has no results: x86_64/realtime/sched_rr\n",
    );
    assert_eq!(lab.call("compare --strict").code, Some(1));
}

#[test]
fn other_formats_are_for_programs_and_documents() {
    let lab = filled();
    let csv = lab.call("compare --format csv --arch=riscv64 --app=yield");
    assert_eq!(csv.code, Some(0), "{csv:?}");
    assert_has(
        &csv.out,
        "riscv64,yield,1,icount,1,pbg,total,ns/yield+loop,ns,10000.000,10000.000,10000.000,10000.000,1\n",
    );
    assert!(
        csv.out.lines().all(|line| line.matches(',').count() == 13),
        "{}",
        csv.out
    );
    assert_eq!(csv.err, "all 3 cells have results\n");
    let markdown = lab.call("compare --format markdown");
    assert_has(&markdown.out, "| pbg | **2.000** |");
}

#[test]
fn a_report_has_tables_and_figures() {
    let lab = filled();
    let end = lab.call("compare --out /not/this/one --out @report");
    assert_eq!(end.code, Some(0), "{end:?}");
    for arch in ["x86_64", "riscv64"] {
        for name in ["yield-cost", "average-turnaround"] {
            let svg = lab.read(&format!("report/{name}-{arch}.svg"));
            assert!(svg.contains("<svg") && svg.contains("stock-rr"), "{name}");
            let shown = format!("({name}-{arch}.svg)");
            assert_has(lab.read("report/tables.md"), &shown);
        }
    }
    assert_eq!(
        lab.read("report/tables.csv").lines().count(),
        1 + 6 * 8 + 6 * 9
    );
}

#[test]
fn a_file_that_is_wrong_is_named_with_its_line() {
    let lab = filled();
    lab.write(CELL, &lab.read(CELL).replace("SCHED-RUN", "SCHED-RAN"));
    let end = lab.call("compare");
    assert_eq!((end.code, end.out.as_str()), (Some(2), ""));
    let place = lab.path(CELL);
    let expected = format!(
        "schedlab: {}:3: expected SCHED-TASK {{…}} or SCHED-RUN {{…}}, found `SCHED-RAN {{",
        place.display()
    );
    assert_begins(&end.err, &expected);
    assert_eq!(end.err.lines().count(), 1, "{}", end.err);
}

#[test]
fn without_results_there_is_one_line() {
    let lab = Lab::new();
    let says = |words: &str, text: &str| {
        let end = lab.call(&format!("compare {words}"));
        assert_eq!(end.code, Some(2));
        assert_ends(&end.err, text);
        assert_eq!(end.err.lines().count(), 1, "{}", end.err);
    };
    says(
        "",
        "target/lab: expected a folder of results, found none; `make matrix` makes them\n",
    );
    says(
        "--scale 5 --smp=2 --app=yield,realtime --policy=rr",
        "target/lab-scale5-smp2: expected a folder of results, found none; `make matrix A=yield,realtime FEATURES=rr SMP=2 SCALE=5` makes them\n",
    );
    says(
        "/no/such",
        "/no/such: expected a folder of results, found none\n",
    );
    lab.write("target/lab/x86_64/none", "");
    says(
        "--arch x86_64",
        "target/lab: expected results of 6 cells, found none; `make matrix ARCH=x86_64` makes them\n",
    );
}

#[test]
fn two_folders_are_compared_cell_by_cell() {
    let lab = filled();
    let a = lab.path("target/lab").display().to_string();
    assert_eq!(lab.call("matrix --results @second").code, Some(0));
    let same = lab.call("compare @target/lab @second");
    assert_eq!(same.code, Some(0), "{same:?}");
    assert_eq!(
        same.out,
        "12 cells: 12 identical, 0 differ, 0 only on one side\n"
    );

    lab.write(
        CELL,
        &lab.read(CELL)
            .replace(r#""makespan_ns":2000000"#, r#""makespan_ns":2000100"#),
    );
    fs::remove_file(lab.path("second/riscv64/yield/stock_rr.jsonl")).expect("it was there");
    let other = lab.call("compare @target/lab @second");
    assert_eq!(other.code, Some(1), "{other:?}");
    assert_eq!(
        other.out,
        format!(
            "riscv64/yield/stock_rr: only in {a}\n\
             x86_64/realtime/sched_rr: 1 figure differs\n    \
             run: makespan_ns 2000100 -> 2000000 (-100, -0.0050 %)\n\
             12 cells: 10 identical, 1 differ, 1 only on one side\n"
        )
    );
    assert_eq!(lab.call("compare @target/lab /no/such").code, Some(2));
}

#[test]
fn over_several_tick_phases_tables_have_ranges_and_charts_whiskers() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "wide");
    let cells = "--arch=x86_64 --app=realtime";
    let end = lab.call(&format!("matrix --phases=4 {cells}"));
    assert_eq!(end.code, Some(0), "{end:?}");
    let end = lab.call(&format!("compare {cells} --out @report"));
    assert_eq!(end.code, Some(0), "{end:?}");
    // 2.000, 2.250, 2.500 and 2.750 ms; stock's 2 ms is within.
    for row in [
        "realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1, 4 tick phases)",
        "  rr         4.750  0.000    2.375  15.79  a ",
        "  pbg        2.000* 0.000    1.000*  0.00  ",
        "  stock-rr   4.000  0.000    2.000   0.00  a ",
    ] {
        assert_has(&end.out, row);
    }
    let csv = lab.read("report/tables.csv");
    let row = "x86_64,realtime,1,icount,1,rr,total,average,ms,2.000,2.000,2.375,2.750,4\n";
    assert_has(&csv, row);
    let svg = lab.read("report/average-turnaround-x86_64.svg");
    assert_has(&svg, "2.375 ±15.79 %");
    let again = lab.call(&format!("compare {cells}"));
    assert_eq!(again.out, end.out, "it says the same each time");
}

#[test]
fn results_of_before_there_was_an_account_are_shown_and_said_to_have_none() {
    let lab = filled();
    let text = lab.read(CELL);
    let (before, after) = text.split_once("\"tick_phase\"").expect("it is there");
    let (_, after) = after.split_once("\"pass\"").expect("it is there");
    lab.write(CELL, &format!("{before}\"pass\"{after}"));
    let end = lab.call("compare --arch=x86_64 --app=realtime");
    assert_eq!(end.code, Some(0), "{end:?}");
    let note = "note: no account of the CPU time in the results of rr; run the matrix again\n";
    assert_has(&end.out, note);
    let rr = end.out.lines().find(|line| line.starts_with("  rr "));
    assert!(rr.is_some_and(|row| row.ends_with(" -")), "{}", end.out);
}

#[test]
fn two_policies_are_held_against_each_other_by_their_last_phases() {
    let lab = filled();
    let compare = |policy: &str| {
        let cells = "--policy=sched_rr --app=yield --arch=x86_64";
        let folders = "@target/lab @target/lab";
        lab.call(&format!(
            "compare --long --against {policy} {folders} {cells}"
        ))
    };
    let end = compare("sched_pbg");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert_begins(&end.out, "x86_64/yield/sched_rr -> sched_pbg: ");
    let line = "\n    last phase: makespan_ns 2000000 -> 1000000 (-1000000, -50.0000 %)\n";
    assert_has(&end.out, line);
    let same = compare("sched_rr");
    assert_eq!(
        same.out,
        "x86_64/yield/sched_rr -> sched_rr: 0 differences\n"
    );
    let none = compare("sched_none").out;
    assert!(
        none.starts_with("x86_64/yield/sched_rr: no sched_none in "),
        "{none}"
    );
}
