//! The loop on aarch64: 3 n + 1 instructions for n rounds.

use core::arch::asm;

use super::{A, C};

/// Instructions that one round costs.
pub const INSTRUCTIONS_PER_ROUND: u64 = 3;
/// Instructions of the loop beside its rounds.
pub const INSTRUCTIONS_BESIDE: u64 = 1;

/// Iterates the generator for `rounds` rounds from `x` and returns the last value.
#[inline(never)]
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    // SAFETY: registers only; no memory, no stack.
    unsafe {
        asm!(
            "cbz {n}, 3f",
            "2:",
            "madd {x}, {x}, {a}, {c}",
            "subs {n}, {n}, #1",
            "b.ne 2b",
            "3:",
            n = inout(reg) rounds => _,
            x = inout(reg) x,
            a = in(reg) A,
            c = in(reg) C,
            options(pure, nomem, nostack),
        );
    }
    x
}
