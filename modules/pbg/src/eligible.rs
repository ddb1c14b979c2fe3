//! Which ready tasks a CPU may have.

use alloc::sync::Arc;

use sched_core::queue::Queue;

use super::task::{PbgState, PbgTask};

/// What a CPU may have of the ready tasks.
pub trait Eligible: Copy {
    /// Returns true if the CPU may have this task.
    fn may_have<T>(self, task: &PbgTask<T>) -> bool;

    /// Returns true if another CPU, which idles, was asked to take this task.
    fn is_awaited_elsewhere<T>(self, task: &PbgTask<T>) -> bool;

    /// Whether it may have all, and the two methods say so: then nothing is left of them.
    const ALL: bool = false;
}

/// With one CPU: all of them.
#[derive(Clone, Copy)]
pub struct Everything;

impl Eligible for Everything {
    const ALL: bool = true;

    #[inline(always)]
    fn may_have<T>(self, _: &PbgTask<T>) -> bool {
        true
    }

    #[inline(always)]
    fn is_awaited_elsewhere<T>(self, _: &PbgTask<T>) -> bool {
        false
    }
}

/// Takes the first eligible task: if possible one that no other CPU was asked to take.
#[inline(always)]
pub fn take_first<T, E: Eligible>(
    queue: &mut Queue<T, PbgState>,
    eligible: E,
) -> Option<Arc<PbgTask<T>>> {
    if E::ALL {
        return queue.pop_front();
    }
    let is_spare = |task: &PbgTask<T>| !eligible.is_awaited_elsewhere(task) && eligible.may_have(task);
    (queue.remove_first(is_spare)).or_else(|| queue.remove_first(|task| eligible.may_have(task)))
}
