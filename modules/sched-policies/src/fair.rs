//! The common part of the tests of CFS and EEVDF: scenes that both policies run, and a comparison
//! with the same policy in exact order.

// The file is long: it has the scenes, their stage and the bounds that both policies are held to.

use alloc::sync::Arc;
use core::cell::Cell;
use std::vec::Vec;

use proptest::prelude::*;
use proptest::test_runner::{RngSeed, TestRunner};

use sched_core::BaseScheduler;
use sched_core::clock::{Clock, VirtualClock};
use sched_core::event::{Adapter, Policy, TaskRef};
use sched_core::nice::{FRACTION_BITS, Factor, NORMAL_WEIGHT, WEIGHTS};
use sched_core::ordered::Key;
use sched_core::run_interval::{Accounted, RunIntervals};
use sched_core::steps;
use sched_core::task::{InitialState, Task};
use sched_core::units::Counts;
use sched_core::virtual_time::VirtualTime;
use sched_model::bench::{self, Bench};

/// A tick of these scenes, in counts. A bucket is 0.375 of it wide, which is the most for ticks of
/// one length.
pub const TICK: u64 = 1366;

/// A count, as vruntime.
pub const ONE: u64 = 1 << FRACTION_BITS;

/// A policy that shares by weight, whatever the order of its queues.
pub trait Fair: Policy<Inner = &'static str, State: InitialState + Accounted> {
    /// The width of a bucket, as vruntime; 1 in exact order.
    fn width(&self) -> u64;

    /// The run intervals of the queue.
    fn intervals(&self) -> &RunIntervals<&'static str, Self::State>;

    /// Returns the vruntime of a task as last charged, and its factor.
    fn vruntime(task: &TaskRef<Self>) -> (Key, Factor);

    /// Returns how far a task that is ready or runs here is ahead of the queue's virtual time, as
    /// vruntime. Its run since it was last charged is included.
    fn ahead(&self, task: &TaskRef<Self>) -> i64 {
        let time = VirtualTime::find(RunIntervals::home(task)).expect("it is on a queue");
        let (now, intervals) = (VirtualClock::now(), self.intervals());
        let runs = |running| core::ptr::eq(running, &raw const **task);
        let run = match intervals.running() {
            Some(running) if runs(running) => intervals.uncharged(now),
            _ => Counts::ZERO,
        };
        let (vruntime, factor) = Self::vruntime(task);
        vruntime.later(factor.times(run)).after(time.at(now))
    }

    /// The ready tasks, as [`check_next`](Self::check_next) needs them.
    type Ready;

    /// Returns the tasks that a pick would choose from now.
    fn ready(&self) -> Self::Ready;

    /// Checks the task that was chosen, to the width of a bucket, and returns how far out of order
    /// it is, as vruntime.
    fn check_next(&self, ready: &Self::Ready, next: &TaskRef<Self>) -> u64;
}

