//! The registry's own axsched 0.3.1 on the model. It has to pass the same rules. Where it is known to break one, the
//! model must find it.

mod common;

use std::ops::Deref;
use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Broken, Promises, check};
use axsched_ext::model::{Config, MaxWait, ModelScheduler, ModelTask, Op, Program, Violation, run};
use axsched_ext::{
    BaseScheduler, CfsScheduler, CfsTask, FifoScheduler as OurFifo, FifoTask as OurFifoTask,
    RrScheduler as OurRr, RrTask as OurRrTask,
};
use axsched_upstream::{CFSTask, CFScheduler, FifoScheduler, FifoTask, RRScheduler, RRTask};
use common::{
    Stock, a_slice_each, bounded, each_other_once, machine, passes, program, proptest_config,
};
use proptest::prelude::*;

#[test]
fn stock_fifo_conforms() {
    let promises = Promises {
        max_wait: each_other_once,
        ..Promises::default()
    };
    let made = |_| Stock(FifoScheduler::new());
    let coverage = check(&promises, made, FifoTask::new).unwrap();
    assert_eq!(coverage.rules, 27);
    assert!(coverage.wake_spins > 0, "{coverage:?}");
}

#[test]
fn stock_rr_conforms() {
    let promises = Promises {
        max_wait: a_slice_each,
        ..Promises::default()
    };
    let made = |_| Stock(RRScheduler::<_, 5>::new());
    let coverage = check(&promises, made, RRTask::new).unwrap();
    assert_eq!(coverage.rules, 27);
    assert!(coverage.preemptions > 100, "{coverage:?}");
}

/// A change of vruntime leaves a queued task under its old key.
#[test]
fn stock_cfs_cannot_remove_what_was_added_again() {
    let made = |_| Stock(CFScheduler::new());
    let broken = check(&Promises::default(), made, CFSTask::new).unwrap_err();
    assert_eq!(broken.name, "put_and_pick_conserve");
    let Broken::ByHand { call, found, .. } = &broken.broken else {
        panic!("{broken}");
    };
    assert_eq!((&**call, &**found), ("remove_task", "None"));
}

/// Runs a program under a scheduler that must let no task wait for longer than `ticks`.
fn within_bound<S: ModelScheduler>(
    ticks: u64,
    program: &Program,
    made: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> S::Task,
) -> Result<(), Violation> {
    let config = Config {
        on_time: VirtualClock::set,
        // By vruntime a task may run on after a yield, and gc too: less
        // tolerance, and these would be what is found first.
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        ..Config::default()
    };
    let max_wait = MaxWait {
        time: Some(ticks * config.tick_period),
        ..MaxWait::default()
    };
    let config = Config { max_wait, ..config };
    run(&config, program, made, wrap)
        .map(drop)
        .map_err(|failure| failure.violation)
}

/// Asserts that stock CFS lets `starved` wait for longer than `ticks` in this scene, and ours lets no task.
fn only_stock_starves(starved: &str, ticks: u64, program: &Program) {
    let stock = within_bound(ticks, program, |_| Stock(CFScheduler::new()), CFSTask::new);
    assert!(
        matches!(&stock, Err(Violation::Starved { task, .. }) if &*task.name == starved),
        "{stock:?}"
    );
    let made = |_| CfsScheduler::<_, VirtualClock>::new();
    let ours = within_bound(ticks, program, made, CfsTask::new);
    assert!(ours.is_ok(), "{}", ours.unwrap_err());
}

/// A late task starts with the vruntime of long ago and runs alone until it has
/// caught up.
#[test]
fn stock_cfs_starves_the_old_when_a_late_one_comes() {
    let worker = |name| Program::repeat(name, 1000, &[Op::Run(5), Op::Yield]);
    let sleep = Op::Sleep(5_000);
    let ops = [Op::Spawn(worker("old")), sleep, Op::Spawn(worker("late"))];
    only_stock_starves("old", 20, &Program::new("main", ops));
}

/// So does one that has slept while another worked.
#[test]
fn stock_cfs_starves_the_worker_when_a_sleeper_wakes() {
    let sleeper = Program::new("sleeper", [Op::Run(5), Op::Sleep(5_000), Op::Run(5_000)]);
    let worker = Program::new("worker", [Op::Run(12_000)]);
    let ops = [Op::Spawn(sleeper), Op::Spawn(worker)];
    only_stock_starves("worker", 20, &Program::new("main", ops));
}

/// Under stock CFS setting a priority, even the present one, wipes out what the task is charged. A
/// task of nice -20 has a right to 87 times the time of the other, and to no more.
#[test]
fn stock_cfs_starves_the_others_of_a_task_that_sets_its_priority() {
    let greedy = Program::repeat("greedy", 1000, &[Op::Run(9), Op::SetPriority(-20)]);
    let modest = Program::new("modest", [Op::Run(5_000)]);
    let ops = [Op::Spawn(modest), Op::Spawn(greedy)];
    only_stock_starves("modest", 4 * 87, &Program::new("main", ops));
}

