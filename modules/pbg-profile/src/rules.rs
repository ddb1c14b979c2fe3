//! The rules that hold in every valid profile.

use alloc::vec::Vec;
use core::fmt;

use super::{
    Ended, Figure, Header, MAX_PHASES, MAX_TASKS, PhaseOrder, Phases, Place, StoredOrder,
    StoredProfile, StoredTask, Waker, Wakes,
};
use sched_core::room::with_room;
use sched_core::units::TaskKey;

/// A rule of the format. Its text completes the sentence "expected ...".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The number of the architecture is known.
    Architecture,
    /// The number of the timing is known.
    Timing,
    /// The profile was measured on at least one CPU.
    Cpus,
    /// The profile has at least one run.
    Runs,
    /// There are at most [`MAX_TASKS`] tasks, and there are bytes for each.
    Tasks,
    /// A name or label is a valid [`Text`](super::Text).
    Text,
    /// A number is in its shortest form.
    Shortest,
    /// A number fits its field.
    Fits,
    /// The contents do not end early.
    Complete,
    /// No bytes follow the contents.
    Nothing,
    /// The length is that of a profile: at most [`MAX_BYTES`](super::MAX_BYTES).
    Size,
    /// This version knows the flags.
    Flags,
    /// A parent stands before its children.
    Parent,
    /// A key is stored only if the place does not give it.
    KeyStored,
    /// No two tasks have the same key.
    KeyUnique,
    /// A task was seen in at least one run, and in at most all.
    TaskRuns,
    /// A stored priority is not 0.
    Priority,
    /// A total lies within the bounds that least and most give.
    Figure,
    /// There are at most [`MAX_PHASES`] phases.
    PhaseCount,
    /// The number of an ending is known.
    PhaseEnded,
    /// A phase has at least one run interval.
    PhaseIntervals,
    /// Only a block has blocked time after it.
    PhaseBlocked,
    /// Phases by ending have every ending at most once, in the order of their numbers.
    PhaseOrder,
    /// An exit is the last phase.
    PhaseExit,
    /// The number of the kernel is known.
    Kernel,
    /// A waker is one of the first 4 numbers or a task of the profile.
    Waker,
    /// A waker is stored only after a block.
    PhaseWaker,
    /// An order is for at least one CPU.
    OrderCpus,
    /// An order gives each task a group, and the groups have no gaps.
    OrderGroups,
    /// The woken tasks are up to two, each the root or a task, in order, or one unknown task.
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
            Self::Flags => "no other flags than 0 to 5",
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
            Self::OrderCpus => "an order for 1 to 65535 CPUs",
            Self::OrderGroups => "a group for each task, from 0 without gaps",
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

/// The reason why a profile is not valid.
pub(super) enum Invalid {
    /// A rule is broken in the task of this index, or in the header.
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
    /// Returns the key that a task without a label has at this place. `tasks` are those before it.
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
    /// Checks that `runs` values can have these figures. One run had the least, one the most, and
    /// each of the others lies between. (For one run all three are the same.)
    fn validate(&self, runs: u32) -> Result<(), Broken> {
        let others = (runs - 1) as u64;
        // Totals stop at the largest value, and so do these bounds.
        let low = self.least.saturating_mul(others).saturating_add(self.most);
        let high = self.most.saturating_mul(others).saturating_add(self.least);
        let holds = self.least <= self.most && (low..=high).contains(&self.total);
        require(holds, Rule::Figure, self.total)
    }
}

impl Waker {
    /// Checks that the waker may be named in a profile of `tasks` tasks.
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
            // The type ensures that there are at most two, in order.
            let may = !matches!(woken.whom, Waker::Timer | Waker::Outside);
            require(may, Rule::PhaseWakes, woken.whom.number())?;
        }
        Ok(())
    }
}

impl Phases {
    /// Checks the phases of a task in a profile of `tasks` tasks.
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
    /// Checks a task in a profile of `count` tasks. The tasks `before` it have been checked.
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

/// Sorts the keys, and returns the second of two that are the same. Each key comes with a number
/// by which the caller finds the task.
pub(super) fn shared_key(keys: &mut [(TaskKey, u32)]) -> Option<(TaskKey, u32)> {
    keys.sort_unstable();
    let pair = keys.windows(2).find(|pair| pair[0].0 == pair[1].0)?;
    Some(pair[1])
}

impl StoredOrder {
    /// Checks the order of `tasks` tasks.
    pub(super) fn validate(&self, tasks: usize) -> Result<(), Broken> {
        require(self.cpus >= 1, Rule::OrderCpus, 0)?;
        let count = self.groups.len();
        require(count == tasks && count > 0, Rule::OrderGroups, count as u64)?;
        let mut is_there = [0u64; MAX_TASKS / 64];
        for &group in &self.groups {
            let group = usize::from(group);
            require(group < count, Rule::OrderGroups, group as u64)?;
            is_there[group / 64] |= 1 << (group % 64);
        }
        // The first group that is not there has no other behind it.
        let is_gap = |group: &usize| is_there[group / 64] & 1 << (group % 64) == 0;
        let gap = (0..count).find(is_gap).unwrap_or(count);
        let beyond = self.groups.iter().find(|&&group| usize::from(group) > gap);
        require(beyond.is_none(), Rule::OrderGroups, gap as u64)
    }
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
        if let Some(order) = &self.order {
            order.validate(tasks.len()).map_err(header)?;
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
