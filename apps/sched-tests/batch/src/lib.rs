//! The jobs of `batch` and `batch-at-once`: real work by well-kept libraries, in very different
//! lengths.
//!
//! | kind | jobs | a unit | what is checked, unit by unit |
//! |---|---|---|---|
//! | hash | 7 | SHA-256 of a page of 4 KiB (`sha2`) | the digest is the one that another program gave |
//! | compress | 7 | a page of text through LZ4 and back (`lz4_flex`) | it is the same page, and was less than half of it |
//! | sort | 6 | sorting 1,024 numbers (`core`) | they are in order, and the same numbers |
//! | parse | 6 | a JSON document to a tree and back (`serde_json`) | the sum of the numbers in the tree, and the text |
//! | multiply | 6 | (a·b)·v for matrices of 20 × 20 (`ndarray`) | it is a·(b·v), modulo 2⁶⁴ |
//!
//! There are 32 jobs. Their lengths are spread evenly on a logarithmic scale, from 5 to 640 ms
//! under instruction-counted time on x86_64. Each is 1.17 times as long as the next shorter one,
//! and together they take 4.4 s. The length of a job, its kind, its yields, its arrival and its
//! waits are independent of one another:
//!
//! - **Order.** The k-th job, from 0, has place 13 k + 5 modulo 32 among the lengths.
//! - **Kind.** Every fifth length has the same kind.
//! - **Yields.** The lengths fall into three groups by turns. The jobs of the first group yield
//!   after each unit, those of the second about once in a millisecond. Those of the third yield
//!   once in 20 ms, two timer ticks, or not at all if they are shorter.
//! - **Late arrivals.** Every fourth job arrives late. One is due every 200 ms from the start.
//! - **Waits.** Every fourth job waits four times for 20 ms, as for a device. The waits are spaced
//!   evenly, with at most one after a unit.
//!
//! `batch-at-once` has the same jobs without late arrivals and waits. The SRPT bound does not know
//! of waits, so no policy could reach it for a task that waits.
//!
//! Each job makes its input itself, from its number and piece by piece, and frees it again.
//! `SCALE=n` divides the units, the times of arrival and the waits, and keeps the chunks between
//! two yields. No job has less than one unit.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod jobs;

use alloc::{format, vec::Vec};
use core::time::Duration;

use sched_tests_common::Task;

use jobs::Kind::{self, *};

/// The number of waits of each job that waits.
const WAITS: u64 = 4;
/// The length of a wait.
const WAIT_NS: u64 = 20_000_000;

#[derive(Clone, Copy, Debug)]
struct Job {
    kind: Kind,
    units: u64,
    /// The units between two yields.
    chunk: u64,
    /// The time at which it arrives, since the start of the phase. 0 is before any job may start.
    due_ms: u64,
    waits: u64,
}

const fn job(kind: Kind, units: u64, chunk: u64) -> Job {
    Job {
        kind,
        units,
        chunk,
        due_ms: 0,
        waits: 0,
    }
}

impl Job {
    const fn due(self, due_ms: u64) -> Self {
        Self { due_ms, ..self }
    }

    const fn waiting(self) -> Self {
        Self {
            waits: WAITS,
            ..self
        }
    }

    /// Returns after how many of `units` the job waits again, if it has waited `waited` times.
    /// Returns `units` if it waits no more.
    const fn next_wait(&self, units: u64, waited: u64) -> u64 {
        if waited < self.waits {
            (units * (waited + 1)).div_ceil(self.waits + 1)
        } else {
            units
        }
    }
}

/// The jobs, with the time that each takes on x86_64.
#[rustfmt::skip] // one line for a job
const JOBS: [Job; 32] = [
    job(Hash, 48, 87),                      // 11 ms
    job(Parse, 780, 1).waiting(),           // 83 ms
    job(Compress, 3_400, 5),                // 647 ms
    job(Sort, 280, 1).due(200),             // 33 ms
    job(Hash, 1_100, 4),                    // 252 ms
    job(Compress, 67, 1).waiting(),         // 13 ms
    job(Multiply, 2_500, 26),               // 98 ms
    job(Hash, 22, 1).due(400),              // 5 ms
    job(Parse, 360, 9),                     // 38 ms
    job(Compress, 1_500, 100).waiting(),    // 285 ms
    job(Sort, 130, 9),                      // 15 ms
    job(Hash, 500, 87).due(600),            // 115 ms
    job(Compress, 31, 5),                   // 6 ms
    job(Multiply, 1_100, 510).waiting(),    // 43 ms
    job(Sort, 2_900, 1),                    // 338 ms
    job(Parse, 160, 190).due(800),          // 17 ms
    job(Compress, 700, 1),                  // 133 ms
    job(Sort, 59, 170).waiting(),           // 7 ms
    job(Hash, 230, 1),                      // 53 ms
    job(Parse, 3_800, 9).due(1_000),        // 405 ms
    job(Multiply, 520, 1),                  // 20 ms
    job(Sort, 1_300, 9).waiting(),          // 152 ms
    job(Parse, 75, 1),                      // 8 ms
    job(Compress, 320, 5).due(1_200),       // 61 ms
    job(Multiply, 12_000, 510),             // 469 ms
    job(Hash, 100, 4).waiting(),            // 23 ms
    job(Parse, 1_700, 190),                 // 181 ms
    job(Multiply, 240, 26).due(1_400),      // 9 ms
    job(Sort, 610, 170),                    // 71 ms
    job(Hash, 2_400, 1).waiting(),          // 550 ms
    job(Compress, 150, 100),                // 29 ms
    job(Multiply, 5_500, 1).due(1_600),     // 215 ms
];

