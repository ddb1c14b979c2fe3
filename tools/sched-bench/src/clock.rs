//! The time of a scene, the same on every run. A policy reads it with one load, where a kernel reads
//! the CPU's counter with one instruction or a few.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axsched_ext::clock::Clock;
use axsched_ext::units::Counts;

/// A tick of the timer, in counts.
pub const TICK: u64 = 1_000;

static NOW: AtomicU64 = AtomicU64::new(0);

/// The clock of all our schedulers.
#[derive(Clone, Copy, Debug)]
pub struct SceneClock;

impl Clock for SceneClock {
    #[inline(always)]
    fn now() -> Counts {
        Counts(NOW.load(Relaxed))
    }
}

impl SceneClock {
    /// Lets time pass.
    pub fn advance(by: u64) {
        NOW.fetch_add(by, Relaxed);
    }
}
