//! How low an average turnaround can be at all, whatever the policy.
//!
//! | jobs | CPUs | bound | who proved it |
//! |---|---|---|---|
//! | any | 1 | shortest remaining processing time first, exact where nobody waits | Schrage, 1968 |
//! | all there at the start | m | shortest-first list, exact where nobody waits | Conway, Maxwell and Miller, 1967 |
//! | spawned by others, nobody knows when | m | the mean length | a job takes its length |
//! | any | m | the larger of that rule on one CPU m times as fast, and the mean length | a job takes its length |
//!
//! Switching costs nothing here, and waiting is left out: with it no order is better.

use std::{cmp::Reverse, collections::BinaryHeap};

/// A lower bound of the average turnaround.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// In nanoseconds.
    pub average_ns: f64,
    /// Which one it is.
    pub kind: BoundKind,
}

/// Which bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundKind {
    /// Shortest remaining processing time first, on one CPU.
    Srpt,
    /// Shortest-first list, on several.
    ShortestFirst,
    /// SRPT on one CPU that is as fast as all together, or the mean length.
    FastCpu,
    /// The mean length.
    Length,
}

impl BoundKind {
    /// As a table calls it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Srpt => "SRPT",
            Self::ShortestFirst => "shortest first",
            Self::FastCpu => "SRPT on one CPU that fast",
            Self::Length => "mean length",
        }
    }
}

/// The best bound known for `jobs` = (submission, time on a CPU) in nanoseconds. Takes
/// O(n log n).
pub fn bound(jobs: &[(u64, u64)], cpus: usize) -> Bound {
    let n = jobs.len().max(1) as f64;
    if cpus <= 1 {
        let average_ns = srpt_sum(jobs, 1) / n;
        return Bound {
            average_ns,
            kind: BoundKind::Srpt,
        };
    }
    if jobs.iter().all(|job| job.0 == jobs[0].0) {
        let average_ns = list_sum(jobs, cpus) / n;
        return Bound {
            average_ns,
            kind: BoundKind::ShortestFirst,
        };
    }
    let mean = jobs.iter().map(|job| job.1 as f64).sum::<f64>() / n;
    Bound {
        average_ns: (srpt_sum(jobs, cpus as u64) / n).max(mean),
        kind: BoundKind::FastCpu,
    }
}

/// The same, of jobs that may not be submitted at the times that are said: then their lengths
/// are all that is known.
pub fn of_jobs(jobs: &[(u64, u64)], cpus: usize, are_times_known: bool) -> Bound {
    if are_times_known {
        return bound(jobs, cpus);
    }
    let sum: f64 = jobs.iter().map(|job| job.1 as f64).sum();
    Bound {
        average_ns: sum / jobs.len().max(1) as f64,
        kind: BoundKind::Length,
    }
}

/// The sum of turnarounds under SRPT on one CPU that is `speed` times as fast.
fn srpt_sum(jobs: &[(u64, u64)], speed: u64) -> f64 {
    // Time in parts of a nanosecond, so that all stays whole.
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

/// The sum of turnarounds if each CPU that is free takes the shortest that is left; all are
/// there at the start.
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The least sum of turnarounds over every schedule in whole time units.
    fn least(jobs: &[(u64, u64)], cpus: usize, now: u64, left: &mut Vec<u64>) -> u64 {
        let ready: Vec<usize> = (0..jobs.len())
            .filter(|&i| left[i] > 0 && jobs[i].0 <= now)
            .collect();
        if ready.is_empty() {
            let next = (0..jobs.len())
                .filter(|&i| left[i] > 0)
                .map(|i| jobs[i].0)
                .min();
            return next.map_or(0, |next| least(jobs, cpus, next, left));
        }
        // All sets of as many as there are CPUs for.
        let sets = (0_u32..1 << ready.len())
            .filter(|set| set.count_ones() as usize == cpus.min(ready.len()));
        let mut best = u64::MAX;
        for set in sets {
            let run: Vec<usize> = (0..ready.len())
                .filter(|i| set >> i & 1 == 1)
                .map(|i| ready[i])
                .collect();
            let mut ended = 0;
            for &i in &run {
                left[i] -= 1;
                if left[i] == 0 {
                    ended += now + 1 - jobs[i].0;
                }
            }
            best = best.min(ended + least(jobs, cpus, now + 1, left));
            for &i in &run {
                left[i] += 1;
            }
        }
        best
    }

    fn jobs(arrivals: bool) -> impl Strategy<Value = Vec<(u64, u64)>> {
        let at = if arrivals { 0..4_u64 } else { 0..1 };
        prop::collection::vec((at, 1..4_u64), 1..5)
    }

    proptest! {
        #[test]
        fn on_one_cpu_it_is_the_least(jobs in jobs(true)) {
            let least = least(&jobs, 1, 0, &mut jobs.iter().map(|job| job.1).collect());
            let found = bound(&jobs, 1);
            prop_assert_eq!(found.kind, BoundKind::Srpt);
            prop_assert!((found.average_ns * jobs.len() as f64 - least as f64).abs() < 1e-6);
        }

        #[test]
        fn of_those_that_are_all_there_it_is_the_least(jobs in jobs(false), cpus in 2..4_usize) {
            let least = least(&jobs, cpus, 0, &mut jobs.iter().map(|job| job.1).collect());
            let found = bound(&jobs, cpus);
            prop_assert_eq!(found.kind, BoundKind::ShortestFirst);
            prop_assert!((found.average_ns * jobs.len() as f64 - least as f64).abs() < 1e-6);
        }

        #[test]
        fn nothing_is_below_it(jobs in jobs(true), cpus in 2..4_usize) {
            let least = least(&jobs, cpus, 0, &mut jobs.iter().map(|job| job.1).collect());
            let found = bound(&jobs, cpus).average_ns * jobs.len() as f64;
            prop_assert!(found <= least as f64 + 1e-6, "{found} > {least}");
            prop_assert!(found > 0.0);
        }
    }
}
