//! A host model of unmodified `axtask`, to drive any [`BaseScheduler`].
//!
//! Schedulers are hard to test in place: on hardware an order of events happens
//! once and never again. Here the run queues, ticks, wake-ups, exits and
//! migrations of `axtask` 0.3.0-preview.3 are played by one thread under a
//! virtual clock, so that a run is a pure function of its [`Config`] and
//! [`Program`]s. The scheduler under test sees the same calls, in the same
//! order and under the same conditions as in ArceOS.
//!
//! # What is played, and how `axtask` does it
//!
//! 1. **Boot.** CPU 0 wraps `idle`, `main`, `gc` in this order, then makes its
//!    scheduler and adds `gc`. `main` is current without ever being picked.
//!    Every further CPU wraps `idle` and `gc` and starts in `idle`.
//! 2. **Spawn**: wrap, choose a queue, `add_task`.
//! 3. **Yield**: `put_prev_task(current, false)`, `pick_next_task`.
//! 4. **Preemption**: a tick that returned true leaves a request; it is granted
//!    when preemption is next enabled, with `put_prev_task(current, true)`,
//!    `pick_next_task`. Without [`Config::preempt`] the request goes nowhere.
//! 5. **Block**: the future is polled, and only then, after a window in which
//!    ticks and other CPUs may act, the task parks: `pick_next_task` alone. If
//!    the wake came inside that window the task *yields* instead.
//! 6. **Wake**: a queue is chosen; a blocked task becomes ready, and goes in
//!    with `put_prev_task(task, resched)` once its last CPU has switched away
//!    from it. Until then the waker spins with interrupts off. A wake of a task
//!    that is not blocked calls nobody. `axtask` passes `false` for `resched`;
//!    see [`Config::wake_resched`].
//! 7. **Exit**: the joiner is woken, the task goes on its CPU's list of exited
//!    tasks, `gc` is woken, `pick_next_task`.
//! 8. **gc** releases the exited tasks that nobody else holds. While one is
//!    left it yields and tries again, else it blocks.
//! 9. **Migration**: the task turns ready but is not put anywhere; a helper
//!    becomes current without having been added or picked, puts the task on the
//!    target queue (`put_prev_task(task, false)`) and exits. The helper can be
//!    preempted like anybody.
//! 10. **Tick**: expired sleepers of this CPU's timer wheel are woken, then
//!     `task_tick(current)`, but never for `idle`.
//! 11. **Idle** runs when a pick returns `None`, is never put, and picks again
//!     after each interrupt. A task that another CPU made ready therefore waits
//!     for the tick: there is no inter-processor interrupt.
//! 12. **Queue choice**: one counter for the whole machine, taken modulo the
//!     number of CPUs until it hits one that the task's mask allows. With one
//!     CPU there is no choice.
//! 13. **A stale timer** survives when its task was woken otherwise and moved
//!     to another CPU. It then wakes the task spuriously, wherever it blocks.
//!
//! When `main` ends, ArceOS switches the machine off; here the others may finish
//! first, because what happens to them is what a test is about.
//!
//! # What is checked
//!
//! Every [`Violation`] names a task, what was expected and what was found; the
//! [`Failure`] around it adds the time and the last events. The checks run at
//! every step, not only at the end.
//!
//! # Example
//!
//! ```
//! # use std::{collections::VecDeque, ops::Deref, sync::Arc};
//! # use axsched_ext::{BaseScheduler, model::ModelTask};
//! # struct Task(ModelTask);
//! # impl Deref for Task { type Target = ModelTask; fn deref(&self) -> &ModelTask { &self.0 } }
//! # #[derive(Default)] struct Fifo(VecDeque<Arc<Task>>);
//! # impl BaseScheduler for Fifo {
//! #     type SchedItem = Arc<Task>;
//! #     fn init(&mut self) {}
//! #     fn add_task(&mut self, task: Arc<Task>) { self.0.push_back(task) }
//! #     fn remove_task(&mut self, _: &Arc<Task>) -> Option<Arc<Task>> { None }
//! #     fn pick_next_task(&mut self) -> Option<Arc<Task>> { self.0.pop_front() }
//! #     fn put_prev_task(&mut self, task: Arc<Task>, _: bool) { self.0.push_back(task) }
//! #     fn task_tick(&mut self, _: &Arc<Task>) -> bool { false }
//! #     fn set_priority(&mut self, _: &Arc<Task>, _: isize) -> bool { false }
//! # }
//! use axsched_ext::model::{Config, Op, Program, run};
//!
//! let child = Program::new("child", [Op::Run(5), Op::Yield, Op::Run(5)]);
//! let main = Program::new("main", [Op::Spawn(child), Op::Join(0)]);
//! let report = run(&Config::default(), &main, |_cpu| Fifo::default(), Task).unwrap();
//! assert_eq!(report.task("child").unwrap().yields, 1);
//! ```

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    ops::Deref,
    sync::{Arc, Weak},
};

use crate::BaseScheduler;

// ---------------------------------------------------------------------------
// What a test writes: tasks, programs, configuration
// ---------------------------------------------------------------------------

/// A task's number, in the order in which tasks were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

/// A task's name and number, printed as `name#number`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    /// The number, unique in a run.
    pub id: TaskId,
    /// The name of the task's program; not unique.
    pub name: Arc<str>,
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.name, self.id.0)
    }
}

/// The inner task, in the place of `axtask`'s `TaskInner`.
///
/// As opaque to a policy as the real one: state, program and clock are kept by
/// the model, which finds them by the [`TaskId`].
#[derive(Debug)]
pub struct ModelTask {
    label: Label,
}

impl ModelTask {
    /// A task outside any run, for tests that call a scheduler by hand.
    pub fn new(id: usize, name: &str) -> Self {
        let id = TaskId(id);
        Self {
            label: Label {
                id,
                name: name.into(),
            },
        }
    }

    /// The task's number.
    pub fn id(&self) -> TaskId {
        self.label.id
    }

    /// The task's name and number.
    pub fn label(&self) -> &Label {
        &self.label
    }
}

/// A set of CPUs; bit n is CPU n, of 64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuMask(pub u64);

impl CpuMask {
    /// CPUs `0..cpus`.
    pub fn first(cpus: usize) -> Self {
        Self(u64::MAX.checked_shr(64 - cpus as u32).unwrap_or(0))
    }

    /// One CPU.
    pub fn one(cpu: usize) -> Self {
        Self(1 << cpu)
    }

    /// Whether `cpu` is in the set.
    pub fn has(self, cpu: usize) -> bool {
        self.0 >> cpu & 1 == 1
    }
}

