//! Checks the statements of `docs/new-policy.md` about the tree. The places that it names have every
//! policy, no other place has a list of policies, and its example policy is the one that is tested.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use axsched_ext::for_each_policy;

const PAGE: &str = "docs/new-policy.md";
/// The example policy of the page, and its tests.
const EXAMPLE: [&str; 2] = ["examples/pace/src/lib.rs", "examples/pace/src/tests.rs"];

/// Files that name some policies without being a list of all, with the reason.
const NO_LISTS: [(&str, &str); 9] = [
    (
        "arceos-0.8/old-names/axsched/src/lib.rs",
        "the policies of ax-task 0.8",
    ),
    (
        "tools/schedlab/src/sources/policies.rs",
        "which policies share files",
    ),
    (
        "tools/schedlab/src/simulate/cells.rs",
        "which policies are promised to be close to one queue",
    ),
    (
        "modules/axsched-ext/tests/model.rs",
        "what the model is held against",
    ),
    (
        "modules/axsched-ext/tests/places.rs",
        "what a list looks like",
    ),
    (
        "tools/schedlab/src/cost/gate/tests.rs",
        "figures of made-up rows",
    ),
    (
        "tools/schedlab/src/compare/chart.rs",
        "a chart of made-up rows",
    ),
    ("tools/schedlab/src/compare/table/tests.rs", "made-up rows"),
    ("tests/system/wrong-calls.txt", "calls of make to refuse"),
];

/// Words that contain the name of a policy and do not mean it. Two are PBG without preemption, as a
/// feature and in result lines. The last is a function that `axsched` has under every policy.
const OTHER_WORDS: [(&str, &str); 3] = [("pbg_coop", "pbg"), ("pbg-coop", "pbg"), ("coop_of", "")];

macro_rules! names {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        [$(stringify!($module)),*]
    };
}
const NAMES: &[&str] = &for_each_policy!(names);

fn tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(tree().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the policies that the text names, as a feature, a module, a type or by the name alone.
fn named(text: &str) -> BTreeSet<&'static str> {
    let means = |text: String, (word, name): &(&str, &str)| text.replace(word, name);
    let text = OTHER_WORDS.iter().fold(text.to_owned(), means);
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let plain = words.map(|word| {
        let word = word.to_ascii_lowercase();
        let suffix = ["scheduler", "task"].into_iter();
        let stem = suffix.fold(&*word, |word, end| word.strip_suffix(end).unwrap_or(word));
        stem.to_owned()
    });
    let words: BTreeSet<String> = plain.collect();
    NAMES
        .iter()
        .copied()
        .filter(|name| words.contains(*name))
        .collect()
}

/// Returns true if all policies are named, or four of them within four lines: names that stand
/// together are a list, be it complete or not. Comments are for people and do not count.
fn is_list(text: &str) -> bool {
    let is_comment = |line: &&str| ["//", "#!", "# "].iter().any(|mark| line.starts_with(mark));
    let code: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !is_comment(line) && !line.is_empty())
        .map(|line| line.split(" // ").next().unwrap_or(line))
        .collect();
    let lines: Vec<_> = code.into_iter().map(named).collect();
    let union = |lines: &[BTreeSet<_>]| lines.iter().flatten().collect::<BTreeSet<_>>().len();
    let together = |from| union(&lines[from..lines.len().min(from + 4)]) >= 4;
    union(&lines) == NAMES.len() || (0..lines.len()).any(together)
}

/// Returns the places of the page's table.
fn places() -> Vec<String> {
    let page = read(PAGE);
    let section = page.split("\n## In the kit\n").nth(1).expect("a section");
    let rows = section
        .lines()
        .take_while(|line| !line.starts_with("## "))
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'));
    rows.map(|(path, _)| path.to_owned()).collect()
}

/// Returns a predicate that is true if a policy has the file of that name. A policy may have a crate
/// of its own in place of a file of `sched-policies`.
fn has_file(place: &str) -> impl Fn(&&'static str) -> bool {
    let crates = place.replace("sched-policies/src/<policy>.rs", "<policy>/src/lib.rs");
    let files = [place.to_owned(), crates];
    move |name| {
        let mut files = files.iter().map(|file| file.replace("<policy>", name));
        files.any(|file| tree().join(file).is_file())
    }
}

