//! The length of the poller's sleep between two rounds.
//!
//! Rules:
//! 1. For [`ACTIVE`] after the last activity it does not sleep, but yields.
//! 2. Then it sleeps, twice as long each time, from [`Backoff::SHORTEST`] to [`Backoff::LONGEST`]. ArceOS looks at
//!    its timers at each tick, 10 ms apart: a sleep ends with the first tick after its time.
//! 3. Any activity starts again with rule 1.

use core::time::Duration;

/// The time after an activity in which the next one is expected at once. A request and its continuation are tenths of
/// a millisecond apart.
pub const ACTIVE: Duration = Duration::from_millis(2);

/// The action of the poller before its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It yields once.
    Yield,
    /// It sleeps for this long, or until a ring.
    Sleep(Duration),
}

/// Counts the time without activity.
#[derive(Debug, Default)]
pub struct Backoff {
    active_until: Duration,
    last: Option<Duration>,
}

impl Backoff {
    /// The first sleep.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest sleep.
    pub const LONGEST: Duration = Duration::from_millis(16);

    /// Returns the action after a round that ended `now`, in which there was activity or not.
    #[must_use]
    pub fn after_round(&mut self, now: Duration, was_active: bool) -> Rest {
        if was_active {
            *self = Self {
                active_until: now + ACTIVE,
                last: None,
            };
        }
        if now < self.active_until {
            return Rest::Yield;
        }
        let rest = self
            .last
            .map_or(Self::SHORTEST, |last| (last * 2).min(Self::LONGEST));
        self.last = Some(rest);
        Rest::Sleep(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    #[test]
    fn rule_1_poller_yields_after_activity() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.after_round(ms(100), true), Rest::Yield);
        assert_eq!(backoff.after_round(ms(101), false), Rest::Yield);
        assert_eq!(backoff.after_round(ms(102), false), Rest::Sleep(ms(1)));
    }

    #[test]
    fn rule_2_sleeps_double_up_to_the_longest() {
        let mut backoff = Backoff::default();
        let rests = [1, 2, 4, 8, 16, 16, 16].map(|n| Rest::Sleep(ms(n)));
        assert_eq!(
            [5, 6, 7, 8, 9, 10, 11].map(|now| backoff.after_round(ms(now), false)),
            rests
        );
    }

    #[test]
    fn rule_3_activity_starts_again() {
        let mut backoff = Backoff::default();
        let _ = backoff.after_round(ms(1), false);
        let _ = backoff.after_round(ms(2), false);
        assert_eq!(backoff.after_round(ms(3), true), Rest::Yield);
        assert_eq!(backoff.after_round(ms(5), false), Rest::Sleep(ms(1)));
    }
}
