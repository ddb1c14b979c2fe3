//! For long: random programs on 2, 4 and 8 CPUs that share their work, under every policy within the
//! layer and under PBG together, until each has made a million steps of the model, with its rules
//! checked at every one. Interrupts between CPUs come late, twice, or never. `make soak` runs this.

mod common;

use std::cell::Cell;
use std::collections::HashMap;

use axsched_ext::balance::run_together;
use axsched_ext::clock::VirtualClock;
use axsched_ext::model::{
    Config, CpuMask, Failure, Log, Logged, ModelTask, Op, Program, Report, TaskId,
};
use axsched_ext::pbg::PerThread;
use axsched_ext::*;
use common::several::{
    MEASURE_END, MEASURE_START, START_PBG, from_its_first_pick, interrupts_after, on_several,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

type T = ModelTask;
type C = VirtualClock;

const STEPS: u64 = 1_000_000;

/// What becomes of interrupts between CPUs.
#[derive(Clone, Copy, Debug)]
enum Interrupts {
    OnTime,
    /// And some twice.
    Late,
    SomeLost,
    AllLost,
    /// On time, but who was preempted stays where it was, as on riscv64.
    Stay,
    /// On time, but some wakes look long after they have chosen a queue, as where the host takes a
    /// CPU away.
    SlowWakes,
}

const INTERRUPTS: [Interrupts; 6] = [
    Interrupts::OnTime,
    Interrupts::Late,
    Interrupts::SomeLost,
    Interrupts::AllLost,
    Interrupts::Stay,
    Interrupts::SlowWakes,
];

/// The longest that such a wake takes.
const SLOWEST: u64 = 97;

/// The latest that one comes.
const LATEST: u64 = 11;

thread_local! {
    static LATE: Cell<u64> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
    static TWICE: Cell<u64> = const { Cell::new(0) };
}

/// Counts what becomes of one.
fn counted([first, again]: [Option<u64>; 2]) -> [Option<u64>; 2] {
    let count = |counter: &'static std::thread::LocalKey<Cell<u64>>, is_one: bool| {
        counter.set(counter.get() + u64::from(is_one));
    };
    count(&LATE, first.is_some_and(|delay| delay > 1));
    count(&LOST, first.is_none());
    count(&TWICE, again.is_some());
    [first, again]
}

impl Interrupts {
    fn when(self) -> fn(u64) -> [Option<u64>; 2] {
        match self {
            Self::OnTime | Self::Stay | Self::SlowWakes => |_| counted([Some(1), None]),
            Self::Late => |n| counted([Some(1 + n % 7), (n % 3 == 0).then_some(1 + n % LATEST)]),
            Self::SomeLost => |n| counted([(n % 2 == 0).then_some(3), None]),
            Self::AllLost => |_| counted([None, None]),
        }
    }

    /// How long wakes take.
    fn wakes(self) -> fn(u64) -> u64 {
        match self {
            Self::SlowWakes => |n| if n % 3 == 0 { 1 + n % SLOWEST } else { 0 },
            _ => |_| 0,
        }
    }

    /// For how long a CPU may idle beside a ready task at most, if that takes so many interrupts, and
    /// so many ticks where the machine does what it should.
    fn max_idle_beside(self, config: &Config, (interrupts, ticks): (u64, u64)) -> u64 {
        let each = |delay| interrupts_after(config, interrupts, delay);
        match self {
            Self::OnTime | Self::Stay => ticks * config.tick_period + each(1),
            // Nobody looks before its wake is over, one after another.
            Self::SlowWakes => (ticks + interrupts) * (config.tick_period + SLOWEST + each(1)),
            Self::Late => ticks * config.tick_period + each(LATEST),
            // Each is made up for by a tick.
            Self::SomeLost | Self::AllLost => 2 * each(config.tick_period),
        }
    }
}

/// What was played.
#[derive(Default)]
struct Played {
    programs: u64,
    steps: u64,
    handovers: u64,
    /// Wakes that met a task which was still being left.
    crossed: u64,
    violations: u64,
}

impl Played {
    fn add(&mut self, report: &Report) {
        self.steps += report.steps;
        self.crossed += report.wake_spins;
        self.handovers += handovers(&report.log);
    }
}

/// How many tasks ran on another CPU than where they were put, or where they were last.
fn handovers(log: &Log) -> u64 {
    let mut places: HashMap<TaskId, usize> = HashMap::new();
    let mut handovers = 0;
    for record in log
        .records
        .iter()
        .filter(|record| !log.idle.contains(&record.task()))
    {
        match record.what {
            Logged::Spawned(queue) | Logged::Woken(queue) => {
                places.insert(record.task(), queue.into());
            }
            Logged::Switched(_) => {
                let place = places.insert(record.task(), record.cpu());
                handovers += u64::from(place.is_some_and(|place| place != record.cpu()));
            }
        }
    }
    handovers
}

