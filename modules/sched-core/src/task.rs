//! The task wrapper: a task with its link and the policy's state of it.
//!
//! `axtask` stores every task as `Arc<Task<TaskInner, …>>` and never looks at the policy's part.
//! The links are inside, so queueing a task allocates nothing.
//!
//! **LOCK** (cited by every policy): a policy's per-task state is read and written only inside
//! scheduler calls. The run queue's spin lock orders those calls. A task that changes queues goes
//! through a word that the one CPU releases and the other acquires (`sched-smp`), or through the one
//! lock of all queues (PBG). So the state's atomics are all
//! `Relaxed`, and are updated by load and store without read-modify-write. They are atomics because
//! the wrapper is shared through `Arc`, not because two CPUs race.

use core::ops::Deref;
#[cfg(any(
    feature = "preempted_stay",
    all(feature = "balanced", target_arch = "riscv64")
))]
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use crate::link::Link;

/// The state of a task that a policy has not seen yet.
pub trait InitialState {
    /// The state of a new task. It is a constant, because `axtask` may build tasks in `const`
    /// context.
    const INITIAL: Self;
}

impl InitialState for () {
    const INITIAL: Self = ();
}

/// A task `T` together with a policy's state `S` of it.
pub struct Task<T, S> {
    inner: T,
    pub(crate) state: S,
    pub(crate) link: Link<Self>,
    /// STAYS, in the crate `sched-smp`: the task must run next on the CPU where it ran last.
    #[cfg(any(
        feature = "preempted_stay",
        all(feature = "balanced", target_arch = "riscv64")
    ))]
    stays: AtomicBool,
}

impl<T, S: InitialState> Task<T, S> {
    /// Wraps a task.
    pub const fn new(inner: T) -> Self {
        Self {
            inner,
            state: S::INITIAL,
            link: Link::new(),
            #[cfg(any(
                feature = "preempted_stay",
                all(feature = "balanced", target_arch = "riscv64")
            ))]
            stays: AtomicBool::new(false),
        }
    }
}

impl<T, S> Task<T, S> {
    /// Returns the wrapped task.
    pub const fn inner(&self) -> &T {
        &self.inner
    }

    /// Returns the policy's state of the task. The name is not `state`, which would hide the method
    /// that `axtask` has for its own.
    pub const fn policy_state(&self) -> &S {
        &self.state
    }

    /// Returns the link, for a layer that queues a task that is in no
    /// [`Queue`](crate::queue::Queue).
    ///
    /// # Safety
    /// The caller sets the link only while the task is in no queue, and sets it back to
    /// [`Link::APART`] before it hands the task on. A queue follows the links of its tasks.
    #[inline(always)]
    pub const unsafe fn link(&self) -> &Link<Self> {
        &self.link
    }

    /// Returns true if the task must run next where it ran last (STAYS).
    #[inline(always)]
    pub fn stays(&self) -> bool {
        #[cfg(any(
            feature = "preempted_stay",
            all(feature = "balanced", target_arch = "riscv64")
        ))]
        return self.stays.load(Relaxed);
        #[cfg(not(any(
            feature = "preempted_stay",
            all(feature = "balanced", target_arch = "riscv64")
        )))]
        false
    }

    /// Sets whether the task must run next where it ran last. Does nothing where no task has to
    /// stay.
    #[inline(always)]
    pub fn set_stays(&self, stays: bool) {
        #[cfg(any(
            feature = "preempted_stay",
            all(feature = "balanced", target_arch = "riscv64")
        ))]
        self.stays.store(stays, Relaxed);
        #[cfg(not(any(
            feature = "preempted_stay",
            all(feature = "balanced", target_arch = "riscv64")
        )))]
        let _ = stays;
    }
}

impl<T, S> Deref for Task<T, S> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}
