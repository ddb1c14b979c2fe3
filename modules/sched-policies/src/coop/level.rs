//! The urgency of a task or coroutine, as a number for comparisons.

use axcoop_summary::{DOMAINS, PRIORITIES, Priority};

/// A [`Priority`], 0 the most urgent, or [`NOTHING`](Self::NOTHING), which comes after all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Level(u8);

impl Level {
    /// The level of a worker whose domain has nothing ready, and of a task to which no priority is
    /// donated.
    pub(super) const NOTHING: Self = Self(PRIORITIES as u8);

    #[inline]
    pub(super) const fn of(priority: Priority) -> Self {
        Self(priority.index() as u8)
    }

    /// Returns the most urgent level in a word in the order of the summary: eight bits for each
    /// priority.
    #[inline]
    pub(super) const fn first(word: u64) -> Self {
        Self((word.trailing_zeros() as usize / DOMAINS) as u8)
    }

    /// Returns the level of the lowest of these bits, of which there is one for each priority.
    #[inline]
    pub(super) const fn first_of(levels: u8) -> Self {
        Self((levels as u32 | 1 << PRIORITIES).trailing_zeros() as u8)
    }

    #[inline]
    pub(super) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the level that [`to_bits`](Self::to_bits) made these bits of.
    #[inline]
    pub(super) const fn from_bits(bits: u8) -> Self {
        Self(bits)
    }

    #[inline]
    pub(super) const fn to_bits(self) -> u8 {
        self.0
    }

    /// Returns the level's bit in the order of the summary, for that domain. `NOTHING` has no bit.
    #[inline]
    pub(super) const fn bit(self, domain: usize) -> u64 {
        match self {
            Self::NOTHING => 0,
            Self(level) => 1 << (DOMAINS * level as usize + domain),
        }
    }

    /// Returns the level's eight bits of such a word. `NOTHING` has none.
    #[inline]
    pub(super) const fn row(self, word: u64) -> u8 {
        match self {
            Self::NOTHING => 0,
            Self(level) => (word >> (DOMAINS * level as usize)) as u8,
        }
    }
}

/// Returns all bits, in the order of the summary, of these domains (bit mask).
#[inline]
pub(super) const fn columns(domains: u8) -> u64 {
    domains as u64 * 0x0101_0101_0101_0101
}
