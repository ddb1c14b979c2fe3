//! The weight of a task (rule 4): how much of what follows its burst is before it.

use sched_core::units::Counts;

/// After so many blocks the time blocked counts in full, before that in proportion, and
/// beyond that several times (rule 4). So the weight has no limit where it would change
/// at once, and a task that goes on for ever is weighed by `BLOCKS_IN_FULL` × r² / z,
/// where r is a burst and z the time blocked after it. Of 16, 32, 64 and 128 the one
/// with the least turnaround over random programs, but for 128, where servers wait longer
/// for nearly the same.
pub const BLOCKS_IN_FULL: u64 = 64;

/// The part of a task's CPU time after its burst that is before it (rule 4): from
/// nothing to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Weight(pub(super) u32);

impl Weight {
    /// The weight of a task of which all that follows counts.
    pub const WHOLE: Self = Self(1 << 16);

    /// Of a task that uses the CPU for `run` in all and is blocked `blocks` times, for
    /// `blocked` in all. Rounded down, but the whole is exact.
    pub const fn of(run: Counts, blocked: Counts, blocks: u64) -> Self {
        let asleep = blocked.0 as u128 * blocks as u128 / BLOCKS_IN_FULL as u128;
        if asleep == 0 {
            return Self::WHOLE;
        }
        let whole = Self::WHOLE.0 as u128;
        Self((run.0 as u128 * whole / (run.0 as u128 + asleep)) as u32)
    }

    /// What is before a task in whose burst `burst` remains, and in all `rest`: it
    /// is between the two. Cost: two multiplications.
    #[inline]
    pub const fn before(self, burst: Counts, rest: Counts) -> Counts {
        let other = Self::WHOLE.0 - self.0;
        let sum = rest.0 as u128 * self.0 as u128 + burst.0 as u128 * other as u128;
        Counts((sum >> Self::WHOLE.0.trailing_zeros()) as u64)
    }
}
