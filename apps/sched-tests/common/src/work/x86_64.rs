//! The loop on x86_64: 4 n + 2 instructions for n rounds.

use core::arch::asm;

use super::{A, C};

/// Instructions that one round costs.
pub const INSTRUCTIONS_PER_ROUND: u64 = 4;
/// Instructions of the loop beside its rounds.
pub const INSTRUCTIONS_BESIDE: u64 = 2;

/// Iterates the generator for `rounds` rounds from `x` and returns the last value.
#[inline(never)]
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    // SAFETY: registers only; no memory, no stack.
    unsafe {
        asm!(
            "test {n}, {n}",
            "jz 3f",
            "2:",
            "imul {x}, {a}",
            "add {x}, {c}",
            "dec {n}",
            "jnz 2b",
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
