//! IPIs in the model of `axtask`, which a scheduler asks for. They interrupt what a CPU is doing, arrive late, twice or
//! never, and change nothing else.

mod common;

use std::sync::Arc;

use axsched_ext::model::{
    Config, CpuMask, Failure, ModelTask, Op, Program, Report, Violation, interrupt, run,
};
use axsched_ext::{FifoScheduler, FifoTask};
use common::on_add::OnAdd;

/// Runs a program under FIFO, and interrupts the CPU `TO` whenever a task is added to its queue.
fn interrupting<const TO: usize>(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    let made = |cpu| OnAdd {
        scheduler: FifoScheduler::new(),
        on_add: move |_: &mut _, task: &Arc<FifoTask<ModelTask>>| {
            if cpu == TO && &*task.label().name != "gc" {
                interrupt(TO);
            }
        },
    };
    run(config, main, made, FifoTask::new)
}

/// Returns two CPUs that tick every 1,000 units, CPU 0 at 1,000 and CPU 1 at 1,500.
fn slow_ticks() -> Config {
    Config {
        cpus: 2,
        tick_period: 1_000,
        trace_events: 10_000,
        ..Config::default()
    }
}

/// Returns a main that spawns a first task on CPU 1 when that idles, and 40 units later a second one. It keeps no
/// handles, or `gc` would spin.
fn two_on_cpu_1() -> Program {
    let spawn = |handle, name, run: Option<Op>| {
        let spawned = Program::new(name, run);
        [Op::Spawn(spawned), Op::DropHandle(handle)]
    };
    let run = || Some(Op::Run(100));
    let mut ops = vec![Op::Run(50)];
    // Queues are chosen in turn: 0, 1, 0, 1.
    ops.extend(spawn(0, "nothing", None));
    ops.extend(spawn(1, "first", run()));
    ops.extend(spawn(2, "nothing", None));
    ops.push(Op::Run(40));
    ops.extend(spawn(3, "second", run()));
    ops.push(Op::Run(500));
    Program::new("main", ops)
}

fn interrupts_in(report: &Report) -> Vec<String> {
    let lines = report.trace.events.iter().map(ToString::to_string);
    lines.filter(|line| line.contains("interrupt")).collect()
}

#[test]
fn idle_cpu_picks_at_once_and_computing_one_goes_on_where_it_was() {
    let report = interrupting::<1>(&slow_ticks(), &two_on_cpu_1()).unwrap();
    assert_eq!(report.interrupts, 2);
    let [first, second] = ["first", "second"].map(|name| report.task(name).unwrap());
    let found = interrupts_in(&report);
    let at = |i: usize| found[i].split(' ').next().unwrap().parse::<u64>().unwrap();
    // The first hits idle, the second the first task, one unit after it was asked for.
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("c1 interrupt idle#"), "{found:?}");
    assert!(found[1].contains("c1 interrupt first#"), "{found:?}");
    assert_eq!((at(0), at(1)), (first.submitted + 1, second.submitted + 1));
    assert!(first.first_run.unwrap() <= at(0) + 1, "{first:?}");
    // A cut costs no time of computing: 100 units, and its exit.
    let computed = first.finished.unwrap() - first.first_run.unwrap();
    assert!((100..110).contains(&computed), "{computed}");
    assert!(second.first_run.unwrap() >= first.finished.unwrap());
}

#[test]
fn idle_cpu_waits_for_its_tick_without_ipis() {
    // There is no CPU 7, so no IPI is sent.
    let report = interrupting::<7>(&slow_ticks(), &two_on_cpu_1()).unwrap();
    assert_eq!(report.interrupts, 0);
    assert_eq!(report.task("first").unwrap().first_run, Some(1_500));
}

#[test]
fn lost_ipi_is_none_late_one_is_late_and_two_at_once_are_one() {
    let first_run = |interrupts| {
        let config = Config {
            interrupts,
            ..slow_ticks()
        };
        let report = interrupting::<1>(&config, &two_on_cpu_1()).unwrap();
        let first = report.task("first").unwrap();
        (
            first.first_run.unwrap() - first.submitted,
            interrupts_in(&report).len(),
        )
    };
    let (on_time, interrupts) = first_run(|_| [Some(1), None]);
    assert_eq!(interrupts, 2);
    assert_eq!(first_run(|_| [Some(31), None]), (on_time + 30, 2));
    assert_eq!(first_run(|_| [Some(1), Some(1)]), (on_time, 2));
    assert_eq!(first_run(|_| [Some(1), Some(9)]), (on_time, 4));
    let (at_the_tick, interrupts) = first_run(|_| [None, None]);
    assert!(at_the_tick > 1_000 && interrupts == 0, "{at_the_tick}");
    // One that is lost is asked for all the same; the next one shows the first its task.
    let (later, interrupts) = first_run(|n| [(n > 0).then_some(1), None]);
    assert!((40..60).contains(&later) && interrupts == 1, "{later}");
}

#[test]
fn cpu_with_interrupts_off_is_interrupted_afterwards() {
    // Main interrupts its own CPU, from within the call that spawns.
    let child = Program::new("child", [Op::Run(10)]);
    let config = Config {
        call_cost: 20,
        ..Config::default()
    };
    let main = Program::new("main", [Op::Spawn(child), Op::Run(100), Op::Join(0)]);
    let report = interrupting::<0>(&config, &main).unwrap();
    let found = interrupts_in(&report);
    assert_eq!(found.len(), 1);
    assert!(found[0].starts_with("20 c0 interrupt main#"), "{found:?}");
}

#[test]
fn idling_beside_a_ready_task_is_found_with_its_cpu_and_its_time() {
    let bounded = |bound| Config {
        max_idle_beside: Some(bound),
        ..slow_ticks()
    };
    let main = two_on_cpu_1();
    let failure = interrupting::<7>(&bounded(10), &main).unwrap_err();
    let Violation::IdleBeside {
        cpu,
        task,
        time,
        bound,
    } = &failure.violation
    else {
        panic!("{failure}");
    };
    assert_eq!((*cpu, &*task.name, *bound), (1, "nothing", 10));
    assert!(*time > 10);
    let said = failure.violation.to_string();
    assert!(said.contains("CPU 1 idled beside nothing#"), "{said}");
    // An idle CPU beside a task that may not run there is no fault.
    let pinned = [Op::Migrate(CpuMask::one(0)), Op::Run(3_000), Op::Run(1)];
    let main = Program::new("main", pinned);
    assert!(interrupting::<1>(&bounded(1_600), &main).is_ok());
}
