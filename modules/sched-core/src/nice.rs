//! Nice values: the weights that they stand for, and the vruntime of a run by weight.
//!
//! Policies that share the CPU by weight use them. A task's *vruntime* is its CPU time, times 1024
//! over its weight. So for a task of nice 0 it is the CPU time.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::task::InitialState;
use crate::units::Counts;

/// The weights of the nice values from −20 to 19, as in Linux's
/// `sched_prio_to_weight`: each is about 1.25 times the next.
pub const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, //
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, //
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, //
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight at which vruntime equals CPU time.
pub const NORMAL_WEIGHT: u64 = 1024;

/// Index of nice 0 in [`WEIGHTS`].
pub const NICE_0: u8 = 20;

/// The number of bits after the point of a vruntime, whose unit is a count over 2^12. Without them
/// a heavy task's run interval of a few counts of a slow counter would be charged as zero.
pub const FRACTION_BITS: u32 = 12;

/// The longest run that is charged in full, in counts: 2.4 hours at 1 GHz. A task that runs for
/// longer without a tick is charged for this much. So no charge goes half-way round the line of
/// vruntime, not even one at nice 19.
pub const LONGEST_CHARGE: Counts = Counts(1 << 43);

/// `NORMAL_WEIGHT / weight` in fractions of a count, over 2^32, so that a charge needs
/// no division.
const FACTORS: [u64; 40] = {
    let mut factors = [0; 40];
    let mut i = 0;
    while i < 40 {
        factors[i] = (NORMAL_WEIGHT << (32 + FRACTION_BITS)) / WEIGHTS[i] as u64;
        i += 1;
    }
    factors
};

/// The vruntime that one count of a run adds, over 2^32. Each task keeps its factor, so that a
/// charge needs no table.
#[derive(Clone, Copy)]
pub struct Factor(pub u64);

impl Factor {
    /// The factor of nice 0.
    pub const NICE_0: Self = Self::of(NICE_0);

    /// Returns the factor of the nice value with this index in [`WEIGHTS`].
    pub const fn of(index: u8) -> Self {
        Self(FACTORS[index as usize])
    }

    /// Returns the vruntime that a run interval adds. The interval is at most [`LONGEST_CHARGE`],
    /// as those of [`RunIntervals`](crate::run_interval::RunIntervals) are.
    #[inline]
    pub const fn times(self, run: Counts) -> u64 {
        debug_assert!(run.0 <= LONGEST_CHARGE.0);
        ((run.0 as u128 * self.0 as u128) >> 32) as u64
    }
}

/// The weight and factor of a task's nice value. Relaxed: see LOCK in [`task`](crate::task).
pub struct Share {
    weight: AtomicU32,
    factor: AtomicU64,
}

impl InitialState for Share {
    const INITIAL: Self = Self {
        weight: AtomicU32::new(WEIGHTS[NICE_0 as usize]),
        factor: AtomicU64::new(Factor::of(NICE_0).0),
    };
}

impl Share {
    /// Returns the weight of the task's nice value.
    #[inline]
    pub fn weight(&self) -> u64 {
        u64::from(self.weight.load(Relaxed))
    }

    /// Returns the factor by which a run adds to the task's vruntime.
    #[inline]
    pub fn factor(&self) -> Factor {
        Factor(self.factor.load(Relaxed))
    }

    /// Sets the nice value to the one with this index in [`WEIGHTS`].
    pub fn set(&self, index: u8) {
        self.weight.store(WEIGHTS[index as usize], Relaxed);
        self.factor.store(Factor::of(index).0, Relaxed);
    }
}

/// Returns the index of a nice value in [`WEIGHTS`], or `None` outside of −20 to 19.
pub fn index(nice: isize) -> Option<u8> {
    let is_one = (-20..=19).contains(&nice);
    is_one.then(|| (nice + NICE_0 as isize) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One count, as vruntime of a task of nice 0.
    const ONE: u64 = 1 << FRACTION_BITS;

    fn weighted(run: Counts, index: u8) -> u64 {
        Factor::of(index).times(run)
    }

    #[test]
    fn a_run_counts_by_the_weight_of_nice_0_over_its_own() {
        assert_eq!(weighted(Counts(12345), NICE_0), 12345 * ONE);
        assert_eq!(weighted(Counts(88761), 0) >> FRACTION_BITS, 1023);
        assert!(weighted(Counts(1), 0) > 0, "a single count of the heaviest");
        assert_eq!(weighted(Counts(15), 39) >> FRACTION_BITS, 1023);
    }

    #[test]
    fn the_longest_charge_does_not_overflow() {
        for index in 0..40 {
            let charge = weighted(LONGEST_CHARGE, index);
            let weight = f64::from(WEIGHTS[index as usize]);
            let exact = LONGEST_CHARGE.0 as f64 * 1024.0 * ONE as f64 / weight;
            assert!((charge as f64 / exact - 1.0).abs() < 1e-6, "index {index}");
            assert!(
                charge < 1 << 62,
                "half-way round at most with what is there"
            );
        }
    }

    #[test]
    fn nice_values_are_from_minus_20_to_19() {
        assert_eq!([-20, 0, 19].map(index), [Some(0), Some(NICE_0), Some(39)]);
        assert_eq!([-21, 20, isize::MIN, isize::MAX].map(index), [None; 4]);
    }
}