/// Returns all sources but those of the user's own apps. Golden files are no sources: a command
/// writes them.
fn sources() -> Vec<String> {
    let mut files = Vec::new();
    let roots = [
        ".github",
        "Cargo.toml",
        "Makefile",
        "apps/sched-tests",
        "arceos-0.8/old-names",
        "arceos-0.6/old-names",
        "examples",
        "modules",
        "scripts",
        "tests",
        "tools",
    ];
    let mut open: Vec<PathBuf> = roots.iter().map(PathBuf::from).collect();
    while let Some(path) = open.pop() {
        let at = tree().join(&path);
        let is_made = ["target", "corpus", "golden"]
            .iter()
            .any(|end| path.ends_with(end));
        if at.is_symlink() || is_made {
            continue;
        }
        if at.is_dir() {
            let entries = fs::read_dir(&at).unwrap().map(Result::unwrap);
            open.extend(entries.map(|entry| path.join(entry.file_name())));
        } else if path.extension().is_none_or(|end| end != "md") {
            files.push(path.to_str().unwrap().to_owned());
        }
    }
    assert!(files.len() > 100, "the tree is not where it was: {files:?}");
    files
}

#[test]
fn the_places_of_the_page_know_every_policy() {
    let places = places();
    assert!(places.len() >= 5, "{places:?}");
    let mut missing = Vec::new();
    for place in &places {
        let found = if place.contains("<policy>") {
            NAMES.iter().copied().filter(has_file(place)).collect()
        } else {
            named(&read(place))
        };
        let absent = NAMES.iter().filter(|name| !found.contains(*name));
        missing.extend(absent.map(|name| format!("{name} in {place}")));
    }
    assert!(missing.is_empty(), "missing: {}", missing.join(", "));
}

#[test]
fn no_other_place_has_a_list_of_policies() {
    let places = places();
    let is_place = |file: &str| places.iter().any(|place| place == file);
    let is_known = |file: &str| NO_LISTS.iter().any(|(known, _)| *known == file);
    let is_text_of = |file: &str, is: fn(&str) -> bool| {
        fs::read_to_string(tree().join(file)).is_ok_and(|text| is(&text))
    };
    let (lists, others): (Vec<_>, Vec<_>) = sources()
        .into_iter()
        .partition(|file| is_text_of(file, is_list));
    let more: Vec<_> = lists
        .iter()
        .filter(|file| !is_place(file) && !is_known(file))
        .collect();
    assert!(
        more.is_empty(),
        "{more:?}: let them read the list of policies, or {PAGE} name them"
    );
    let less: Vec<_> = others.iter().filter(|file| is_known(file)).collect();
    assert!(less.is_empty(), "no exceptions any more: {less:?}");
}

#[test]
fn a_list_is_known_as_one() {
    for list in [
        "policy: [sched_fifo, sched_rr, sched_cfs, stock_fifo, sched_pbg]",
        "files=(task fifo rr cfs/line\n  sjf pbg/mod)",
        "removes::<Fifo<T>>();\nremoves::<Rr<T, 5>>();\nremoves::<CfsTask>();\nSjfScheduler::new();",
    ] {
        assert!(is_list(list), "{list}");
    }
    for no_list in [
        "for policy in sched_cfs sched_sjf sched_rr; do",
        "// fifo rr cfs sjf mlfq pbg",
        "# fifo rr cfs sjf mlfq pbg",
        "fifo rr\n1\n2\n3\n4\ncfs sjf",
    ] {
        assert!(!is_list(no_list), "{no_list}");
    }
}

/// Each block of Rust in the page is a part of the example, to the letter.
#[test]
fn rust_in_the_page_is_from_the_tested_example() {
    let page = read(PAGE);
    let files = EXAMPLE.map(read);
    let blocks: Vec<_> = page.split("```rust\n").skip(1).collect();
    assert!(blocks.len() >= EXAMPLE.len(), "{} blocks", blocks.len());
    for block in blocks {
        let code = block.split("```").next().unwrap();
        let is_quoted = files.iter().any(|file| file.contains(code));
        assert!(is_quoted, "not in {EXAMPLE:?}:\n{code}");
    }
}
