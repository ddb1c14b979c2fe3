//! The machine: CPUs, tasks and time, and the choice of the CPU that acts next.

// This file is long because it has all calls that change the machine. The files below have its parts.

mod blocking;
mod checks;
mod interrupts;
mod queues;
mod steps;

use std::{
    cell::{Cell, RefCell},
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, VecDeque},
    sync::{Arc, Weak},
};

use super::{
    Config, CpuMask, Failure, Handle, Log, ModelTask, Op, Program, Report, Scheduler, State,
    TaskId, TaskReport, Trace, Violation, Wrapped,
};
/// The waker of one `block_on`, which may outlive that `block_on` (rule 13).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Waker {
    task: TaskId,
    serial: u64,
}

/// A key in a timer wheel: deadline, then order of arrival.
///
/// `axtask` counts arrivals per wheel. So keys of two wheels can be equal, and a cancel on the
/// wrong CPU can hit another task's timer. With nanosecond deadlines that is unlikely, but with the
/// small numbers here it would be common. It does not concern a scheduler, so here the count is
/// machine-wide.
type TimerKey = (u64, u64);

/// The future that a blocked task waits for.
#[derive(Debug)]
enum Future {
    Gc {
        /// The end of its wait, on [`Line::AxTask06`](crate::model::Line).
        timer: Option<TimerKey>,
        /// True if the time of its look has passed ([`Config::gc_look_cost`]).
        looked: bool,
    },
    Sleep {
        deadline: u64,
        timer: Option<TimerKey>,
    },
    Wait {
        queue: u32,
        deadline: Option<u64>,
        listening: bool,
        timer: Option<TimerKey>,
    },
    Join(TaskId),
    /// The wait of `main` after its end.
    Never,
}

const MAIN: TaskId = TaskId::MAIN;

enum Poll {
    Ready,
    Pending,
    /// The future itself called `yield_now()`.
    Yield,
}

/// A `block_on` in progress.
struct BlockOn<'a> {
    future: Future,
    waker: Waker,
    /// True if the waker fired since the task last parked.
    woke: bool,
    /// True if the future was polled as pending; the task parks next.
    polled: bool,
    /// True if the same step begins again when it is over.
    looks_again: bool,
    /// The reference by which `block_on` keeps its task alive.
    _keeps: Handle<'a>,
}

enum Kind<'a> {
    Idle,
    Gc,
    Program(Program),
    /// Holds the task to put on another queue, until it has done so.
    Helper(Option<Handle<'a>>),
}

/// The model's state of a task.
struct Record<'a> {
    kind: Kind<'a>,
    arc: Weak<Wrapped<'a>>,
    state: State,
    mask: CpuMask,
    /// The CPU that runs it, or has not finished leaving it.
    on_cpu: Option<usize>,
    /// The queue that it went into, until it is picked. While it is set, `ready_since` and
    /// `turns_before` count.
    queued_on: Option<usize>,
    /// The CPU where it was preempted, until it is picked.
    preempted_on: Option<usize>,
    ready_since: u64,
    turns_before: u64,
    /// The CPU of the queue that it went into last.
    last_queue: usize,
    /// Where it goes once it is off its CPU (rule 6).
    stash: Option<(Handle<'a>, usize)>,
    need_resched: bool,
    force_resched: bool,
    preempt_off: u32,
    /// The next step of its program, and how much of that step is done.
    pc: usize,
    done: u64,
    /// The time of its last [`Op::Mark`].
    mark: u64,
    /// The number of repetitions so far of the current [`Op::Again`].
    again: u64,
    /// The [`Program::longest_burst`] of its program; of an empty one for gc and the helpers.
    longest_burst: u64,
    block: Option<BlockOn<'a>>,
    handles: Vec<Option<Handle<'a>>>,
    /// The number of handles of other tasks that hold this task.
    held: usize,
    /// The waker of the one task that may join it, as `AtomicWaker` has it.
    joiner: Option<Waker>,
    report: TaskReport,
}

