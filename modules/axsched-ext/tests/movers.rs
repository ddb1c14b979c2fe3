//! The fair policies on several queues, where sleepers change queues at every wake.
//!
//! The machine is leaner than the model's, for long runs. It has queues, ticks, and tasks that run and sleep; calls
//! and switches take no time. As in `axtask`, spawns and wakes go to the queues in turn, CPUs tick one
//! after the other, and an idle CPU looks for work at its own tick only.
//!
//! **Fair share** is a share of the whole machine over a whole run, whatever the policy. The demand of a task is
//! the share that it would get alone. *Max-min*: the shares are equal, except that a task with a
//! smaller demand gets its demand. *Fluid*: at each moment all ready tasks have equal shares of the
//! CPUs, at most one each (generalised processor sharing). They differ for a sleeper: max-min makes up
//! for all the time that it slept, fluid for none. Each task is owed a share between the two, hogs and
//! sleepers alike.

// This file is long because it has the machine of these scenes, and the bounds that it holds them to.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use axsched_ext::cfs::{ExactCfsScheduler, GRANULARITY_TICKS, SLEEPER_CREDIT_TICKS};
use axsched_ext::clock::VirtualClock;
use axsched_ext::eevdf::{ExactEevdfScheduler, WAIT_TICKS};
use axsched_ext::{BaseScheduler, CfsScheduler, CfsTask, EevdfScheduler, EevdfTask};

/// A tick, in counts.
const TICK: u64 = 1000;

/// A policy of these scenes, and its promises.
trait Fair {
    type Task: Deref<Target = usize>;
    type Queue: BaseScheduler<SchedItem = Arc<Self::Task>> + Default;

    fn task(id: usize) -> Arc<Self::Task>;

    /// Returns the longest wait of each of n tasks on a queue, in ticks, if all queues have the same
    /// load.
    fn even_wait(n: u64) -> u64;
    /// Returns the longest wait of a hog among n tasks on a queue, in ticks, for any loads.
    fn hog_waits(n: u64) -> u64;
    /// Returns the longest wait of a mover among n tasks on a queue, in ticks, for any loads.
    fn mover_waits(n: u64) -> u64;

    /// A task gets the share that it is owed, up to this factor.
    const WITHIN: f64;
    /// Returns the share of sleepers that demand half a CPU each, beside one or two hogs.
    fn beside_few(periods: Periods) -> Owed;
}

/// CFS with the queue `Q`.
struct Cfs<Q = CfsScheduler<usize, VirtualClock>>(PhantomData<Q>);

impl<Q: BaseScheduler<SchedItem = Arc<CfsTask<usize>>> + Default> Fair for Cfs<Q> {
    type Task = CfsTask<usize>;
    type Queue = Q;
    const WITHIN: f64 = 1.1;

    fn task(id: usize) -> Arc<Self::Task> {
        Arc::new(CfsTask::new(id))
    }
    fn even_wait(n: u64) -> u64 {
        (2 * GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS + 1) * (n - 1)
    }
    fn hog_waits(n: u64) -> u64 {
        38 * n
    }
    fn mover_waits(n: u64) -> u64 {
        52 * n
    }
    fn beside_few(periods: Periods) -> Owed {
        // With random periods some sleep for so long that they lose more than their credit.
        match periods {
            Periods::Random => Owed::Between,
            _ => Owed::MaxMin,
        }
    }
}

/// EEVDF with the queue `Q`.
struct Eevdf<Q = EevdfScheduler<usize, VirtualClock>>(PhantomData<Q>);

impl<Q: BaseScheduler<SchedItem = Arc<EevdfTask<usize>>> + Default> Fair for Eevdf<Q> {
    type Task = EevdfTask<usize>;
    type Queue = Q;
    const WITHIN: f64 = 1.15;

