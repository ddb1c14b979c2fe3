//! The layer that records any policy, on the model of `axtask`: it changes nothing of the policy,
//! and what it writes is what PBG's own measurement writes, and what the model has seen.

mod common;

use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::Promises;
use axsched_ext::model::{Config, CpuMask, ModelTask, Op, Program, Report, TaskReport, run};
use axsched_ext::pbg::stored::{self, Ended, Kernel, StoredProfile, Timing, Waker};
use axsched_ext::pbg::{About, ControlSource, Error, PbgScheduler, PbgTask, PerThread};
use axsched_ext::recorded::{
    RecordedTask, Recording, RecordingPerThread, RecordingSource, Subject, WithSlot,
};
use axsched_ext::units::TaskKey;
use axsched_upstream as stock;
use common::layer::{Layer, conforms_recorded, machines_here};
use common::{Stock, a_slice_each, machine, program, proptest_config};
use proptest::prelude::*;

macro_rules! subjects {
    ($($module:ident $task:ident $scheduler:ty;)*) => {
        $(
            mod $module {
                use axsched_ext::*;

                use axsched_ext::model::ModelTask;
                use axsched_ext::recorded::{Subject, WithSlot};

                type T = WithSlot<ModelTask>;

                pub struct It;

                impl Subject for It {
                    const NAME: &'static str = stringify!($module);
                    type Inner = ModelTask;
                    type Task = $task<T>;
                    type Scheduler = $scheduler;

                    fn task(inner: T) -> Self::Task {
                        $task::new(inner)
                    }

                    fn scheduler() -> Self::Scheduler {
                        <$scheduler>::new()
                    }
                }
            }
        )*
    };
}

subjects! {
    fifo FifoTask FifoScheduler<T>;
    rr RrTask RrScheduler<T>;
    cfs CfsTask CfsScheduler<T, clock::VirtualClock>;
}

/// The registry's round robin.
struct StockRr;

impl Subject for StockRr {
    const NAME: &'static str = "stock-rr";
    type Inner = ModelTask;
    type Task = stock::RRTask<WithSlot<ModelTask>, 5>;
    type Scheduler = Stock<stock::RRScheduler<WithSlot<ModelTask>, 5>>;

    fn task(inner: WithSlot<ModelTask>) -> Self::Task {
        stock::RRTask::new(inner)
    }

    fn scheduler() -> Self::Scheduler {
        Stock(stock::RRScheduler::new())
    }
}

#[test]
fn stock_rr_conforms_within_the_layer() {
    let promises = Promises {
        max_wait: a_slice_each,
        ..Promises::default()
    };
    conforms_recorded::<StockRr>(&promises);
}

fn about() -> About {
    About {
        program: stored::Program::scaled("test", 1),
        frequency_hz: 1_000,
        cpus: 1,
        timing: Timing::Counted,
    }
}

/// `main`, measured from its first steps on. It yields at once, as PBG's measurement begins with
/// the next switch or spawn; the layer's begins with the call.
fn measured(main: &Program) -> Program {
    let steps = [Op::Run(3), Op::Call(0), Op::Yield].into_iter();
    Program::new("main", steps.chain(main.ops.iter().cloned()))
}

/// What PBG measures of a program, on one CPU.
fn by_pbg(config: &Config, main: &Program) -> StoredProfile {
    let control = PerThread::renew();
    let on_call = |_| PerThread::control().measure_start().unwrap();
    let config = Config {
        on_call,
        on_time: VirtualClock::set,
        ..config.clone()
    };
    let made = |_| PbgScheduler::<_, VirtualClock, PerThread>::new();
    run(&config, &measured(main), made, PbgTask::new).unwrap();
    control.measure_end_by::<VirtualClock>().unwrap();
    let profile = control.profile(&about()).unwrap().unwrap();
    PerThread::retire();
    profile
}

