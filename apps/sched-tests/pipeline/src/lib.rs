//! Four pipelines of different length, each of three tasks that wait for one another: a source
//! makes items, a filter works on each, and a sink takes them in. Between two stages is a bounded
//! buffer. A task that finds it empty, or full, is blocked until the other end has changed that. No
//! task yields or polls.
//!
//! | pipeline | items | source, filter, sink: work for an item, µs | together |
//! |---|--:|---|--:|
//! | p1 | 400 | 400, 1,600, 400 | 0.96 s |
//! | p2 | 800 | 50, 50, 100 | 0.16 s |
//! | p3 | 720 | 1,500, 300, 200 | 1.44 s |
//! | p4 | 1,600 | 100, 100, 100 | 0.48 s |
//!
//! A microsecond is 1,000 instructions. The table has the average work for an item. Each item has
//! between half and one and a half times as much, which differs from stage to stage and is the same
//! in each run. So the slowest stage is the filter in p1, the sink in p2 and the source in p3. In
//! p4 it changes from item to item.
//!
//! The pipelines do not depend on one another, so the policy decides which is done first. Within a
//! pipeline, a stage has as much to do as the others have left it. Each stage checks each item:
//! what it received, and what it made of it.
//!
//! `SCALE=n` divides the number of items, but leaves each pipeline at least one. It changes neither
//! the work for an item nor the buffers.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod buffer;

use alloc::{format, vec::Vec};

use sched_tests_common::{Task, work};

use buffer::bounded;

/// Rounds of the loop in a microsecond under icount.
const ROUNDS_US: u64 = 1_000 / work::INSTRUCTIONS_PER_ROUND;

/// The number of items that a buffer holds. With one, a stage is at most an item ahead of the next,
/// and waits for it at nearly each item.
const SLOTS: usize = 1;

/// The stages, in the order of an item's way, which is the order of their spawns.
const STAGES: [&str; 3] = ["source", "filter", "sink"];

#[derive(Clone, Copy)]
struct Pipeline {
    items: u64,
    /// The average work of each stage for an item, in microseconds.
    work_us: [u64; STAGES.len()],
}

const PIPELINES: [Pipeline; 4] = [
    Pipeline {
        items: 400,
        work_us: [400, 1_600, 400],
    },
    Pipeline {
        items: 800,
        work_us: [50, 50, 100],
    },
    Pipeline {
        items: 720,
        work_us: [1_500, 300, 200],
    },
    Pipeline {
        items: 1_600,
        work_us: [100, 100, 100],
    },
];

impl Pipeline {
    /// Returns the number of items if the program has a `scale`-th of its work.
    fn items_at(&self, scale: u64) -> u64 {
        (self.items / scale).max(1)
    }

    /// Returns the rounds of a stage for an item: between half and one and a half times its mean,
    /// in steps of a fifteenth.
    fn rounds(&self, stage: usize, item: u64) -> u64 {
        let fifteenths = work::jump(2 * item + 1, 1 + stage as u64) >> 60;
        self.work_us[stage] * ROUNDS_US * (15 + 2 * fifteenths) / 30
    }

    /// Returns the value of an item once its first `stages` stages are done.
    fn value(&self, item: u64, stages: usize) -> u64 {
        let rounds = (0..stages).map(|stage| self.rounds(stage, item)).sum();
        work::jump(seed(item), rounds)
    }
}

/// Returns the value of an item before its first stage.
const fn seed(item: u64) -> u64 {
    2 * item + 1
}

/// Returns the tasks: the stages of the first pipeline, then those of the second, and so on.
pub fn tasks(scale: u64) -> Vec<Task> {
    let pipelines = PIPELINES.iter().zip(1..);
    pipelines
        .flat_map(|(&pipeline, number)| stages(pipeline, number, scale))
        .collect()
}

fn stages(pipeline: Pipeline, number: usize, scale: u64) -> [Task; STAGES.len()] {
    let items = pipeline.items_at(scale);
    let (first_in, first_out) = bounded(SLOTS);
    let (second_in, second_out) = bounded(SLOTS);
    let mut ends = [
        (None, Some(first_in)),
        (Some(first_out), Some(second_in)),
        (Some(second_out), None),
    ]
    .into_iter();
    core::array::from_fn(|stage| {
        let (mut before, mut after) = ends.next().expect("a pair for each stage");
        Task::new(format!("p{number}-{}", STAGES[stage]), move |_| {
            let mut right = true;
            for item in 0..items {
                let received = match &mut before {
                    Some(before) => before.receive(),
                    None => seed(item),
                };
                right &= received == pipeline.value(item, stage);
                let made = work::spin(received, pipeline.rounds(stage, item));
                right &= made == pipeline.value(item, stage + 1);
                if let Some(after) = &mut after {
                    after.send(made);
                }
            }
            right
        })
        .yielding(0)
    })
}

#[cfg(test)]
mod tests {
    use sched_tests_common::{App, runner::run_phase};

    use super::*;

    fn passes(tasks: fn(u64) -> Vec<Task>) -> bool {
        let phase = run_phase(&App::new("test", tasks), "run");
        assert_eq!(phase.tasks.len(), PIPELINES.len() * STAGES.len());
        phase.pass
    }

    #[test]
    fn every_item_comes_out_right() {
        assert!(passes(|_| tasks(20)));
    }

    #[test]
    fn no_scale_leaves_a_pipeline_without_an_item() {
        assert_eq!(PIPELINES.map(|p| p.items_at(100)), [4, 8, 7, 16]);
        assert_eq!(PIPELINES.map(|p| p.items_at(u64::MAX)), [1; 4]);
        assert!(passes(|_| tasks(u64::MAX)));
    }

    #[test]
    fn an_item_has_half_to_one_and_a_half_times_the_work() {
        for pipeline in PIPELINES {
            for (stage, work_us) in pipeline.work_us.into_iter().enumerate() {
                let mean = work_us * ROUNDS_US;
                let rounds = (0..pipeline.items).map(|item| pipeline.rounds(stage, item));
                assert_eq!(rounds.clone().min(), Some(mean / 2));
                assert_eq!(rounds.clone().max(), Some(mean * 3 / 2));
                let found = rounds.sum::<u64>() / pipeline.items;
                assert!(found.abs_diff(mean) * 20 < mean, "{found} of {mean}");
            }
        }
    }

    #[test]
    fn a_stage_adds_its_rounds_to_the_item() {
        for pipeline in PIPELINES {
            for item in [0, 1, pipeline.items - 1] {
                assert_eq!(pipeline.value(item, 0), seed(item));
                for stage in 0..STAGES.len() {
                    let made =
                        work::jump(pipeline.value(item, stage), pipeline.rounds(stage, item));
                    assert_eq!(made, pipeline.value(item, stage + 1));
                }
            }
        }
    }

    #[test]
    fn each_pipeline_is_longer_than_the_next_shorter_one_by_half() {
        let mut totals = PIPELINES.map(|p| p.items * p.work_us.iter().sum::<u64>());
        totals.sort();
        assert_eq!(totals, [160_000, 480_000, 960_000, 1_440_000]);
    }
}
