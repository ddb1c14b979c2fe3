//! One CPU for tests: a scheduler, the task that has the CPU, and a clock moved by hand. The tests
//! of the policies use it.

mod trace;

use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use std::vec::Vec;

use proptest::prelude::*;

use sched_core::BaseScheduler;
use sched_core::clock::VirtualClock;
use sched_core::event::{Adapter, EnqueueReason, Policy};
use sched_core::steps;
use sched_core::task::{InitialState, Task};

/// A scheduler that a bench can be built on. Its tasks are names.
pub trait Scheduler:
    BaseScheduler<SchedItem = Arc<Task<&'static str, <Self as Scheduler>::State>>> + Default
{
    /// The state that it keeps for a task.
    type State: InitialState;
}

/// A scheduler whose policy gives tasks to other CPUs.
pub trait MigratingScheduler: Scheduler {
    /// Calls [`migrate_out`](Policy::migrate_out) of its policy.
    fn migrate_out(&mut self, may: &dyn Fn(&&'static str) -> bool) -> Option<Handle<Self>>;

    /// Calls [`enqueue`](Policy::enqueue) of its policy, for a task that another has given.
    fn hand_over(&mut self, given: Handle<Self>);

    /// Calls [`dispatch`](Policy::dispatch) of its policy.
    fn dispatch(&mut self) -> Option<Handle<Self>>;
}

impl<P: Policy<Inner = &'static str, State: InitialState>> Scheduler for Adapter<P> {
    type State = P::State;
}

impl<P: Policy<Inner = &'static str, State: InitialState>> MigratingScheduler for Adapter<P> {
    fn migrate_out(&mut self, may: &dyn Fn(&&'static str) -> bool) -> Option<Handle<Self>> {
        self.policy_mut()
            .migrate_out(&|task| may(task.inner()), &|| true)
    }

    fn hand_over(&mut self, given: Handle<Self>) {
        self.policy_mut().enqueue(given, EnqueueReason::HandedOver);
    }

    fn dispatch(&mut self) -> Option<Handle<Self>> {
        self.policy_mut().dispatch()
    }
}

/// The length of a tick of the bench, in counts.
pub const TICK: u64 = 1000;

/// A delay between two things that happen because of a tick, in counts.
pub const LATE: u64 = 5;

/// A task of a bench.
pub type Handle<S> = Arc<Task<&'static str, <S as Scheduler>::State>>;

/// One CPU: a scheduler and the task that runs. Time is the thread's [`VirtualClock`].
pub struct Bench<S: Scheduler> {
    /// The scheduler under test, which a test may call itself.
    pub scheduler: S,
    /// The running task; none on an idle CPU.
    pub current: Option<Handle<S>>,
    /// The tasks that a [trace](Self::trace) has blocked, and may wake by name.
    asleep: Vec<Handle<S>>,
}

impl<S: Scheduler> Default for Bench<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Scheduler> Bench<S> {
    /// Creates a queue as `axtask` sets it up, except that `gc` has blocked already: `main` runs,
    /// and was never picked.
    pub fn new() -> Self {
        Self::with(S::default())
    }

    /// Creates a queue with a scheduler that has been set up by hand.
    pub fn with(scheduler: S) -> Self {
        Self {
            scheduler,
            current: Some(task::<S>("main")),
            asleep: Vec::new(),
        }
    }

    /// Creates a queue whose main has spawned these tasks and blocked; the first one runs.
    pub fn running(names: &[&'static str]) -> Self {
        let mut bench = Self::new();
        names.iter().for_each(|name| drop(bench.spawn(name)));
        bench.block();
        bench
    }

    /// Returns the name of the running task, or `idle`.
    pub fn name(&self) -> &'static str {
        self.current.as_ref().map_or("idle", |task| task.inner())
    }

    /// Makes a task and puts it into the queue.
    pub fn spawn(&mut self, name: &'static str) -> Handle<S> {
        let new = task::<S>(name);
        self.scheduler.add_task(new.clone());
        new
    }

    /// Lets `counts` pass on the clock. No tick comes.
    pub fn run(&self, counts: u64) {
        VirtualClock::advance(counts);
    }

    /// Runs the task that the scheduler picks, and returns its name or `idle`.
    pub fn pick(&mut self) -> &'static str {
        self.current = self.scheduler.pick_next_task();
        self.name()
    }