/// One step of a program. Every step but [`Run`](Op::Run) takes
/// [`Config::call_cost`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Computes for so many time units; ticks may interrupt it.
    Run(u64),
    /// `yield_now()`.
    Yield,
    /// `sleep()`: wakes at the first tick of this CPU at or after the deadline.
    Sleep(u64),
    /// `WaitQueue::wait_until(|| take a permit)`, or `wait_timeout_until` with
    /// a number of time units. Permits make a notification that came first count.
    Wait {
        /// Which wait queue.
        queue: u8,
        /// Give up after so many time units.
        timeout: Option<u64>,
    },
    /// Adds a permit and wakes one waiter that is not woken yet. (The real
    /// `notify_one` wakes nobody while an earlier woken waiter has not run.)
    Notify {
        /// Which wait queue.
        queue: u8,
        /// Yield afterwards, as `notify_one(true)` does.
        resched: bool,
    },
    /// Yields until the wait queue has a permit, and leaves it there: a busy wait.
    YieldUntil {
        /// Which wait queue.
        queue: u8,
    },
    /// Sleeps for so many time units again and again until the wait queue has a permit, and
    /// leaves it there: polling.
    SleepUntil {
        /// Which wait queue.
        queue: u8,
        /// How long each sleep is.
        units: u64,
    },
    /// `spawn()`; keeps the handle under the next number, from 0.
    Spawn(Program),
    /// Waits for the n-th task this task spawned, and keeps the handle. Nothing
    /// if there is no such handle (any more).
    Join(usize),
    /// Drops the n-th handle. All that are left are dropped at exit.
    DropHandle(usize),
    /// `set_current_affinity()`. CPUs that do not exist are ignored; nothing if
    /// none is left.
    Migrate(CpuMask),
    /// Takes a guard that forbids preemption; they nest. Blocking under one is
    /// a fault of the program, as in `axtask`.
    PreemptOff,
    /// Releases one such guard, if any is held.
    PreemptOn,
    /// `set_priority()`; the answer is counted in the [`TaskReport`].
    SetPriority(isize),
    /// Something that the application does on its own: [`Config::on_call`].
    Call(u32),
    /// Returns from the task's function. Implied at the end of a program.
    ///
    /// (A direct call of `axtask::exit` would leak the handles on its stack, and
    /// `gc` would then yield for ever.)
    Exit,
}

/// What a task does: a name and its steps.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// Names the tasks that run it.
    pub name: Arc<str>,
    /// The steps, in order.
    pub ops: Vec<Op>,
}

impl Program {
    /// A program of the given steps.
    pub fn new(name: &str, ops: impl IntoIterator<Item = Op>) -> Self {
        Self {
            name: name.into(),
            ops: ops.into_iter().collect(),
        }
    }

    /// A program that does `ops` `n` times.
    pub fn repeat(name: &str, n: usize, ops: &[Op]) -> Self {
        Self::new(name, ops.iter().cycle().take(n * ops.len()).cloned())
    }

    /// How many tasks this program makes: itself, all it spawns, and one helper
    /// for each migration.
    pub fn tasks(&self) -> usize {
        let made = |op: &Op| match op {
            Op::Spawn(child) => child.tasks(),
            Op::Migrate(_) => 1,
            _ => 0,
        };
        1 + self.ops.iter().map(made).sum::<usize>()
    }

    /// The longest time that this program, or any that it spawns, computes
    /// while it forbids preemption.
    pub fn longest_guarded(&self) -> u64 {
        let (mut guards, mut guarded, mut longest) = (0_u32, 0, 0);
        for op in &self.ops {
            match op {
                Op::PreemptOff => guards += 1,
                Op::PreemptOn => guards = guards.saturating_sub(1),
                Op::Run(units) if guards > 0 => guarded += units,
                Op::Spawn(child) => longest = longest.max(child.longest_guarded()),
                _ => {}
            }
            longest = longest.max(guarded);
            if guards == 0 {
                guarded = 0;
            }
        }
        longest
    }

    /// The longest time that this program itself has the CPU between two points at
    /// which it surely gives it away, with what its calls and switches cost.
    pub fn longest_burst(&self, config: &Config) -> u64 {
        let call = 2 * (config.call_cost + config.switch_cost);
        let (mut burst, mut longest) = (0, 0);
        for op in &self.ops {
            burst += match op {
                Op::Run(units) => units + (1 + units / config.tick_period) * call,
                _ => call,
            };
            longest = longest.max(burst);
            let gives_away = match op {
                Op::Yield | Op::YieldUntil { .. } => true,
                Op::Sleep(units) | Op::SleepUntil { units, .. } => *units > 0,
                Op::Notify { resched, .. } => *resched,
                _ => false,
            };
            if gives_away {
                burst = 0;
            }
        }
        longest.max(call)
    }

    /// Whether this program, or any that it spawns, sets a priority.
    pub fn sets_priorities(&self) -> bool {
        self.ops.iter().any(|op| match op {
            Op::SetPriority(_) => true,
            Op::Spawn(child) => child.sets_priorities(),
            _ => false,
        })
    }

    /// The time this program and all it spawns would take one after another,
    /// each step with every latency it can meet.
    pub fn serial_time(&self, config: &Config) -> u64 {
        // A wake on an idle CPU waits for its tick, and a sleeper for that of
        // the wheel it sits in: two ticks at most per step.
        let step = 4 * (config.call_cost + config.switch_cost) + 2 * config.tick_period;
        let time = |op: &Op| match op {
            Op::Run(units) => units + units / config.tick_period * step,
            Op::Sleep(units) | Op::SleepUntil { units, .. } => units + step,
            Op::Wait { timeout, .. } => timeout.unwrap_or(0) + step,
            Op::Spawn(child) => child.serial_time(config) + step,
            _ => step,
        };
        step + self.ops.iter().map(time).sum::<u64>()
    }
}

/// Prints as the code that makes it, less the noise.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.ops)
    }
}

/// How long a ready task may wait for the CPU. `None` means no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaxWait {
    /// In picks of other tasks from the same queue; picking the same one again
    /// counts each time.
    pub dispatches: Option<u64>,
    /// In time units.
    pub time: Option<u64>,
    /// What is added to [`time`](Self::time) for each task: so many times the
    /// [longest burst](Program::longest_burst) of its own program.
    pub own_bursts: u64,
}

/// The machine, its costs, and what the policy under test promises.
#[derive(Debug, Clone)]
pub struct Config {
    /// Number of CPUs, 1 to 64. With one, `axtask` is built without `smp`.
    pub cpus: usize,
    /// `axtask` is built with `preempt`.
    pub preempt: bool,
    /// Time units between two ticks of a CPU, at least 1. CPUs tick in turn,
    /// spread over the period.
    pub tick_period: u64,
    /// Time units for each call into `axtask`, at least 1 so that time moves.
    pub call_cost: u64,
    /// Time units for a switch to another task. While they pass, the task left
    /// behind still counts as on its CPU; 0 makes that window very short.
    pub switch_cost: u64,
    /// Told the time whenever it changes, and 0 at boot: a policy that reads a
    /// clock must be given a virtual one, and this is where to set it.
    pub on_time: fn(u64),
    /// What [`Op::Call`] does, such as the calls that a policy offers to
    /// applications. It runs on the calling task's time, outside any lock.
    pub on_call: fn(u32),
    /// Wakes ask for rescheduling (`put_prev_task(task, true)` for a task that
    /// is not running). `axtask` 0.3.0-preview.3 has the parameter but always
    /// passes `false`; the trait's contract allows both.
    pub wake_resched: bool,
    /// The policy may pick a task that yielded while another is ready.
    pub repick_after_yield: bool,
    /// A scheduler may hand out tasks that went into another CPU's queue.
    pub stealing: bool,
    /// The bound on waiting that the policy promises.
    pub max_wait: MaxWait,
    /// How often in a row `gc` may be picked while another task is ready.
    pub max_gc_streak: u64,
    /// When a run counts as stuck. `None` takes eight times what all programs
    /// would take one after another.
    pub time_limit: Option<u64>,
    /// How many of the last events are kept for the trace.
    pub trace_events: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            cpus: 1,
            preempt: true,
            tick_period: 10,
            call_cost: 1,
            switch_cost: 2,
            on_time: |_| {},
            on_call: |_| {},
            wake_resched: false,
            repick_after_yield: false,
            stealing: false,
            max_wait: MaxWait::default(),
            max_gc_streak: 16,
            time_limit: None,
            trace_events: 50,
        }
    }
}

