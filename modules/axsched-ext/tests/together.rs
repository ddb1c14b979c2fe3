//! PBG on several CPUs, in the model of `axtask`: no task is lost, doubled, run while it is still on a CPU
//! or where it may not; nobody idles beside a ready task; and of the ready planned tasks those
//! run that come first.

mod common;

use axsched_ext::balance::{
    Machine, SharedPerThread, SharedSource, SharedWherePreemptedStay,
    simulated_machine as connected,
};
use axsched_ext::clock::VirtualClock;
use axsched_ext::model::{
    Config, CpuMask, Failure, ModelTask, Op, Program, Report, Violation, run,
};
use axsched_ext::pbg::{ControlSource, FREE_YIELDS, PbgTask, PerThread, Status, Together};
use common::several::{
    MEASURE_END, MEASURE_START, START_PBG, each_fault_is_found, interrupts_after, named,
    on_several, passes_with,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

fn played(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    played_to_status(config, main, connected(config.cpus)).0
}

fn passes(config: &Config, main: &Program) -> Result<(), TestCaseError> {
    passes_with(played(config, main), config, main)
}

/// The report, and what PBG says of itself at the end.
fn played_to_status(
    config: &Config,
    main: &Program,
    on: Machine,
) -> (Result<Report, Box<Failure>>, Status) {
    match config.preempted_stay {
        true => played_by::<SharedWherePreemptedStay>(config, main, on),
        false => played_by::<SharedPerThread>(config, main, on),
    }
}

/// The same, with what they share found by `S`.
fn played_by<S: SharedSource + 'static>(
    config: &Config,
    main: &Program,
    on: Machine,
) -> (Result<Report, Box<Failure>>, Status) {
    PerThread::renew();
    SharedPerThread::renew();
    // SAFETY: they are new, and of this thread; only these schedulers find them, one for each CPU.
    unsafe { Together::<ModelTask, VirtualClock, PerThread, S>::connect(on) };
    let made = |_| Together::<ModelTask, VirtualClock, PerThread, S>::new();
    let report = run(config, main, made, PbgTask::new);
    let status = PerThread::control().status().unwrap();
    PerThread::retire();
    (report, status)
}

/// An interrupt for who becomes ready, and one for who was left.
fn two_interrupts(config: &Config, delay: u64) -> u64 {
    interrupts_after(config, 2, delay)
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
        passes(&config, &main)?;
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
            passes(&config, &main)?;
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
        passes(&config, &main)?;
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
        passes(&config, &main)?;
    }
}

/// Two programs beside each other, of which the second is measured twice and followed, while `main`,
/// who makes the calls, goes from CPU to CPU.
fn measured_twice_on_the_move(
    beside: &Program,
    first: &Program,
    again: &Program,
    masks: &[u64],
) -> Program {
    let mut masks = masks.iter().map(|&mask| Op::Migrate(CpuMask(mask)));
    let mut moves = || masks.next().expect("as many as there are moves");
    let join = |n| [Op::Join(n), Op::DropHandle(n)];
    let mut ops = vec![
        Op::Spawn(beside.clone()),
        moves(),
        Op::Call(MEASURE_START),
        moves(),
    ];
    ops.extend([Op::Spawn(first.clone()), Op::Yield]);
    ops.extend(join(1));
    ops.extend([Op::Call(MEASURE_END), moves(), Op::Spawn(beside.clone())]);
    ops.extend([Op::Call(MEASURE_START), Op::Spawn(again.clone()), moves()]);
    ops.extend(join(3));
    ops.extend([moves(), Op::Call(MEASURE_END), Op::Call(START_PBG), moves()]);
    ops.extend([Op::Spawn(again.clone()), Op::Spawn(first.clone())]);
    ops.extend([0, 2, 4, 5].into_iter().flat_map(join));
    Program::new("main", ops)
}

