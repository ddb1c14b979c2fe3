//! Helpers of the tests of this crate: the registry's schedulers under our trait, random programs that shrink, and bounds
//! that more than one scheduler promises.
#![allow(
    dead_code,
    unused_imports,
    unused_macros,
    reason = "each test binary uses its part"
)]

pub mod layer;
pub mod on_add;
pub mod several;

use axsched_ext::conformance::{Beside, Load};
use axsched_ext::model::{Config, CpuMask, Failure, Line, MaxWait, Op, Program, Report};
use axsched_ext::{BaseScheduler, pbg, sjf};
use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, RngSeed};

/// A scheduler of the registry's `axsched`, whose trait is ours by another name.
#[derive(Default)]
pub struct Stock<S>(pub S);

impl<S: axsched_upstream::BaseScheduler> BaseScheduler for Stock<S> {
    type SchedItem = S::SchedItem;

    fn init(&mut self) {
        self.0.init();
    }
    fn add_task(&mut self, task: S::SchedItem) {
        self.0.add_task(task);
    }
    fn remove_task(&mut self, task: &S::SchedItem) -> Option<S::SchedItem> {
        self.0.remove_task(task)
    }
    fn pick_next_task(&mut self) -> Option<S::SchedItem> {
        self.0.pick_next_task()
    }
    fn put_prev_task(&mut self, prev: S::SchedItem, preempt: bool) {
        self.0.put_prev_task(prev, preempt);
    }
    fn task_tick(&mut self, current: &S::SchedItem) -> bool {
        self.0.task_tick(current)
    }
    fn set_priority(&mut self, task: &S::SchedItem, prio: isize) -> bool {
        self.0.set_priority(task, prio)
    }
}

/// Returns the bound of FIFO. The queue is in order of arrival, so a ready task waits for each other one once at most.
pub fn each_other_once(load: &Load<'_>) -> MaxWait {
    MaxWait {
        dispatches: Some(load.tasks),
        ..MaxWait::default()
    }
}

/// Returns the time of `ticks` ticks, of which the last may come late: after what each task computes under a guard, and
/// its switches.
pub fn late_ticks(load: &Load<'_>, ticks: u64) -> u64 {
    let config = load.config;
    let calls = 4 * (config.call_cost + config.switch_cost);
    ticks * config.tick_period + load.tasks * (load.longest_guarded + calls)
}

/// Returns the bound of RR: that of FIFO, and with preemption a slice of 5 ticks of each other task. The first tick of a
/// slice may come late, and so may the end, by what the task computes under a guard.
pub fn a_slice_each(load: &Load<'_>) -> MaxWait {
    MaxWait {
        time: load
            .config
            .preempt
            .then(|| late_ticks(load, load.tasks * 6)),
        ..each_other_once(load)
    }
}

/// Returns the bound of a job under RR: a round of the others after each slice of 5 ticks, the first of which may be
/// short.
pub fn rr_beside(beside: &Beside) -> Option<u64> {
    let turns = beside.job_ticks.div_ceil(4);
    Some(beside.job_ticks + (turns + 1) * beside.round_ticks())
}

/// Returns the bound of a job under PBG with a plan of `PLANNED` far shorter tasks. Each is demoted within
/// [`OVERRUN_TICKS`](pbg::OVERRUN_TICKS) whole ticks of its own, and then round robin runs.
pub fn planned_beside<const PLANNED: u64>(beside: &Beside) -> Option<u64> {
    let followed = PLANNED * (u64::from(pbg::OVERRUN_TICKS) + 1);
    Some(rr_beside(beside)? + followed)
}

/// Returns the bound of a job under SJF: half a class and a round of the others past each due time. The shortest class
/// is less than a tick.
pub fn sjf_beside(beside: &Beside) -> Option<u64> {
    let past_due = (beside.job_ticks + 1) * (beside.round_ticks() + 2);
    Some(sjf::PATIENCE * beside.job_ticks * 3 / 2 + past_due)
}

