//! Blocks kept for the next coroutines, by size class: the allocator and the table of names would take more
//! instructions than the rest of a spawn.
//!
//! There are at most 16 blocks of each of 16 size classes, together 64 KiB.
//!
//! KEEP: an idle domain keeps no block, and no empty chunk of slots. The worker that keeps the queue token frees its
//! own blocks when it parks. The blocks of the registry are freed at the next [tick](crate::Domain::clock_ticked) of
//! the system's clock, if that has ever ticked. If not, they are freed when a worker parks, and none is kept while all
//! workers are parked. The tick is for domains that work for each other: their workers park several times a request,
//! and a block that one frees is what the other allocates next.

use core::cell::Cell;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicU8, Ordering};

use crate::task::block::{Header, SIZES};

const OF_ONE_SIZE: u8 = 16;

/// Spare blocks (SPARE in [`block`](crate::task::block)). Only the owner uses them, one call at a time. Any thread may
/// read the count.
pub(crate) struct FreeList {
    /// The first block of each size class; `next` links them.
    first: [Cell<*const Header>; SIZES],
    kept: [AtomicU8; SIZES],
}

// SAFETY: the blocks belong to the owner.
unsafe impl Send for FreeList {}

impl FreeList {
    pub(crate) const fn new() -> Self {
        Self {
            first: [const { Cell::new(ptr::null()) }; SIZES],
            kept: [const { AtomicU8::new(0) }; SIZES],
        }
    }

    /// Takes a block of this size class.
    #[inline]
    pub(crate) fn take(&self, size: u8) -> Option<NonNull<Header>> {
        let size = usize::from(size);
        let header = NonNull::new(self.first.get(size)?.get().cast_mut())?;
        // SAFETY: it comes from `keep`.
        self.first[size].set(unsafe { header.as_ref() }.next.get());
        self.update_count(size, |kept| kept - 1);
        Some(header)
    }

    /// Keeps a block of this size class. Returns false if there are enough.
    ///
    /// # Safety
    /// The block belongs to the caller, and to the owner afterwards.
    #[inline]
    #[must_use]
    pub(crate) unsafe fn keep(&self, size: u8, header: NonNull<Header>) -> bool {
        let size = usize::from(size);
        if size >= SIZES || self.kept[size].load(Ordering::Relaxed) == OF_ONE_SIZE {
            return false;
        }
        // SAFETY: as promised.
        unsafe { header.as_ref() }.next.set(self.first[size].get());
        self.first[size].set(header.as_ptr());
        self.update_count(size, |kept| kept + 1);
        true
    }

    /// Returns the number of blocks: exact for the owner.
    pub(crate) fn count(&self) -> usize {
        let kept = |kept: &AtomicU8| usize::from(kept.load(Ordering::Relaxed));
        self.kept.iter().map(kept).sum()
    }

    /// Changes the count of a size class. Called by the owner alone.
    #[inline]
    fn update_count(&self, size: usize, to: impl FnOnce(u8) -> u8) {
        let kept = &self.kept[size];
        kept.store(to(kept.load(Ordering::Relaxed)), Ordering::Relaxed);
    }
}
