//! The layer that balances several CPUs, in the model of `axtask`: nobody idles beside a ready
//! task for longer than an interrupt takes for each CPU, whatever programs do; no task is lost,
//! doubled, run while it is still on a CPU or where it may not; and each rule is missed if it is
//! not kept.

mod common;

use axsched_ext::balance::{
    Balanced, Machine, SharedPerThread, SharedSource, run_balanced, simulated_machine as connected,
};
use axsched_ext::clock::VirtualClock;
use axsched_ext::event::Policy;
use axsched_ext::fifo::Fifo;
use axsched_ext::model::{
    Config, CpuMask, Failure, ModelTask, Op, Program, Report, Violation, run,
};
use axsched_ext::rr::{Rr, SLICE_TICKS};
use axsched_ext::task::{InitialState, Task};
use axsched_ext::*;
use common::several::{
    Within, each_fault_is_found, found_with, from_its_first_pick, interrupts_after, named,
    on_several, passes_with,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;

type FifoPolicy = Fifo<ModelTask>;
type RrPolicy = Rr<ModelTask, SLICE_TICKS>;

type T = ModelTask;
type C = VirtualClock;

/// `$call` under every policy but PBG, which plans for one CPU.
macro_rules! under {
    ($call:ident($($argument:expr),*) pbg $scheduler:ty) => {};
    ($call:ident($($argument:expr),*) $module:ident $scheduler:ty) => {
        $call::<<$scheduler as Within>::Policy>($($argument),*)?
    };
}
macro_rules! under_each {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        fn passes_under_each(config: &Config, main: &Program) -> Result<(), TestCaseError> {
            $(under!(passes(config, main) $module $scheduler);)*
            Ok(())
        }
    };
}
for_each_policy!(under_each);

fn balanced<P>(config: &Config, main: &Program, on: Machine) -> Result<Report, Box<Failure>>
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    // SAFETY: only these schedulers share it, one for each CPU, and all are of one type.
    unsafe { SharedPerThread::renew().connect(on) };
    let made = |_| Balanced::<P, SharedPerThread>::new();
    run(config, main, made, Task::<ModelTask, P::State>::new)
}

/// As long as it may take, in a machine whose interrupts arrive after so long, until a CPU that
/// idles has a task that waits elsewhere: an interrupt for each CPU that is asked, and one for the
/// answer.
fn one_interrupt_each(config: &Config, delay: u64) -> u64 {
    interrupts_after(config, config.cpus as u64 + 1, delay)
}

fn passes<P>(config: &Config, main: &Program) -> Result<(), TestCaseError>
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    passes_with(run_balanced::<P>(config, main), config, main)
}

proptest! {
    #![proptest_config(proptest_config(200))]

    #[test]
    fn nobody_idles_beside_a_ready_task(
        config in machine(), cpus in 2..=8usize, delay in 1..20u64, main in program(),
    ) {
        // A delay of its own for each is not known to a function pointer; three are.
        let interrupts: fn(u64) -> [Option<u64>; 2] = match delay {
            1..4 => |_| [Some(1), None],
            4..10 => |n| [Some(1 + n % 7), None],
            _ => |n| [Some(1 + n % 7), n.is_multiple_of(3).then_some(1 + n % 11)],
        };
        let config = on_several(config, cpus);
        let config = Config {
            interrupts,
            max_idle_beside: Some(one_interrupt_each(&config, 11)),
            ..config
        };
        passes_under_each(&config, &main)?;
    }

    #[test]
    fn an_interrupt_that_is_lost_costs_a_tick(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let ticks = (cpus as u64 + 1) * (config.tick_period + 4 * (config.call_cost + config.switch_cost));
        for interrupts in [(|_| [None, None]) as fn(u64) -> _, |n| [(n % 2 == 0).then_some(3), None]] {
            let config = Config {
                interrupts,
                max_idle_beside: Some(2 * ticks),
                ..config.clone()
            };
            passes_under_each(&config, &main)?;
        }
    }
}

