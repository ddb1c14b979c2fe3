//! A loop of known cost whose result can be checked.
//!
//! [`spin`] iterates the multiplicative congruential generator x ← a·x mod 2⁶⁴ (Lehmer, 1951). The
//! loop is written in assembly. So no build can shorten it, leave it out where its result is not
//! used, or change its cost. The cost for n rounds is 2 n + 4 instructions on x86_64, riscv64,
//! aarch64 and loongarch64. A call, a constant and a return come on top, and are always the same.
//! Two rounds are one turn of the loop, and an odd round comes before the loop. [`jump`] computes
//! the same value in log n steps, and so finds a task that lost or repeated a round.

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

pub use arch::spin;

/// The instructions that one round of [`spin`] costs.
pub const INSTRUCTIONS_PER_ROUND: u64 = 2;
/// The instructions of the loop beside its rounds.
pub const INSTRUCTIONS_BESIDE: u64 = 4;

/// A multiplier with a long period, 2⁶² from any odd x (Steele and Vigna, 2021).
const A: u64 = 0xd134_2543_de82_ef95;

/// Returns the instructions of the loop in [`spin`] for `rounds` rounds, without the code around
/// it.
pub const fn instructions(rounds: u64) -> u64 {
    INSTRUCTIONS_PER_ROUND * rounds + INSTRUCTIONS_BESIDE
}

/// Returns the result of [`spin`] for `rounds` rounds from `x` without running them: aⁿ·x, by
/// squaring.
pub const fn jump(x: u64, rounds: u64) -> u64 {
    let (mut a, mut result, mut n) = (A, x, rounds);
    while n > 0 {
        if n & 1 == 1 {
            result = result.wrapping_mul(a);
        }
        a = a.wrapping_mul(a);
        n >>= 1;
    }
    result
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
        assert_eq!(spin(1, 1), A);
        assert_eq!(jump(1, 1), A);
    }

    #[test]
    fn the_loop_equals_the_closed_form() {
        for n in (0..300).chain([1_000, 4_095, 4_096, 4_097, 65_537, 1_000_003]) {
            for seed in [1, 2, 42, u64::MAX] {
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
