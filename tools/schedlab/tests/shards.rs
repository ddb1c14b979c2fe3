//! A matrix in parts, each into a folder of its own, and all of them compared.

mod common;

use std::{collections::BTreeMap, fs};

use common::{Lab, assert_has};

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
    lab.good("matrix --results @whole");
    let of_whole = lab.good("compare --strict @whole --out @of-whole").out;
    let mut cells = Vec::new();
    // In another order than that of the cells.
    for k in (1..=8).rev() {
        let end = lab.good(&format!("matrix --results @shards/{k} --shard {k}/8"));
        let part = end
            .out
            .split_once(&format!("shard {k}/8: "))
            .expect("a part")
            .1;
        let (count, closing) = part.split_once(" of 12 cells\n").expect("a count");
        let count: usize = count.parse().expect("a number");
        assert_has(
            closing,
            format!("{count} run, 0 up to date, 0 failed; results in "),
        );
        cells.push(count);
    }
    // Some have no cell, and their folders exist all the same.
    assert_eq!((cells.iter().sum(), cells.contains(&0)), (12, true));
    let folders = |first: u32| {
        let names = (first..=8).map(|k| format!(" @shards/{k}"));
        names.collect::<String>()
    };
    let all = folders(1);
    let of_shards = lab.good(&format!("compare --strict --out @of-shards --results{all}"));
    assert_eq!(of_shards.out, of_whole);
    let (expected, found) = (files(&lab, "of-whole"), files(&lab, "of-shards"));
    assert_eq!(expected.len(), 6, "{:?}", expected.keys());
    assert_eq!(expected, found);
    let end = lab.call(&format!("compare --strict --results{}", folders(2)));
    assert_eq!(end.code, Some(1), "{end:?}");
    assert_has(&end.out, "of 12 cells have no results: ");
}

#[test]
fn cell_that_is_added_moves_no_other() {
    let lab = Lab::new();
    let shard = |k: u32| {
        let end = lab.good(&format!("matrix --dry-run --shard {k}/3"));
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

/// Results of two policies in two folders, `a` and `b`; in between a file is written.
fn two(file: &str, text: &str) -> Lab {
    let lab = Lab::new();
    lab.write("compiler", "rustc 1.95.0\nQEMU 7.2\nQEMU 7.2\n");
    lab.good("matrix --results @a --arch=x86_64 --policy=rr");
    lab.write(file, text);
    lab.good("matrix --results @b --arch=x86_64 --policy=pbg");
    lab
}

#[test]
fn results_of_other_tools_or_sources_are_mixed_only_on_demand() {
    for (name, file, text) in [
        ("compiler", "compiler", "rustc 1.96.0\nQEMU 7.2\n"),
        ("qemu", "compiler", "rustc 1.95.0\nQEMU 8.0\n"),
        ("sources", "Makefile", "2"),
        ("app", "apps/yield/src/main.rs", "2"),
        // No image has this file, so nothing is mixed.
        ("none", "docs/page.md", "2"),
    ] {
        let lab = two(file, text);
        let compare = "compare --arch=x86_64 --app=yield --results @a @b";
        lab.shows(compare);
        lab.shows(&format!("{compare} --mixed --out @report"));
        let page = lab.read("report/tables.md");
        assert_eq!(page.contains("\nmixed: "), name != "none", "{page}");
        lab.matches(&format!("shards/other-{name}"));
    }
}

#[test]
fn results_without_an_origin_are_mixed_only_on_demand() {
    let lab = two("docs/page.md", "");
    lab.remove("a/x86_64/yield/sched_rr.cell.json");
    let compare = "compare --arch=x86_64 --app=yield --results @a @b";
    lab.shows(compare);
    lab.shows(&format!("{compare} --mixed"));
    lab.matches("shards/no-origin");
}

#[test]
fn cell_in_two_folders_must_be_the_same_in_both() {
    let lab = Lab::new();
    let cells = "--arch=x86_64 --app=yield";
    lab.good(&format!("matrix {cells} --results @a"));
    lab.good(&format!("matrix {cells} --results @b"));
    let compare = |words: &str| lab.shows(&format!("compare {cells} --results {words}"));
    compare("@a");
    compare("@a @b");
    lab.good(&format!("matrix {cells} --results @b --phases=2 --force"));
    compare("@a @b");
    compare("@a @b --mixed");
    compare("@a @none");
    lab.matches("shards/twice");
}
