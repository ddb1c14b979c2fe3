//! The alias table for the policies of `axsched-ext`.

pub use axsched_ext::BaseScheduler;
use axsched_ext::coop::CoopState;
pub use axsched_ext::selected::NAME;
use axsched_ext::selected::{Scheduler, Task};

/// Returns the state that `sched_coop` keeps of a task, and that a coroutine worker on it sets.
///
/// Returns `None` under every other policy. The compiler knows which policy it is, so the call then
/// costs nothing.
#[inline(always)]
pub fn coop_of<T, S: 'static>(task: &axsched_ext::task::Task<T, S>) -> Option<&CoopState> {
    axsched_ext::coop::of(task)
}

/// The task that `axtask` uses without a `sched-*` feature, or with `sched-fifo`.
pub type FifoTask<T> = Task<T>;
/// The scheduler that `axtask` uses without a `sched-*` feature, or with `sched-fifo`.
pub type FifoScheduler<T> = Scheduler<T>;

/// The task that `axtask` uses with `sched-rr`. The policy chooses the length of a slice itself, so
/// upstream's const parameter has no effect.
pub type RRTask<T, const S: usize> = Task<T>;
/// The scheduler that `axtask` uses with `sched-rr`.
pub type RRScheduler<T, const S: usize> = Scheduler<T>;

/// The task that `axtask` uses with `sched-cfs`.
pub type CFSTask<T> = Task<T>;
/// The scheduler that `axtask` uses with `sched-cfs`.
pub type CFScheduler<T> = Scheduler<T>;
