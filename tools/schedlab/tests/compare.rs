//! Tables, figures and differences of what a pretended matrix left.

mod common;

use std::fs;

use common::Lab;

/// A project with results of all its cells.
fn filled() -> Lab {
    let lab = Lab::new();
    let end = lab.run(&["matrix"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    lab
}

const CELL: &str = "target/lab/x86_64/realtime/sched_rr.jsonl";

#[test]
fn tables_of_a_full_matrix() {
    let lab = filled();
    let end = lab.run(&[
        "compare", "--arch", "x86_64", "--app", "realtime", "--long", "--strict",
    ]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let expected = "\
realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1)

  scheduler         long  short  average  makespan  switches      Jain  avg/SRPT
";
    assert!(end.out.starts_with(expected), "{}", end.out);
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
            "pbg", "2.000*", "0.000", "1.000*", "1.000*", "7", "0.500000", "1.0000*"
        ]
    );
    assert!(
        row("pbg (measuring)").expect("a row").contains(" 3.000 "),
        "{}",
        end.out
    );
    assert!(
        end.out.ends_with("all 3 cells have results\n"),
        "{}",
        end.out
    );
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
    let end = lab.run(&["compare"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(
        end.out
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>()
                == ["rr", "-", "-", "-", "-", "-", "-", "-"]),
        "{}",
        end.out
    );
    assert!(
        end.out
            .ends_with("1 of 12 cells have no results: x86_64/realtime/sched_rr\n"),
        "{}",
        end.out
    );
    assert_eq!(lab.run(&["compare", "--strict"]).code, Some(1));
}

#[test]
fn other_formats_are_for_programs_and_documents() {
    let lab = filled();
    let csv = lab.run(&[
        "compare",
        "--format",
        "csv",
        "--arch=riscv64",
        "--app=yield",
    ]);
    assert_eq!(csv.code, Some(0), "{csv:?}");
    assert!(
        csv.out
            .contains("riscv64,yield,1,icount,1,pbg,total,ns/yield+loop,ns,10000.0\n"),
        "{}",
        csv.out
    );
    assert!(
        csv.out.lines().all(|line| line.matches(',').count() == 9),
        "{}",
        csv.out
    );
    assert_eq!(csv.err, "all 3 cells have results\n");
    let markdown = lab.run(&["compare", "--format", "markdown"]);
    assert!(
        markdown.out.contains("| pbg | **2.000** |"),
        "{}",
        markdown.out
    );
}

#[test]
fn a_report_has_tables_and_figures() {
    let lab = filled();
    let out = lab.path("report");
    let end = lab.run(&[
        "compare",
        "--out",
        "/not/this/one",
        "--out",
        out.to_str().expect("text"),
    ]);
    assert_eq!(end.code, Some(0), "{end:?}");
    for arch in ["x86_64", "riscv64"] {
        for name in [
            "yield-cost",
            "average-turnaround",
            "turnaround-yield",
            "turnaround-realtime",
        ] {
            let svg = lab.read(&format!("report/{name}-{arch}.svg"));
            assert!(svg.contains("<svg") && svg.contains("stock-rr"), "{name}");
            let png = fs::read(lab.path(&format!("report/{name}-{arch}.png"))).expect("a picture");
            assert!(png.starts_with(b"\x89PNG"), "{name}");
            assert!(
                lab.read("report/tables.md")
                    .contains(&format!("({name}-{arch}.svg)")),
                "{name}"
            );
        }
    }
    assert_eq!(
        lab.read("report/tables.csv").lines().count(),
        1 + 6 * 7 + 6 * 8
    );
}

#[test]
fn a_file_that_is_wrong_is_named_with_its_line() {
    let lab = filled();
    lab.write(CELL, &lab.read(CELL).replace("SCHED-RUN", "SCHED-RAN"));
    let end = lab.run(&["compare"]);
    assert_eq!((end.code, end.out.as_str()), (Some(2), ""));
    let place = lab.path(CELL);
    let expected = format!(
        "schedlab: {}:3: expected SCHED-TASK {{…}} or SCHED-RUN {{…}}, found `SCHED-RAN {{",
        place.display()
    );
    assert!(end.err.starts_with(&expected), "{}", end.err);
    assert_eq!(end.err.lines().count(), 1, "{}", end.err);
}

#[test]
fn without_results_there_is_one_line() {
    let lab = Lab::new();
    let says = |words: &[&str], text: &str| {
        let end = lab.run(&[&["compare"], words].concat());
        assert_eq!(end.code, Some(2));
        assert!(end.err.ends_with(text), "{}", end.err);
        assert_eq!(end.err.lines().count(), 1, "{}", end.err);
    };
    says(
        &[],
        "target/lab: expected a folder of results, found none; `make matrix` makes them\n",
    );
    says(
        &[
            "--scale",
            "5",
            "--smp=2",
            "--app=yield,realtime",
            "--policy=rr",
        ],
        "target/lab-scale5-smp2: expected a folder of results, found none; `make matrix A=yield,realtime FEATURES=rr SMP=2 SCALE=5` makes them\n",
    );
    says(
        &["/no/such"],
        "/no/such: expected a folder of results, found none\n",
    );
    lab.write("target/lab/x86_64/none", "");
    says(
        &["--arch", "x86_64"],
        "target/lab: expected results of 6 cells, found none; `make matrix ARCH=x86_64` makes them\n",
    );
}

#[test]
fn two_folders_are_compared_cell_by_cell() {
    let lab = filled();
    let (a, b) = (lab.path("target/lab"), lab.path("second"));
    let (a, b) = (a.to_str().expect("text"), b.to_str().expect("text"));
    assert_eq!(lab.run(&["matrix", "--results", b]).code, Some(0));
    let same = lab.run(&["compare", a, b]);
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
    let other = lab.run(&["compare", a, b]);
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
    assert_eq!(lab.run(&["compare", a, "/no/such"]).code, Some(2));
}
