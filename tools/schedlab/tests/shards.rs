//! A matrix in parts, each into a folder of its own, and all of them compared.

mod common;

use std::{collections::BTreeMap, fs};

use common::{Ended, Lab, assert_begins, assert_ends, assert_has, assert_lacks};

/// A folder of the lab, as it is given to the program, which runs somewhere else.
fn at(lab: &Lab, folder: &str) -> String {
    lab.path(folder).to_str().expect("text").to_owned()
}

fn matrix(lab: &Lab, folder: &str, more: &[&str]) -> Ended {
    let end = lab.run(&[&["matrix", "--results", &at(lab, folder)], more].concat());
    assert_eq!(end.code, Some(0), "{end:?}");
    end
}

fn compare(lab: &Lab, folders: &[&str], more: &[&str]) -> Ended {
    let folders: Vec<_> = folders.iter().map(|folder| at(lab, folder)).collect();
    let mut words = vec!["compare", "--results"];
    words.extend(folders.iter().map(String::as_str));
    lab.run(&[&words, more].concat())
}

/// The names of the files of a folder, and what is in them.
fn files(lab: &Lab, folder: &str) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(lab.path(folder)).expect("a folder");
    let file = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("it can be read");
        let name = entry.file_name().to_string_lossy().into_owned();
        (name, fs::read(entry.path()).expect("a file"))
    };
    entries.map(file).collect()
}

#[test]
fn eight_shards_compared_together_give_the_files_of_one_run() {
    let lab = Lab::new();
    matrix(&lab, "whole", &[]);
    let (whole, out) = (at(&lab, "whole"), at(&lab, "of-whole"));
    let of_whole = lab.run(&["compare", "--strict", &whole, "--out", &out]);
    assert_eq!(of_whole.code, Some(0), "{of_whole:?}");

    // As one part has it, then another: they know of no order.
    let folders: Vec<_> = (1..=8).rev().map(|k| format!("shards/{k}")).collect();
    let mut cells = Vec::new();
    for (k, folder) in (1..=8).rev().zip(&folders) {
        let shard = format!("{k}/8");
        let end = matrix(&lab, folder, &["--shard", &shard]);
        let last: Vec<_> = end.out.lines().rev().take(2).collect();
        let part = last[1].strip_prefix(&format!("shard {shard}: "));
        let part = part.and_then(|line| line.strip_suffix(" of 12 cells"));
        let count: usize = part.expect(&end.out).parse().expect("a number");
        let closing = format!("{count} run, 0 up to date, 0 failed; results in ");
        assert!(last[0].contains(&closing), "{}", end.out);
        cells.push(count);
    }
    // Some have none, which is no reason to refuse their folders.
    assert_eq!(
        (cells.iter().sum::<usize>(), cells.contains(&0)),
        (12, true)
    );
    let folders: Vec<_> = folders.iter().map(String::as_str).collect();
    let out = at(&lab, "of-shards");
    let of_shards = compare(&lab, &folders, &["--strict", "--out", &out]);
    assert_eq!(of_shards.code, Some(0), "{of_shards:?}");
    assert_eq!(of_shards.out, of_whole.out);
    let (expected, found) = (files(&lab, "of-whole"), files(&lab, "of-shards"));
    assert_eq!(expected.len(), 6, "{:?}", expected.keys());
    assert_eq!(expected, found);

    let end = compare(&lab, &folders[..7], &["--strict"]);
    assert_eq!(end.code, Some(1), "{end:?}");
    assert_has(&end.out, "of 12 cells have no results: ");
}

