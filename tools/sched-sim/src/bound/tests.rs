//! Bounds, compared with every schedule of small jobs and with some schedules of larger ones.

use std::collections::HashMap;

use axsched_ext::conformance::loads::BATCH;
use proptest::prelude::*;

use super::*;

/// The progress of a job in a schedule in whole time units.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Progress {
    /// The time from which on it may compute.
    ready_at: u64,
    /// The steps that are left, the first one partly.
    steps: Vec<Step>,
}

impl Progress {
    /// Computes for a unit of time, and returns when it ends if that is known.
    fn run(&mut self, now: u64) -> Option<u64> {
        self.steps[0].run_ns -= 1;
        self.ready_at = now + 1;
        self.sleep()
    }

    /// Sleeps if it has nothing to compute before, and returns when it ends if that is known.
    fn sleep(&mut self) -> Option<u64> {
        while self.steps.first()?.run_ns == 0 {
            self.ready_at += self.steps.remove(0).sleep_ns;
            if self.steps.is_empty() {
                return Some(self.ready_at);
            }
        }
        None
    }
}

/// Returns the jobs at their start, and the sum of the turnarounds of those that compute nothing.
fn started(jobs: &[Job]) -> (Vec<Progress>, u64) {
    let mut sum = 0;
    let started = jobs.iter().map(|job| {
        let submitted = job.submitted_at();
        let mut progress = Progress {
            ready_at: submitted,
            steps: job.steps().collect(),
        };
        sum += progress.sleep().map_or(0, |end| end - submitted);
        progress
    });
    (started.collect(), sum)
}

/// Returns the least sum of turnarounds over every schedule in whole time units.
pub(super) fn least(jobs: &[Job], cpus: usize) -> u64 {
    let (progress, sum) = started(jobs);
    sum + least_from(jobs, cpus, 0, &progress, &mut HashMap::new())
}

fn least_from(
    jobs: &[Job],
    cpus: usize,
    now: u64,
    progress: &[Progress],
    known: &mut HashMap<(u64, Vec<Progress>), u64>,
) -> u64 {
    let left = || (0..jobs.len()).filter(|&i| !progress[i].steps.is_empty());
    let ready: Vec<usize> = left().filter(|&i| progress[i].ready_at <= now).collect();
    if ready.is_empty() {
        let next = left().map(|i| progress[i].ready_at).min();
        return next.map_or(0, |next| least_from(jobs, cpus, next, progress, known));
    }
    let key = (now, progress.to_vec());
    if let Some(&least) = known.get(&key) {
        return least;
    }
    // All sets of as many as there are CPUs for.
    let sets =
        (0_u32..1 << ready.len()).filter(|set| set.count_ones() as usize == cpus.min(ready.len()));
    let sums = sets.map(|set| {
        let mut progress = progress.to_vec();
        let run = (0..ready.len()).filter(|i| set >> i & 1 == 1);
        let ended = run.filter_map(|i| {
            let end = progress[ready[i]].run(now)?;
            Some(end - jobs[ready[i]].submitted_at())
        });
        ended.sum::<u64>() + least_from(jobs, cpus, now + 1, &progress, known)
    });
    let least = sums.min().expect("a set");
    known.insert(key, least);
    least
}

/// Returns the sum of turnarounds if the jobs with the least left to compute run.
fn listed(jobs: &[Job], cpus: usize) -> u64 {
    let (mut progress, mut sum) = started(jobs);
    let left = |progress: &Progress| -> u64 { progress.steps.iter().map(|s| s.run_ns).sum() };
    for now in 0.. {
        if progress.iter().all(|progress| progress.steps.is_empty()) {
            break;
        }
        let is_ready = |i: &usize| {
            let progress = &progress[*i];
            !progress.steps.is_empty() && progress.ready_at <= now
        };
        let mut ready: Vec<usize> = (0..jobs.len()).filter(is_ready).collect();
        ready.sort_by_key(|&i| left(&progress[i]));
        for &i in ready.iter().take(cpus) {
            let end = progress[i].run(now);
            sum += end.map_or(0, |end| end - jobs[i].submitted_at());
        }
    }
    sum
}

