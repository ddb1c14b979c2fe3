//! The ACPI power-management timer: 3.579545 MHz by definition, whatever the TSC
//! does. It is 24 bits wide, so it is read once a second (it wraps after 4.7 s).

use core::{
    arch::asm,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use sched_tests_common::platform::now_ns;

/// The port at which QEMU's q35 and its firmware put the timer.
const PORT: u16 = 0x608;
const HZ: u64 = 3_579_545;
const SECONDS: u32 = 4;

static GUEST_NS: AtomicU64 = AtomicU64::new(0);
static TIMER_NS: AtomicU64 = AtomicU64::new(0);

/// Reads both clocks over [`SECONDS`] seconds of the guest's clock.
pub fn compare() {
    let begin_ns = now_ns();
    let mut last = read();
    let mut ticks = 0;
    for _ in 0..SECONDS {
        axtask::sleep(Duration::from_secs(1));
        let now = read();
        ticks += u64::from(now.wrapping_sub(last) & 0xff_ffff);
        last = now;
    }
    GUEST_NS.store(now_ns() - begin_ns, Relaxed);
    TIMER_NS.store(ticks * 1_000_000_000 / HZ, Relaxed);
}

/// Returns the nanoseconds that the guest's clock and the timer counted in the same time. Called
/// once [`compare`] has been joined.
pub fn result() -> Option<(u64, u64)> {
    Some((GUEST_NS.load(Relaxed), TIMER_NS.load(Relaxed)))
}

fn read() -> u32 {
    let ticks: u32;
    // SAFETY: reading the timer has no side effect.
    unsafe {
        asm!("in eax, dx", out("eax") ticks, in("dx") PORT, options(nomem, nostack, preserves_flags));
    }
    ticks
}
