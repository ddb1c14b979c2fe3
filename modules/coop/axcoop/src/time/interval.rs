//! A timer that is due once each period.

use core::time::Duration;

use crate::time::sleep::{after, now, sleep_until};

/// Returns a timer that is due once each `period`, for the first time one period from now.
///
/// # Panics
/// If the period is 0, or no domain is open: there is no clock.
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "interval: a period of 0");
    let period_nanos = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX);
    Interval {
        next_nanos: after(now(), period),
        period_nanos,
    }
}

/// The periodic timer that [`interval`] returns.
#[derive(Clone, Debug)]
pub struct Interval {
    next_nanos: u64,
    period_nanos: u64,
}

impl Interval {
    /// Waits for the next time, and returns the number of periods that have passed since the last one: more than 1
    /// for a late caller. All times are whole periods after the beginning, however late a call is.
    ///
    /// If this future is dropped before it is ready, no period is missed.
    pub async fn tick(&mut self) -> u64 {
        sleep_until(self.next_nanos).await;
        let times = 1 + now().saturating_sub(self.next_nanos) / self.period_nanos;
        let later = self.period_nanos.saturating_mul(times);
        self.next_nanos = self.next_nanos.saturating_add(later);
        times
    }

    /// Returns the next time, in [`now`]'s nanoseconds.
    pub fn due(&self) -> u64 {
        self.next_nanos
    }
}