/// Tasks that change their CPU and back, while the host takes CPUs away for most of a tick: a migration
/// helper still has the old CPU when its task returns.
#[test]
fn task_that_comes_back_before_its_cpu_picks_is_a_ready_task() {
    for cpus in 2..=4usize {
        for seed in 0..6u64 {
            let config = Config {
                tick_period: 10_000,
                call_cost: 10,
                switch_cost: 20,
                wake_delays: |n| n.wrapping_mul(7_919) % 9_000,
                ..on_several(Config::default(), cpus)
            };
            let mover = |m: u64| {
                let to = |n: u64| Op::Migrate(CpuMask::one(((m + n) % cpus as u64) as usize));
                let round = [
                    to(1),
                    Op::Sleep(1_000 + 977 * ((seed + m) % 7)),
                    to(2),
                    Op::Yield,
                    to(1),
                    Op::Run(300 + 131 * seed),
                ];
                Op::Spawn(Program::repeat("mover", 40, &round))
            };
            let hogs = (0..cpus).map(|_| Op::Spawn(Program::new("hog", [Op::Run(400_000)])));
            let main = Program::new("main", (0..6).map(mover).chain(hogs));
            passes_under_each(&config, &main)
                .unwrap_or_else(|e| panic!("{cpus} CPUs, {seed}: {e}"));
        }
    }
}

/// A CPU that its host takes away in the middle of some wakes.
fn slow_wakes(n: u64) -> u64 {
    if n.is_multiple_of(3) { 1 + n % 97 } else { 0 }
}

proptest! {
    #![proptest_config(proptest_config(200))]

    /// Rule 7.
    #[test]
    fn a_wake_that_crosses_a_change_of_affinity_puts_nobody_where_it_may_not_run(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let off = slow_wakes(96) + one_interrupt_each(&config, 1);
        let config = Config {
            wake_delays: slow_wakes,
            // Each of those that were asked may be in such a wake, and who sends on.
            max_idle_beside: Some((cpus as u64 + 2) * off),
            ..config
        };
        passes_under_each(&config, &main)?;
    }
}

/// Ticks so far apart that who waits for one has waited for longer than the bound.
const RARE_TICKS: u64 = 2_000;

proptest! {
    #![proptest_config(proptest_config(100))]

    #[test]
    fn nobody_waits_for_a_tick(
        config in machine(), cpus in 2..=4usize, main in program(), stay in any::<bool>(),
        are_late in any::<bool>(), are_slow in any::<bool>(),
    ) {
        let config = on_several(config, cpus);
        let (interrupts, delay): (fn(u64) -> _, _) = match are_late {
            true => (|n| [Some(1 + n % 30), None], 30),
            false => (|_| [Some(1), None], 1),
        };
        let config = Config {
            tick_period: RARE_TICKS,
            preempted_stay: stay,
            interrupts,
            ..config
        };
        let bound = one_interrupt_each(&config, delay);
        let (wake_delays, bound): (fn(u64) -> u64, _) = match are_slow {
            // Each of those that were asked may be in such a wake, and who sends on.
            true => (slow_wakes, (cpus as u64 + 2) * 97 + 2 * bound),
            false => (|_| 0, bound),
        };
        let config = Config {
            wake_delays,
            max_idle_beside: Some(bound),
            ..config
        };
        let main = from_its_first_pick(&main);
        passes_under_each(&config, &main)?;
    }
}

proptest! {
    #![proptest_config(proptest_config(100))]

    /// As on riscv64. The bound is without those who have to stay.
    #[test]
    fn who_is_preempted_stays_where_it_must(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let config = on_several(config, cpus);
        let config = Config {
            preempted_stay: true,
            // Nobody knows of a CPU's queue before its first pick or tick.
            max_idle_beside: Some(config.tick_period + one_interrupt_each(&config, 1)),
            ..config
        };
        passes_under_each(&config, &main)?;
    }
}

#[test]
fn a_machine_that_is_not_what_it_says_is_found() {
    each_fault_is_found(|config, main, on| {
        let max_idle_beside = Some(one_interrupt_each(&config, 1));
        let config = Config {
            max_idle_beside,
            ..config
        };
        balanced::<RrPolicy>(&config, main, on)
    });
}