/// Plays programs until all steps are made, and says so.
fn soaks(
    policy: &str,
    idles_for: fn(usize) -> (u64, u64),
    main: fn(&[Program; 3], u64) -> Program,
    play: fn(&Config, &Program) -> Result<Report, Box<Failure>>,
) {
    let mut violations = 0;
    for cpus in [2, 4, 8] {
        let mut runner = TestRunner::new(proptest_config(1));
        let strategy = (machine(), [program(), program(), program()], any::<u64>());
        let mut played = Played::default();
        [&LATE, &LOST, &TWICE]
            .iter()
            .for_each(|counter| counter.set(0));
        while played.steps < STEPS {
            let (config, programs, random) = strategy.new_tree(&mut runner).unwrap().current();
            let interrupts = INTERRUPTS[(played.programs % INTERRUPTS.len() as u64) as usize];
            let config = Config {
                interrupts: interrupts.when(),
                wake_delays: interrupts.wakes(),
                log_records: usize::MAX,
                ..on_several(config, cpus)
            };
            let config = Config {
                preempted_stay: matches!(interrupts, Interrupts::Stay),
                max_idle_beside: Some(interrupts.max_idle_beside(&config, idles_for(cpus))),
                ..config
            };
            let main = main(&programs, random);
            played.programs += 1;
            match play(&config, &main) {
                Ok(report) => played.add(&report),
                Err(failure) => {
                    eprintln!("{policy}: {failure}\n{config:?}\n{main:?}");
                    played.violations += 1;
                    // Or it would not end.
                    played.steps += failure.time.max(1);
                }
            }
        }
        let Played {
            programs,
            steps,
            handovers,
            crossed,
            ..
        } = played;
        let [late, lost, twice] = [&LATE, &LOST, &TWICE].map(|counter| counter.get());
        println!(
            "{policy:5} {cpus} CPUs: {programs} programs, {steps} steps; interrupts {late} late, \
             {lost} lost, {twice} twice; {crossed} wakes crossed a switch; {handovers} handovers; \
             {} violations",
            played.violations,
        );
        let seen = [late / 50, lost / 50, twice / 50, handovers / 50, crossed];
        assert!(seen.iter().all(|&seen| seen > 4), "{policy}: {seen:?}");
        violations += played.violations;
    }
    assert_eq!(violations, 0, "{policy}");
}

/// An interrupt for each CPU that is asked, and one for the answer.
fn one_each(cpus: usize) -> (u64, u64) {
    (cpus as u64 + 1, 0)
}

/// The first program.
fn first([program, ..]: &[Program; 3], _: u64) -> Program {
    from_its_first_pick(program)
}

/// An interrupt for who becomes ready, and one for who was left.
fn two(_cpus: usize) -> (u64, u64) {
    (2, 0)
}

/// The first program; or the second is measured beside the first, and it or the third is followed,
/// while main goes from CPU to CPU.
fn measured_and_followed([beside, first, other]: &[Program; 3], random: u64) -> Program {
    let [way, mut masks @ ..] = random.to_le_bytes();
    if way % 4 == 0 {
        return beside.clone();
    }
    let again = if way % 4 == 1 { other } else { first };
    masks.iter_mut().for_each(|mask| *mask |= 1 << (way % 8));
    let moves = |n: usize| Op::Migrate(CpuMask(masks[n].into()));
    let join = |n| [Op::Join(n), Op::DropHandle(n)];
    let mut ops = vec![Op::Spawn(beside.clone()), moves(0), Op::Call(MEASURE_START)];
    ops.extend([Op::Spawn(first.clone()), moves(1)]);
    ops.extend(join(1));
    ops.extend([
        Op::Call(MEASURE_END),
        moves(2),
        Op::Call(START_PBG),
        moves(3),
    ]);
    ops.extend([Op::Spawn(again.clone()), Op::Spawn(other.clone()), moves(4)]);
    ops.extend([0, 2, 3].into_iter().flat_map(join));
    Program::new("main", ops)
}

fn together(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    PerThread::renew();
    let config = Config {
        // A task that has to stay may wait beside an idle CPU.
        max_idle_beside: config.max_idle_beside.filter(|_| !config.preempted_stay),
        ..config.clone()
    };
    let report = run_together(&config, main);
    PerThread::retire();
    report
}

macro_rules! soak {
    (pbg $scheduler:ty) => {
        crate::soaks(
            "pbg",
            crate::two,
            crate::measured_and_followed,
            crate::together,
        )
    };
    ($module:ident $scheduler:ty) => {{
        use crate::common::several::Within;
        #[allow(unused_imports, reason = "not every policy reads the time")]
        use crate::{C, T};
        use axsched_ext::balance::run_balanced;
        use axsched_ext::*;
        let play = run_balanced::<<$scheduler as Within>::Policy>;
        crate::soaks(stringify!($module), crate::one_each, crate::first, play)
    }};
}

macro_rules! policies {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        $(
            mod $module {
                #[test]
                #[ignore = "slow without optimisation: make soak"]
                fn shares_over_a_million_steps() {
                    soak!($module $scheduler);
                }
            }
        )*
    };
}
for_each_policy!(policies);