    fn task(id: usize) -> Arc<Self::Task> {
        Arc::new(EevdfTask::new(id))
    }
    fn even_wait(n: u64) -> u64 {
        WAIT_TICKS * n
    }
    fn hog_waits(n: u64) -> u64 {
        WAIT_TICKS * n
    }
    fn mover_waits(n: u64) -> u64 {
        WAIT_TICKS * n
    }
    fn beside_few(_: Periods) -> Owed {
        // A sleeper is owed nothing for the time that it slept.
        Owed::Between
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Periods {
    /// All alike, and all at once.
    InStep,
    /// Within a quarter of the mean.
    Jittered,
    /// From nothing to twice the mean.
    Random,
}

#[derive(Clone, Copy, Debug)]
enum Work {
    /// Always ready; stays on its queue.
    Hog,
    /// Runs and sleeps in turn, for `on` and `off` counts on average.
    Sleeper { on: u64, off: u64, periods: Periods },
}

/// The time at which a sleeper wakes.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wakes {
    /// A timer wakes it at the next tick of the CPU that it went to sleep on.
    AtTicks,
    /// Another task wakes it at once, on any CPU.
    AtOnce,
}

/// The lengths of a task's runs and sleeps. They do not depend on the share that it gets.
struct Plan {
    work: Work,
    random: u64,
}

impl Plan {
    fn new(task: usize, work: Work) -> Self {
        let random = task as u64 * 7919 + 1;
        Self { work, random }
    }

    fn draw(&mut self, mean: u64, periods: Periods) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        let random = self.random >> 33;
        match periods {
            Periods::InStep => mean,
            Periods::Jittered => mean * 3 / 4 + random % (mean / 2),
            Periods::Random => 1 + random % (2 * mean),
        }
    }

    /// Returns the length of the next run; `None` means that it has no end.
    fn run(&mut self) -> Option<u64> {
        match self.work {
            Work::Hog => None,
            Work::Sleeper { on, periods, .. } => Some(self.draw(on, periods)),
        }
    }

    fn sleep(&mut self) -> u64 {
        match self.work {
            Work::Hog => unreachable!("a hog's run has no end"),
            Work::Sleeper { off, periods, .. } => self.draw(off, periods),
        }
    }
}

/// The tasks of a scene, and the queue that each starts on, unless it starts in turn.
type Scene = Vec<(Work, Option<usize>)>;

struct Task {
    plan: Plan,
    /// The rest of its run.
    left: Option<u64>,
    /// The time since when it waits, if it does.
    ready_since: Option<u64>,
    had: u64,
    longest_wait: u64,
}

struct Machine<P: Fair> {
    wakes: Wakes,
    now: u64,
    /// Counts the tasks that were dealt to the queues in turn.
    turn: usize,
    tasks: Vec<Task>,
    handles: Vec<Arc<P::Task>>,
    cpus: Vec<Cpu<P>>,
}

struct Cpu<P: Fair> {
    queue: P::Queue,
    current: Option<usize>,
    next_tick: u64,
    /// The tasks that went to sleep here, by the time to wake.
    wheel: BinaryHeap<Reverse<(u64, usize)>>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Wake,
    Sleep,
    Tick,
}

impl<P: Fair> Machine<P> {
    fn new(cpus: usize, wakes: Wakes, scene: &Scene) -> Self {
        VirtualClock::set(0);
        let cpu = |c| Cpu {
            queue: P::Queue::default(),
            current: None,
            next_tick: TICK + TICK * c as u64 / cpus as u64,
            wheel: BinaryHeap::new(),
        };
        let mut machine = Self {
            wakes,
            now: 0,
            turn: 0,
            tasks: Vec::new(),
            handles: Vec::new(),
            cpus: (0..cpus).map(cpu).collect(),
        };
        for (id, &(work, on)) in scene.iter().enumerate() {
            let mut plan = Plan::new(id, work);
            machine.tasks.push(Task {
                left: plan.run(),
                plan,
                ready_since: Some(0),
                had: 0,
                longest_wait: 0,
            });
            machine.handles.push(P::task(id));
            let on = on.unwrap_or_else(|| machine.next_queue());
            let handle = machine.handles[id].clone();
            machine.cpus[on].queue.add_task(handle);
        }
        (0..cpus).for_each(|c| machine.pick(c));
        machine
    }

    fn next_queue(&mut self) -> usize {
        self.turn += 1;
        self.turn % self.cpus.len()
    }

