//! Which CPUs a scheduler is of. A type, not a value: of one CPU nothing is left of it.

use alloc::sync::Arc;

use super::task::{PbgState, PbgTask};
use sched_core::queue::Queue;

/// The CPUs that share what a scheduler has.
pub trait Cpus {
    /// Whether there are several.
    const TOGETHER: bool = false;

    /// The one that acts.
    #[inline(always)]
    fn cpu() -> usize {
        0
    }

    /// Whether it may have this task.
    #[inline(always)]
    fn may_have<T>(_: &PbgTask<T>) -> bool {
        true
    }

    /// Whether another, which idles, has been asked to take this task.
    #[inline(always)]
    fn is_awaited_elsewhere<T>(_: &PbgTask<T>) -> bool {
        false
    }
}

/// Takes the first task that the CPU that acts may have, if there is one of those for whom nobody else
/// comes (PLACED in [`together`](super::together)).
#[inline(always)]
pub(super) fn first<T, M: Cpus>(queue: &mut Queue<T, PbgState>) -> Option<Arc<PbgTask<T>>> {
    if !M::TOGETHER {
        return queue.pop_front();
    }
    (queue.remove_first(|task| !M::is_awaited_elsewhere(task) && M::may_have(task)))
        .or_else(|| queue.remove_first(M::may_have))
}
