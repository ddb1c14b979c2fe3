//! The coroutines of a domain that are ready: a ring for each priority, and a bit for each ring.
//!
//! 1. The head of a level is the one that came first; a new one becomes the last.
//! 2. The bit of a level is set if and only if there is somebody in it.
//! 3. All of it is of who has the domain's turn (QUEUE in [`block`](crate::block)).
//!
//! While one worker has the domain for itself, the coroutine that runs stays where it is, at the
//! head of its level: if it yields, its level is turned by one place, which is all that there is to
//! queueing it and finding the next; and its bit stays set, as it should.

use core::ptr;

use axcoop_summary::PRIORITIES;

use crate::block::{APART, Header};

/// The levels.
pub(crate) struct Ready {
    heads: [*const Header; PRIORITIES],
    /// Rule 2.
    some: u8,
    /// How many of each level run that have been taken out, and for which levels that is not 0.
    running: [u8; PRIORITIES],
    some_run: u8,
}

// SAFETY: rule 3 is what makes it so for those who share it.
unsafe impl Send for Ready {}

/// The lowest bit of a byte: a table, as not every target has an instruction for it.
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
            heads: [ptr::null(); PRIORITIES],
            some: 0,
            running: [0; PRIORITIES],
            some_run: 0,
        }
    }

    /// One of this level that has been taken out is polled.
    pub(crate) fn begins(&mut self, level: usize) {
        self.running[level] += 1;
        self.some_run |= 1 << level;
    }

    /// Its poll has ended.
    pub(crate) fn stops(&mut self, level: usize) {
        self.running[level] -= 1;
        if self.running[level] == 0 {
            self.some_run &= !(1 << level);
        }
    }

    /// The most urgent level with anybody who is ready or runs.
    #[inline]
    pub(crate) fn urgency(&self) -> usize {
        LOWEST[usize::from(self.some | self.some_run)].into()
    }

    /// The most urgent level with anybody in it; [`PRIORITIES`] if there is none.
    #[inline]
    pub(crate) fn first(&self) -> usize {
        LOWEST[self.some as usize].into()
    }

    /// Which levels have somebody, a bit each.
    #[inline]
    pub(crate) fn some(&self) -> u8 {
        self.some
    }

    /// The first of a level that has somebody.
    #[inline]
    pub(crate) fn head(&self, level: usize) -> &'static Header {
        debug_assert!(self.some >> level & 1 != 0);
        // SAFETY: rule 2; those that are in a level have not ended, so they live.
        unsafe { &*self.heads[level % PRIORITIES] }
    }

    /// Appends it, and returns whether the level was empty.
    #[inline]
    pub(crate) fn push(&mut self, header: &'static Header, level: usize) -> bool {
        debug_assert!(header.level.get() == APART);
        let level = level % PRIORITIES;
        header.level.set(level as u8);
        // SAFETY: as in `head`.
        let was_empty = match unsafe { self.heads[level].as_ref() } {
            None => {
                header.next.set(header);
                header.prev.set(header);
                self.heads[level] = header;
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
        self.some |= 1 << level;
        was_empty
    }

    /// Takes it out of its level, and returns whether that is empty now.
    #[inline]
    pub(crate) fn remove(&mut self, header: &Header) -> bool {
        let level = usize::from(header.level.replace(APART));
        debug_assert!(level < PRIORITIES);
        let level = level % PRIORITIES;
        let (next, prev) = (header.next.get(), header.prev.get());
        if ptr::eq(next, header) {
            self.heads[level] = ptr::null();
            self.some &= !(1 << level);
            return true;
        }
        // SAFETY: as in `head`.
        unsafe {
            (*next).prev.set(prev);
            (*prev).next.set(next);
        }
        if ptr::eq(self.heads[level], header) {
            self.heads[level] = next;
        }
        false
    }

    /// The head of the level becomes its last, and the next one, which is returned, its head.
    #[inline]
    pub(crate) fn turn(&mut self, level: usize, head: &Header) -> &'static Header {
        debug_assert!(ptr::eq(self.heads[level], head));
        let next = head.next.get();
        self.heads[level % PRIORITIES] = next;
        // SAFETY: as in `head`.
        unsafe { &*next }
    }

    /// Rules 1 to 3, as far as they can be seen.
    #[cfg(all(test, not(loom)))]
    pub(crate) fn assert_valid(&self) {
        for (level, &head) in self.heads.iter().enumerate() {
            assert_eq!(!head.is_null(), self.some >> level & 1 != 0, "rule 2");
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
