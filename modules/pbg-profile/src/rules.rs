//! The rules that every profile keeps, whatever made it.

use alloc::vec::Vec;
use core::fmt;

use super::{
    Ended, Figure, Header, MAX_PHASES, MAX_TASKS, PhaseOrder, Phases, Place, StoredProfile,
    StoredTask, Waker, Wakes,
};
use sched_core::room::with_room;
use sched_core::units::TaskKey;

/// A rule of the format; its text is what was expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The architecture's number.
    Architecture,
    /// The timing's number.
    Timing,
    /// At least one CPU.
    Cpus,
    /// At least one run.
    Runs,
    /// At most [`MAX_TASKS`], and as many as there are bytes for.
    Tasks,
    /// A name or label.
    Text,
    /// A number as short as can be.
    Shortest,
    /// A number that fits its field.
    Fits,
    /// The contents end before the checksum does.
    Complete,
    /// Nothing after what belongs there.
    Nothing,
    /// At most [`MAX_BYTES`](super::MAX_BYTES).
    Size,
    /// Flags that this version knows.
    Flags,
    /// A parent stands before its children.
    Parent,
    /// A key is stored only if the place does not give it.
    KeyStored,
    /// No two tasks have the same key.
    KeyUnique,
    /// A task was seen in 1 to all runs.
    TaskRuns,
    /// Priorities begin at 1.
    Priority,
    /// A total lies between what least and most allow.
    Figure,
    /// At most [`MAX_PHASES`].
    PhaseCount,
    /// How a run interval may end.
    PhaseEnded,
    /// A phase has at least one run interval.
    PhaseIntervals,
    /// Blocked time is only after a block.
    PhaseBlocked,
    /// By ending: every ending once, in their order.
    PhaseOrder,
    /// Nothing runs after an exit.
    PhaseExit,
    /// What a kernel does at a tick.
    Kernel,
    /// The first 4 numbers, or a task of the profile.
    Waker,
    /// A waker is stored only after a block.
    PhaseWaker,
    /// The woken tasks: up to two, the root or tasks, in order, or one that is not known.
    PhaseWakes,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Architecture => "an architecture from 0 to 4",
            Self::Timing => "a timing from 0 to 2",
            Self::Cpus => "at least 1 CPU",
            Self::Runs => "at least 1 run",
            Self::Tasks => "at most 4096 tasks, and bytes for each",
            Self::Text => {
                "a text that is not empty, not too long, UTF-8 and without control characters"
            }
            Self::Shortest => "a number in its shortest form",
            Self::Fits => "a number that fits its field",
            Self::Complete => "more before the checksum",
            Self::Nothing => "nothing more",
            Self::Size => "the size of a profile",
            Self::Flags => "no other flags than 0 to 4",
            Self::Parent => "a parent among the tasks before",
            Self::KeyStored => "a key exactly where the place does not give it",
            Self::KeyUnique => "a key that no other task has",
            Self::TaskRuns => "a task seen in 1 to all runs",
            Self::Priority => "a priority from 1 to 255",
            Self::Figure => "a total between what the least and the most allow",
            Self::PhaseCount => "at most 16 phases",
            Self::PhaseEnded => "an ending from 0 to 3",
            Self::PhaseIntervals => "a phase of at least 1 run interval",
            Self::PhaseBlocked => "blocked time only after a block",
            Self::PhaseOrder => "phases by ending, each once",
            Self::PhaseExit => "an exit only as the last phase",
            Self::Kernel => "a kernel from 0 to 2",
            Self::Waker => "0 to 3 or a task of the profile as the waker",
            Self::PhaseWaker => "a waker only after a block",
            Self::PhaseWakes => "up to 2 woken tasks, the root or others, in order",
        })
    }
}

/// A rule that does not hold, and the number that breaks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Broken {
    pub rule: Rule,
    pub found: u64,
}

pub(super) fn require(holds: bool, rule: Rule, found: u64) -> Result<(), Broken> {
    if holds {
        Ok(())
    } else {
        Err(Broken { rule, found })
    }
}

/// Why a profile does not hold together.
pub(super) enum Invalid {
    /// In the header, or in this task.
    Broken(Option<usize>, Broken),
    NoMemory,
}

impl Header {
    pub(super) fn validate(&self) -> Result<(), Broken> {
        require(self.cpus >= 1, Rule::Cpus, 0)?;
        require(self.runs >= 1, Rule::Runs, 0)?;
        for figure in self.start.figures() {
            figure.validate(self.runs)?;
        }
        Ok(())
    }
}

impl Place {
    /// The key that a task without a label of its own has there. `tasks` are
    /// those before it.
    pub(super) fn key(self, tasks: &[StoredTask]) -> Result<Option<TaskKey>, Broken> {
        Ok(match self {
            Self::Root { ordinal } => Some(TaskKey::ROOT.child(ordinal)),
            Self::Child { parent, ordinal } => {
                let Some(task) = tasks.get(parent as usize) else {
                    return Err(Broken {
                        rule: Rule::Parent,
                        found: parent as u64,
                    });
                };
                Some(task.key.child(ordinal))
            }
            Self::Several => None,
        })
    }
}