proptest! {
    #![proptest_config(proptest_config(300))]

    #[test]
    fn any_two_are_measured_and_followed_by_one_who_moves(
        config in machine(), cpus in 2..=8usize, programs in [program(), program(), program()],
        masks in prop::collection::vec(1..255u64, 6), stay in any::<bool>(), is_lost in any::<bool>(),
    ) {
        let [beside, first, again] = &programs;
        let main = measured_twice_on_the_move(beside, first, again, &masks);
        let config = on_several(config, cpus);
        let two = two_interrupts(&config, 11);
        let idle_beside = if is_lost { 2 * config.tick_period + 2 * two } else { two };
        let config = Config {
            interrupts: match is_lost {
                true => |n| [(n % 2 == 0).then_some(3), None],
                false => |n| [Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % 11)],
            },
            max_idle_beside: (!stay).then_some(idle_beside),
            preempted_stay: stay,
            ..config
        };
        passes(&config, &main)?;
    }
}

/// Tasks that do little but yield, as many as there are CPUs, so that whoever waits is in a queue only
/// for a moment: each soon has a CPU of its own, in a measurement and outside a plan.
#[test]
fn who_yields_all_the_time_is_not_chased() {
    for cpus in [2, 4, 8] {
        let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
        let all = |from: usize| {
            let spawns = (0..cpus).map(|_| Op::Spawn(yields.clone()));
            let joins = (from..from + cpus).flat_map(|n| [Op::Join(n), Op::DropHandle(n)]);
            spawns.chain(joins)
        };
        let mut ops = vec![Op::Call(MEASURE_START)];
        ops.extend(all(0));
        ops.push(Op::Call(MEASURE_END));
        // Of no plan are those of this program: what is measured is another.
        let short = |n| [Op::Spawn(Program::new("short", [Op::Run(9)])), Op::Join(n)];
        ops.push(Op::Call(MEASURE_START));
        ops.extend(short(cpus));
        ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
        ops.extend(short(cpus + 1));
        ops.extend(all(cpus + 2));
        let main = Program::new("main", ops);
        let config = Config {
            tick_period: 1_000,
            interrupts: |_| [Some(40), None],
            ..on_several(Config::default(), cpus)
        };
        let config = Config {
            max_idle_beside: Some(two_interrupts(&config, 40)),
            ..config
        };
        let report = played(&config, &main).unwrap();
        // A unit of work and one for the call of each yield. One of them has gc beside it both times, which
        // is pinned and yields as long as it cannot drop who has exited.
        let alone = 2 * 2_000;
        let soon =
            named(&report, "yields").filter(|task| task.turnaround().unwrap() < alone + alone / 20);
        assert!(soon.count() >= 2 * (cpus - 1), "{cpus} CPUs");
    }
}

/// Two tasks take turns on one CPU beside one that idles, and each waits for a moment only. Of CPUs that are
/// not connected: nobody asks the one that idles.
#[test]
fn an_idle_cpu_beside_now_one_and_now_another_is_found() {
    let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
    let short = Program::new("short", [Op::Run(1)]);
    let spawns = [&yields, &short, &yields, &short].map(|program| Op::Spawn(program.clone()));
    // As long as somebody holds a short one's handle gc has something to do.
    let joins = [1, 3, 0, 2].map(|n| [Op::Join(n), Op::DropHandle(n)]);
    let main = Program::new(
        "main",
        spawns.into_iter().chain(joins.into_iter().flatten()),
    );
    let config = Config {
        tick_period: 10_000,
        max_idle_beside: Some(100),
        ..on_several(Config::default(), 2)
    };
    PerThread::renew();
    SharedPerThread::renew();
    let made = |_| Together::<ModelTask, VirtualClock, PerThread, SharedPerThread>::new();
    let found = run(&config, &main, made, PbgTask::new).unwrap_err();
    PerThread::retire();
    let is_it = matches!(found.violation, Violation::IdleBeside { time: ..=200, .. });
    assert!(is_it, "{found}");
}

