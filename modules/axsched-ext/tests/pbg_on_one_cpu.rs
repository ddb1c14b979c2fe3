//! PBG on one CPU in the model of `axtask`. Idle, measuring and replaying, it keeps the rules of the
//! suite, runs any program, and is as fast as its rules promise.

mod common;

use std::sync::Arc;

use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::loads::BATCH;
use axsched_ext::conformance::{Coverage, Promises, Rng, check};
use axsched_ext::model::{Config, Failure, ModelTask, Op, Program, Report, run};
use axsched_ext::pbg::{ControlSource, Mode, PLAN_TICKS, PbgScheduler, PbgTask, PerThread, Status};
use axsched_ext::{BaseScheduler, SjfScheduler, SjfTask};
use common::on_add::OnAdd;
use common::several::{MEASURE_END, MEASURE_START, START_PBG, START_PBG_AND_KEEP, call_pbg, named};
use common::{
    a_slice_each, bounded, machine, passes, planned_beside, program, proptest_config, rr_beside,
};
use proptest::prelude::*;

type PbgUnderTest = PbgScheduler<ModelTask, VirtualClock, PerThread>;

/// Returns the scheduler of a CPU; the first one of a machine makes the machine's control.
fn pbg_machine(cpu: usize) -> PbgUnderTest {
    if cpu == 0 {
        PerThread::renew();
    }
    PbgUnderTest::new()
}

// ---------------------------------------------------------------------------
// The suite
// ---------------------------------------------------------------------------

/// Returns a scheduler that takes a step when `gc`, its first task, is in the queue, as `main` would at once.
fn with_first(
    cpu: usize,
    first: fn(&mut PbgUnderTest, &Arc<PbgTask<ModelTask>>),
) -> impl BaseScheduler<SchedItem = Arc<PbgTask<ModelTask>>> {
    let mut first = Some(first);
    OnAdd {
        scheduler: pbg_machine(cpu),
        on_add: move |scheduler: &mut _, task: &_| {
            if let Some(first) = first.take() {
                first(scheduler, task);
            }
        },
    }
}

/// Measures a program by hand and follows its plan. `main` has four children, the last of them the shortest,
/// and each of these has two.
fn plan_by_hand(scheduler: &mut PbgUnderTest, gc: &Arc<PbgTask<ModelTask>>) {
    let task = |id, name| Arc::new(PbgTask::new(ModelTask::new(id, name)));
    call_pbg(MEASURE_START);
    (1..=4).for_each(|id| scheduler.add_task(task(id, "child")));
    // Each pick says that the task before has left for good.
    scheduler.pick_next_task();
    for id in 1..=4 {
        scheduler.pick_next_task();
        scheduler.add_task(task(10 * id, "grandchild"));
        scheduler.add_task(task(10 * id + 1, "grandchild"));
        VirtualClock::advance(100 - 20 * id as u64);
    }
    while scheduler.pick_next_task().is_some() {
        VirtualClock::advance(10);
    }
    call_pbg(MEASURE_END);
    let plan = PerThread::control().plan().unwrap().unwrap();
    assert_eq!(plan.tasks().len(), 12);
    scheduler.put_prev_task(gc.clone(), false);
    call_pbg(START_PBG);
}

/// Asserts that the suite has gone through `tasks` tasks and did not test in vain.
fn assert_thorough(coverage: &Coverage, tasks: u64, cpus: usize) {
    assert_eq!(coverage.rules, 27);
    let enough = coverage.tasks > tasks && coverage.yields > 3 * tasks;
    assert!(enough, "{coverage:?}");
    assert_eq!(coverage.wake_spins > 0, cpus > 1, "{coverage:?}");
}

fn promises() -> Promises {
    Promises {
        max_wait: a_slice_each,
        done_beside: rr_beside,
        on_time: VirtualClock::set,
        ..Promises::default()
    }
}

#[test]
fn conforms_while_idle() {
    let coverage = check(&promises(), pbg_machine, PbgTask::new).unwrap();
    assert_thorough(&coverage, 2_000, 4);
}

