//! The loop where no assembly is written for the architecture: correct, and not
//! optimised away, but its price is the compiler's affair.

use core::hint::black_box;

use super::A;

/// Iterates the generator for `rounds` rounds from `x`, which is not 0, and returns
/// the last value.
#[must_use = "what the work came to says whether it was done"]
#[inline(never)]
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(A));
    }
    x
}