/// Whoever gives the command is the root, and not who gave the one before.
#[test]
fn who_starts_the_replay_is_the_root() {
    // No slice ends meanwhile: who starts it has not been looked at since the measurement began.
    let config = Config {
        tick_period: 10_000,
        ..Config::default()
    };
    let config = on_several(config, 2);
    let child = || Op::Spawn(Program::new("child", [Op::Run(10)]));
    let starts = [
        Op::Run(1_000),
        Op::Call(START_PBG),
        child(),
        Op::Join(0),
        child(),
        Op::Join(1),
    ];
    let ops = [
        Op::Spawn(Program::new("starts", starts)),
        Op::Call(MEASURE_START),
        child(),
        child(),
        Op::Join(1),
        Op::Join(2),
        Op::Call(MEASURE_END),
        Op::Join(0),
    ];
    let main = Program::new("main", ops);
    let (report, status) = played_to_status(&config, &main, connected(2));
    report.unwrap();
    let found = (status.planned, status.matched, status.unplanned);
    assert_eq!(found, (2, 2, 0));
}

/// Rule 8: a yield that goes on by the plan is one of those that a planned task may make.
#[test]
fn who_yields_more_than_it_may_is_demoted() {
    // No tick comes, so that nothing but yields is counted.
    let config = Config {
        tick_period: 1_000_000,
        ..Config::default()
    };
    let config = on_several(config, 2);
    let yielder = |yields| Program::new("yielder", (0..yields).map(|_| Op::Yield));
    for (yields, demoted) in [(FREE_YIELDS, 0), (FREE_YIELDS + 1, 1)] {
        let main = measured_and_followed(&yielder(0), &yielder(yields));
        let (report, status) = played_to_status(&config, &main, connected(2));
        report.unwrap();
        assert_eq!((status.matched, status.demoted), (1, demoted), "{yields}");
    }
}

#[test]
fn a_machine_that_is_not_what_it_says_is_found() {
    each_fault_is_found(|config, main, on| {
        let config = Config {
            max_idle_beside: Some(two_interrupts(&config, 1)),
            ..config
        };
        played_to_status(&config, main, on).0
    });
}

/// Main spawns tasks of these lengths, which yield after each unit of `burst`, and waits for all.
fn all_at_once(lengths: &[u64], burst: u64, first_handle: usize) -> Vec<Op> {
    let task = |&length: &u64| {
        Program::repeat(
            "task",
            (length / burst) as usize,
            &[Op::Run(burst), Op::Yield],
        )
    };
    let spawns = lengths.iter().map(task).map(Op::Spawn);
    let handles = first_handle..first_handle + lengths.len();
    let joins = handles.flat_map(|n| [Op::Join(n), Op::DropHandle(n)]);
    spawns.chain(joins).collect()
}

/// The least that the average turnaround of these can be on so many CPUs: each CPU that is free takes
/// the shortest that is left (Conway, Maxwell and Miller, 1967).
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

/// The average turnaround of the last `tasks` tasks.
fn average(report: &Report, tasks: usize) -> f64 {
    let named = named(report, "task").take(tasks);
    let turnarounds = named.map(|task| task.turnaround().unwrap());
    turnarounds.sum::<u64>() as f64 / tasks as f64
}

/// Measured on as many CPUs as they are followed on.
#[test]
fn the_plan_is_shortest_first() {
    let mut runner = TestRunner::deterministic();
    let lengths = prop::collection::vec(1..33u64, 24);
    for cpus in [2, 4, 8].repeat(2) {
        let lengths: Vec<u64> = lengths.new_tree(&mut runner).unwrap().current();
        let lengths: Vec<u64> = lengths.iter().map(|length| length * 10_000).collect();
        let config = on_several(
            Config {
                tick_period: 10_000,
                preempt: true,
                ..Config::default()
            },
            cpus,
        );
        let mut ops = vec![Op::Call(MEASURE_START)];
        ops.extend(all_at_once(&lengths, 5_000, 0));
        ops.extend([Op::Call(MEASURE_END), Op::Call(START_PBG)]);
        ops.extend(all_at_once(&lengths, 5_000, lengths.len()));
        let report = played(&config, &Program::new("main", ops)).unwrap();
        let ratio = average(&report, lengths.len()) / shortest_first(&lengths, cpus);
        // 1.0003, and no less than 1.
        assert!((1.0..1.001).contains(&ratio), "{cpus} CPUs: {ratio}");
    }
}