fn job(submitted_ns: u64, steps: &[(u64, u64)]) -> Job {
    let step = |&(run_ns, sleep_ns)| (1, Step { run_ns, sleep_ns });
    Job {
        submitted_ns: Some(submitted_ns),
        steps: steps.iter().map(step).collect(),
    }
}

/// Draws jobs that never sleep.
fn computing(latest: u64) -> impl Strategy<Value = Vec<Job>> {
    let job = (0..=latest, 1..4_u64).prop_map(|(at, run)| Job::computing(at, run));
    prop::collection::vec(job, 1..5)
}

pub(super) fn sleeping() -> impl Strategy<Value = Vec<Job>> {
    let steps = prop::collection::vec((0..4_u64, 0..3_u64), 1..4);
    let job = (0..6_u64, steps).prop_map(|(at, steps)| job(at, &steps));
    prop::collection::vec(job, 1..5)
}

/// Draws many jobs, of very different lengths.
fn crowd(jobs: usize) -> impl Strategy<Value = Vec<Job>> {
    let run = (0..6_u32, 1..4_u64).prop_map(|(log, run)| run << log);
    let steps = prop::collection::vec((run, 1..9_u64), 1..4);
    let at = prop_oneof![Just(0), 0..200_u64];
    let job = (at, steps).prop_map(|(at, mut steps)| {
        steps.last_mut().unwrap().1 = 0;
        job(at, &steps)
    });
    prop::collection::vec(job, jobs)
}

/// Returns the jobs with all times multiplied by `factor`.
pub(super) fn longer(jobs: &[Job], factor: u64) -> Vec<Job> {
    changed(jobs, |time| time * factor)
}

/// Returns the jobs with each time changed.
fn changed(jobs: &[Job], time: impl Fn(u64) -> u64) -> Vec<Job> {
    let step = |step: &Step| Step {
        run_ns: time(step.run_ns),
        sleep_ns: time(step.sleep_ns),
    };
    let job = |job: &Job| Job {
        submitted_ns: job.submitted_ns.map(&time),
        steps: job
            .steps
            .iter()
            .map(|(times, s)| (*times, step(s)))
            .collect(),
    };
    jobs.iter().map(job).collect()
}

/// Returns the bound of the sum of turnarounds.
fn found(jobs: &[Job], cpus: usize) -> f64 {
    bound(jobs, cpus).average_ns * jobs.len() as f64
}

/// Returns the bound by the rules that ignore sleeps and take several CPUs for one fast one.
fn easier(jobs: &[Job], cpus: usize) -> f64 {
    let computing = jobs.iter().map(|job| (job.submitted_at(), job.run_ns()));
    let length = jobs.iter().map(|job| job.run_ns() + job.sleep_ns());
    srpt_sum(&computing.collect::<Vec<_>>(), cpus as u64).max(length.sum::<u64>() as f64)
}

