//! Nanoseconds, and the counts of the hardware counter that policies read.

use std::cell::Cell;

use axsched_ext::clock::VirtualClock;

/// The length of a count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clock {
    frequency_hz: u64,
}

impl Clock {
    /// Creates the clock of a counter with `frequency_hz` counts a second. The unknown frequency 0 counts as a gigahertz.
    pub const fn of_frequency(frequency_hz: u64) -> Self {
        let frequency_hz = match frequency_hz {
            0 => 1_000_000_000,
            known => known,
        };
        Self { frequency_hz }
    }

    /// Converts counts to nanoseconds.
    pub fn ns(self, counts: f64) -> f64 {
        counts * 1e9 / self.frequency_hz as f64
    }

    /// Makes this the clock of the policies of this thread: see [`set_now`].
    pub fn install(self) {
        FREQUENCY_HZ.set(self.frequency_hz);
    }
}

thread_local! {
    static FREQUENCY_HZ: Cell<u64> = const { Cell::new(1_000_000_000) };
}

/// Sets the counter that the policies of this thread read to this time in nanoseconds.
pub fn set_now(ns: u64) {
    let frequency_hz = FREQUENCY_HZ.get();
    VirtualClock::set(match frequency_hz {
        1_000_000_000 => ns,
        _ => (u128::from(ns) * u128::from(frequency_hz) / 1_000_000_000) as u64,
    });
}
