//! What every [`BaseScheduler`] must do, as a suite to run against any of them.
//!
//! The first rules call a scheduler by hand, the way `axtask` would; the others
//! run programs on the [`model`] of `axtask`, where all its checks
//! apply: nothing lost, nothing duplicated, nothing picked that is not ready,
//! every program ends, every dead task is let go, nobody waits longer than the
//! policy [promises](Promises).
//!
//! 1. `empty_pick_is_none`: an empty scheduler picks nothing, however often it
//!    is asked.
//! 2. `every_add_is_picked_once`: what went in comes out, once.
//! 3. `put_and_pick_conserve`: through yields, preemptions, blocks, wakes, ticks,
//!    removals and changes of priority in any order, a pick returns one of the
//!    ready tasks, and `None` only if there is none.
//! 4. `remove_of_absent_is_none`: removing a task that was never added, was
//!    picked, or was removed returns `None` and changes nothing.
//! 5. `remove_of_present_returns_it`: and no pick returns it afterwards.
//! 6. `add_after_remove_works`: a removed task can be added, and removed, again.
//! 7. `drop_releases_the_queued`: dropping a scheduler drops its tasks.
//! 8. `the_dead_are_let_go`: once another task was picked, or none, the
//!    scheduler holds nothing of the one that left.
//! 9. `a_lone_task_may_be_ticked_for_ever`: it remains pickable.
//! 10. `queues_are_independent`: a task comes out of the scheduler it went into.
//! 11. `a_put_needs_no_pick_before`: `main` and migration helpers are put
//!     without having been picked, and helpers without having been added.
//! 12. `init_is_harmless`: every other rule goes without it; with it nothing
//!     changes.
//! 13. `any_priority_is_answered`: with true or false, but the task stays.
//! 14. `yielders_take_turns`: a task that yields is not picked again while
//!     another is ready, but for [`Promises::repick_after_yield`].
//! 15. `gc_stops_nobody`: it busy-yields while a dead task's handle is held, and
//!     the others go on.
//! 16. `sleepers_wake`: also when all sleep, and when one never does.
//! 17. `the_notified_wake`: a chain of notifications is passed on, both with and
//!     without a yield of the notifier.
//! 18. `late_tasks_get_their_turn`: after others have run for long.
//! 19. `families_end`: a deep and a broad tree of spawns and joins.
//! 20. `a_block_may_turn_into_a_yield`: if the wake comes before the parking.
//! 21. `preemption_respects_the_guard`: and is made up for afterwards.
//! 22. `the_preempted_stay_ready`: long runs side by side, with and without
//!     preemption.
//! 23. `migrants_arrive`: also when their helper is preempted.
//! 24. `a_wake_may_ask_for_rescheduling`: see [`Config::wake_resched`].
//! 25. `a_job_gets_done_beside_yielders`: 1, 2, 3, 10 and 100 tasks that do nothing but
//!     yield, and a `gc` that spins over a held handle, delay it by no more than the
//!     policy [promises](Promises::done_beside).
//! 26. `nobody_waits_for_longer_than_promised`: hogs, workers, yielders, sleepers and
//!     late tasks beside each other for hundreds of ticks.
//! 27. `random_programs`: all of it mixed, on machines of all kinds.
//!
//! A scheduler that follows another crate's copy of the trait needs a newtype
//! that forwards the seven calls.
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
//! #     fn remove_task(&mut self, task: &Arc<Task>) -> Option<Arc<Task>> {
//! #         let place = self.0.iter().position(|t| Arc::ptr_eq(t, task))?;
//! #         self.0.remove(place)
//! #     }
//! #     fn pick_next_task(&mut self) -> Option<Arc<Task>> { self.0.pop_front() }
//! #     fn put_prev_task(&mut self, task: Arc<Task>, _: bool) { self.0.push_back(task) }
//! #     fn task_tick(&mut self, _: &Arc<Task>) -> bool { false }
//! #     fn set_priority(&mut self, _: &Arc<Task>, _: isize) -> bool { false }
//! # }
//! use axsched_ext::conformance::{Promises, check};
//!
//! let promises = Promises {
//!     random_programs: 20,
//!     ..Promises::default()
//! };
//! check(&promises, |_cpu| Fifo::default(), Task).unwrap();
//! ```

use std::{
    fmt,
    ops::Deref,
    sync::{Arc, Weak},
};

use crate::{
    BaseScheduler,
    model::{self, Config, CpuMask, Failure, MaxWait, ModelTask, Op, Program, Report},
};

// ---------------------------------------------------------------------------
// What a caller states and gets
// ---------------------------------------------------------------------------

/// What a bound on waiting may depend on.
#[derive(Debug, Clone, Copy)]
pub struct Load<'a> {
    /// All tasks of the run: programs, `main`, one `gc` per CPU, one helper per
    /// migration.
    pub tasks: u64,
    /// The longest time that a task computes while it forbids preemption.
    pub longest_guarded: u64,
    /// [`Program::serial_time`] of it all.
    pub serial_time: u64,
    /// Whether a task [sets a priority](Program::sets_priorities).
    pub sets_priorities: bool,
    /// The machine.
    pub config: &'a Config,
}

