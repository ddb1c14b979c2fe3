//! PBG on several CPUs, in the model of `axtask`. No task is lost or doubled, runs while it is still on a CPU, or
//! runs where it may not. No CPU idles beside a ready task. The ready planned tasks that
//! come first in the plan run.

mod common;

use axsched_ext::balance::{
    Machine, SmpStateSource, ThreadSmpState, ThreadSmpStatePinned, simulated_machine as connected,
};
use axsched_ext::clock::VirtualClock;
use axsched_ext::model::{
    Config, CpuMask, Failure, Line, ModelTask, Op, Program, Report, Violation, run,
};
use axsched_ext::pbg::{
    About, Control, ControlSource, PbgTask, PerThread, SmpPbgScheduler, Status,
    UNPLANNED_YIELD_ALLOWANCE, stored,
};
use common::several::{
    MEASURE_END, MEASURE_START, START_PBG, each_fault_is_found, interleaved, interrupts_after,
    joined, named, on_several, passes_with, staying, ticking,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn played(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    played_on(config, main, connected(config.cpus)).0
}

fn passes(config: &Config, main: &Program) -> Result<(), TestCaseError> {
    passes_with(played(config, main), config, main)
}

/// Returns the report, and the status of PBG at the end.
fn played_on(
    config: &Config,
    main: &Program,
    on: Machine,
) -> (Result<Report, Box<Failure>>, Status) {
    let status = |control: &Control| control.status().unwrap();
    match config.preempted_stay {
        true => played_by::<ThreadSmpStatePinned, _>(config, main, on, status),
        false => played_by::<ThreadSmpState, _>(config, main, on, status),
    }
}

/// Returns the report, and what PBG tells at the end.
fn played_by<S: SmpStateSource + 'static, R>(
    config: &Config,
    main: &Program,
    on: Machine,
    tell: impl Fn(&Control) -> R,
) -> (Result<Report, Box<Failure>>, R) {
    PerThread::renew();
    ThreadSmpState::renew();
    // SAFETY: the control and the state are new and belong to this thread. Only these schedulers
    // use them, one for each CPU.
    unsafe { SmpPbgScheduler::<ModelTask, VirtualClock, PerThread, S>::connect(on) };
    let made = |_| SmpPbgScheduler::<ModelTask, VirtualClock, PerThread, S>::new();
    let report = run(config, main, made, PbgTask::new);
    let told = tell(PerThread::control());
    PerThread::retire();
    (report, told)
}

/// Returns the time of an IPI for a task that becomes ready, and one for a task that was left.
fn two_interrupts(config: &Config, delay: u64) -> u64 {
    interrupts_after(config, 2, delay)
}

/// Returns a program that measures `first` and replays `again`.
fn measured_and_followed(first: &Program, again: &Program) -> Program {
    let mut ops = vec![Op::Call(MEASURE_START), Op::Spawn(first.clone())];
    ops.extend(joined(0));
    ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
    ops.push(Op::Spawn(again.clone()));
    ops.extend(joined(1));
    Program::new("main", ops)
}

/// Returns a program that runs two programs beside each other, measures the second one twice and replays it. `main`,
/// which makes the calls, migrates from CPU to CPU.
fn measured_twice_on_the_move(
    beside: &Program,
    first: &Program,
    again: &Program,
    masks: &[u64],
) -> Program {
    let mut masks = masks.iter().map(|&mask| Op::Migrate(CpuMask(mask)));
    let mut moves = || masks.next().expect("as many as there are moves");
    let spawn = |program: &Program| Op::Spawn(program.clone());
    let mut ops = vec![spawn(beside), moves(), Op::Call(MEASURE_START), moves()];
    ops.extend([spawn(first), Op::Yield]);
    ops.extend(joined(1));
    ops.extend([Op::Call(MEASURE_END), moves(), spawn(beside)]);
    ops.extend([Op::Call(MEASURE_START), spawn(again), moves()]);
    ops.extend(joined(3));
    ops.extend([moves(), Op::Call(MEASURE_END), Op::Call(START_PBG), moves()]);
    ops.extend([spawn(again), spawn(first)]);
    ops.extend([0, 2, 4, 5].into_iter().flat_map(joined));
    Program::new("main", ops)
}