/// What the layer measures of it around the policy of `S`, and what the machine says.
fn by_layer<S>(config: &Config, main: &Program, connects: bool) -> (StoredProfile, Report)
where
    S: Subject<Inner = ModelTask> + 'static,
{
    let recording = RecordingPerThread::renew();
    if connects {
        // SAFETY: see there.
        unsafe { recording.connect(machines_here::<S>) };
    }
    let on_call = |_| RecordingPerThread::recording().measure_start().unwrap();
    let config = Config {
        on_call,
        on_time: VirtualClock::set,
        ..config.clone()
    };
    let made = |_| Layer::<S>::new();
    let report = run(&config, &measured(main), made, RecordedTask::new).unwrap();
    end(recording).unwrap();
    (recording.profile(&about()).unwrap().unwrap(), report)
}

fn end(recording: &Recording) -> Result<usize, Error> {
    recording.measure_end_by::<VirtualClock>()
}

/// A program in which tasks spawn, yield, wait for each other, sleep and are preempted.
fn family() -> Program {
    let child = Program::new("child", [Op::Run(25), Op::Yield, Op::Run(5), Op::Sleep(40)]);
    let parent = [
        Op::Run(7),
        Op::Spawn(child.clone()),
        Op::Yield,
        Op::Spawn(child),
        Op::Join(1),
    ];
    let parent = Program::new("parent", parent);
    let resched = false;
    let notify = [
        Op::Sleep(35),
        Op::Run(4),
        Op::Notify { queue: 0, resched },
        Op::Run(60),
    ];
    let wait = Op::wait(0);
    let waits = Program::new("waits", [Op::Run(2), wait, Op::Run(9)]);
    let notifies = Program::new("notifies", notify);
    Program::new(
        "main",
        [parent.clone(), waits, notifies, parent].map(Op::Spawn),
    )
}

#[test]
fn round_robin_recorded_is_what_pbg_measures() {
    for preempt in [true, false] {
        let config = Config {
            preempt,
            ..Config::default()
        };
        let expected = by_pbg(&config, &family());
        assert_eq!(expected.tasks.len(), 8);
        for connects in [false, true] {
            assert_eq!(by_layer::<rr::It>(&config, &family(), connects).0, expected);
        }
    }
}

#[test]
fn the_profile_names_its_policy_and_kernel() {
    let config = Config::default();
    let named = |profile: StoredProfile| {
        let kernel = profile.header.start.map(|start| start.kernel);
        (profile.header.policy.to_string(), kernel)
    };
    let of_stock = named(by_layer::<StockRr>(&config, &family(), false).0);
    assert_eq!(of_stock, ("stock-rr".into(), Some(Kernel::Preemptive)));
    let of_cfs = named(by_layer::<cfs::It>(&config, &family(), false).0);
    assert_eq!(of_cfs, ("cfs".into(), Some(Kernel::Preemptive)));
    // Nobody asks for the CPU at a tick.
    let of_fifo = named(by_layer::<fifo::It>(&config, &family(), false).0);
    assert_eq!(of_fifo, ("fifo".into(), Some(Kernel::Unknown)));
}

