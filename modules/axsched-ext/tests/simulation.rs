//! The parts of the model for simulations: repeated steps, latches, costs by load, logs, and runs without checks.

mod common;

use axsched_ext::model::{Config, Logged, Op, Program, Report, TaskId, TaskReport, run};
use axsched_ext::{CfsScheduler, CfsTask, RrScheduler, RrTask, clock::VirtualClock};
use common::several::started;
use common::{assert_golden, program};
use proptest::prelude::*;

fn rr(config: &Config, main: &Program) -> Report {
    run(config, main, |_| RrScheduler::<_, 5>::new(), RrTask::new).unwrap()
}

/// Returns a main that spawns these, waits for none, and keeps no handle.
fn family(children: impl IntoIterator<Item = Program>) -> Program {
    Program::new("main", started(children))
}

#[test]
fn repeated_steps_are_as_if_written_out() {
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
        // Going back is a step of its own, which takes no time.
        let played = |main| Report {
            steps: 0,
            ..rr(&config, main)
        };
        assert_eq!(played(&short), played(&long), "{times}");
        assert_eq!(short.serial_time(&config), long.serial_time(&config));
        let [short, long] = [again(times), written(times as usize + 1)];
        assert_eq!(short.steps().count(), long.steps().count());
        assert_eq!(short.longest_burst(&config), long.longest_burst(&config));
    }
}

#[test]
fn latch_opens_at_its_last_count() {
    let queue = 0;
    let counts = |name, units| Program::new(name, [Op::Run(units), Op::CountDown { queue, of: 3 }]);
    let main = family([counts("a", 5), counts("b", 50), counts("c", 500)]);
    let main = Program::new("main", main.ops.iter().cloned().chain([Op::wait(queue)]));
    let report = rr(&Config::default(), &main);
    let end = |name| report.task(name).unwrap().finished.unwrap();
    assert!(end("main") > end("c"), "main waits for the last");
    assert!(end("c") > end("b") && end("b") > end("a"));
    // It was picked when it had spawned them, and when the last had counted.
    assert!(report.task("main").unwrap().dispatches <= 3);
}

#[test]
fn pick_costs_by_the_number_of_ready_tasks() {
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
        // The few steps at the start and the end are rounded off.
        (report.makespan + 500) / 1000 / n as u64
    };
    let plain = took(1, &[]);
    assert_eq!(took(1, &[0, 10, 20]), plain, "alone");
    let [two, four, five, sixteen] = [2, 4, 5, 16].map(|n| took(n, &[0, 10, 20]) - took(n, &[]));
    assert_eq!([two, four, five, sixteen], [10, 20, 20, 20]);
}

#[test]
fn log_has_every_switch_and_wake() {
    let config = Config {
        log_records: 100,
        ..Config::with_cpus(2)
    };
    let a = Program::new("a", [Op::Run(3), Op::Yield, Op::Sleep(5)]);
    let log = rr(&config, &family([a])).log;
    // Its yield is none, as no other task is there. Its wake goes into the queue of CPU 1, which looks at its tick.
    let records = log.records.iter().map(|record| format!("{record:?}\n"));
    assert_golden("log", &records.collect::<String>());
    assert_eq!(log.lost, 0);
}

/// Returns each stay of a task on a CPU, and its length.
fn stays(report: &Report, cpus: usize) -> Vec<(TaskId, u64)> {
    let mut current: Vec<_> = report.log.idle.iter().map(|&idle| (idle, 0)).collect();
    current[0].0 = TaskId::MAIN;
    assert_eq!(current.len(), cpus);
    let mut stays = Vec::new();
    for record in &report.log.records {
        if let Logged::Switched(_) = record.what {
            let next = (record.task(), record.time);
            let (task, since) = std::mem::replace(&mut current[record.cpu()], next);
            stays.push((task, record.time - since));
        }
    }
    stays
}

fn times(report: &Report) -> (Vec<TaskReport>, u64, u64) {
    (report.tasks.clone(), report.switches, report.makespan)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn log_has_each_tasks_time(main in program(), cpus in 1..5_usize, few in 0..40_usize) {
        let of = |log_records| {
            rr(&Config { cpus, log_records, stealing: true, ..Config::default() }, &main)
        };
        let [whole, cut, none] = [usize::MAX, few, 0].map(of);
        prop_assert_eq!(times(&whole), times(&none));
        prop_assert_eq!(&none.log.records, &[]);
        let records = &whole.log.records;
        prop_assert_eq!(&cut.log.records[..], &records[..few.min(records.len())]);
        if few > 0 {
            prop_assert_eq!(cut.log.lost as usize, records.len().saturating_sub(few));
        }
        prop_assert!(records.is_sorted_by_key(|record| record.time));
        let stays = stays(&whole, cpus);
        prop_assert_eq!(stays.len() as u64, whole.switches);
        for task in &whole.tasks {
            let of_task = stays.iter().filter(|(id, _)| *id == task.label.id);
            let sum: u64 = of_task.map(|(_, time)| time).sum();
            prop_assert_eq!(sum, task.run_time, "{}", task.label);
        }
    }

    #[test]
    fn run_without_checks_is_the_same_run(main in program(), cpus in 1..4_usize) {
        let config = Config { cpus, on_time: VirtualClock::set, ..Config::default() };
        let unchecked = Config {
            is_checked: false,
            trace_events: 0,
            // As in a checked run.
            time_limit: Some(8 * (main.serial_time(&config) + 10 * config.tick_period)),
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
