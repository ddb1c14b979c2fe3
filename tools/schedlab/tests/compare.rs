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

  scheduler         long  short  average  makespan  switches      Jain  avg/SRPT  outside
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
            "pbg", "2.000*", "0.000", "1.000*", "1.000*", "7", "0.500000", "1.0000*", "1.00"
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
                == ["rr", "-", "-", "-", "-", "-", "-", "-", "-"]),
        "{}",
        end.out
    );
    assert!(
        end.out
            .ends_with("1 of 12 cells has no results: x86_64/realtime/sched_rr\n"),
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
            .contains("riscv64,yield,1,icount,1,pbg,total,ns/yield+loop,ns,10000.000,10000.000,10000.000,10000.000,1\n"),
        "{}",
        csv.out
    );
    assert!(
        csv.out.lines().all(|line| line.matches(',').count() == 13),
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
        1 + 6 * 8 + 6 * 9
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

#[test]
fn over_several_tick_phases_tables_have_ranges_and_charts_whiskers() {
    let lab = Lab::new();
    lab.behave("x86_64-realtime-sched_rr", "wide");
    let cells = ["--arch=x86_64", "--app=realtime"];
    let end = lab.run(&[&["matrix", "--phases=4"], &cells[..]].concat());
    assert_eq!(end.code, Some(0), "{end:?}");
    let out = lab.path("report");
    let out = ["--out", out.to_str().expect("text")];
    let end = lab.run(&[&["compare"], &cells[..], &out[..]].concat());
    assert_eq!(end.code, Some(0), "{end:?}");
    // 2.000, 2.250, 2.500 and 2.750 ms; stock's 2 ms is within.
    for row in [
        "realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1, 4 tick phases)",
        "  rr         4.750  0.000    2.375  15.79  a ",
        "  pbg        2.000* 0.000    1.000*  0.00  ",
        "  stock-rr   4.000  0.000    2.000   0.00  a ",
    ] {
        assert!(end.out.contains(row), "{row}: {}", end.out);
    }
    let csv = lab.read("report/tables.csv");
    let row = "x86_64,realtime,1,icount,1,rr,total,average,ms,2.000,2.000,2.375,2.750,4\n";
    assert!(csv.contains(row), "{csv}");
    let svg = lab.read("report/average-turnaround-x86_64.svg");
    assert!(svg.contains("2.375 ±15.79 %"), "{svg}");
    let again = lab.run(&[&["compare"], &cells[..]].concat());
    assert_eq!(again.out, end.out, "it says the same each time");
}

#[test]
fn results_of_before_there_was_an_account_are_shown_and_said_to_have_none() {
    let lab = filled();
    let text = lab.read(CELL);
    let (before, after) = text.split_once("\"tick_phase\"").expect("it is there");
    let (_, after) = after.split_once("\"pass\"").expect("it is there");
    lab.write(CELL, &format!("{before}\"pass\"{after}"));
    let end = lab.run(&["compare", "--arch=x86_64", "--app=realtime"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let note = "note: no account of the CPU time in the results of rr; run the matrix again\n";
    assert!(end.out.contains(note), "{}", end.out);
    let rr = end.out.lines().find(|line| line.starts_with("  rr "));
    assert!(rr.is_some_and(|row| row.ends_with(" -")), "{}", end.out);
}

#[test]
fn two_policies_are_held_against_each_other_by_their_last_phases() {
    let lab = filled();
    let folder = lab.path("target/lab");
    let folder = folder.to_str().expect("text");
    let compare = |policy: &str| {
        let cells = ["--policy=sched_rr", "--app=yield", "--arch=x86_64"];
        lab.run(
            &[
                &["compare", "--long", "--against", policy, folder, folder],
                &cells[..],
            ]
            .concat(),
        )
    };
    let end = compare("sched_pbg");
    assert_eq!(end.code, Some(0), "{end:?}");
    assert!(
        end.out.starts_with("x86_64/yield/sched_rr -> sched_pbg: "),
        "{}",
        end.out
    );
    let line = "\n    last phase: makespan_ns 2000000 -> 1000000 (-1000000, -50.0000 %)\n";
    assert!(end.out.contains(line), "{}", end.out);
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
