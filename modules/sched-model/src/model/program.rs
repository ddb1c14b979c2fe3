//! The inputs of a run: tasks, programs, configuration.

use std::{fmt, sync::Arc};

/// A task's number, in the order in which tasks were made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskId(pub usize);

impl TaskId {
    /// The number of `main`, which comes second, after CPU 0's idle (rule 1 of the [model](super)).
    pub const MAIN: Self = Self(1);
}

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
/// It is as opaque to a policy as the real one. The model finds state, program and clock by the
/// [`TaskId`].
#[derive(Debug)]
pub struct ModelTask {
    pub(super) label: Label,
}

impl ModelTask {
    /// Returns a task outside any run, for tests that call a scheduler by hand.
    pub fn new(id: usize, name: &str) -> Self {
        let id = TaskId(id);
        Self {
            label: Label {
                id,
                name: name.into(),
            },
        }
    }

    /// Returns the task's number.
    pub fn id(&self) -> TaskId {
        self.label.id
    }

    /// Returns the task's name and number.
    pub fn label(&self) -> &Label {
        &self.label
    }
}

/// A set of up to 64 CPUs. Bit n is CPU n.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuMask(pub u64);

impl CpuMask {
    /// Returns the set of the CPUs `0..cpus`.
    pub fn first(cpus: usize) -> Self {
        Self(u64::MAX.checked_shr(64 - cpus as u32).unwrap_or(0))
    }

    /// Returns the set of one CPU.
    pub fn one(cpu: usize) -> Self {
        Self(1 << cpu)
    }

    /// Returns true if `cpu` is in the set.
    pub fn has(self, cpu: usize) -> bool {
        self.0 >> cpu & 1 == 1
    }
}

/// One step of a program. Every step but [`Run`](Op::Run) [`Again`](Op::Again) and
/// [`Mark`](Op::Mark) takes [`Config::call_cost`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// Computes for this many time units. Ticks may interrupt it.
    Run(u64),
    /// Yields, as `yield_now()` does.
    Yield,
    /// Sleeps, as `sleep()` does: wakes at the first tick of this CPU at or after the deadline.
    Sleep(u64),
    /// Waits for a permit, as `WaitQueue::wait_until` or `wait_timeout_until` does. Because of the
    /// permits, a notification that came first counts.
    Wait {
        /// The number of the wait queue.
        queue: u32,
        /// The number of time units after which it gives up; `None` for never.
        timeout: Option<u64>,
    },
    /// Adds a permit and wakes one waiter that is not woken yet. (The real
    /// `notify_one` wakes no waiter while one that was woken before has not run.)
    Notify {
        /// The number of the wait queue.
        queue: u32,
        /// True to yield afterwards, as `notify_one(true)` does. On [`Line::AxTask06`] it is true to
        /// be preempted afterwards.
        resched: bool,
    },
    /// Looks if the wait queue has a permit, yields, and looks again until it has one, which it leaves
    /// there: a busy wait.
    YieldUntil {
        /// The number of the wait queue.
        queue: u32,
        /// The number of time units that it computes before each look.
        look: u64,
    },
    /// Sleeps for this many time units again and again until the wait queue has a permit, and
    /// leaves it there: polling.
    SleepUntil {
        /// The number of the wait queue.
        queue: u32,
        /// The length of each sleep, in time units.
        units: u64,
    },
    /// Spawns a task, as `spawn()` does. Keeps the handle under the next number, from 0.
    Spawn(Program),
    /// Waits for the n-th task that this task spawned, and keeps the handle. Does nothing if that
    /// handle does not exist, or no longer.
    Join(usize),
    /// Drops the n-th handle. The handles that are left are dropped at exit.
    DropHandle(usize),
    /// Migrates to one of these CPUs, as `set_current_affinity()` does. CPUs that do not exist are
    /// ignored. Does nothing if none is left.
    Migrate(CpuMask),
    /// Takes a guard that forbids preemption. Guards nest. Blocking under one is a fault of the
    /// program, as in `axtask`.
    PreemptOff,
    /// Releases one such guard, if any is held.
    PreemptOn,
    /// Sets the task's priority. The [`TaskReport`](super::TaskReport) counts how often it is
    /// accepted.
    SetPriority(isize),
    /// Gives the wait queue permits for all tasks, for ever, and wakes all waiters.
    Open {
        /// The number of the wait queue.
        queue: u32,
    },
    /// Remembers the time, for [`SleepSince`](Op::SleepSince); costs nothing.
    Mark,
    /// Sleeps until this many time units after its last [`Mark`](Op::Mark), or after boot. It does
    /// not sleep if that is past.
    SleepSince(u64),
    /// Counts for the latch of this wait queue. The `of`-th count notifies, as
    /// [`Notify`](Op::Notify) does without yielding.
    CountDown {
        /// The number of the wait queue.
        queue: u32,
        /// The number of counts; the same in all steps of a queue.
        of: u64,
    },
    /// Does the `steps` steps before it again, `times` times. It costs nothing, and is not nested.
    Again {
        /// The number of steps, at least 1.
        steps: usize,
        /// The number of repetitions.
        times: u64,
    },
    /// Makes a call of the application's own: [`Config::on_call`].
    Call(u32),
    /// Returns from the task's function. It is implied at the end of a program.
    ///
    /// (A direct call of `axtask::exit` would leak the handles on its stack, and `gc` would then
    /// yield for ever.)
    Exit,
}