    fn pick(&mut self, c: usize) {
        let cpu = &mut self.cpus[c];
        cpu.current = cpu.queue.pick_next_task().map(|task| **task);
        if let Some(id) = cpu.current {
            self.waited(id);
        }
    }

    fn waited(&mut self, id: usize) {
        let task = &mut self.tasks[id];
        if let Some(since) = task.ready_since.take() {
            task.longest_wait = task.longest_wait.max(self.now - since);
        }
    }

    fn run(&mut self, ticks: u64) {
        while self.now < ticks * TICK {
            let (at, what, c) = (0..self.cpus.len())
                .map(|c| self.next(c))
                .min()
                .expect("there is a CPU");
            self.advance(at);
            match what {
                Next::Wake => self.wake(c),
                Next::Sleep => self.sleep(c),
                Next::Tick => self.tick(c),
            }
        }
        (0..self.tasks.len()).for_each(|id| self.waited(id));
    }

    /// Returns the next event of a CPU.
    fn next(&self, c: usize) -> (u64, Next, usize) {
        let cpu = &self.cpus[c];
        let mut next = (cpu.next_tick, Next::Tick, c);
        if let Some(left) = cpu.current.and_then(|id| self.tasks[id].left) {
            next = next.min((self.now + left, Next::Sleep, c));
        }
        if let Some(Reverse((at, _))) = cpu.wheel.peek()
            && self.wakes == Wakes::AtOnce
        {
            next = next.min((*at, Next::Wake, c));
        }
        next
    }

    fn advance(&mut self, to: u64) {
        for id in self.cpus.iter().filter_map(|cpu| cpu.current) {
            let task = &mut self.tasks[id];
            task.had += to - self.now;
            task.left = task.left.map(|left| left - (to - self.now));
        }
        self.now = to;
        VirtualClock::set(to);
    }

    /// Wakes the tasks of this CPU's timers that have expired.
    fn wake(&mut self, c: usize) {
        while let Some(&Reverse((at, id))) = self.cpus[c].wheel.peek()
            && at <= self.now
        {
            self.cpus[c].wheel.pop();
            let task = &mut self.tasks[id];
            task.left = task.plan.run();
            self.put(id, None);
        }
    }

    fn tick(&mut self, c: usize) {
        self.cpus[c].next_tick += TICK;
        self.wake(c);
        match self.cpus[c].current {
            None => self.pick(c),
            Some(id) => {
                if self.cpus[c].queue.task_tick(&self.handles[id]) {
                    self.put(id, Some(c));
                    self.pick(c);
                }
            }
        }
    }

    /// Wakes a task on the next queue in turn, or preempts it on this one.
    fn put(&mut self, id: usize, preempted_on: Option<usize>) {
        let on = preempted_on.unwrap_or_else(|| self.next_queue());
        self.tasks[id].ready_since = Some(self.now);
        let handle = self.handles[id].clone();
        let queue = &mut self.cpus[on].queue;
        queue.put_prev_task(handle, preempted_on.is_some());
    }

    fn sleep(&mut self, c: usize) {
        let id = self.cpus[c].current.expect("a run has ended");
        let until = self.now + self.tasks[id].plan.sleep();
        self.cpus[c].wheel.push(Reverse((until, id)));
        self.pick(c);
    }
}

/// Returns each task's share of a CPU in `ticks` ticks, as a fluid.
fn fluid(cpus: usize, wakes: Wakes, works: &[Work], ticks: u64) -> Vec<f64> {
    struct Flow {
        plan: Plan,
        /// The rest of its run, or the time at which it wakes.
        left: Result<f64, f64>,
        had: f64,
    }
    let flow = |(task, &work)| {
        let mut plan = Plan::new(task, work);
        let left = Ok(plan.run().map_or(f64::INFINITY, |run| run as f64));
        Flow {
            plan,
            left,
            had: 0.0,
        }
    };
    let mut flows: Vec<_> = works.iter().enumerate().map(flow).collect();
    let (mut now, end, tick) = (0.0, (ticks * TICK) as f64, TICK as f64);
    while now < end {
        let ready = flows.iter().filter(|flow| flow.left.is_ok()).count();
        let rate = (cpus as f64 / ready as f64).min(1.0);
        let event = |flow: &Flow| match flow.left {
            Ok(left) => now + left / rate,
            Err(at) => at,
        };
        let next = flows.iter().map(event).fold(end, f64::min);
        for flow in &mut flows {
            flow.left = match flow.left {
                Ok(left) => {
                    let part = (next - now) * rate;
                    flow.had += part;
                    if left - part > 1e-6 {
                        Ok(left - part)
                    } else {
                        let at = next + flow.plan.sleep() as f64;
                        match wakes {
                            Wakes::AtOnce => Err(at),
                            Wakes::AtTicks => Err((at / tick).ceil() * tick),
                        }
                    }
                }
                Err(at) if at > next => Err(at),
                Err(_) => Ok(flow.plan.run().map_or(f64::INFINITY, |run| run as f64)),
            };
        }
        now = next;
    }
    flows.iter().map(|flow| flow.had / end).collect()
}