impl<'a> Load<'a> {
    /// What `main`, and all it spawns, puts on the machine.
    pub fn of(main: &Program, config: &'a Config) -> Self {
        Self {
            tasks: (main.tasks() + config.cpus) as u64,
            longest_guarded: main.longest_guarded(),
            serial_time: main.serial_time(config),
            sets_priorities: main.sets_priorities(),
            config,
        }
    }
}

/// A job beside tasks that do nothing but yield, on one CPU; all are ready when it
/// begins. What a bound on its end may depend on.
#[derive(Debug, Clone, Copy)]
pub struct Beside {
    /// The CPU time of the job, in ticks, rounded up.
    pub job_ticks: u64,
    /// The yielders, `gc` included.
    pub yielders: u64,
    /// How many of them a tick has room for.
    pub yields_per_tick: u64,
}

impl Beside {
    /// The time in which each of the yielders runs once, in ticks, rounded up.
    pub fn round_ticks(&self) -> u64 {
        self.yielders.div_ceil(self.yields_per_tick)
    }
}

/// What the policy under test promises beyond the rules, and how hard to try it.
#[derive(Debug, Clone)]
pub struct Promises {
    /// The longest wait of a ready task; no bound by default, and none is
    /// applied in rule 24, where a waker can take the CPU as often as it likes.
    pub max_wait: fn(&Load<'_>) -> MaxWait,
    /// After how many ticks a job is done beside yielders; `None`, the default, is no
    /// bound, and rule 25 is not tried.
    pub done_beside: fn(&Beside) -> Option<u64>,
    /// The policy picks a task again that yielded, although others are ready.
    /// Only for a plan that says so.
    pub repick_after_yield: bool,
    /// How often in a row `gc` may be picked while another task is ready.
    pub max_gc_streak: u64,
    /// Machines have up to so many CPUs, 1 to 64.
    pub max_cpus: usize,
    /// See [`Config::on_time`].
    pub on_time: fn(u64),
    /// How many programs rules 3, 26 and 27 make up.
    pub random_programs: u32,
    /// Where they start from. Same seed, same programs.
    pub seed: u64,
}

impl Default for Promises {
    fn default() -> Self {
        Self {
            max_wait: |_| MaxWait::default(),
            done_beside: |_| None,
            repick_after_yield: false,
            max_gc_streak: 4,
            max_cpus: 4,
            on_time: |_| {},
            random_programs: 200,
            seed: 0,
        }
    }
}

/// What a passed [`check`] has gone through, so that a test can tell that it
/// was not for nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Rules that hold.
    pub rules: usize,
    /// Runs of the model.
    pub runs: u64,
    /// Tasks in them.
    pub tasks: u64,
    /// Picks that returned a task.
    pub dispatches: u64,
    /// Yields.
    pub yields: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// Wakes that had to wait for a CPU to finish switching away.
    pub wake_spins: u64,
}

/// Why a rule does not hold.
#[derive(Debug, Clone)]
pub enum Broken {
    /// The scheduler, called by hand, answered wrongly.
    ByHand {
        /// What was called.
        call: String,
        /// What it should have answered.
        expected: String,
        /// What it answered.
        found: String,
    },
    /// A run of the model failed.
    InModel {
        /// The machine.
        config: Box<Config>,
        /// The program that failed.
        program: Program,
        /// How.
        failure: Box<Failure>,
    },
}

/// The first rule that does not hold.
#[derive(Clone)]
pub struct NotConformant {
    /// The rule's number in the [module docs](self).
    pub rule: usize,
    /// The rule's name there.
    pub name: &'static str,
    /// Why it does not hold.
    pub broken: Broken,
}

impl fmt::Display for NotConformant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "rule {}, {}, is broken", self.rule, self.name)?;
        match &self.broken {
            Broken::ByHand {
                call,
                expected,
                found,
            } => writeln!(f, "{call}: expected {expected}, found {found}"),
            Broken::InModel {
                config,
                program,
                failure,
            } => writeln!(f, "{failure}by {program:?}\non {config:?}"),
        }
    }
}

/// As [`Display`](fmt::Display), so that a failed `unwrap()` can be read.
impl fmt::Debug for NotConformant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for NotConformant {}