impl Op {
    /// Spawns a task that runs these steps.
    pub fn spawn(name: &str, ops: impl IntoIterator<Item = Self>) -> Self {
        Self::Spawn(Program::new(name, ops))
    }

    /// Waits at a queue without a limit.
    pub fn wait(queue: u32) -> Self {
        let timeout = None;
        Self::Wait { queue, timeout }
    }

    /// Notifies a queue, and keeps the CPU.
    pub fn notify(queue: u32) -> Self {
        let resched = false;
        Self::Notify { queue, resched }
    }
}

/// A program of a task: a name and steps.
///
/// A clone shares the steps. So a program costs its own steps once, however many tasks run it and
/// however long the chain of tasks that spawn it.
#[derive(Clone, PartialEq, Eq)]
pub struct Program {
    /// The name of the tasks that run it.
    pub name: Arc<str>,
    /// The steps, in order.
    pub ops: Arc<[Op]>,
}

impl Program {
    /// Returns a program of the given steps.
    pub fn new(name: &str, ops: impl IntoIterator<Item = Op>) -> Self {
        Self {
            name: name.into(),
            ops: ops.into_iter().collect(),
        }
    }

    /// Returns a program that does `ops` `n` times.
    pub fn repeat(name: &str, n: usize, ops: &[Op]) -> Self {
        Self::new(name, ops.iter().cycle().take(n * ops.len()).cloned())
    }

    /// Returns the steps in the order in which they are done, with all repetitions.
    pub fn steps(&self) -> impl Iterator<Item = &Op> {
        let (mut pc, mut again) = (0, 0);
        std::iter::from_fn(move || {
            loop {
                let op = self.ops.get(pc)?;
                pc += 1;
                match op {
                    Op::Again { steps, times } if again < *times => {
                        again += 1;
                        pc -= 1 + steps;
                    }
                    Op::Again { .. } => again = 0,
                    _ => return Some(op),
                }
            }
        })
    }

    /// Returns this program and all that it spawns, each as often as it is run.
    fn family(&self) -> impl Iterator<Item = &Self> {
        // This is no recursion, because a chain of spawns may be longer than a stack.
        let mut left = vec![self];
        std::iter::from_fn(move || {
            let program = left.pop()?;
            left.extend(program.steps().filter_map(|op| match op {
                Op::Spawn(child) => Some(child),
                _ => None,
            }));
            Some(program)
        })
    }

    /// Returns the number of tasks that this program makes: itself, all that it spawns, and one helper for each migration.
    pub fn tasks(&self) -> usize {
        let migrates = |op: &&Op| matches!(op, Op::Migrate(_));
        let made = |program: &Self| 1 + program.steps().filter(migrates).count();
        self.family().map(made).sum()
    }

    /// Returns the longest time that this program, or any that it spawns, computes while it forbids preemption.
    pub fn longest_guarded(&self) -> u64 {
        self.family().map(Self::own_guarded).max().unwrap_or(0)
    }

    fn own_guarded(&self) -> u64 {
        let (mut guards, mut guarded, mut longest) = (0_u32, 0, 0);
        for op in self.steps() {
            match op {
                Op::PreemptOff => guards += 1,
                Op::PreemptOn => guards = guards.saturating_sub(1),
                Op::Run(units) if guards > 0 => guarded += units,
                _ => {}
            }
            longest = longest.max(guarded);
            if guards == 0 {
                guarded = 0;
            }
        }
        longest
    }

