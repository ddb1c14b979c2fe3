//! The alias table for the policies of `axsched-ext`.

pub use axsched_ext::BaseScheduler;
use axsched_ext::coop::CoopState;
pub use axsched_ext::selected::NAME;
use axsched_ext::selected::{Scheduler, Task};

/// What `sched_coop` knows of a task, and is told by who runs coroutines on it; `None` under
/// every other policy, which the compiler knows.
#[inline(always)]
pub fn coop_of<T, S: 'static>(task: &axsched_ext::task::Task<T, S>) -> Option<&CoopState> {
    axsched_ext::coop::of(task)
}

/// What `axtask` asks for without a `sched-*` feature, or with `sched-fifo`.
pub type FifoTask<T> = Task<T>;
/// See [`FifoTask`].
pub type FifoScheduler<T> = Scheduler<T>;

/// What `axtask` asks for with `sched-rr`. The slice length is the policy's own
/// affair, so upstream's const parameter has no effect.
pub type RRTask<T, const S: usize> = Task<T>;
/// See [`RRTask`].
pub type RRScheduler<T, const S: usize> = Scheduler<T>;

/// What `axtask` asks for with `sched-cfs`.
pub type CFSTask<T> = Task<T>;
/// See [`CFSTask`].
pub type CFScheduler<T> = Scheduler<T>;