/// Holds a scheduler against every rule, in order.
///
/// `make` builds the scheduler of a CPU and `wrap` is the policy's `Task::new`,
/// both as for [`model::run`]. Each run starts with the call of `wrap` for the
/// idle task of CPU 0, so state that is shared between schedulers is best reset
/// in `make(0)`.
///
/// # Errors
///
/// The first rule that does not hold, and why.
pub fn check<S, W>(
    promises: &Promises,
    mut make: impl FnMut(usize) -> S,
    mut wrap: impl FnMut(ModelTask) -> W,
) -> Result<Coverage, Box<NotConformant>>
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut subject = Subject {
        promises,
        make: &mut make,
        wrap: &mut wrap,
        coverage: Coverage::default(),
    };
    for (index, (name, holds)) in rules().into_iter().enumerate() {
        holds(&mut subject).map_err(|broken| {
            Box::new(NotConformant {
                rule: index + 1,
                name,
                broken,
            })
        })?;
        subject.coverage.rules += 1;
    }
    Ok(subject.coverage)
}

// ---------------------------------------------------------------------------
// Tools of the rules
// ---------------------------------------------------------------------------

type Holds = Result<(), Broken>;
type Rule<S, W> = (&'static str, fn(&mut Subject<'_, S, W>) -> Holds);

/// Names the rules after their functions, so that the two cannot differ.
macro_rules! named {
    ($($rule:ident),* $(,)?) => { [$((stringify!($rule), $rule)),*] };
}

fn rules<S, W>() -> [Rule<S, W>; 27]
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    named![
        empty_pick_is_none,
        every_add_is_picked_once,
        put_and_pick_conserve,
        remove_of_absent_is_none,
        remove_of_present_returns_it,
        add_after_remove_works,
        drop_releases_the_queued,
        the_dead_are_let_go,
        a_lone_task_may_be_ticked_for_ever,
        queues_are_independent,
        a_put_needs_no_pick_before,
        init_is_harmless,
        any_priority_is_answered,
        yielders_take_turns,
        gc_stops_nobody,
        sleepers_wake,
        the_notified_wake,
        late_tasks_get_their_turn,
        families_end,
        a_block_may_turn_into_a_yield,
        preemption_respects_the_guard,
        the_preempted_stay_ready,
        migrants_arrive,
        a_wake_may_ask_for_rescheduling,
        a_job_gets_done_beside_yielders,
        nobody_waits_for_longer_than_promised,
        random_programs,
    ]
}

/// The scheduler under test.
struct Subject<'a, S, W> {
    promises: &'a Promises,
    make: &'a mut dyn FnMut(usize) -> S,
    wrap: &'a mut dyn FnMut(ModelTask) -> W,
    coverage: Coverage,
}

impl<S, W> Subject<'_, S, W>
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    fn tasks(&mut self, n: usize) -> Vec<Arc<W>> {
        let task = |id| Arc::new((self.wrap)(ModelTask::new(id, "t")));
        (0..n).map(task).collect()
    }

    /// A scheduler with so many tasks in it, and the tasks.
    fn filled(&mut self, n: usize) -> (S, Vec<Arc<W>>) {
        let mut scheduler = (self.make)(0);
        let tasks = self.tasks(n);
        tasks
            .iter()
            .for_each(|task| scheduler.add_task(task.clone()));
        (scheduler, tasks)
    }

    /// The machine that most rules use, with the bounds that were promised.
    fn config(&self) -> Config {
        Config {
            repick_after_yield: self.promises.repick_after_yield,
            max_gc_streak: self.promises.max_gc_streak,
            on_time: self.promises.on_time,
            ..Config::default()
        }
    }

    /// Runs a program on a machine, under the promised bound on waiting.
    fn run(&mut self, config: Config, program: Program) -> Result<Report, Broken> {
        let max_wait = (self.promises.max_wait)(&Load::of(&program, &config));
        self.run_unbounded(Config { max_wait, ..config }, program)
    }

    fn run_unbounded(&mut self, config: Config, program: Program) -> Result<Report, Broken> {
        match model::run(&config, &program, &mut *self.make, &mut *self.wrap) {
            Ok(report) => {
                let coverage = &mut self.coverage;
                coverage.runs += 1;
                coverage.tasks += report.tasks.len() as u64;
                coverage.dispatches += report.dispatches;
                coverage.yields += report.tasks.iter().map(|t| t.yields).sum::<u64>();
                coverage.preemptions += report.tasks.iter().map(|t| t.preemptions).sum::<u64>();
                coverage.wake_spins += report.wake_spins;
                Ok(report)
            }
            Err(failure) => Err(Broken::InModel {
                config: Box::new(config),
                program,
                failure,
            }),
        }
    }

    /// Runs a program on one CPU, and on as many as are allowed.
    fn run_everywhere(&mut self, config: Config, program: Program) -> Holds {
        for cpus in [1, 2, 4] {
            if cpus <= self.promises.max_cpus {
                let config = Config {
                    cpus,
                    ..config.clone()
                };
                self.run(config, program.clone())?;
            }
        }
        Ok(())
    }
}

fn name<W: Deref<Target = ModelTask>>(task: Option<&Arc<W>>) -> String {
    task.map_or("None".into(), |task| task.label().to_string())
}

