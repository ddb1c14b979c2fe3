//! What comes to a domain from outside: a stack of coroutines that were woken, in one word with a
//! few notes for the worker, who sees by one load whether there is anything.
//!
//! Anybody pushes, without a lock, also in an interrupt; a worker takes all at once, so no
//! coroutine that is taken off and put back can be mistaken for itself (no ABA).

use core::ptr;

use crate::block::Header;
use crate::sync::{AtomicPtr, Ordering};

/// Notes for the worker, in the low bits of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notes(usize);

impl Notes {
    /// Priorities have changed of coroutines that may be queued: the list is in the books.
    pub(crate) const MOVES: Self = Self(1);
    /// The domain is not served by one worker that has it for itself. Stays.
    pub(crate) const SHARED: Self = Self(2);
    /// The attendant is wanted.
    pub(crate) const CALL: Self = Self(4);
    const ALL: usize = 7;

    pub(crate) fn has(self, note: Self) -> bool {
        self.0 & note.0 != 0
    }
}

/// The word.
pub(crate) struct Inbox(AtomicPtr<Header>);

/// All that was in it, the first first.
pub(crate) struct Arrived {
    next: *const Header,
    pub(crate) notes: Notes,
}

impl Inbox {
    #[cfg(not(loom))]
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    #[cfg(loom)]
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Puts it in. What was written before is seen by who takes it out.
    #[inline]
    pub(crate) fn push(&self, header: &Header) {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            header.next.set(word.map_addr(|at| at & !Notes::ALL));
            let new = ptr::from_ref(header).cast_mut();
            let new = new.map_addr(|at| at | word.addr() & Notes::ALL);
            match self
                .0
                .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(now) => word = now,
            }
        }
    }

    /// Leaves a note.
    pub(crate) fn note(&self, note: Notes) {
        self.changes(|word| word.map_addr(|at| at | note.0));
    }

    /// Takes a note away.
    pub(crate) fn unnote(&self, note: Notes) {
        self.changes(|word| word.map_addr(|at| at & !note.0));
    }

    /// Whether there is anything at all, as of some moment before.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Whether there is anything beside `SHARED`, as of some moment before.
    pub(crate) fn has_more(&self) -> bool {
        self.0.load(Ordering::Relaxed).addr() & !Notes::SHARED.0 != 0
    }

    /// The notes, as of some moment before.
    #[inline]
    pub(crate) fn notes(&self) -> Notes {
        Notes(self.0.load(Ordering::Relaxed).addr() & Notes::ALL)
    }

    /// Whether there is anything beside `SHARED`. A read-modify-write: whoever pushes later sees
    /// what was written before this.
    pub(crate) fn looks(&self) -> bool {
        self.changes(|word| word).addr() & !Notes::SHARED.0 != 0
    }

    /// Takes all out but the note `SHARED`.
    #[inline]
    pub(crate) fn take(&self) -> Arrived {
        let word = self
            .changes(|word| ptr::null_mut::<Header>().map_addr(|_| word.addr() & Notes::SHARED.0));
        Arrived::of(word)
    }

    fn changes(&self, to: impl Fn(*mut Header) -> *mut Header) -> *mut Header {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            let new = to(word);
            match self
                .0
                .compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Relaxed)
            {
                Ok(_) => return word,
                Err(now) => word = now,
            }
        }
    }
}

impl Arrived {
    /// Turns the stack round: the first that came is the first again.
    #[inline]
    fn of(word: *mut Header) -> Self {
        let notes = Notes(word.addr() & Notes::ALL);
        let mut rest = word.map_addr(|at| at & !Notes::ALL).cast_const();
        let mut next = ptr::null();
        // SAFETY: QUEUE: they are the taker's, and alive as long as they have not ended.
        while let Some(header) = unsafe { rest.as_ref() } {
            rest = header.next.replace(next);
            next = header;
        }
        Self { next, notes }
    }
}

impl Iterator for Arrived {
    type Item = &'static Header;

    /// The next one, which is the caller's to queue (QUEUE); it refers to it until it has done so.
    #[inline]
    fn next(&mut self) -> Option<&'static Header> {
        // SAFETY: as above.
        let header = unsafe { self.next.as_ref() }?;
        self.next = header.next.get();
        Some(header)
    }
}
