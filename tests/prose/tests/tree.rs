//! No file of the tree has more offences than `allowance.txt` allows it, and none has fewer.
//!
//! The allowance may only fall. `PROSE=lower cargo test -p prose --test tree` writes it again,
//! and fails where it would rise.

use std::{collections::BTreeMap, env, fmt::Write, fs};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const ALLOWANCE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/allowance.txt");

fn allowance() -> BTreeMap<String, usize> {
    let text = fs::read_to_string(ALLOWANCE).expect("the allowance can be read");
    let entry = |line: &str| {
        let (count, path) = line.split_once(' ').expect("a line is `count path`");
        (path.to_owned(), count.parse().expect("a count is a number"))
    };
    text.lines().map(entry).collect()
}

#[test]
fn no_file_breaks_more_rules_than_it_may() {
    let allowed = allowance();
    let (mut found, mut failed) = (BTreeMap::new(), String::new());
    for path in prose::files(ROOT) {
        let content = fs::read_to_string(format!("{ROOT}/{path}")).expect("a file of git");
        let offences = prose::offences(&path, &content);
        let may = allowed.get(&path).copied().unwrap_or(0);
        if offences.len() > may {
            for offence in &offences {
                writeln!(failed, "{path}:{offence}").expect("a string grows");
            }
            writeln!(failed, "{path}: {} offences, {may} allowed", offences.len())
                .expect("as above");
        }
        if !offences.is_empty() {
            found.insert(path, offences.len());
        }
    }
    assert!(failed.is_empty(), "\n{failed}");
    if env::var("PROSE").is_ok_and(|word| word == "lower") {
        let lines: Vec<_> = found
            .iter()
            .map(|(path, count)| format!("{count} {path}\n"))
            .collect();
        fs::write(ALLOWANCE, lines.concat()).expect("the allowance can be written");
        return;
    }
    let is_lower = |(path, may): &(&String, &usize)| found.get(*path).unwrap_or(&0) < *may;
    let lower: Vec<_> = allowed.iter().filter(is_lower).collect();
    let hint = "PROSE=lower cargo test -p prose --test tree";
    assert!(
        lower.is_empty(),
        "fewer than these allowed; {hint}: {lower:#?}"
    );
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
