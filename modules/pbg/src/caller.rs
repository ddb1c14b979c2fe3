//! The CPU that makes a call, and which ready tasks it may have.

use alloc::sync::Arc;

use sched_core::queue::Queue;

use super::task::{PbgState, PbgTask};

/// The CPU that makes a call.
pub trait Caller: Copy {
    /// Whether it is the only one, and may have all tasks: then nothing is left of the methods.
    const ALONE: bool = false;

    /// Its number, from 0.
    fn number(self) -> usize;

    /// Returns true if the CPU may have this task.
    fn may_have<T>(self, task: &PbgTask<T>) -> bool;

    /// Returns true if another CPU, which idles, was asked to take this task.
    fn is_awaited_elsewhere<T>(self, task: &PbgTask<T>) -> bool;
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
    fn is_awaited_elsewhere<T>(self, _: &PbgTask<T>) -> bool {
        false
    }
}

/// Takes the first task that this CPU may have: if possible one that no other CPU was asked to take.
#[inline(always)]
pub fn take_first<T, E: Caller>(queue: &mut Queue<T, PbgState>, by: E) -> Option<Arc<PbgTask<T>>> {
    if E::ALONE {
        return queue.pop_front();
    }
    let is_spare = |task: &PbgTask<T>| !by.is_awaited_elsewhere(task) && by.may_have(task);
    (queue.remove_first(is_spare)).or_else(|| queue.remove_first(|task| by.may_have(task)))
}