fn expect(call: &str, expected: impl fmt::Display, found: impl fmt::Display, ok: bool) -> Holds {
    if ok {
        return Ok(());
    }
    Err(Broken::ByHand {
        call: call.into(),
        expected: expected.to_string(),
        found: found.to_string(),
    })
}

/// `found` must be exactly `expected`, the same allocation.
fn expect_task<W>(call: &str, expected: Option<&Arc<W>>, found: Option<&Arc<W>>) -> Holds
where
    W: Deref<Target = ModelTask>,
{
    let same = expected.map(Arc::as_ptr) == found.map(Arc::as_ptr);
    expect(call, name(expected), name(found), same)
}

/// Picks until nothing is left, and expects exactly `tasks`, in any order.
fn expect_drains<S, W>(scheduler: &mut S, tasks: &[Arc<W>]) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut left = tasks.to_vec();
    while let Some(first) = left.first() {
        let one_of = format!(
            "{} or another of {} ready tasks",
            name(Some(first)),
            left.len()
        );
        let found = scheduler.pick_next_task();
        let place = left
            .iter()
            .position(|task| found.as_ref().is_some_and(|f| Arc::ptr_eq(f, task)));
        match place {
            Some(place) => drop(left.swap_remove(place)),
            None => expect("pick_next_task", one_of, name(found.as_ref()), false)?,
        }
    }
    expect_task("pick_next_task", None, scheduler.pick_next_task().as_ref())
}

/// The splitmix64 generator (Steele, Lea and Flood, 2014): small, and the suite
/// must not need a dependency.
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `0..n`. The bias is of no matter for such small `n`.
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

// ---------------------------------------------------------------------------
// Rules 1 to 13: the scheduler called by hand
// ---------------------------------------------------------------------------

fn empty_pick_is_none<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let (mut scheduler, _) = s.filled(0);
    for _ in 0..3 {
        expect_drains(&mut scheduler, &[])?;
    }
    for task in s.tasks(3) {
        scheduler.add_task(task.clone());
        expect_drains(&mut scheduler, &[task])?;
        expect_drains(&mut scheduler, &[])?;
    }
    Ok(())
}

fn every_add_is_picked_once<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for n in [1, 2, 3, 10, 300] {
        let (mut scheduler, tasks) = s.filled(n);
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

fn put_and_pick_conserve<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut rng = Rng(s.promises.seed);
    for _ in 0..s.promises.random_programs {
        let n = 1 + rng.below(8) as usize;
        let (mut scheduler, mut ready) = s.filled(n);
        let mut blocked: Vec<Arc<W>> = Vec::new();
        let mut removed: Vec<Arc<W>> = Vec::new();
        let mut current: Option<Arc<W>> = None;
        let mut time = 0;
        for _ in 0..60 {
            time += rng.below(20);
            (s.promises.on_time)(time);
            let any = |rng: &mut Rng, of: &[Arc<W>]| rng.below(of.len() as u64) as usize;
            match (rng.below(8), current.take()) {
                // Yield, preemption, block: what was current goes somewhere,
                // and then comes the pick.
                (action @ 0..=3, leaving) => {
                    match (action, leaving) {
                        (0..=2, Some(task)) => {
                            scheduler.put_prev_task(task.clone(), action == 2);
                            ready.push(task);
                        }
                        (_, Some(task)) => blocked.push(task),
                        (_, None) => {}
                    }
                    let found = scheduler.pick_next_task();
                    let is_found = |t: &Arc<W>| found.as_ref().is_some_and(|f| Arc::ptr_eq(f, t));
                    match ready.iter().position(is_found) {
                        Some(place) => current = Some(ready.swap_remove(place)),
                        None => {
                            expect_task("pick_next_task", ready.first(), found.as_ref())?;
                        }
                    }
                }
                (4, keeps) => {
                    current = keeps;
                    if !blocked.is_empty() {
                        let task = blocked.swap_remove(any(&mut rng, &blocked));
                        scheduler.put_prev_task(task.clone(), false);
                        ready.push(task);
                    }
                }
                (5, keeps) => {
                    current = keeps;
                    if let Some(task) = &current {
                        // The answer is the policy's business.
                        let _ = scheduler.task_tick(task);
                    }
                }
                (6, keeps) => {
                    current = keeps;
                    if let Some(task) = &current {
                        let _ = scheduler.set_priority(task, rng.below(64) as isize - 32);
                    }
                }
                (_, keeps) => {
                    current = keeps;
                    if let Some(task) = removed.pop() {
                        scheduler.add_task(task.clone());
                        ready.push(task);
                    } else if !ready.is_empty() {
                        let task = ready.swap_remove(any(&mut rng, &ready));
                        let found = scheduler.remove_task(&task);
                        expect_task("remove_task", Some(&task), found.as_ref())?;
                        removed.push(task);
                    }
                }
            }
        }
        expect_drains(&mut scheduler, &ready)?;
    }
    Ok(())
}

