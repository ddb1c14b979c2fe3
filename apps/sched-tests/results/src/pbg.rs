//! The fate of a profile.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{
    Kind, ReadError, ResultLine,
    read::{read_json, value_of},
};

/// The fate of a profile.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PbgLine {
    /// It did not fit. The line has the key `refused`.
    Refused(Refused),
    /// Its plan was followed, however far.
    Followed(Followed),
}

/// A profile that was refused.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// The name of the application.
    pub app: String,
    /// The guest's architecture.
    pub arch: String,
    /// Where the profile came from: `boot` (measured in this one), `image` or `disk`.
    pub from: String,
    /// Why: what was expected, and what was found.
    pub refused: String,
}

/// A replay that has ended. From `planned` to `found` the keys are those of the library's
/// `Status`, as any program may print it.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Followed {
    /// The name of the application.
    pub app: String,
    /// The guest's architecture.
    pub arch: String,
    /// Where the profile came from: `boot` (measured in this one), `image` or `disk`.
    pub from: String,
    /// Tasks in the plan.
    pub planned: u32,
    /// Tasks spawned that the plan knew, at most `planned`.
    pub matched: u32,
    /// The planned tasks that were not spawned.
    pub missing: u32,
    /// Tasks spawned that the plan did not know.
    pub unplanned: u32,
    /// The sum of `unplanned` and `demoted`.
    pub diverged: u32,
    /// Planned tasks that ran far beyond their plan.
    pub demoted: u32,
    /// True if the plan was given up.
    pub dropped: bool,
    /// The turns that the other tasks got while planned ones were ready.
    pub turns: u32,
    /// Tasks that no order could end by their deadline, when the plan was made.
    pub late: u32,
    /// True if the replay was behind the measured run, by the scheduler's own account.
    pub behind: bool,
    /// The lifetimes of the plan's tasks, in thousandths of their lifetimes in the measured run; 0
    /// if no task has come.
    pub turnaround_permille: u32,
    /// The first divergence, if there is one.
    #[serde(flatten)]
    pub first: Option<Divergence>,
    /// The average turnaround in the run that the profile is of.
    pub measured_avg_turnaround_ns: u64,
    /// True if the average turnaround of the replay is longer than that by more than a twentieth.
    pub slower: bool,
}

/// The first divergence of a task from the profile. The four keys are there together or not at all.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Divergence {
    /// The kind of the divergence: `run time`, `yields` and so on.
    pub why: String,
    /// The task's key, 16 hexadecimal digits.
    pub task: String,
    /// The most that was recorded; 0 for an unknown task.
    pub expected: u64,
    /// The amount at the moment of the divergence; 0 for an unknown task.
    pub found: u64,
}

impl Default for PbgLine {
    fn default() -> Self {
        Self::Followed(Followed::default())
    }
}

impl ResultLine for PbgLine {
    const KIND: Kind = Kind::Pbg;

    /// Reads the variant that the key `refused` decides, so that an error names the keys of that
    /// one.
    fn from_json(json: &str) -> Result<Self, ReadError> {
        if value_of(Self::KIND, json)?.contains_key("refused") {
            read_json(Self::KIND, json).map(Self::Refused)
        } else {
            read_json(Self::KIND, json).map(Self::Followed)
        }
    }
}
