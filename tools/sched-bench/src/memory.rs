//! The sizes of a task and a queue.

use std::sync::Arc;

use axsched_ext::BaseScheduler;

use crate::machine::{Inner, Machine};

/// Number of ready tasks with which the heap is measured.
pub const READY: usize = 4_096;

/// Sizes in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sizes {
    /// The scheduler's part of a task, in every state.
    pub task: usize,
    /// The queue of a CPU on which one task runs, with what it has on the heap.
    pub queue: usize,
    /// The part of the heap that a ready task takes in addition, the mean of [`READY`].
    pub ready: f64,
}

/// Measures a scheduler. `heap` returns the number of allocated bytes.
pub fn of<W, S>(heap: fn() -> usize, made: fn() -> S, wrap: fn(Inner) -> W) -> Sizes
where
    S: BaseScheduler<SchedItem = Arc<W>>,
{
    let queue_on_heap = |tasks: usize| {
        let before = heap();
        let machine = Machine::new(made(), wrap, tasks);
        let all = heap() - before;
        drop(machine);
        all - tasks * size_of_handle::<W>()
    };
    let (one, many) = (queue_on_heap(1), queue_on_heap(1 + READY));
    Sizes {
        task: size_of::<W>() - size_of::<Inner>(),
        queue: size_of::<S>() + one,
        ready: (many as f64 - one as f64) / READY as f64,
    }
}

/// Returns the size that an `Arc` allocates: the task, and two counters.
const fn size_of_handle<W>() -> usize {
    size_of::<W>() + 2 * size_of::<usize>()
}
