//! A line for each case, and the line at the end.

use std::{fmt, fs, path::Path, time::Duration};

/// How many lines of a failed case's log are shown.
const SHOWN: usize = 25;

/// What became of the cases so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Tests that passed; a case may count several.
    pub passed: usize,
    /// Cases that failed.
    pub failed: usize,
}

impl Totals {
    /// Whether all is well, and was asked at all.
    pub fn is_good(self) -> bool {
        self.passed > 0 && self.failed == 0
    }

    /// Counts one more case; `tests` of one that passed.
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

/// What is said of a case: `tests` of one that passed, the end of the log of one that failed.
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

/// The file name of a case's log, without its end.
pub(super) fn file_name(case: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    case.replace(|c| !plain(c), "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_that_passes_counts_its_tests_and_one_that_fails_is_one() {
        let mut totals = Totals::default();
        assert!(!totals.is_good(), "nothing was asked");
        totals.add(Some(1));
        totals.add(Some(30));
        assert!(totals.is_good());
        assert_eq!(totals.to_string(), "31 passed, 0 failed");
        totals.add(None);
        assert!(!totals.is_good());
        assert_eq!(totals.to_string(), "31 passed, 1 failed");
    }

    #[test]
    fn a_case_that_fails_shows_the_end_of_its_log() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("a.log");
        let numbers: String = (0..100).map(|n| format!("line {n}\n")).collect();
        fs::write(&log, numbers).unwrap();
        let took = Duration::from_millis(2900);
        let said = line("a: b", None, took, &log);
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines.len(), 1 + SHOWN);
        assert_eq!(lines[0], "not ok  a: b 2 s");
        assert_eq!(lines[1], "        | line 75");
        assert_eq!(lines[SHOWN], "        | line 99");
        assert_eq!(line("a: b", Some(1), took, &log), "ok      a: b 2 s");
        assert_eq!(
            line("a: b", Some(7), took, &log),
            "ok      a: b (7 tests) 2 s"
        );
    }

    #[test]
    fn logs_have_plain_names() {
        assert_eq!(
            file_name("make: a b, 2 % of c-d_e"),
            "make__a_b__2___of_c-d_e"
        );
    }
}
