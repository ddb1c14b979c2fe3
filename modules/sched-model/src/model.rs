//! A host model of unmodified `axtask` and `ax-task` that drives any [`BaseScheduler`].
//!
//! Schedulers are hard to test in place: on hardware an order of events happens once and never
//! again. Here one thread simulates the run queues, ticks, wake-ups, exits and migrations of
//! `axtask` 0.3.0-preview.3, or of `ax-task` 0.6.11, under a virtual clock. So a run is a pure function of its [`Config`]
//! and [`Program`]s. The scheduler under test sees the same calls, in the same order and under the
//! same conditions as in ArceOS.
//!
//! # The simulated events, and the calls that `axtask` makes for them
//!
//! 1. **Boot.** CPU 0 wraps `idle`, `main`, `gc` in this order, then makes its scheduler and adds
//!    `gc`. `main` is current without ever being picked, so its first yield may be taken for a wake.
//!    Every further CPU wraps `idle` and `gc`
//!    and starts in `idle`.
//! 2. **Spawn**: wrap, choose a queue, `add_task`.
//! 3. **Yield**: `put_prev_task(current, false)`, `pick_next_task`. The queue is locked for each of
//!    the two, with interrupts off. Other CPUs may put tasks into it in between
//!    ([`Config::pick_delays`]).
//! 4. **Preemption**: a tick that returned true leaves a request. It is granted when preemption is
//!    next enabled, with `put_prev_task(current, true)`, `pick_next_task` as in rule 3. Without
//!    [`Config::preempt`] the request has no effect.
//! 5. **Block**: the future is polled. Then there is a window in which ticks and other CPUs may
//!    act. Only then the task parks: `pick_next_task` alone. If the wake came inside that window
//!    the task *yields* instead.
//! 6. **Wake**: a queue is chosen, by the mask that the task has then. If the task is blocked it
//!    becomes ready. It is enqueued with `put_prev_task(task, resched)` once its last CPU has
//!    switched away from it. Until then the waker spins with interrupts off. Between the choice and
//!    the look at the state, time may pass ([`Config::wake_delays`]). Another wake may have come
//!    first, and the task may have changed its mask and blocked again. A wake of a task that is not
//!    blocked calls no scheduler. `axtask` passes `false` for `resched`; see
//!    [`Config::wake_resched`].
//! 7. **Exit**: the joiner is woken, the task goes on its CPU's list of exited tasks, `gc` is
//!    woken, `pick_next_task`.
//! 8. **gc** releases the exited tasks that have no other owner. While one is left it yields and
//!    tries again, else it blocks.
//! 9. **Migration**: a task changes its mask, and may lose the CPU before it does anything about
//!    that. Then it turns ready but is not put anywhere. A helper becomes current without having
//!    been added or picked. It puts the task on the target queue (`put_prev_task(task, false)`) and
//!    exits. The helper can be preempted like any task.
//! 10. **Tick**: expired sleepers of this CPU's timer wheel are woken, then `task_tick(current)`,
//!     but never for `idle`.
//! 11. **Idle** runs when a pick returns `None`, is never put, and picks again after each
//!     interrupt. A task that another CPU made ready therefore waits for the tick, unless an
//!     interrupt comes (rule 14).
//! 12. **Queue choice**: one counter for the whole machine, taken modulo the number of CPUs until
//!     it hits one that the task's mask allows. With one CPU there is no choice.
//! 13. **A stale timer** survives when its task was woken otherwise and moved to another CPU. It
//!     then wakes the task spuriously, wherever it blocks.
//! 14. **Interrupts between CPUs**, of which `axtask` has none: a scheduler may ask for one
//!     ([`interrupt`]). It arrives some time later, or never, or twice ([`Config::interrupts`]).
//!     Its handler does what a tick does (rule 10), except that no time has passed. Expired
//!     sleepers are woken, then `task_tick(current)`, but never for `idle`, which picks again.
//!
//! # The line of 2026
//!
//! [`Config::line`] selects `ax-task` 0.6.11, in which these rules differ:
//!
//! - **Preemption** (4): a [`Forced`](What::Forced) one puts the task with
//!   `put_prev_task(current, false)`, as a yield does. It is granted before the request of a tick.
//! - **Block** (5): there is no window. The task looks and parks with interrupts off.
//! - **Wake** (6): the waker prefers its own CPU, and then the CPU of the queue that the task went
//!   into last. If the mask allows neither, rule 12 holds. The waker does not spin. If the task's
//!   last CPU has not switched away from it yet, that CPU puts it when it has. A CPU that puts it
//!   into its own queue then forces the task that it has switched to.
//! - **Requests of wakes** (6): a timer asks for preemption of the task that it interrupts, if the
//!   woken one goes into that CPU's queue. So does [`Op::Notify`] with `resched`, which yields on
//!   the older line.
//! - **gc** (8) never spins. It looks at the exited tasks when one is added, and 10 ticks after its
//!   last look.
//! - **Migration** (9): a task whose mask no longer allows its CPU migrates when it yields or is
//!   preempted. It then goes into no queue of that CPU.
//! - **Timers** (10, 13) are exact: the deadline has an interrupt of its own, without a call of
//!   `task_tick`. None is stale.
//! - **Queue choice** (12): a spawned task goes into the queue of its spawner.
//!
//! Futures, which have the window of rule 5 on that line, too, are not modelled there. Its kicks of
//! other CPUs (`ax-task/ipi`) are not, either: the kit's interrupts are those of rule 14.
//!
//! # The end
//!
//! When `main` ends, ArceOS switches the machine off. Here the other tasks may finish first,
//! because a test is about what happens to them.
//!
//! # Checks
//!
//! Every [`Violation`] names a task, what was expected and what was found. The [`Failure`] around
//! it adds the time and the last events. The checks run at every step, not only at the end.
//!
//! # Example
//!
//! ```
//! # use std::{collections::VecDeque, ops::Deref, sync::Arc};
//! # use sched_core::BaseScheduler;
//! # use sched_model::model::ModelTask;
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
//! use sched_model::model::{Config, Op, Program, run};
//!
//! let child = Program::new("child", [Op::Run(5), Op::Yield, Op::Run(5)]);
//! let main = Program::new("main", [Op::Spawn(child), Op::Join(0)]);
//! let report = run(&Config::default(), &main, |_cpu| Fifo::default(), Task).unwrap();
//! assert_eq!(report.task("child").unwrap().yields, 1);
//! ```

