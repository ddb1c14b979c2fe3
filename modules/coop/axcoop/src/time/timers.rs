//! The timers of a domain: which worker looks at the clock, and how late a timer may be.
//!
//! 1. A time is rounded up to a granule, 2^20 ns (1.05 ms): no timer is early.
//! 2. A worker looks at the clock before and after each park, and after each 32 polls while there are timers. If the
//!    first timer is set between two looks, the next look may take 256 polls. So a timer is late by a granule at most,
//!    beside those polls and the delay of [`Platform::park`](crate::Platform::park).
//! 3. A worker parks until the next time at most, and not at all for a time that has come. Setting an earlier time
//!    unparks a worker. WAIT in [`worker`](crate::run::worker) makes this safe. A worker sets its bit before it asks
//!    for the next time under the lock, and a timer is set under the lock before the bits are read.
//! 4. One [step](Wheel::step) at a time is made under the lock, with interrupts off. Wakers are called, cloned and
//!    dropped outside.
//! 5. A system whose clock ticks calls [`Domain::clock_ticked`] in its interrupt. So a due coroutine is ready, and
//!    marked in the summary, before a worker has the CPU. Without it, a worker with a due timer would have nothing
//!    marked, and a scheduler that reads the summary would run it last, however urgent the coroutine is.
//!
//! All parked workers wait until the same next time, and look when it comes: the first one finds something to do. The
//! alternative is one worker that waits for all; it would have to be relieved whenever it finds other work.

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};

use crate::lock::Lock;
use crate::run::platform::Platform;
use crate::time::wheel::{Node, Step, Wheel};

/// The exponent of 2 of a granule in nanoseconds (rule 1).
const GRANULE: u32 = 20;

/// The most that a timer may be late by itself: a time is rounded up to a multiple of this, in nanoseconds.
pub const GRANULE_NANOS: u64 = 1 << GRANULE;

/// The number of polls between two looks at the clock, if there are timers (rule 2).
pub(crate) const LOOK: u32 = 32;

/// The number of steps in a tick (rule 5), which bounds the time in its interrupt.
const AT_A_TICK: usize = 32;

/// The granule of no timer.
const NEVER: u64 = u64::MAX;

pub(crate) struct Timers {
    wheel: Lock<Wheel>,
    /// The granule of [`Wheel::next`], or [`NEVER`]. Written with the lock; busy workers read it without, and may see
    /// a change later.
    next: AtomicU64,
}

/// True if a new timer is due before all others.
#[must_use]
pub(crate) struct IsFirst(pub(crate) bool);

impl Timers {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self {
            wheel: Lock::new(Wheel::new()),
            next: AtomicU64::new(NEVER),
        }
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self {
            wheel: Lock::new(Wheel::new()),
            next: AtomicU64::new(NEVER),
        }
    }

    /// Returns true if there were any timers a moment ago.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.next.load(Ordering::Relaxed) != NEVER
    }

    /// Returns ready if this time, in nanoseconds, has come. If not, the waker will be woken then. Also returns
    /// whether the time comes before all others: then a parked worker must look again (rule 3).
    ///
    /// # Safety
    /// The node belongs to no other timers, and is neither moved nor dropped until this has returned ready or
    /// [`remove`](Self::remove) has returned.
    pub(crate) unsafe fn poll_until(
        &self,
        platform: &dyn Platform,
        node: &Node,
        nanos: u64,
        waker: &Waker,
    ) -> (Poll<()>, IsFirst) {
        let is_known = self.with(platform, |_| {
            if node.is_due() {
                return Some(Poll::Ready(()));
            }
            (node.is_in() && node.will_wake(waker)).then_some(Poll::Pending)
        });
        if let Some(known) = is_known {
            return (known, IsFirst(false));
        }
        let now = platform.now();
        if nanos <= now {
            self.remove(platform, node);
            return (Poll::Ready(()), IsFirst(false));
        }
        let at = nanos.div_ceil(GRANULE_NANOS);
        let mut waker = Some(waker.clone());
        // Unused wakers are dropped without the lock (rule 4).
        let (poll, is_first) = self.with(platform, |wheel| {
            if node.is_due() {
                return (Poll::Ready(()), false);
            }
            waker = node.replace_waker(waker.take());
            if node.is_in() {
                return (Poll::Pending, false);
            }
            let was = wheel.next();
            // SAFETY: as promised.
            if !unsafe { wheel.insert(node, at, now >> GRANULE) } {
                // The hand has passed it: another CPU's clock is ahead of the one read above.
                waker = node.replace_waker(None);
                return (Poll::Ready(()), false);
            }
            self.update_next(wheel);
            (Poll::Pending, was.is_none_or(|was| at < was))
        });
        (poll, IsFirst(is_first))
    }

    /// Removes a node that may be in the wheel.
    pub(crate) fn remove(&self, platform: &dyn Platform, node: &Node) {
        self.with(platform, |wheel| {
            if node.is_in() {
                wheel.remove(node);
                self.update_next(wheel);
            }
        });
    }

    /// Returns the number of timers.
    pub(crate) fn count(&self, platform: &dyn Platform) -> usize {
        self.with(platform, |wheel| wheel.waiting())
    }

    /// Returns the time, in nanoseconds, until which a worker that has set its bit may park (rule 3).
    pub(crate) fn next(&self, platform: &dyn Platform) -> Option<u64> {
        let next = self.with(platform, |wheel| wheel.next())?;
        // The last granule is beyond the end of the clock.
        Some(next.saturating_mul(GRANULE_NANOS))
    }

    /// Handles a tick of the system's clock (rule 5).
    pub(crate) fn handle_tick(&self, platform: &dyn Platform) {
        self.wake_due(platform, AT_A_TICK);
    }

    /// Wakes all whose time has come (rule 2).
    pub(crate) fn check_clock(&self, platform: &dyn Platform) {
        self.wake_due(platform, usize::MAX);
    }

    fn wake_due(&self, platform: &dyn Platform, most: usize) {
        let next = self.next.load(Ordering::Relaxed);
        if next == NEVER {
            return;
        }
        let now = platform.now() >> GRANULE;
        if next > now {
            return;
        }
        for _ in 0..most {
            let step = self.with(platform, |wheel| {
                let step = wheel.step(now);
                self.update_next(wheel);
                step
            });
            match step {
                Step::Due(waker) => waker.expect("a timer in the wheel has a waker").wake(),
                Step::Moved => {}
                Step::Nothing => return,
            }
        }
    }

    fn update_next(&self, wheel: &Wheel) {
        self.next
            .store(wheel.next().unwrap_or(NEVER), Ordering::Relaxed);
    }

    fn with<R>(&self, platform: &dyn Platform, on: impl FnOnce(&mut Wheel) -> R) -> R {
        self.wheel.with(platform, on)
    }
}