#[test]
fn conforms_while_measuring() {
    let promises = Promises {
        max_cpus: 1,
        // Each machine leaks a record.
        random_programs: 60,
        ..promises()
    };
    let made = |cpu| with_first(cpu, |_, _| call_pbg(MEASURE_START));
    let coverage = check(&promises, made, PbgTask::new).unwrap();
    assert_thorough(&coverage, 500, 1);
}

#[test]
fn conforms_while_following_a_plan() {
    let promises = Promises {
        done_beside: planned_beside::<12>,
        on_time: VirtualClock::set,
        max_cpus: 1,
        repick_after_yield: true,
        random_programs: 60,
        ..Promises::default()
    };
    let coverage = check(&promises, |cpu| with_first(cpu, plan_by_hand), PbgTask::new).unwrap();
    assert_thorough(&coverage, 500, 1);
}

// ---------------------------------------------------------------------------
// Programs that are measured and replayed
// ---------------------------------------------------------------------------

/// Returns a program that measures `first` and replays `then` by that plan.
fn measured_then_replayed(first: &Program, then: &Program) -> Program {
    measured_then(first, START_PBG, then)
}

fn measured_then(first: &Program, start: u32, then: &Program) -> Program {
    let mut ops = vec![Op::Call(MEASURE_START)];
    ops.extend(first.ops.iter().cloned());
    ops.extend([Op::Call(MEASURE_END), Op::Call(start)]);
    ops.extend(then.ops.iter().cloned());
    Program::new("main", ops)
}

fn pbg_config(config: Config) -> Config {
    Config {
        cpus: 1,
        repick_after_yield: true,
        on_time: VirtualClock::set,
        on_call: call_pbg,
        ..config
    }
}

/// Returns a machine whose unit of time is a microsecond, with a tick of 10 ms.
fn in_micros() -> Config {
    pbg_config(Config {
        tick_period: 10_000,
        ..Config::default()
    })
}

fn run_pbg(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    run(config, main, pbg_machine, PbgTask::new)
}

/// Returns the status at the end of the last run.
fn status() -> Status {
    PerThread::control().status().unwrap()
}

#[test]
fn replay_is_shortest_first_and_switches_less() {
    let worker = |n, run| Program::repeat("worker", n, &[Op::Run(run), Op::Yield]);
    let workers = [
        worker(100, 30),
        worker(20, 10),
        worker(60, 10),
        worker(40, 10),
    ];
    let count = workers.len();
    let phase = |offset: usize| {
        let spawns = workers.iter().cloned().map(Op::Spawn);
        Program::new(
            "main",
            spawns.chain((0..count).map(|n| Op::Join(offset + n))),
        )
    };
    let config = pbg_config(Config::default());
    let played = |then| run_pbg(&config, &measured_then_replayed(&phase(0), &then)).unwrap();
    let one = played(Program::new("main", []));
    let two = played(phase(count));
    let replayed: Vec<_> = two.tasks.iter().skip(2 + count).collect();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by_key(|&n| replayed[n].finished);
    assert_eq!(order, [1, 3, 2, 0], "shortest first");
    let (measured, replayed) = (one.switches, two.switches - one.switches);
    assert!(2 * replayed < measured, "{replayed} of {measured}");
    let status = status();
    let found = (status.mode, status.matched, status.demoted);
    assert_eq!(found, (Mode::Replaying, 4, 0));
}

