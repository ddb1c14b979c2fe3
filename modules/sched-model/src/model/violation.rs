//! The faults that a run can find.

use std::fmt;

use super::{CpuMask, Label, MaxWait, State, Trace};

/// A fault of the scheduler or the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// A pick returned a task that is not ready: it runs, waits or is dead.
    NotReady {
        /// The task that was picked.
        task: Label,
        /// The state it is in; expected is [`State::Ready`].
        found: State,
    },
    /// A pick returned a task that is ready, but in no queue or in that of
    /// another CPU.
    NotQueuedHere {
        /// The task that was picked.
        task: Label,
        /// The CPU that picked it.
        cpu: usize,
        /// The CPU that has it in its queue.
        found: Option<usize>,
    },
    /// A pick returned a task that another CPU has not finished leaving.
    StillOnCpu {
        /// The task that was picked.
        task: Label,
        /// The CPU that picked it.
        cpu: usize,
        /// The CPU that it is still on.
        found: usize,
    },
    /// A pick returned a task that is not allowed on this CPU.
    WrongCpu {
        /// The task that was picked.
        task: Label,
        /// The CPU that picked it.
        cpu: usize,
        /// The CPUs it may run on.
        allowed: CpuMask,
    },
    /// A pick returned a task that was preempted on another CPU and had to stay there
    /// ([`Config::preempted_stay`](super::Config::preempted_stay)).
    PreemptedElsewhere {
        /// The task that was picked.
        task: Label,
        /// The CPU that picked it.
        cpu: usize,
        /// The CPU that it was preempted on.
        found: usize,
    },
    /// A pick returned a task that does not belong to this run.
    Unknown {
        /// The name that the task has.
        task: Label,
    },
    /// A pick returned `None` although tasks are in the queue.
    IdleWhileReady {
        /// The CPU that went idle.
        cpu: usize,
        /// The tasks that are in its queue.
        ready: Vec<Label>,
    },
    /// A CPU idled while another CPU's queue had a task that may run on it.
    IdleBeside {
        /// The CPU that idled.
        cpu: usize,
        /// The ready task that could have run there.
        task: Label,
        /// The time for which it idled.
        time: u64,
        /// The bound that was given: [`Config::max_idle_beside`](super::Config::max_idle_beside).
        bound: u64,
    },
    /// A task was enqueued, and its owner count shows that the scheduler dropped it.
    Lost {
        /// The task that was put.
        task: Label,
        /// The strong count that it has; expected is at least 2.
        found: usize,
    },
    /// A pick returned a task after the last one had finished.
    LeftOver {
        /// The task that came out.
        task: Label,
        /// The state it is in.
        state: State,
    },
    /// The scheduler holds a task that is dead, or that outlived the scheduler.
    HandleKept {
        /// The task that is held.
        task: Label,
        /// The number of owners that it should have.
        expected: usize,
        /// The number that it has.
        found: usize,
    },
    /// A ready task waited longer than the policy promises.
    Starved {
        /// The task that waited.
        task: Label,
        /// The number of other picks meanwhile.
        dispatches: u64,
        /// The time for which it waited.
        time: u64,
        /// The bound that was given.
        bound: MaxWait,
    },
    /// `gc` was picked again and again while others were ready.
    GcMonopolises {
        /// The CPU whose `gc` it is, from 0.
        cpu: usize,
        /// The number of picks in a row; the bound is [`Config::max_gc_streak`](super::Config::max_gc_streak).
        streak: u64,
        /// The tasks that waited.
        ready: Vec<Label>,
    },
    /// A task that yielded was picked again while others were ready.
    Repicked {
        /// The task that yielded and was picked again.
        task: Label,
        /// The tasks of which one should have been picked.
        ready: Vec<Label>,
    },
    /// The programs did not finish in time.
    NotFinished {
        /// The bound, in time units.
        limit: u64,
        /// The tasks that are left, or that are dead and not released.
        left: Vec<(Label, State)>,
    },
    /// Tasks wait for one another for ever, which is not the scheduler's fault.
    Deadlock {
        /// The tasks that wait.
        blocked: Vec<Label>,
    },
    /// A task blocked with preemption disabled, which is not the scheduler's fault.
    BlockedUnderGuard {
        /// The task that blocked with preemption disabled.
        task: Label,
    },
    /// The configuration has a value that is not allowed.
    BadConfig {
        /// The field, and what it must be.
        expected: &'static str,
    },
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady { task, found } => {
                write!(
                    f,
                    "picked {task}: expected it to be Ready, found it {found:?}"
                )
            }
            Self::NotQueuedHere { task, cpu, found } => write!(
                f,
                "picked {task}: expected it in the queue of c{cpu}, found it in {}",
                queue(*found)
            ),
            Self::StillOnCpu { task, cpu, found } => write!(
                f,
                "c{cpu} picked {task}: expected it on no CPU, found it still on c{found}"
            ),
            Self::WrongCpu { task, cpu, allowed } => write!(
                f,
                "c{cpu} picked {task}: expected a CPU of mask {:#b}",
                allowed.0
            ),
            Self::PreemptedElsewhere { task, cpu, found } => write!(
                f,
                "c{cpu} picked {task}: expected c{found}, where it was preempted"
            ),
            Self::Unknown { task } => write!(f, "picked {task}: no task of this run"),
            Self::IdleWhileReady { cpu, ready } => write!(
                f,
                "c{cpu} picked nothing: expected one of {}, which are ready",
                list(ready)
            ),
            Self::IdleBeside {
                cpu,
                task,
                time,
                bound,
            } => write!(
                f,
                "CPU {cpu} idled beside {task}, which is ready: expected at most {bound}, found {time}"
            ),
            Self::Lost { task, found } => write!(
                f,
                "{task} was put back: expected the scheduler to own it, found {found} owner(s) in all"
            ),
            Self::LeftOver { task, state } => write!(
                f,
                "all is done: expected an empty queue, found {task}, which is {state:?}"
            ),
            Self::HandleKept {
                task,
                expected,
                found,
            } => write!(
                f,
                "{task} should be let go: expected {expected} owner(s), found {found}"
            ),
            Self::Starved {
                task,
                dispatches,
                time,
                bound,
            } => write!(
                f,
                "{task} is ready and waits: expected at most {bound:?}, found {dispatches} dispatches, {time} units"
            ),
            Self::GcMonopolises { cpu, streak, ready } => write!(
                f,
                "gc was picked {streak} times in a row on c{cpu}: expected {} to get a turn",
                list(ready)
            ),
            Self::Repicked { task, ready } => write!(
                f,
                "{task} yielded and was picked again: expected one of {}",
                list(ready)
            ),
            Self::NotFinished { limit, left } => write!(
                f,
                "expected the end by {limit}, found left:{}",
                states(left)
            ),
            Self::Deadlock { blocked } => write!(
                f,
                "the programs deadlock (not the scheduler's fault): {} blocked",
                list(blocked)
            ),
            Self::BlockedUnderGuard { task } => write!(
                f,
                "{task} blocks with preemption disabled (not the scheduler's fault)"
            ),
            Self::BadConfig { expected } => write!(f, "bad configuration: expected {expected}"),
        }
    }
}

fn list(tasks: &[Label]) -> String {
    let names: Vec<_> = tasks.iter().map(Label::to_string).collect();
    names.join(", ")
}

fn states(tasks: &[(Label, State)]) -> String {
    let states = tasks
        .iter()
        .map(|(task, state)| format!(" {task} ({state:?})"));
    states.collect()
}

fn queue(cpu: Option<usize>) -> String {
    cpu.map_or("none".into(), |cpu| format!("that of c{cpu}"))
}

/// A [`Violation`], the time at which it was found, and the events that led to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// The fault that ended the run.
    pub violation: Violation,
    /// The time at which it was found, in time units.
    pub time: u64,
    /// The last events before.
    pub trace: Trace,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            violation,
            time,
            trace,
        } = self;
        write!(f, "at {time}: {violation}\n{trace}")
    }
}

/// Formats as [`Display`](fmt::Display) does, so that a failed `unwrap()` can be read.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
