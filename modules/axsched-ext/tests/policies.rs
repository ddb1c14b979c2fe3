//! Layer 2: every policy of the list under the model of `axtask`. A new one is in it with its
//! line in `selected.rs`; what it promises beyond the rules, and a trace of it, is
//! `policy/<its module>.rs`.

mod common;

use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Promises, check};
use axsched_ext::coop::{CoopScheduler, CoopTask};
use axsched_ext::for_each_policy;
use axsched_ext::model::{Config, Label, Line, ModelScheduler, ModelTask, Op, Program, What, run};
use axsched_ext::pbg::{PbgScheduler, PbgTask, PerThread};
use axsched_ext::{MlfqScheduler, MlfqTask, RrScheduler, RrTask};
use common::{bounded, passes};
use proptest::prelude::*;

macro_rules! promised {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        mod policy {
            $(pub mod $module;)*
            pub use {cfs as exact_cfs, eevdf as exact_eevdf};
        }
    };
}

macro_rules! policies {
    ($($feature:literal $module:ident $task:ident $scheduler:ty;)*) => {
        $(
            mod $module {
                use axsched_ext::*;
                use axsched_ext::model::ModelTask;
                use proptest::prelude::*;

                use crate::common::layer::{Inner, conforms_recorded, subject};
                use crate::common::{machine, program, proptest_config};
                use crate::policy::$module::{TURNS, promises};

                #[allow(dead_code, reason = "not every policy reads the time")]
                type C = clock::VirtualClock;
                type Scheduler<T> = $scheduler;

                fn made(_cpu: usize) -> Scheduler<ModelTask> {
                    <Scheduler<ModelTask>>::new()
                }

                #[test]
                fn conforms() {
                    crate::conforms(&promises(), crate::has_preemptions(TURNS), made, $task::new);
                }

                subject!(InLayer, stringify!($module), $task<Inner>, Scheduler<Inner>);

                // The layer is the same around every policy, and tests/recorded.rs has it around one.
                #[test]
                #[ignore = "slow without optimisation: make soak"]
                fn conforms_when_it_is_recorded() {
                    conforms_recorded::<InLayer>(&promises());
                }

                #[test]
                #[ignore = "slow without optimisation: make soak"]
                fn conforms_over_a_million_dispatches() {
                    crate::soaks(&promises(), made, $task::new);
                }

                #[test]
                fn preempts_when_its_rules_say_so() {
                    assert_eq!(crate::turns(made, $task::new), TURNS);
                }

                #[test]
                fn has_its_name_on_one_cpu_and_on_several() {
                    type Smp = <Scheduler<ModelTask> as balance::SmpVariant>::Smp;
                    let name = $feature.trim_start_matches("sched_").to_uppercase();
                    assert_eq!(<Scheduler<ModelTask>>::scheduler_name(), name);
                    assert_eq!(Smp::scheduler_name(), name);
                }

                #[test]
                fn a_task_that_is_removed_is_gone_and_no_other() {
                    crate::remove_tasks(made(0), $task::new);
                }

                proptest! {
                    #![proptest_config(proptest_config(150))]

                    #[test]
                    fn runs_any_program(config in machine(), main in program()) {
                        crate::runs(config, &main, &promises(), made, $task::new)?;
                    }
                }
            }
        )*
    };
}

for_each_policy!(promised);
for_each_policy!(policies);
// The variants in exact order promise the same.
policies! {
    "sched_cfs" exact_cfs CfsTask cfs::ExactCfsScheduler<T, C>;
    "sched_eevdf" exact_eevdf EevdfTask eevdf::ExactEevdfScheduler<T, C>;
}

/// Returns true if there are more turns than tasks, so a task was preempted.
fn has_preemptions(turns: &str) -> bool {
    turns.split(' ').count() > 3
}

/// Asserts that every rule of the suite holds, and that the suite has run enough programs.
fn conforms<S: ModelScheduler>(
    promises: &Promises,
    preempts: bool,
    made: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> S::Task,
) {
    let promises = Promises {
        on_time: VirtualClock::set,
        ..promises.clone()
    };
    let coverage = check(&promises, made, wrap).unwrap();
    assert_eq!(coverage.rules, 27);
    let enough = coverage.tasks > 2_000 && coverage.yields > 6_000 && coverage.wake_spins > 0;
    assert!(enough, "{coverage:?}");
    assert_eq!(coverage.preemptions > 200, preempts, "{coverage:?}");
}

/// Runs the suite with many more and other programs, on machines of 1, up to 2 and up to 4 queues.
fn soaks<S: ModelScheduler>(
    promises: &Promises,
    made: fn(usize) -> S,
    wrap: fn(ModelTask) -> S::Task,
) {
    for max_cpus in [1, 2, 4] {
        let mut dispatches = 0;
        for round in 1.. {
            let promises = Promises {
                on_time: VirtualClock::set,
                random_programs: 2_500,
                seed: promises.seed + round,
                max_cpus,
                ..promises.clone()
            };
            let coverage = check(&promises, made, wrap).unwrap();
            println!("up to {max_cpus} queues: {coverage:?}");
            dispatches += coverage.dispatches;
            if dispatches > 1_000_000 {
                break;
            }
        }
    }
}