#[test]
fn replay_gives_unplanned_tasks_the_turn_it_promises() {
    let long = Program::repeat("long", 500, &[Op::Run(9), Op::Yield]);
    let visitor = Program::repeat("visitor", 30, &[Op::Run(2), Op::Yield]);
    let first = Program::new("main", [Op::Spawn(long.clone()), Op::Join(0)]);
    let visitors = [(); 3].map(|()| Op::Spawn(visitor.clone()));
    let then = [Op::Spawn(long), Op::DropHandle(0)].into_iter();
    let then = Program::new("main", then.chain(visitors));
    let config = pbg_config(Config::default());
    let report = run_pbg(&config, &measured_then_replayed(&first, &then)).unwrap();

    // Four wait at most: main or gc, and the visitors. The tick may be a burst late.
    let bound = 5 * (u64::from(PLAN_TICKS) + 1) * config.tick_period + 50;
    for name in ["visitor", "gc"] {
        let waited = named(&report, name).map(|t| t.max_wait).max().unwrap();
        let is_within = (1..=bound).contains(&waited);
        assert!(is_within, "{name} waited {waited} of {bound}");
    }
    let status = status();
    assert_eq!((status.matched, status.unplanned), (1, 3));
    assert!(status.turns > 40, "{status:?}");
}

#[test]
fn replay_stops_favouring_a_task_far_beyond_its_plan() {
    let task = |name, n| Op::Spawn(Program::repeat(name, n, &[Op::Run(5), Op::Yield]));
    let (short, middle, long) = (task("short", 3), task("middle", 20), task("short", 500));
    let first = Program::new("main", [short, middle.clone(), Op::Join(0), Op::Join(1)]);
    let main = measured_then_replayed(&first, &Program::new("main", [long, middle]));
    let report = run_pbg(&pbg_config(Config::default()), &main).unwrap();

    let [short, middle] = &report.tasks[4..] else {
        panic!("{:?}", report.tasks);
    };
    assert!(short.run_time > 2_500 && middle.run_time > 100);
    // It takes some ticks until the short one is demoted; then the middle one runs.
    assert!(middle.turnaround().unwrap() < 400, "{middle:?}");
    assert_eq!(status().demoted, 1);
}

/// Returns a program that spawns `tasks`, keeps no handle, and waits for all.
fn all_at_once(tasks: &[Vec<Op>], handles: usize) -> Program {
    let mut ops = Vec::new();
    for (place, task) in tasks.iter().enumerate() {
        let task = task.iter().cloned().chain([Op::notify(0)]);
        ops.extend([Op::spawn("task", task), Op::DropHandle(handles + place)]);
    }
    ops.extend(tasks.iter().map(|_| Op::wait(0)));
    Program::new("main", ops)
}

/// Returns the sums of the turnarounds of `then` under the plan of `first`, and under round robin.
fn planned_and_unplanned(first: &[Vec<Op>], then: &[Vec<Op>]) -> [u64; 2] {
    let config = in_micros();
    let sum = |main: &Program| {
        let report = run_pbg(&config, main).unwrap();
        let turnarounds = named(&report, "task").map(|task| task.turnaround().unwrap());
        turnarounds.take(then.len()).sum::<u64>()
    };
    let unplanned = sum(&all_at_once(then, 0));
    let (first, then) = (all_at_once(first, 0), all_at_once(then, first.len()));
    [sum(&measured_then_replayed(&first, &then)), unplanned]
}

/// Rule 10 keeps the plan: a task that the plan does not know fills the time in which the planned tasks
/// sleep, and delays none of them.
#[test]
fn replay_keeps_its_plan_beside_an_unknown_task_that_fills_the_gaps() {
    let server = |i: u64| {
        let answer = [Op::Run(2000 + 500 * i), Op::Sleep(15_000)];
        Program::repeat("server", 150, &answer).ops.to_vec()
    };
    let servers: Vec<_> = (0..4).map(server).collect();
    let with_filler = [&servers[..], &[vec![Op::Run(2_000_000)]]].concat();
    let [planned, unplanned] = planned_and_unplanned(&servers, &with_filler);
    let status = status();
    assert_eq!((status.unplanned, status.dropped), (1, false));
    // 3,479 and 4,420 ms on average; were the plan dropped, 4,327.
    assert!(planned * 100 <= unplanned * 80, "{planned}, {unplanned}");
}

