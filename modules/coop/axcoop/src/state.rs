//! The state machine of a coroutine, in one word.
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
//! 1. A wake of an idle coroutine makes it queued, and the caller must put it in a queue.
//! 2. A wake of a coroutine that is queued, or was woken while running, changes nothing. It is still a
//!    read-modify-write: the next poll sees what the waker wrote before.
//! 3. A worker begins a poll, and sees what all wakers of rules 1 and 2 wrote.
//! 4. A wake while it runs is remembered, be it from an interrupt, another CPU or itself.
//! 5. A poll that ends pending, without a wake since it began, leaves the coroutine idle.
//! 6. With such a wake, its worker queues it again. Rules 5 and 6 are one atomic step, so no wake falls between poll
//!    and pending.
//! 7. It ends once.
//! 8. After the end nothing changes it.
//! 9. A request to cancel is a wake that also sets a flag: the next poll would begin, but the future is dropped
//!    instead. If the current poll is the last one, the request is too late.
//!
//! By rules 1 and 6 exactly one party queues it, so a coroutine is never in two queues.

use crate::atomics::{AtomicU32, Ordering};

/// A wake has come since the last poll began, or the coroutine has never been polled.
const WOKEN: u32 = 1;
/// A worker polls the coroutine.
const RUNNING: u32 = 2;
/// A cancel has been requested (rule 9).
const CANCEL: u32 = 4;
/// The coroutine has ended. Includes [`RUNNING`], so that no wake queues it (rule 8).
const DONE: u32 = 8 | RUNNING;

/// The state of a coroutine: idle is 0, queued 1, running 2, running and woken 3.
pub(crate) struct State(AtomicU32);

/// The step that the caller of a wake must take.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woken {
    /// Queue the coroutine (rule 1).
    MustBeQueued,
    /// Nothing: it is queued by another party (rules 2 and 4), or has ended (rule 8).
    Already,
}

/// The step that the worker must take with a queued coroutine (rules 3 and 9).
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begun {
    Poll,
    Cancel,
}

/// The state after a poll that ended pending.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspended {
    /// Idle (rule 5).
    Idle,
    /// Queued again by its worker (rule 6).
    Queued,
}

impl State {
    /// Returns the state of a coroutine that is about to be queued for the first time.
    pub(crate) fn queued() -> Self {
        Self(AtomicU32::new(WOKEN))
    }

    /// Resets the state for the next coroutine in the block.
    #[inline]
    pub(crate) fn mark_queued(&self) {
        self.0.store(WOKEN, Ordering::Relaxed);
    }

    /// Wakes the coroutine (rules 1, 2, 4 and 8).
    #[inline]
    pub(crate) fn wake(&self) -> Woken {
        // Most likely it is idle, which takes fewer instructions on some targets.
        match (self.0).compare_exchange(0, WOKEN, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => Woken::MustBeQueued,
            Err(_) => self.request(WOKEN),
        }
    }

    /// Requests a cancel (rule 9).
    pub(crate) fn cancel(&self) -> Woken {
        self.request(WOKEN | CANCEL)
    }

    #[inline]
    fn request(&self, bits: u32) -> Woken {
        match self.0.fetch_or(bits, Ordering::AcqRel) & (WOKEN | RUNNING) {
            0 => Woken::MustBeQueued,
            _ => Woken::Already,
        }
    }

    /// [Wakes](Self::wake) a coroutine that most likely runs and wakes itself, with an instruction or two less.
    /// Returns false, without an effect, if it does not run or is woken already.
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

    /// Begins a poll of a queued coroutine (rule 3). Called by its worker alone.
    #[inline]
    pub(crate) fn begin(&self) -> Begun {
        let was = self.0.swap(RUNNING, Ordering::AcqRel);
        debug_assert!(was & WOKEN != 0 && was & DONE != DONE, "{was}");
        match was & CANCEL {
            0 => Begun::Poll,
            _ => Begun::Cancel,
        }
    }

    /// Returns true if a wake has come since the poll began: then rule 6 applies, and the worker queues the coroutine
    /// without a change of the state. Called by its worker alone, of a running coroutine.
    ///
    /// Woken and running is equivalent to queued: only the worker clears the bit, and a wake does nothing in either
    /// case. That saves a read-modify-write where a coroutine wakes itself, as in a yield. The next
    /// [`begin`](Self::begin) makes the waker's writes visible.
    #[inline]
    pub(crate) fn is_woken(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WOKEN != 0
    }

    /// Ends a poll that was pending (rules 5 and 6). Called by its worker alone, of a running coroutine. An idle one
    /// no longer belongs to the worker.
    #[inline]
    pub(crate) fn suspend(&self) -> Suspended {
        // From 2 to 0, or from 3 to 1 if a wake has come just now.
        match self.0.fetch_sub(RUNNING, Ordering::AcqRel) & WOKEN {
            0 => Suspended::Idle,
            _ => Suspended::Queued,
        }
    }

    /// Ends the coroutine (rule 7). Called by its worker alone.
    ///
    /// A wake at the same time is lost, like a later one.
    #[inline]
    pub(crate) fn finish(&self) {
        #[cfg(debug_assertions)]
        {
            let was = self.0.load(Ordering::Relaxed);
            assert!(was & RUNNING != 0 && was & DONE != DONE, "{was}");
        }
        self.0.store(DONE, Ordering::Release);
    }

    /// Returns true if it has ended.
    #[cfg(test)]
    #[allow(dead_code, reason = "only the tests of the library need it")]
    pub(crate) fn is_done(&self) -> bool {
        self.0.load(Ordering::Acquire) & DONE == DONE
    }
}
