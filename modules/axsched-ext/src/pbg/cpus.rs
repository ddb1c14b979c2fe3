//! Which CPUs a scheduler is of. A type, not a value: of one CPU nothing is left of it.

use alloc::sync::Arc;

use super::task::{PbgState, PbgTask};
use crate::queue::Queue;

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
}

/// Takes the first task that the CPU that acts may have.
#[inline(always)]
pub(super) fn first<T, M: Cpus>(queue: &mut Queue<T, PbgState>) -> Option<Arc<PbgTask<T>>> {
    match M::TOGETHER {
        true => queue.remove_first(M::may_have),
        false => queue.pop_front(),
    }
}
