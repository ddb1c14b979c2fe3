//! The parts of a coroutine's priority: its own, and the donations.

use axcoop_summary::{PRIORITIES, Priority};

/// The number of donations of each priority: eight counters of a byte, one of which counts the base. The lowest level
/// with a counter above 0 is the effective priority.
///
/// At most 253 donations of one priority count at a time; [`add`](Self::add) returns whether one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Donations {
    counts: u64,
}

const BITS: usize = u8::BITS as usize;
const _: () = assert!(PRIORITIES * BITS == u64::BITS as usize);

impl Donations {
    /// Returns a value with this base and without donations.
    pub(crate) fn only(base: Priority) -> Self {
        Self {
            counts: 1 << (BITS * base.index()),
        }
    }

    /// Adds a donation, and returns true if it counts.
    #[must_use]
    pub(crate) fn add(&mut self, priority: usize) -> bool {
        // One is left for the base, wherever that moves.
        let counts = self.counts >> (BITS * priority) & 0xff < 0xfe;
        if counts {
            self.counts += 1 << (BITS * priority);
        }
        counts
    }

    /// Removes a donation that counted.
    pub(crate) fn remove(&mut self, priority: usize) {
        debug_assert!(self.counts >> (BITS * priority) & 0xff != 0);
        self.counts -= 1 << (BITS * priority);
    }

    /// Changes the base.
    pub(crate) fn move_base(&mut self, from: usize, to: usize) {
        self.remove(from);
        self.counts += 1 << (BITS * to);
    }

    /// Returns the most urgent priority that counts.
    pub(crate) fn most_urgent(self) -> usize {
        debug_assert!(self.counts != 0, "the base counts");
        self.counts.trailing_zeros() as usize / BITS
    }
}
