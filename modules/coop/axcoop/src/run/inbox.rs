//! The inbox, through which wakes and notes reach a domain from outside. It is a stack of woken coroutines with a few
//! notes, in one word. One load tells a worker whether there is anything.
//!
//! Pushing needs no lock, also in an interrupt. A worker takes the whole stack at once, so a coroutine that is taken
//! off and put back cannot be mistaken for itself (no ABA).

use core::ptr;

use crate::atomics::{AtomicPtr, Ordering};
use crate::task::block::Header;

/// Notes for the worker, in the low bits of the word.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Notes(usize);

impl Notes {
    /// The priorities of coroutines that may be queued have changed. The registry has the list.
    pub(crate) const MOVES: Self = Self(1);
    /// The domain is not served by one worker alone. The note stays.
    pub(crate) const SHARED: Self = Self(2);
    /// A call of the poll hook is requested.
    pub(crate) const CALL: Self = Self(4);
    const ALL: usize = 7;

    pub(crate) fn has(self, note: Self) -> bool {
        self.0 & note.0 != 0
    }
}

/// The stack and the notes.
pub(crate) struct Inbox(AtomicPtr<Header>);

/// The coroutines taken from an inbox, in order of arrival.
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

    /// Pushes a coroutine. The taker sees what was written before.
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
        self.update(|word| word.map_addr(|at| at | note.0));
    }

    /// Removes a note.
    pub(crate) fn unnote(&self, note: Notes) {
        self.update(|word| word.map_addr(|at| at & !note.0));
    }

    /// Returns true if there was anything at all a moment ago.
    #[inline]
    pub(crate) fn has_any(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Returns true if there was anything beside `SHARED` a moment ago.
    pub(crate) fn has_more(&self) -> bool {
        self.0.load(Ordering::Relaxed).addr() & !Notes::SHARED.0 != 0
    }

    /// Returns the notes of a moment ago.
    #[inline]
    pub(crate) fn notes(&self) -> Notes {
        Notes(self.0.load(Ordering::Relaxed).addr() & Notes::ALL)
    }

    /// Returns true if there is anything beside `SHARED`. A read-modify-write: a later push sees what was written
    /// before this call.
    pub(crate) fn has_more_synced(&self) -> bool {
        self.update(|word| word).addr() & !Notes::SHARED.0 != 0
    }

    /// Takes everything except the note `SHARED`.
    #[inline]
    pub(crate) fn take(&self) -> Arrived {
        let word = self
            .update(|word| ptr::null_mut::<Header>().map_addr(|_| word.addr() & Notes::SHARED.0));
        Arrived::of(word)
    }

    fn update(&self, to: impl Fn(*mut Header) -> *mut Header) -> *mut Header {
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
    /// Reverses the stack into the order of arrival.
    #[inline]
    fn of(word: *mut Header) -> Self {
        let notes = Notes(word.addr() & Notes::ALL);
        let mut rest = word.map_addr(|at| at & !Notes::ALL).cast_const();
        let mut next = ptr::null();
        // SAFETY: the links belong to the taker (QUEUE). The coroutines live while they have not ended.
        while let Some(header) = unsafe { rest.as_ref() } {
            rest = header.next.replace(next);
            next = header;
        }
        Self { next, notes }
    }
}

impl Iterator for Arrived {
    type Item = &'static Header;

    /// Returns the next coroutine, which the caller must queue (QUEUE). The domain refers to it until that is done.
    #[inline]
    fn next(&mut self) -> Option<&'static Header> {
        // SAFETY: as above.
        let header = unsafe { self.next.as_ref() }?;
        self.next = header.next.get();
        Some(header)
    }
}