/// Runs a random program on a random machine, under the promised bound on waiting.
fn runs<S: ModelScheduler>(
    config: Config,
    main: &Program,
    promises: &Promises,
    made: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> S::Task,
) -> Result<(), TestCaseError> {
    let config = Config {
        on_time: VirtualClock::set,
        ..config
    };
    let config = bounded(config, main, promises.max_wait);
    passes(run(&config, main, made, wrap))
}

/// Returns the tasks that have the CPU and their ticks, turn by turn, while two long tasks want it and a short one comes
/// after 40 ticks. `main` and gc are left out.
fn turns<S: ModelScheduler>(
    made: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> S::Task,
) -> String {
    turns_on(Line::Axtask03, None, made, wrap)
}

/// Returns the same on a line of ArceOS, beside another task, which is left out.
fn turns_on<S: ModelScheduler>(
    line: Line,
    beside: Option<Program>,
    made: impl FnMut(usize) -> S,
    wrap: impl FnMut(ModelTask) -> S::Task,
) -> String {
    let config = Config {
        line,
        tick_period: 1_000,
        on_time: VirtualClock::set,
        trace_events: usize::MAX,
        ..Config::default()
    };
    let long = |name| Op::Spawn(Program::new(name, [Op::Run(30_500)]));
    let short = Op::Spawn(Program::new("s", [Op::Run(2_500)]));
    let mut ops = vec![Op::PreemptOff, long("a"), long("b")];
    ops.extend(beside.map(Op::Spawn));
    ops.push(Op::PreemptOn);
    let main = ops.into_iter().chain([Op::Sleep(40_000), short]);
    let report = run(&config, &Program::new("main", main), made, wrap).unwrap();
    let mut turns: Vec<(Label, u64)> = Vec::new();
    for event in report.trace.events {
        match event.what {
            What::Dispatched => turns.push((event.task, 0)),
            What::Ticked(_) => turns.last_mut().unwrap().1 += 1,
            _ => {}
        }
    }
    turns.retain(|(task, _)| task.name.len() == 1);
    turns.dedup_by(|next, turn| {
        next.0 == turn.0 && {
            turn.1 += next.1;
            true
        }
    });
    let turns = turns
        .iter()
        .map(|(task, ticks)| format!("{}{ticks}", task.name));
    turns.collect::<Vec<_>>().join(" ")
}

/// On the newer line each timer preempts. That costs a task neither its slice nor its level.
#[test]
fn task_that_a_timer_preempts_has_not_yielded() {
    fn compare<S: ModelScheduler>(made: fn(usize) -> S, wrap: fn(ModelTask) -> S::Task) {
        let sleeper = Program::repeat("sleeper", 60, &[Op::Run(1), Op::Sleep(700)]);
        let on = |beside| turns_on(Line::AxTask06, beside, made, wrap);
        // Later the tasks end, a bit later beside the sleeper.
        let first = |turns: String| Vec::from_iter(turns.split(' ').take(8).map(str::to_owned));
        assert_eq!(first(on(Some(sleeper))), first(on(None)));
    }
    compare(|_| RrScheduler::<_>::new(), RrTask::<_>::new);
    compare(
        |_| MlfqScheduler::<_, VirtualClock>::new(),
        MlfqTask::<_>::new,
    );
    compare(
        |_| PbgScheduler::<_, VirtualClock, PerThread>::new(),
        PbgTask::new,
    );
    compare(|_| CoopScheduler::<_>::new(), CoopTask::new);
}

/// Removes ready tasks from every place that a policy has for them.
fn remove_tasks<S: ModelScheduler>(mut scheduler: S, wrap: impl Fn(ModelTask) -> S::Task) {
    VirtualClock::set(0);
    let tasks = [1, 2, 3].map(|id| Arc::new(wrap(ModelTask::new(id, "t"))));
    tasks
        .iter()
        .for_each(|task| scheduler.add_task(task.clone()));
    let remove = |scheduler: &mut S, task: &Arc<S::Task>| {
        let removed = scheduler.remove_task(task);
        assert!(removed.iter().all(|removed| Arc::ptr_eq(removed, task)));
        removed.is_some()
    };
    let running = scheduler.pick_next_task().unwrap();
    let [first, second] = tasks
        .iter()
        .filter(|task| !Arc::ptr_eq(task, &running))
        .collect::<Vec<_>>()[..]
    else {
        panic!("it picked another task than the three");
    };
    assert!(!remove(&mut scheduler, &running), "it runs");
    assert!(remove(&mut scheduler, first), "it is ready");
    assert!(!remove(&mut scheduler, first), "it is gone");
    assert!(remove(&mut scheduler, second), "the last one");
    let goes_on = |scheduler: &mut S, preempt| {
        scheduler.put_prev_task(running.clone(), preempt);
        let next = scheduler.pick_next_task();
        assert!(next.is_some_and(|next| Arc::ptr_eq(&next, &running)));
    };
    // The running task is the only one left.
    for _ in 0..20 {
        VirtualClock::advance(1_000);
        if scheduler.task_tick(&running) {
            goes_on(&mut scheduler, true);
        }
    }
    goes_on(&mut scheduler, false);
    scheduler.put_prev_task(running.clone(), false);
    assert!(remove(&mut scheduler, &running), "it has yielded");
    assert!(scheduler.pick_next_task().is_none(), "no task is left");
    scheduler.put_prev_task(first.clone(), false);
    let back = scheduler.pick_next_task();
    assert!(
        back.is_some_and(|task| Arc::ptr_eq(&task, first)),
        "it may come back"
    );
}
