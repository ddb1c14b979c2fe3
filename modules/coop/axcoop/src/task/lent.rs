//! The parts of a coroutine's priority: its own, and the loans.

use axcoop_summary::{PRIORITIES, Priority};

/// The number of loans of each priority: eight counters of a byte, one of which counts the base. The lowest level
/// with a counter above 0 is the effective priority.
///
/// At most 253 loans of one priority count at a time; [`lend`](Self::lend) returns whether one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lent {
    counts: u64,
}

const BITS: usize = u8::BITS as usize;
const _: () = assert!(PRIORITIES * BITS == u64::BITS as usize);

impl Lent {
    /// Returns a value with this base and without loans.
    pub(crate) fn only(base: Priority) -> Self {
        Self {
            counts: 1 << (BITS * base.index()),
        }
    }

    /// Adds a loan, and returns true if it counts.
    #[must_use]
    pub(crate) fn lend(&mut self, priority: usize) -> bool {
        // One is left for the base, wherever that moves.
        let counts = self.counts >> (BITS * priority) & 0xff < 0xfe;
        if counts {
            self.counts += 1 << (BITS * priority);
        }
        counts
    }

    /// Removes a loan that counted.
    pub(crate) fn returns(&mut self, priority: usize) {
        debug_assert!(self.counts >> (BITS * priority) & 0xff != 0);
        self.counts -= 1 << (BITS * priority);
    }

    /// Changes the base.
    pub(crate) fn move_base(&mut self, from: usize, to: usize) {
        self.returns(from);
        self.counts += 1 << (BITS * to);
    }

    /// Returns the most urgent priority that counts.
    pub(crate) fn most_urgent(self) -> usize {
        debug_assert!(self.counts != 0, "the base counts");
        self.counts.trailing_zeros() as usize / BITS
    }
}
