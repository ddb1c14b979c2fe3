//! The loop on x86_64.

use core::arch::asm;

use super::A;

/// Iterates the generator for `rounds` rounds from `x`, which is not 0, and returns
/// the last value.
#[must_use = "what the work came to says whether it was done"]
#[inline(never)]
pub fn spin(mut x: u64, rounds: u64) -> u64 {
    // SAFETY: the code uses registers only, and neither memory nor the stack.
    unsafe {
        asm!(
            "shr {n}",
            "jnc 2f",
            "imul {x}, {a}",
            "nop",
            "2:",
            "test {n}, {n}",
            "jz 4f",
            "3:",
            "imul {x}, {a}",
            "imul {x}, {a}",
            "dec {n}",
            "jnz 3b",
            "4:",
            n = inout(reg) rounds => _,
            x = inout(reg) x,
            a = in(reg) A,
            options(nomem, nostack),
        );
    }
    x
}
