//! PBG on several CPUs, in the model of `axtask`: no task is lost, doubled, run while it is still on a CPU
//! or where it may not; nobody idles beside a ready task; and of the ready planned tasks those
//! run that come first.

mod common;

use axsched_ext::balance::simulated_machine as connected;
use axsched_ext::balance::{Machine, SharedPerThread, SharedSource, SharedWherePreemptedStay};
use axsched_ext::clock::VirtualClock;
use axsched_ext::model::{Config, Failure, ModelTask, Op, Program, Report, Violation, run};
use axsched_ext::pbg::{ControlSource, Mode, PbgTask, PerThread, Together};
use common::{machine, program, proptest_config};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

const MEASURE_START: u32 = 0;
const MEASURE_END: u32 = 1;
const START_PBG: u32 = 2;

fn call_pbg(what: u32) {
    let control = PerThread::control();
    match what {
        MEASURE_START => control.measure_start().unwrap(),
        MEASURE_END => drop(control.measure_end_by::<VirtualClock>().unwrap()),
        START_PBG => drop(control.start_pbg().unwrap()),
        _ => unreachable!("no such call"),
    }
}

fn played(config: &Config, main: &Program, on: Machine) -> Result<Report, Box<Failure>> {
    played_by::<SharedPerThread>(config, main, on)
}

/// The same, with what they share found by `S`.
fn played_by<S: SharedSource + 'static>(
    config: &Config,
    main: &Program,
    on: Machine,
) -> Result<Report, Box<Failure>> {
    PerThread::renew();
    SharedPerThread::renew();
    // SAFETY: they are new, and of this thread; only these schedulers find them, one for each CPU.
    unsafe { Together::<ModelTask, VirtualClock, PerThread, S>::connect(on) };
    let made = |_| Together::<ModelTask, VirtualClock, PerThread, S>::new();
    let report = run(config, main, made, PbgTask::new);
    PerThread::retire();
    report
}

fn passes(
    result: Result<Report, Box<Failure>>,
    config: &Config,
    main: &Program,
) -> Result<Report, TestCaseError> {
    result.map_err(|failure| TestCaseError::fail(format!("{failure}\n{config:?}\n{main:?}")))
}

fn on_several(config: Config, cpus: usize) -> Config {
    Config {
        cpus,
        stealing: true,
        // Whom the model takes to be in this queue may be gone.
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        on_time: VirtualClock::set,
        on_call: call_pbg,
        ..config
    }
}

/// An interrupt for who becomes ready, and one for who was left, each after the longest time for which
/// interrupts are off.
fn two_interrupts(config: &Config, delay: u64) -> u64 {
    let off = 4 * (config.call_cost + config.switch_cost);
    2 * (delay + off)
}

/// The program is measured, and then followed.
fn measured_and_followed(first: &Program, again: &Program) -> Program {
    let join = |n| [Op::Join(n), Op::DropHandle(n)];
    let ops = [Op::Call(MEASURE_START), Op::Spawn(first.clone())]
        .into_iter()
        .chain(join(0))
        .chain([
            Op::Call(MEASURE_END),
            Op::Call(START_PBG),
            Op::Spawn(again.clone()),
        ])
        .chain(join(1));
    Program::new("main", ops)
}

proptest! {
    #![proptest_config(proptest_config(300))]

    #[test]
    fn nobody_idles_beside_a_ready_task(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let config = Config {
            interrupts: |n| [Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % 11)],
            max_idle_beside: Some(two_interrupts(&config, 11)),
            ..config
        };
        passes(played(&config, &main, connected(cpus)), &config, &main)?;
    }

    #[test]
    fn an_interrupt_that_is_lost_costs_a_tick(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let tick = config.tick_period + two_interrupts(&config, 0);
        for interrupts in [(|_| [None, None]) as fn(u64) -> _, |n| [(n % 2 == 0).then_some(3), None]] {
            let config = Config {
                interrupts,
                max_idle_beside: Some(2 * tick),
                ..config.clone()
            };
            passes(played(&config, &main, connected(cpus)), &config, &main)?;
        }
    }

    #[test]
    fn who_is_preempted_stays_where_it_must(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let config = Config {
            preempted_stay: true,
            ..config
        };
        let played = played_by::<SharedWherePreemptedStay>(&config, &main, connected(cpus));
        passes(played, &config, &main)?;
    }

    #[test]
    fn any_program_is_measured_and_followed(
        config in machine(), cpus in 2..=8usize, first in program(), again in program(), same in any::<bool>(),
    ) {
        let again = if same { first.clone() } else { again };
        let main = measured_and_followed(&first, &again);
        let config = on_several(config, cpus);
        let config = Config {
            max_idle_beside: Some(two_interrupts(&config, 1)),
            ..config
        };
        passes(played(&config, &main, connected(cpus)), &config, &main)?;
    }
}
