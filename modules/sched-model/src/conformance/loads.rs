//! Loads: random ones for CPUs that share their work (see `sched-smp`), and the jobs of the app
//! `batch`.
//!
//! The random programs of the suite are short, so that many kinds of calls meet. Tests of
//! starvation need the opposite. They run few kinds of tasks that do the same for hundreds of
//! ticks, some in step with the ticks and some not quite.

use super::rng::Rng;
use crate::model::{Config, Op, Program};
use sched_core::clock::VirtualClock;

/// A timer tick of these loads, in time units. A call takes a thousandth of it.
pub const TICK: u64 = 10_000;

/// The jobs of the app `batch`: the time that each takes and the time at which it arrives, in
/// milliseconds. The flag between them is true if the job waits.
#[rustfmt::skip]
pub const BATCH: [(u64, bool, u64); 32] = [
    (11, false, 0), (83, true, 0), (647, false, 0), (33, false, 200),
    (252, false, 0), (13, true, 0), (98, false, 0), (5, false, 400),
    (38, false, 0), (285, true, 0), (15, false, 0), (115, false, 600),
    (6, false, 0), (43, true, 0), (338, false, 0), (17, false, 800),
    (133, false, 0), (7, true, 0), (53, false, 0), (405, false, 1000),
    (20, false, 0), (152, true, 0), (8, false, 0), (61, false, 1200),
    (469, false, 0), (23, true, 0), (181, false, 0), (9, false, 1400),
    (71, false, 0), (550, true, 0), (29, false, 0), (215, false, 1600),
];

/// The step of a task after each burst.
#[derive(Clone, Copy)]
enum Then {
    Computes,
    Yields,
    /// Sleeps for this number of time units.
    Sleeps(u64),
}

/// One round of a task, which it repeats: it runs for about `burst` time units.
#[derive(Clone, Copy)]
struct Habit {
    burst: u64,
    then: Then,
}

/// Returns the machine on which loads run, with `cpus` CPUs that share their work.
pub fn machine(cpus: usize) -> Config {
    Config {
        cpus,
        tick_period: TICK,
        call_cost: TICK / 1000,
        switch_cost: TICK / 500,
        stealing: cpus > 1,
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        on_time: VirtualClock::set,
        ..Config::default()
    }
}

/// Returns the program that starts `tasks` and ends.
pub fn beside_each_other(tasks: impl IntoIterator<Item = Program>) -> Program {
    let started = tasks.into_iter().enumerate();
    Program::new(
        "main",
        started.flat_map(|(n, task)| [Op::Spawn(task), Op::DropHandle(n)]),
    )
}

/// Returns a task that runs for `work` time units in bursts and does `then` after each. A burst is
/// `burst` time units long, give or take up to `jitter`.
pub fn in_bursts(work: u64, burst: u64, jitter: u64, then: &Op, seed: u64) -> Program {
    let mut rng = Rng(seed);
    let bursts = (work / burst).max(1);
    let ops = (0..bursts).flat_map(|_| {
        let length = burst.saturating_sub(jitter) + rng.below(2 * jitter + 1);
        [Op::Run(length.max(1)), then.clone()]
    });
    Program::new("task", ops)
}

/// Returns a load for `cpus` CPUs: 2 to 16 tasks that compute, yield and sleep, with up to `ticks` ticks of work each.
///
/// All tasks are alike, or there are two kinds, or each task has its own kind. The CPUs have
/// equally many, or not. The tasks are in step, or their bursts are off by up to a tick. The same
/// `seed` gives the same load.
pub fn random(seed: u64, cpus: usize, ticks: u64) -> Program {
    let mut rng = Rng(seed);
    let mut tasks = 2 + rng.below(15);
    if rng.one_in(3) {
        tasks = tasks.next_multiple_of(cpus as u64); // balanced
    }
    let jitter = if rng.one_in(2) { rng.below(TICK) } else { 0 };
    let kinds = [1, 2, 2, tasks][rng.below(4) as usize];
    let mut habits: Vec<_> = (0..kinds).map(|_| habit(&mut rng)).collect();
    // With two kinds there is either one task of the first beside all others, or equally many of
    // both.
    let lone = rng.one_in(2);
    if lone && kinds == 2 && rng.one_in(2) {
        // One task with long bursts is beside tasks with short ones.
        let yields = |tenths| Habit {
            burst: tenths * TICK / 10,
            then: Then::Yields,
        };
        habits = vec![yields(200 + rng.below(400)), yields(10 + rng.below(20))];
    }
    let of_kinds = (0..tasks).map(|n| match lone {
        true => n.min(kinds - 1),
        false => n % kinds,
    });
    let tasks: Vec<_> = of_kinds
        .map(|kind| {
            let Habit { burst, then } = habits[kind as usize];
            let (work, then) = match then {
                Then::Computes => (ticks * TICK, Op::Run(0)),
                Then::Yields => (ticks * TICK, Op::Yield),
                // The task takes as long as the others, if it can.
                Then::Sleeps(units) => (ticks * TICK * burst / (burst + units), Op::Sleep(units)),
            };
            in_bursts(work, burst, jitter.min(burst - 1), &then, rng.next())
        })
        .collect();
    beside_each_other(tasks)
}

/// Returns a habit whose burst is a number of tenths of a tick. A burst that ends with each tick
/// meets other tasks than a burst of another length.
fn habit(rng: &mut Rng) -> Habit {
    let tenths = [10, 30, 250, 600][rng.below(4) as usize];
    let burst = (3 + rng.below(tenths)) * TICK / 10;
    let then = match rng.below(5) {
        0 => Then::Computes,
        1 | 2 => Then::Yields,
        _ => Then::Sleeps((1 + rng.below(300)) * TICK / 10),
    };
    Habit { burst, then }
}