    /// Puts the running task back as a yield does, and picks.
    ///
    /// # Panics
    /// If the CPU is idle.
    pub fn yield_now(&mut self) -> &'static str {
        let current = self.current.take().expect("idle does not yield");
        self.scheduler.put_prev_task(current, false);
        self.pick()
    }

    /// Puts the running task back as a preemption does, and picks.
    ///
    /// # Panics
    /// If the CPU is idle.
    pub fn preempt(&mut self) -> &'static str {
        let current = self.current.take().expect("idle is not preempted");
        self.scheduler.put_prev_task(current, true);
        self.pick()
    }

    /// Blocks the running task, or ends it, and picks. Its handle can wake it.
    ///
    /// # Panics
    /// If the CPU is idle.
    pub fn block(&mut self) -> Handle<S> {
        let current = self.current.take().expect("idle does not block");
        self.pick();
        current
    }

    /// Puts a blocked task into the queue.
    pub fn wake(&mut self, task: &Handle<S>) {
        self.scheduler.put_prev_task(task.clone(), false);
    }

    /// Sets the running task's priority, and returns true if the scheduler accepts it.
    ///
    /// # Panics
    /// If the CPU is idle.
    pub fn set_priority(&mut self, priority: isize) -> bool {
        let current = self.current.clone().expect("idle has no priority");
        self.scheduler.set_priority(&current, priority)
    }

    /// Lets a tick's time pass and takes the tick, with the preemption that it causes.
    pub fn tick(&mut self) -> &'static str {
        self.run(TICK);
        self.interrupt()
    }

    /// Ticks until `name` runs, if it does not.
    pub fn tick_until(&mut self, name: &str) {
        self.tick_as_long_as(|running| running != name);
    }

    /// Ticks until `name` does not run any more, if it does.
    pub fn tick_while(&mut self, name: &str) {
        self.tick_as_long_as(|running| running == name);
    }

    fn tick_as_long_as(&mut self, goes_on: impl Fn(&str) -> bool) {
        let mut ticks = 0;
        while goes_on(self.name()) {
            assert!(ticks < 10_000, "{} still runs", self.name());
            self.tick();
            ticks += 1;
        }
    }

    /// Takes a [`tick`](Self::tick) as on a machine, where a scheduler call comes a while after its
    /// cause. [`LATE`] passes from the tick to the put, and again from the put to the pick.
    pub fn late_tick(&mut self) -> &'static str {
        self.run(TICK - 2 * LATE);
        let current = self.current.clone();
        if !current.is_some_and(|current| self.scheduler.task_tick(&current)) {
            self.run(2 * LATE);
            return self.name();
        }
        self.run(LATE);
        let current = self.current.take().expect("it was there a moment ago");
        self.scheduler.put_prev_task(current, true);
        self.run(LATE);
        self.pick()
    }

    /// Returns the lengths of the run intervals that end within the next 1000 ticks, in ticks.
    pub fn turns(&mut self, tick: impl Fn(&mut Self) -> &'static str) -> Vec<u64> {
        let mut turns = Vec::new();
        let (mut last, mut turn) = (self.name(), 0);
        for _ in 0..1000 {
            turn += 1;
            let now = tick(self);
            if now != last {
                turns.push(turn);
                (last, turn) = (now, 0);
            }
        }
        turns
    }

    /// Returns the longest time for which one of `tasks` did not run in the next `ticks` late
    /// ticks, in ticks.
    pub fn longest_wait(&mut self, tasks: &[Handle<S>], ticks: u64) -> u64 {
        let mut last = std::vec![0; tasks.len()];
        let mut longest = 0;
        for now in 0..ticks {
            let current = self.current.as_ref().expect("a task is always ready");
            let place = tasks.iter().position(|task| Arc::ptr_eq(task, current));
            let last = &mut last[place.expect("one of the tasks")];
            longest = longest.max(now - *last);
            *last = now;
            self.late_tick();
        }
        last.iter()
            .fold(longest, |longest, &last| longest.max(ticks - last))
    }

    /// Takes a tick. A scheduler is not told of a tick of an idle CPU, so that is an error here. A
    /// test that waits for a lost task would otherwise wait for ever.
    pub fn interrupt(&mut self) -> &'static str {
        let current = self.current.clone().expect("a task runs");
        if self.scheduler.task_tick(&current) {
            self.preempt()
        } else {
            self.name()
        }
    }

    /// Returns how many of the next `ticks` ticks each task had.
    pub fn shares(&mut self, ticks: usize) -> BTreeMap<&'static str, usize> {
        let mut had = BTreeMap::new();
        for _ in 0..ticks {
            *had.entry(self.name()).or_default() += 1;
            self.tick();
        }
        had
    }
}

/// Lets a tick's time pass on several CPUs, and takes the tick on each.
pub fn all_tick<S: Scheduler>(benches: &mut [Bench<S>]) {
    VirtualClock::advance(TICK);
    for bench in benches {
        bench.interrupt();
    }
}

/// Makes a task that is in no queue.
pub fn task<S: Scheduler>(name: &'static str) -> Handle<S> {
    Arc::new(Task::new(name))
}

/// Asserts that a tick that hits `main` lets a ready task run first. `main` is not picked before it blocks or yields for
/// the first time, so no queue has an account of it.
pub fn assert_tick_preempts_main<S: Scheduler>() {
    let mut bench = Bench::<S>::new();
    let main = bench.current.clone().unwrap();
    assert!(!bench.scheduler.task_tick(&main), "alone");
    bench.spawn("ready");
    assert_eq!(bench.tick(), "ready");
}

