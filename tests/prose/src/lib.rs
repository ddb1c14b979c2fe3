//! Holds the language of the tree to the rules that a program can see.
//!
//! [`offences`] reads one file: comments and pages, string literals, names of functions and of
//! tests. [`text`] finds the passages of a file, and [`rules`] has the rules that they may break.
//! The test `tree` applies them to every file that git knows, and to the subjects of new commits.

pub mod links;
pub mod rules;
pub mod text;

use std::{fmt, process::Command};

use rules::Rule;

/// One place that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offence {
    /// The line, from 1.
    pub line: usize,
    /// The rule that is broken.
    pub rule: Rule,
    /// The words that break it.
    pub found: String,
}

impl fmt::Display for Offence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, rule, found } = self;
        write!(f, "{line}: `{found}`: {rule}")
    }
}

/// The folder of the offences that the tests of this crate expect.
const SAMPLES: &str = "tests/prose/tests/samples/";

/// Returns the offences of a file, by line.
///
/// The name of the file decides how it is read. A file without prose has no offences.
pub fn offences(path: &str, content: &str) -> Vec<Offence> {
    let mut all: Vec<_> = text::passages(path, content)
        .iter()
        .flat_map(rules::broken_by)
        .collect();
    all.sort_by_key(|offence| offence.line);
    all
}

/// Returns the rule that the subject of a commit breaks.
pub fn subject_offence(subject: &str) -> Option<Rule> {
    let (area, action) = subject.split_once(": ").unwrap_or_default();
    let is_area = !area.is_empty() && area.chars().all(|c| !c.is_uppercase());
    let is_action = action.starts_with(|c: char| c.is_lowercase());
    let fits = subject.chars().count() <= 72;
    (!(is_area && is_action && fits)).then_some(Rule::Commit)
}

/// Returns the files below `root` that git knows and that have prose, by name.
///
/// # Panics
///
/// Panics if git cannot list them.
pub fn files(root: &str) -> Vec<String> {
    let list = Command::new("git").args(["-C", root, "ls-files"]).output();
    let list = list.expect("git lists the files of its tree");
    assert!(list.status.success(), "git ls-files: {}", list.status);
    let list = String::from_utf8(list.stdout).expect("names of files are UTF-8");
    let files = list.lines().filter(|path| !path.starts_with(SAMPLES));
    files
        .filter(|path| text::Form::of(path).is_some())
        .map(str::to_owned)
        .collect()
}
