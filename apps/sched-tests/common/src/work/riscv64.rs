//! The loop on riscv64.

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
            "andi {odd}, {n}, 1",
            "srli {n}, {n}, 1",
            "beqz {odd}, 2f",
            "mul {x}, {x}, {a}",
            "nop",
            "2:",
            "beqz {n}, 4f",
            "3:",
            "mul {x}, {x}, {a}",
            "mul {x}, {x}, {a}",
            "addi {n}, {n}, -1",
            "bnez {n}, 3b",
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
