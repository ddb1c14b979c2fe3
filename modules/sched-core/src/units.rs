//! Newtypes for the quantities that a scheduler must not mix up.

use core::fmt;
use core::ops::{AddAssign, Sub};

/// A span or reading of the CPU's hardware counter, in counts.
///
/// A count is whatever the counter's frequency makes it: 1 ns under icount on x86_64, 100 ns on
/// QEMU's riscv64. This crate never converts counts. Only tools that print for people do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Counts(pub u64);

impl Counts {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// Returns `self + other`, stopping at the largest value.
    #[inline]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// Returns `self * factor`, stopping at the largest value.
    #[inline]
    pub const fn saturating_mul(self, factor: u64) -> Self {
        Self(self.0.saturating_mul(factor))
    }
}

/// The time from `earlier` to `self`, modulo 2^64 as the hardware counts. If the counter ran
/// backwards, as with two CPUs out of step, the result is zero and not a huge span.
impl Sub for Counts {
    type Output = Self;
    #[inline]
    fn sub(self, earlier: Self) -> Self {
        let span = self.0.wrapping_sub(earlier.0);
        if span >> 63 == 0 { Self(span) } else { Self(0) }
    }
}

impl AddAssign for Counts {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        *self = self.saturating_add(other);
    }
}

/// The identity of a task, the same on every run of a program. It is derived from the parent's key
/// and the task's place among its siblings, or from a label that the program gave it. It never
/// depends on an address or on `axtask`'s ids.
///
/// A key is 64 bits of a bijective mix (the finaliser of Steele, Lea and Flood's SplitMix64). Among
/// n recorded tasks two keys collide with probability about n²/2^65, below 10^-12 for 4,096. A
/// collision is found when the profile is made, and leaves both tasks unplanned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct TaskKey(u64);

impl TaskKey {
    /// The key of the task that started measuring or replaying. Its descendants are the program.
    pub const ROOT: Self = Self(0x5042_475f_524f_4f54); // "PBG_ROOT"

    /// Returns the key of this task's `ordinal`-th spawn, counted from 0.
    pub const fn child(self, ordinal: u32) -> Self {
        // Adding before mixing keeps siblings apart. For one parent the map ordinal -> key is
        // injective, since every step of the mix is bijective.
        let step = (ordinal as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(mix(self.0.wrapping_add(step)))
    }

    /// Returns the key of the task labelled `label`. The parent and the place among its siblings do
    /// not matter.
    ///
    /// It is FNV-1a over the bytes (Fowler, Noll and Vo), then the mix of [`child`](Self::child),
    /// since FNV alone leaves the top bits of short names nearly alike. Cost: one multiplication
    /// per byte.
    pub const fn labelled(label: &str) -> Self {
        Self(mix(Fnv::NEW.with(label.as_bytes()).0))
    }

    /// Returns the key of a label that is given in pieces. Allocates nothing.
    pub fn formatted(label: fmt::Arguments) -> Self {
        let mut hash = Fnv::NEW;
        // The hash accepts every text, so this cannot fail.
        let _ = fmt::Write::write_fmt(&mut hash, label);
        Self(mix(hash.0))
    }

    /// Returns the key as a number, as profiles store it.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the key that [`to_bits`](Self::to_bits) made this number of.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }
}

/// The state of an FNV-1a hash of 64 bits.
struct Fnv(u64);

impl Fnv {
    const NEW: Self = Self(0xcbf2_9ce4_8422_2325);

    const fn with(self, bytes: &[u8]) -> Self {
        let Self(mut hash) = self;
        let mut i = 0;
        while i < bytes.len() {
            hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
        Self(hash)
    }
}

impl fmt::Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        *self = Self(self.0).with(text.as_bytes());
        Ok(())
    }
}

/// Returns `z` mixed by the finaliser of SplitMix64, a bijection.
const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl fmt::Display for TaskKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn a_span_is_never_negative_and_survives_a_wrap() {
        assert_eq!(Counts(7) - Counts(3), Counts(4));
        assert_eq!(Counts(3) - Counts(7), Counts(0));
        assert_eq!(Counts(2) - Counts(u64::MAX), Counts(3));
    }

    #[test]
    fn keys_depend_on_the_path_and_only_on_it() {
        let a = TaskKey::ROOT.child(0);
        assert_eq!(a, TaskKey::ROOT.child(0));
        assert_ne!(a.child(1), TaskKey::ROOT.child(1).child(0));
        let mut seen = HashSet::from([TaskKey::ROOT]);
        for i in 0..64 {
            let parent = TaskKey::ROOT.child(i);
            assert!(seen.insert(parent));
            for j in 0..64 {
                assert!(seen.insert(parent.child(j)), "collision at {i}/{j}");
            }
        }
        for i in 0..4096 {
            assert!(seen.insert(TaskKey::labelled(&i.to_string())), "{i}");
        }
    }

    #[test]
    fn keys_never_change_because_profiles_outlive_a_build() {
        let bits = [
            TaskKey::ROOT,
            TaskKey::ROOT.child(0),
            TaskKey::ROOT.child(1).child(2),
            TaskKey::labelled("worker"),
        ]
        .map(TaskKey::to_bits);
        let expected = [
            0x5042_475f_524f_4f54,
            0x27f8_18c3_c18b_0cda,
            0x86c3_a733_0404_47d5,
            0x772c_295d_81fa_2902,
        ];
        assert_eq!(bits, expected);
    }
}