/// Asserts that all nice values are accepted, and no others.
pub fn assert_nice_range<S: Scheduler>() {
    let mut bench = Bench::<S>::running(&["a"]);
    for nice in -20..=19 {
        assert!(bench.set_priority(nice));
    }
    for nice in [-21, 20, isize::MIN, isize::MAX] {
        assert!(!bench.set_priority(nice));
    }
}

/// Returns the most steps of a call, over all kinds of calls and `ticks` ticks. The caller has
/// arranged the tasks, one of which runs.
pub fn most_steps<S: Scheduler>(bench: &mut Bench<S>, ticks: usize) -> usize {
    let mut most = 0;
    let mut count = |call: &mut dyn FnMut()| most = most.max(steps::of(call));
    for round in 0..ticks {
        bench.run(TICK);
        let running = bench.current.clone().expect("a task runs");
        let mut preempt = false;
        count(&mut || preempt = bench.scheduler.task_tick(&running));
        count(&mut || _ = bench.scheduler.set_priority(&running, round as isize % 20));
        let new = task::<S>("new");
        count(&mut || bench.scheduler.add_task(new.clone()));
        // The running task yields or is preempted, or it blocks and wakes.
        let is_put_back = round % 3 != 0;
        for wakes in [false, true] {
            if is_put_back != wakes {
                let put = preempt || round % 3 == 1;
                count(&mut || bench.scheduler.put_prev_task(running.clone(), put));
            }
            if !wakes {
                count(&mut || bench.current = bench.scheduler.pick_next_task());
            }
        }
    }
    most
}

/// A step: its kind, its queue, and a number that decides the rest.
pub type Step = (u8, usize, usize);

/// Draws steps for [`whatever_happens`].
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    prop::collection::vec((0..8u8, 0..3usize, 0..40usize), 0..300)
}

/// Simulates steps on three queues. Tasks yield, are preempted, sleep, change priority, migrate,
/// come, are removed and are given away. After each step `assert_valid` looks at all queues.
pub fn whatever_happens<S: MigratingScheduler>(
    steps: Vec<Step>,
    assert_valid: impl Fn(&mut Bench<S>),
) -> Vec<Bench<S>> {
    VirtualClock::set(0);
    let mut queues: Vec<_> = (0..3).map(|_| Bench::running(&["a", "b", "c"])).collect();
    let mut asleep = Vec::new();
    for (what, at, which) in steps {
        VirtualClock::advance(which as u64 * 100);
        let queue = &mut queues[at];
        match what {
            _ if queue.current.is_none() => _ = queue.pick(),
            0 => _ = queue.yield_now(),
            1 => _ = queue.interrupt(),
            2 => asleep.push(queue.block()),
            3 => _ = queue.set_priority(which as isize - 20),
            4 => {
                let migrates = queue.current.take().unwrap();
                queues[which % 3].wake(&migrates);
                assert_valid(&mut queues[at]);
                queues[at].pick();
            }
            5 => {
                let task = queue.spawn("new");
                if which % 2 == 0 {
                    queue.scheduler.remove_task(&task);
                }
            }
            7 => {
                let may = |name: &&str| which % 4 != 0 || *name != "a";
                if let Some(given) = queue.scheduler.migrate_out(&may) {
                    assert!(may(given.inner()));
                    assert_valid(queue);
                    queues[which % 3].scheduler.hand_over(given);
                }
            }
            _ => {}
        }
        if what == 6 && !asleep.is_empty() {
            let task = asleep.swap_remove(which % asleep.len());
            queues[at].wake(&task);
        }
        queues.iter_mut().for_each(&assert_valid);
    }
    queues
}

/// Asserts that after any steps the first task given away is the one that would run next, and that
/// each task is given once.
pub fn assert_migrates_next_task<S: MigratingScheduler>(steps: &[Step]) {
    let played = || {
        let mut queues = whatever_happens::<S>(steps.to_vec(), |_| {});
        let mut bench = queues.swap_remove(0);
        let current = bench.current.take();
        if let Some(current) = current {
            bench.scheduler.put_prev_task(current, true);
        }
        bench.scheduler
    };
    let mut scheduler = played();
    let would_run = scheduler.dispatch().map(|task| *task.inner());
    let mut others = Vec::new();
    let mut scheduler = played();
    let given = scheduler
        .migrate_out(&|_| true)
        .inspect(|task| others.push(task.clone()));
    assert_eq!(given.map(|task| *task.inner()), would_run);
    while let Some(given) = scheduler.migrate_out(&|_| true) {
        assert!(others.iter().all(|other| !Arc::ptr_eq(other, &given)));
        others.push(given);
    }
    assert!(scheduler.pick_next_task().is_none(), "all are given");
}
