//! How urgent something is that waits or runs.

use axcoop_summary::{DOMAINS, PRIORITIES, Priority};

/// A [`Priority`], 0 the most urgent, or [`NOTHING`](Self::NOTHING), which comes after all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    /// There is nothing: of a worker whose domain has nothing ready, of a task that was lent nothing.
    pub(super) const NOTHING: Self = Self(PRIORITIES as u8);

    #[inline]
    pub(super) const fn of(priority: Priority) -> Self {
        Self(priority.index() as u8)
    }

    /// The most urgent one of a word in the order of the summary: eight bits for each priority.
    #[inline]
    pub(super) const fn first(word: u64) -> Self {
        Self((word.trailing_zeros() as usize / DOMAINS) as u8)
    }

    /// The lowest of these bits, of which there is one for each priority.
    #[inline]
    pub(super) const fn first_of(levels: u8) -> Self {
        Self((levels as u32 | 1 << PRIORITIES).trailing_zeros() as u8)
    }

    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// From [`to_bits`](Self::to_bits).
    #[inline]
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) const fn to_bits(self) -> u8 {
        self.0
    }

    /// Its bit in the summary's order, of that domain; no bit if there is nothing.
    #[inline]
    pub(super) const fn bit(self, domain: usize) -> u64 {
        match self {
            Self::NOTHING => 0,
            Self(level) => 1 << (DOMAINS * level as usize + domain),
        }
    }

    /// Its eight bits of such a word; none if there is nothing.
    #[inline]
    pub(super) const fn row(self, word: u64) -> u8 {
        match self {
            Self::NOTHING => 0,
            Self(level) => (word >> (DOMAINS * level as usize)) as u8,
        }
    }
}

/// All bits, in the summary's order, of the domains whose bits these are.
#[inline]
pub(super) const fn columns(domains: u8) -> u64 {
    domains as u64 * 0x0101_0101_0101_0101
}
