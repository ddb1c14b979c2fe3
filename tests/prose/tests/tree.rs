//! No file of the tree has an offence, and no subject of a new commit.

use std::{fmt::Write, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

#[test]
fn no_file_breaks_a_rule() {
    let mut failed = String::new();
    for path in prose::files(ROOT) {
        let content = fs::read_to_string(format!("{ROOT}/{path}")).expect("a file of git");
        for offence in prose::offences(&path, &content) {
            writeln!(failed, "{path}:{offence}").expect("a string grows");
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
}

#[test]
fn subjects_of_new_commits_fit() {
    let log = std::process::Command::new("git")
        .args(["-C", ROOT, "log", "--no-merges", "-50", "--format=%s"])
        .output()
        .expect("git shows its log");
    let log = String::from_utf8(log.stdout).expect("subjects are UTF-8");
    let bad: Vec<_> = log
        .lines()
        .filter(|subject| prose::subject_offence(subject).is_some())
        .collect();
    assert!(
        !log.is_empty() && bad.is_empty(),
        "expected `area: verb ...`, found {bad:#?}"
    );
}