/// A piece of a call that is done with interrupts off, whatever task runs.
enum Act<'a> {
    /// A wake, which asks for rescheduling or not.
    Wake(Waker, bool),
    /// The rest of a wake that has chosen a queue.
    Look {
        waker: Waker,
        on: usize,
        resched: bool,
    },
    Put {
        task: Handle<'a>,
        on: usize,
        resched: bool,
    },
    TaskTick,
    /// The rest of a yield or a preemption, whose put is done.
    Pick(Why),
    /// A guard is released, which grants a pending preemption. Only `ExitResched` may follow it,
    /// since other acts continue in another task's context.
    Release,
    /// The rest of an exit.
    ExitList,
    ExitResched,
}

/// The activity of a CPU up to its clock that an interrupt would cut short.
#[derive(Clone, Copy)]
enum Ahead {
    /// Nothing: interrupts are off until then.
    Nothing,
    /// It waits for an interrupt.
    Idles,
    /// Its task computes, for this many time units of a step.
    Computes(u64),
}

struct Cpu<'a> {
    scheduler: Box<dyn Scheduler<'a> + 'a>,
    /// The time at which it next acts.
    clock: u64,
    ahead: Ahead,
    next_tick: u64,
    /// The times at which interrupts of other CPUs arrive, or have arrived; ascending.
    interrupts: VecDeque<u64>,
    current: Handle<'a>,
    current_since: u64,
    /// The time since when it has idled while some ready task may run here, if that is checked.
    beside_since: Option<u64>,
    /// The result of its last pick.
    picked: Option<TaskId>,
    /// The task that is being left, while the switch lasts.
    leaving: Option<TaskId>,
    acts: VecDeque<Act<'a>>,
    idle: Handle<'a>,
    /// True if idle picks once more before it waits for interrupts.
    idle_picks: bool,
    exited: VecDeque<Handle<'a>>,
    gc: TaskId,
    gc_waker: Option<Waker>,
    gc_streak: u64,
    wheel: BTreeMap<TimerKey, Waker>,
    /// The number of tasks in the queue.
    ready: usize,
    /// The tasks in the queue in order of arrival, if waits are checked.
    queued: Vec<TaskId>,
    dispatches: u64,
    /// The number of picks that count for [`MaxWait`](crate::model::MaxWait).
    turns: u64,
}

impl Cpu<'_> {
    /// Returns the time of its next interrupt, as far as is known. Timers have one of their own if
    /// they are exact.
    fn next_interrupt(&self, exact: bool) -> u64 {
        let other = self.interrupts.front().copied();
        let timer = self.wheel.keys().next().filter(|_| exact);
        let at = [other, timer.map(|&(deadline, _)| deadline)];
        at.into_iter().flatten().fold(self.next_tick, u64::min)
    }
}

#[derive(Default)]
struct WaitQueue {
    permits: u64,
    /// The number of counts of the latch.
    counts: u64,
    /// The waiters in order of arrival, with true once notified.
    listeners: VecDeque<(Waker, bool)>,
}

std::thread_local! {
    static HERE: Cell<Option<(usize, *const ())>> = const { Cell::new(None) };
    /// The affinity of each task, by its number.
    static MASKS: RefCell<Vec<CpuMask>> = const { RefCell::new(Vec::new()) };
    /// The CPUs for which an interrupt was asked and not sent yet.
    static ASKED: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// Asks for an interrupt of this CPU, for [`interrupt`](crate::model::interrupt).
pub(super) fn interrupt(cpu: usize) {
    ASKED.with_borrow_mut(|asked| asked.push(cpu));
}

/// Returns the acting CPU and its current task, for [`here`](crate::model::here).
pub(super) fn here() -> Option<(usize, *const ())> {
    HERE.get()
}

/// Returns true if this task may run on this CPU, for [`may_run`](crate::model::may_run).
pub(super) fn may_run(task: TaskId, cpu: usize) -> bool {
    MASKS.with_borrow(|masks| masks[task.0].has(cpu))
}

/// Ends the run of this thread: no CPU acts.
pub(super) fn rest() {
    HERE.set(None);
    ASKED.take();
    MASKS.take();
}

/// The reason for which a CPU picks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    Yield,
    Other,
}

type Step<T = ()> = Result<T, Violation>;