    /// Returns the longest time that this program itself has the CPU between two points at which it
    /// is sure to give it away. Its calls and switches count.
    pub fn longest_burst(&self, config: &Config) -> u64 {
        let call = 2 * (config.call_cost + config.switch_cost);
        let (mut burst, mut longest) = (0, 0);
        for op in self.steps() {
            burst += match op {
                Op::Run(units) | Op::YieldUntil { look: units, .. } => {
                    units + (1 + units / config.tick_period) * call
                }
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

    /// Returns true if this program, or any that it spawns, sets a priority.
    pub fn has_priority_changes(&self) -> bool {
        let is_priority_change = |op: &Op| matches!(op, Op::SetPriority(_));
        self.family()
            .any(|program| program.ops.iter().any(is_priority_change))
    }

    /// Returns the time of this program and all that it spawns if they run one after another. Each
    /// step has its longest latency.
    pub fn serial_time(&self, config: &Config) -> u64 {
        // A wake on an idle CPU waits for its tick, and a sleeper for that of the wheel that it is
        // in. That is at most two ticks per step.
        let step = 4 * (config.call_cost + config.switch_cost) + 2 * config.tick_period;
        let time = |op: &Op| match op {
            Op::Run(units) => units + units / config.tick_period * step,
            Op::Sleep(units) | Op::SleepSince(units) | Op::SleepUntil { units, .. } => units + step,
            Op::Wait { timeout, .. } => timeout.unwrap_or(0) + step,
            _ => step,
        };
        let own = |program: &Self| step + program.steps().map(time).sum::<u64>();
        self.family().map(own).sum()
    }
}

/// Drops one program after the other. This is no recursion, because a chain of spawns may be longer
/// than a stack.
impl Drop for Program {
    fn drop(&mut self) {
        let mut left = Vec::new();
        let mut take = |program: &mut Self| {
            let spawns = Arc::get_mut(&mut program.ops).into_iter().flatten();
            let spawns = spawns.filter(|op| matches!(op, Op::Spawn(_)));
            left.extend(spawns.map(|op| std::mem::replace(op, Op::Exit)));
            left.pop()
        };
        let mut next = take(self);
        while let Some(Op::Spawn(mut child)) = next {
            next = take(&mut child);
        }
    }
}

/// Formats as the code that makes it, less the noise.
impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{:?}", self.name, self.ops)
    }
}

/// The bound on the wait of a ready task. `None` means no bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MaxWait {
    /// The bound in picks of other tasks from the same queue. Picking the same one again counts
    /// each time. On [`Line::AxTask06`], where each timer preempts, it does not count if the task
    /// was preempted.
    pub dispatches: Option<u64>,
    /// The bound in time units.
    pub time: Option<u64>,
    /// The number of times that the [longest burst](Program::longest_burst) of a task's own program is added to
    /// [`time`](Self::time).
    pub own_bursts: u64,
}

/// A line of ArceOS. The rules of the [model](crate::model) say in what they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Line {
    /// The line of `axtask` 0.3.0-preview.3.
    #[default]
    Axtask03,
    /// The line of `ax-task` 0.6.11.
    AxTask06,
}

impl Line {
    /// All lines, the older one first.
    pub const ALL: [Self; 2] = [Self::Axtask03, Self::AxTask06];
}

