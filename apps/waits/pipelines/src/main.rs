//! Four pipelines whose order by the slowest stage is not that by all work: which goes first?
//!
//! | pipeline | items | source, filter, sink: work for an item, µs | slowest stage | together |
//! |---|--:|---|--:|--:|
//! | `a` | 400 | 300, 300, 300 | 120 ms | 360 ms |
//! | `b` | 400 | 20, 680, 20 | 272 ms | 288 ms |
//! | `c` | 800 | 200, 200, 200 | 160 ms | 480 ms |
//! | `d` | 400 | 50, 900, 50 | 360 ms | 400 ms |
//!
//! A microsecond is 1,000 instructions. Between two stages is a buffer of one item. The average
//! turnaround is least if the pipelines go one after the other, the one with the least work of all
//! its stages first: `b`, `a`, `d`, `c`. Task by task, the shortest stages go first, and no
//! pipeline is done before the slowest stages are.
//!
//! `SCALE=n` divides the number of items, but leaves each pipeline at least one.

#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

#[path = "../../../sched-tests/pipeline/src/buffer.rs"]
mod buffer;

use alloc::{format, vec::Vec};

use buffer::bounded;
use sched_tests_common::{App, Task, run, work};

const APP: App = App::new("pipelines", tasks);

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    run(&APP);
}

/// Rounds of the loop in a microsecond under icount.
const ROUNDS_US: u64 = 1_000 / work::INSTRUCTIONS_PER_ROUND;

/// The name of a pipeline, its items, and the work of each stage for an item in microseconds.
const PIPELINES: [(&str, u64, [u64; 3]); 4] = [
    ("a", 400, [300, 300, 300]),
    ("b", 400, [20, 680, 20]),
    ("c", 800, [200, 200, 200]),
    ("d", 400, [50, 900, 50]),
];

fn tasks(scale: u64) -> Vec<Task> {
    let mut tasks = Vec::new();
    for (name, items, [source, filter, sink]) in PIPELINES {
        let items = (items / scale).max(1);
        let (mut first_in, mut first_out) = bounded(1);
        let (mut second_in, mut second_out) = bounded(1);
        tasks.push(stage(name, "source", items, move |item| {
            first_in.send(work::spin(item, source * ROUNDS_US));
            true
        }));
        tasks.push(stage(name, "filter", items, move |_| {
            second_in.send(work::spin(first_out.receive(), filter * ROUNDS_US));
            true
        }));
        tasks.push(stage(name, "sink", items, move |item| {
            let made = work::spin(second_out.receive(), sink * ROUNDS_US);
            made == work::jump(item, (source + filter + sink) * ROUNDS_US)
        }));
    }
    tasks
}

/// Returns the task of a stage, which handles each item and tells if it was right.
fn stage(
    pipeline: &str,
    stage: &str,
    items: u64,
    mut handle: impl FnMut(u64) -> bool + Send + 'static,
) -> Task {
    let body = move |_: &_| (1..=items).fold(true, |right, item| handle(item) & right);
    Task::new(format!("{pipeline}-{stage}"), body).yielding(0)
}

#[test]
fn every_item_comes_out_right() {
    let phase = sched_tests_common::runner::run_phase(&APP, "run");
    assert!(phase.pass, "{phase:?}");
}
