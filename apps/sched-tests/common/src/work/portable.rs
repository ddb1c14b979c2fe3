//! The loop where no assembly is written for the architecture: correct, and not
//! optimised away, but its price is the compiler's affair.

use core::hint::black_box;

use super::{A, C};

/// Instructions that one round costs: unknown, the least possible is stated.
pub const INSTRUCTIONS_PER_ROUND: u64 = 2;
/// Instructions of the loop beside its rounds.
pub const INSTRUCTIONS_BESIDE: u64 = 0;

/// Iterates the generator for `rounds` rounds from `x` and returns the last value.
#[inline(never)]
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(A).wrapping_add(C));
    }
    x
}
