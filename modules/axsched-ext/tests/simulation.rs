//! What the model has for simulations: steps that are done again, latches, costs by load, and
//! runs without checks.

mod common;

use axsched_ext::model::{Config, Op, Program, Report, TaskReport, run};
use axsched_ext::{CfsScheduler, CfsTask, RrScheduler, RrTask, clock::VirtualClock};
use common::program;
use proptest::prelude::*;

fn rr(config: &Config, main: &Program) -> Report {
    run(config, main, |_| RrScheduler::<_, 5>::new(), RrTask::new).unwrap()
}

/// Main spawns these, waits for none, and lets go of them.
fn family(children: impl IntoIterator<Item = Program>) -> Program {
    let spawn = |(nth, child)| [Op::Spawn(child), Op::DropHandle(nth)];
    Program::new("main", children.into_iter().enumerate().flat_map(spawn))
}

#[test]
fn steps_that_are_done_again_are_as_if_written_out() {
    let body = [Op::Run(3), Op::Yield, Op::Run(4), Op::Sleep(15)];
    let again = |times| {
        let ops = body.iter().cloned().chain([Op::Again { steps: 4, times }]);
        Program::new("worker", ops.chain([Op::Run(2)]))
    };
    let written = |n| {
        let ops = body.iter().cycle().take(n * body.len()).cloned();
        Program::new("worker", ops.chain([Op::Run(2)]))
    };
    let other = Program::repeat("other", 9, &[Op::Run(7), Op::Yield]);
    let config = Config::default();
    for times in [0, 1, 30] {
        let short = family([again(times), other.clone()]);
        let long = family([written(times as usize + 1), other.clone()]);
        assert_eq!(rr(&config, &short), rr(&config, &long), "{times}");
        assert_eq!(short.serial_time(&config), long.serial_time(&config));
        let [short, long] = [again(times), written(times as usize + 1)];
        assert_eq!(short.steps().count(), long.steps().count());
        assert_eq!(short.longest_burst(&config), long.longest_burst(&config));
    }
}

#[test]
fn a_latch_lets_go_at_its_last_count() {
    let queue = 0;
    let counts = |name, units| Program::new(name, [Op::Run(units), Op::CountDown { queue, of: 3 }]);
    let main = family([counts("a", 5), counts("b", 50), counts("c", 500)]);
    let timeout = None;
    let wait = Op::Wait { queue, timeout };
    let main = Program::new("main", main.ops.iter().cloned().chain([wait]));
    let report = rr(&Config::default(), &main);
    let end = |name| report.task(name).unwrap().finished.unwrap();
    assert!(end("main") > end("c"), "main waits for the last");
    assert!(end("c") > end("b") && end("b") > end("a"));
    // It was picked when it had spawned them, and when the last had counted.
    assert!(report.task("main").unwrap().dispatches <= 3);
}

#[test]
fn a_pick_costs_by_how_many_are_ready() {
    let yields = |n: usize| {
        let one = Program::repeat("yielder", 1000, &[Op::Yield]);
        family(vec![one; n])
    };
    let took = |n, pick_cost_by_load: &[u64]| {
        let config = Config {
            tick_period: 1_000_000,
            pick_cost_by_load: pick_cost_by_load.to_vec(),
            ..Config::default()
        };
        let report = rr(&config, &yields(n));
        // What is left of a yield: the few steps at the start and the end.
        (report.makespan + 500) / 1000 / n as u64
    };
    let plain = took(1, &[]);
    assert_eq!(took(1, &[0, 10, 20]), plain, "alone");
    let [two, four, five, sixteen] = [2, 4, 5, 16].map(|n| took(n, &[0, 10, 20]) - took(n, &[]));
    assert_eq!([two, four, five, sixteen], [10, 20, 20, 20]);
}

fn times(report: &Report) -> (Vec<TaskReport>, u64, u64) {
    (report.tasks.clone(), report.switches, report.makespan)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_run_without_checks_is_the_same_run(main in program(), cpus in 1..4_usize) {
        let config = Config { cpus, on_time: VirtualClock::set, ..Config::default() };
        let unchecked = Config {
            is_checked: false,
            trace_events: 0,
            time_limit: Some(config_limit(&config, &main)),
            ..config.clone()
        };
        let cfs = |config: &Config| {
            run(config, &main, |_| CfsScheduler::<_, VirtualClock>::new(), CfsTask::new).map(|report| times(&report))
        };
        match (cfs(&config), cfs(&unchecked)) {
            (Ok(checked), Ok(unchecked)) => prop_assert_eq!(checked, unchecked),
            (checked, unchecked) => prop_assert_eq!(checked.is_ok(), unchecked.is_ok()),
        }
    }
}

/// As much time as a checked run has.
fn config_limit(config: &Config, main: &Program) -> u64 {
    8 * (main.serial_time(config) + 10 * config.tick_period)
}
