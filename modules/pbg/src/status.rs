//! The status of PBG: its mode, and how a replay goes.

use core::fmt;

use sched_core::units::TaskKey;

/// The part of the measured turnaround of all tasks, as one in this number, by which a replay may
/// be late before it is behind (rule 11). A tick for each task comes on top. A smaller lateness is
/// no reason to lose the gain of a plan.
pub const BEHIND_FRACTION: u64 = 20;

/// The phase that PBG is in.
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

/// The way in which a task diverged from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Cause {
    /// The plan did not know it.
    Unknown = 1,
    /// It overran its planned CPU time by more than rule 8 allows. The figures are in counts.
    Run = 2,
    /// It yielded more often than rule 8 allows.
    Yields = 3,
    /// It was the latest task when the replay was found behind (rule 11). The figures are times
    /// since its spawn, in counts.
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

/// The divergence of one task from the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divergence {
    /// The kind of divergence.
    pub cause: Cause,
    /// The task's key.
    pub task: TaskKey,
    /// The largest recorded value, or 0 for an unknown task.
    pub expected: u64,
    /// The value at which the divergence was noticed, or 0 for an unknown task.
    pub found: u64,
}

/// The progress of a replay. Its `Display` is one JSON object in one line, with stable keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status {
    /// The phase that PBG is in.
    pub mode: Mode,
    /// The number of tasks in the plan.
    pub planned: u32,
    /// The number of spawned tasks that the plan knew.
    pub matched: u32,
    /// The number of children of the root or of planned tasks that the plan did not know. (Their
    /// own descendants count only with a label, because the others have no key.)
    pub unplanned: u32,
    /// The number of planned tasks that were demoted (rule 8).
    pub demoted: u32,
    /// True if the plan was dropped (rules 10 and 11).
    pub dropped: bool,
    /// True if the replay is slower than the measured run: a tick has found it so (rule 11), or
    /// `turnaround_permille` is above 1,000 by more than one part in [`BEHIND_FRACTION`].
    pub behind: bool,
    /// The time that the plan's spawned tasks have lived, in thousandths of the time that they
    /// lived when they were measured. A task lives from its spawn until it last gives the CPU away.
    /// After the last task's end this compares the average turnarounds. 0 if none was spawned.
    pub turnaround_permille: u32,
    /// The number of turns that the fallback queue got while planned tasks were ready (rule 7).
    pub turns: u32,
    /// The number of tasks that miss their deadline by the plan.
    pub late: u32,
    /// The first divergence from the plan, if there was one.
    pub first: Option<Divergence>,
}

impl Status {
    /// Returns the number of tasks of the plan that were not spawned (yet).
    pub const fn missing(&self) -> u32 {
        self.planned - self.matched
    }

    /// Returns the number of tasks that diverged from the plan.
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