pub(super) struct Machine<'a> {
    config: &'a Config,
    wrap: &'a mut dyn FnMut(ModelTask) -> Handle<'a>,
    now: u64,
    limit: u64,
    tasks: Vec<Record<'a>>,
    cpus: Vec<Cpu<'a>>,
    wait_queues: BTreeMap<u32, WaitQueue>,
    /// The counter of queue choices (rule 12).
    choices: usize,
    wakers: u64,
    /// The number of wakes that have chosen a queue.
    wakes: u64,
    /// The number of yields and preemptions.
    gave_up: u64,
    timers: u64,
    /// The number of programs and helpers that have not ended.
    alive: usize,
    switches: u64,
    program_switches: u64,
    wake_spins: u64,
    broken_waits: u64,
    interrupts: u64,
    steps: u64,
    makespan: u64,
    trace: Trace,
    log: Log,
}

impl<'a> Machine<'a> {
    /// Boots the machine, by rule 1.
    pub(super) fn boot(
        config: &'a Config,
        main: &Program,
        make: &mut dyn FnMut(usize) -> Box<dyn Scheduler<'a> + 'a>,
        wrap: &'a mut dyn FnMut(ModelTask) -> Handle<'a>,
    ) -> Self {
        rest(); // clears the state of a run that panicked
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
            wakes: 0,
            gave_up: 0,
            timers: 0,
            alive: 1,
            switches: 0,
            program_switches: 0,
            wake_spins: 0,
            broken_waits: 0,
            interrupts: 0,
            steps: 0,
            makespan: 0,
            trace: Trace::default(),
            log: Log::default(),
        };
        let all = CpuMask::first(config.cpus);
        for cpu in 0..config.cpus {
            let idle = m.new_task("idle", Kind::Idle, CpuMask::one(cpu));
            m.log.idle.push(idle.id());
            let current = if cpu == 0 {
                m.new_task("main", Kind::Program(main.clone()), all)
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
                ahead: Ahead::Nothing,
                interrupts: VecDeque::new(),
                next_tick: period + period * cpu as u64 / config.cpus as u64,
                current,
                current_since: 0,
                beside_since: None,
                picked: None,
                leaving: None,
                acts: VecDeque::new(),
                idle,
                idle_picks: cpu != 0,
                exited: VecDeque::new(),
                gc: gc.id(),
                gc_waker: None,
                gc_streak: 0,
                wheel: BTreeMap::new(),
                ready: 0,
                queued: Vec::new(),
                dispatches: 0,
                turns: 0,
            });
            m.acts_on(cpu);
            m.add(cpu, gc, cpu);
        }
        m
    }

    /// Simulates until every program has ended and gc has nothing left to do.
    pub(super) fn run_to_the_end(&mut self) -> Step {
        // The CPU that is furthest behind acts; among several, the first.
        let mut turns: BinaryHeap<_> = (0..self.cpus.len())
            .map(|c| Reverse((self.cpus[c].clock, c)))
            .collect();
        // The CPU that has just acted seldom rests, so no other one is looked at.
        let mut last = 0;
        loop {
            if self.rests(&self.cpus[last]) && self.cpus.iter().all(|cpu| self.rests(cpu)) {
                let gc_done = self.cpus.iter().all(|cpu| cpu.exited.is_empty());
                if self.alive == 0 && gc_done {
                    return Ok(());
                }
                // A timer of gc ends no wait of another task.
                let helps = |cpu: &Cpu<'_>, task| self.alive == 0 || task != cpu.gc;
                let is_stuck = |cpu: &Cpu<'_>| !cpu.wheel.values().any(|w| helps(cpu, w.task));
                if self.cpus.iter().all(is_stuck)
                    && !(self.config.breaks_deadlocks && self.break_deadlock())
                {
                    let blocked = self.labels(|task| {
                        task.state == State::Blocked && matches!(task.kind, Kind::Program(_))
                    });
                    return Err(Violation::Deadlock { blocked });
                }
            }
            let &Reverse((clock, c)) = turns.peek().expect("at least one CPU");
            if self.cpus[c].clock != clock {
                turns.pop(); // an interrupt has put it back since
                continue;
            }
            if clock != self.now {
                self.now = clock;
                (self.config.on_time)(clock);
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
            self.cpus[c].ahead = Ahead::Nothing;
            self.step(c)?;
            self.steps += 1;
            let sent = ASKED.take();
            for &to in &sent {
                self.send_interrupt(to);
            }
            self.check_idle()?;
            let now = self.cpus[c].clock;
            if now != clock {
                *turns.peek_mut().expect("it was there") = Reverse((now, c));
            }
            turns.extend(sent.iter().map(|&to| Reverse((self.cpus[to].clock, to))));
            last = c;
        }
    }

    /// Returns true if a CPU is idle, with nothing to do before its next tick.
    fn rests(&self, cpu: &Cpu<'_>) -> bool {
        cpu.ready == 0
            && Arc::ptr_eq(&cpu.current, &cpu.idle)
            && cpu.leaving.is_none()
            && cpu.acts.is_empty()
            && cpu.interrupts.is_empty()
            && !cpu.idle_picks
    }

    /// Lets CPU `c` do one thing. An act that cannot be interrupted comes first, then the tick,
    /// then the current task.
    fn step(&mut self, c: usize) -> Step {
        self.acts_on(c);
        if let Some(left) = self.cpus[c].leaving.take() {
            self.left(c, left);
            return Ok(());
        }
        if let Some(act) = self.cpus[c].acts.pop_front() {
            return self.act(c, act);
        }
        if self.timer_interrupt(c) || self.interrupted(c) {
            return Ok(());
        }
        let id = self.current(c);
        if self.tasks[id.0].block.is_some() {
            return self.block_step(c, id);
        }
        let task = &mut self.tasks[id.0];
        match &mut task.kind {
            Kind::Idle => self.idle_step(c),
            Kind::Gc => {
                let (timer, looked) = (None, false);
                self.block_on(c, Future::Gc { timer, looked });
                Ok(())
            }
            Kind::Helper(migrated) => {
                let migrated = migrated.take();
                self.helper_step(c, migrated);
                Ok(())
            }
            Kind::Program(program) => {
                let op = program.ops.get(task.pc).cloned().unwrap_or(Op::Exit);
                self.program_step(c, id, op)
            }
        }
    }

    /// Makes this CPU the acting one.
    fn acts_on(&self, c: usize) {
        HERE.set(Some((c, Arc::as_ptr(&self.cpus[c].current).cast())));
    }

    fn act(&mut self, c: usize, act: Act<'a>) -> Step {
        match act {
            Act::Wake(waker, resched) => self.wake(c, waker, resched),
            Act::Look { waker, on, resched } => self.look(c, waker, on, resched),
            Act::Put { task, on, resched } => self.unblock(c, task, on, resched),
            Act::TaskTick => self.task_tick(c)?,
            Act::Pick(why) => self.resched(c, why)?,
            Act::Release => self.release(c)?,
            Act::ExitList => {
                let cpu = &mut self.cpus[c];
                cpu.exited.push_back(cpu.current.clone());
                if let Some(waker) = cpu.gc_waker.take() {
                    cpu.acts.push_front(Act::Wake(waker, false));
                }
            }
            Act::ExitResched => self.resched(c, Why::Other)?,
        }
        Ok(())
    }

    pub(super) fn fail(&mut self, violation: Violation) -> Box<Failure> {
        Box::new(Failure {
            violation,
            time: self.now,
            trace: std::mem::take(&mut self.trace),
        })
    }

    /// Drains the queues, drops the schedulers, and checks the number of owners of each task.
    pub(super) fn close(mut self) -> Result<Report, Box<Failure>> {
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
            // Idle is current at the end, so `Cpu` has two handles of it. One must be left.
            drop(cpu.current);
            alive.push(cpu.idle);
        }
        for record in &mut self.tasks {
            // The owners that `block_on` keeps, of gc and main.
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
            program_switches: self.program_switches,
            dispatches,
            steps: self.steps,
            makespan: self.makespan,
            wake_spins: self.wake_spins,
            broken_waits: self.broken_waits,
            interrupts: self.interrupts,
            trace: self.trace,
            log: self.log,
        })
    }
}
