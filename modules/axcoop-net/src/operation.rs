//! What all operations have in common: who waits, at which priority, and until when.

use core::future::Future;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use core::time::Duration;

use crate::system::{self, now};

/// The blocking call of every asynchronous one.
pub trait Wait: Future + Sized {
    /// Blocks the calling thread until the operation is done. Not for a coroutine: it would stall
    /// all others that its worker serves.
    fn wait(self) -> Self::Output {
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
    pub(crate) priority: u8,
}

impl Terms {
    pub(crate) fn of_caller() -> Self {
        let known = CALLER_PRIORITY.load(Relaxed);
        let priority = if known == 0 {
            DEFAULT_PRIORITY
        } else {
            // SAFETY: only `set_caller_priority` writes there, such a function.
            let of_caller = unsafe { core::mem::transmute::<usize, fn() -> u8>(known) };
            of_caller().min(7)
        };
        Self {
            until: Duration::MAX,
            priority,
        }
    }
}

/// Whose priority nobody knows is in the middle.
const DEFAULT_PRIORITY: u8 = 4;

/// A `fn() -> u8`, or nothing.
static CALLER_PRIORITY: AtomicUsize = AtomicUsize::new(0);

/// From now on an operation has the priority that this function tells of who begins it, 0 (the most
/// urgent) to 7, if it is given no other by [`Operation::at`]. Without this call it is 4.
pub fn set_caller_priority(of_caller: fn() -> u8) {
    CALLER_PRIORITY.store(of_caller as usize, Relaxed);
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

    /// Of those who become ready at a time, this one is woken at this priority: 0 (first) to 7.
    #[must_use]
    fn at(mut self, priority: u8) -> Self {
        self.terms().priority = priority.min(7);
        self
    }
}
