//! The line of each case, and the last line.

use std::{fmt, fs, path::Path, time::Duration};

/// The number of lines of a failed case's log that are shown.
const SHOWN: usize = 25;

/// The outcome of the cases so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed; a case may count several.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
}

impl Totals {
    /// Returns true if something passed and nothing failed.
    pub fn is_good(self) -> bool {
        self.passed > 0 && self.failed == 0
    }

    /// Counts one more case: the `tests` of one that passed, or a failure.
    pub(super) fn add(&mut self, tests: Option<usize>) {
        match tests {
            Some(tests) => self.passed += tests,
            None => self.failed += 1,
        }
    }
}

impl fmt::Display for Totals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)
    }
}

/// Returns a case's line: with its `tests` if it passed, with the end of its log if it failed.
pub(super) fn line(name: &str, tests: Option<usize>, took: Duration, log: &Path) -> String {
    let seconds = took.as_secs();
    match tests {
        Some(1) => format!("ok      {name} {seconds} s"),
        Some(tests) => format!("ok      {name} ({tests} tests) {seconds} s"),
        None => format!("not ok  {name} {seconds} s{}", tail(log)),
    }
}

fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<_> = text.lines().collect();
    let last = &lines[lines.len().saturating_sub(SHOWN)..];
    last.iter()
        .map(|line| format!("\n        | {line}"))
        .collect()
}

/// Returns the file name of a case's log, without its extension.
pub(super) fn file_name(case: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    case.replace(|c| !plain(c), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_are_good_if_something_passed_and_nothing_failed() {
        let totals = |passed, failed| Totals { passed, failed };
        assert!(totals(31, 0).is_good());
        assert!(!totals(0, 0).is_good() && !totals(31, 1).is_good());
    }

    #[test]
    fn failed_case_shows_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.log");
        let numbers: String = (0..100).map(|n| format!("line {n}\n")).collect();
        fs::write(&log, numbers).unwrap();
        let text = line("a: b", None, Duration::from_millis(2900), &log);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + SHOWN);
        assert_eq!(lines[0], "not ok  a: b 2 s");
        assert_eq!(lines[1], "        | line 75");
        assert_eq!(lines[SHOWN], "        | line 99");
    }

    #[test]
    fn logs_have_plain_names() {
        let name = file_name("make: a b, 2 % of c-d_e");
        assert_eq!(name, "make__a_b__2___of_c-d_e");
    }
}