/// On several CPUs, too: who wakes runs on another CPU than the one whose queue is told.
#[test]
fn who_ends_a_wait_is_told_whatever_the_cpu() {
    let resched = false;
    let wait = |queue| Op::Wait {
        queue,
        timeout: None,
    };
    let waits = Program::new(
        "waits",
        [Op::Run(2), wait(0), Op::Run(9), Op::Sleep(300), Op::Run(2)],
    );
    let notify = Op::Notify { queue: 0, resched };
    let notifies = Program::new(
        "notifies",
        [Op::Sleep(500), Op::Run(37), notify, Op::Run(400)],
    );
    let others = (0..4).map(|_| Op::Spawn(Program::new("works", [Op::Run(3_000)])));
    let ops = [waits, notifies].map(Op::Spawn).into_iter().chain(others);
    let main = Program::new("main", ops.chain([Op::Join(0)]));
    let key = |ordinal| TaskKey::ROOT.child(ordinal);
    for cpus in [1, 2, 3] {
        let config = Config {
            cpus,
            tick_period: 1_000,
            ..Config::default()
        };
        let (profile, report) = by_layer::<rr::It>(&config, &main, true);
        let place = |key| {
            profile
                .tasks
                .iter()
                .position(|task| task.key == key)
                .unwrap()
        };
        let [waits, notifies] = [0, 1].map(|ordinal| place(key(ordinal)));
        let waited: Vec<_> = (profile.tasks[waits].phases.list.iter())
            .filter(|phase| phase.ended == Ended::Block)
            .map(|phase| phase.woken_by)
            .collect();
        let by = Waker::Task(notifies as u16);
        assert_eq!(waited, [by, Waker::Timer], "{cpus} CPUs: {}", report.trace);
        let wakes = profile.tasks[notifies]
            .phases
            .list
            .iter()
            .flat_map(|phase| phase.wakes.iter().map(|woken| woken.count));
        assert_eq!(wakes.sum::<u64>(), 1);
    }
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let recording = RecordingPerThread::renew();
    assert_eq!(
        recording.measure_start(),
        Err(Error::NotBuiltIn),
        "no queue"
    );
    assert_eq!(end(recording), Err(Error::NotMeasuring));
    let gc = |id| Arc::new(RecordedTask::<rr::It>::new(ModelTask::new(id, "gc")));
    let mut queues = [0, 1].map(|_| Layer::<rr::It>::new());
    queues[0].add_task(gc(0));
    recording.measure_start().unwrap();
    assert_eq!(recording.measure_start(), Err(Error::AlreadyMeasuring));
    assert_eq!(end(recording), Ok(0));
    assert_eq!(end(recording), Err(Error::NotMeasuring));
    queues[1].add_task(gc(1));
    assert_eq!(recording.measure_start(), Err(Error::NotConnected));
    // SAFETY: see there.
    unsafe { recording.connect(machines_here::<rr::It>) };
    recording.measure_start().unwrap();
    assert_eq!(recording.label_next(""), Err(Error::BadLabel));
    assert_eq!(end(recording), Ok(0));
}

/// A task of one measurement that is there in the next has no record in that, nor has its child.
#[test]
fn who_is_older_than_a_measurement_is_none_of_its_tasks() {
    let recording = RecordingPerThread::renew();
    let task = |id| Arc::new(RecordedTask::<rr::It>::new(ModelTask::new(id, "task")));
    let mut queue = Layer::<rr::It>::new();
    VirtualClock::set(0);
    let (main, old) = (task(0), task(2));
    queue.add_task(task(1)); // gc
    recording.measure_start().unwrap();
    queue.add_task(old.clone());
    assert_eq!(end(recording), Ok(1));
    recording.measure_start().unwrap();
    queue.add_task(task(3));
    queue.pick_next_task(); // main blocks
    while queue
        .pick_next_task()
        .is_some_and(|task| !Arc::ptr_eq(&task, &old))
    {}
    VirtualClock::set(40);
    queue.add_task(task(4)); // the old one's
    queue.put_prev_task(main, false);
    while queue.pick_next_task().is_some() {}
    assert_eq!(end(recording), Ok(1));
    let profile = recording.profile(&about()).unwrap().unwrap();
    assert_eq!(profile.tasks[0].figures.run.total, 0);
}

/// A move is no wait: the task gives its CPU up, as by a yield.
#[test]
fn a_task_that_is_moved_counts_as_one_that_yielded() {
    let moves = [
        Op::Run(5),
        Op::Migrate(CpuMask::one(1)),
        Op::Run(5),
        Op::Migrate(CpuMask::one(0)),
    ];
    let main = Program::new(
        "main",
        [Op::Spawn(Program::new("moves", moves)), Op::Join(0)],
    );
    let config = Config {
        cpus: 2,
        tick_period: 1_000,
        ..Config::default()
    };
    let (profile, report) = by_layer::<rr::It>(&config, &main, true);
    let [_, _, blocked, dispatches, yields, preemptions, blocks] = profile.tasks[0]
        .figures
        .to_array()
        .map(|figure| figure.total);
    let found = (blocked, dispatches, yields, preemptions, blocks);
    assert_eq!(found, (0, 3, 2, 0, 0), "{}", report.trace);
}