/// Returns the most equal shares of `cpus` CPUs that give no task more than it demands.
fn max_min(cpus: usize, wants: &[f64]) -> Vec<f64> {
    let mut order: Vec<_> = (0..wants.len()).collect();
    order.sort_by(|&a, &b| wants[a].total_cmp(&wants[b]));
    let (mut shares, mut left) = (vec![0.0; wants.len()], cpus as f64);
    for (place, &task) in order.iter().enumerate() {
        shares[task] = wants[task].min(left / (wants.len() - place) as f64);
        left -= shares[task];
    }
    shares
}

#[test]
fn references_are_what_they_say() {
    assert_eq!(max_min(1, &[1.0, 0.1, 1.0]), [0.45, 0.1, 0.45]);
    assert_eq!(max_min(2, &[1.0, 1.0, 0.5, 1.0]), [0.5; 4]);
    assert_eq!(max_min(2, &[1.0, 0.5]), [1.0, 0.5]);
    let sleeper = Work::Sleeper {
        on: 1500,
        off: 1500,
        periods: Periods::InStep,
    };
    let close = |a: f64, b: f64| (a - b).abs() < 0.001;
    // Alone it sleeps one and a half ticks, and runs as long.
    assert!(close(fluid(1, Wakes::AtTicks, &[sleeper], 20_000)[0], 0.5));
    // Beside two hogs its run takes 4.5 ticks, and it wakes at the sixth.
    let works = [Work::Hog, Work::Hog, sleeper];
    assert!(close(fluid(1, Wakes::AtTicks, &works, 20_000)[2], 0.25));
    let hogs = fluid(2, Wakes::AtTicks, &[Work::Hog; 3], 100);
    assert!(close(hogs[1], 2.0 / 3.0));
}

const TICKS: u64 = 20_000;

/// The shares that a scene's tasks are owed, up to the factor that the policy promises.
#[derive(Clone, Copy)]
enum Owed {
    MaxMin,
    /// A share between fluid and max-min.
    Between,
}

/// Plays a scene of equally loaded queues, and returns the last task's part of its max-min share. Asserts that no
/// task waits for longer than on one queue with all the sleepers.
fn even<P: Fair>(
    cpus: usize,
    wakes: Wakes,
    hogs_a_queue: usize,
    sleepers: usize,
    sleeper: Work,
    owed: Owed,
) -> f64 {
    let mut scene = vec![(Work::Hog, None); hogs_a_queue * cpus];
    scene.extend(vec![(sleeper, None); sleepers]);
    let works: Vec<_> = scene.iter().map(|&(work, _)| work).collect();
    let wants = works.iter().map(|&work| fluid(1, wakes, &[work], TICKS)[0]);
    let max_min = max_min(cpus, &wants.collect::<Vec<_>>());
    let owed = match owed {
        Owed::MaxMin => max_min.clone(),
        Owed::Between => fluid(cpus, wakes, &works, TICKS),
    };
    let mut machine = Machine::<P>::new(cpus, wakes, &scene);
    machine.run(TICKS);
    let n = (hogs_a_queue + sleepers) as u64;
    let mut last = 0.0;
    for (id, task) in machine.tasks.iter().enumerate() {
        let share = task.had as f64 / (TICKS * TICK) as f64;
        let (least, most) = (owed[id].min(max_min[id]), owed[id].max(max_min[id]));
        let task_of = format!(
            "{cpus} queues, woken {wakes:?}, {hogs_a_queue} hogs on each, {sleepers} times {sleeper:?}: {:?}",
            works[id]
        );
        assert!(
            (least / P::WITHIN..most * P::WITHIN).contains(&share),
            "{task_of} has {share:.4}, owed {least:.4} to {most:.4}"
        );
        let waited = task.longest_wait / TICK;
        let bound = P::even_wait(n);
        assert!(
            waited <= bound,
            "{task_of} waits for {waited} of {bound} ticks"
        );
        last = share / max_min[id];
    }
    last
}

