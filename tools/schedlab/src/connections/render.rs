//! The table of coroutines beside threads, and the CSV.

use std::fmt::Write;

use anyhow::Result;
use sched_tests_results::ConnLine;

use crate::{distinct::distinct, grid};

/// The two combinations that are compared: coroutines and threads.
const SIDES: [&str; 2] = ["kcuc", "ut"];

const TITLES: [&str; 7] = [
    ">connections",
    ">kcuc, answers/s",
    ">ut",
    ">kcuc/ut",
    ">kcuc, mean us",
    ">ut",
    ">ut/kcuc",
];

/// Returns a table for each guest and load, by the number of connections, with both sides and the
/// ratio.
pub fn text(lines: &[ConnLine]) -> String {
    let mut text = String::new();
    let of_all = || lines.iter().filter(|line| line.priority.is_none());
    let tables = distinct(of_all().map(|line| (&line.context, &line.timing)));
    for (context, timing) in tables {
        let here = || of_all().filter(|line| (&line.context, &line.timing) == (context, timing));
        let mut rows = Vec::new();
        for connections in distinct(here().map(|line| line.connections)) {
            let side = |name| {
                here().find(|line| line.connections == connections && line.combination == name)
            };
            let [Some(coroutines), Some(threads)] = SIDES.map(side) else {
                continue;
            };
            let both = [coroutines, threads];
            let [rates, means] =
                [rate as fn(&ConnLine) -> Option<f64>, mean_us].map(|figure| both.map(figure));
            let shown = |of: [Option<f64>; 2], decimals: usize, over: [usize; 2]| {
                let one = |value: Option<f64>| {
                    value.map_or("no memory".into(), |value| format!("{value:.decimals$}"))
                };
                let ratio = of[over[0]].zip(of[over[1]]);
                let ratio = ratio.map_or("-".into(), |(one, other)| format!("{:.3}", one / other));
                [one(of[0]), one(of[1]), ratio]
            };
            let mut row = vec![connections.to_string()];
            row.extend(shown(rates, 0, [0, 1]));
            row.extend(shown(means, 1, [1, 0]));
            rows.push(row);
        }
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(
            text,
            "{} on {}, SMP={}, {timing} time, {}\n\n{}",
            context.sched,
            context.arch,
            context.smp,
            context.phase,
            grid::text(&TITLES, rows, grid::WIDE)
        );
    }
    text
}

/// Returns the answers a second; `None` if there was no memory.
fn rate(line: &ConnLine) -> Option<f64> {
    (!line.out_of_memory).then(|| line.answered as f64 * 1e9 / line.window_ns as f64)
}

/// Returns the mean latency; `None` if there was no answer.
fn mean_us(line: &ConnLine) -> Option<f64> {
    (line.answered + line.late > 0).then_some(line.mean_ns as f64 / 1_000.0)
}

/// Returns the figures that the page shows, one a line. A figure has no value if there was no
/// memory for it, or no answer.
pub fn csv(lines: &[ConnLine]) -> Result<String> {
    let titles = [
        "arch",
        "scheduler",
        "phase",
        "combination",
        "connections",
        "priority",
        "figure",
        "value",
    ];
    let rows = |line: &ConnLine| {
        let context = &line.context;
        let cell = [
            context.arch.clone(),
            context.sched.clone(),
            context.phase.clone(),
            line.combination.clone(),
            line.connections.to_string(),
            line.priority.map_or("all".into(), |one| one.to_string()),
        ];
        let row = move |(figure, value): (&str, Option<String>)| {
            let figure = [figure.to_owned(), value.unwrap_or_default()];
            cell.clone().into_iter().chain(figure)
        };
        figures(line).into_iter().map(row)
    };
    grid::csv(titles, lines.iter().flat_map(rows))
}

/// Returns the figures of a line, as they are written.
fn figures(line: &ConnLine) -> Vec<(&'static str, Option<String>)> {
    let served = (!line.out_of_memory).then_some(());
    let whole = |value: u64| served.map(|()| value.to_string());
    let one = |value: Option<f64>| value.map(|value| format!("{value:.1}"));
    let mut figures = vec![("mean us", one(mean_us(line)))];
    if line.priority.is_some() {
        figures.push(("answered", whole(line.answered)));
        return figures;
    }
    let connections = line.connections.max(1) as u64;
    figures.extend([
        ("started", Some(line.started.to_string())),
        ("answers/s", one(rate(line))),
        ("lost", whole(line.lost)),
        ("bytes/connection", whole(line.peak_bytes / connections)),
    ]);
    if let (Some(idle), Some(components), Some(rest)) =
        (line.idle_ns, line.components_ns, line.rest_ns)
    {
        let percent = idle as f64 * 100.0 / line.window_ns as f64;
        figures.push(("idle %", served.map(|()| format!("{percent:.2}"))));
        let busy = (components + rest).checked_div(line.answered);
        figures.push(("ns/answer", served.and(busy.map(|ns| ns.to_string()))));
    }
    figures
}

#[cfg(test)]
mod tests {
    use sched_tests_results::Context;

    use super::*;
    use crate::testing::assert_golden;

    fn line(combination: &str, answered: u64, mean_ns: u64) -> ConnLine {
        ConnLine {
            context: Context {
                app: "connections".into(),
                arch: "x86_64".into(),
                smp: 1,
                sched: "fifo".into(),
                phase: "full".into(),
            },
            timing: "icount".into(),
            scale: 1,
            combination: combination.into(),
            connections: 64,
            rounds: 1,
            started: 64,
            window_ns: 1_000_000_000,
            sent: answered,
            answered,
            mean_ns,
            peak_bytes: 64_000,
            ..ConnLine::default()
        }
    }

    /// The lines are both sides at one load, one side that ran out of memory at another, and one
    /// priority.
    #[test]
    fn lines_become_a_table_and_csv() {
        let more = |combination, answered, mean_ns| ConnLine {
            connections: 1_024,
            ..line(combination, answered, mean_ns)
        };
        let lines = [
            line("kcuc", 60_000, 16_500),
            line("ut", 50_000, 19_800),
            more("kcuc", 50_000, 18_000),
            ConnLine {
                started: 800,
                out_of_memory: true,
                peak_bytes: 0,
                ..more("ut", 0, 0)
            },
            ConnLine {
                priority: Some(0),
                ..line("kcuc", 10, 1_174_200)
            },
        ];
        let csv = csv(&lines).unwrap();
        assert_golden("connections.txt", format!("{}{csv}", text(&lines)));
    }
}