fn remove_of_absent_is_none<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for others in [0, 1, 3] {
        let (mut scheduler, mut tasks) = s.filled(others);
        let absent = &s.tasks(1)[0];
        expect_task(
            "remove_task of a new task",
            None,
            scheduler.remove_task(absent).as_ref(),
        )?;
        scheduler.add_task(absent.clone());
        let found = scheduler.remove_task(absent);
        expect_task("remove_task of a ready task", Some(absent), found.as_ref())?;
        let found = scheduler.remove_task(absent);
        expect_task("remove_task of a removed task", None, found.as_ref())?;
        if let Some(picked) = scheduler.pick_next_task() {
            let found = scheduler.remove_task(&picked);
            expect_task("remove_task of a running task", None, found.as_ref())?;
            tasks.retain(|task| !Arc::ptr_eq(task, &picked));
        }
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

fn remove_of_present_returns_it<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for n in [1, 2, 5] {
        for place in 0..n {
            let (mut scheduler, mut tasks) = s.filled(n);
            let task = tasks.remove(place);
            let found = scheduler.remove_task(&task);
            expect_task("remove_task", Some(&task), found.as_ref())?;
            expect_drains(&mut scheduler, &tasks)?;
        }
    }
    Ok(())
}

fn add_after_remove_works<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let (mut scheduler, tasks) = s.filled(3);
    for round in 0..9 {
        let task = &tasks[round % 3];
        let found = scheduler.remove_task(task);
        expect_task("remove_task", Some(task), found.as_ref())?;
        scheduler.add_task(task.clone());
        // Time passes for somebody between the rounds.
        if let Some(current) = scheduler.pick_next_task() {
            let _ = scheduler.task_tick(&current);
            scheduler.put_prev_task(current, round % 2 == 0);
        }
    }
    expect_drains(&mut scheduler, &tasks)
}

fn drop_releases_the_queued<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let (mut scheduler, tasks) = s.filled(5);
    if let Some(current) = scheduler.pick_next_task() {
        scheduler.put_prev_task(current, true);
    }
    drop(scheduler);
    for task in &tasks {
        let owners = Arc::strong_count(task);
        expect("owners after the scheduler's drop", 1, owners, owners == 1)?;
    }
    Ok(())
}

fn the_dead_are_let_go<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let (mut scheduler, tasks) = s.filled(3);
    let dead: Vec<Weak<W>> = tasks.iter().map(Arc::downgrade).collect();
    drop(tasks);
    // Every task leaves, after a tick and a yield, and is dropped here.
    for _ in 0..3 {
        for _ in 0..2 {
            if let Some(current) = scheduler.pick_next_task() {
                let _ = scheduler.task_tick(&current);
                scheduler.put_prev_task(current, false);
            }
        }
        drop(scheduler.pick_next_task());
    }
    expect_drains(&mut scheduler, &[])?;
    for task in dead {
        let owners = task.strong_count();
        expect("owners after the next pick", 0, owners, owners == 0)?;
    }
    Ok(())
}

fn a_lone_task_may_be_ticked_for_ever<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for preempt in [false, true] {
        let (mut scheduler, tasks) = s.filled(1);
        for time in 0..5_000 {
            (s.promises.on_time)(time * 10);
            let Some(current) = scheduler.pick_next_task() else {
                return expect_task("pick_next_task", tasks.first(), None);
            };
            for _ in 0..time % 8 {
                let _ = scheduler.task_tick(&current);
            }
            scheduler.put_prev_task(current, preempt);
        }
        expect_drains(&mut scheduler, &tasks)?;
    }
    Ok(())
}

fn queues_are_independent<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    if s.promises.max_cpus < 2 {
        return Ok(());
    }
    let tasks = s.tasks(8);
    let mut queues = [(s.make)(0), (s.make)(1)];
    let mut inside = [Vec::new(), Vec::new()];
    for (i, task) in tasks.iter().enumerate() {
        queues[i % 2].add_task(task.clone());
        inside[i % 2].push(task.clone());
    }
    if let Some(current) = queues[1].pick_next_task() {
        queues[1].put_prev_task(current, false);
    }
    // One task changes over as a wake on another CPU does it.
    if let Some(moved) = queues[0].pick_next_task() {
        let _ = queues[0].task_tick(&moved);
        inside[0].retain(|task| !Arc::ptr_eq(task, &moved));
        inside[1].push(moved.clone());
        queues[1].put_prev_task(moved, false);
    }
    expect_drains(&mut queues[1], &inside[1])?;
    expect_drains(&mut queues[0], &inside[0])
}

fn a_put_needs_no_pick_before<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for preempt in [false, true] {
        for ready in [0, 1, 3] {
            let (mut scheduler, mut tasks) = s.filled(ready);
            let main = s.tasks(1).remove(0);
            let _ = scheduler.task_tick(&main);
            scheduler.put_prev_task(main.clone(), preempt);
            tasks.push(main);
            expect_drains(&mut scheduler, &tasks)?;
        }
    }
    Ok(())
}