#[test]
fn a_preempted_task_that_is_given_away_is_found_where_it_has_to_stay() {
    let found = found_with(connected, |config, main, on| {
        let config = Config {
            max_idle_beside: Some(one_interrupt_each(&config, 1)),
            preempted_stay: true,
            ..config
        };
        balanced::<RrPolicy>(&config, main, on)
    });
    let is_it = matches!(found, Violation::PreemptedElsewhere { .. });
    assert!(is_it, "{found}");
}

/// Main spawns tasks, and then computes for long without giving its CPU away.
fn behind_a_main_that_never_yields(tasks: u64, each: u64) -> Program {
    let task = || Program::new("task", [Op::Run(each)]);
    let spawns = (0..tasks as usize).flat_map(|n| [Op::Spawn(task()), Op::DropHandle(n)]);
    Program::new("main", spawns.chain([Op::Run(1_000_000)]))
}

fn last_end(report: &Report) -> u64 {
    let ends = named(report, "task").map(|task| task.finished.unwrap());
    ends.max().unwrap()
}

#[test]
fn tasks_behind_a_main_that_never_yields_are_run_by_the_others() {
    let main = behind_a_main_that_never_yields(16, 3_000);
    let config = on_several(
        Config {
            tick_period: 10_000,
            ..Config::default()
        },
        4,
    );
    let fifo = balanced::<FifoPolicy>(&config, &main, connected(4)).unwrap();
    let rr = balanced::<RrPolicy>(&config, &main, connected(4)).unwrap();
    // Three CPUs for 16 tasks: six rounds, and a few calls.
    for report in [&fifo, &rr] {
        let end = last_end(report);
        assert!((18_000..18_500).contains(&end), "{end}");
        assert!(report.interrupts <= 40, "{}", report.interrupts);
    }
    // Each that is dealt to main's CPU waits for main to end otherwise.
    let alone = Machine {
        cpus: 1,
        ..connected(4)
    };
    let config = Config {
        stealing: false,
        ..config
    };
    let found = balanced::<FifoPolicy>(&config, &main, alone).unwrap();
    assert!(last_end(&found) > 1_000_000);
}

/// Rule 6. Five tasks of as much work on four CPUs end after five quarters of that, and a turn or two
/// each; without, two of them would share a CPU to the end, and take half as long again.
#[test]
fn rule_6_cpus_have_the_longer_queue_in_turn() {
    const WORK: u64 = 100_000;
    let task = || Program::new("task", [Op::Run(WORK)]);
    let spawns = (0..5).flat_map(|n| [Op::Spawn(task()), Op::DropHandle(n)]);
    let main = Program::new("main", spawns.chain([Op::Sleep(1)]));
    let tick_period = WORK / 100;
    let config = Config {
        tick_period,
        ..Config::default()
    };
    let config = on_several(config, 4);
    let report = balanced::<RrPolicy>(&config, &main, connected(4)).unwrap();
    let end = last_end(&report);
    assert!((WORK * 5 / 4..WORK * 27 / 20).contains(&end), "{end}");
    // One for each that changes queues, a tick of each CPU at most.
    let ticks = 4 * end / tick_period;
    assert!(report.interrupts < ticks, "{}", report.interrupts);
}

