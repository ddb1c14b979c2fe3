//! The yardstick: shortest remaining processing time (SRPT), if switching costs nothing.
//!
//! On one CPU no schedule has a lower average turnaround (Schrage, 1968), so a
//! measured average divided by this one says how far a policy is from the best.
//! On several CPUs it is what the same rule would reach, not a proven optimum.

use alloc::vec::Vec;

/// Returns the average turnaround, rounded down, of `jobs` under preemptive SRPT on `cpus` CPUs
/// with zero cost for scheduling. Each job is its submission and its run time. Ties go to the job
/// that comes first in `jobs`.
///
/// Takes time in O(n² log n), which suits the task counts of a test.
pub fn srpt_average_ns(jobs: &[(u64, u64)], cpus: usize) -> u64 {
    let mut left: Vec<u64> = jobs.iter().map(|&(_, run)| run).collect();
    let mut now = 0;
    let mut turnarounds: u128 = 0;
    loop {
        let unfinished = || (0..jobs.len()).filter(|&i| left[i] > 0);
        let next_submit = unfinished().map(|i| jobs[i].0).filter(|&at| at > now).min();
        let mut ready: Vec<_> = unfinished().filter(|&i| jobs[i].0 <= now).collect();
        ready.sort_by_key(|&i| left[i]);
        ready.truncate(cpus.max(1));

        let to_finish = ready.first().map(|&i| left[i]);
        let to_submit = next_submit.map(|at| at - now);
        let Some(step) = to_finish.into_iter().chain(to_submit).min() else {
            return (turnarounds / jobs.len().max(1) as u128) as u64;
        };
        now += step;
        for i in ready {
            left[i] -= step;
            if left[i] == 0 {
                turnarounds += u128::from(now - jobs[i].0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    /// Returns the least sum of turnarounds over every schedule in whole time units.
    fn brute_force(jobs: &[(u64, u64)], now: u64, left: &mut Vec<u64>) -> u64 {
        if left.iter().all(|&l| l == 0) {
            return 0;
        }
        let ready: Vec<_> = (0..jobs.len())
            .filter(|&i| left[i] > 0 && jobs[i].0 <= now)
            .collect();
        if ready.is_empty() {
            return brute_force(jobs, now + 1, left);
        }
        ready
            .into_iter()
            .map(|i| {
                left[i] -= 1;
                let done = if left[i] == 0 { now + 1 - jobs[i].0 } else { 0 };
                let rest = brute_force(jobs, now + 1, left);
                left[i] += 1;
                done + rest
            })
            .min()
            .unwrap()
    }

    #[test]
    fn no_schedule_is_better_on_one_cpu() {
        // Every pair of submissions 0..3 and runs 1..3, for up to three jobs.
        let shapes: Vec<_> = (0..4)
            .flat_map(|at| (1..4).map(move |run| (at, run)))
            .collect();
        for &a in &shapes {
            for &b in &shapes {
                for &c in &shapes {
                    for jobs in [vec![a], vec![a, b], vec![a, b, c]] {
                        let mut left = jobs.iter().map(|&(_, run)| run).collect();
                        let best = brute_force(&jobs, 0, &mut left) / jobs.len() as u64;
                        assert_eq!(srpt_average_ns(&jobs, 1), best, "{jobs:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_shorter_job_takes_over() {
        // The first job runs in 0..2 and 3..11, the second in 2..3. The turnarounds are 11 and 1.
        assert_eq!(srpt_average_ns(&[(0, 10), (2, 1)], 1), 6);
    }

    #[test]
    fn gaps_do_not_lengthen_turnarounds() {
        assert_eq!(srpt_average_ns(&[(1_000, 5), (0, 5)], 1), 5);
    }

    #[test]
    fn two_cpus_run_two_jobs() {
        assert_eq!(srpt_average_ns(&[(0, 6), (0, 6)], 2), 6);
        // The jobs of 1 and 2 units start. The job of 3 follows where that of 1 ended. They end at
        // 1, 2 and 4.
        assert_eq!(
            srpt_average_ns(&[(0, 3), (0, 2), (0, 1)], 2),
            (1 + 2 + 4) / 3
        );
    }

    #[test]
    fn nothing_to_do_takes_no_time() {
        assert_eq!(srpt_average_ns(&[], 1), 0);
        assert_eq!(srpt_average_ns(&[(5, 0)], 1), 0);
    }
}