/// Rule 10 drops the plan: all tasks take three times as long as recorded.
#[test]
fn replay_of_a_program_that_has_trebled_is_within_a_tenth_of_round_robin() {
    let jobs = |times: u64| -> Vec<_> {
        let length = |i: u64| times * (20_000 + 5_000 * i * i);
        (0..10).map(|i| vec![Op::Run(length(i))]).collect()
    };
    let [planned, unplanned] = planned_and_unplanned(&jobs(1), &jobs(3));
    let status = status();
    assert_eq!((status.demoted, status.dropped), (7, true));
    // 2,484 and 2,552 ms on average; were it kept, 2,992.
    assert!(planned * 10 <= unplanned * 11, "{planned}, {unplanned}");
}

/// Returns a program, chosen by `n`, whose tasks wait for one another by polling. A poller sleeps for a
/// tick until its worker is done, and may have work of its own then. The wait queues begin with
/// `first_queue`.
fn polling(n: u64, first_queue: u32) -> Vec<Vec<Op>> {
    let rng = &mut Rng(n);
    let mut tasks = Vec::new();
    // From shorter than a tick to longer than a slice of round robin, in milliseconds.
    let longest = [8, 40, 300, 48][n as usize % 4];
    // In every fourth program many wait for one worker.
    let gate = (n % 4 == 3).then(|| first_queue + rng.below(3) as u32);
    for queue in first_queue..first_queue + 2 + rng.below(10) as u32 {
        let work = Op::Run((1 + rng.below(longest)) * 1000);
        tasks.push(vec![work, Op::notify(queue)]);
        let pollers = match gate {
            Some(gate) => 24 * u64::from(queue == gate),
            None => [0, 0, 1, 1, 2, 8][rng.below(6) as usize],
        };
        for _ in 0..pollers {
            let units = 1000;
            let mut poller = vec![Op::Run(5), Op::SleepUntil { queue, units }];
            if rng.below(3) == 0 {
                poller.push(Op::Run((1 + rng.below(longest)) * 1000));
            }
            let at = rng.below(tasks.len() as u64 + 1) as usize;
            tasks.insert(at, poller);
        }
    }
    tasks
}

/// Returns the sums of the turnarounds of polling program `n` measured and replayed, and the status.
fn measured_and_replayed(n: u64, start: u32) -> ([u64; 2], Status) {
    let first = polling(n, 1);
    let again = all_at_once(&polling(n, 101), first.len());
    let main = measured_then(&all_at_once(&first, 0), start, &again);
    let report = run_pbg(&in_micros(), &main).unwrap();
    let tasks: Vec<_> = named(&report, "task").collect();
    let sums = [1, 0].map(|i| {
        let phase = &tasks[i * first.len()..][..first.len()];
        phase.iter().map(|task| task.turnaround().unwrap()).sum()
    });
    (sums, status())
}

/// Rule 11 over polling programs: `behind` is set whenever a replay is slower than its measurement by more
/// than a twentieth, and giving the plan up costs little. (On average over the 300 the replay takes 0.673
/// times as long as the measurement. 11 are slower, by up to 1.34. Two are given up, which take 1.05 and
/// 1.34 in place of 0.98 and 1.23.)
#[test]
fn replay_that_is_slower_than_measured_is_told_and_given_up() {
    let (mut slower, mut dropped) = (0, 0);
    let [mut sum, mut sum_if_kept] = [0.0, 0.0];
    for n in 0..300 {
        let ([measured, replayed], status) = measured_and_replayed(n, START_PBG);
        let is_slower = replayed * 20 > measured * 21;
        assert!(status.behind || !is_slower, "program {n}: {status}");
        let ([_, kept], if_kept) = measured_and_replayed(n, START_PBG_AND_KEEP);
        assert!(!if_kept.dropped, "program {n}: {if_kept}");
        let [replayed, kept] = [replayed, kept].map(|sum| sum as f64 / measured as f64);
        assert!(replayed <= 1.1 * kept, "program {n}: {replayed}, {kept}");
        slower += u32::from(is_slower);
        dropped += u32::from(status.dropped);
        sum += replayed;
        sum_if_kept += kept;
    }
    assert!((1..=20).contains(&slower), "{slower}");
    assert!((1..=10).contains(&dropped), "{dropped}");
    assert!(sum <= 1.001 * sum_if_kept, "{sum}, {sum_if_kept}");
}