/// The behaviour of a task in a scene.
#[derive(Clone, Copy, Debug)]
pub enum Habit {
    /// Runs for ever.
    Hog,
    /// Runs for these counts, in turn, and yields after each.
    Yields(&'static [u64]),
    /// Runs for these counts, in turn, and sleeps for the second number after each.
    Sleeps(&'static [u64], u64),
    /// Runs for this many counts, and migrates to the next queue.
    Moves(u64),
}

/// The tasks of a scene: the nice value of each, the queue that it starts on, and its habit.
pub type Scene = [(isize, usize, Habit)];

/// The result of a scene, for each of its tasks.
pub struct Played {
    /// Time on the CPU, in counts.
    pub had: Vec<u64>,
    /// The largest distance from the virtual time at a tick, as vruntime.
    pub lag: Vec<u64>,
    /// The longest time that it was ready without running, in counts.
    pub wait: Vec<u64>,
    /// The width of a bucket, as vruntime.
    pub width: u64,
}

/// Returns the weight of a nice value.
pub fn weight(nice: isize) -> u64 {
    u64::from(WEIGHTS[(nice + 20) as usize])
}

/// Returns how far `counts` move the vruntime of a task of this nice value.
fn vruntime(counts: u64, nice: isize) -> u64 {
    (counts << FRACTION_BITS) * NORMAL_WEIGHT / weight(nice)
}

/// Returns the number of counts in which the vruntime of a task of this nice value grows that far.
pub fn counts(vruntime: u64, nice: isize) -> f64 {
    let weighted = vruntime as f64 * weight(nice) as f64;
    weighted / (NORMAL_WEIGHT << FRACTION_BITS) as f64
}

struct Actor<P: Policy> {
    task: TaskRef<P>,
    habit: Habit,
    /// The rest of its burst.
    left: u64,
    bursts: usize,
    on: usize,
    /// The time at which it wakes, if it sleeps.
    wakes: Option<u64>,
    ran: u64,
    had: u64,
    lag: u64,
    wait: u64,
}

impl<P: Policy> Actor<P> {
    fn begin_burst(&mut self) {
        self.left = match self.habit {
            Habit::Hog => u64::MAX,
            Habit::Yields(bursts) | Habit::Sleeps(bursts, _) => bursts[self.bursts % bursts.len()],
            Habit::Moves(burst) => burst,
        };
        self.bursts += 1;
    }
}

struct Stage<P: Fair> {
    now: u64,
    queues: Vec<Bench<Adapter<P>>>,
    actors: Vec<Actor<P>>,
}

impl<P: Fair> Stage<P> {
    fn new(scene: &Scene) -> Self {
        VirtualClock::set(0);
        let queues = scene.iter().map(|&(_, on, _)| on + 1).max().unwrap_or(0);
        let mut queues: Vec<_> = (0..queues).map(|_| Bench::<Adapter<P>>::new()).collect();
        let enter = |&(nice, on, habit): &(isize, usize, Habit)| {
            let queue = &mut queues[on];
            let task = queue.spawn("actor");
            assert!(queue.scheduler.set_priority(&task, nice));
            let mut actor = Actor {
                task,
                habit,
                left: 0,
                bursts: 0,
                on,
                wakes: None,
                ran: 0,
                had: 0,
                lag: 0,
                wait: 0,
            };
            actor.begin_burst();
            actor
        };
        let actors = scene.iter().map(enter).collect();
        for queue in &mut queues {
            queue.block(); // main
        }
        let now = 0;
        Self {
            now,
            queues,
            actors,
        }
    }

    fn runs(queue: &Bench<Adapter<P>>) -> Option<*const Task<&'static str, P::State>> {
        queue.current.as_ref().map(Arc::as_ptr)
    }

    /// Returns the actor that runs on this queue.
    fn actor(&self, queue: &Bench<Adapter<P>>) -> Option<usize> {
        let current = Self::runs(queue)?;
        let mut actors = self.actors.iter();
        actors.position(|actor| Arc::as_ptr(&actor.task) == current)
    }

    fn play(&mut self, ticks: u64) {
        let played = self.now / TICK;
        for tick in played + 1..=played + ticks {
            while self.now < tick * TICK {
                self.step(tick * TICK);
            }
            let before: Vec<_> = self.queues.iter().map(Self::runs).collect();
            for queue in &mut self.queues {
                if queue.current.is_some() {
                    queue.interrupt();
                }
            }
            // The lags grow until another task runs, so they are largest then.
            if !self.queues.iter().map(Self::runs).eq(before) {
                self.measure();
            }
        }
    }

    fn measure(&mut self) {
        for actor in self.actors.iter_mut().filter(|actor| actor.wakes.is_none()) {
            let policy = self.queues[actor.on].scheduler.policy();
            let lag = policy.ahead(&actor.task).unsigned_abs();
            actor.lag = actor.lag.max(lag);
        }
    }

    /// Simulates up to the next tick, or to an earlier wake or end of a burst.
    fn step(&mut self, tick: u64) {
        let running: Vec<_> = self.queues.iter().map(|queue| self.actor(queue)).collect();
        let running = || running.iter().flatten().copied();
        let ends = running().map(|i| self.now.saturating_add(self.actors[i].left));
        let wakes = self.actors.iter().filter_map(|actor| actor.wakes);
        let next = ends.chain(wakes).fold(tick, u64::min);
        VirtualClock::advance(next - self.now);
        for i in running() {
            let actor = &mut self.actors[i];
            actor.wait = actor.wait.max(self.now - actor.ran);
            actor.had += next - self.now;
            actor.left -= next - self.now;
            actor.ran = next;
        }
        self.now = next;
        for actor in &mut self.actors {
            if actor.wakes.take_if(|at| *at <= next).is_some() {
                actor.ran = next;
                self.queues[actor.on].wake(&actor.task);
            }
        }
        for i in running() {
            if self.actors[i].left == 0 {
                self.end_burst(i);
            }
        }
        for queue in &mut self.queues {
            if queue.current.is_none() {
                queue.pick();
            }
        }
    }

    fn end_burst(&mut self, i: usize) {
        let actor = &mut self.actors[i];
        actor.begin_burst();
        let queue = &mut self.queues[actor.on];
        match actor.habit {
            Habit::Hog => unreachable!("its burst has no end"),
            Habit::Yields(_) => _ = queue.yield_now(),
            Habit::Sleeps(_, time) => {
                queue.block();
                actor.wakes = Some(self.now + time);
            }
            Habit::Moves(_) => {
                let task = queue.block();
                actor.on = (actor.on + 1) % self.queues.len();
                self.queues[actor.on].wake(&task);
            }
        }
    }
}

/// Simulates a scene for this many ticks, which come to all its queues at once.
pub fn play<P: Fair>(scene: &Scene, ticks: u64) -> Played {
    let mut stage = Stage::<P>::new(scene);
    stage.play(ticks);
    let of = |what: fn(&Actor<P>) -> u64| stage.actors.iter().map(what).collect();
    Played {
        had: of(|actor| actor.had),
        lag: of(|actor| actor.lag),
        wait: of(|actor| actor.wait),
        width: stage.queues[0].scheduler.policy().width(),
    }
}

/// The bounds of a policy for each kind of scene, beside itself in exact order.
pub struct Bounds {
    /// The longest wait, in ticks for each other task of the scene.
    pub wait: f64,
    /// The largest difference between the shares of a task in the two orders, as a part of its
    /// share. It is for tasks beside sleepers and movers: the share of a task that yields depends
    /// on the tasks that it lets pass.
    pub share: f64,
}

const HOG: Habit = Habit::Hog;

fn ticks(vruntime: u64) -> f64 {
    counts(vruntime, 0) / TICK as f64
}

fn worst(of: &[u64]) -> u64 {
    of.iter().copied().max().unwrap_or(0)
}

/// Runs hogs from one end of the nice values to the other, over 200,000 ticks. Each has its share
/// by weight to a thousandth, or, if that is less, to two slices of two ticks. The worst lag of
/// each is at most the width of a bucket more than in exact order, or than a slice. The slice
/// counts because in some of the scenes it does not come at the worst time in exact order.
pub fn hogs<B: Fair, E: Fair>() {
    const TICKS: u64 = 200_000;
    let scenes: [&[isize]; 3] = [&[-20, 0], &[0, 19], &[-20, -20, -5, 0, 0, 10, 19]];
    for scene in scenes {
        let all: u64 = scene.iter().map(|&nice| weight(nice)).sum();
        let hogs: Vec<_> = scene.iter().map(|&nice| (nice, 0, HOG)).collect();
        let [buckets, exact] = [play::<B>, play::<E>].map(|play| play(&hogs, TICKS));
        for (order, played) in [("buckets", &buckets), ("exact", &exact)] {
            for (&nice, &had) in scene.iter().zip(&played.had) {
                let had = had as f64 / TICK as f64;
                let fair = TICKS as f64 * weight(nice) as f64 / all as f64;
                assert!(
                    (had - fair).abs() <= f64::max(fair / 1000.0, 4.0),
                    "{order}, nice {nice} of {scene:?}: {had:.1} of {fair:.1} ticks"
                );
            }
        }
        for (i, &nice) in scene.iter().enumerate() {
            let turn = vruntime(2 * TICK, nice);
            assert!(
                buckets.lag[i] <= exact.lag[i].max(turn) + buckets.width,
                "nice {nice} of {scene:?}: {:.3} ticks, and {:.3} in exact order",
                ticks(buckets.lag[i]),
                ticks(exact.lag[i])
            );
        }
    }
}

/// Runs sleepers that want less than their share, and checks that they have it in both orders.
pub fn sleepers<B: Fair, E: Fair>() {
    let scene = [
        (0, 0, HOG),
        (5, 0, HOG),
        (0, 0, Habit::Sleeps(&[500, 900], 20_000)),
        (-5, 0, Habit::Sleeps(&[100], 3_000)),
    ];
    let [buckets, exact] = [play::<B>, play::<E>].map(|play| play(&scene, 50_000));
    for (i, (buckets, exact)) in buckets.had.iter().zip(&exact.had).enumerate() {
        let apart = buckets.abs_diff(*exact) as f64 / *exact as f64;
        assert!(apart < 0.001, "{:?}: {buckets} and {exact}", scene[i]);
    }
}

/// Random numbers that are the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005);
        self.0 = self.0.wrapping_add(1442695040888963407);
        (self.0 >> 33) % end
    }

    fn bursts(&mut self, longest: u64) -> &'static [u64] {
        let bursts: Vec<_> = (0..=self.below(6))
            .map(|_| 1 + self.below(longest))
            .collect();
        bursts.leak()
    }

    fn scene(
        &mut self,
        queues: u64,
        habit: fn(&mut Self, u64) -> Habit,
    ) -> Vec<(isize, usize, Habit)> {
        let longest = [500, 1400, 3000, 6000][self.below(4) as usize];
        let mut scene: Vec<_> = (0..queues as usize).map(|on| (0, on, HOG)).collect();
        for _ in 0..=self.below(6) {
            let on = self.below(queues) as usize;
            let does = if self.below(3) == 0 {
                HOG
            } else {
                habit(self, longest)
            };
            scene.push((0, on, does));
        }
        scene
    }
}

