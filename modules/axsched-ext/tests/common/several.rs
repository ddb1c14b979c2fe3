//! Helpers of the tests of several CPUs: the machine and steps of their programs, the calls of PBG, and machines with
//! a fault.

use axsched_ext::balance::{Machine, simulated_machine};
use axsched_ext::clock::VirtualClock;
use axsched_ext::delegated::{DelegatedScheduler, Outside};
use axsched_ext::event::{Adapter, Policy};
use axsched_ext::model::{Config, Failure, Line, Op, Program, Report, TaskReport, Violation};
use axsched_ext::pbg::{ControlSource, OnSlowReplay, PerThread};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::{machine, program};

// The calls of a program under PBG.
pub const MEASURE_START: u32 = 0;
pub const MEASURE_END: u32 = 1;
pub const START_PBG: u32 = 2;
pub const START_PBG_AND_KEEP: u32 = 3;

pub fn call_pbg(what: u32) {
    let control = PerThread::control();
    match what {
        MEASURE_START => control.measure_start().unwrap(),
        MEASURE_END => drop(control.measure_end_by::<VirtualClock>().unwrap()),
        START_PBG => drop(control.start_pbg().unwrap()),
        START_PBG_AND_KEEP => drop(control.start_pbg_with(OnSlowReplay::KeepPlan).unwrap()),
        _ => unreachable!("no such call"),
    }
}

/// Names the policy of a scheduler of one CPU.
pub trait Within {
    type Policy;
}

impl<P: Policy> Within for Adapter<P> {
    type Policy = P;
}

impl<T, C> Within for DelegatedScheduler<T, C> {
    type Policy = Outside<T>;
}

pub fn on_several(config: Config, cpus: usize) -> Config {
    Config {
        cpus,
        stealing: true,
        // A task that is in this queue for the model may be on its way to another one.
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        on_time: VirtualClock::set,
        on_call: call_pbg,
        ..config
    }
}

/// Returns the same on which other CPUs may act within two yields in ten.
pub fn interleaved(config: Config, cpus: usize) -> Config {
    Config {
        pick_delays: |n| (n.wrapping_mul(7_919) % 10).saturating_sub(7) * 3,
        ..on_several(config, cpus)
    }
}

/// Returns the machine as on riscv64, where a preempted task stays. On the newer line it need not.
pub fn staying(config: Config) -> Config {
    Config {
        line: Line::Axtask03,
        preempted_stay: true,
        ..config
    }
}

/// Returns the steps that wait for the n-th task and drop its handle.
pub fn joined(n: usize) -> [Op; 2] {
    [Op::Join(n), Op::DropHandle(n)]
}

/// Returns a machine of `cpus` CPUs that share their work, with ticks of `tick_period`.
pub fn ticking(tick_period: u64, cpus: usize) -> Config {
    let config = Config {
        tick_period,
        ..Config::default()
    };
    on_several(config, cpus)
}

/// Returns the steps that spawn these tasks and keep no handle.
pub fn started(tasks: impl IntoIterator<Item = Program>) -> impl Iterator<Item = Op> {
    let tasks = tasks.into_iter().enumerate();
    tasks.flat_map(|(n, task)| [Op::Spawn(task), Op::DropHandle(n)])
}

/// Returns the time of `interrupts` IPIs. Each arrives after `delay`, and after the longest time for which interrupts are off.
pub fn interrupts_after(config: &Config, interrupts: u64, delay: u64) -> u64 {
    interrupts * (delay + 4 * (config.call_cost + config.switch_cost))
}

/// Returns the program with a main that yields first, as other CPUs do not know of a queue before its first pick.
pub fn from_its_first_pick(main: &Program) -> Program {
    let ops = [Op::Yield].into_iter().chain(main.ops.iter().cloned());
    Program::new("main", ops)
}

pub fn passes_with(
    result: Result<Report, Box<Failure>>,
    config: &Config,
    main: &Program,
) -> Result<(), TestCaseError> {
    result
        .map(drop)
        .map_err(|failure| TestCaseError::fail(format!("{failure}\n{config:?}\n{main:?}")))
}

/// Returns the tasks of this name, the last one first.
pub fn named<'a>(report: &'a Report, name: &str) -> impl Iterator<Item = &'a TaskReport> {
    let tasks = report.tasks.iter().rev();
    tasks.filter(move |task| &*task.label.name == name)
}

/// Plays several thousand programs on a machine that lies, and returns the first violation.
pub fn found_with(
    faulty: fn(usize) -> Machine,
    play: impl Fn(Config, &Program, Machine) -> Result<Report, Box<Failure>>,
) -> Violation {
    let mut runner = TestRunner::deterministic();
    let strategy = (machine(), 2..=8usize, program());
    for _ in 0..5_000 {
        let (config, cpus, main) = strategy.new_tree(&mut runner).unwrap().current();
        if let Err(failure) = play(on_several(config, cpus), &main, faulty(cpus)) {
            return failure.violation;
        }
    }
    panic!("nothing was found");
}

/// Asserts that `play` finds each machine that lies, and by the right violation.
pub fn each_fault_is_found(
    play: impl Fn(Config, &Program, Machine) -> Result<Report, Box<Failure>>,
) {
    type Case = (&'static str, fn(usize) -> Machine, fn(&Violation) -> bool);
    let cases: [Case; 3] = [
        (
            "an interrupt that is dropped",
            |cpus| Machine {
                interrupt: |_| {},
                ..simulated_machine(cpus)
            },
            |found| matches!(found, Violation::IdleBeside { .. }),
        ),
        (
            "an affinity that is ignored",
            |cpus| Machine {
                may_run: |_, _| true,
                ..simulated_machine(cpus)
            },
            |found| matches!(found, Violation::WrongCpu { .. }),
        ),
        (
            "a task that is given away while it is being left",
            |cpus| Machine {
                current: std::ptr::null,
                ..simulated_machine(cpus)
            },
            |found| {
                matches!(
                    found,
                    Violation::StillOnCpu { .. } | Violation::NotReady { .. }
                )
            },
        ),
    ];
    for (fault, faulty, is_it) in cases {
        let found = found_with(faulty, &play);
        assert!(is_it(&found), "{fault}: {found}");
    }
}