impl Config {
    fn time_limit_for(&self, main: &Program) -> u64 {
        // Eight: the programs never all run one after another, but gc and the
        // helpers add switches of their own, and a policy with a small share
        // for some of its tasks is still a correct one.
        let bound = 8 * (main.serial_time(self) + 10 * self.tick_period);
        self.time_limit.unwrap_or(bound)
    }
}

// ---------------------------------------------------------------------------
// What a test reads: reports, traces, failures
// ---------------------------------------------------------------------------

/// The states of `axtask`'s tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Current on some CPU.
    Running,
    /// Waiting for a CPU.
    Ready,
    /// Waiting for a wake-up.
    Blocked,
    /// Done.
    Exited,
}

/// What happened to a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    /// Added to the queue of this CPU.
    Spawned(usize),
    /// Became current, also as a helper that nobody picked, or kept the CPU.
    Dispatched,
    /// Gave the CPU up and stayed ready.
    Yielded,
    /// Had the CPU taken away.
    Preempted,
    /// Gave the CPU up to wait.
    Blocked,
    /// Was put on the queue of this CPU by a waker.
    Woken(usize),
    /// Was put on the queue of this CPU by its migration helper.
    Migrated(usize),
    /// Was shown a tick, and asked for rescheduling if true.
    Ticked(bool),
    /// Finished.
    Exited,
    /// Was released by `gc`.
    Freed,
}

/// One line of a [`Trace`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When, in time units.
    pub time: u64,
    /// On which CPU it was caused.
    pub cpu: usize,
    /// What happened.
    pub what: What,
    /// To whom.
    pub task: Label,
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (verb, tail) = match self.what {
            What::Spawned(on) => ("spawn", format!(" -> c{on}")),
            What::Dispatched => ("dispatch", String::new()),
            What::Yielded => ("yield", String::new()),
            What::Preempted => ("preempt", String::new()),
            What::Blocked => ("block", String::new()),
            What::Woken(on) => ("wake", format!(" -> c{on}")),
            What::Migrated(on) => ("migrate", format!(" -> c{on}")),
            What::Ticked(true) => ("tick", " resched".into()),
            What::Ticked(false) => ("tick", String::new()),
            What::Exited => ("exit", String::new()),
            What::Freed => ("free", String::new()),
        };
        write!(f, "{} c{} {verb} {}{tail}", self.time, self.cpu, self.task)
    }
}

/// The last events of a run, oldest first; prints one per line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Trace {
    /// How many events came before and were not kept.
    pub earlier: u64,
    /// Those that were.
    pub events: VecDeque<Event>,
}

impl Trace {
    fn push(&mut self, keep: usize, event: Event) {
        self.events.push_back(event);
        if self.events.len() > keep {
            self.events.pop_front();
            self.earlier += 1;
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.earlier > 0 {
            writeln!(f, "({} earlier events)", self.earlier)?;
        }
        for event in &self.events {
            writeln!(f, "{event}")?;
        }
        Ok(())
    }
}

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
        /// How often in a row; the bound is [`Config::max_gc_streak`].
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
            Self::Unknown { task } => write!(f, "picked {task}: no task of this run"),
            Self::IdleWhileReady { cpu, ready } => write!(
                f,
                "c{cpu} picked nothing: expected one of {}, which are ready",
                List(ready)
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

/// What one task did in a run. Times in time units since boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskReport {
    /// Its name and number.
    pub label: Label,
    /// When it was made.
    pub submitted: u64,
    /// When it first became current.
    pub first_run: Option<u64>,
    /// When its program ended; `None` for gc.
    pub finished: Option<u64>,
    /// The time that it was current, its calls and switches included.
    pub run_time: u64,
    /// The longest time that it was ready and not current.
    pub max_wait: u64,
    /// The most picks of others while it was.
    pub max_wait_dispatches: u64,
    /// How often it was picked.
    pub dispatches: u64,
    /// How often it gave the CPU up and stayed ready.
    pub yields: u64,
    /// How often the CPU was taken away.
    pub preemptions: u64,
    /// How many of its [`Op::SetPriority`] were accepted.
    pub priorities_set: u64,
}

impl TaskReport {
    /// From submission to the end.
    pub fn turnaround(&self) -> Option<u64> {
        Some(self.finished? - self.submitted)
    }
}

/// What a finished run was like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// All tasks but the idle ones, in the order in which they were made.
    pub tasks: Vec<TaskReport>,
    /// Switches from one task to another, idle and helpers included.
    pub switches: u64,
    /// Picks that returned a task.
    pub dispatches: u64,
    /// When the last program ended.
    pub makespan: u64,
    /// Wakes that had to wait for a CPU to finish switching away.
    pub wake_spins: u64,
    /// The last events.
    pub trace: Trace,
}

impl Report {
    /// The first task of this name.
    pub fn task(&self, name: &str) -> Option<&TaskReport> {
        self.tasks.iter().find(|task| &*task.label.name == name)
    }
}

/// Runs `main`, and all that it spawns, to the end.
///
/// `make` builds the scheduler of a CPU; `wrap` is the policy's `Task::new`.
/// All tasks are gone when this returns `Ok`, and so are the schedulers.
///
/// # Errors
///
/// The first [`Violation`] found.
///
/// # Panics
///
/// If the scheduler does.
pub fn run<S, W>(
    config: &Config,
    main: &Program,
    make: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> W,
) -> Result<Report, Box<Failure>>
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let expected = if !(1..=64).contains(&config.cpus) {
        Some("cpus within 1..=64")
    } else if config.tick_period == 0 {
        Some("tick_period of at least 1")
    } else if config.call_cost == 0 {
        Some("call_cost of at least 1")
    } else {
        None
    };
    if let Some(expected) = expected {
        return Err(Box::new(Failure {
            violation: Violation::BadConfig { expected },
            time: 0,
            trace: Trace::default(),
        }));
    }
    let mut machine = Machine::boot(config, main, make, wrap);
    match machine.run_to_the_end() {
        Ok(()) => machine.close(),
        Err(violation) => Err(machine.fail(violation)),
    }
}

// ---------------------------------------------------------------------------
// The machine
// ---------------------------------------------------------------------------

