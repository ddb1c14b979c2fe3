//! A program at several spreads: averages over their bounds, over many runs.

use crate::quantiles::Quantiles;

/// Without a plan, in the order of tables.
pub const OTHERS: [&str; 2] = ["rr", "mlfq"];
pub const PLANNED: &str = "pbg";

/// One program on one architecture.
pub struct Curve {
    pub app: String,
    pub arch: String,
    pub seeds: u64,
    pub points: Vec<Point>,
}

/// At one spread.
pub struct Point {
    /// In %.
    pub spread: u32,
    /// Of [`OTHERS`], then of [`PLANNED`]: the runs' averages over their bounds.
    pub of_policies: Vec<Quantiles>,
    /// Of [`OTHERS`]: in how many of a hundred runs the plan was slower.
    pub behind_percent: Vec<f64>,
}
