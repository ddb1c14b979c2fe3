//! The line of figures: the load, the speed, and the server's own counters.

use std::time::Duration;

use sched_tests_common::latencies::Latencies;
use serde::Serialize;

#[derive(Serialize)]
pub struct Figures {
    pub connections: usize,
    pub requests: usize,
    pub slow: usize,
    pub broken: usize,
    pub errors: usize,
    /// The time of the clients that are not slow: the server sets their pace. A slow client sets
    /// its own, and a broken one waits.
    pub seconds: f64,
    pub requests_per_second: f64,
    pub latency_us: Latency,
    /// Cases of the RFCs that were answered as they should be, and the time to the end of their
    /// connections.
    pub cases: usize,
    pub to_end_us: Latency,
    pub used_bytes_before: u64,
    pub used_bytes_after: u64,
    /// The server's counters at the end.
    pub most_open: u64,
    pub refused: u64,
    pub timeouts: u64,
    pub broken_seen: u64,
}

#[derive(Serialize)]
pub struct Latency {
    mean: u64,
    p50: u64,
    p99: u64,
    max: u64,
}

impl Latency {
    pub fn of(times: &[Duration]) -> Self {
        let ns = times.iter().map(|time| time.as_nanos() as u64);
        let all = Latencies::new(ns.collect());
        let us = |percent| all.percentile(percent) / 1_000;
        Self {
            mean: all.mean() / 1_000,
            p50: us(50),
            p99: us(99),
            max: us(100),
        }
    }
}

pub fn rounded(number: f64, decimals: i32) -> f64 {
    let unit = 10_f64.powi(decimals);
    (number * unit).round() / unit
}
