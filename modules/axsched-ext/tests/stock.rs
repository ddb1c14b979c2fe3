//! The registry's own axsched 0.3.1 on the model. What we compare ourselves with
//! has to pass the same rules; where it is known not to, the model must say so.

mod common;

use axsched_ext::conformance::{Broken, Load, Promises, check};
use axsched_ext::model::{Config, MaxWait, Op, Program, Violation, run};
use axsched_upstream::{CFSTask, CFScheduler, FifoScheduler, FifoTask, RRScheduler, RRTask};
use common::{Stock, a_slice_each, each_other_once};

#[test]
fn stock_fifo_conforms() {
    let promises = Promises {
        max_wait: each_other_once,
        ..Promises::default()
    };
    let made = |_| Stock(FifoScheduler::new());
    let coverage = check(&promises, made, FifoTask::new).unwrap();
    assert_eq!(coverage.rules, 25);
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
    assert_eq!(coverage.rules, 25);
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

/// Runs stock CFS until it breaks the bound that round robin keeps.
fn run_cfs(program: &Program) -> Violation {
    let config = Config {
        // By vruntime a task may run on after a yield, and gc too: less
        // tolerance, and these would be what is found first.
        repick_after_yield: true,
        max_gc_streak: u64::MAX,
        ..Config::default()
    };
    let max_wait = MaxWait {
        time: a_slice_each(&Load::of(program, &config)).time,
        dispatches: None,
    };
    let config = Config { max_wait, ..config };
    let made = |_| Stock(CFScheduler::new());
    run(&config, program, made, CFSTask::new)
        .unwrap_err()
        .violation
}

/// A late task starts with the vruntime of long ago and runs alone until it has
/// caught up.
#[test]
fn stock_cfs_starves_the_old_when_a_late_one_comes() {
    let worker = |name| Program::repeat(name, 1000, &[Op::Run(5), Op::Yield]);
    let sleep = Op::Sleep(5_000);
    let ops = [Op::Spawn(worker("old")), sleep, Op::Spawn(worker("late"))];
    let violation = run_cfs(&Program::new("main", ops));
    assert!(
        matches!(&violation, Violation::Starved { task, .. } if &*task.name == "old"),
        "{violation}"
    );
}

/// Setting a priority, even the one it has, wipes out what a task is charged.
#[test]
fn stock_cfs_starves_the_others_of_a_task_that_sets_its_priority() {
    let greedy = Program::repeat("greedy", 1000, &[Op::Run(9), Op::SetPriority(-20)]);
    let modest = Program::new("modest", [Op::Run(5_000)]);
    let ops = [Op::Spawn(modest), Op::Spawn(greedy)];
    let violation = run_cfs(&Program::new("main", ops));
    assert!(
        matches!(&violation, Violation::Starved { task, .. } if &*task.name == "modest"),
        "{violation}"
    );
}
