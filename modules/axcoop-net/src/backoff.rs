//! How long the poller rests between two rounds.
//!
//! Rules:
//! 1. For [`ACTIVE`] after something was to be done it does not rest, but lets others go first.
//! 2. Then it rests, for twice as long each time, from [`Backoff::SHORTEST`] to
//!    [`Backoff::LONGEST`]. ArceOS looks at its timers at each tick, 10 ms apart: a rest ends with
//!    the first tick after it.
//! 3. Whatever is to be done begins it anew.

use core::time::Duration;

/// How long after something was to be done the next is expected at once. A request and what follows
/// it are tenths of a millisecond apart.
pub const ACTIVE: Duration = Duration::from_millis(2);

/// What the poller does before its next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// It lets others go first, once.
    Yield,
    /// It sleeps for so long, or until somebody rings.
    Sleep(Duration),
}

/// Counts how long nothing has been to do.
#[derive(Debug, Default)]
pub struct Backoff {
    active_until: Duration,
    last: Option<Duration>,
}

impl Backoff {
    /// The first rest.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// The longest one.
    pub const LONGEST: Duration = Duration::from_millis(16);

    /// After a round at this time, in which something was to be done or not.
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
    fn rule_1_it_stays_awake_for_a_while() {
        let mut backoff = Backoff::default();
        assert_eq!(backoff.after_round(ms(100), true), Rest::Yield);
        assert_eq!(backoff.after_round(ms(101), false), Rest::Yield);
        assert_eq!(backoff.after_round(ms(102), false), Rest::Sleep(ms(1)));
    }

    #[test]
    fn rule_2_rests_grow_to_the_longest() {
        let mut backoff = Backoff::default();
        let rests = [1, 2, 4, 8, 16, 16, 16].map(|n| Rest::Sleep(ms(n)));
        assert_eq!(
            [5, 6, 7, 8, 9, 10, 11].map(|now| backoff.after_round(ms(now), false)),
            rests
        );
    }

    #[test]
    fn rule_3_something_to_do_begins_it_anew() {
        let mut backoff = Backoff::default();
        let _ = backoff.after_round(ms(1), false);
        let _ = backoff.after_round(ms(2), false);
        assert_eq!(backoff.after_round(ms(3), true), Rest::Yield);
        assert_eq!(backoff.after_round(ms(5), false), Rest::Sleep(ms(1)));
    }
}
