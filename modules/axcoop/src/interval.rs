//! Something that comes again and again.

use core::time::Duration;

use crate::sleep::{after, now, sleep_until};

/// Comes each `period`: for the first time a period from now.
///
/// # Panics
/// If the period is 0, and if no domain is open: there is no clock.
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "interval: a period of 0");
    let period_nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    Interval {
        next_nanos: after(now(), period),
        period_nanos,
    }
}

/// See [`interval`].
#[derive(Clone, Debug)]
pub struct Interval {
    next_nanos: u64,
    period_nanos: u64,
}

impl Interval {
    /// Waits until it comes next, and returns how often it has come since the last time: more than
    /// once if whoever waits has been too late for some. All times are whole periods after the beginning,
    /// however late one is.
    ///
    /// If this future is dropped before it is ready, nothing is missed.
    pub async fn tick(&mut self) -> u64 {
        sleep_until(self.next_nanos).await;
        let times = 1 + now().saturating_sub(self.next_nanos) / self.period_nanos;
        let later = self.period_nanos.saturating_mul(times);
        self.next_nanos = self.next_nanos.saturating_add(later);
        times
    }

    /// When it comes next, in [`now`]'s nanoseconds.
    pub fn due(&self) -> u64 {
        self.next_nanos
    }
}