/// Runs thirty scenes of each kind, where hogs of equal weight run beside tasks with bursts of
/// uneven lengths. One scene may miss the worst case of either order, so the test compares the
/// worst of a kind. It is at most the width of a bucket more than in exact order. Beside yielders a
/// hog has at least an equal share.
pub fn uneven<B: Fair, E: Fair>(bounds: &Bounds) {
    type Kind = (&'static str, u64, fn(&mut Random, u64) -> Habit);
    const TICKS: u64 = 1000;
    let kinds: [Kind; 3] = [
        ("yield", 1, |random, longest| {
            Habit::Yields(random.bursts(longest))
        }),
        ("sleep", 1, |random, longest| {
            Habit::Sleeps(random.bursts(longest), 1 + random.below(6000))
        }),
        ("move", 2, |random, longest| {
            Habit::Moves(1 + random.below(longest))
        }),
    ];
    for (kind, queues, habit) in kinds {
        let mut random = Random(1);
        let (mut lag, mut width) = ([0, 0], 0);
        for _ in 0..30 {
            let scene = random.scene(queues, habit);
            let [buckets, exact] = [play::<B>, play::<E>].map(|play| play(&scene, TICKS));
            width = width.max(buckets.width);
            let all = scene.len() as f64;
            for (i, played) in [&buckets, &exact].into_iter().enumerate() {
                lag[i] = worst(&played.lag).max(lag[i]);
                let wait = worst(&played.wait) as f64 / TICK as f64;
                assert!(wait <= bounds.wait * all, "{scene:?}: {wait:.1} ticks");
            }
            for (i, &(_, _, does)) in scene.iter().enumerate() {
                let [had, exact] = [&buckets, &exact].map(|played| played.had[i] as f64);
                if kind != "yield" {
                    let apart = (had / exact - 1.0).abs();
                    assert!(apart <= bounds.share, "{scene:?}: {apart:.3}");
                } else if matches!(does, Habit::Hog) {
                    let fair = (TICKS * TICK) as f64 / all - (4 * TICK) as f64;
                    assert!(had.min(exact) >= fair, "{scene:?}: {had}, {exact}");
                }
            }
        }
        assert!(
            lag[0] <= lag[1] + width,
            "{kind}: {:.3} ticks, and {:.3} in exact order",
            ticks(lag[0]),
            ticks(lag[1])
        );
    }
}

/// A scheduler that checks each pick (see [`Fair::check_next`]).
pub struct Watched<P: Fair> {
    inner: Adapter<P>,
    /// The distance of the worst pick from the exact order, as vruntime.
    apart: u64,
}

impl<P: Fair> Default for Watched<P> {
    fn default() -> Self {
        Self {
            inner: Adapter::new(),
            apart: 0,
        }
    }
}

impl<P: Fair> bench::Scheduler for Watched<P> {
    type State = P::State;
}

impl<P: Fair> BaseScheduler for Watched<P> {
    type SchedItem = TaskRef<P>;

    fn init(&mut self) {}
    fn add_task(&mut self, task: TaskRef<P>) {
        self.inner.add_task(task);
    }
    fn remove_task(&mut self, task: &TaskRef<P>) -> Option<TaskRef<P>> {
        self.inner.remove_task(task)
    }
    fn pick_next_task(&mut self) -> Option<TaskRef<P>> {
        let ready = self.inner.policy().ready();
        let next = self.inner.pick_next_task();
        if let Some(next) = &next {
            let apart = self.inner.policy().check_next(&ready, next);
            self.apart = self.apart.max(apart);
        }
        next
    }
    fn put_prev_task(&mut self, task: TaskRef<P>, preempt: bool) {
        self.inner.put_prev_task(task, preempt);
    }
    fn task_tick(&mut self, task: &TaskRef<P>) -> bool {
        self.inner.task_tick(task)
    }
    fn set_priority(&mut self, task: &TaskRef<P>, priority: isize) -> bool {
        self.inner.set_priority(task, priority)
    }
}

/// Makes random yields, sleeps, wakes, spawns and changes of nice values between the ticks. Checks
/// that no task is picked early by the width of a bucket or more. Returns how far out of order the
/// worst pick was, and the width.
pub fn order<P: Fair>() -> (u64, u64) {
    let worst = Cell::new((0, 0));
    let config = ProptestConfig {
        cases: 80,
        rng_seed: RngSeed::Fixed(2026),
        failure_persistence: None, // each run has the same cases
        ..ProptestConfig::default()
    };
    let steps = prop::collection::vec((0..8_u8, 0..40_usize, 0..TICK), 0..400);
    let played = TestRunner::new(config).run(&steps, |steps| {
        let mut bench = Bench::<Watched<P>>::running(&["actor"; 8]);
        let mut asleep = Vec::new();
        let mut to_tick = TICK;
        for (what, which, mut run) in steps {
            while run >= to_tick {
                run -= to_tick;
                bench.run(to_tick);
                to_tick = TICK;
                if bench.current.is_some() {
                    bench.interrupt();
                }
            }
            bench.run(run);
            to_tick -= run;
            match what {
                _ if bench.current.is_none() => _ = bench.pick(),
                0 | 1 => _ = bench.yield_now(),
                2 | 3 => asleep.push(bench.block()),
                4 if which < 4 => _ = bench.set_priority([-20, 0, 5, 19][which]),
                5 if which < 4 => _ = bench.spawn("actor"),
                _ => {}
            }
            if what > 3 && !asleep.is_empty() {
                let task = asleep.swap_remove(which % asleep.len());
                bench.wake(&task);
            }
        }
        let (apart, _) = worst.get();
        let width = bench.scheduler.inner.policy().width();
        let tick = vruntime(TICK, 0);
        prop_assert!(width == 1 || (tick / 8..=tick / 2).contains(&width));
        worst.set((bench.scheduler.apart.max(apart), width));
        Ok(())
    });
    played.unwrap_or_else(|failure| panic!("{failure}"));
    worst.get()
}

/// Runs a scene for this many ticks, and then turns all tasks into hogs. Returns the longest wait
/// of any task from then on, in ticks for each task.
pub fn wait_once_all_are_hogs<P: Fair>(scene: &Scene, ticks: u64) -> f64 {
    let mut stage = Stage::<P>::new(scene);
    stage.play(ticks);
    for actor in &mut stage.actors {
        if actor.wakes.take().is_some() {
            actor.ran = stage.now;
            stage.queues[actor.on].wake(&actor.task);
        }
        (actor.habit, actor.left, actor.wait) = (HOG, u64::MAX, 0);
    }
    stage.play(500);
    let waits: Vec<_> = stage
        .actors
        .iter()
        .map(|actor| actor.wait.max(stage.now - actor.ran))
        .collect();
    worst(&waits) as f64 / TICK as f64 / scene.len() as f64
}

/// The steps of the longest call of each kind.
#[derive(Debug, Default)]
pub struct Steps {
    pub add: usize,
    pub put: usize,
    pub pick: usize,
    pub tick: usize,
    pub renice: usize,
}

/// The arrangement of 4,096 tasks when the steps are counted.
#[derive(Clone, Copy, Debug)]
pub enum Arrangement {
    /// All came before the length of a tick was known.
    Early,
    /// All came at once, with one vruntime.
    AtOnce,
    /// Each has run.
    Settled,
    /// Each has run, and has nice value 19.
    Light,
}

/// Counts the steps of calls beside 4,096 tasks. The calls are yields, preemptions, sleeps, wakes,
/// spawns and changes of the running task's nice value. Among them are a long run after which all
/// are owed, and ticks of another length. Calls that are linear by contract are left out, as
/// `axtask` never makes them: `remove`, and under EEVDF `set_priority` of a ready task.
fn count<P: Fair>(arrangement: Arrangement) -> Steps {
    const TASKS: usize = 4096;
    let mut bench = Bench::<Adapter<P>>::running(&["first"]);
    if !matches!(arrangement, Arrangement::Early) {
        bench.shares(20);
    }
    for _ in 1..TASKS {
        let task = bench::task::<Adapter<P>>("one of many");
        if matches!(arrangement, Arrangement::Light) {
            bench.scheduler.set_priority(&task, 19);
        }
        bench.scheduler.add_task(task);
    }
    if matches!(arrangement, Arrangement::Settled | Arrangement::Light) {
        bench.shares(3 * TASKS);
    }
    let mut most = Steps::default();
    let look = |of: &mut usize, steps: usize| *of = steps.max(*of);
    let mut asleep = Vec::new();
    for round in 0..400 {
        if round == 100 || round == 300 {
            bench.run(20 * bench::TICK * TASKS as u64); // with interrupts off
        }
        bench.run(if round < 200 { 1 } else { 8 } * bench::TICK);
        let running = bench.current.clone().expect("many are ready");
        let is_over = Cell::new(false);
        let tick = steps::of(|| is_over.set(bench.scheduler.task_tick(&running)));
        look(&mut most.tick, tick);
        let nice = [0, 19, -20, 0][round % 4];
        let renice = steps::of(|| bench.scheduler.set_priority(&running, nice));
        look(&mut most.renice, renice);
        let new = bench::task::<Adapter<P>>("new");
        look(&mut most.add, steps::of(|| bench.scheduler.add_task(new)));
        if is_over.get() || round % 3 > 0 {
            let preempt = is_over.get();
            let put = steps::of(|| bench.scheduler.put_prev_task(running, preempt));
            look(&mut most.put, put);
        } else {
            asleep.push(running);
        }
        let pick = steps::of(|| bench.current = bench.scheduler.pick_next_task());
        look(&mut most.pick, pick);
        if round % 5 == 0
            && let Some(task) = asleep.pop()
        {
            let wake = steps::of(|| bench.scheduler.put_prev_task(task, false));
            look(&mut most.put, wake);
        }
    }
    most
}

/// Checks that no call beside 4,096 tasks takes more than a walk down a tree and a bucket, and a
/// pick at most `a_pick` of them. Returns the steps of the longest pick in both orders.
pub fn steps<B: Fair, E: Fair>(a_pick: usize) -> [usize; 2] {
    use Arrangement::{AtOnce, Early, Light, Settled};
    let mut longest = [0, 0];
    for arrangement in [Early, AtOnce, Settled, Light] {
        for (i, count) in [count::<B>, count::<E>].into_iter().enumerate() {
            let most = count(arrangement);
            let is_bounded = most.add.max(most.put) <= steps::DEPTH + 1
                && most.pick <= a_pick * (steps::DEPTH + 1)
                && most.tick.max(most.renice) <= 2;
            assert!(is_bounded, "{arrangement:?}: {most:?}");
            longest[i] = most.pick.max(longest[i]);
        }
    }
    longest
}

/// Checks that two hogs share the CPU by the weights of their nice values, to a hundredth.
pub fn shares_follow_weights<P: Fair>() {
    for (one, other) in [(0, 5), (-20, 0), (19, -5), (0, 0)] {
        let mut bench = Bench::<Adapter<P>>::running(&["one", "other"]);
        assert!(bench.set_priority(one));
        bench.tick_until("other");
        assert!(bench.set_priority(other));
        let had = bench.shares(200_000);
        let ratio = had["one"] as f64 / had["other"] as f64;
        let expected = weight(one) as f64 / weight(other) as f64;
        let apart = (ratio / expected - 1.0).abs();
        assert!(apart < 0.01, "{ratio} for {expected}");
    }
}

/// Runs chains of workers beside a victim. Each worker spawns the next, works and exits, so that
/// two or three tasks are ready. Calls `check` with the number of chains, the number of the 3,000
/// ticks that the victim had, and the number for which it waited first.
pub fn chains_of_spawns<P: Fair>(check: impl Fn(u64, u64, u64)) {
    const TICKS: u64 = 3000;
    for (chains, work) in [(1, 10), (1, 900), (2, 900), (2, 2500)] {
        let mut bench = Bench::<Adapter<P>>::running(&["victim", "first"]);
        bench.shares(20);
        bench.trace("until victim, while victim"); // it has run, and is ahead
        (1..chains).for_each(|_| _ = bench.spawn("link"));
        let (mut clock, mut ticks, mut had, mut waited) = (0, 0, 0, None);
        while ticks < TICKS {
            if bench.name() != "victim" {
                bench.spawn("link");
            }
            for _ in 0..work / 10 {
                bench.run(10);
                clock += 10;
                if clock % bench::TICK == 0 {
                    ticks += 1;
                    had += u64::from(bench.name() == "victim");
                    bench.interrupt();
                }
            }
            if bench.name() != "victim" {
                bench.block(); // exits
            } else if waited.is_none() {
                waited = Some(ticks);
            }
        }
        check(chains, had, waited.unwrap_or(TICKS));
    }
}

/// Checks that each of `n` equal hogs runs again within `bound(n)` ticks.
pub fn equals_run_again_within<P: Fair>(bound: impl Fn(u64) -> u64) {
    for n in 2..12 {
        let mut bench = Bench::<Adapter<P>>::new();
        let tasks: Vec<_> = (0..n).map(|_| bench.spawn("a hog")).collect();
        bench.block();
        let waited = bench.longest_wait(&tasks, 5_000);
        let bound = bound(n);
        assert!(waited <= bound, "{n} tasks: {waited} of {bound} ticks");
    }
}
