//! The state of a coroutine: one word, and all that may happen to it.
//!
//! ```text
//!                    1 wake, cancel
//!            ┌──────────────────────────────┐
//!            │                              ▼
//!         ┌──┴───┐                      ┌────────┐ ◄─┐ 2 wake, cancel
//!         │ idle │                      │ queued │ ──┘
//!         └──────┘                      └──┬─────┘ ◄───────────────┐
//!            ▲                             │ 3 begin               │
//!            │ 5 suspend                   ▼           4 wake      │ 6 suspend
//!            │                        ┌─────────┐     cancel   ┌───┴───────────────┐ ◄─┐ 2
//!            └────────────────────────┤ running ├─────────────►│ running and woken │ ──┘
//!                                     └────┬────┘              └───┬───────────────┘
//!                                          │ 7 finish              │ 7 finish
//!                                          ▼                       │
//!                                       ┌──────┐ ◄─────────────────┘
//!                                       │ done │ ◄─┐ 8 wake, cancel
//!                                       └──┬───┘ ──┘
//! ```
//!
//! 1. A wake of an idle coroutine makes it queued, and it is who woke it that puts it in a queue.
//! 2. A wake of a queued one, or of one that has been woken as it ran, changes nothing, but it is a
//!    read-modify-write all the same: what the waker wrote before is seen by the poll to come.
//! 3. Its worker begins to poll it, and sees what all the wakers of rules 1 and 2 wrote.
//! 4. A wake while it runs, be it from an interrupt, from another CPU or from itself, is remembered.
//! 5. A poll that ended pending, without a wake since it began, leaves it idle.
//! 6. With one, it is queued again, by its worker. Between 5 and 6 there is no gap: which one it is,
//!    and that it no longer runs, is decided in one step, so no wake falls between poll and pending.
//! 7. It ends once, and
//! 8. afterwards nothing changes it.
//! 9. A request to cancel it is a wake that also says so; the next poll that would begin drops the
//!    future in its place. If the poll that runs meanwhile is the last one, it was too late.
//!
//! Rules 1 and 6 have exactly one party put it in a queue: a coroutine is never in two.

use crate::sync::{AtomicU32, Ordering};

/// A wake has come since the last poll began, or it has never been polled.
const WOKEN: u32 = 1;
/// A worker polls it.
const RUNNING: u32 = 2;
/// It is to be cancelled.
const CANCEL: u32 = 4;
/// It has ended. [`RUNNING`] as well, so that no wake queues it (rule 8).
const DONE: u32 = 8 | RUNNING;

/// The word. Idle is 0, queued 1, running 2, running and woken 3.
pub(crate) struct State(AtomicU32);

/// What a wake asks of who has made it.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Put it in a queue (rule 1).
    MustBeQueued,
    /// Somebody else does, or has (rules 2 and 4), or it has ended (rule 8).
    Already,
}

/// What is to be done with a queued coroutine (rules 3 and 9).
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Poll,
    Cancel,
}

/// What has become of one whose poll ended pending.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// Rule 5.
    Idle,
    /// Rule 6: its worker puts it in the queue again.
    Queued,
}

impl State {
    /// Of a coroutine that is about to be put in a queue for the first time.
    pub(crate) fn queued() -> Self {
        Self(AtomicU32::new(WOKEN))
    }

    /// As [`queued`](Self::queued), of another coroutine that has its place now.
    #[inline]
    pub(crate) fn queues(&self) {
        self.0.store(WOKEN, Ordering::Relaxed);
    }

    /// Rules 1, 2, 4, 8.
    #[inline]
    pub(crate) fn wake(&self) -> Woken {
        // Most likely it is idle, which some targets find out with fewer instructions.
        match (self.0).compare_exchange(0, WOKEN, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Woken::MustBeQueued,
            Err(_) => self.asks(WOKEN),
        }
    }

    /// Rule 9.
    pub(crate) fn cancel(&self) -> Woken {
        self.asks(WOKEN | CANCEL)
    }

    #[inline]
    fn asks(&self, bits: u32) -> Woken {
        match self.0.fetch_or(bits, Ordering::AcqRel) & (WOKEN | RUNNING) {
            0 => Woken::MustBeQueued,
            _ => Woken::Already,
        }
    }

    /// A [wake](Self::wake) that most likely comes from the coroutine itself, which runs: an
    /// instruction or two less. Returns false if it does not run, and nothing has happened then.
    #[inline]
    pub(crate) fn wake_running(&self) -> bool {
        self.0
            .compare_exchange(
                RUNNING,
                RUNNING | WOKEN,
                Ordering::AcqRel,
                Ordering::Relaxed,
            )
            .is_ok()
    }

    /// Rule 3, by its worker alone, of a queued one.
    #[inline]
    pub(crate) fn begin(&self) -> Begun {
        let was = self.0.swap(RUNNING, Ordering::AcqRel);
        debug_assert!(was & WOKEN != 0 && was & DONE != DONE, "{was}");
        match was & CANCEL {
            0 => Begun::Poll,
            _ => Begun::Cancel,
        }
    }

    /// Whether a wake has come since its poll began: then rule 6 applies, and its worker queues it
    /// as it is. By its worker alone, of a running one.
    ///
    /// The word stays what it is while it is queued: only its worker takes that back, and a wake
    /// does nothing in either case. That saves a read-modify-write where a coroutine wakes itself, as
    /// in a yield; the next [`begin`](Self::begin) is the one that makes the waker's writes visible.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WOKEN != 0
    }

    /// Rules 5 and 6, by its worker alone, of a running one. If it is idle then, it is no longer the
    /// worker's.
    #[inline]
    pub(crate) fn suspend(&self) -> Suspended {
        // From 2 to 0, or from 3 to 1 if a wake has come just now.
        match self.0.fetch_sub(RUNNING, Ordering::AcqRel) & WOKEN {
            0 => Suspended::Idle,
            _ => Suspended::Queued,
        }
    }

    /// Rule 7, by its worker alone.
    ///
    /// A wake that comes at the same time is lost, as one that comes later is.
    #[inline]
    pub(crate) fn finish(&self) {
        #[cfg(debug_assertions)]
        {
            let was = self.0.load(Ordering::Relaxed);
            assert!(was & RUNNING != 0 && was & DONE != DONE, "{was}");
        }
        self.0.store(DONE, Ordering::Release);
    }

    /// Whether it has ended.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) & DONE == DONE
    }
}