/// A waker of one `block_on`: it outlives that `block_on` (rule 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waker {
    task: TaskId,
    serial: u64,
}

/// A key in a timer wheel: deadline, then order of arrival.
///
/// `axtask` counts arrivals per wheel, so that keys of two wheels can be equal
/// and a cancel on the wrong CPU can hit a stranger's timer. With nanosecond
/// deadlines that is unlikely, with our small numbers it would be common, and
/// it is no business of a scheduler: here the count is machine-wide.
type TimerKey = (u64, u64);

/// What a blocked task waits for.
#[derive(Debug)]
enum Future {
    Gc,
    Sleep {
        deadline: u64,
        timer: Option<TimerKey>,
    },
    Wait {
        queue: u8,
        deadline: Option<u64>,
        listening: bool,
        timer: Option<TimerKey>,
    },
    Join(TaskId),
    /// `main` after its end.
    Never,
}

/// `main` comes second, after CPU 0's idle (rule 1).
const MAIN: TaskId = TaskId(1);

enum Poll {
    Ready,
    Pending,
    /// The future itself called `yield_now()`.
    Yield,
}

/// A `block_on` in progress.
struct BlockOn<W> {
    future: Future,
    waker: Waker,
    /// The waker fired since the task last parked.
    woke: bool,
    /// Polled as pending; parks next.
    polled: bool,
    /// When it is over, the same step begins again.
    looks_again: bool,
    /// `block_on` keeps its task alive.
    _keeps: Arc<W>,
}

enum Kind<W> {
    Idle,
    Gc,
    Program(Arc<Program>),
    /// Holds the task to put on another queue, until it has done so.
    Helper(Option<Arc<W>>),
}

/// All that the model knows of a task.
struct Record<W> {
    kind: Kind<W>,
    arc: Weak<W>,
    state: State,
    mask: CpuMask,
    /// The CPU that runs it, or has not finished leaving it.
    on_cpu: Option<usize>,
    /// The queue it went into; from then until it is picked, these three count.
    queued_on: Option<usize>,
    ready_since: u64,
    dispatches_before: u64,
    need_resched: bool,
    preempt_off: u32,
    /// The next step of its program, and how much of that step is done.
    pc: usize,
    done: u64,
    /// [`Program::longest_burst`]; of gc and the helpers, that of an empty one.
    longest_burst: u64,
    block: Option<BlockOn<W>>,
    handles: Vec<Option<Arc<W>>>,
    /// How many of others' `handles` hold this task.
    held: usize,
    /// As `AtomicWaker`: one joiner.
    joiner: Option<Waker>,
    report: TaskReport,
}

/// A piece of a call, done with interrupts off on behalf of whatever runs.
enum Act<W> {
    Wake(Waker),
    Put {
        task: Arc<W>,
        on: usize,
    },
    TaskTick,
    /// A guard is released: a pending preemption is granted. Always the last
    /// but for `ExitResched`, since others continue in another task's context.
    Release,
    /// The rest of an exit.
    ExitList,
    ExitResched,
}

struct Cpu<S, W> {
    scheduler: S,
    /// When it next does something.
    clock: u64,
    next_tick: u64,
    current: Arc<W>,
    current_since: u64,
    /// The task that is being left, while the switch lasts.
    leaving: Option<TaskId>,
    acts: VecDeque<Act<W>>,
    idle: Arc<W>,
    /// Idle is to pick once more before it waits for interrupts.
    idle_picks: bool,
    exited: VecDeque<Arc<W>>,
    gc: TaskId,
    gc_waker: Option<Waker>,
    gc_streak: u64,
    wheel: BTreeMap<TimerKey, Waker>,
    queued: Vec<TaskId>,
    dispatches: u64,
}

#[derive(Default)]
struct WaitQueue {
    permits: u64,
    /// In order of arrival; true once notified.
    listeners: VecDeque<(Waker, bool)>,
}

/// Why a CPU picks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Yield,
    Other,
}

type Step<T = ()> = Result<T, Violation>;

struct Machine<'a, S, W, F> {
    config: &'a Config,
    wrap: F,
    now: u64,
    limit: u64,
    tasks: Vec<Record<W>>,
    cpus: Vec<Cpu<S, W>>,
    wait_queues: BTreeMap<u8, WaitQueue>,
    /// The counter of queue choices (rule 12).
    choices: usize,
    wakers: u64,
    timers: u64,
    /// Programs and helpers that have not ended.
    alive: usize,
    switches: u64,
    wake_spins: u64,
    makespan: u64,
    trace: Trace,
}