/// Draws programs that end under a correct scheduler: a task waits only for its own children, and for notifications
/// with a limit.
pub fn program() -> impl Strategy<Value = Program> {
    let leaf = steps(step()).prop_map(|ops| Program::new("leaf", ops));
    let tree = leaf.prop_recursive(3, 12, 4, |child| {
        let spawn = child.prop_map(|child| vec![Op::Spawn(child)]);
        steps(prop_oneof![3 => step(), 1 => spawn]).prop_map(|ops| Program::new("node", ops))
    });
    tree.prop_map(|program| Program::new("main", program.ops.to_vec()))
}

fn steps(step: impl Strategy<Value = Vec<Op>>) -> impl Strategy<Value = Vec<Op>> {
    prop::collection::vec(step, 0..10).prop_map(|parts| parts.concat())
}

/// Draws one step, or several if one alone would be a fault of the program.
fn step() -> impl Strategy<Value = Vec<Op>> {
    let queue = 0..2u32;
    let one = prop_oneof![
        4 => (0..30u64).prop_map(Op::Run),
        3 => Just(Op::Yield),
        2 => (0..50u64).prop_map(Op::Sleep),
        2 => (queue.clone(), 0..60u64).prop_map(|(queue, units)| Op::Wait { queue, timeout: Some(units) }),
        2 => (queue, any::<bool>()).prop_map(|(queue, resched)| Op::Notify { queue, resched }),
        1 => (0..3usize).prop_map(Op::Join),
        1 => (0..3usize).prop_map(Op::DropHandle),
        2 => (1..16u64).prop_map(|mask| Op::Migrate(CpuMask(mask))),
        1 => (-25..25isize).prop_map(Op::SetPriority),
    ];
    let guarded = (0..30u64, any::<bool>()).prop_map(|(units, yields)| {
        let middle = if yields { Op::Yield } else { Op::Run(units) };
        vec![Op::PreemptOff, Op::Run(units), middle, Op::PreemptOn]
    });
    prop_oneof![12 => one.prop_map(|op| vec![op]), 1 => guarded]
}

/// Draws machines on which tasks make progress: a tick period holds a switch and a call.
pub fn machine() -> impl Strategy<Value = Config> {
    let flags = (any::<bool>(), prop::bool::weighted(0.8));
    let line = prop_oneof![Just(Line::Axtask03), Just(Line::AxTask06)];
    (line, 1..=4usize, flags, 7..30u64, 0..4u64).prop_map(
        |(line, cpus, (wake_resched, preempt), tick_period, switch_cost)| Config {
            line,
            cpus,
            preempt,
            tick_period,
            switch_cost,
            wake_resched,
            ..Config::default()
        },
    )
}

/// Asserts that `found` is the golden file `name` of `data/traces`. `GOLDEN=write cargo test -p axsched-ext` rewrites
/// these files.
pub fn assert_golden(name: &str, found: &str) {
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/traces");
    let file = format!("{dir}/{name}.txt");
    if std::env::var_os("GOLDEN").is_some_and(|golden| golden == "write") {
        std::fs::write(&file, found).unwrap();
    }
    assert_eq!(found, std::fs::read_to_string(&file).unwrap(), "{file}");
}

fn fixed_or_given() -> u64 {
    let given = std::env::var("PROPTEST_RNG_SEED").ok();
    given.and_then(|seed| seed.parse().ok()).unwrap_or(2026)
}

pub fn proptest_config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        // The same programs on every run, so that a change is not blamed for an old fault. PROPTEST_RNG_SEED=n draws
        // others.
        rng_seed: RngSeed::Fixed(fixed_or_given()),
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Returns the machine with a bound that a policy promises. The bound holds for wakers as `axtask` has them.
pub fn bounded(config: Config, main: &Program, bound: fn(&Load<'_>) -> MaxWait) -> Config {
    let max_wait = bound(&Load::of(main, &config));
    if config.wake_resched {
        config
    } else {
        Config { max_wait, ..config }
    }
}

pub fn passes(result: Result<Report, Box<Failure>>) -> Result<(), TestCaseError> {
    result
        .map(drop)
        .map_err(|failure| TestCaseError::fail(failure.to_string()))
}