/// Nobody has connected, and `main` has never been picked: it is who comes back and was not added.
#[test]
fn main_is_the_root_if_it_blocks_first_and_another_of_no_record_runs_then() {
    let recording = RecordingPerThread::renew();
    let task = |id| Arc::new(RecordedTask::<rr::It>::new(ModelTask::new(id, "task")));
    let mut queue = Layer::<rr::It>::new();
    VirtualClock::set(0);
    let main = task(0);
    queue.add_task(task(1)); // gc
    recording.measure_start().unwrap();
    let gc = queue.pick_next_task().unwrap(); // main blocks
    queue.put_prev_task(main, false); // and is woken
    queue.put_prev_task(gc, false);
    assert_eq!(queue.pick_next_task().unwrap().id().0, 0);
    queue.add_task(task(2));
    assert_eq!(end(recording), Ok(1));
}

/// A label is for the next spawn on its CPU; a second measurement starts from nothing.
#[test]
fn labels_and_measurements_do_not_mix() {
    let recording = RecordingPerThread::renew();
    let task = |id| Arc::new(RecordedTask::<rr::It>::new(ModelTask::new(id, "task")));
    let mut queue = Layer::<rr::It>::new();
    VirtualClock::set(0);
    queue.add_task(task(0)); // gc
    recording.label_next("before").unwrap();
    let mut keys = Vec::new();
    for labels in [&["a", "b"][..], &["c"]] {
        recording.measure_start().unwrap();
        for (id, label) in labels.iter().enumerate() {
            recording.label_next(label).unwrap();
            queue.add_task(task(id));
        }
        queue.add_task(task(9));
        assert_eq!(end(recording), Ok(labels.len() + 1));
        let profile = recording.profile(&about()).unwrap().unwrap();
        keys.push(
            profile
                .tasks
                .iter()
                .map(|task| task.key)
                .collect::<Vec<_>>(),
        );
    }
    let [a, b, c] = ["a", "b", "c"].map(TaskKey::labelled);
    let child = |ordinal| TaskKey::ROOT.child(ordinal);
    assert_eq!(keys, [vec![a, b, child(2)], vec![c, child(1)]]);
}

proptest! {
    #![proptest_config(proptest_config(40))]

    #[test]
    fn any_program_recorded_under_round_robin_is_what_pbg_measures(
        config in machine(),
        main in program(),
        connects in any::<bool>(),
    ) {
        let config = Config { cpus: 1, wake_resched: false, ..config };
        prop_assert_eq!(by_layer::<rr::It>(&config, &main, connects).0, by_pbg(&config, &main));
    }

    /// Whatever the CPU: who is recorded is who was spawned, as often as it ran, for as long.
    #[test]
    fn any_program_on_any_number_of_cpus_is_recorded_as_it_ran(config in machine(), main in program()) {
        let config = Config { wake_resched: false, ..config };
        let (profile, report) = by_layer::<rr::It>(&config, &main, true);
        let one = by_layer::<rr::It>(&Config { cpus: 1, ..config.clone() }, &main, false).0;
        let keys = |profile: &StoredProfile| {
            let mut keys: Vec<_> = profile.tasks.iter().map(|task| task.key).collect();
            keys.sort_unstable();
            keys
        };
        prop_assert_eq!(keys(&profile), keys(&one));
        let ran = |task: &TaskReport| {
            !matches!(&*task.label.name, "main" | "gc" | "migration")
        };
        let helpers = report.tasks.iter().filter(|task| &*task.label.name == "migration");
        // A task that is moved has left when its helper says so.
        let late: u64 = helpers.map(|task| task.run_time + config.switch_cost).sum();
        let (mut recorded, mut seen) = ((0, 0), (0, 0));
        for task in &profile.tasks {
            let [run, _, _, dispatches, ..] = task.figures.to_array().map(|figure| figure.total);
            recorded = (recorded.0 + run, recorded.1 + dispatches);
        }
        for task in report.tasks.iter().filter(|task| ran(task)) {
            seen = (seen.0 + task.run_time, seen.1 + task.dispatches);
        }
        prop_assert_eq!(recorded.1, seen.1);
        prop_assert!((seen.0..=seen.0 + late).contains(&recorded.0), "{recorded:?} {seen:?}");
    }
}