/// GUEST. Two tasks that yield ten times a tick, and one that does so every second tick, on two CPUs.
/// Who was handed to the CPU of the third has run there long before a tick hits it, and may go on
/// elsewhere: all have as much work, and end together. Were it a guest until then, it would
/// have a twentieth of a CPU for 128 ticks and more, and its CPU's other half would be lost to it.
#[test]
fn who_was_handed_over_is_a_guest_until_it_has_run() {
    const TICK: u64 = 10_000;
    const WORK: u64 = 400 * TICK;
    let task =
        |turn: u64| Program::repeat("task", (WORK / turn) as usize, &[Op::Run(turn), Op::Yield]);
    let tasks = [task(2 * TICK), task(TICK / 10), task(TICK / 10)];
    let spawns = tasks.into_iter().enumerate();
    let spawns = spawns.flat_map(|(n, task)| [Op::Spawn(task), Op::DropHandle(n)]);
    let main = Program::new("main", spawns.chain([Op::Sleep(1)]));
    let config = Config {
        tick_period: TICK,
        ..Config::default()
    };
    let config = on_several(config, 2);
    let fifo = balanced::<FifoPolicy>(&config, &main, connected(2)).unwrap();
    let rr = balanced::<RrPolicy>(&config, &main, connected(2)).unwrap();
    for report in [&fifo, &rr] {
        // Three tasks' work on two CPUs, and what calls take.
        let end = last_end(report);
        let least = WORK * 3 / 2;
        assert!(
            (least..least * 21 / 20).contains(&end),
            "{end}, least {least}"
        );
    }
}

#[test]
fn a_wake_is_one_interrupt_at_most() {
    // A CPU for each of them beside main's, so that nobody has to ask for one that waits.
    let sleeper = Program::repeat("task", 40, &[Op::Sleep(70), Op::Run(20)]);
    let spawns = (0..3).flat_map(|n| [Op::Spawn(sleeper.clone()), Op::DropHandle(n), Op::Run(50)]);
    let main = Program::new("main", spawns.chain([Op::Run(20_000)]));
    let config = on_several(Config::default(), 4);
    let report = balanced::<FifoPolicy>(&config, &main, connected(4)).unwrap();
    let (spawned, woken, exited) = (3, 3 * 40, 3);
    // One for each of them, and for each time that `gc` is woken by an exit. And one in vain for
    // each time that a CPU begins to idle, as main's `gc`, which may run there only, waits all the
    // while behind main.
    let (slept, gc_woken) = (woken, exited);
    let most = spawned + woken + gc_woken + (slept + exited + gc_woken);
    let interrupts = report.interrupts;
    assert!(interrupts <= most, "{interrupts}, not {most}");
    // Who wakes on an idle CPU, by its own timer, needs none.
    assert!(interrupts >= spawned, "{interrupts}");
}

/// As the app `wake` counts them on a guest.
#[test]
fn wakes_while_a_cpu_idles_are_one_interrupt_each_and_all_are_counted() {
    const WAKES: u64 = 50;
    let (queue, timeout) = (0, None);
    let sleeper = Program::repeat("task", WAKES as usize, &[Op::Wait { queue, timeout }]);
    // All `gc` have run before the first wake, so nobody but the sleeper waits for a CPU.
    let before = [Op::Spawn(sleeper), Op::DropHandle(0), Op::Sleep(500)];
    let wake = [
        Op::Run(100),
        Op::Notify {
            queue,
            resched: false,
        },
    ];
    let wakes = (0..WAKES).flat_map(|_| wake.clone());
    let main = Program::new("main", before.into_iter().chain(wakes));
    for cpus in [2, 4] {
        let config = on_several(Config::default(), cpus);
        let report = balanced::<RrPolicy>(&config, &main, connected(cpus)).unwrap();
        // And for the spawn, main's own wake, and `gc` as the sleeper exits.
        let found = report.interrupts;
        assert!((WAKES..=WAKES + 3).contains(&found), "{found}");
        let counted = (0..cpus).map(|cpu| SharedPerThread::shared().interrupts(cpu));
        assert_eq!(counted.sum::<u64>(), found);
    }
}

/// As many tasks as CPUs, which do little but yield, so that whoever waits is in a queue only for a moment.
#[test]
fn who_yields_all_the_time_is_not_chased() {
    for cpus in [2, 4, 8] {
        let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
        let spawns = (0..cpus).map(|_| Op::Spawn(yields.clone()));
        let joins = (0..cpus).flat_map(|n| [Op::Join(n), Op::DropHandle(n)]);
        let main = Program::new("main", [Op::Yield].into_iter().chain(spawns).chain(joins));
        let config = Config {
            tick_period: 1_000,
            interrupts: |_| [Some(40), None],
            ..on_several(Config::default(), cpus)
        };
        let config = Config {
            max_idle_beside: Some(one_interrupt_each(&config, 40)),
            ..config
        };
        passes_under_each(&config, &main).unwrap();
    }
}

