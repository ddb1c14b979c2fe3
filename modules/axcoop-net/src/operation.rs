//! What all operations have in common: who waits, at which priority, and until when.

use core::future::Future;
use core::time::Duration;

use axcoop::Priority;

use crate::system::{self, now};

/// The blocking call of every asynchronous one.
pub trait Wait: Future + Sized {
    /// Blocks the calling thread until the operation is done.
    ///
    /// # Panics
    /// In a coroutine, which would stop all others of its worker: it awaits the operation.
    #[track_caller]
    fn wait(self) -> Self::Output {
        axcoop::assert_may_block("wait", "the operation");
        system::block_on(self)
    }
}

impl<F: Future> Wait for F {}

/// Until when somebody waits, and how urgently.
#[derive(Clone, Copy, Debug)]
#[doc(hidden)]
pub struct Terms {
    /// By [`now`]; `Duration::MAX` without an end.
    pub(crate) until: Duration,
    /// None is the caller's.
    pub(crate) at: Option<Priority>,
}

impl Terms {
    pub(crate) const NONE: Self = Self {
        until: Duration::MAX,
        at: None,
    };

    /// At which priority it is done. A coroutine's may change while it waits: then it is polled, and
    /// asks this again.
    pub(crate) fn priority(&self) -> Priority {
        let of_caller = || axcoop::current_priority().unwrap_or_default();
        self.at.unwrap_or_else(of_caller)
    }
}

/// What may be said of an operation before it begins.
pub trait Operation: Sized {
    #[doc(hidden)]
    fn terms(&mut self) -> &mut Terms;

    /// It fails with `TimedOut` when so much time has passed. It is seen in a round of the poller:
    /// up to [`Backoff::LONGEST`](crate::Backoff::LONGEST) and a tick late.
    #[must_use]
    fn within(mut self, time: Duration) -> Self {
        self.terms().until = now().checked_add(time).unwrap_or(Duration::MAX);
        self
    }

    /// It has this priority, 0 (first) to 7, and not that of the coroutine that polls it, with what is
    /// lent to that. What a thread waits for has 4.
    #[must_use]
    fn at(mut self, priority: u8) -> Self {
        self.terms().at = Some(Priority::new(priority.min(7).into()));
        self
    }
}