mod erased;
mod log;
mod machine;
mod program;
mod report;
mod trace;
mod violation;

use std::{ops::Deref, sync::Arc};

pub use log::{Left, Log, LogRecord, Logged};
pub use program::{Config, CpuMask, Label, Line, MaxWait, ModelTask, Op, Program, TaskId};
pub use report::{Report, TaskReport};
pub use trace::{Event, State, Trace, What};
pub use violation::{Failure, Violation};

use erased::{Handle, Scheduler, Tasks, Typed, Wrapped};
use machine::Machine;
use sched_core::BaseScheduler;

/// A scheduler whose tasks wrap [`ModelTask`]s, which the model can run. Every such scheduler implements it.
pub trait ModelScheduler: BaseScheduler<SchedItem = Arc<Self::Task>> {
    /// The policy's task.
    type Task: Deref<Target = ModelTask>;
}

impl<S, W> ModelScheduler for S
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    type Task = W;
}

/// Runs `main`, and all that it spawns, to the end.
///
/// `make` builds the scheduler of a CPU. `wrap` is the policy's `Task::new`. All tasks are gone
/// when this returns `Ok`, and so are the schedulers.
///
/// # Errors
///
/// The first [`Violation`] found.
///
/// # Panics
///
/// If the scheduler does.
pub fn run<S: ModelScheduler>(
    config: &Config,
    main: &Program,
    mut make: impl FnMut(usize) -> S,
    mut wrap: impl FnMut(ModelTask) -> S::Task,
) -> Result<Report, Box<Failure>> {
    let tasks = Tasks::new();
    let mut make = |cpu| -> Box<dyn Scheduler<'_> + '_> {
        let (scheduler, tasks) = (make(cpu), &tasks);
        Box::new(Typed { scheduler, tasks })
    };
    run_erased(config, main, &mut make, &mut |task| tasks.add(wrap(task)))
}

fn run_erased<'a>(
    config: &'a Config,
    main: &Program,
    make: &mut dyn FnMut(usize) -> Box<dyn Scheduler<'a> + 'a>,
    wrap: &'a mut dyn FnMut(ModelTask) -> Handle<'a>,
) -> Result<Report, Box<Failure>> {
    let expected = if !(1..=64).contains(&config.cpus) {
        Some("cpus within 1..=64")
    } else if config.tick_period == 0 {
        Some("tick_period of at least 1")
    } else if config.call_cost == 0 {
        Some("call_cost of at least 1")
    } else if config.preempted_stay && config.is_06() {
        Some("preempted_stay only on Axtask03")
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
    let ended = match machine.run_to_the_end() {
        Ok(()) => machine.close(),
        Err(violation) => Err(machine.fail(violation)),
    };
    machine::rest();
    ended
}

/// Asks for an interrupt of this CPU, in the course of a scheduler call (rule 14).
pub fn interrupt(cpu: usize) {
    machine::interrupt(cpu);
}

/// Returns true if a task of the machine that this thread runs may run on a CPU now by its affinity.
///
/// # Panics
/// If there is no such task.
pub fn may_run(task: &ModelTask, cpu: usize) -> bool {
    machine::may_run(task.id(), cpu)
}

/// Returns the acting CPU of the machine that this thread runs, and the address of its wrapped current task. A scheduler
/// call may ask `axhal` for both.
pub fn here() -> Option<(usize, *const ())> {
    machine::here()
}