fn init_is_harmless<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut scheduler = (s.make)(0);
    scheduler.init();
    let tasks = s.tasks(4);
    tasks
        .iter()
        .for_each(|task| scheduler.add_task(task.clone()));
    expect_drains(&mut scheduler, &tasks)
}

fn any_priority_is_answered<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let (mut scheduler, tasks) = s.filled(3);
    for priority in [0, 1, -1, 19, -20, 20, -21, 100, isize::MAX, isize::MIN] {
        if let Some(current) = scheduler.pick_next_task() {
            let first = scheduler.set_priority(&current, priority);
            let again = scheduler.set_priority(&current, priority);
            let call = format!("set_priority to {priority} once more");
            expect(&call, first, again, first == again)?;
            let _ = scheduler.task_tick(&current);
            scheduler.put_prev_task(current, priority % 2 == 0);
        }
    }
    expect_drains(&mut scheduler, &tasks)
}

// ---------------------------------------------------------------------------
// Rules 14 to 27: programs in the model
// ---------------------------------------------------------------------------

/// A `main` that spawns all of `children` and joins them in order.
fn family(children: impl IntoIterator<Item = Program>) -> Program {
    let mut ops: Vec<Op> = children.into_iter().map(Op::Spawn).collect();
    ops.extend((0..ops.len()).map(Op::Join));
    Program::new("main", ops)
}

fn yielders_take_turns<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let yielder = |(n, name): (usize, &str)| Program::repeat(name, n, &[Op::Run(1), Op::Yield]);
    let program = family([(10, "short"), (60, "long"), (30, "middle")].map(yielder));
    let report = s.run(s.config(), program.clone())?;
    for (count, name) in [(10, "short"), (60, "long"), (30, "middle")] {
        let yields = report.task(name).map_or(0, |task| task.yields);
        expect("yields in the model", count, yields, yields == count)?;
    }
    s.run_everywhere(s.config(), program)
}

fn gc_stops_nobody<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let dead = Program::new("dead", [Op::Run(1)]);
    let worker = Program::repeat("worker", 30, &[Op::Run(3), Op::Yield, Op::Sleep(5)]);
    let mut main = vec![Op::Spawn(dead.clone()), Op::Spawn(dead), Op::Join(0)];
    main.extend([Op::Spawn(worker.clone()), Op::Spawn(worker)]);
    // All this time the two dead tasks are held.
    main.extend([Op::Join(2), Op::DropHandle(0), Op::Run(30), Op::Join(3)]);
    s.run_everywhere(s.config(), Program::new("main", main))
}

fn sleepers_wake<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let sleeper = Program::repeat("sleeper", 5, &[Op::Run(2), Op::Sleep(15)]);
    let busy = Program::repeat("busy", 40, &[Op::Run(5), Op::Yield]);
    s.run_everywhere(s.config(), family([sleeper.clone(), sleeper.clone()]))?;
    s.run_everywhere(s.config(), family([sleeper.clone(), busy, sleeper]))
}

fn the_notified_wake<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for resched in [false, true] {
        let link = |queue: u8| {
            let timeout = None;
            let next = Op::Notify {
                queue: (queue + 1) % 5,
                resched,
            };
            Program::repeat("link", 6, &[Op::Wait { queue, timeout }, Op::Run(2), next])
        };
        let mut main = family((0..5).map(link));
        main.ops.insert(5, Op::Notify { queue: 0, resched });
        s.run_everywhere(s.config(), main)?;
    }
    Ok(())
}

fn late_tasks_get_their_turn<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let old = Program::repeat("old", 100, &[Op::Run(6), Op::Yield]);
    let late = Program::repeat("late", 10, &[Op::Run(6), Op::Yield]);
    let mut main = vec![Op::Spawn(old.clone()), Op::Spawn(old), Op::Sleep(400)];
    main.extend([Op::Spawn(late.clone()), Op::Spawn(late)]);
    main.extend([Op::Join(2), Op::Join(3)]);
    s.run_everywhere(s.config(), Program::new("main", main))
}

fn families_end<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let leaf = Program::new("leaf", [Op::Run(1)]);
    let broad = family(std::iter::repeat_n(leaf.clone(), 60));
    let deep = (0..20).fold(leaf, |child, _| {
        Program::new("node", [Op::Spawn(child), Op::Yield, Op::Join(0)])
    });
    s.run_everywhere(s.config(), broad)?;
    s.run_everywhere(s.config(), family([deep]))
}

