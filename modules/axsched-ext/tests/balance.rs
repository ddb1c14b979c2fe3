//! The layer that shares work among CPUs, in the model of `axtask`. No CPU idles beside a ready task for longer
//! than an IPI to each CPU takes, whatever programs do. No task is lost or doubled, runs while it is
//! still on a CPU, or runs where it may not. A layer that breaks a rule is found.

mod common;

use axsched_ext::balance::{
    Machine, SmpStateSource, ThreadSmpState, WorkSharing, run_balanced,
    simulated_machine as connected,
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
    Within, each_fault_is_found, found_with, from_its_first_pick, interleaved, interrupts_after,
    named, on_several, passes_with, started, staying, ticking,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;

type FifoPolicy = Fifo<ModelTask>;
type RrPolicy = Rr<ModelTask, SLICE_TICKS>;

type T = ModelTask;
type C = VirtualClock;

/// Calls `$call` under a policy, unless that is PBG, which has a test of its own.
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

fn passes<P>(config: &Config, main: &Program) -> Result<(), TestCaseError>
where
    P: Policy<Inner = ModelTask, State: InitialState>,
{
    passes_with(run_balanced::<P>(config, main), config, main)
}

/// Runs a program on a machine that may lie about what it does.
fn balanced_on<P>(config: &Config, main: &Program, on: Machine) -> Result<Report, Box<Failure>>
where
    P: Policy<Inner = ModelTask, State: InitialState>,
{
    // SAFETY: only these schedulers share the state, one for each CPU, and all have the same type.
    unsafe { ThreadSmpState::renew().connect(on) };
    let made = |_| WorkSharing::<P, ThreadSmpState>::new();
    run(config, main, made, Task::<ModelTask, P::State>::new)
}

/// Returns the longest time that a CPU may idle beside a ready task in another queue, if an IPI takes
/// `delay`. The time is that of an IPI for each CPU that is asked, and of one for the answer.
fn one_interrupt_each(config: &Config, delay: u64) -> u64 {
    interrupts_after(config, config.cpus as u64 + 1, delay)
}

/// Returns the time for which the host takes the CPU away in the middle of the `n`th wake.
fn slow_wakes(n: u64) -> u64 {
    if n.is_multiple_of(3) { 1 + n % 97 } else { 0 }
}

proptest! {
    #![proptest_config(proptest_config(200))]

    #[test]
    fn no_cpu_idles_beside_a_ready_task(
        config in machine(), cpus in 2..=8usize, delay in 1..20u64, main in program(),
    ) {
        let mut config = interleaved(config, cpus);
        // A function pointer cannot capture the delay, so there are three.
        config.interrupts = match delay {
            1..4 => |_| [Some(1), None],
            4..10 => |n| [Some(1 + n % 7), None],
            _ => |n| [Some(1 + n % 7), n.is_multiple_of(3).then_some(1 + n % 11)],
        };
        config.max_idle_beside = Some(one_interrupt_each(&config, 11));
        passes_under_each(&config, &main)?;
    }

    #[test]
    fn lost_ipi_costs_a_tick(config in machine(), cpus in 2..=8usize, main in program()) {
        let mut config = interleaved(config, cpus);
        config.max_idle_beside = Some(2 * one_interrupt_each(&config, config.tick_period));
        for interrupts in [(|_| [None, None]) as fn(u64) -> _, |n| [(n % 2 == 0).then_some(3), None]] {
            config.interrupts = interrupts;
            passes_under_each(&config, &main)?;
        }
    }

    #[test]
    fn rule_7_wake_that_crosses_a_change_of_affinity_puts_no_task_where_it_may_not_run(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let mut config = interleaved(config, cpus);
        let off = slow_wakes(96) + one_interrupt_each(&config, 1);
        config.wake_delays = slow_wakes;
        // Each CPU that was asked may be in such a wake, and so may the one that sends the task on.
        config.max_idle_beside = Some((cpus as u64 + 2) * off);
        passes_under_each(&config, &main)?;
    }
}

proptest! {
    #![proptest_config(proptest_config(100))]

    /// Ticks are so far apart that a task that waits for one has waited for longer than the bound.
    #[test]
    fn no_task_waits_for_a_tick(
        config in machine(), cpus in 2..=4usize, main in program(), stay in any::<bool>(),
        are_late in any::<bool>(), are_slow in any::<bool>(),
    ) {
        let mut config = interleaved(config, cpus);
        config.tick_period = 2_000;
        if stay {
            config = staying(config);
        }
        config.interrupts = match are_late {
            true => |n| [Some(1 + n % 30), None],
            false => |_| [Some(1), None],
        };
        let bound = one_interrupt_each(&config, if are_late { 30 } else { 1 });
        config.max_idle_beside = Some(bound);
        if are_slow {
            config.wake_delays = slow_wakes;
            // Each CPU that was asked may be in such a wake, and so may the one that sends the task on.
            config.max_idle_beside = Some((cpus as u64 + 2) * 97 + 2 * bound);
        }
        passes_under_each(&config, &from_its_first_pick(&main))?;
    }

    /// As on riscv64. The bound does not count tasks that have to stay.
    #[test]
    fn preempted_task_stays_where_it_must(
        config in machine(), cpus in 2..=8usize, main in program(),
    ) {
        let mut config = staying(interleaved(config, cpus));
        // No other CPU knows of a CPU's queue before its first pick or tick.
        config.max_idle_beside = Some(config.tick_period + one_interrupt_each(&config, 1));
        passes_under_each(&config, &main)?;
    }
}

/// Tasks migrate to another CPU and back while the host takes CPUs away for most of a tick. So a
/// migration helper still has the old CPU when its task returns.
#[test]
fn task_that_comes_back_before_its_cpu_picks_is_a_ready_task() {
    for cpus in 2..=4usize {
        for seed in 0..6u64 {
            let config = Config {
                call_cost: 10,
                switch_cost: 20,
                wake_delays: |n| n.wrapping_mul(7_919) % 9_000,
                ..ticking(10_000, cpus)
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
            let hogs = (0..cpus).map(|_| Op::spawn("hog", [Op::Run(400_000)]));
            let main = Program::new("main", (0..6).map(mover).chain(hogs));
            passes_under_each(&config, &main)
                .unwrap_or_else(|e| panic!("{cpus} CPUs, {seed}: {e}"));
        }
    }
}

#[test]
fn machine_that_lies_is_found() {
    each_fault_is_found(|mut config, main, on| {
        config.max_idle_beside = Some(one_interrupt_each(&config, 1));
        balanced_on::<RrPolicy>(&config, main, on)
    });
}

#[test]
fn preempted_task_that_is_given_away_is_found_where_it_has_to_stay() {
    let found = found_with(connected, |mut config, main, on| {
        config.max_idle_beside = Some(one_interrupt_each(&config, 1));
        balanced_on::<RrPolicy>(&staying(config), main, on)
    });
    let is_it = matches!(found, Violation::PreemptedElsewhere { .. });
    assert!(is_it, "{found}");
}

/// Returns a program that starts these tasks and does `then`.
fn main_of(
    tasks: impl IntoIterator<Item = Program>,
    then: impl IntoIterator<Item = Op>,
) -> Program {
    Program::new("main", started(tasks).chain(then))
}

fn last_end(report: &Report) -> u64 {
    let ends = named(report, "task").map(|task| task.finished.unwrap());
    ends.max().unwrap()
}

#[test]
fn tasks_behind_a_main_that_never_yields_are_run_by_the_others() {
    let tasks = (0..16).map(|_| Program::new("task", [Op::Run(3_000)]));
    let main = main_of(tasks, [Op::Run(1_000_000)]);
    let config = ticking(10_000, 4);
    let fifo = run_balanced::<FifoPolicy>(&config, &main).unwrap();
    let rr = run_balanced::<RrPolicy>(&config, &main).unwrap();
    // Three CPUs for 16 tasks: six rounds, and a few calls.
    for report in [&fifo, &rr] {
        let end = last_end(report);
        assert!((18_000..18_500).contains(&end), "{end}");
        assert!(report.interrupts <= 40, "{}", report.interrupts);
    }
    // Without sharing each task that is dealt to main's CPU waits for main to end.
    let mut alone = connected(4);
    alone.cpus = 1;
    let config = Config {
        stealing: false,
        ..config
    };
    let found = balanced_on::<FifoPolicy>(&config, &main, alone).unwrap();
    assert!(last_end(&found) > 1_000_000);
}

/// Five tasks of as much work on four CPUs end after five quarters of that, and a slice or two each. Without
/// rule 6 two of them would share a CPU to the end, and take half as long again.
#[test]
fn rule_6_cpus_have_the_longer_queue_in_turn() {
    const WORK: u64 = 100_000;
    let tasks = (0..5).map(|_| Program::new("task", [Op::Run(WORK)]));
    let tick_period = WORK / 100;
    let main = main_of(tasks, [Op::Sleep(1)]);
    let report = run_balanced::<RrPolicy>(&ticking(tick_period, 4), &main).unwrap();
    let end = last_end(&report);
    assert!((WORK * 5 / 4..WORK * 27 / 20).contains(&end), "{end}");
    // One for each that changes queues, a tick of each CPU at most.
    let ticks = 4 * end / tick_period;
    assert!(report.interrupts < ticks, "{}", report.interrupts);
}

/// RETAINED ends before a tick hits the task.
///
/// On two CPUs, two tasks yield ten times a tick, and a third yields every second tick. The task that
/// is handed to the third one's CPU has run there long before a tick hits it, and may be handed on. So
/// all three, which have equal work, end together. If it were retained until a tick hits it, it would
/// have a twentieth of a CPU for 128 ticks and more.
#[test]
fn task_that_was_handed_over_is_a_guest_until_it_has_run() {
    const TICK: u64 = 10_000;
    const WORK: u64 = 400 * TICK;
    let task = |burst: u64| {
        Program::repeat(
            "task",
            (WORK / burst) as usize,
            &[Op::Run(burst), Op::Yield],
        )
    };
    let main = main_of([2 * TICK, TICK / 10, TICK / 10].map(task), [Op::Sleep(1)]);
    let config = ticking(TICK, 2);
    let fifo = run_balanced::<FifoPolicy>(&config, &main).unwrap();
    let rr = run_balanced::<RrPolicy>(&config, &main).unwrap();
    for report in [&fifo, &rr] {
        // Three tasks' work on two CPUs, and what calls take.
        let (end, least) = (last_end(report), WORK * 3 / 2);
        let is_soon = (least..least * 21 / 20).contains(&end);
        assert!(is_soon, "{end}, least {least}");
    }
}

#[test]
fn wake_is_one_ipi_at_most() {
    // A CPU for each of them beside main's, so that no CPU has to ask for a task that waits.
    let sleeper = Program::repeat("task", 40, &[Op::Sleep(70), Op::Run(20)]);
    let spawns = (0..3).flat_map(|n| [Op::Spawn(sleeper.clone()), Op::DropHandle(n), Op::Run(50)]);
    let main = Program::new("main", spawns.chain([Op::Run(20_000)]));
    let config = on_several(Config::default(), 4);
    let report = run_balanced::<FifoPolicy>(&config, &main).unwrap();
    let (spawned, woken, exited) = (3, 3 * 40, 3);
    // One for each of them, and for each time that `gc` is woken by an exit. And one in vain for
    // each time that a CPU begins to idle, as main's `gc`, which may run there only, waits all the
    // while behind main.
    let (slept, gc_woken) = (woken, exited);
    let most = spawned + woken + gc_woken + (slept + exited + gc_woken);
    let interrupts = report.interrupts;
    assert!(interrupts <= most, "{interrupts}, not {most}");
    // A task that wakes on an idle CPU, by its own timer, needs none.
    assert!(interrupts >= spawned, "{interrupts}");
}

/// As the app `wake` counts them on a guest.
#[test]
fn wakes_while_a_cpu_idles_are_one_ipi_each_and_all_are_counted() {
    const WAKES: u64 = 50;
    let sleeper = Program::repeat("task", WAKES as usize, &[Op::wait(0)]);
    // All `gc` have run before the first wake, so only the sleeper waits for a CPU.
    let wakes = (0..WAKES).flat_map(|_| [Op::Run(100), Op::notify(0)]);
    let main = main_of([sleeper], [Op::Sleep(500)].into_iter().chain(wakes));
    for cpus in [2, 4] {
        let config = on_several(Config::default(), cpus);
        let report = balanced_on::<RrPolicy>(&config, &main, connected(cpus)).unwrap();
        // And for the spawn, main's own wake, and `gc` as the sleeper exits.
        let found = report.interrupts;
        assert!((WAKES..=WAKES + 3).contains(&found), "{found}");
        let counted = (0..cpus).map(|cpu| ThreadSmpState::smp_state().interrupts(cpu));
        assert_eq!(counted.sum::<u64>(), found);
    }
}

/// Asserts that a program passes under each policy, with an IPI for each CPU at most until a ready task runs.
fn passes_on_time(mut config: Config, delay: u64, main: &Program) {
    config.max_idle_beside = Some(one_interrupt_each(&config, delay));
    passes_under_each(&config, main).unwrap();
}

/// There are as many tasks as CPUs, which do little but yield, so that one that waits is in a queue only for a
/// moment.
#[test]
fn task_that_yields_all_the_time_is_not_chased() {
    for cpus in [2, 4, 8] {
        let yields = Program::repeat("yields", 2_000, &[Op::Run(1), Op::Yield]);
        let spawns = (0..cpus).map(|_| Op::Spawn(yields.clone()));
        let joins = (0..cpus).flat_map(|n| [Op::Join(n), Op::DropHandle(n)]);
        let main = Program::new("main", [Op::Yield].into_iter().chain(spawns).chain(joins));
        let config = Config {
            interrupts: |_| [Some(40), None],
            ..ticking(1_000, cpus)
        };
        passes_on_time(config, 40, &main);
    }
}

#[test]
fn task_that_may_run_on_one_cpu_stays_there() {
    let run = Op::Run(50);
    let pinned = [Op::Migrate(CpuMask::one(0)), run.clone(), Op::Yield, run];
    let tasks = (0..4).map(|_| Program::new("task", pinned.clone()));
    let main = main_of(tasks, [Op::Sleep(20), Op::Run(2_000)]);
    let mut config = on_several(Config::default(), 4);
    config.max_idle_beside = Some(one_interrupt_each(&config, 1));
    let report = run_balanced::<RrPolicy>(&config, &main).unwrap();
    // One CPU for all of it.
    assert!(last_end(&report) > 4 * 100);
}

/// The first wake has chosen a queue of all three when the time limit wakes the task. When the first wake looks,
/// the task may run on one CPU only, and is blocked again.
#[test]
fn rule_7_task_is_sent_on_from_the_queue_that_a_wake_chose_before_its_affinity_changed() {
    for allowed in [1, 2] {
        let waits = |queue, units| Op::Wait {
            queue,
            timeout: Some(units),
        };
        let moves = Op::Migrate(CpuMask::one(allowed));
        let task = [waits(0, 50), moves, waits(1, 1_000), Op::Run(5)];
        let ops = [
            Op::Yield,
            Op::spawn("task", task),
            Op::Run(30),
            Op::notify(0),
            Op::Join(0),
        ];
        let config = Config {
            wake_delays: |n| if n == 0 { 200 } else { 0 },
            ..on_several(Config::default(), 3)
        };
        passes_under_each(&config, &Program::new("main", ops)).unwrap();
    }
}

/// HANDOFF works without a tick. Ticks are so far apart that none of them helps.
#[test]
fn task_that_gives_its_cpu_to_a_pinned_one_goes_on_elsewhere() {
    let pinned = Op::spawn("pinned", [Op::Migrate(CpuMask(1)), Op::Run(500)]);
    let yields = [Op::Run(50), Op::Yield, Op::Run(10)];
    let ops = [Op::Yield, pinned].into_iter().chain(yields);
    passes_on_time(ticking(10_000, 2), 1, &Program::new("main", ops));
}

/// HANDOFF works after a change of affinity. Main may run only on the first CPU when it first yields to
/// a pinned task, and on any CPU when it does so again.
#[test]
fn task_that_may_run_elsewhere_only_later_goes_on_there_when_it_gives_way() {
    let only = || Op::Migrate(CpuMask(1));
    let pinned = [only(), Op::Run(50), Op::Yield, Op::Run(500)];
    let mut ops = vec![Op::Yield, only(), Op::spawn("pinned", pinned)];
    ops.extend([Op::Run(50), Op::Yield, Op::Run(10)]);
    ops.extend([Op::Migrate(CpuMask(3)), Op::Yield, Op::Run(10)]);
    let main = Program::new("main", ops);
    for preempted_stay in [false, true] {
        let config = Config {
            preempted_stay,
            ..ticking(10_000, 2)
        };
        passes_on_time(config, 1, &main);
    }
}
