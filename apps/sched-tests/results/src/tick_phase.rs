//! Where in a timer tick a phase of the workload starts.

use alloc::{format, string::String};
use core::fmt;

use serde::{Deserialize, Serialize};

/// Where in a timer tick a phase of the workload started, in thousandths of the tick: 0 to 999.
#[derive(Clone, Copy, Debug, Deserialize, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct TickPhase(u16);

impl TickPhase {
    const PER_TICK: u16 = 1000;

    /// `count` of them, evenly over a tick, from 0 on.
    pub fn evenly(count: u16) -> impl Iterator<Item = Self> {
        let thousandth = move |i| u32::from(Self::PER_TICK) * u32::from(i) / u32::from(count);
        (0..count).map(move |i| Self(thousandth(i) as u16))
    }
}

impl TryFrom<u16> for TickPhase {
    type Error = String;

    fn try_from(thousandths: u16) -> Result<Self, String> {
        if thousandths < Self::PER_TICK {
            return Ok(Self(thousandths));
        }
        Err(format!("a tick phase is 0 to 999, not {thousandths}"))
    }
}

impl From<TickPhase> for u16 {
    fn from(phase: TickPhase) -> Self {
        phase.0
    }
}

impl fmt::Display for TickPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    #[test]
    fn tick_phases_are_even_and_begin_at_0() {
        let evenly = |count| TickPhase::evenly(count).map(u16::from).collect::<Vec<_>>();
        assert_eq!(evenly(1), [0]);
        assert_eq!(evenly(3), [0, 333, 666]);
        assert_eq!(evenly(8), [0, 125, 250, 375, 500, 625, 750, 875]);
        let all = evenly(64);
        assert_eq!(all.len(), 64);
        assert!(all.is_sorted_by(|a, b| a < b), "{all:?}");
    }

    #[test]
    fn a_tick_has_a_thousand_of_them() {
        assert_eq!(TickPhase::try_from(999).map(u16::from), Ok(999));
        assert_eq!(
            TickPhase::try_from(1000),
            Err("a tick phase is 0 to 999, not 1000".into())
        );
    }
}
