//! Time for the hot path: one read of the CPU's counter.
//!
//! The crate reads the counter itself instead of asking `axhal`, because the shim must drop into
//! any ArceOS tree whatever its `axhal` version (see `docs/adr/0001-shim-and-patch.md`). The
//! counters have a constant rate and are monotonic on one CPU. Their frequency is not known here
//! and not needed.

use crate::units::Counts;

/// A source of [`Counts`]. It is a type and not a value, so it costs nothing to carry.
pub trait Clock {
    /// Returns the present reading.
    fn now() -> Counts;
}

/// The CPU's own counter: `rdtsc`, `rdtime`, `cntvct_el0` or `rdtime.d`.
///
/// A reading is one instruction that does not serialise. A reordering by a few instructions does
/// not matter to a run interval. A fence in every pick would.
#[derive(Clone, Copy, Debug)]
pub struct CpuCounter;

impl Clock for CpuCounter {
    #[inline(always)]
    fn now() -> Counts {
        Counts(arch::read_counter())
    }
}

#[cfg(target_arch = "x86_64")]
mod arch {
    #[inline(always)]
    pub fn read_counter() -> u64 {
        // SAFETY: every x86_64 CPU has a time-stamp counter. ArceOS runs at ring 0, where CR4.TSD
        // does not apply. On a host, ring 3 may read the counter, too.
        unsafe { core::arch::x86_64::_rdtsc() }
    }
}

#[cfg(target_arch = "riscv64")]
mod arch {
    #[inline(always)]
    pub fn read_counter() -> u64 {
        let time: u64;
        // SAFETY: `rdtime` only reads. SBI firmware grants it to S-mode.
        unsafe { core::arch::asm!("rdtime {}", out(reg) time, options(nomem, nostack)) };
        time
    }
}

#[cfg(target_arch = "aarch64")]
mod arch {
    #[inline(always)]
    pub fn read_counter() -> u64 {
        let time: u64;
        // SAFETY: `cntvct_el0` is only read, and can be read at EL1 and EL0.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) time, options(nomem, nostack)) };
        time
    }
}

#[cfg(target_arch = "loongarch64")]
mod arch {
    #[inline(always)]
    pub fn read_counter() -> u64 {
        let time: u64;
        // SAFETY: `rdtime.d` only reads. The second operand receives the counter's id.
        unsafe { core::arch::asm!("rdtime.d {}, $zero", out(reg) time, options(nomem, nostack)) };
        time
    }
}

/// A clock that tests and the host model move by hand. Each thread has its own, so tests in
/// parallel do not see each other.
#[cfg(feature = "std")]
#[derive(Clone, Copy, Debug)]
pub struct VirtualClock;

#[cfg(feature = "std")]
std::thread_local! {
    static VIRTUAL_NOW: core::cell::Cell<u64> = const { core::cell::Cell::new(0) };
}

#[cfg(feature = "std")]
impl VirtualClock {
    /// Sets this thread's virtual time.
    pub fn set(now: u64) {
        VIRTUAL_NOW.set(now);
    }

    /// Moves this thread's virtual time forward.
    pub fn advance(by: u64) {
        VIRTUAL_NOW.set(VIRTUAL_NOW.get() + by);
    }
}

#[cfg(feature = "std")]
impl Clock for VirtualClock {
    fn now() -> Counts {
        Counts(VIRTUAL_NOW.get())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cpu_counter_moves_forward() {
        let before = CpuCounter::now();
        let mut now = before;
        while now == before {
            now = CpuCounter::now();
        }
        assert!(now > before);
    }
}