fn a_block_may_turn_into_a_yield<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    // The shorter the period, the oftener a tick falls between poll and park,
    // and the notifier gets its turn just then.
    let timeout = None;
    let waiter = Program::repeat("waiter", 40, &[Op::Wait { queue: 1, timeout }]);
    let notify = Op::Notify {
        queue: 1,
        resched: false,
    };
    let notifier = Program::repeat("notifier", 40, &[Op::Run(3), notify]);
    for tick_period in 7..12 {
        let config = Config {
            tick_period,
            ..s.config()
        };
        s.run_everywhere(config, family([waiter.clone(), notifier.clone()]))?;
    }
    Ok(())
}

fn preemption_respects_the_guard<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let guarded = [Op::PreemptOff, Op::Run(70), Op::PreemptOff, Op::Run(70)];
    let released = [
        Op::PreemptOn,
        Op::Run(70),
        Op::Yield,
        Op::PreemptOn,
        Op::Run(70),
    ];
    let task = Program::new("guarded", guarded.into_iter().chain(released));
    let other = Program::new("other", [Op::Run(300)]);
    s.run_everywhere(s.config(), family([task.clone(), other, task]))
}

fn the_preempted_stay_ready<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let long = Program::new("long", [Op::Run(500)]);
    for preempt in [false, true] {
        let config = Config {
            preempt,
            ..s.config()
        };
        s.run_everywhere(config, family([long.clone(), long.clone(), long.clone()]))?;
    }
    Ok(())
}

fn migrants_arrive<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let to = |cpu| Op::Migrate(CpuMask::one(cpu));
    let tour = [to(1), Op::Run(3), to(0), Op::Yield, Op::Sleep(3), to(1)];
    let main = || family([(); 3].map(|()| Program::repeat("migrant", 10, &tour)));
    // A helper lives for a few units: with these periods ticks fall into it,
    // and a policy that preempts on ticks preempts some of the helpers.
    for tick_period in 7..12 {
        let config = Config {
            tick_period,
            ..s.config()
        };
        s.run_everywhere(config, main())?;
    }
    Ok(())
}

fn a_wake_may_ask_for_rescheduling<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut rng = Rng(s.promises.seed ^ 24);
    for _ in 0..s.promises.random_programs / 4 {
        let config = Config {
            wake_resched: true,
            ..random_config(s, &mut rng)
        };
        let program = random_program(&mut rng, "main", &mut 12);
        s.run_unbounded(config, program)?;
    }
    Ok(())
}

/// In rule 25, where a yield costs a call and a switch.
const YIELDS_PER_TICK: u64 = 16;

fn a_job_gets_done_beside_yielders<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    for yielders in [1, 2, 3, 10, 100] {
        for job_ticks in [1_u64, 20, 100] {
            let config = s.config();
            let yield_cost = config.call_cost + config.switch_cost;
            let beside = Beside {
                // Its switches are its time, too: one a tick at most.
                job_ticks: job_ticks + job_ticks.div_ceil(YIELDS_PER_TICK - 1) + 1,
                yielders: yielders + 1,
                yields_per_tick: YIELDS_PER_TICK,
            };
            let Some(bound) = (s.promises.done_beside)(&beside) else {
                return Ok(());
            };
            let tick_period = YIELDS_PER_TICK * yield_cost;
            let config = Config {
                tick_period,
                // The bound is what ends it, or finds it too late.
                time_limit: Some((2 * bound + 100) * tick_period),
                ..config
            };
            let report = s.run(config, beside_yielders(job_ticks * tick_period, yielders))?;
            let took = report.task("job").and_then(|job| job.turnaround());
            let took = took.map_or(u64::MAX, |units| units.div_ceil(tick_period));
            let call = format!("a job of {job_ticks} ticks beside {yielders} yielders and gc");
            expect(
                &call,
                format!("its end after {bound} ticks at most"),
                took,
                took <= bound,
            )?;
        }
    }
    Ok(())
}

/// The job notifies when it is done, which the yielders wait for; `main` holds a dead
/// task's handle meanwhile, over which `gc` spins.
fn beside_yielders(job_units: u64, yielders: u64) -> Program {
    const DONE: u8 = 0;
    let (queue, resched) = (DONE, false);
    let job = [Op::Run(job_units), Op::Notify { queue, resched }];
    let yielder = Program::new("yielder", [Op::YieldUntil { queue }]);
    let mut ops = vec![Op::Spawn(Program::new("dead", [])), Op::Join(0)];
    ops.extend([Op::PreemptOff, Op::Spawn(Program::new("job", job))]);
    ops.extend((0..yielders).map(|_| Op::Spawn(yielder.clone())));
    ops.extend([Op::PreemptOn, Op::Join(1)]);
    Program::new("main", ops)
}

fn nobody_waits_for_longer_than_promised<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut rng = Rng(s.promises.seed ^ 26);
    // Long ticks: the sleepers are to stay in step.
    let config = Config {
        tick_period: 1_000,
        ..s.config()
    };
    let crowd = crowd(config.tick_period);
    if (s.promises.max_wait)(&Load::of(&crowd, &config)) != MaxWait::default() {
        s.run_everywhere(config, crowd)?;
    }
    for _ in 0..s.promises.random_programs / 10 {
        let config = Config {
            tick_period: 15 + rng.below(20),
            switch_cost: rng.below(4),
            ..s.config()
        };
        let program = busy_program(&mut rng, config.tick_period);
        if (s.promises.max_wait)(&Load::of(&program, &config)) != MaxWait::default() {
            s.run_everywhere(config, program)?;
        }
    }
    Ok(())
}

