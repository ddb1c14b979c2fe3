//! The lines of consoles.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, ensure};
use sched_tests_results::{ConnLine, Kind, ResultLine};

/// Returns the lines of all consoles, in their order.
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

/// Returns the lines of a console. Refuses a line whose requests, or whose known CPU time, do not add
/// up.
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

    #[test]
    fn requests_and_cpu_time_must_add_up() {
        let with = |change: fn(&mut ConnLine)| {
            let mut line = good();
            change(&mut line);
            line
        };
        for (line, expected) in [
            (good(), Ok(())),
            (with(|it| it.idle_ns = None), Ok(())),
            (
                with(|it| it.sent = 11),
                Err("11 requests were sent, and 10"),
            ),
            (with(|it| it.idle_ns = Some(298_000)), Err("and 998000 are")),
        ] {
            let found = console(&format!("booting\r\n{}\r\n", line.to_line()));
            match expected {
                Ok(()) => assert_eq!(found.unwrap(), [line]),
                Err(part) => assert_has(found.unwrap_err().to_string(), part),
            }
        }
    }
}
