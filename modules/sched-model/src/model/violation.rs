//! What went wrong in a run.

use std::fmt;

use super::{CpuMask, Label, MaxWait, State, Trace};

/// What the scheduler, or the program, did wrong.
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
        /// The CPU in whose queue it is.
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
    /// A pick returned something that is no task of this run.
    Unknown {
        /// What it calls itself.
        task: Label,
    },
    /// A pick returned `None` although these tasks went in and did not come out.
    IdleWhileReady {
        /// The CPU that went idle.
        cpu: usize,
        /// The tasks that are in its queue.
        ready: Vec<Label>,
    },
    /// A CPU idled while another one's queue had a task that may run there.
    IdleBeside {
        /// The CPU that idled.
        cpu: usize,
        /// The task.
        task: Label,
        /// For how long.
        time: u64,
        /// The bound that was given: [`Config::max_idle_beside`](super::Config::max_idle_beside).
        bound: u64,
    },
    /// A task went in and its owner count shows that it was dropped.
    Lost {
        /// The task that was put.
        task: Label,
        /// The strong count that it has; expected is at least 2.
        found: usize,
    },
    /// After the last task finished, a pick still returned this one.
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
        /// How many owners it should have.
        expected: usize,
        /// How many it has.
        found: usize,
    },
    /// A ready task waited longer than the policy promises.
    Starved {
        /// The task that waited.
        task: Label,
        /// How many others were picked meanwhile.
        dispatches: u64,
        /// How much time passed.
        time: u64,
        /// The bound that was given.
        bound: MaxWait,
    },
    /// `gc` was picked again and again while others were ready.
    GcMonopolises {
        /// The CPU.
        cpu: usize,
        /// How often in a row; the bound is [`Config::max_gc_streak`](super::Config::max_gc_streak).
        streak: u64,
        /// Who waited.
        ready: Vec<Label>,
    },
    /// A task that yielded was picked again while others were ready.
    Repicked {
        /// The task.
        task: Label,
        /// Who should have been picked.
        ready: Vec<Label>,
    },
    /// The programs did not finish in time.
    NotFinished {
        /// The bound, in time units.
        limit: u64,
        /// The tasks that are left, or that are dead and not released.
        left: Vec<(Label, State)>,
    },
    /// Not the scheduler's fault: these tasks wait for one another for ever.
    Deadlock {
        /// The tasks that wait.
        blocked: Vec<Label>,
    },
    /// Not the scheduler's fault: a task blocked with preemption disabled.
    BlockedUnderGuard {
        /// The task.
        task: Label,
    },
    /// The configuration makes no sense.
    BadConfig {
        /// The field, and what it must be.
        expected: &'static str,
    },
}

struct List<'a>(&'a [Label]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.0.iter().map(Label::to_string).collect();
        f.write_str(&names.join(", "))
    }
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
            Self::NotQueuedHere { task, cpu, found } => {
                write!(
                    f,
                    "picked {task}: expected it in the queue of c{cpu}, found it in "
                )?;
                match found {
                    Some(other) => write!(f, "that of c{other}"),
                    None => f.write_str("none"),
                }
            }
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
                List(ready)
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
                List(ready)
            ),
            Self::Repicked { task, ready } => write!(
                f,
                "{task} yielded and was picked again: expected one of {}",
                List(ready)
            ),
            Self::NotFinished { limit, left } => {
                write!(f, "expected the end by {limit}, found left:")?;
                left.iter()
                    .try_for_each(|(task, state)| write!(f, " {task} ({state:?})"))
            }
            Self::Deadlock { blocked } => write!(
                f,
                "the programs deadlock (not the scheduler's fault): {} blocked",
                List(blocked)
            ),
            Self::BlockedUnderGuard { task } => write!(
                f,
                "{task} blocks with preemption disabled (not the scheduler's fault)"
            ),
            Self::BadConfig { expected } => write!(f, "bad configuration: expected {expected}"),
        }
    }
}

/// A [`Violation`], when it was found, and the events that led to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong.
    pub violation: Violation,
    /// When it was found, in time units.
    pub time: u64,
    /// The last events before.
    pub trace: Trace,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "at {}: {}", self.time, self.violation)?;
        write!(f, "{}", self.trace)
    }
}

/// As [`Display`](fmt::Display), so that a failed `unwrap()` can be read.
impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}
