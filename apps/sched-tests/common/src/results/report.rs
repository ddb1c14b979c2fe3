//! What became of a profile, and what people are told of it.

use alloc::{format, string::String};

use axsched_ext::pbg::{self, Status};

use super::numbers::{ms, ratio};

/// What became of a profile.
#[derive(Clone, Debug)]
pub struct Report {
    /// Where the profile came from.
    pub from: &'static str,
    /// How it was followed, or why not.
    pub fate: Fate,
}

/// How a profile was followed, or why not.
#[derive(Clone, Debug)]
pub enum Fate {
    /// Its plan was followed, however far.
    Followed(Replay),
    /// The profile was of no use, for this reason.
    Refused(String),
}

/// How a profile was followed.
#[derive(Clone, Debug)]
pub struct Replay {
    /// The scheduler's own account of the replay.
    pub status: Status,
    /// The average turnaround of the run that the profile is of.
    pub measured_ns: u64,
    /// The average turnaround of the replay.
    pub replayed_ns: u64,
}

/// A replay is called slower than the measured run if its average turnaround is longer by
/// more than one part in this many. PBG judges itself by the same share.
const SLOWER_BY: u64 = pbg::BEHIND_BEYOND;

impl Replay {
    /// Whether the replay was slower than the measured run, by more than the share that counts.
    pub fn is_slower(&self) -> bool {
        u128::from(self.replayed_ns) * u128::from(SLOWER_BY)
            > u128::from(self.measured_ns) * u128::from(SLOWER_BY + 1)
    }

    /// A sentence for people where the replay was slower or behind, else `None`.
    pub fn remark(&self) -> Option<String> {
        if !self.is_slower() && !self.status.behind {
            return None;
        }
        let plan = if self.status.dropped {
            "gave its plan up"
        } else {
            "followed its plan to the end"
        };
        Some(format!(
            "PBG was behind the measured run and {plan}: average turnaround {} ms, measured {} ({} times as long).\n",
            ms(self.replayed_ns),
            ms(self.measured_ns),
            ratio(self.replayed_ns, self.measured_ns),
        ))
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A replay of what took 1,000 ns on average.
    pub fn replay_of(replayed_ns: u64) -> Replay {
        Replay {
            status: Status::default(),
            measured_ns: 1_000,
            replayed_ns,
        }
    }

    #[test]
    fn people_are_told_of_a_replay_that_is_slower() {
        assert_eq!(replay_of(1_050).remark(), None);
        let told = |replay: &Replay| replay.remark().unwrap();
        let mut replay = replay_of(1_051_000);
        replay.measured_ns = 1_000_000;
        let figures = "average turnaround 1.051 ms, measured 1.000 (1.0510 times as long).\n";
        let to_the_end = "PBG was behind the measured run and followed its plan to the end";
        assert_eq!(told(&replay), format!("{to_the_end}: {figures}"));
        replay.status.dropped = true;
        assert!(told(&replay).contains("and gave its plan up: "));
        // It made up for it.
        replay.replayed_ns = 900_000;
        assert_eq!(replay.remark(), None);
        replay.status.behind = true;
        assert!(told(&replay).contains("(0.9000 times as long)"));
    }
}