impl<'a, S, W, F> Machine<'a, S, W, F>
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
    F: FnMut(ModelTask) -> W,
{
    /// Rule 1.
    fn boot(config: &'a Config, main: &Program, mut make: impl FnMut(usize) -> S, wrap: F) -> Self {
        (config.on_time)(0);
        let mut m = Self {
            config,
            wrap,
            now: 0,
            limit: config.time_limit_for(main),
            tasks: Vec::new(),
            cpus: Vec::new(),
            wait_queues: BTreeMap::new(),
            choices: 0,
            wakers: 0,
            timers: 0,
            alive: 1,
            switches: 0,
            wake_spins: 0,
            makespan: 0,
            trace: Trace::default(),
        };
        let all = CpuMask::first(config.cpus);
        for cpu in 0..config.cpus {
            let idle = m.new_task("idle", Kind::Idle, CpuMask::one(cpu));
            let current = if cpu == 0 {
                m.new_task("main", Kind::Program(Arc::new(main.clone())), all)
            } else {
                idle.clone()
            };
            let gc = m.new_task("gc", Kind::Gc, CpuMask::one(cpu));
            let record = &mut m.tasks[current.id().0];
            record.state = State::Running;
            record.on_cpu = Some(cpu);
            record.report.first_run = Some(0);
            let period = config.tick_period;
            m.cpus.push(Cpu {
                scheduler: make(cpu),
                clock: 0,
                next_tick: period + period * cpu as u64 / config.cpus as u64,
                current,
                current_since: 0,
                leaving: None,
                acts: VecDeque::new(),
                idle,
                idle_picks: cpu != 0,
                exited: VecDeque::new(),
                gc: gc.id(),
                gc_waker: None,
                gc_streak: 0,
                wheel: BTreeMap::new(),
                queued: Vec::new(),
                dispatches: 0,
            });
            m.add(cpu, gc, cpu);
        }
        m
    }

    /// Plays until every program has ended and gc has nothing left to do.
    fn run_to_the_end(&mut self) -> Step {
        loop {
            let ready = self.cpus.iter().any(|cpu| !cpu.queued.is_empty());
            let resting = !ready && self.cpus.iter().all(|cpu| self.rests(cpu));
            if resting {
                let gc_done = self.cpus.iter().all(|cpu| cpu.exited.is_empty());
                if self.alive == 0 && gc_done {
                    return Ok(());
                }
                if self.cpus.iter().all(|cpu| cpu.wheel.is_empty()) {
                    let blocked = self.labels(|task| {
                        task.state == State::Blocked && matches!(task.kind, Kind::Program(_))
                    });
                    return Err(Violation::Deadlock { blocked });
                }
            }
            let c = (0..self.cpus.len())
                .min_by_key(|&c| self.cpus[c].clock)
                .expect("at least one CPU");
            if self.cpus[c].clock != self.now {
                self.now = self.cpus[c].clock;
                (self.config.on_time)(self.now);
            }
            if self.now > self.limit {
                let left = self.tasks.iter().filter(|task| {
                    let finite = matches!(task.kind, Kind::Program(_) | Kind::Helper(_));
                    finite && task.arc.strong_count() > 0
                });
                return Err(Violation::NotFinished {
                    limit: self.limit,
                    left: left.map(|t| (t.report.label.clone(), t.state)).collect(),
                });
            }
            self.step(c)?;
        }
    }

    /// Whether a CPU sits in idle, with nothing to do before its next tick.
    fn rests(&self, cpu: &Cpu<S, W>) -> bool {
        Arc::ptr_eq(&cpu.current, &cpu.idle)
            && cpu.leaving.is_none()
            && cpu.acts.is_empty()
            && !cpu.idle_picks
    }

    /// Lets CPU `c` do one thing. What it does first is what cannot be
    /// interrupted; the tick comes next; the current task last.
    fn step(&mut self, c: usize) -> Step {
        if let Some(left) = self.cpus[c].leaving.take() {
            self.tasks[left.0].on_cpu = None;
            return Ok(());
        }
        if let Some(act) = self.cpus[c].acts.pop_front() {
            return self.act(c, act);
        }
        if self.cpus[c].next_tick <= self.now {
            self.timer_interrupt(c);
            return Ok(());
        }
        let id = self.current(c);
        if self.tasks[id.0].block.is_some() {
            return self.block_step(c, id);
        }
        match &mut self.tasks[id.0].kind {
            Kind::Idle => self.idle_step(c),
            Kind::Gc => {
                self.block_on(c, Future::Gc);
                Ok(())
            }
            Kind::Helper(migrated) => {
                let migrated = migrated.take();
                self.helper_step(c, migrated);
                Ok(())
            }
            Kind::Program(program) => {
                let program = program.clone();
                let pc = self.tasks[id.0].pc;
                let op = program.ops.get(pc).cloned().unwrap_or(Op::Exit);
                self.program_step(c, id, op)
            }
        }
    }

    fn act(&mut self, c: usize, act: Act<W>) -> Step {
        match act {
            Act::Wake(waker) => self.wake(c, waker),
            Act::Put { task, on } => self.unblock(c, task, on),
            Act::TaskTick => self.task_tick(c)?,
            Act::Release => self.release(c)?,
            Act::ExitList => {
                let cpu = &mut self.cpus[c];
                cpu.exited.push_back(cpu.current.clone());
                if let Some(waker) = cpu.gc_waker.take() {
                    cpu.acts.push_front(Act::Wake(waker));
                }
            }
            Act::ExitResched => self.resched(c, Why::Other)?,
        }
        Ok(())
    }

    // --- tasks and queues

    /// `TaskInner::new(..).into_arc()`.
    fn new_task(&mut self, name: &str, kind: Kind<W>, mask: CpuMask) -> Arc<W> {
        let inner = ModelTask::new(self.tasks.len(), name);
        let label = inner.label.clone();
        let longest_burst = match &kind {
            Kind::Program(program) => program.longest_burst(self.config),
            Kind::Idle | Kind::Gc | Kind::Helper(_) => {
                Program::new(name, []).longest_burst(self.config)
            }
        };
        let task = Arc::new((self.wrap)(inner));
        self.tasks.push(Record {
            kind,
            arc: Arc::downgrade(&task),
            state: State::Ready,
            mask,
            on_cpu: None,
            queued_on: None,
            ready_since: self.now,
            dispatches_before: 0,
            need_resched: false,
            preempt_off: 0,
            pc: 0,
            done: 0,
            longest_burst,
            block: None,
            handles: Vec::new(),
            held: 0,
            joiner: None,
            report: TaskReport {
                label,
                submitted: self.now,
                first_run: None,
                finished: None,
                run_time: 0,
                max_wait: 0,
                max_wait_dispatches: 0,
                dispatches: 0,
                yields: 0,
                preemptions: 0,
                priorities_set: 0,
            },
        });
        task
    }

    fn current(&self, c: usize) -> TaskId {
        self.cpus[c].current.id()
    }

    fn labels(&self, which: impl Fn(&Record<W>) -> bool) -> Vec<Label> {
        let chosen = self.tasks.iter().filter(|task| which(task));
        chosen.map(|task| task.report.label.clone()).collect()
    }

    fn note(&mut self, cpu: usize, what: What, id: TaskId) {
        let event = Event {
            time: self.now,
            cpu,
            what,
            task: self.tasks[id.0].report.label.clone(),
        };
        self.trace.push(self.config.trace_events, event);
    }

    /// The cost of a call.
    fn spend(&mut self, c: usize) {
        self.cpus[c].clock += self.config.call_cost;
    }

    /// `select_run_queue` (rule 12).
    fn select(&mut self, mask: CpuMask) -> usize {
        if self.config.cpus == 1 {
            return 0;
        }
        loop {
            let index = self.choices % self.config.cpus;
            self.choices += 1;
            if mask.has(index) {
                return index;
            }
        }
    }

    /// Notes that a task goes into a queue; from here on it must come out.
    fn enqueue(&mut self, on: usize, id: TaskId) {
        let task = &mut self.tasks[id.0];
        assert_eq!(task.state, State::Ready, "model: put {}", task.report.label);
        assert_eq!(task.queued_on, None, "model: put {}", task.report.label);
        task.queued_on = Some(on);
        task.ready_since = self.now;
        task.dispatches_before = self.cpus[on].dispatches;
        self.cpus[on].queued.push(id);
    }

    fn add(&mut self, c: usize, task: Arc<W>, on: usize) {
        let id = task.id();
        self.enqueue(on, id);
        self.note(c, What::Spawned(on), id);
        self.cpus[on].scheduler.add_task(task);
    }

    fn put(&mut self, on: usize, task: Arc<W>, preempt: bool) {
        self.enqueue(on, task.id());
        self.cpus[on].scheduler.put_prev_task(task, preempt);
    }

    // --- giving the CPU up

    /// `yield_current` (rule 3). Idle is made ready but not put (rule 11).
    fn yield_current(&mut self, c: usize) -> Step {
        let id = self.current(c);
        self.give_up(c, What::Yielded);
        self.tasks[id.0].report.yields += 1;
        self.resched(c, Why::Yield)
    }

    /// A guard is released: `current_check_preempt_pending` (rule 4).
    fn release(&mut self, c: usize) -> Step {
        let id = self.current(c);
        let task = &mut self.tasks[id.0];
        if !self.config.preempt || !task.need_resched || task.preempt_off > 0 {
            return Ok(());
        }
        task.report.preemptions += 1;
        self.give_up(c, What::Preempted);
        self.resched(c, Why::Other)
    }

    /// `put_task_with_state(current, Running, what == Preempted)`.
    fn give_up(&mut self, c: usize, what: What) {
        let id = self.current(c);
        let task = &mut self.tasks[id.0];
        assert_eq!(task.state, State::Running, "model: {}", task.report.label);
        task.state = State::Ready;
        if !matches!(task.kind, Kind::Idle) {
            self.note(c, what, id);
            let current = self.cpus[c].current.clone();
            self.put(c, current, what == What::Preempted);
        }
    }

    /// `resched`: pick, check what was picked, switch to it.
    fn resched(&mut self, c: usize, why: Why) -> Step {
        let next = match self.cpus[c].scheduler.pick_next_task() {
            Some(next) => {
                self.check_pick(c, &next, why)?;
                next
            }
            None => {
                let ready = self.ready_on(c);
                if !ready.is_empty() {
                    return Err(Violation::IdleWhileReady { cpu: c, ready });
                }
                self.cpus[c].idle.clone()
            }
        };
        self.spend(c);
        self.switch_to(c, next)
    }

    fn ready_on(&self, c: usize) -> Vec<Label> {
        let queued = self.cpus[c].queued.iter();
        queued
            .map(|id| self.tasks[id.0].report.label.clone())
            .collect()
    }

    /// Everything that can be wrong with a pick, and the books on waiting.
    fn check_pick(&mut self, c: usize, next: &Arc<W>, why: Why) -> Step {
        let label = next.label().clone();
        let id = label.id;
        let known = self
            .tasks
            .get(id.0)
            .is_some_and(|task| task.arc.as_ptr() == Arc::as_ptr(next));
        if !known {
            return Err(Violation::Unknown { task: label });
        }
        let task = &self.tasks[id.0];
        if task.state != State::Ready {
            let found = task.state;
            return Err(Violation::NotReady { task: label, found });
        }
        if let Some(found) = task.on_cpu.filter(|&on| on != c) {
            return Err(Violation::StillOnCpu {
                task: label,
                cpu: c,
                found,
            });
        }
        let Some(queue) = task.queued_on.filter(|&on| on == c || self.config.stealing) else {
            let found = task.queued_on;
            return Err(Violation::NotQueuedHere {
                task: label,
                cpu: c,
                found,
            });
        };
        if !task.mask.has(c) {
            let allowed = task.mask;
            return Err(Violation::WrongCpu {
                task: label,
                cpu: c,
                allowed,
            });
        }

        self.check_wait(id)?;
        self.cpus[queue].queued.retain(|&queued| queued != id);
        self.cpus[queue].dispatches += 1;
        let task = &mut self.tasks[id.0];
        task.queued_on = None;
        task.report.dispatches += 1;
        self.check_waits(queue)?;

        let ready = self.ready_on(c);
        let again = why == Why::Yield && id == self.current(c);
        if again && !ready.is_empty() && !self.config.repick_after_yield {
            return Err(Violation::Repicked { task: label, ready });
        }
        let cpu = &mut self.cpus[c];
        if id != cpu.gc || ready.is_empty() {
            cpu.gc_streak = 0;
            return Ok(());
        }
        cpu.gc_streak += 1;
        let streak = cpu.gc_streak;
        if streak > self.config.max_gc_streak {
            return Err(Violation::GcMonopolises {
                cpu: c,
                streak,
                ready,
            });
        }
        Ok(())
    }

    fn check_waits(&mut self, queue: usize) -> Step {
        for i in 0..self.cpus[queue].queued.len() {
            self.check_wait(self.cpus[queue].queued[i])?;
        }
        Ok(())
    }

    /// Holds the wait so far of a queued task against the bound.
    fn check_wait(&mut self, id: TaskId) -> Step {
        let task = &mut self.tasks[id.0];
        let queue = task.queued_on.expect("model: only queued tasks wait");
        let dispatches = self.cpus[queue].dispatches - task.dispatches_before;
        let time = self.now - task.ready_since;
        task.report.max_wait = task.report.max_wait.max(time);
        task.report.max_wait_dispatches = task.report.max_wait_dispatches.max(dispatches);
        let bound = self.config.max_wait;
        let within = |found: u64, limit: Option<u64>| limit.is_none_or(|limit| found <= limit);
        let own = bound.own_bursts * task.longest_burst;
        if within(dispatches, bound.dispatches) && within(time, bound.time.map(|time| time + own)) {
            return Ok(());
        }
        Err(Violation::Starved {
            task: task.report.label.clone(),
            dispatches,
            time,
            bound,
        })
    }

    /// `switch_to`, for a pick and for a migration helper.
    fn switch_to(&mut self, c: usize, next: Arc<W>) -> Step {
        let now = self.now;
        let (from, to) = (self.current(c), next.id());
        let task = &mut self.tasks[to.0];
        task.need_resched = false;
        task.state = State::Running;
        task.report.first_run.get_or_insert(now);
        // Idle that goes on idling would fill the trace and say nothing.
        if from != to || !matches!(self.tasks[to.0].kind, Kind::Idle) {
            self.note(c, What::Dispatched, to);
        }
        if from == to {
            return Ok(());
        }
        self.tasks[to.0].on_cpu = Some(c);
        let cpu = &mut self.cpus[c];
        cpu.clock += self.config.switch_cost;
        cpu.leaving = Some(from);
        let left = std::mem::replace(&mut cpu.current, next);
        let since = std::mem::replace(&mut cpu.current_since, now);
        let task = &mut self.tasks[from.0];
        task.report.run_time += now - since;
        self.switches += 1;
        // As axtask asserts: whoever is left must have an owner besides the
        // CPU, be it a queue, its own `block_on` or the list of the exited.
        match Arc::strong_count(&left) {
            found @ 0..=1 => Err(Violation::Lost {
                task: task.report.label.clone(),
                found,
            }),
            _ => Ok(()),
        }
    }

    // --- interrupts and wakes

    /// Rule 10. Ticks that were missed with interrupts off are one tick.
    fn timer_interrupt(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        while cpu.next_tick <= self.now {
            cpu.next_tick += self.config.tick_period;
        }
        let later = cpu.wheel.split_off(&(self.now, u64::MAX));
        let expired = std::mem::replace(&mut cpu.wheel, later);
        cpu.acts.extend(expired.into_values().map(Act::Wake));
        cpu.acts.extend([Act::TaskTick, Act::Release]);
        cpu.idle_picks = Arc::ptr_eq(&cpu.current, &cpu.idle);
    }

    fn task_tick(&mut self, c: usize) -> Step {
        let id = self.current(c);
        if !matches!(self.tasks[id.0].kind, Kind::Idle) {
            let cpu = &mut self.cpus[c];
            let resched = cpu.scheduler.task_tick(&cpu.current);
            self.note(c, What::Ticked(resched), id);
            self.tasks[id.0].need_resched |= resched;
        }
        self.check_waits(c)
    }

    /// `AxWaker::wake` up to the point where it may have to spin (rule 6).
    fn wake(&mut self, c: usize, waker: Waker) {
        let record = &self.tasks[waker.task.0];
        let Some(task) = record.arc.upgrade() else {
            return;
        };
        let on = self.select(record.mask);
        let record = &mut self.tasks[waker.task.0];
        if let Some(block) = record.block.as_mut().filter(|block| block.waker == waker) {
            block.woke = true;
        }
        if record.state == State::Blocked {
            record.state = State::Ready;
            self.cpus[c].acts.push_front(Act::Put { task, on });
        }
    }

    /// The rest of a wake: spins until the task is off its CPU, then puts it.
    fn unblock(&mut self, c: usize, task: Arc<W>, on: usize) {
        let id = task.id();
        if let Some(busy) = self.tasks[id.0].on_cpu {
            // One unit later, so that the other CPU surely goes first.
            self.cpus[c].clock = self.cpus[busy].clock + 1;
            self.cpus[c].acts.push_front(Act::Put { task, on });
            self.wake_spins += 1;
            return;
        }
        let resched = self.config.wake_resched;
        self.note(c, What::Woken(on), id);
        self.put(on, task, resched);
        if resched && on == c {
            let current = self.current(c);
            self.tasks[current.0].need_resched = true;
        }
    }

    // --- blocking

    /// Starts a `block_on`; polling it is the next step.
    fn block_on(&mut self, c: usize, future: Future) -> &mut BlockOn<W> {
        let id = self.current(c);
        self.wakers += 1;
        self.tasks[id.0].block.insert(BlockOn {
            future,
            waker: Waker {
                task: id,
                serial: self.wakers,
            },
            woke: false,
            polled: false,
            looks_again: false,
            _keeps: self.cpus[c].current.clone(),
        })
    }

    fn sleep(&mut self, c: usize, deadline: u64) -> &mut BlockOn<W> {
        let timer = None;
        self.block_on(c, Future::Sleep { deadline, timer })
    }

    /// Rule 5: poll, then in a step of its own park, or yield if woken between.
    fn block_step(&mut self, c: usize, id: TaskId) -> Step {
        let mut block = self.tasks[id.0].block.take().expect("model: no block_on");
        if !block.polled {
            let poll = self.poll(c, &mut block)?;
            block.polled = matches!(poll, Poll::Pending);
            match poll {
                Poll::Ready => {
                    self.spend(c);
                    let task = &mut self.tasks[id.0];
                    task.pc += usize::from(!block.looks_again);
                    self.cpus[c].acts.push_back(Act::Release);
                    return Ok(());
                }
                Poll::Pending => {
                    self.spend(c);
                    self.tasks[id.0].block = Some(block);
                    return Ok(());
                }
                Poll::Yield => {
                    self.tasks[id.0].block = Some(block);
                    return self.yield_current(c);
                }
            }
        }
        block.polled = false;
        let woke = std::mem::take(&mut block.woke);
        let task = &mut self.tasks[id.0];
        task.block = Some(block);
        if woke {
            return self.yield_current(c);
        }
        if self.config.preempt && task.preempt_off > 0 {
            let task = task.report.label.clone();
            return Err(Violation::BlockedUnderGuard { task });
        }
        task.state = State::Blocked;
        self.note(c, What::Blocked, id);
        self.resched(c, Why::Other)
    }

    fn poll(&mut self, c: usize, block: &mut BlockOn<W>) -> Step<Poll> {
        let waker = block.waker;
        Ok(match &mut block.future {
            Future::Never => Poll::Pending,
            Future::Gc => return self.poll_gc(c, waker),
            Future::Join(child) => {
                let child = &mut self.tasks[child.0];
                if child.state == State::Exited {
                    Poll::Ready
                } else {
                    child.joiner = Some(waker);
                    Poll::Pending
                }
            }
            Future::Sleep { deadline, timer } => match *timer {
                // A wake on another CPU looks into the wrong wheel and ends the
                // sleep, whatever the time: so does axtask.
                Some(key) if !self.cpus[c].wheel.contains_key(&key) => Poll::Ready,
                Some(_) => Poll::Pending,
                None if *deadline <= self.now => Poll::Ready,
                None => {
                    *timer = Some(self.arm(c, *deadline, waker));
                    Poll::Pending
                }
            },
            Future::Wait {
                queue,
                deadline,
                listening,
                timer,
            } => {
                let waiters = self.wait_queues.entry(*queue).or_default();
                if *listening {
                    let place = waiters.listeners.iter().position(|(w, _)| *w == waker);
                    let place = place.expect("model: a listener stays until polled");
                    let notified = waiters.listeners[place].1;
                    let timed_out = timer.is_some_and(|key| !self.cpus[c].wheel.contains_key(&key));
                    if !notified && !timed_out {
                        return Ok(Poll::Pending);
                    }
                    waiters.listeners.remove(place);
                    *listening = false;
                    // Cancels on this CPU's wheel only (rule 13).
                    if let Some(key) = timer.take() {
                        self.cpus[c].wheel.remove(&key);
                    }
                }
                if waiters.permits > 0 {
                    waiters.permits -= 1;
                    return Ok(Poll::Ready);
                }
                if deadline.is_some_and(|deadline| deadline <= self.now) {
                    return Ok(Poll::Ready);
                }
                waiters.listeners.push_back((waker, false));
                *listening = true;
                *timer = deadline.map(|deadline| self.arm(c, deadline, waker));
                Poll::Pending
            }
        })
    }

    fn arm(&mut self, c: usize, deadline: u64, waker: Waker) -> TimerKey {
        self.timers += 1;
        let key = (deadline, self.timers);
        self.cpus[c].wheel.insert(key, waker);
        key
    }

    /// `poll_gc` (rule 8).
    fn poll_gc(&mut self, c: usize, waker: Waker) -> Step<Poll> {
        for _ in 0..self.cpus[c].exited.len() {
            let Some(task) = self.cpus[c].exited.pop_front() else {
                break;
            };
            let id = task.id();
            match Arc::try_unwrap(task) {
                Ok(task) => {
                    drop(task);
                    self.note(c, What::Freed, id);
                }
                Err(task) => {
                    // The list's own, and the handles that other tasks hold.
                    self.check_owners(&task, 1 + self.tasks[id.0].held)?;
                    self.cpus[c].exited.push_back(task);
                }
            }
        }
        self.cpus[c].gc_waker = Some(waker);
        Ok(if self.cpus[c].exited.is_empty() {
            Poll::Pending
        } else {
            Poll::Yield
        })
    }

    fn check_owners(&self, task: &Arc<W>, expected: usize) -> Step {
        let found = Arc::strong_count(task);
        if found == expected {
            return Ok(());
        }
        Err(Violation::HandleKept {
            task: task.label().clone(),
            expected,
            found,
        })
    }

    // --- what the tasks do

    /// `run_idle`: picks once after each interrupt, then waits for the next.
    fn idle_step(&mut self, c: usize) -> Step {
        let cpu = &mut self.cpus[c];
        if std::mem::take(&mut cpu.idle_picks) {
            self.yield_current(c)
        } else {
            cpu.clock = cpu.next_tick;
            Ok(())
        }
    }

    /// `migrate_entry`, then the exit of the helper (rule 9).
    fn helper_step(&mut self, c: usize, migrated: Option<Arc<W>>) {
        let Some(task) = migrated else {
            self.exit(c);
            return;
        };
        let id = task.id();
        let on = self.select(self.tasks[id.0].mask);
        self.note(c, What::Migrated(on), id);
        self.put(on, task, false);
        self.spend(c);
        self.cpus[c].acts.push_back(Act::Release);
    }

    fn program_step(&mut self, c: usize, id: TaskId, op: Op) -> Step {
        let now = self.now;
        let task = &mut self.tasks[id.0];
        match op {
            Op::Run(units) => {
                // Up to the tick at most: nothing else can stop it.
                let cpu = &mut self.cpus[c];
                let part = (units - task.done).min(cpu.next_tick - now);
                cpu.clock += part;
                task.done += part;
                if task.done == units {
                    task.done = 0;
                    task.pc += 1;
                }
                return Ok(());
            }
            Op::Yield => {
                task.pc += 1;
                return self.yield_current(c);
            }
            Op::YieldUntil { queue } => {
                if self.wait_queues.get(&queue).is_none_or(|w| w.permits == 0) {
                    return self.yield_current(c);
                }
                task.pc += 1;
            }
            Op::Sleep(units) => {
                self.sleep(c, now + units);
                return Ok(());
            }
            Op::SleepUntil { queue, units } => {
                if self.wait_queues.get(&queue).is_none_or(|w| w.permits == 0) {
                    self.sleep(c, now + units).looks_again = true;
                    return Ok(());
                }
                task.pc += 1;
            }
            Op::Wait { queue, timeout } => {
                let future = Future::Wait {
                    queue,
                    deadline: timeout.map(|units| now + units),
                    listening: false,
                    timer: None,
                };
                self.block_on(c, future);
                return Ok(());
            }
            Op::Join(n) => {
                if let Some(Some(child)) = task.handles.get(n) {
                    let child = child.id();
                    self.block_on(c, Future::Join(child));
                    return Ok(());
                }
                task.pc += 1;
            }
            Op::Notify { queue, resched } => {
                if task.done > 0 {
                    // The second half of a notification that yields.
                    task.done = 0;
                    task.pc += 1;
                    return self.yield_current(c);
                }
                if resched {
                    task.done = 1;
                } else {
                    task.pc += 1;
                }
                let waiters = self.wait_queues.entry(queue).or_default();
                waiters.permits += 1;
                if let Some((waker, notified)) = waiters.listeners.iter_mut().find(|l| !l.1) {
                    *notified = true;
                    self.cpus[c].acts.push_back(Act::Wake(*waker));
                }
            }
            Op::Spawn(program) => {
                task.pc += 1;
                let name = program.name.clone();
                let all = CpuMask::first(self.config.cpus);
                let child = self.new_task(&name, Kind::Program(Arc::new(program)), all);
                self.alive += 1;
                self.tasks[child.id().0].held = 1;
                self.tasks[id.0].handles.push(Some(child.clone()));
                let on = self.select(all);
                self.add(c, child, on);
            }
            Op::DropHandle(n) => {
                task.pc += 1;
                if let Some(child) = task.handles.get_mut(n).and_then(Option::take) {
                    self.tasks[child.id().0].held -= 1;
                }
            }
            Op::Migrate(mask) => {
                task.pc += 1;
                let mask = CpuMask(mask.0 & CpuMask::first(self.config.cpus).0);
                if mask.0 != 0 {
                    task.mask = mask;
                    if !mask.has(c) {
                        return self.migrate_current(c, id);
                    }
                }
            }
            Op::PreemptOff => {
                task.pc += 1;
                task.preempt_off += 1;
            }
            Op::PreemptOn => {
                task.pc += 1;
                task.preempt_off = task.preempt_off.saturating_sub(1);
            }
            Op::SetPriority(priority) => {
                task.pc += 1;
                let cpu = &mut self.cpus[c];
                let set = cpu.scheduler.set_priority(&cpu.current, priority);
                task.report.priorities_set += u64::from(set);
            }
            Op::Call(what) => {
                task.pc += 1;
                (self.config.on_call)(what);
            }
            Op::Exit => {
                self.exit(c);
                return Ok(());
            }
        }
        self.spend(c);
        self.cpus[c].acts.push_back(Act::Release);
        Ok(())
    }

    /// `migrate_current` (rule 9): the helper is made, but neither added nor
    /// picked.
    fn migrate_current(&mut self, c: usize, id: TaskId) -> Step {
        let migrated = self.cpus[c].current.clone();
        let all = CpuMask::first(self.config.cpus);
        let helper = self.new_task("migration", Kind::Helper(Some(migrated)), all);
        self.alive += 1;
        let task = &mut self.tasks[id.0];
        task.state = State::Ready;
        self.spend(c);
        self.switch_to(c, helper)
    }

    /// `exit_current` (rule 7), after the task's function has returned.
    fn exit(&mut self, c: usize) {
        let id = self.current(c);
        let handles = std::mem::take(&mut self.tasks[id.0].handles);
        for child in handles.into_iter().flatten() {
            self.tasks[child.id().0].held -= 1;
        }
        self.alive -= 1;
        self.note(c, What::Exited, id);
        self.spend(c);
        let task = &mut self.tasks[id.0];
        task.report.finished = Some(self.now);
        if matches!(task.kind, Kind::Program(_)) {
            self.makespan = self.now;
        }
        if id == MAIN {
            self.block_on(c, Future::Never);
            return;
        }
        task.state = State::Exited;
        let joiner = task.joiner.take();
        let acts = &mut self.cpus[c].acts;
        acts.extend(joiner.map(Act::Wake));
        acts.extend([Act::ExitList, Act::ExitResched]);
    }

    // --- the end

    fn fail(&mut self, violation: Violation) -> Box<Failure> {
        Box::new(Failure {
            violation,
            time: self.now,
            trace: std::mem::take(&mut self.trace),
        })
    }

    /// Drains the queues, drops the schedulers, counts the owners.
    fn close(mut self) -> Result<Report, Box<Failure>> {
        for cpu in &mut self.cpus {
            if let Some(task) = cpu.scheduler.pick_next_task() {
                let task = task.label().clone();
                let state = self.tasks[task.id.0].state;
                return Err(self.fail(Violation::LeftOver { task, state }));
            }
        }
        let dispatches = self.cpus.iter().map(|cpu| cpu.dispatches).sum();
        let mut alive = Vec::new();
        for cpu in self.cpus.drain(..) {
            drop(cpu.scheduler);
            // Idle's are the two of `Cpu`; the other one `current` is idle too.
            drop(cpu.current);
            alive.push(cpu.idle);
        }
        for record in &mut self.tasks {
            // gc's, main's: what `block_on` keeps.
            alive.extend(record.block.take().map(|block| block._keeps));
        }
        for task in &alive {
            if let Err(violation) = self.check_owners(task, 1) {
                return Err(self.fail(violation));
            }
        }
        drop(alive);
        let tasks = self
            .tasks
            .into_iter()
            .filter(|task| !matches!(task.kind, Kind::Idle));
        Ok(Report {
            tasks: tasks.map(|task| task.report).collect(),
            switches: self.switches,
            dispatches,
            makespan: self.makespan,
            wake_spins: self.wake_spins,
            trace: self.trace,
        })
    }
}