#[test]
fn a_task_that_may_run_on_one_cpu_stays_there() {
    let pinned = Program::new(
        "task",
        [
            Op::Migrate(CpuMask::one(0)),
            Op::Run(50),
            Op::Yield,
            Op::Run(50),
        ],
    );
    let spawns = (0..4).flat_map(|n| [Op::Spawn(pinned.clone()), Op::DropHandle(n)]);
    let main = Program::new("main", spawns.chain([Op::Sleep(20), Op::Run(2_000)]));
    let config = on_several(Config::default(), 4);
    let config = Config {
        max_idle_beside: Some(one_interrupt_each(&config, 1)),
        ..config
    };
    let report = balanced::<RrPolicy>(&config, &main, connected(4)).unwrap();
    // One CPU for all of it.
    assert!(last_end(&report) > 4 * 100);
}

/// Rule 7. The first wake has chosen a queue of all three, the limit wakes the task meanwhile, and when
/// the first one looks the task may run on one CPU only, and is blocked again.
#[test]
fn a_task_is_sent_on_from_the_queue_that_a_wake_chose_before_its_affinity_changed() {
    for allowed in [1, 2] {
        let waits = |queue, units| Op::Wait {
            queue,
            timeout: Some(units),
        };
        let moves = Op::Migrate(CpuMask::one(allowed));
        let task = Program::new("task", [waits(0, 50), moves, waits(1, 1_000), Op::Run(5)]);
        let notify = Op::Notify {
            queue: 0,
            resched: false,
        };
        let ops = [Op::Yield, Op::Spawn(task), Op::Run(30), notify, Op::Join(0)];
        let config = Config {
            wake_delays: |n| if n == 0 { 200 } else { 0 },
            ..on_several(Config::default(), 3)
        };
        passes_under_each(&config, &Program::new("main", ops)).unwrap();
    }
}

/// WANTED. Ticks are so far apart that none of them helps.
#[test]
fn who_gives_its_cpu_to_one_that_may_run_there_only_goes_on_elsewhere() {
    let pinned = Program::new("pinned", [Op::Migrate(CpuMask(1)), Op::Run(500)]);
    let ops = [
        Op::Yield,
        Op::Spawn(pinned),
        Op::Run(50),
        Op::Yield,
        Op::Run(10),
    ];
    let main = Program::new("main", ops);
    let config = Config {
        tick_period: 10_000,
        interrupts: |_| [Some(1), None],
        ..on_several(Config::default(), 2)
    };
    let config = Config {
        max_idle_beside: Some(one_interrupt_each(&config, 1)),
        ..config
    };
    passes_under_each(&config, &main).unwrap();
}

/// WANTED. Main may run on the first CPU only when it gives way to another that may, and anywhere when it
/// does so again.
#[test]
fn who_may_run_elsewhere_only_later_goes_on_there_when_it_gives_way() {
    let only = || Op::Migrate(CpuMask(1));
    let pinned = Program::new("pinned", [only(), Op::Run(50), Op::Yield, Op::Run(500)]);
    let ops = [
        Op::Yield,
        only(),
        Op::Spawn(pinned),
        Op::Run(50),
        Op::Yield,
        Op::Run(10),
    ];
    let ops = ops
        .into_iter()
        .chain([Op::Migrate(CpuMask(3)), Op::Yield, Op::Run(10)]);
    let main = Program::new("main", ops);
    let config = Config {
        tick_period: 10_000,
        ..on_several(Config::default(), 2)
    };
    let config = Config {
        max_idle_beside: Some(one_interrupt_each(&config, 1)),
        ..config
    };
    passes_under_each(&config, &main).unwrap();
    let config = Config {
        preempted_stay: true,
        ..config
    };
    passes_under_each(&config, &main).unwrap();
}
