//! The weight of a task (rule 4), which is the part of its later CPU time that counts as before it.

use sched_core::units::Counts;

/// The number of blocks at which the time blocked counts exactly once (rule 4). With fewer
/// blocks it counts in proportion, and with more it counts several times.
///
/// So the weight never changes in a step. A task that goes on for ever is weighed by
/// `BLOCKS_IN_FULL` × r² / z, where r is a burst and z the time blocked after it. The number
/// was chosen among 16, 32, 64 and 128 by the turnaround over random programs. Only 128 was
/// slightly better, but servers waited longer.
pub const BLOCKS_IN_FULL: u64 = 64;

/// The part of a task's CPU time after its burst that is before it (rule 4), from nothing to
/// all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Weight(pub(super) u32);

impl Weight {
    /// The weight of a task whose later CPU time counts in full.
    pub const WHOLE: Self = Self(1 << 16);

    /// Returns the weight of a task that uses the CPU for `run` in all and is blocked `blocks`
    /// times, for `blocked` in all. It is rounded down, but the whole is exact.
    pub const fn of(run: Counts, blocked: Counts, blocks: u64) -> Self {
        let asleep = blocked.0 as u128 * blocks as u128 / BLOCKS_IN_FULL as u128;
        if asleep == 0 {
            return Self::WHOLE;
        }
        let whole = Self::WHOLE.0 as u128;
        Self((run.0 as u128 * whole / (run.0 as u128 + asleep)) as u32)
    }

    /// Returns the time before a task of which `burst` remains in its burst, and `rest` in all.
    /// It lies between the two. It costs two multiplications.
    #[inline]
    pub const fn before(self, burst: Counts, rest: Counts) -> Counts {
        let other = Self::WHOLE.0 - self.0;
        let sum = rest.0 as u128 * self.0 as u128 + burst.0 as u128 * other as u128;
        Counts((sum >> Self::WHOLE.0.trailing_zeros()) as u64)
    }
}