/// Plays a scene on 1, 2 and 4 queues: `hogs` hogs on each, and `sleepers` by the number of queues.
fn on_1_2_and_4_queues<P: Fair>(
    wakes: &[Wakes],
    hogs: usize,
    sleepers: fn(usize) -> usize,
    sleeper: Work,
    owed: Owed,
) {
    for &wakes in wakes {
        let play = |cpus| even::<P>(cpus, wakes, hogs, sleepers(cpus), sleeper, owed);
        let alone = play(1);
        for cpus in [2, 4] {
            let moving = play(cpus);
            assert!(
                (alone / P::WITHIN..alone * P::WITHIN).contains(&moving),
                "{hogs} hogs, {sleeper:?}, {wakes:?}: on one queue {alone:.2} of its max-min share, on {cpus} {moving:.2}"
            );
        }
    }
}

fn fair_shares<P: Fair>(periods: Periods) {
    let sleeper = |on, off| Work::Sleeper { on, off, periods };
    let half = sleeper(1500, 1500);
    let beside_few = P::beside_few(periods);
    let wakes = &[Wakes::AtTicks, Wakes::AtOnce];
    on_1_2_and_4_queues::<P>(wakes, 32, |_| 1, half, Owed::MaxMin);
    on_1_2_and_4_queues::<P>(wakes, 16, |cpus| 8 * cpus, half, Owed::MaxMin);
    on_1_2_and_4_queues::<P>(wakes, 2, |cpus| cpus, half, beside_few);
    on_1_2_and_4_queues::<P>(wakes, 1, |cpus| 2 * cpus, half, beside_few);
    for (on, off) in [(15_000, 15_000), (300, 700), (1500, 30_000)] {
        let sleepers = |cpus| 2 * cpus;
        on_1_2_and_4_queues::<P>(&wakes[..1], 4, sleepers, sleeper(on, off), Owed::Between);
    }
}

/// Plays scenes with hogs on the last queue only, or many there and one on the first. The movers work off what they owe
/// here on queues where virtual time goes faster. `longest` is the longest wait in the docs, in ticks for
/// each task of the queue.
fn lopsided_loads<P: Fair>(longest: f64) {
    let mut worst = 0.0_f64;
    for (cpus, wakes) in [(2, Wakes::AtTicks), (2, Wakes::AtOnce), (4, Wakes::AtOnce)] {
        for (elsewhere, here, movers) in [(0, 1, 8), (0, 1, 16), (0, 3, 16), (1, 1, 16), (1, 8, 8)]
        {
            const LENGTHS: [(u64, u64); 5] = [
                (300, 700),
                (600, 1500),
                (1500, 300),
                (1500, 1500),
                (1500, 4000),
            ];
            for (on, off) in LENGTHS {
                let periods = Periods::InStep;
                let mut scene = vec![(Work::Hog, Some(cpus - 1)); here];
                scene.extend(vec![(Work::Hog, Some(0)); elsewhere]);
                scene.extend(vec![(Work::Sleeper { on, off, periods }, None); movers]);
                let mut machine = Machine::<P>::new(cpus, wakes, &scene);
                machine.run(4000);
                let n = (here + movers) as u64;
                for (task, (work, _)) in machine.tasks.iter().zip(&scene) {
                    let waited = task.longest_wait / TICK;
                    let bound = match work {
                        Work::Hog => P::hog_waits(n),
                        Work::Sleeper { .. } => P::mover_waits(n),
                    };
                    assert!(
                        waited <= bound,
                        "{cpus} queues, woken {wakes:?}, {here} hogs, {elsewhere} elsewhere, {movers} movers of {on} and {off}: \
                         {work:?} waits for {waited} of {bound} ticks"
                    );
                    worst = worst.max(waited as f64 / n as f64);
                }
            }
        }
    }
    println!("the longest wait is {worst:.1} ticks for each task of the queue");
    assert!(
        (worst - longest).abs() < 0.05,
        "the docs have {longest}, found {worst}"
    );
}

