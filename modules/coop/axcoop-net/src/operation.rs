//! The common part of all operations: the waiter, its priority and its deadline.

use core::future::Future;
use core::time::Duration;

use axcoop::Priority;

use crate::system::{self, now};

/// The blocking form of every future.
pub trait Wait: Future + Sized {
    /// Blocks the calling thread until the operation is done.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker: it awaits the operation.
    #[track_caller]
    fn wait(self) -> Self::Output {
        axcoop::assert_may_block("wait", "the operation");
        system::block_on(self)
    }
}

impl<F: Future> Wait for F {}

/// The deadline and the priority of a waiter.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Terms {
    /// The deadline in the time of [`now`], or `Duration::MAX` without one.
    pub(crate) until: Duration,
    /// The priority set with [`Operation::at`], or none for that of the caller.
    pub(crate) at: Option<Priority>,
}

impl Terms {
    pub(crate) const NONE: Self = Self {
        until: Duration::MAX,
        at: None,
    };

    /// Returns the priority of the operation. If that of its coroutine changes during a wait, the coroutine is polled
    /// and asks again.
    pub(crate) fn priority(&self) -> Priority {
        let of_caller = || axcoop::current_priority().unwrap_or_default();
        self.at.unwrap_or_else(of_caller)
    }
}

/// Settings of an operation that has not begun.
pub trait Operation: Sized {
    #[doc(hidden)]
    fn terms(&mut self) -> &mut Terms;

    /// Makes it fail with `TimedOut` after this time. A round of the poller sees that, up to
    /// [`Backoff::LONGEST`](crate::Backoff::LONGEST) and a tick late.
    #[must_use]
    fn within(mut self, time: Duration) -> Self {
        self.terms().until = now().checked_add(time).unwrap_or(Duration::MAX);
        self
    }

    /// Sets its priority, 0 (first) to 7, in place of the effective priority of the coroutine that polls it. That of
    /// a thread is 4.
    #[must_use]
    fn at(mut self, priority: u8) -> Self {
        self.terms().at = Some(Priority::new(priority.min(7).into()));
        self
    }
}