/// Returns the ticks in a row for which a task that has worked for 5,000 ticks waits when another comes from a queue
/// with little past.
fn wait_beside_a_newcomer<S, W>(
    mut made: impl FnMut() -> S,
    mut wrap: impl FnMut(&'static str) -> W,
) -> u64
where
    S: BaseScheduler<SchedItem = Arc<W>>,
    W: Deref<Target = &'static str>,
{
    VirtualClock::set(0);
    let (mut young, mut old) = (made(), made());
    let tick_passes = || VirtualClock::advance(1_000);
    /// A tick's work on one CPU, and what it leads to.
    fn tick<S: BaseScheduler>(queue: &mut S, running: S::SchedItem) -> S::SchedItem {
        if !queue.task_tick(&running) {
            return running;
        }
        queue.put_prev_task(running, true);
        queue.pick_next_task().expect("one was put back")
    }

    old.add_task(Arc::new(wrap("worker")));
    let mut running = old.pick_next_task().unwrap();
    for _ in 0..5_000 {
        tick_passes();
        running = tick(&mut old, running);
    }

    young.add_task(Arc::new(wrap("mover")));
    let mut mover = young.pick_next_task().unwrap();
    for _ in 0..5 {
        tick_passes();
        running = tick(&mut old, running);
        mover = tick(&mut young, mover);
    }
    assert!(young.pick_next_task().is_none(), "the mover has blocked");
    old.put_prev_task(mover, false); // and wakes on the other queue

    let (mut waits, mut longest) = (0, 0);
    for _ in 0..10_000 {
        tick_passes();
        running = tick(&mut old, running);
        waits = if **running == "worker" { 0 } else { waits + 1 };
        longest = longest.max(waits);
    }
    longest
}

/// vruntime counts from the start of a queue, and stock CFS takes it along to a
/// queue with another start.
#[test]
fn stock_cfs_starves_the_worker_when_a_task_changes_queues() {
    let stock = wait_beside_a_newcomer(|| Stock(CFScheduler::new()), CFSTask::new);
    assert!(stock > 4_000, "{stock}");
    let ours = wait_beside_a_newcomer(CfsScheduler::<_, VirtualClock>::new, CfsTask::new);
    assert!((1..=4).contains(&ours), "{ours}");
}

/// Returns how many of a thousand ticks ask for the CPU while two tasks want it.
fn reschedules<S, W>(mut scheduler: S, mut wrap: impl FnMut(&'static str) -> W) -> u32
where
    S: BaseScheduler<SchedItem = Arc<W>>,
{
    VirtualClock::set(0);
    for name in ["a", "b"] {
        scheduler.add_task(Arc::new(wrap(name)));
    }
    let mut running = scheduler.pick_next_task().unwrap();
    let mut asked = 0;
    for _ in 0..1_000 {
        VirtualClock::advance(1_000);
        if scheduler.task_tick(&running) {
            asked += 1;
            scheduler.put_prev_task(running, true);
            running = scheduler.pick_next_task().unwrap();
        }
    }
    asked
}

/// Without a granularity two equal tasks change places all the time.
#[test]
fn stock_cfs_reschedules_at_nearly_every_tick() {
    let stock = reschedules(Stock(CFScheduler::new()), CFSTask::new);
    assert!(stock > 450, "{stock}");
    let ours = reschedules(CfsScheduler::<_, VirtualClock>::new(), CfsTask::new);
    assert!((200..=260).contains(&ours), "{ours}");
}

proptest! {
    #![proptest_config(proptest_config(150))]

    #[test]
    fn stock_fifo_runs_any_program(config in machine(), main in program()) {
        let config = bounded(config, &main, each_other_once);
        passes(run(&config, &main, |_| Stock(FifoScheduler::new()), FifoTask::new))?;
    }

    #[test]
    fn stock_rr_runs_any_program(config in machine(), main in program()) {
        let config = bounded(config, &main, a_slice_each);
        passes(run(&config, &main, |_| Stock(RRScheduler::<_, 5>::new()), RRTask::new))?;
    }

    #[test]
    fn fifo_and_stock_fifo_are_the_same(config in machine(), main in program()) {
        let ours = run(&config, &main, |_| OurFifo::new(), OurFifoTask::new);
        let stock = run(&config, &main, |_| Stock(FifoScheduler::new()), FifoTask::new);
        prop_assert_eq!(ours, stock);
    }

    #[test]
    fn rr_and_stock_rr_are_the_same(config in machine(), main in program()) {
        // A waker that asks for rescheduling is where stock mixes two things up.
        let config = Config { wake_resched: false, ..config };
        let ours = run(&config, &main, |_| OurRr::<_, 5>::new(), OurRrTask::new);
        let stock = run(&config, &main, |_| Stock(RRScheduler::<_, 5>::new()), RRTask::new);
        prop_assert_eq!(ours, stock);
    }
}