/// Returns the longest wait, in ticks, of a hog on one of two queues, beside movers that do not block there. The
/// movers wake on that queue in turn, two a tick. They run between two ticks or around one, migrate while
/// they run, and sleep on the other queue, where a hog yields all the time.
fn wait_beside_migrants<P: Fair>(movers: usize, ticks: u64) -> u64 {
    const HOG: usize = usize::MAX;
    const YIELDER: usize = usize::MAX - 1;
    VirtualClock::set(0);
    let [mut here, mut there] = [(); 2].map(|()| P::Queue::default());
    here.add_task(P::task(HOG));
    there.add_task(P::task(YIELDER));
    (0..movers).for_each(|id| there.add_task(P::task(id)));
    let mut on = here.pick_next_task();
    let mut other = there.pick_next_task();
    let mut asleep: std::collections::VecDeque<Arc<P::Task>> = [].into();
    let (mut waits_since, mut longest) = (None, 0);
    for tick in 0..ticks {
        for phase in [0, 1, 2, TICK / 2, TICK - 2] {
            let now = tick * TICK + phase;
            VirtualClock::set(now);
            if phase == 0 {
                for (queue, current) in [(&mut here, &mut on), (&mut there, &mut other)] {
                    if let Some(running) = current.take_if(|running| queue.task_tick(running)) {
                        queue.put_prev_task(running, true);
                    }
                    *current = current.take().or_else(|| queue.pick_next_task());
                }
            }
            if phase == 1 {
                let woken = asleep.drain(..asleep.len().min(2));
                woken.for_each(|mover| here.put_prev_task(mover, false));
            }
            if (phase == 2 || phase == TICK - 2)
                && let Some(mover) = on.take_if(|running| ***running < movers)
            {
                there.put_prev_task(mover, false); // by the helper, which then exits
                on = here.pick_next_task();
            }
            while let Some(running) = other.take() {
                let yields = **running == YIELDER;
                if yields {
                    there.put_prev_task(running, false);
                } else {
                    asleep.push_back(running);
                }
                other = there.pick_next_task();
                if yields && other.as_ref().is_some_and(|next| ***next == YIELDER) {
                    break;
                }
            }
            if on.as_ref().is_some_and(|running| ***running == HOG) {
                waits_since = None;
            } else {
                longest = longest.max(now - *waits_since.get_or_insert(now));
            }
        }
    }
    longest / TICK
}

fn migrants<P: Fair>() {
    for movers in [3, 4, 6, 8, 12] {
        let wait = wait_beside_migrants::<P>(movers, 3_000);
        let bound = P::hog_waits(movers as u64 + 1);
        println!("{movers} migrants: a hog waits for {wait} ticks of {bound}");
        assert!(wait <= bound, "{movers} migrants: {wait} of {bound}");
    }
}

macro_rules! scenes_for {
    ($($tests:ident: $policy:ty, $exact:ty, $longest:literal;)*) => {$(
        mod $tests {
            use super::*;

            #[test]
            fn shares_are_fair() {
                for periods in [Periods::InStep, Periods::Jittered, Periods::Random] {
                    fair_shares::<$policy>(periods);
                }
            }

            #[test]
            fn no_task_starves_where_movers_come_from_faster_queues() {
                lopsided_loads::<$policy>($longest);
            }

            #[test]
            fn no_task_starves_where_movers_leave_by_migrating_while_they_run() {
                migrants::<$policy>();
                migrants::<$exact>();
            }
        }
    )*};
}

scenes_for! {
    cfs: Cfs, Cfs<ExactCfsScheduler<usize, VirtualClock>>, 8.7;
    eevdf: Eevdf, Eevdf<ExactEevdfScheduler<usize, VirtualClock>>, 2.4;
}
