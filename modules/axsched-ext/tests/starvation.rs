//! No ready task waits for longer than its policy promises on CPUs that share their work, in the scenes in which one
//! did, and in random loads. `docs/several-cpus.md` has these bounds as a table.

mod common;

use axsched_ext::balance::run_balanced;
use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::Load;
use axsched_ext::conformance::loads::{self, TICK};
use axsched_ext::event::Policy;
use axsched_ext::mlfq::Mlfq;
use axsched_ext::model::{Config, Line, MaxWait, ModelTask, Op, Program};
use axsched_ext::sjf::Sjf;
use axsched_ext::task::InitialState;
use axsched_ext::*;
use common::late_ticks;
use common::several::{Within, staying};

type T = ModelTask;
type C = VirtualClock;

/// The promise to each of n tasks, in ticks on one CPU and on several, and how many times the longest
/// burst of the task comes on top.
struct Bound {
    policy: &'static str,
    one_cpu: fn(u64) -> u64,
    several: fn(u64) -> u64,
    own_bursts: u64,
    /// The ticks that each task of a random load works at least: some times the bound.
    work: u64,
}

#[rustfmt::skip]
const BOUNDS: [Bound; 7] = [
    Bound { policy: "RR", one_cpu: |n| 5 * (n - 1), several: |n| 10 * n, own_bursts: 0, work: 300 },
    Bound { policy: "CFS", one_cpu: |n| (13 * (n - 1) / 2).min(6 * n), several: |n| 52 * n, own_bursts: 0, work: 300 },
    Bound { policy: "EEVDF", one_cpu: |n| 14 * n, several: |n| 14 * n, own_bursts: 0, work: 300 },
    Bound { policy: "SJF", one_cpu: |n| 2 * n, several: |n| 4 * n, own_bursts: 12, work: 1_200 },
    Bound { policy: "MLFQ", one_cpu: |n| 100 + 2 * n, several: |n| 100 + 4 * n, own_bursts: 0, work: 300 },
    Bound { policy: "DELEGATED", one_cpu: |n| 5 * (n - 1), several: |n| 10 * n, own_bursts: 0, work: 300 },
    Bound { policy: "COOP", one_cpu: |n| 10 * n + 5, several: |n| 20 * n + 10, own_bursts: 0, work: 300 },
];

fn bound_of<P: Policy>() -> &'static Bound {
    let bound = BOUNDS.iter().find(|bound| bound.policy == P::NAME);
    bound.expect("the policy has a bound")
}

/// Runs a load, checks each wait against the bound, and returns the longest wait as a part of it.
fn waits<P>(config: Config, main: &Program) -> f64
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    let bound = bound_of::<P>();
    let load = Load::of(main, &config);
    // `main` has ended. The `gc` are blocked for nearly all of the time, or look ten times a second.
    let gc = match config.line {
        Line::Axtask03 => 0,
        Line::AxTask06 => config.cpus as u64,
    };
    let tasks = main.tasks() as u64 - 1 + gc;
    let ticks = match config.cpus {
        1 => bound.one_cpu,
        _ => bound.several,
    };
    let time = late_ticks(&load, ticks(tasks)) + classes::SHORTEST;
    let max_wait = MaxWait {
        time: Some(time),
        own_bursts: bound.own_bursts,
        ..MaxWait::default()
    };
    let config = Config { max_wait, ..config };
    let report = run_balanced::<P>(&config, main)
        .unwrap_or_else(|failure| panic!("{}: {failure}\n{main:?}", P::NAME));
    let longest = report.tasks.iter().map(|task| task.max_wait).max();
    let bursts = main.ops.iter().map(|op| match op {
        Op::Spawn(task) => task.longest_burst(&config),
        _ => 0,
    });
    let own = bound.own_bursts * bursts.max().unwrap_or(0);
    longest.unwrap_or(0) as f64 / (time + own) as f64
}

fn yields(ticks: u64, tenths: u64, jitter: u64, seed: u64) -> Program {
    loads::in_bursts(ticks * TICK, tenths * TICK / 10, jitter, &Op::Yield, seed)
}

/// One task of long bursts beside shorter ones, all of which yield. A handover was a wake: the due
/// time began anew, and the long burst went from CPU to CPU for 24,548 ticks.
#[test]
fn sjf_long_burst_is_done_beside_short_ones() {
    for (long, short, others) in [(400, 21, 6), (400, 21, 8), (600, 20, 10)] {
        for jitter in [0, TICK] {
            let others = (0..others).map(|seed| yields(6_000, short, jitter, seed));
            let tasks = [yields(1_000, long, 0, 0)].into_iter().chain(others);
            waits::<Sjf<T, C>>(loads::machine(2), &loads::beside_each_other(tasks));
        }
    }
}

/// Tasks that run and sleep, all alike. Each handover came to a queue whose reset was far off.
#[test]
fn mlfq_resets_a_task_in_time_whatever_queue_it_waits_in() {
    for (tasks, runs, sleeps) in [(10, 22, 20), (14, 15, 3)] {
        for jitter in [0, TICK / 2, TICK] {
            let sleep = Op::Sleep(sleeps * TICK);
            let task = |seed| loads::in_bursts(2_000 * TICK, runs * TICK, jitter, &sleep, seed);
            let main = loads::beside_each_other((0..tasks).map(task));
            waits::<Mlfq<T, C, 100>>(loads::machine(2), &main);
        }
    }
}

fn random_loads<P>(cpus: &[usize], seeds: u64, times: u64)
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    for &cpus in cpus {
        let mut worst = (0.0, 0);
        for seed in 0..seeds {
            let config = loads::machine(cpus);
            let config = match seed % 4 {
                0 => Config {
                    line: Line::AxTask06,
                    ..config
                },
                3 => staying(config),
                _ => config,
            };
            let main = loads::random(seed, cpus, times * bound_of::<P>().work);
            let part = waits::<P>(config, &main);
            if part > worst.0 {
                worst = (part, seed);
            }
        }
        let (part, seed) = worst;
        let name = P::NAME;
        println!(
            "{name}: {seeds} loads on {cpus} CPUs; at most {part:.2} of the bound, with {seed}"
        );
    }
}

macro_rules! loads_under {
    // No bound in time: a task is never preempted.
    (fifo $scheduler:ty) => {};
    // It is not within the layer.
    (pbg $scheduler:ty) => {};
    ($module:ident $scheduler:ty) => {
        mod $module {
            use super::*;

            type Policy = <$scheduler as Within>::Policy;

            #[test]
            fn random_loads_are_within_the_bound() {
                random_loads::<Policy>(&[1, 2, 3, 4], 50, 1);
            }

            #[test]
            #[ignore = "slow without optimisation: make soak"]
            fn ten_thousand_loads_are_within_the_bound() {
                random_loads::<Policy>(&[2, 4], 10_000, 2);
            }
        }
    };
}

macro_rules! loads_under_each {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        $(loads_under!($module $scheduler);)*
    };
}
for_each_policy!(loads_under_each);
