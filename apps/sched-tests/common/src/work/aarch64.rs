//! The loop on aarch64.

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
            "ands {odd}, {n}, #1",
            "lsr {n}, {n}, #1",
            "b.eq 2f",
            "mul {x}, {x}, {a}",
            "nop",
            "2:",
            "cbz {n}, 4f",
            "3:",
            "mul {x}, {x}, {a}",
            "mul {x}, {x}, {a}",
            "subs {n}, {n}, #1",
            "b.ne 3b",
            "4:",
            n = inout(reg) rounds => _,
            x = inout(reg) x,
            a = in(reg) A,
            odd = out(reg) _,
            options(nomem, nostack),
        );
    }
    x
}