proptest! {
    #![proptest_config(proptest_config(300))]

    #[test]
    fn no_cpu_idles_beside_a_ready_task(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let mut config = interleaved(config, cpus);
        config.interrupts = |n| [Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % 11)];
        config.max_idle_beside = Some(two_interrupts(&config, 11));
        passes(&config, &main)?;
    }

    #[test]
    fn lost_ipi_costs_a_tick(config in machine(), cpus in 2..=8usize, main in program()) {
        let mut config = interleaved(config, cpus);
        let tick = config.tick_period + two_interrupts(&config, 0);
        config.max_idle_beside = Some(2 * tick);
        for interrupts in [(|_| [None, None]) as fn(u64) -> _, |n| [(n % 2 == 0).then_some(3), None]] {
            config.interrupts = interrupts;
            passes(&config, &main)?;
        }
    }

    #[test]
    fn preempted_task_stays_where_it_must(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = staying(interleaved(config, cpus));
        passes(&config, &main)?;
    }

    #[test]
    fn any_program_is_measured_and_followed(
        config in machine(), cpus in 2..=8usize, first in program(), again in program(), same in any::<bool>(),
    ) {
        let again = if same { first.clone() } else { again };
        let mut config = interleaved(config, cpus);
        config.max_idle_beside = Some(two_interrupts(&config, 1));
        passes(&config, &measured_and_followed(&first, &again))?;
    }

    #[test]
    fn any_two_are_measured_and_followed_by_a_main_that_migrates(
        config in machine(), cpus in 2..=8usize, programs in [program(), program(), program()],
        masks in prop::collection::vec(1..255u64, 6), stay in any::<bool>(), is_lost in any::<bool>(),
    ) {
        let [beside, first, again] = &programs;
        let mut config = interleaved(config, cpus);
        let two = two_interrupts(&config, 11);
        let idle_beside = if is_lost { 2 * config.tick_period + 2 * two } else { two };
        config.interrupts = match is_lost {
            true => |n| [(n % 2 == 0).then_some(3), None],
            false => |n| [Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % 11)],
        };
        config.max_idle_beside = (!stay).then_some(idle_beside);
        if stay {
            config = staying(config);
        }
        passes(&config, &measured_twice_on_the_move(beside, first, again, &masks))?;
    }
}

/// Ticks, timers and interrupts between CPUs preempt tasks. The record has the yields that the tasks
/// have called.
#[test]
fn preemption_is_no_yield() {
    for line in Line::ALL {
        for cpus in [2, 4, 8] {
            let config = Config {
                line,
                interrupts: |n| [Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % 11)],
                ..on_several(Config::default(), cpus)
            };
            let task = |n: u64| {
                let round = [Op::Run(60 + 7 * n), Op::Yield, Op::Run(9), Op::Sleep(3 * n)];
                Op::Spawn(Program::repeat("task", 5 + n as usize, &round))
            };
            let tasks = 2 * cpus as u64 + 1;
            let mut ops = vec![Op::Call(MEASURE_START)];
            ops.extend((0..tasks).map(task));
            ops.extend((0..tasks as usize).flat_map(joined));
            ops.push(Op::Call(MEASURE_END));
            let about = About {
                program: stored::Program::scaled("test", 1),
                frequency_hz: 1_000,
                cpus: cpus as u16,
                timing: stored::Timing::Counted,
            };
            let (report, profile) = played_by::<ThreadSmpState, _>(
                &config,
                &Program::new("main", ops),
                connected(cpus),
                |control| control.profile(&about).unwrap().unwrap(),
            );
            let trace = report.unwrap().trace;
            let mut preemptions = 0;
            for (n, task) in profile.tasks.iter().enumerate() {
                preemptions += task.figures.preemptions.total;
                assert_eq!(
                    task.figures.yields.total,
                    5 + n as u64,
                    "{line:?} {cpus}: {n}\n{trace}"
                );
            }
            assert!(preemptions > tasks, "{line:?} {cpus}: {preemptions}");
        }
    }
}

