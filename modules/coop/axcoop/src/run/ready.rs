//! The ready coroutines of a domain: a ring for each priority, and a bit for each ring.
//!
//! 1. The head of a level came first; a new one becomes the last.
//! 2. The bit of a level is set if and only if its ring is not empty.
//! 3. All of it belongs to the holder of the domain's queue token (QUEUE in [`block`](crate::task::block)).
//! 4. Nothing here calls foreign code, and all of it is in cells. So the holder of the token may append a coroutine
//!    at any point, as in a poll that wakes one.
//!
//! While one worker has the domain alone, the running coroutine stays at the head of its level. If it yields, the
//! ring is rotated by one place, which queues it and finds the next one; its bit stays set.

use core::cell::Cell;
use core::ptr;

use axcoop_summary::PRIORITIES;

use crate::task::block::{APART, Header};

/// The ready queues of a domain, a ring for each level.
pub(crate) struct Ready {
    heads: [Cell<*const Header>; PRIORITIES],
    /// The levels that are not empty (bit mask; rule 2).
    some: Cell<u8>,
    /// The number of coroutines of each level that were taken out and are running, and the levels for which it is not
    /// 0.
    running: [Cell<u8>; PRIORITIES],
    some_run: Cell<u8>,
}

// SAFETY: rule 3 protects a shared value.
unsafe impl Send for Ready {}

/// The lowest set bit of each byte. It is a table because not every target has an instruction for it.
static LOWEST: [u8; 256] = {
    let mut of = [PRIORITIES as u8; 256];
    let mut byte = 1;
    while byte < of.len() {
        of[byte] = (byte as u32).trailing_zeros() as u8;
        byte += 1;
    }
    of
};

impl Ready {
    pub(crate) const fn new() -> Self {
        Self {
            heads: [const { Cell::new(ptr::null()) }; PRIORITIES],
            some: Cell::new(0),
            running: [const { Cell::new(0) }; PRIORITIES],
            some_run: Cell::new(0),
        }
    }

    /// Counts a coroutine of this level that was taken out and is polled.
    pub(crate) fn count_poll(&self, level: usize) {
        self.running[level].update(|running| running + 1);
        self.some_run.update(|some| some | 1 << level);
    }

    /// Counts the end of its poll.
    pub(crate) fn uncount_poll(&self, level: usize) {
        self.running[level].update(|running| running - 1);
        if self.running[level].get() == 0 {
            self.some_run.update(|some| some & !(1 << level));
        }
    }

    /// Returns the most urgent level with a ready or running coroutine.
    #[inline]
    pub(crate) fn urgency(&self) -> usize {
        LOWEST[usize::from(self.some.get() | self.some_run.get())].into()
    }

    /// Returns the most urgent level that is not empty, or [`PRIORITIES`].
    #[inline]
    pub(crate) fn first(&self) -> usize {
        LOWEST[usize::from(self.some.get())].into()
    }

    /// Returns the levels that are not empty (bit mask).
    #[inline]
    pub(crate) fn some(&self) -> u8 {
        self.some.get()
    }

    /// Returns the first coroutine of a level that is not empty.
    #[inline]
    pub(crate) fn head(&self, level: usize) -> &'static Header {
        debug_assert!(self.some.get() >> level & 1 != 0);
        // SAFETY: by rule 2 the level has a head. A queued coroutine has not ended, so it lives.
        unsafe { &*self.heads[level % PRIORITIES].get() }
    }

    /// Appends a coroutine, and returns true if the level was empty.
    #[inline]
    pub(crate) fn push(&self, header: &'static Header, level: usize) -> bool {
        debug_assert!(header.level.get() == APART);
        let level = level % PRIORITIES;
        header.level.set(level as u8);
        // SAFETY: as in `head`.
        let was_empty = match unsafe { self.heads[level].get().as_ref() } {
            None => {
                header.next.set(header);
                header.prev.set(header);
                self.heads[level].set(header);
                true
            }
            Some(head) => {
                let last = head.prev.get();
                header.next.set(head);
                header.prev.set(last);
                head.prev.set(header);
                // SAFETY: as in `head`.
                unsafe { &*last }.next.set(header);
                false
            }
        };
        self.some.update(|some| some | 1 << level);
        was_empty
    }

    /// Takes a coroutine out of its level, and returns true if that is empty now.
    #[inline]
    pub(crate) fn remove(&self, header: &Header) -> bool {
        let level = usize::from(header.level.replace(APART));
        debug_assert!(level < PRIORITIES);
        let level = level % PRIORITIES;
        let (next, prev) = (header.next.get(), header.prev.get());
        if ptr::eq(next, header) {
            self.heads[level].set(ptr::null());
            self.some.update(|some| some & !(1 << level));
            return true;
        }
        // SAFETY: as in `head`.
        unsafe {
            (*next).prev.set(prev);
            (*prev).next.set(next);
        }
        if ptr::eq(self.heads[level].get(), header) {
            self.heads[level].set(next);
        }
        false
    }

    /// Rotates a level: its head becomes the last one. Returns the new head.
    #[inline]
    pub(crate) fn rotate(&self, level: usize, head: &Header) -> &'static Header {
        debug_assert!(ptr::eq(self.heads[level].get(), head));
        let next = head.next.get();
        self.heads[level % PRIORITIES].set(next);
        // SAFETY: as in `head`.
        unsafe { &*next }
    }

    /// Asserts rules 1 to 3 as far as they can be seen.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn assert_valid(&self) {
        for (level, head) in self.heads.iter().map(Cell::get).enumerate() {
            assert_eq!(!head.is_null(), self.some.get() >> level & 1 != 0, "rule 2");
            let mut at = head;
            // SAFETY: as in `head`.
            while let Some(header) = unsafe { at.as_ref() } {
                assert_eq!(usize::from(header.level.get()), level);
                // SAFETY: as in `head`.
                assert!(ptr::eq(unsafe { &*header.next.get() }.prev.get(), header));
                at = header.next.get();
                if ptr::eq(at, head) {
                    break;
                }
            }
        }
    }
}
