//! A soak of several CPUs: random programs on 2, 4 and 8 CPUs that share their work, under every policy within the
//! layer and under PBG. Each plays a million steps of the model, with its rules checked at every step.
//! IPIs come late, twice, or never. `make soak` runs this.

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
    MEASURE_END, MEASURE_START, START_PBG, from_its_first_pick, interleaved, interrupts_after,
    joined, staying,
};
use common::{machine, program, proptest_config};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

type T = ModelTask;
type C = VirtualClock;

const STEPS: u64 = 1_000_000;

/// The faults of IPIs and wakes.
#[derive(Clone, Copy, Debug)]
enum Interrupts {
    OnTime,
    /// They come late, and some twice.
    Late,
    SomeLost,
    AllLost,
    /// They come on time, but a preempted task stays where it was, as on riscv64.
    Stay,
    /// They come on time, but some wakes look long after they have chosen a queue, as if the host took the CPU away.
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

/// The longest time of such a wake.
const SLOWEST: u64 = 97;

/// The longest delay of an IPI.
const LATEST: u64 = 11;

thread_local! {
    static LATE: Cell<u64> = const { Cell::new(0) };
    static LOST: Cell<u64> = const { Cell::new(0) };
    static TWICE: Cell<u64> = const { Cell::new(0) };
}

/// Counts an IPI as late, lost or twice.
fn counted([first, again]: [Option<u64>; 2]) -> [Option<u64>; 2] {
    LATE.set(LATE.get() + u64::from(first.is_some_and(|delay| delay > 1)));
    LOST.set(LOST.get() + u64::from(first.is_none()));
    TWICE.set(TWICE.get() + u64::from(again.is_some()));
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

    /// Returns the delays of wakes.
    fn wakes(self) -> fn(u64) -> u64 {
        match self {
            Self::SlowWakes => |n| if n % 3 == 0 { 1 + n % SLOWEST } else { 0 },
            _ => |_| 0,
        }
    }

    /// Returns the longest time that a CPU may idle beside a ready task, if it takes `interrupts` IPIs, and `ticks` ticks
    /// on a machine without faults.
    fn max_idle_beside(self, config: &Config, (interrupts, ticks): (u64, u64)) -> u64 {
        let each = |delay| interrupts_after(config, interrupts, delay);
        match self {
            Self::OnTime | Self::Stay => ticks * config.tick_period + each(1),
            // Each CPU looks only after its wake, one after another.
            Self::SlowWakes => (ticks + interrupts) * (config.tick_period + SLOWEST + each(1)),
            Self::Late => ticks * config.tick_period + each(LATEST),
            // A tick makes up for each.
            Self::SomeLost | Self::AllLost => 2 * each(config.tick_period),
        }
    }
}

/// The sums over the programs that were played.
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

/// Returns how often a task ran on another CPU than where it was enqueued, or where it ran last.
fn handovers(log: &Log) -> u64 {
    let mut places: HashMap<TaskId, usize> = HashMap::new();
    let mut handovers = 0;
    let records = log.records.iter();
    for record in records.filter(|record| !log.idle.contains(&record.task())) {
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

/// Plays programs until all steps are made, and prints the sums.
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
        let counters = [&LATE, &LOST, &TWICE];
        counters.iter().for_each(|counter| counter.set(0));
        while played.steps < STEPS {
            let (config, programs, random) = strategy.new_tree(&mut runner).unwrap().current();
            let interrupts = INTERRUPTS[(played.programs % INTERRUPTS.len() as u64) as usize];
            let mut config = interleaved(config, cpus);
            config.interrupts = interrupts.when();
            config.wake_delays = interrupts.wakes();
            config.log_records = usize::MAX;
            if matches!(interrupts, Interrupts::Stay) {
                config = staying(config);
            }
            let bound = interrupts.max_idle_beside(&config, idles_for(cpus));
            config.max_idle_beside = Some(bound);
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
        let (programs, steps) = (played.programs, played.steps);
        let (handovers, crossed) = (played.handovers, played.crossed);
        let [late, lost, twice] = counters.map(|counter| counter.get());
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

/// Returns an IPI for each CPU that is asked, and one for the answer.
fn one_each(cpus: usize) -> (u64, u64) {
    (cpus as u64 + 1, 0)
}

/// Returns the first program.
fn first([program, ..]: &[Program; 3], _: u64) -> Program {
    from_its_first_pick(program)
}

/// Returns an IPI for a task that becomes ready, and one for a task that was left.
fn two(_cpus: usize) -> (u64, u64) {
    (2, 0)
}

/// Returns the first program, or a program that measures the second one beside the first and replays it or the third,
/// while main migrates from CPU to CPU.
fn measured_and_followed([beside, first, other]: &[Program; 3], random: u64) -> Program {
    let [way, mut masks @ ..] = random.to_le_bytes();
    if way % 4 == 0 {
        return beside.clone();
    }
    let again = if way % 4 == 1 { other } else { first };
    masks.iter_mut().for_each(|mask| *mask |= 1 << (way % 8));
    let moves = |n: usize| Op::Migrate(CpuMask(masks[n].into()));
    let mut ops = vec![Op::Spawn(beside.clone()), moves(0), Op::Call(MEASURE_START)];
    ops.extend([Op::Spawn(first.clone()), moves(1)]);
    ops.extend(joined(1));
    ops.extend([Op::Call(MEASURE_END), moves(2)]);
    ops.extend([Op::Call(START_PBG), moves(3)]);
    ops.extend([Op::Spawn(again.clone()), Op::Spawn(other.clone()), moves(4)]);
    ops.extend([0, 2, 3].into_iter().flat_map(joined));
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
