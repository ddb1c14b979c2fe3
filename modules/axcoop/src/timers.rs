//! The timers of a domain: who drives them, and how late they may be.
//!
//! 1. A time is rounded up to a granule, 2^20 ns (1.05 ms): nobody is woken before his time.
//! 2. A worker looks at the clock whenever it has waited, before it waits, and after 32 polls while
//!    there are timers (256 after the first one was set while it was polling). So who waits is woken
//!    at most a granule late, and what [`Kernel::park`](crate::Kernel::park) and those polls add to that.
//! 3. A worker waits until the next time at most, and not at all for a time that has come. One that
//!    sets a time before all others has one that waits look again (WAIT in
//!    [`worker`](crate::worker): who is about to wait has said so before it asks for the next time, and
//!    who sets one does so before it looks whether anybody waits; both under the lock).
//! 4. Under the lock, and with interrupts off, is one [step](Wheel::step) at a time: wakers are called,
//!    cloned and dropped outside.
//!
//! All workers that wait do so until the same next time, and look when it comes: the first one finds
//! something to do. The other way, one that waits for all, has to be relieved each time that it
//! finds something else to do.

use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Poll, Waker};

use crate::kernel::Kernel;
use crate::lock::Lock;
use crate::wheel::{Node, Step, Wheel};

/// Of a granule in nanoseconds, the exponent of 2 (rule 1).
const GRANULE: u32 = 20;

/// How late a timer may be by itself: a time is rounded up to a multiple of this, in nanoseconds.
pub const GRANULE_NANOS: u64 = 1 << GRANULE;

/// How many polls a worker makes before it looks at the clock, if there are timers (rule 2).
pub(crate) const LOOK: u32 = 32;

/// No time.
const NEVER: u64 = u64::MAX;

pub(crate) struct Timers {
    wheel: Lock<Wheel>,
    /// The granule of [`Wheel::next`], or [`NEVER`]: written with the lock. Read without it by workers
    /// that are busy, to whom it may be news later.
    next: AtomicU64,
}

/// Whether a time comes before all others.
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

    /// Whether there are any, as of some moment before.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        self.next.load(Ordering::Relaxed) != NEVER
    }

    /// Whether this time, in nanoseconds, has come; if not, the waker will be woken then. Also whether
    /// it comes before all others: then a worker that waits has to look again (rule 3).
    ///
    /// # Safety
    /// The node is of no other timers, and stays where it is, and is not dropped, until this
    /// has said that the time has come or [`forgets`](Self::forgets) has returned.
    pub(crate) unsafe fn waits_until(
        &self,
        kernel: &dyn Kernel,
        node: &Node,
        nanos: u64,
        waker: &Waker,
    ) -> (Poll<()>, IsFirst) {
        let is_known = self.with(kernel, |_| {
            if node.is_due() {
                return Some(Poll::Ready(()));
            }
            (node.is_in() && node.will_wake(waker)).then_some(Poll::Pending)
        });
        if let Some(known) = is_known {
            return (known, IsFirst(false));
        }
        let now = kernel.now();
        if nanos <= now {
            self.forgets(kernel, node);
            return (Poll::Ready(()), IsFirst(false));
        }
        let at = nanos.div_ceil(GRANULE_NANOS);
        let mut waker = Some(waker.clone());
        // What is not needed is dropped without the lock (rule 4).
        let (poll, is_first) = self.with(kernel, |wheel| {
            if node.is_due() {
                return (Poll::Ready(()), false);
            }
            waker = node.wakes(waker.take());
            if node.is_in() {
                return (Poll::Pending, false);
            }
            let was = wheel.next();
            // SAFETY: as promised.
            if !unsafe { wheel.insert(node, at, now >> GRANULE) } {
                // The hand has passed it: another CPU's clock is ahead of what was read above.
                waker = node.wakes(None);
                return (Poll::Ready(()), false);
            }
            self.notes_next(wheel);
            (Poll::Pending, was.is_none_or(|was| at < was))
        });
        (poll, IsFirst(is_first))
    }

    /// Takes out one that may be in.
    pub(crate) fn forgets(&self, kernel: &dyn Kernel, node: &Node) {
        self.with(kernel, |wheel| {
            if node.is_in() {
                wheel.remove(node);
                self.notes_next(wheel);
            }
        });
    }

    /// How many timers are set.
    pub(crate) fn set(&self, kernel: &dyn Kernel) -> usize {
        self.with(kernel, |wheel| wheel.waiting())
    }

    /// Until when a worker may wait that has said that it does (rule 3), in nanoseconds.
    pub(crate) fn next(&self, kernel: &dyn Kernel) -> Option<u64> {
        let next = self.with(kernel, |wheel| wheel.next())?;
        // The last one of all is beyond the clock's end.
        Some(next.saturating_mul(GRANULE_NANOS))
    }

    /// Wakes those whose time has come (rule 2).
    pub(crate) fn looks_at_clock(&self, kernel: &dyn Kernel) {
        let next = self.next.load(Ordering::Relaxed);
        if next == NEVER {
            return;
        }
        let now = kernel.now() >> GRANULE;
        if next > now {
            return;
        }
        loop {
            let step = self.with(kernel, |wheel| {
                let step = wheel.step(now);
                self.notes_next(wheel);
                step
            });
            match step {
                Step::Due(waker) => waker.expect("who waits has said how").wake(),
                Step::Moved => {}
                Step::Nothing => return,
            }
        }
    }

    fn notes_next(&self, wheel: &Wheel) {
        self.next
            .store(wheel.next().unwrap_or(NEVER), Ordering::Relaxed);
    }

    fn with<R>(&self, kernel: &dyn Kernel, on: impl FnOnce(&mut Wheel) -> R) -> R {
        self.wheel.with(kernel, on)
    }
}
