//! A loop of known cost whose result can be checked.
//!
//! [`spin`] iterates the linear congruential generator x ← a·x + c mod 2⁶⁴. The
//! loop is written in assembly, so no build can shorten it or change its price:
//!
//! | architecture | instructions for n rounds |
//! |---|---|
//! | x86_64 | 4 n + 2 |
//! | aarch64 | 3 n + 1 |
//! | riscv64, loongarch64 | 4 n + 1 |
//!
//! and, always the same, a call, two constants and a return around it. [`jump`]
//! computes the same value in log n steps from the closed form, so a task that
//! lost or repeated a round is found.

#[cfg_attr(target_arch = "x86_64", path = "work/x86_64.rs")]
#[cfg_attr(target_arch = "aarch64", path = "work/aarch64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "work/riscv64.rs")]
#[cfg_attr(target_arch = "loongarch64", path = "work/loongarch64.rs")]
#[cfg_attr(
    not(any(
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "riscv64",
        target_arch = "loongarch64"
    )),
    path = "work/portable.rs"
)]
mod arch;

pub use arch::{INSTRUCTIONS_BESIDE, INSTRUCTIONS_PER_ROUND, spin};

/// Multiplier and increment of Knuth's MMIX generator.
const A: u64 = 6_364_136_223_846_793_005;
const C: u64 = 1_442_695_040_888_963_407;

/// Instructions of the loop in [`spin`] for `rounds` rounds, without what stands
/// around it.
pub const fn instructions(rounds: u64) -> u64 {
    INSTRUCTIONS_PER_ROUND * rounds + INSTRUCTIONS_BESIDE
}

/// What [`spin`] returns for `rounds` rounds from `x`, without the rounds.
///
/// n rounds of x ← a·x + c are one round with aⁿ and c·(aⁿ⁻¹ + … + a + 1); both
/// come out of squaring, one step for each bit of n.
pub const fn jump(x: u64, rounds: u64) -> u64 {
    let (mut a, mut c) = (A, C);
    let (mut a_n, mut c_n) = (1_u64, 0_u64);
    let mut n = rounds;
    while n > 0 {
        if n & 1 == 1 {
            a_n = a_n.wrapping_mul(a);
            c_n = c_n.wrapping_mul(a).wrapping_add(c);
        }
        c = c.wrapping_mul(a.wrapping_add(1));
        a = a.wrapping_mul(a);
        n >>= 1;
    }
    a_n.wrapping_mul(x).wrapping_add(c_n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rounds_change_nothing() {
        assert_eq!(spin(42, 0), 42);
        assert_eq!(jump(42, 0), 42);
    }

    #[test]
    fn one_round_is_the_recurrence() {
        assert_eq!(spin(1, 1), A.wrapping_add(C));
        assert_eq!(jump(1, 1), A.wrapping_add(C));
    }

    #[test]
    fn the_loop_equals_the_closed_form() {
        for n in (0..300).chain([1_000, 4_095, 4_096, 4_097, 65_537, 1_000_003]) {
            for seed in [0, 1, 42, u64::MAX] {
                assert_eq!(spin(seed, n), jump(seed, n), "{n} rounds from {seed}");
            }
        }
    }

    #[test]
    fn jumps_add_up() {
        let far = jump(7, u64::MAX - 5);
        assert_eq!(jump(far, 6), jump(jump(7, u64::MAX), 1));
        assert_eq!(spin(jump(7, 1_000_000_000), 3), jump(7, 1_000_000_003));
    }
}