/// The kinds of the jobs of `BATCH` that wait.
#[derive(Clone, Copy, Debug)]
enum Waiting {
    /// Each waits `waits` times, for 20 ms each time.
    Jobs,
    /// Every second one is a server instead: 200 answers of 1 ms, 10 ms apart.
    JobsAndServers,
}

/// Returns a program of the jobs of `BATCH`, of which those that wait do so `waits` times. `main` spawns each
/// when it is due, and waits for all.
fn batch(waiting: Waiting, waits: u64, handles: usize) -> Program {
    let mut due: Vec<_> = BATCH.iter().collect();
    due.sort_by_key(|job| job.2); // stable
    let mut now = 0;
    let mut ops = Vec::new();
    let mut waiters = 0;
    for (place, &&(run_ms, does_wait, due_ms)) in due.iter().enumerate() {
        if due_ms > now {
            ops.push(Op::Sleep((due_ms - now) * 1000));
            now = due_ms;
        }
        waiters += usize::from(does_wait);
        let (waits, sleep, run) = match waiting {
            _ if !does_wait => (0, 0, run_ms * 1000),
            Waiting::JobsAndServers if waiters % 2 == 0 => (199, 10_000, 1000),
            _ => (waits, 20_000, run_ms * 1000 / (waits + 1)),
        };
        let mut job = vec![Op::Run(run)];
        for _ in 0..waits {
            job.extend([Op::Sleep(sleep), Op::Run(run)]);
        }
        job.push(Op::notify(0));
        ops.extend([Op::spawn("task", job), Op::DropHandle(handles + place)]);
    }
    ops.extend(BATCH.iter().map(|_| Op::wait(0)));
    Program::new("main", ops)
}

/// Returns the average turnaround of the last 32 tasks, in microseconds.
fn average(report: &Report) -> u64 {
    let turnarounds = named(report, "task").map(|task| task.turnaround().unwrap());
    turnarounds.take(BATCH.len()).sum::<u64>() / BATCH.len() as u64
}

/// A wait more for each of eight jobs, or of four beside four servers, changes the average turnaround by a
/// fiftieth at most (1.14 and 0.48 %).
#[test]
fn replay_has_no_cliff_in_the_number_of_waits() {
    let config = in_micros();
    for waiting in [Waiting::Jobs, Waiting::JobsAndServers] {
        let mut last = None;
        for waits in 0..=64 {
            let at = format!("{waiting:?}, {waits} waits");
            let first = batch(waiting, waits, 0);
            let both = measured_then_replayed(&first, &batch(waiting, waits, BATCH.len()));
            let planned = average(&run_pbg(&config, &both).unwrap());
            let status = status();
            assert!(!status.behind && !status.dropped, "{at}: {status}");
            let made = |_| SjfScheduler::<_, VirtualClock>::new();
            let sjf = average(&run(&config, &first, made, SjfTask::new).unwrap());
            assert!(planned < sjf, "{at}: {planned}, SJF {sjf}");
            let before = last.replace(planned).unwrap_or(planned);
            let step = planned.abs_diff(before);
            assert!(50 * step <= before, "{at}: {planned} after {before}");
        }
    }
}

proptest! {
    #![proptest_config(proptest_config(150))]

    #[test]
    fn runs_any_program(config in machine(), main in program()) {
        let config = Config { on_time: VirtualClock::set, ..config };
        let config = bounded(config, &main, a_slice_each);
        passes(run_pbg(&config, &main))?;
    }

    #[test]
    fn measures_and_replays_any_program(config in machine(), main in program()) {
        let main = measured_then_replayed(&main, &main);
        passes(run_pbg(&pbg_config(config), &main))?;
    }

    #[test]
    fn survives_the_plan_of_another_program(
        config in machine(),
        first in program(),
        then in program(),
    ) {
        let main = measured_then_replayed(&first, &then);
        passes(run_pbg(&pbg_config(config), &main))?;
    }
}
