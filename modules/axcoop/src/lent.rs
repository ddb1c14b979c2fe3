//! What a coroutine's priority is made of: its own, and what is lent to it.

use axcoop_summary::{PRIORITIES, Priority};

/// How much is lent of each priority: eight counters of a byte, and the base is one of them. The
/// lowest that is not 0 is the effective priority.
///
/// Of one priority at most 253 loans count at a time; [`lend`](Self::lend) says whether one does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lent {
    counts: u64,
}

const BITS: usize = u8::BITS as usize;
const _: () = assert!(PRIORITIES * BITS == u64::BITS as usize);

impl Lent {
    /// Nothing but this base.
    pub(crate) fn only(base: Priority) -> Self {
        Self {
            counts: 1 << (BITS * base.index()),
        }
    }

    /// Adds a loan, and returns whether it counts.
    #[must_use]
    pub(crate) fn lend(&mut self, priority: usize) -> bool {
        // One is left for the base, wherever that moves.
        let counts = self.counts >> (BITS * priority) & 0xff < 0xfe;
        if counts {
            self.counts += 1 << (BITS * priority);
        }
        counts
    }

    /// Takes one away that counted.
    pub(crate) fn returns(&mut self, priority: usize) {
        debug_assert!(self.counts >> (BITS * priority) & 0xff != 0);
        self.counts -= 1 << (BITS * priority);
    }

    /// The base is another.
    pub(crate) fn moves_base(&mut self, from: usize, to: usize) {
        self.returns(from);
        self.counts += 1 << (BITS * to);
    }

    /// The most urgent of all that count.
    pub(crate) fn most_urgent(self) -> usize {
        debug_assert!(self.counts != 0, "the base counts");
        self.counts.trailing_zeros() as usize / BITS
    }
}
