//! The layer that records any policy, on the model of `axtask`. It does not change what the policy does. It writes the
//! same profile as PBG's own measurement, and the times and counts that the model has seen.

mod common;

use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::Promises;
use axsched_ext::model::{Config, CpuMask, ModelTask, Op, Program, Report, TaskReport, run};
use axsched_ext::pbg::stored::{self, Ended, Kernel, StoredProfile, Timing, Waker};
use axsched_ext::pbg::{About, ControlSource, Error, PbgScheduler, PbgTask, PerThread};
use axsched_ext::recorded::{
    RecordedTask, Recording, RecordingPerThread, RecordingSource, Subject,
};
use axsched_ext::units::TaskKey;
use axsched_ext::{
    BaseScheduler, CfsScheduler, CfsTask, FifoScheduler, FifoTask, RrScheduler, RrTask,
};
use axsched_upstream as stock;
use common::layer::{Inner, Layer, conforms_recorded, machines_here, subject};
use common::{Stock, a_slice_each, machine, program, proptest_config};
use proptest::prelude::*;

subject!(Fifo, "fifo", FifoTask<Inner>, FifoScheduler<Inner>);
subject!(Rr, "rr", RrTask<Inner>, RrScheduler<Inner>);
subject!(Cfs, "cfs", CfsTask<Inner>, CfsScheduler<Inner, VirtualClock>);
subject!(
    StockRr,
    "stock-rr",
    stock::RRTask<Inner, 5>,
    Stock<stock::RRScheduler<Inner, 5>>
);

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

/// Returns `main`, measured from its first steps on. It yields at once: PBG's measurement begins with the next
/// switch or spawn, the layer's with the call.
fn measured(main: &Program) -> Program {
    let steps = [Op::Run(3), Op::Call(0), Op::Yield].into_iter();
    Program::new("main", steps.chain(main.ops.iter().cloned()))
}

fn calling(config: &Config, on_call: fn(u32)) -> Config {
    Config {
        on_call,
        on_time: VirtualClock::set,
        ..config.clone()
    }
}

/// Returns what PBG measures of a program, on one CPU.
fn by_pbg(config: &Config, main: &Program) -> StoredProfile {
    let control = PerThread::renew();
    let config = calling(config, |_| PerThread::control().measure_start().unwrap());
    let made = |_| PbgScheduler::<_, VirtualClock, PerThread>::new();
    run(&config, &measured(main), made, PbgTask::new).unwrap();
    control.measure_end_by::<VirtualClock>().unwrap();
    let profile = control.profile(&about()).unwrap().unwrap();
    PerThread::retire();
    profile
}

/// Returns what the layer measures of a program around the policy `S`, and the report of the machine.
fn by_layer<S>(config: &Config, main: &Program, connects: bool) -> (StoredProfile, Report)
where
    S: Subject<Inner = ModelTask> + 'static,
{
    let recording = RecordingPerThread::renew();
    if connects {
        // SAFETY: see there.
        unsafe { recording.connect(machines_here::<S>) };
    }
    let start = |_| RecordingPerThread::recording().measure_start().unwrap();
    let config = calling(config, start);
    let made = |_| Layer::<S>::new();
    let report = run(&config, &measured(main), made, RecordedTask::new).unwrap();
    end(recording).unwrap();
    (recording.profile(&about()).unwrap().unwrap(), report)
}

fn end(recording: &Recording) -> Result<usize, Error> {
    recording.measure_end_by::<VirtualClock>()
}

/// Returns a program in which tasks spawn, yield, wait for each other, sleep and are preempted.
fn family() -> Program {
    let child = [Op::Run(25), Op::Yield, Op::Run(5), Op::Sleep(40)];
    let child = || Op::spawn("child", child.clone());
    let parent = [Op::Run(7), child(), Op::Yield, child(), Op::Join(1)];
    let parent = Op::spawn("parent", parent);
    let waits = [Op::Run(2), Op::wait(0), Op::Run(9)];
    let notifies = [Op::Sleep(35), Op::Run(4), Op::notify(0), Op::Run(60)];
    let (waits, notifies) = (Op::spawn("waits", waits), Op::spawn("notifies", notifies));
    Program::new("main", [parent.clone(), waits, notifies, parent])
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
            assert_eq!(by_layer::<Rr>(&config, &family(), connects).0, expected);
        }
    }
}

#[test]
fn profile_names_its_policy_and_kernel() {
    fn named<S: Subject<Inner = ModelTask> + 'static>() -> (String, Kernel) {
        let header = by_layer::<S>(&Config::default(), &family(), false).0.header;
        (header.policy.to_string(), header.start.kernel)
    }
    assert_eq!(named::<StockRr>(), ("stock-rr".into(), Kernel::Preemptive));
    assert_eq!(named::<Cfs>(), ("cfs".into(), Kernel::Preemptive));
    // No tick asks for the CPU.
    assert_eq!(named::<Fifo>(), ("fifo".into(), Kernel::Unknown));
}