/// The machine, its costs, and the promises of the policy under test.
#[derive(Debug, Clone)]
pub struct Config {
    /// The line of ArceOS.
    pub line: Line,
    /// The number of CPUs, 1 to 64. With one, `axtask` is built without `smp`.
    pub cpus: usize,
    /// True if `axtask` is built with `preempt`.
    pub preempt: bool,
    /// The time units between two ticks of a CPU, at least 1. CPUs tick in turn, spread over the
    /// period.
    pub tick_period: u64,
    /// The time units for each call into `axtask`, at least 1 so that time moves.
    pub call_cost: u64,
    /// The time units for a switch to another task. While they pass, the task left behind still
    /// counts as on its CPU. With 0 that window is very short.
    pub switch_cost: u64,
    /// The time units for each exited task that gc looks at and cannot release (rule 8).
    pub gc_look_cost: u64,
    /// The additional time units of a pick, by the number of ready tasks, the picked one included.
    /// The index is the binary logarithm of that number, rounded down. The last value holds for
    /// more tasks, too. An empty list costs nothing.
    pub pick_cost_by_load: Vec<u64>,
    /// Called with the time whenever it changes, and with 0 at boot. A policy that reads a clock
    /// must be given a virtual one, and this function sets it.
    pub on_time: fn(u64),
    /// Does an [`Op::Call`], such as the calls that a policy offers to applications. It runs on the calling task's time,
    /// outside any lock.
    pub on_call: fn(u32),
    /// True if wakes ask for rescheduling (`put_prev_task(task, true)` for a task that is not
    /// running). `axtask` 0.3.0-preview.3 has the parameter but always passes `false`. The trait's
    /// contract allows both.
    pub wake_resched: bool,
    /// True if the policy may pick a task that yielded while another is ready.
    pub repick_after_yield: bool,
    /// True if a scheduler may hand out tasks that went into another CPU's queue.
    pub stealing: bool,
    /// True if a preempted task runs next on the same CPU. So it is on riscv64, where the trap that
    /// preempted it has saved the CPU. Not on [`Line::AxTask06`].
    pub preempted_stay: bool,
    /// Returns the delays, at least 1, of an interrupt of another CPU
    /// ([`interrupt`](super::interrupt)). The argument is the number of interrupts that were asked
    /// for before. With no delay it is lost, with two it comes twice.
    pub interrupts: fn(u64) -> [Option<u64>; 2],
    /// Returns the time of a wake between the choice of a queue and the look at the task's state.
    /// The argument is the number of wakes before. The time is long if a host takes the CPU away in
    /// between.
    pub wake_delays: fn(u64) -> u64,
    /// Returns the time between the put and the pick of a yield or a preemption. `axtask` takes the
    /// queue's lock for each of the two, so another CPU may put a task in between. The argument is the
    /// number of yields and preemptions before, those of idle included.
    pub pick_delays: fn(u64) -> u64,
    /// The longest time that a CPU may idle while any queue has a ready task that may run on it, in time units. `None`
    /// means no bound.
    pub max_idle_beside: Option<u64>,
    /// The bound on waiting that the policy promises.
    pub max_wait: MaxWait,
    /// The number of times in a row that `gc` may be picked while another task is ready.
    pub max_gc_streak: u64,
    /// The time at which a run counts as stuck. `None` means eight times the time of all programs one after another.
    pub time_limit: Option<u64>,
    /// The number of last events that are kept for the trace; with 0 they are not counted.
    pub trace_events: usize,
    /// True if tasks that all wait for each other for ever are no fault. The queue at which the
    /// first of them waits is then [opened](Op::Open).
    pub breaks_deadlocks: bool,
    /// The number of first switches and wakes that are kept for the [`Log`](super::Log), at 16
    /// bytes each. With 0 they are not counted.
    pub log_records: usize,
    /// True to check waits, double picks and `gc`, which looks at all ready tasks at each pick and
    /// tick. Without these checks a run is a simulation. In any case a pick must return a task that
    /// was put here once.
    pub is_checked: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            line: Line::default(),
            cpus: 1,
            preempt: true,
            tick_period: 10,
            call_cost: 1,
            switch_cost: 2,
            gc_look_cost: 0,
            pick_cost_by_load: Vec::new(),
            on_time: |_| {},
            on_call: |_| {},
            wake_resched: false,
            repick_after_yield: false,
            stealing: false,
            preempted_stay: false,
            interrupts: |_| [Some(1), None],
            wake_delays: |_| 0,
            pick_delays: |_| 0,
            max_idle_beside: None,
            max_wait: MaxWait::default(),
            max_gc_streak: 16,
            time_limit: None,
            trace_events: 50,
            breaks_deadlocks: false,
            log_records: 0,
            is_checked: true,
        }
    }
}

impl Config {
    /// Returns the default machine with `cpus` CPUs.
    pub fn with_cpus(cpus: usize) -> Self {
        Self {
            cpus,
            ..Self::default()
        }
    }

    pub(super) fn is_06(&self) -> bool {
        self.line == Line::AxTask06
    }

    /// Returns the additional time of a pick with `left` tasks left.
    pub(super) fn pick_cost(&self, left: usize) -> u64 {
        let by_load = &self.pick_cost_by_load;
        let load = (left + 1).ilog2() as usize;
        by_load.get(load).or(by_load.last()).copied().unwrap_or(0)
    }

    pub(super) fn time_limit_for(&self, main: &Program) -> u64 {
        // The factor is eight, though the programs never all run one after another. `gc` and the
        // helpers add switches of their own. And a policy with a small share for some of its tasks
        // is still a correct one.
        self.time_limit
            .unwrap_or_else(|| 8 * (main.serial_time(self) + 10 * self.tick_period))
    }
}
