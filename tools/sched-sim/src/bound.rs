//! Lower bounds of the average turnaround, whatever the policy.
//!
//! | jobs | CPUs | bound | proved by |
//! |---|---|---|---|
//! | any | 1 | shortest remaining processing time first, exact if none sleeps | Schrage, 1968 |
//! | all there at the start, none sleeps | m | shortest-first list, exact | Conway, Maxwell and Miller, 1967 |
//! | any | m | mean busy times (`busy_times`), or a rule above if that is higher: SRPT on one CPU m times as fast, or the list | Schulz and Skutella, 2002 |
//! | submitted by others at unknown times | m | the mean length | a job takes its length |
//!
//! A job's *length* is the time that it computes and sleeps. If the mean length is higher, it is
//! the bound. A job with an unknown time of submission adds its length. The bound of the others
//! still holds, because a schedule without that job is a schedule of the others.
//!
//! Switching costs nothing here, and waits for each other are left out, as neither makes an order
//! better. [`waiting`] has bounds that know them. The time that main computes between two jobs that it submits in one go is left out, too.

mod busy_times;
mod job;
pub mod waiting;

use std::{cmp::Reverse, collections::BinaryHeap};

pub use job::{Job, Step};

/// A lower bound of the average turnaround.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The lower bound of the average turnaround, in nanoseconds.
    pub average_ns: f64,
    /// The rule that gave the highest bound.
    pub kind: BoundKind,
}

/// The rule that a bound comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    /// Shortest remaining processing time first, on one CPU.
    Srpt,
    /// The shortest-first list, on several CPUs.
    ShortestFirst,
    /// Mean busy times, or the bound of an easier problem where that is higher.
    BusyTimes,
    /// The mean length of the jobs.
    Length,
}

impl BoundKind {
    /// Returns its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Srpt => "SRPT",
            Self::ShortestFirst => "shortest first",
            Self::BusyTimes => "mean busy times",
            Self::Length => "mean length",
        }
    }
}

/// Returns the best known bound. Takes O(n log n) for n jobs where a rule is exact, and some 10 ms
/// more otherwise (see `busy_times`).
pub fn bound(jobs: &[Job], cpus: usize) -> Bound {
    let (known, unknown): (Vec<_>, Vec<_>) = jobs
        .iter()
        .cloned()
        .partition(|job| job.submitted_ns.is_some());
    let lengths = |jobs: &[Job]| {
        let of = jobs.iter().map(|job| job.run_ns() + job.sleep_ns());
        of.sum::<u64>() as f64
    };
    let (kind, of_known) = sum(&known, cpus);
    let length = lengths(&known);
    let is_length = length > of_known || length == of_known && !unknown.is_empty();
    let (kind, sum) = match is_length {
        true => (BoundKind::Length, length),
        false => (kind, of_known),
    };
    Bound {
        average_ns: (sum + lengths(&unknown)) / jobs.len().max(1) as f64,
        kind,
    }
}

/// Returns a lower bound of the sum of turnarounds of jobs whose times of submission are known.
fn sum(jobs: &[Job], cpus: usize) -> (BoundKind, f64) {
    let computing = jobs.iter().map(|job| (job.submitted_at(), job.run_ns()));
    let computing: Vec<_> = computing.collect();
    if cpus <= 1 {
        return (BoundKind::Srpt, srpt_sum(&computing, 1));
    }
    let is_at_once = computing.iter().all(|job| job.0 == computing[0].0);
    let list = match is_at_once {
        true => list_sum(&computing, cpus),
        false => 0.0,
    };
    if is_at_once && jobs.iter().all(|job| job.sleep_ns() == 0) {
        return (BoundKind::ShortestFirst, list);
    }
    let fast = srpt_sum(&computing, cpus as u64);
    let sum = busy_times::sum(jobs, cpus).max(fast).max(list);
    (BoundKind::BusyTimes, sum)
}

/// Returns the sum of turnarounds under SRPT on one CPU that is `speed` times as fast.
fn srpt_sum(jobs: &[(u64, u64)], speed: u64) -> f64 {
    // Time in parts of a nanosecond keeps all numbers whole.
    let speed = u128::from(speed);
    let mut arrivals: Vec<_> = jobs
        .iter()
        .map(|&(at, run)| (u128::from(at) * speed, u128::from(run)))
        .collect();
    arrivals.sort_unstable();
    let mut arrivals = arrivals.into_iter().peekable();
    let mut ready = BinaryHeap::new();
    let (mut now, mut sum) = (0, 0_u128);
    loop {
        while let Some((at, run)) = arrivals.next_if(|job| job.0 <= now) {
            ready.push(Reverse((run, at)));
        }
        let next = arrivals.peek().map(|job| job.0);
        match (ready.pop(), next) {
            (Some(Reverse((left, at))), next) => {
                let end = now + left;
                match next {
                    Some(next) if next < end => {
                        ready.push(Reverse((end - next, at)));
                        now = next;
                    }
                    _ => {
                        now = end;
                        sum += end - at;
                    }
                }
            }
            (None, Some(next)) => now = next,
            (None, None) => return sum as f64 / speed as f64,
        }
    }
}

/// Returns the sum of turnarounds if each CPU that is free takes the shortest job that is left. All
/// are there at the start.
fn list_sum(jobs: &[(u64, u64)], cpus: usize) -> f64 {
    let mut lengths: Vec<u64> = jobs.iter().map(|job| job.1).collect();
    lengths.sort_unstable();
    let mut free: Vec<u64> = vec![0; cpus];
    let mut sum = 0.0;
    for (i, length) in lengths.into_iter().enumerate() {
        // In this order the CPUs become free in turn.
        let cpu = &mut free[i % cpus];
        *cpu += length;
        sum += *cpu as f64;
    }
    sum
}

#[cfg(test)]
mod tests;
