//! Blocks that are kept for the next coroutines, by size: an allocator and the table of names take more
//! instructions than all the rest of a spawn.
//!
//! There are few at any time: 16 of each of 16 sizes, 64 KiB if all of them are there.
//!
//! KEEP: an idle domain keeps none, nor a chunk of slots with nobody in it. The worker that has the turn
//! for good gives back its own when it waits. What the books keep is given back by the next
//! [tick](crate::Domain::clock_ticked) of the system's clock, if that has ever ticked; if not, when a worker
//! waits, and nothing is kept while all of them do. Where two domains work for each other their workers wait
//! several times for each request, and what one of them would give back then the other one asks for next.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::block::{Header, SIZES};

const OF_ONE_SIZE: u8 = 16;

/// Spare blocks (SPARE in [`block`](crate::block)): of one owner at a time, who has all of this. Others may
/// ask how many there are.
pub(crate) struct Spares {
    /// The first of each size; `next` is the next one.
    first: [Cell<*const Header>; SIZES],
    kept: [AtomicU8; SIZES],
}

// SAFETY: the blocks are the owner's.
unsafe impl Send for Spares {}

impl Spares {
    pub(crate) const fn new() -> Self {
        Self {
            first: [const { Cell::new(ptr::null()) }; SIZES],
            kept: [const { AtomicU8::new(0) }; SIZES],
        }
    }

    /// Takes one of this size.
    #[inline]
    pub(crate) fn takes(&self, size: u8) -> Option<NonNull<Header>> {
        let size = usize::from(size);
        let header = NonNull::new(self.first.get(size)?.get().cast_mut())?;
        // SAFETY: of `keeps`.
        self.first[size].set(unsafe { header.as_ref() }.next.get());
        self.counts(size, |kept| kept - 1);
        Some(header)
    }

    /// Keeps one of this size, or returns false: there are enough.
    ///
    /// # Safety
    /// It is the caller's, and then the owner's.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn keeps(&self, size: u8, header: NonNull<Header>) -> bool {
        let size = usize::from(size);
        if size >= SIZES || self.kept[size].load(Ordering::Relaxed) == OF_ONE_SIZE {
            return false;
        }
        // SAFETY: as promised.
        unsafe { header.as_ref() }.next.set(self.first[size].get());
        self.first[size].set(header.as_ptr());
        self.counts(size, |kept| kept + 1);
        true
    }

    /// How many there are: exact for the owner.
    pub(crate) fn count(&self) -> usize {
        let kept = |kept: &AtomicU8| usize::from(kept.load(Ordering::Relaxed));
        self.kept.iter().map(kept).sum()
    }

    /// By the owner alone.
    #[inline]
    fn counts(&self, size: usize, to: impl FnOnce(u8) -> u8) {
        let kept = &self.kept[size];
        kept.store(to(kept.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}
