//! The lines of consoles.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use sched_tests_results::{ConnLine, Kind, ResultLine};

/// Those of all, in their order.
pub fn consoles(paths: &[PathBuf]) -> Result<Vec<ConnLine>> {
    let mut all = Vec::new();
    for path in paths {
        let of = || path.display().to_string();
        let lines = console(&fs::read_to_string(path).with_context(of)?).with_context(of)?;
        ensure!(
            !lines.is_empty(),
            "{}: expected SCHED-CONN lines, found none",
            of()
        );
        all.extend(lines);
    }
    Ok(all)
}

/// Each is accounted for: requests, and the CPU's time where it is known.
fn console(text: &str) -> Result<Vec<ConnLine>> {
    let mut lines = Vec::new();
    for line in text.lines() {
        let Some((Kind::Conn, json)) = Kind::split(line.trim_end()) else {
            continue;
        };
        let line = ConnLine::from_json(json)?;
        let sum = line.answered + line.late + line.lost + line.unanswered;
        ensure!(
            sum == line.sent,
            "{} of {} connections: {} requests were sent, and {sum} are accounted for",
            line.combination,
            line.connections,
            line.sent
        );
        let parts = [
            line.components_ns,
            line.client_ns,
            line.rest_ns,
            line.idle_ns,
        ];
        if let Some(sum) = parts.into_iter().sum::<Option<u64>>() {
            ensure!(
                sum.abs_diff(line.window_ns) <= line.window_ns / 1_000,
                "{} of {} connections: {} ns of CPU time, and {sum} are accounted for",
                line.combination,
                line.connections,
                line.window_ns
            );
        }
        lines.push(line);
    }
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    fn good() -> ConnLine {
        ConnLine {
            sent: 10,
            answered: 6,
            late: 1,
            lost: 2,
            unanswered: 1,
            window_ns: 1_000_000,
            components_ns: Some(500_000),
            client_ns: Some(100_000),
            rest_ns: Some(100_000),
            idle_ns: Some(300_000),
            ..ConnLine::default()
        }
    }

    fn read(line: &ConnLine) -> Result<Vec<ConnLine>> {
        console(&format!("booting\r\n{}\r\n", line.to_line()))
    }

    #[test]
    fn a_line_whose_sums_hold_is_read() {
        assert_eq!(read(&good()).unwrap(), [good()]);
        let on_several = ConnLine {
            idle_ns: None,
            ..good()
        };
        assert_eq!(read(&on_several).unwrap().len(), 1);
    }

    #[test]
    fn a_request_that_nobody_counted_is_noticed() {
        let line = ConnLine { sent: 11, ..good() };
        let why = read(&line).unwrap_err().to_string();
        assert_has(&why, "11 requests were sent, and 10");
    }

    #[test]
    fn time_that_is_nobodys_is_noticed() {
        let line = ConnLine {
            idle_ns: Some(298_000),
            ..good()
        };
        let why = read(&line).unwrap_err().to_string();
        assert_has(&why, "and 998000 are");
    }
}