/// Many hogs and half as many sleepers in step, which on several CPUs change queues at
/// each wake.
fn crowd(tick: u64) -> Program {
    let hog = Program::new("hog", [Op::Run(60 * tick)]);
    let sleeper = [Op::Run(tick + tick / 2), Op::Sleep(tick + tick / 2)];
    let sleeper = Program::repeat("sleeper", 200, &sleeper);
    let hogs = std::iter::repeat_n(hog, 32);
    family(hogs.chain(std::iter::repeat_n(sleeper, 16)))
}

/// Two to seven tasks that are ready most of the time, some of them late.
fn busy_program(rng: &mut Rng, tick: u64) -> Program {
    const DONE: u8 = 0;
    let (queue, resched) = (DONE, false);
    let (mut ops, mut ending) = (Vec::new(), Vec::new());
    for child in 0..2 + rng.below(6) as usize {
        if rng.one_in(3) {
            ops.push(Op::Sleep((10 + rng.below(200)) * tick));
        }
        let kind = rng.below(5);
        let mut up_to = |ticks: u64| 1 + rng.below(ticks * tick);
        let task = match kind {
            0 => Program::new("hog", [Op::Run(up_to(600))]),
            1 => Program::repeat("worker", 60, &[Op::Run(up_to(5)), Op::Yield]),
            2 => Program::repeat("sleeper", 10, &[Op::Run(up_to(3)), Op::Sleep(up_to(60))]),
            3 => Program::new("late hog", [Op::Sleep(up_to(400)), Op::Run(up_to(300))]),
            _ => Program::new("yielder", [Op::YieldUntil { queue }]),
        };
        if &*task.name != "yielder" {
            ending.push(Op::Join(child));
        }
        ops.push(Op::Spawn(task));
    }
    ops.extend(ending);
    ops.push(Op::Notify { queue, resched });
    Program::new("main", ops)
}

fn random_programs<S, W>(s: &mut Subject<'_, S, W>) -> Holds
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    let mut rng = Rng(s.promises.seed ^ 25);
    for _ in 0..s.promises.random_programs {
        let config = random_config(s, &mut rng);
        let program = random_program(&mut rng, "main", &mut 12);
        s.run(config, program)?;
    }
    Ok(())
}

fn random_config<S, W>(s: &Subject<'_, S, W>, rng: &mut Rng) -> Config
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = ModelTask>,
{
    Config {
        cpus: 1 + rng.below(s.promises.max_cpus as u64) as usize,
        preempt: !rng.one_in(4),
        // Longer than a switch and a call, or nobody gets anywhere under a
        // policy that preempts on every tick.
        tick_period: 7 + rng.below(20),
        switch_cost: rng.below(4),
        ..s.config()
    }
}

/// A program that ends under any correct scheduler: it waits only for its own
/// children, and for notifications only so long. `budget` limits the tasks.
fn random_program(rng: &mut Rng, name: &str, budget: &mut u64) -> Program {
    let mut ops = Vec::new();
    let mut spawned = 0;
    for _ in 0..rng.below(12) {
        match rng.below(13) {
            0..=2 => ops.push(Op::Run(rng.below(25))),
            3 | 4 => ops.push(Op::Yield),
            5 => ops.push(Op::Sleep(rng.below(40))),
            6 => ops.push(Op::Wait {
                queue: rng.below(2) as u8,
                timeout: Some(rng.below(60)),
            }),
            7 => ops.push(Op::Notify {
                queue: rng.below(2) as u8,
                resched: rng.one_in(2),
            }),
            8 | 9 if *budget > 0 => {
                *budget -= 1;
                let name = ["a", "b", "c", "d"][rng.below(4) as usize];
                ops.push(Op::Spawn(random_program(rng, name, budget)));
                spawned += 1;
            }
            10 if spawned > 0 => {
                let child = rng.below(spawned) as usize;
                ops.push(if rng.one_in(2) {
                    Op::Join(child)
                } else {
                    Op::DropHandle(child)
                });
            }
            11 => ops.push(Op::Migrate(CpuMask(rng.next()))),
            12 => {
                let run = Op::Run(rng.below(25));
                ops.extend([Op::PreemptOff, run.clone(), Op::Yield, run, Op::PreemptOn]);
            }
            _ => ops.push(Op::SetPriority(rng.below(50) as isize - 25)),
        }
    }
    if rng.one_in(2) {
        ops.extend((0..spawned as usize).map(Op::Join));
    }
    Program::new(name, ops)
}
