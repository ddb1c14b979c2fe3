//! Callgrind finds the calls to count, and counts the same of them each time.
#![allow(missing_docs, reason = "a test")]

use std::process::Command;

use sched_bench::measured::COLLECTED;

const YIELDS: u64 = 64;

/// Returns the counts of Callgrind for [`YIELDS`] yields with 16 tasks: instructions, and the
/// accesses and misses of the simulated cache.
fn counts(scheduler: &str) -> Vec<u64> {
    let out = format!("{}/{scheduler}.callgrind", env!("CARGO_TARGET_TMPDIR"));
    let output = Command::new("valgrind")
        .args([
            "--tool=callgrind",
            "--cache-sim=yes",
            "--collect-atstart=no",
        ])
        .args(["--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"])
        .arg(format!("--toggle-collect={COLLECTED}"))
        .arg(format!("--callgrind-out-file={out}"))
        .arg(env!("CARGO_BIN_EXE_sched-bench"))
        .args([scheduler, "yield", "16", &YIELDS.to_string()])
        .output()
        .expect("expected valgrind, which `make setup` installs");
    let said = String::from_utf8(output.stderr).expect("it prints text");
    assert!(output.status.success(), "{said}");
    let line = said
        .lines()
        .find_map(|line| line.split_once("Collected : "));
    let (_, counts) = line.unwrap_or_else(|| panic!("expected a line of counts, found\n{said}"));
    let number = |word: &str| word.parse().expect("a number");
    counts.split(' ').map(number).collect()
}

#[test]
fn two_runs_count_the_same() {
    for scheduler in ["fifo", "stock-fifo"] {
        let first = counts(scheduler);
        assert!(first[0] > YIELDS, "{scheduler}: {first:?}");
        assert_eq!(first, counts(scheduler), "{scheduler}");
    }
}