/// There are as many tasks as CPUs, which do little but yield, so that one that waits is in a queue only for a
/// moment. Each soon has a CPU of its own, in a measurement and outside a plan.
#[test]
fn task_that_yields_all_the_time_is_not_chased() {
    for cpus in [2, 4, 8] {
        let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
        let all = |from: usize| {
            let spawns = (0..cpus).map(|_| Op::Spawn(yields.clone()));
            spawns.chain((from..from + cpus).flat_map(joined))
        };
        let mut ops = vec![Op::Call(MEASURE_START)];
        ops.extend(all(0));
        ops.push(Op::Call(MEASURE_END));
        // The plan does not know these tasks: it is of another program.
        let short = |n| [Op::spawn("short", [Op::Run(9)]), Op::Join(n)];
        ops.push(Op::Call(MEASURE_START));
        ops.extend(short(cpus));
        ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
        ops.extend(short(cpus + 1));
        ops.extend(all(cpus + 2));
        let mut config = ticking(1_000, cpus);
        config.interrupts = |_| [Some(40), None];
        config.max_idle_beside = Some(two_interrupts(&config, 40));
        let report = played(&config, &Program::new("main", ops)).unwrap();
        // A unit of work and one for the call of each yield. One of them has gc beside it both times, which
        // is pinned and yields until it can drop the tasks that have exited.
        let alone = 2 * 2_000;
        let soon =
            named(&report, "yields").filter(|task| task.turnaround().unwrap() < alone + alone / 20);
        assert!(soon.count() >= 2 * (cpus - 1), "{cpus} CPUs");
    }
}

/// Two tasks take turns on one CPU beside one that idles, and each waits for a moment only. The CPUs are not
/// connected, so the idle CPU is not asked.
#[test]
fn idle_cpu_beside_now_one_and_now_another_is_found() {
    let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
    let short = Program::new("short", [Op::Run(1)]);
    let spawns = [&yields, &short, &yields, &short].map(|program| Op::Spawn(program.clone()));
    // While a handle of a short one is held gc has something to do.
    let joins = [1, 3, 0, 2].into_iter().flat_map(joined);
    let main = Program::new("main", spawns.into_iter().chain(joins));
    let config = Config {
        max_idle_beside: Some(100),
        ..ticking(10_000, 2)
    };
    PerThread::renew();
    ThreadSmpState::renew();
    let made = |_| SmpPbgScheduler::<ModelTask, VirtualClock, PerThread, ThreadSmpState>::new();
    let found = run(&config, &main, made, PbgTask::new).unwrap_err();
    PerThread::retire();
    let is_it = matches!(found.violation, Violation::IdleBeside { time: ..=200, .. });
    assert!(is_it, "{found}");
}

/// The root is the task that gives this command, and not the one that gave the command before.
#[test]
fn task_that_starts_the_replay_is_the_root() {
    let child = || Op::spawn("child", [Op::Run(10)]);
    let mut starts = vec![Op::Run(1_000), Op::Call(START_PBG)];
    starts.extend([child(), Op::Join(0), child(), Op::Join(1)]);
    let mut ops = vec![Op::spawn("starts", starts), Op::Call(MEASURE_START)];
    ops.extend([child(), child(), Op::Join(1), Op::Join(2)]);
    ops.extend([Op::Call(MEASURE_END), Op::Join(0)]);
    // No slice ends meanwhile: the scheduler has not looked at the task since the measurement began.
    let main = Program::new("main", ops);
    let (report, status) = played_on(&ticking(10_000, 2), &main, connected(2));
    report.unwrap();
    let found = (status.planned, status.matched, status.unplanned);
    assert_eq!(found, (2, 2, 0));
}

