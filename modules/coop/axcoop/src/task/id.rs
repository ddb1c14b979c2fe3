//! The names of coroutines.

use core::fmt;

use axcoop_summary::DomainId;

/// The number of coroutines that a domain can have at a time.
pub const MAX_COROUTINES: usize = 1 << 24;

/// The domain and the place in its table: the part of its [`CoroutineId`] that a coroutine stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SlotIndex(u32);

impl SlotIndex {
    pub(crate) fn new(domain: DomainId, index: u32) -> Self {
        debug_assert!((index as usize) < MAX_COROUTINES);
        Self((domain.index() as u32) << 24 | index)
    }

    #[inline]
    pub(crate) fn domain(self) -> usize {
        (self.0 >> 24) as usize
    }

    #[inline]
    pub(crate) fn index(self) -> u32 {
        self.0 & (MAX_COROUTINES as u32 - 1)
    }
}

/// The name of a coroutine, which is never used again. Its place is, with another generation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CoroutineId {
    pub(crate) place: SlotIndex,
    pub(crate) generation: u32,
}

impl CoroutineId {
    /// Returns its domain.
    pub fn domain(self) -> DomainId {
        DomainId::new(self.place.domain())
    }

    /// Returns a number that differs from that of any other name.
    pub fn number(self) -> u64 {
        (self.place.0 as u64) << 32 | self.generation as u64
    }
}

impl fmt::Display for CoroutineId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "coroutine {}.{}.{}",
            self.place.domain(),
            self.place.index(),
            self.generation
        )
    }
}