#[test]
fn a_cell_that_is_added_moves_no_other() {
    let lab = Lab::new();
    let shard = |k: u32| {
        let end = lab.run(&["matrix", "--dry-run", "--shard", &format!("{k}/3")]);
        assert_eq!(end.code, Some(0), "{end:?}");
        let (cells, closing) = end.out.split_once("shard ").expect("it says which");
        assert!(closing.starts_with(&format!("{k}/3: ")), "{closing}");
        cells.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let before = [1, 2, 3].map(shard);
    assert_eq!(before.iter().map(Vec::len).sum::<usize>(), 12);
    lab.write(
        "policies",
        "sched_new sched_rr sched_newer sched_pbg stock_rr",
    );
    let after = [1, 2, 3].map(shard);
    assert_eq!(after.iter().map(Vec::len).sum::<usize>(), 20);
    for (before, mut after) in before.into_iter().zip(after) {
        after.retain(|cell| !cell.contains("sched_new"));
        assert_eq!(before, after);
    }
}

#[test]
fn what_is_no_shard_is_refused_before_anything_is_built() {
    let lab = Lab::new();
    for shard in ["0/8", "9/8", "2", "a/b", "-1/2"] {
        let end = lab.run(&["matrix", "--shard", shard]);
        let line = format!("schedlab: --shard {shard}: expected K/N with K from 1 to N, as 2/8\n");
        assert_eq!((end.code, end.err), (Some(2), line));
    }
    assert_eq!(lab.calls("build"), 0);
}

const TOOLS: &str = "rustc 1.95.0\nQEMU 7.2\nQEMU 7.2\n";

/// Results of two policies in two folders, `a` and `b`; in between something has changed.
fn two(change: impl FnOnce(&Lab)) -> (Lab, String, String) {
    let lab = Lab::new();
    lab.write("compiler", TOOLS);
    matrix(&lab, "a", &["--arch=x86_64", "--policy=rr"]);
    change(&lab);
    matrix(&lab, "b", &["--arch=x86_64", "--policy=pbg"]);
    let (a, b) = (at(&lab, "a"), at(&lab, "b"));
    (lab, a, b)
}

#[test]
fn results_of_other_compilers_and_qemus_are_not_mixed_unknowingly() {
    for (tools, what, expected, found) in [
        (
            TOOLS.replace("rustc 1.95.0", "rustc 1.96.0"),
            "compiler",
            "rustc 1.95.0",
            "rustc 1.96.0",
        ),
        (
            TOOLS.replace("QEMU 7.2", "QEMU 8.0"),
            "QEMU",
            "QEMU 7.2",
            "QEMU 8.0",
        ),
    ] {
        let (lab, a, b) = two(|lab| lab.write("compiler", &tools));
        let end = compare(&lab, &["a", "b"], &[]);
        let line = format!(
            "schedlab: expected results of one {what}, found {expected} in {a} and {found} in {b}; \
             run the matrix again for one of them, or --mixed shows them side by side\n"
        );
        assert_eq!((end.code, end.out.as_str(), end.err), (Some(2), "", line));

        let out = at(&lab, "report");
        let end = compare(&lab, &["a", "b"], &["--mixed", "--out", &out]);
        assert_eq!(end.code, Some(0), "{end:?}");
        let said = format!("mixed: {what}: {expected} in {a}; {found} in {b}\n");
        let closing = format!("{said}8 of 12 cells have no results: ");
        assert_has(&end.out, &closing);
        assert_ends(lab.read("report/tables.md"), &said);
        let csv = compare(&lab, &["a", "b"], &["--mixed", "--format=csv"]);
        assert_begins(&csv.err, &said);
        assert_lacks(&csv.out, "mixed");
    }
}

#[test]
fn results_of_other_source_trees_are_not_mixed_unknowingly() {
    for (file, what) in [
        ("Makefile", "source tree"),
        ("apps/yield/src/main.rs", "source tree of yield"),
    ] {
        let (lab, a, b) = two(|lab| lab.write(file, "2"));
        let end = compare(&lab, &["a", "b"], &[]);
        assert_eq!((end.code, end.err.lines().count()), (Some(2), 1), "{end:?}");
        let begin = format!("schedlab: expected results of one {what}, found ");
        assert_begins(&end.err, &begin);
        for folder in [format!(" in {a} and "), format!(" in {b}; run ")] {
            assert_has(&end.err, &folder);
        }
        let end = compare(&lab, &["a", "b"], &["--mixed"]);
        assert_eq!(end.code, Some(0), "{end:?}");
        assert_eq!(end.out.matches("\nmixed: ").count(), 1, "{}", end.out);
    }
    // What reaches no image is no difference.
    let (lab, ..) = two(|lab| lab.write("docs/page.md", "2"));
    assert_eq!(compare(&lab, &["a", "b"], &[]).code, Some(0));
}

/// As they were before an origin said of what it has a fingerprint.
fn forget_the_inputs(lab: &Lab, cell: &str) {
    let origin = lab.read(cell);
    let mut origin: serde_json::Value = serde_json::from_str(&origin).expect("an origin");
    let inputs = origin.as_object_mut().expect("an object").remove("inputs");
    assert!(inputs.is_some());
    lab.write(cell, &origin.to_string());
}

#[test]
fn older_results_are_told_apart_by_their_fingerprint() {
    let cells = ["realtime", "yield"].map(|app| format!("a/x86_64/{app}/sched_rr.cell.json"));
    let (lab, ..) = two(|_| {});
    cells.iter().for_each(|cell| forget_the_inputs(&lab, cell));
    assert_eq!(compare(&lab, &["a", "b"], &[]).code, Some(0));

    let (lab, ..) = two(|lab| lab.write("compiler", "rustc 1.96.0\n"));
    cells.iter().for_each(|cell| forget_the_inputs(&lab, cell));
    let end = compare(&lab, &["a", "b"], &[]);
    let begin = "schedlab: expected results of one source tree and tools for realtime, found ";
    assert!(end.code == Some(2) && end.err.starts_with(begin), "{end:?}");

    fs::remove_file(lab.path(&cells[1])).expect("it was there");
    let end = compare(&lab, &["a", "b"], &[]);
    let said = "a: x86_64/yield/sched_rr: expected what it was made from, found nothing; \
                run it again, or --mixed takes it as it is\n";
    assert!(end.code == Some(2) && end.err.ends_with(said), "{end:?}");
    let end = compare(&lab, &["a", "b"], &["--mixed"]);
    assert_eq!(end.code, Some(0), "{end:?}");
    let said = format!(
        "\nmixed: of 1 cell the origin is not known, as of x86_64/yield/sched_rr in {}\n",
        at(&lab, "a")
    );
    assert_has(&end.out, &said);
}

#[test]
fn a_cell_in_two_folders_is_the_same_in_both() {
    let lab = Lab::new();
    let cells = ["--arch=x86_64", "--app=yield"];
    matrix(&lab, "a", &cells);
    matrix(&lab, "b", &cells);
    let one = compare(&lab, &["a"], &cells);
    let both = compare(&lab, &["a", "b"], &cells);
    assert_eq!((both.code, &both.out), (Some(0), &one.out));

    matrix(
        &lab,
        "b",
        &[&cells[..], &["--phases=2", "--force"]].concat(),
    );
    let line = format!(
        "schedlab: x86_64/yield/sched_rr: expected the same results in {} and {}, found others; \
         `compare A B` shows the difference, and only one of them can be in the tables\n",
        at(&lab, "a"),
        at(&lab, "b")
    );
    for more in [&cells[..], &["--mixed"]] {
        let end = compare(&lab, &["a", "b"], more);
        assert_eq!((end.code, end.out.as_str(), &end.err), (Some(2), "", &line));
    }
    let end = compare(&lab, &["a", "none"], &cells);
    let line = format!(
        "schedlab: {}: expected a folder of results, found none\n",
        at(&lab, "none")
    );
    assert_eq!((end.code, end.err), (Some(2), line));
}
