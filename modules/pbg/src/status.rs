//! The status of PBG: its mode, and how a replay goes.

use core::fmt;

use sched_core::units::TaskKey;

/// The replay is behind when its tasks together are late by more than one part in this many of the
/// measured turnaround of all (rule 11), and by a tick each. Twenty, as less than that is no reason
/// to lose the gain of a plan.
pub const BEHIND_FRACTION: u64 = 20;

/// What PBG is doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// The base policy runs.
    #[default]
    Idle,
    /// The base policy runs and is recorded.
    Measuring,
    /// A plan is followed.
    Replaying,
}

/// How a task diverged from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The plan did not know it.
    Unknown = 1,
    /// It used more time on the CPU than the plan can bear; in counts.
    Run = 2,
    /// It yielded more often than the plan can bear.
    Yields = 3,
    /// It was late by the most when the replay was found behind (rule 11): so many counts
    /// after its spawn it had not ended.
    Turnaround = 4,
}

impl Cause {
    pub(super) const ALL: [Self; 4] = [Self::Unknown, Self::Run, Self::Yields, Self::Turnaround];

    /// Returns its name in result lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown task",
            Self::Run => "run time",
            Self::Yields => "yields",
            Self::Turnaround => "turnaround",
        }
    }
}

/// The first task that went its own way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The kind of divergence.
    pub cause: Cause,
    /// The task's key.
    pub task: TaskKey,
    /// The most that was recorded; 0 of an unknown task.
    pub expected: u64,
    /// What there was when it was noticed; 0 of an unknown task.
    pub found: u64,
}

/// How a replay has gone so far. Its `Display` is one JSON object in one line, with
/// stable keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// What PBG is doing.
    pub mode: Mode,
    /// Tasks in the plan.
    pub planned: u32,
    /// Tasks spawned that the plan knew.
    pub matched: u32,
    /// Children of the root or of planned tasks that the plan did not know. (Their own
    /// descendants count only with a label, as the others have no key.)
    pub unplanned: u32,
    /// Planned tasks that ran far beyond their plan (rule 8).
    pub demoted: u32,
    /// True if the plan was dropped (rules 10 and 11).
    pub dropped: bool,
    /// True if the replay is slower than the measured run: a tick has found it so (rule 11), or
    /// `turnaround_permille` is above 1,000 by more than one part in [`BEHIND_FRACTION`].
    pub behind: bool,
    /// How long the plan's tasks that have come lived, each from its spawn until it last gave
    /// the CPU away, in thousandths of how long they did when they were measured: after the
    /// last one's end, the average turnaround against the measured. 0 if none has come.
    pub turnaround_permille: u32,
    /// Turns that the fallback queue got while planned tasks were ready (rule 7).
    pub turns: u32,
    /// Tasks that no order could end by their deadline, when the plan was made.
    pub late: u32,
    /// The first task that went its own way.
    pub first: Option<Divergence>,
}

impl Status {
    /// Tasks of the plan that were not spawned (yet).
    pub const fn missing(&self) -> u32 {
        self.planned - self.matched
    }

    /// Tasks that went another way than planned.
    pub const fn diverged(&self) -> u32 {
        self.unplanned + self.demoted
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            r#"{{"planned":{},"matched":{},"missing":{},"unplanned":{},"diverged":{},"demoted":{},"dropped":{},"turns":{},"late":{},"behind":{},"turnaround_permille":{}"#,
            self.planned,
            self.matched,
            self.missing(),
            self.unplanned,
            self.diverged(),
            self.demoted,
            self.dropped,
            self.turns,
            self.late,
            self.behind,
            self.turnaround_permille,
        )?;
        if let Some(first) = &self.first {
            write!(
                f,
                r#","why":"{}","task":"{}","expected":{},"found":{}"#,
                first.cause.name(),
                first.task,
                first.expected,
                first.found
            )?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_one_json_object() {
        let status = Status {
            mode: Mode::Replaying,
            planned: 5,
            matched: 4,
            unplanned: 2,
            demoted: 1,
            turns: 9,
            behind: true,
            turnaround_permille: 1051,
            first: Some(Divergence {
                cause: Cause::Run,
                task: TaskKey::ROOT.child(0),
                expected: 10,
                found: 21,
            }),
            ..Status::default()
        };
        let expected = r#"{"planned":5,"matched":4,"missing":1,"unplanned":2,"diverged":3,"demoted":1,"dropped":false,"turns":9,"late":0,"behind":true,"turnaround_permille":1051,"why":"run time","task":"27f818c3c18b0cda","expected":10,"found":21}"#;
        assert_eq!(std::format!("{status}"), expected);
    }
}