/// The waker may run on another CPU than the one whose queue gets the task.
#[test]
fn task_that_ends_a_wait_is_recorded_whatever_its_cpu() {
    let waits = [
        Op::Run(2),
        Op::wait(0),
        Op::Run(9),
        Op::Sleep(300),
        Op::Run(2),
    ];
    let notifies = [Op::Sleep(500), Op::Run(37), Op::notify(0), Op::Run(400)];
    let mut ops = vec![Op::spawn("waits", waits), Op::spawn("notifies", notifies)];
    ops.extend((0..4).map(|_| Op::spawn("works", [Op::Run(3_000)])));
    ops.push(Op::Join(0));
    let main = Program::new("main", ops);
    for cpus in [1, 2, 3] {
        let (profile, report) = by_layer::<Rr>(&slow_ticks(cpus), &main, true);
        let [waits, notifies] = [0, 1].map(|ordinal| {
            let key = TaskKey::ROOT.child(ordinal);
            profile.tasks.iter().position(|t| t.key == key).unwrap()
        });
        let phases = |task: usize| profile.tasks[task].phases.list.iter();
        let blocks = phases(waits).filter(|phase| phase.ended == Ended::Block);
        let waited: Vec<_> = blocks.map(|phase| phase.woken_by).collect();
        let by = Waker::Task(notifies as u16);
        assert_eq!(waited, [by, Waker::Timer], "{cpus} CPUs: {}", report.trace);
        let wakes = phases(notifies).flat_map(|phase| phase.wakes.iter());
        assert_eq!(wakes.map(|woken| woken.count).sum::<u64>(), 1);
    }
}

fn slow_ticks(cpus: usize) -> Config {
    Config {
        tick_period: 1_000,
        ..Config::with_cpus(cpus)
    }
}

fn task(id: usize) -> Arc<RecordedTask<Rr>> {
    Arc::new(RecordedTask::new(ModelTask::new(id, "task")))
}

/// Returns a new recording, and a queue with a `gc` in it.
fn queue_with_gc() -> (&'static Recording, Layer<Rr>) {
    let recording = RecordingPerThread::renew();
    VirtualClock::set(0);
    let mut queue = Layer::<Rr>::new();
    queue.add_task(task(1));
    (recording, queue)
}

#[test]
fn calls_that_make_no_sense_are_refused() {
    let recording = RecordingPerThread::renew();
    let no_queue = Err(Error::NotBuiltIn);
    assert_eq!(recording.measure_start(), no_queue);
    assert_eq!(end(recording), Err(Error::NotMeasuring));
    let mut queues = [0, 1].map(|_| Layer::<Rr>::new());
    queues[0].add_task(task(0));
    recording.measure_start().unwrap();
    assert_eq!(recording.measure_start(), Err(Error::AlreadyMeasuring));
    assert_eq!(end(recording), Ok(0));
    assert_eq!(end(recording), Err(Error::NotMeasuring));
    queues[1].add_task(task(1));
    assert_eq!(recording.measure_start(), Err(Error::NotConnected));
    // SAFETY: see there.
    unsafe { recording.connect(machines_here::<Rr>) };
    recording.measure_start().unwrap();
    assert_eq!(recording.label_next(""), Err(Error::BadLabel));
    assert_eq!(end(recording), Ok(0));
}

/// A task that is older than the measurement has no record in it, nor has its child.
#[test]
fn task_that_is_older_than_a_measurement_is_not_recorded() {
    let (recording, mut queue) = queue_with_gc();
    let (main, old) = (task(0), task(2));
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

/// A migration is not a wait: the task gives its CPU up, as by a yield.
#[test]
fn migration_counts_as_a_yield() {
    let to = |cpu| Op::Migrate(CpuMask::one(cpu));
    let moves = Op::spawn("moves", [Op::Run(5), to(1), Op::Run(5), to(0)]);
    let main = Program::new("main", [moves, Op::Join(0)]);
    let (profile, report) = by_layer::<Rr>(&slow_ticks(2), &main, true);
    let [_, _, blocked, dispatches, yields, preemptions, blocks] = profile.tasks[0]
        .figures
        .to_array()
        .map(|figure| figure.total);
    let found = (blocked, dispatches, yields, preemptions, blocks);
    assert_eq!(found, (0, 3, 2, 0, 0), "{}", report.trace);
}

/// The recording is not connected, and `main` was never picked. So `main` is the task that comes back without
/// having been added.
#[test]
fn main_is_the_root_if_it_blocks_first_and_another_of_no_record_runs_then() {
    let (recording, mut queue) = queue_with_gc();
    let main = task(0);
    recording.measure_start().unwrap();
    let gc = queue.pick_next_task().unwrap(); // main blocks
    queue.put_prev_task(main, false); // and is woken
    queue.put_prev_task(gc, false);
    assert_eq!(queue.pick_next_task().unwrap().id().0, 0);
    queue.add_task(task(2));
    assert_eq!(end(recording), Ok(1));
}

/// A label is for the next spawn on its CPU. A second measurement starts from nothing.
#[test]
fn labels_and_measurements_do_not_mix() {
    let (recording, mut queue) = queue_with_gc();
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
        let of_tasks = profile.tasks.iter().map(|task| task.key);
        keys.push(of_tasks.collect::<Vec<_>>());
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
        prop_assert_eq!(by_layer::<Rr>(&config, &main, connects).0, by_pbg(&config, &main));
    }

    /// The recorded tasks are the spawned ones. They have run as often and for as long as recorded.
    #[test]
    fn any_program_on_any_number_of_cpus_is_recorded_as_it_ran(config in machine(), main in program()) {
        let config = Config { wake_resched: false, ..config };
        let (profile, report) = by_layer::<Rr>(&config, &main, true);
        let one = by_layer::<Rr>(&Config { cpus: 1, ..config.clone() }, &main, false).0;
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
        // A task that migrates counts as running until its helper has put it.
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