impl Figure {
    /// One run had the least, one the most, and each of the others something
    /// between. (For one run that makes all three the same.)
    fn validate(&self, runs: u32) -> Result<(), Broken> {
        let others = (runs - 1) as u64;
        // Totals stop at the largest value, and so do these.
        let low = self.least.saturating_mul(others).saturating_add(self.most);
        let high = self.most.saturating_mul(others).saturating_add(self.least);
        let holds = self.least <= self.most && (low..=high).contains(&self.total);
        require(holds, Rule::Figure, self.total)
    }
}

impl Waker {
    /// Whether it may be named in a profile of so many tasks.
    fn validate(self, tasks: usize) -> Result<(), Broken> {
        let exists = match self {
            Self::Task(index) => usize::from(index) < tasks,
            _ => true,
        };
        require(exists, Rule::Waker, self.number())
    }
}

impl Wakes {
    fn validate(self, tasks: usize) -> Result<(), Broken> {
        for woken in self.iter() {
            woken.whom.validate(tasks)?;
            // That there are two at most, in order, is of the type.
            let may = !matches!(woken.whom, Waker::Timer | Waker::Outside);
            require(may, Rule::PhaseWakes, woken.whom.number())?;
        }
        Ok(())
    }
}

impl Phases {
    /// `tasks` is how many the profile has.
    fn validate(&self, tasks: usize) -> Result<(), Broken> {
        let list = &self.list;
        require(
            list.len() <= MAX_PHASES,
            Rule::PhaseCount,
            list.len() as u64,
        )?;
        for phase in list {
            require(phase.intervals >= 1, Rule::PhaseIntervals, 0)?;
            let may = phase.ended == Ended::Block || phase.blocked.0 == 0;
            require(may, Rule::PhaseBlocked, phase.blocked.0)?;
            let may = phase.woken_by == Waker::Unknown || phase.ended == Ended::Block;
            require(may, Rule::PhaseWaker, phase.woken_by.number())?;
            phase.woken_by.validate(tasks)?;
            phase.wakes.validate(tasks)?;
        }
        match self.order {
            PhaseOrder::AsRun => {
                let exit = list.iter().position(|phase| phase.ended == Ended::Exit);
                let holds = exit.is_none_or(|exit| exit + 1 == list.len());
                require(holds, Rule::PhaseExit, exit.unwrap_or(0) as u64)
            }
            PhaseOrder::ByEnding => {
                let sorted = list.is_sorted_by(|a, b| a.ended < b.ended);
                require(
                    sorted && !list.is_empty(),
                    Rule::PhaseOrder,
                    list.len() as u64,
                )
            }
        }
    }
}

impl StoredTask {
    /// `before` are the tasks before it, and hold already; of `count` in all.
    pub(super) fn validate(
        &self,
        header: &Header,
        before: &[Self],
        count: usize,
    ) -> Result<(), Broken> {
        self.place.key(before)?;
        let seen = (1..=header.runs).contains(&self.runs);
        require(seen, Rule::TaskRuns, self.runs as u64)?;
        for figure in self.figures.to_array() {
            figure.validate(self.runs)?;
        }
        for figure in self.spawned.figures() {
            figure.validate(self.runs)?;
        }
        self.spawned.after.validate(count)?;
        self.phases.validate(count)
    }
}

/// Of keys with something to find the task by: the second of two that are the
/// same. Sorts them.
pub(super) fn shared_key(keys: &mut [(TaskKey, u32)]) -> Option<(TaskKey, u32)> {
    keys.sort_unstable();
    let pair = keys.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
    Some(pair[1])
}

impl StoredProfile {
    pub(super) fn validity(&self) -> Result<(), Invalid> {
        let header = |broken| Invalid::Broken(None, broken);
        self.header.validate().map_err(header)?;
        let tasks = &self.tasks;
        require(tasks.len() <= MAX_TASKS, Rule::Tasks, tasks.len() as u64).map_err(header)?;
        let mut keys: Vec<(TaskKey, u32)> = with_room(tasks.len()).ok_or(Invalid::NoMemory)?;
        for (index, task) in tasks.iter().enumerate() {
            task.validate(&self.header, &tasks[..index], tasks.len())
                .map_err(|broken| Invalid::Broken(Some(index), broken))?;
            keys.push((task.key, index as u32));
        }
        match shared_key(&mut keys) {
            None => Ok(()),
            Some((key, index)) => Err(Invalid::Broken(
                Some(index as usize),
                Broken {
                    rule: Rule::KeyUnique,
                    found: key.to_bits(),
                },
            )),
        }
    }
}