/// A yield that goes on by the plan is one of those that a planned task may make.
#[test]
fn rule_8_yields_count_on_one_cpu() {
    // No tick comes, so that only yields count.
    let yielder = |yields| Program::new("yielder", (0..yields).map(|_| Op::Yield));
    for (cpus, yields, demoted) in [
        (1, UNPLANNED_YIELD_ALLOWANCE, 0),
        (1, UNPLANNED_YIELD_ALLOWANCE + 1, 1),
        (2, 10 * UNPLANNED_YIELD_ALLOWANCE, 0),
    ] {
        let main = measured_and_followed(&yielder(0), &yielder(yields));
        let (report, status) = played_on(&ticking(1_000_000, cpus), &main, connected(cpus));
        report.unwrap();
        let found = (status.matched, status.demoted);
        assert_eq!(found, (1, demoted), "{yields} yields on {cpus}");
    }
}

#[test]
fn machine_that_lies_is_found() {
    each_fault_is_found(|mut config, main, on| {
        config.max_idle_beside = Some(two_interrupts(&config, 1));
        played_on(&config, main, on).0
    });
}

/// Returns steps that spawn tasks of these lengths, which yield after each `burst`, and wait for all.
fn all_at_once(lengths: &[u64], burst: u64, first_handle: usize) -> impl Iterator<Item = Op> {
    let steps = [Op::Run(burst), Op::Yield];
    let task = |&length: &u64| Program::repeat("task", (length / burst) as usize, &steps);
    let spawns: Vec<_> = lengths.iter().map(task).map(Op::Spawn).collect();
    let handles = first_handle..first_handle + lengths.len();
    spawns.into_iter().chain(handles.flat_map(joined))
}

/// Returns the least average turnaround of these on `cpus` CPUs: each CPU that is free takes the shortest that
/// is left (Conway, Maxwell and Miller, 1967).
fn shortest_first(lengths: &[u64], cpus: usize) -> f64 {
    let mut sorted = lengths.to_vec();
    sorted.sort_unstable();
    let mut free = vec![0; cpus];
    let ends = sorted.iter().map(|length| {
        let cpu = free.iter_mut().min().unwrap();
        *cpu += length;
        *cpu
    });
    ends.sum::<u64>() as f64 / lengths.len() as f64
}

/// Returns the average turnaround of the last `tasks` tasks.
fn average(report: &Report, tasks: usize) -> f64 {
    let named = named(report, "task").take(tasks);
    let turnarounds = named.map(|task| task.turnaround().unwrap());
    turnarounds.sum::<u64>() as f64 / tasks as f64
}

/// The program is measured on as many CPUs as it is replayed on.
#[test]
fn plan_is_shortest_first() {
    let mut runner = TestRunner::deterministic();
    let lengths = prop::collection::vec(1..33u64, 24);
    for cpus in [2, 4, 8].repeat(2) {
        let lengths: Vec<u64> = lengths.new_tree(&mut runner).unwrap().current();
        let lengths: Vec<u64> = lengths.iter().map(|length| length * 10_000).collect();
        let mut ops = vec![Op::Call(MEASURE_START)];
        ops.extend(all_at_once(&lengths, 5_000, 0));
        ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
        ops.extend(all_at_once(&lengths, 5_000, lengths.len()));
        let report = played(&ticking(10_000, cpus), &Program::new("main", ops)).unwrap();
        let ratio = average(&report, lengths.len()) / shortest_first(&lengths, cpus);
        // 1.0003, and no less than 1.
        assert!((1.0..1.001).contains(&ratio), "{cpus} CPUs: {ratio}");
    }
}
