//! The line: what was done, how fast, and what the server says of itself.

use std::time::Duration;

use serde::Serialize;

use crate::{arguments::Arguments, wire::Stats};

#[derive(Serialize)]
pub struct Figures {
    connections: usize,
    requests: usize,
    slow: usize,
    broken: usize,
    errors: usize,
    /// Counts the clients that are not slow, whose pace is the server's: a slow one's is its own, and
    /// a broken one waits.
    seconds: f64,
    requests_per_second: f64,
    latency_us: Latency,
    /// Cases of the RFCs that were answered as they should be, and the time to the end of their
    /// connections.
    cases: usize,
    to_end_us: Latency,
    used_bytes_before: u64,
    used_bytes_after: u64,
    /// The server's counters at the end.
    most_open: u64,
    refused: u64,
    timeouts: u64,
    broken_seen: u64,
}

#[derive(Debug, PartialEq, Serialize)]
struct Latency {
    mean: u64,
    p50: u64,
    p99: u64,
    max: u64,
}

impl Figures {
    pub fn new(
        arguments: &Arguments,
        took: Duration,
        latencies: Vec<Duration>,
        ends: Vec<Duration>,
        errors: usize,
        before: &Stats,
        after: &Stats,
    ) -> Self {
        let Arguments {
            connections,
            requests,
            slow,
            broken,
            ..
        } = *arguments;
        let seconds = took.as_secs_f64();
        // Without such a client there is no time, and no request.
        let per_second = latencies.len() as f64 / seconds.max(f64::MIN_POSITIVE);
        Self {
            connections,
            requests,
            slow,
            broken,
            errors,
            seconds: (seconds * 1000.0).round() / 1000.0,
            requests_per_second: (per_second * 10.0).round() / 10.0,
            latency_us: Latency::of(latencies),
            cases: ends.len(),
            to_end_us: Latency::of(ends),
            used_bytes_before: before.used_bytes,
            used_bytes_after: after.used_bytes,
            most_open: after.most,
            refused: after.refused,
            timeouts: after.timeouts,
            broken_seen: after.broken,
        }
    }
}

impl Latency {
    /// Quantiles are those of the nearest rank.
    fn of(mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        let us = |latency: &Duration| latency.as_micros() as u64;
        let count = latencies.len();
        let rank = |percent: usize| {
            let at = (count * percent).div_ceil(100).max(1) - 1;
            latencies.get(at).map_or(0, us)
        };
        let sum: u64 = latencies.iter().map(us).sum();
        let mean = sum.checked_div(count as u64).unwrap_or(0);
        Self {
            mean,
            p50: rank(50),
            p99: rank(99),
            max: rank(100),
        }
    }
}

#[test]
fn quantiles_are_of_the_nearest_rank() {
    let of = |latencies: &[u64]| {
        Latency::of(
            latencies
                .iter()
                .copied()
                .map(Duration::from_micros)
                .collect(),
        )
    };
    assert_eq!(
        of(&[]),
        Latency {
            mean: 0,
            p50: 0,
            p99: 0,
            max: 0
        }
    );
    assert_eq!(
        of(&[7]),
        Latency {
            mean: 7,
            p50: 7,
            p99: 7,
            max: 7
        }
    );
    let hundred: Vec<u64> = (1..=100).rev().collect();
    assert_eq!(
        of(&hundred),
        Latency {
            mean: 50,
            p50: 50,
            p99: 99,
            max: 100
        }
    );
}