proptest! {
    #[test]
    fn on_one_cpu_it_is_the_least(jobs in computing(3)) {
        prop_assert_eq!(bound(&jobs, 1).kind, BoundKind::Srpt);
        prop_assert!((found(&jobs, 1) - least(&jobs, 1) as f64).abs() < 1e-6);
    }

    #[test]
    fn it_is_the_least_if_all_jobs_are_there_at_the_start(jobs in computing(0), cpus in 2..4_usize) {
        let least = least(&jobs, cpus) as f64;
        prop_assert_eq!(bound(&jobs, cpus).kind, BoundKind::ShortestFirst);
        prop_assert!((found(&jobs, cpus) - least).abs() < 1e-6);
    }

    #[test]
    fn mean_busy_times_find_the_least_on_one_cpu_if_all_jobs_are_there_at_the_start(jobs in computing(0)) {
        let least = least(&jobs, 1) as f64 * 1e6;
        let jobs = longer(&jobs, 1_000_000);
        let busy = busy_times::sum(&jobs, 1);
        prop_assert!(busy <= least && busy > least * 0.9999, "{busy}, not {least}");
        let fast = busy_times::sum_of_many(&jobs, 1);
        prop_assert!(fast <= least && fast > least * 0.9999, "{fast}, not {least}");
    }

    #[test]
    fn no_schedule_is_below_it(jobs in sleeping(), cpus in 1..4_usize) {
        let least = least(&jobs, cpus) as f64 * 1e6;
        let jobs = longer(&jobs, 1_000_000);
        let found = found(&jobs, cpus);
        prop_assert!(found <= least + 1e-3, "{found} > {least}");
        let busy = busy_times::sum(&jobs, cpus);
        prop_assert!(busy <= least, "{busy} > {least}");
        let fast = busy_times::sum_of_many(&jobs, cpus);
        prop_assert!(fast <= least, "{fast} > {least}");
    }

    #[test]
    fn no_schedule_is_below_it_if_some_arrivals_are_unknown(
        jobs in sleeping(), cpus in 1..4_usize, known in 0..16_usize,
    ) {
        let least = least(&jobs, cpus) as f64;
        let submitted = |i, job: &Job| job.submitted_ns.filter(|_| known >> i & 1 == 1);
        let less_is_known = jobs.iter().enumerate().map(|(i, job)| Job {
            submitted_ns: submitted(i, job),
            ..job.clone()
        });
        let found = found(&less_is_known.collect::<Vec<_>>(), cpus);
        prop_assert!(found <= least + 1e-6, "{found} > {least}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn it_is_no_lower_than_easier_bounds_and_near_a_schedule(jobs in crowd(30), cpus in 2..5_usize) {
        let listed = listed(&jobs, cpus) as f64 * 1e6;
        let jobs = longer(&jobs, 1_000_000);
        let found = found(&jobs, cpus);
        prop_assert!(found <= listed, "{found} > {listed}");
        // The other rules are as low as 0.67 of it.
        prop_assert!(found >= 0.9 * listed, "{found} of {listed}");
        prop_assert!(found >= easier(&jobs, cpus) - 1.0);
        prop_assert!(found >= busy_times::sum_of_many(&jobs, cpus) - 1.0);
    }
}

/// The bound of the app `batch`, whose waiting jobs sleep four times for 20 ms, is the same on all machines to the last
/// bit.
#[test]
fn schedule_of_batch_is_near_its_bound() {
    const MS: u64 = 1_000_000;
    let jobs = BATCH.map(|(run, sleeps, at)| match sleeps {
        true => {
            let mut steps = [(run * MS / 5, 20 * MS); 5];
            steps[4].1 = 0;
            job(at * MS, &steps)
        }
        false => Job::computing(at * MS, run * MS),
    });
    let found = [
        (2, 0x41b7_3631_7ccc_080a),
        (4, 0x41ab_9135_c6b6_c98e),
        (8, 0x41a4_af2a_619f_95a3),
    ];
    for (cpus, bits) in found {
        let bound = bound(&jobs, cpus);
        assert_eq!(bound.kind, BoundKind::BusyTimes);
        let in_tenths = changed(&jobs, |time| time / (MS / 10));
        let listed = listed(&in_tenths, cpus) as f64 * (MS / 10) as f64 / 32.0;
        let ratio = bound.average_ns / listed;
        assert!((0.97..1.0).contains(&ratio), "{cpus} CPUs: {ratio}");
        assert_eq!(bound.average_ns.to_bits(), bits, "{cpus} CPUs: {bound:?}");
    }
}

/// Mean busy times would divide the last of three among two CPUs.
#[test]
fn sleep_at_the_end_makes_it_no_lower() {
    let jobs = [[(1_000, 0)], [(1_000, 0)], [(1_000, 1)]].map(|steps| job(0, &steps));
    assert!(busy_times::sum(&jobs, 2) < 3_800.0);
    assert_eq!(found(&jobs, 2), 4_000.0);
}

/// Prices are not searched for this number of jobs.
#[test]
fn bound_of_thousands_of_jobs_is_above_the_easier_ones() {
    let job = |i: u64| Job::computing(i * 100_000, 1_000_000 << (i % 7));
    let jobs: Vec<Job> = (0..4_096).map(job).collect();
    for cpus in [8, 64] {
        let (found, easier) = (found(&jobs, cpus), easier(&jobs, cpus));
        assert!(found > easier, "{found}, not more than {easier}");
    }
}
