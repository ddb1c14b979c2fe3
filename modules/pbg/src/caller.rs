//! The CPU that makes a call, and the ready tasks that it may run.

use alloc::sync::Arc;

use sched_core::queue::Queue;

use super::task::{PbgState, PbgTask};

/// The CPU that makes a call.
pub trait Caller: Copy {
    /// True if it is the only CPU, and may run all tasks: then the methods compile to nothing.
    const ALONE: bool = false;

    /// Returns its number, from 0.
    fn number(self) -> usize;

    /// Returns true if the CPU may run this task.
    fn may_have<T>(self, task: &PbgTask<T>) -> bool;

    /// Returns true if the task is reserved for another CPU, which is idle.
    fn is_reserved_elsewhere<T>(self, task: &PbgTask<T>) -> bool;
}

/// The only CPU.
#[derive(Clone, Copy)]
pub struct Alone;

impl Caller for Alone {
    const ALONE: bool = true;

    #[inline(always)]
    fn number(self) -> usize {
        0
    }

    #[inline(always)]
    fn may_have<T>(self, _: &PbgTask<T>) -> bool {
        true
    }

    #[inline(always)]
    fn is_reserved_elsewhere<T>(self, _: &PbgTask<T>) -> bool {
        false
    }
}

/// Takes the first task that this CPU may run, if possible one that is not reserved for another
/// CPU.
#[inline(always)]
pub fn take_first<T, E: Caller>(queue: &mut Queue<T, PbgState>, by: E) -> Option<Arc<PbgTask<T>>> {
    if E::ALONE {
        return queue.pop_front();
    }
    let is_spare = |task: &PbgTask<T>| !by.is_reserved_elsewhere(task) && by.may_have(task);
    (queue.remove_first(is_spare)).or_else(|| queue.remove_first(|task| by.may_have(task)))
}
