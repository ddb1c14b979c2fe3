//! PBG on several CPUs, in the model of `axtask`: no task is lost, doubled, run while it is still on a CPU
//! or where it may not; nobody idles beside a ready task; and of the ready planned tasks those
//! run that come first.

mod common;

use axsched_ext::balance::simulated_machine as connected;
use axsched_ext::balance::{Machine, SharedPerThread, SharedSource, SharedWherePreemptedStay};
use axsched_ext::clock::VirtualClock;
use axsched_ext::model::{
    Config, CpuMask, Failure, ModelTask, Op, Program, Report, Violation, run,
};
use axsched_ext::pbg::{ControlSource, FREE_YIELDS, PbgTask, PerThread, Status, Together};
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
    played_to_status::<S>(config, main, on).0
}

/// The same, and what PBG says of itself at the end.
fn played_to_status<S: SharedSource + 'static>(
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
        let played = match stay {
            true => played_by::<SharedWherePreemptedStay>(&config, &main, connected(cpus)),
            false => played(&config, &main, connected(cpus)),
        };
        passes(played, &config, &main)?;
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
        let report = played(&config, &main, connected(cpus)).unwrap();
        // A unit of work and one for the call of each yield. One of them has gc beside it both times, which
        // is pinned and yields as long as it cannot drop who has exited.
        let alone = 2 * 2_000;
        let named = (report.tasks.iter()).filter(|task| &*task.label.name == "yields");
        let soon = named.filter(|task| task.turnaround().unwrap() < alone + alone / 20);
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
    let (report, status) = played_to_status::<SharedPerThread>(&config, &main, connected(2));
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
        let (report, status) = played_to_status::<SharedPerThread>(&config, &main, connected(2));
        report.unwrap();
        assert_eq!((status.matched, status.demoted), (1, demoted), "{yields}");
    }
}

/// CPUs wait for the lock that another one holds for its call.
#[test]
fn calls_wait_for_the_lock_that_all_cpus_share() {
    let work: Vec<_> = (0..20).flat_map(|_| [Op::Run(5), Op::Yield]).collect();
    let spawns = (0..8).map(|_| Op::Spawn(Program::new("task", work.clone())));
    let joins = (0..8).flat_map(|n| [Op::Join(n), Op::DropHandle(n)]);
    let main = Program::new("main", spawns.chain(joins));
    let [none, some, more] = [0, 1, 4].map(|lock_held| {
        let config = Config {
            lock_held,
            // No tick comes: only calls take the lock.
            tick_period: 10_000,
            ..on_several(Config::default(), 4)
        };
        played(&config, &main, connected(4)).unwrap().makespan
    });
    assert!(none < some && some < more, "{none} {some} {more}");
}

/// What the model finds, of several thousand programs, on a machine that is not what it says.
fn found_with(faulty: fn(usize) -> Machine) -> Violation {
    let mut runner = TestRunner::deterministic();
    let strategy = (machine(), 2..=8usize, program());
    for _ in 0..5_000 {
        let (config, cpus, main) = strategy.new_tree(&mut runner).unwrap().current();
        let config = on_several(config, cpus);
        let config = Config {
            max_idle_beside: Some(two_interrupts(&config, 1)),
            ..config
        };
        if let Err(failure) = played(&config, &main, faulty(cpus)) {
            return failure.violation;
        }
    }
    panic!("nothing was found");
}

#[test]
fn a_kick_that_is_dropped_is_found() {
    let found = found_with(|cpus| Machine {
        interrupt: |_| {},
        ..connected(cpus)
    });
    assert!(matches!(found, Violation::IdleBeside { .. }), "{found}");
}

#[test]
fn an_affinity_that_is_ignored_is_found() {
    let found = found_with(|cpus| Machine {
        may_run: |_, _| true,
        ..connected(cpus)
    });
    assert!(matches!(found, Violation::WrongCpu { .. }), "{found}");
}

#[test]
fn a_task_that_is_not_held_while_it_is_left_is_found() {
    let found = found_with(|cpus| Machine {
        current: core::ptr::null,
        ..connected(cpus)
    });
    let is_it = matches!(
        found,
        Violation::StillOnCpu { .. } | Violation::NotReady { .. }
    );
    assert!(is_it, "{found}");
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
    let named = report
        .tasks
        .iter()
        .rev()
        .filter(|task| &*task.label.name == "task");
    let turnarounds = named.take(tasks).map(|task| task.turnaround().unwrap());
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
        let report = played(&config, &Program::new("main", ops), connected(cpus)).unwrap();
        let ratio = average(&report, lengths.len()) / shortest_first(&lengths, cpus);
        // 1.0003, and no less than 1.
        assert!((1.0..1.001).contains(&ratio), "{cpus} CPUs: {ratio}");
    }
}