/// Returns the jobs of `batch`, with late arrivals and waits.
pub fn tasks(scale: u64) -> Vec<Task> {
    tasks_of(JOBS, scale)
}

/// Returns the jobs of `batch-at-once`: all are there at the start, and none waits.
pub fn tasks_at_once(scale: u64) -> Vec<Task> {
    let at_once = |job| Job {
        due_ms: 0,
        waits: 0,
        ..job
    };
    tasks_of(JOBS.map(at_once), scale)
}

fn tasks_of(jobs: [Job; JOBS.len()], scale: u64) -> Vec<Task> {
    let tasks = jobs.iter().enumerate().map(|(place, job)| {
        let before = jobs[..place].iter();
        let number = 1 + before.filter(|other| other.kind == job.kind).count();
        task(
            &format!("{}{number}", job.kind.name()),
            place as u64,
            *job,
            scale,
        )
    });
    tasks.collect()
}

fn task(name: &str, seed: u64, job: Job, scale: u64) -> Task {
    let units = (job.units / scale).max(1);
    let wait = Duration::from_nanos(WAIT_NS / scale);
    Task::new(name, move |ctx| {
        let mut work = job.kind.begin(seed);
        let mut right = true;
        let mut waited = 0;
        let mut next_wait = job.next_wait(units, waited);
        for done in 1..=units {
            right &= work.unit();
            if done % job.chunk == 0 {
                ctx.yield_now();
            }
            // Later than at `next_wait` only if there are more waits than units.
            if done >= next_wait && done < units {
                waited += 1;
                next_wait = job.next_wait(units, waited);
                ctx.wait_io(wait);
            }
        }
        right
    })
    .arriving_at(job.due_ms * 1_000_000 / scale)
    .yielding(units / job.chunk)
}

#[cfg(test)]
mod tests {
    use sched_tests_common::{App, results::Question, runner::run_phase};

    use super::*;

    fn passes(tasks: fn(u64) -> Vec<Task>) -> bool {
        let phase = run_phase(
            &App {
                name: "test",
                question: Question::Ends,
                tasks,
                holds_handles: false,
                spawned_beside: 0,
            },
            "run",
        );
        assert_eq!(phase.tasks.len(), JOBS.len());
        phase.pass
    }

    #[test]
    fn the_jobs_come_out_right() {
        assert!(passes(|_| tasks(100)));
        assert!(passes(|_| tasks_at_once(100)));
    }

    #[test]
    fn no_scale_leaves_a_job_without_work() {
        assert!(passes(|_| tasks(1_000_000_000)));
    }

    #[test]
    fn some_arrive_late_and_some_wait() {
        let late: Vec<_> = JOBS
            .iter()
            .map(|job| job.due_ms)
            .filter(|&ms| ms > 0)
            .collect();
        assert_eq!(late.len(), 8);
        assert!(late.is_sorted());
        let waiting = JOBS.iter().filter(|job| job.waits > 0).count();
        assert_eq!(waiting, if WAITS > 0 { 8 } else { 0 });
    }

    #[test]
    fn waits_are_as_many_as_asked_for_and_at_even_distances() {
        let places = |units: u64, waits: u64| {
            let job = Job {
                waits,
                ..job(Hash, units, 1)
            };
            (0..=waits)
                .map(|waited| job.next_wait(units, waited))
                .collect::<Vec<_>>()
        };
        assert_eq!(places(100, 4), [20, 40, 60, 80, 100]);
        assert_eq!(places(59, 4), [12, 24, 36, 48, 59]);
        assert_eq!(places(100, 0), [100]);
        for units in [59, 67, 100, 780] {
            for waits in 0..59 {
                let places = places(units, waits);
                assert_eq!(places.len() as u64, waits + 1);
                let lengths = places.windows(2).map(|pair| pair[1] - pair[0]);
                let even = units / (waits + 1);
                assert!(lengths.into_iter().all(|n| (even..=even + 1).contains(&n)));
            }
        }
    }

    #[test]
    fn a_job_of_any_kind_yields_often_or_rarely() {
        for kind in [Hash, Compress, Sort, Parse, Multiply] {
            let chunks = JOBS.iter().filter(|j| j.kind == kind).map(|j| j.chunk);
            assert_eq!(chunks.clone().min(), Some(1), "{kind:?}");
            assert!(chunks.max() > Some(50), "{kind:?}");
        }
    }
}
