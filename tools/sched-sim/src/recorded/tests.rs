use super::*;
use axsched_ext::{
    pbg::stored::{self, Phases, StoredPhase, Woken},
    units::Counts,
};

#[path = "../../../../modules/axsched-ext/tests/common/profiles.rs"]
pub mod profiles;

const TICK_NS: u64 = 10_000_000;
const MS: u64 = 1_000_000;

/// Returns the steps of a task with these phases: `(ending, run intervals, run in ms, blocked in
/// ms)`, all sums over the runs.
fn played(runs: u32, order: PhaseOrder, phases: &[(Ended, u64, u64, u64)]) -> Vec<Work> {
    let phase = |&(ended, intervals, run, blocked): &(Ended, u64, u64, u64)| {
        StoredPhase::new(ended, intervals, Counts(run * MS), Counts(blocked * MS))
    };
    let task = StoredTask {
        runs,
        phases: Phases {
            order,
            list: phases.iter().map(phase).collect(),
        },
        ..profiles::task(0)
    };
    steps(&task, None, Clock::of_frequency(1_000_000_000), TICK_NS)
}

fn work(times: u64, run_ms: f64, then: Then) -> Work {
    Work::new(times, run_ms * MS as f64, then)
}

#[test]
fn steps_are_the_mean_of_the_runs_and_no_time_is_lost_to_rounding() {
    let exit = (Ended::Exit, 3, 30, 0);
    let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 4, 1200, 0), exit]);
    assert_eq!(
        found,
        [work(1, 400.0, Then::Yield), work(1, 10.0, Then::Exit)]
    );
    let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 1, 300, 0), exit]);
    assert_eq!(
        found,
        [work(1, 100.0, Then::Yield), work(1, 10.0, Then::Exit)]
    );
    let found = played(2, PhaseOrder::AsRun, &[(Ended::Yield, 10, 100, 0)]);
    assert_eq!(found, [work(5, 10.0, Then::Yield)]);
}

#[test]
fn played_sleep_is_half_a_tick_shorter_than_recorded() {
    let found = played(1, PhaseOrder::AsRun, &[(Ended::Block, 4, 8, 100)]);
    assert_eq!(found, [work(4, 2.0, Then::Sleep(20.0 * MS as f64))]);
    let found = played(2, PhaseOrder::AsRun, &[(Ended::Block, 2, 2, 4)]);
    assert_eq!(found, [work(1, 1.0, Then::Sleep(1.0))]);
}

#[test]
fn time_before_preemptions_counts_in_the_intervals_after_them() {
    let cut = (Ended::Preemption, 5, 500, 0);
    let found = played(1, PhaseOrder::AsRun, &[cut, (Ended::Yield, 2, 100, 0)]);
    assert_eq!(found, [work(2, 300.0, Then::Yield)]);
    assert_eq!(
        played(1, PhaseOrder::AsRun, &[cut]),
        [work(1, 500.0, Then::Exit)]
    );
    let phases = [(Ended::Yield, 1, 1, 0), cut, (Ended::Exit, 1, 2, 0)];
    let found = played(1, PhaseOrder::ByEnding, &phases);
    let run_ns: f64 = found.iter().map(|work| work.run_ns).sum();
    assert_eq!(run_ns, 503.0 * MS as f64);
}

#[test]
fn without_an_order_yields_are_dealt_out_between_the_sleeps() {
    let phases = [
        (Ended::Yield, 7, 70, 0),
        (Ended::Block, 2, 6, 50),
        (Ended::Exit, 1, 4, 0),
    ];
    let found = played(1, PhaseOrder::ByEnding, &phases);
    let sleep = Then::Sleep(20.0 * MS as f64);
    let expected = [
        work(2, 10.0, Then::Yield),
        work(1, 3.0, sleep),
        work(2, 10.0, Then::Yield),
        work(1, 3.0, sleep),
        work(3, 10.0, Then::Yield),
        work(1, 4.0, Then::Exit),
    ];
    assert_eq!(found, expected);
}

/// Returns how the waits of the second of two tasks are played. The recording does not say for
/// which task it waits, only that the first task has woken it `woken` times.
fn unnamed(waits: u64, woken: u64) -> Then {
    let mut profile = profile_of(&[
        (None, spawned(0, 0, 0, 0, Waker::Unknown)),
        (None, spawned(0, 0, 0, 0, Waker::Unknown)),
    ]);
    profile.tasks[0].phases.list[0].wakes = stored::Wakes::of([Woken {
        whom: Waker::Task(1),
        count: woken,
        after: Counts::ZERO,
    }]);
    let wait = StoredPhase::new(Ended::Block, waits, Counts(waits * MS), Counts(waits * MS));
    profile.tasks[1].phases.list.insert(0, wait);
    let played = recorded(
        &profile,
        &profile,
        Clock::of_frequency(1_000_000_000),
        TICK_NS,
    );
    played.jobs[1].steps[0].then
}

#[test]
fn unrecorded_waker_is_the_task_that_woke_it_nearly_each_time() {
    assert_eq!(unnamed(2 * LONE, 2 * LONE), Then::Wait(0));
    assert_eq!(unnamed(2 * LONE, 2 * LONE - 2), Then::Wait(0));
    assert!(matches!(unnamed(2 * LONE, 2 * LONE - 3), Then::Sleep(_)));
    assert!(matches!(unnamed(2 * LONE, 0), Then::Sleep(_)));
}

fn spawned(at_ms: u64, run_ms: u64, blocks: u64, woken_ms: u64, after: Waker) -> Spawned {
    let [at, parent_run, parent_woken] = [at_ms, run_ms, woken_ms].map(|ms| Figure::once(ms * MS));
    Spawned {
        at,
        parent_run,
        parent_blocks: Figure::once(blocks),
        parent_woken,
        after,
    }
}

fn of_tasks(tasks: &[(Option<u32>, Spawned)]) -> Vec<Job> {
    let profile = profile_of(tasks);
    recorded(
        &profile,
        &profile,
        Clock::of_frequency(1_000_000_000),
        TICK_NS,
    )
    .jobs
}

/// Returns tasks that compute for 1 ms, and how each was spawned: by main, or by the task with that
/// number.
fn profile_of(tasks: &[(Option<u32>, Spawned)]) -> StoredProfile {
    let task = |(i, &(parent, spawned)): (u32, &(Option<u32>, Spawned))| StoredTask {
        place: match parent {
            None => Place::Root { ordinal: i },
            Some(parent) => Place::Child { parent, ordinal: i },
        },
        phases: Phases {
            order: PhaseOrder::AsRun,
            list: vec![StoredPhase::new(Ended::Exit, 1, Counts(MS), Counts::ZERO)],
        },
        spawned,
        ..profiles::task(i)
    };
    profiles::profile("by hand", (0..).zip(tasks).map(task))
}

#[test]
fn task_of_main_comes_after_main_computed_slept_or_was_woken_by_a_task() {
    let jobs = of_tasks(&[
        // The first that is known came 3 ms after one that is not.
        (None, spawned(3, 3, 0, 0, Waker::Unknown)),
        (None, spawned(5, 5, 0, 0, Waker::Unknown)),
        (None, spawned(40, 6, 1, 30, Waker::Timer)),
        (None, spawned(41, 7, 1, 30, Waker::Timer)),
        (None, spawned(60, 8, 2, 58, Waker::Task(1))),
    ]);
    let expected = [
        Arrival::After(0.0),
        Arrival::After(2e6),
        // Main was woken at 30, at a tick; it slept until some time before.
        Arrival::At(22e6),
        Arrival::After(1e6),
        Arrival::When(1),
    ];
    assert_eq!(
        jobs.iter().map(|job| job.arrival).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn a_task_spawns_where_it_had_computed_and_waited_as_much() {
    let mut steps = vec![
        work(4, 10.0, Then::Yield),
        work(2, 10.0, Then::Sleep(5.0)),
        work(3, 10.0, Then::Yield),
        work(1, 10.0, Then::Exit),
    ];
    steps[0].wakes[0].count = 4;
    let ms = MS as f64;
    insert(&mut steps, 7, 0, 13.0 * ms);
    insert(&mut steps, 8, 2, 72.0 * ms);
    insert(&mut steps, 9, 2, 1_000.0 * ms);
    let found: Vec<_> = steps
        .iter()
        .map(|work| (work.times, work.run_ns / ms, work.then, work.wakes[0].count))
        .collect();
    let expected = [
        (1, 10.0, Then::Yield, 1),
        (1, 3.0, Then::Spawn(7), 0),
        (1, 7.0, Then::Yield, 1),
        (2, 10.0, Then::Yield, 2),
        (2, 10.0, Then::Sleep(5.0), 0),
        (1, 10.0, Then::Yield, 0),
        (1, 2.0, Then::Spawn(8), 0),
        (1, 8.0, Then::Yield, 0),
        (1, 10.0, Then::Yield, 0),
        (1, 10.0, Then::Exit, 0),
        (1, 0.0, Then::Spawn(9), 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn lone_sleep_becomes_a_wait_among_many_waits_but_not_among_few() {
    let then = |waits| {
        let mut steps = vec![
            work(waits, 1.0, Then::Wait(3)),
            work(1, 1.0, Then::Sleep(1.0)),
        ];
        ignore_lone_sleeps(&mut steps);
        steps[1].then
    };
    assert_eq!(then(LONE), Then::Wait(3));
    assert_eq!(then(LONE - 1), Then::Sleep(1.0));
}

/// Returns how often the second of two tasks wakes the first in each of two phases, if the first
/// waits for it in all of them. The phases have `times` intervals, and `counts` wakes were
/// recorded.
fn matched(times: [u64; 2], counts: [u64; 2]) -> [u64; 2] {
    let job = |steps| Job {
        name: "job".to_owned(),
        label: None,
        parent: None,
        arrival: Arrival::After(0.0),
        steps,
    };
    let mut wakes = times.map(|times| work(times, 1.0, Then::Yield));
    for (work, count) in wakes.iter_mut().zip(counts) {
        work.wakes[0] = Wakes {
            count,
            whom: Some(Peer::Task(0)),
            after_ns: 0.0,
        };
    }
    let waits = vec![work(times.iter().sum(), 1.0, Then::Wait(1))];
    let mut workload = Workload {
        gc_look_ns: None,
        jobs: vec![job(waits), job(wakes.to_vec())],
    };
    match_wakes(&mut workload);
    [0, 1].map(|i| workload.jobs[1].steps[i].wakes[0].count)
}

#[test]
fn tasks_wake_as_often_as_they_are_waited_for() {
    for (counts, matches) in [
        ([100, 300], [100, 300]),
        // One was lost in the first phase, or another was noted too late.
        ([99, 300], [100, 300]),
        ([99, 301], [100, 300]),
        // That is no accident: the phase that wakes most wakes more often.
        ([50, 300], [50, 350]),
        // One phase lost more than one in 64, and both together did not.
        ([97, 300], [100, 300]),
        ([97, 296], [97, 303]),
        ([200, 300], [200, 200]),
    ] {
        assert_eq!(matched([100, 300], counts), matches, "{counts:?}");
    }
}

#[test]
fn wake_that_is_noted_one_interval_late_counts_where_it_was() {
    assert_eq!(matched([300, 1], [299, 2]), [300, 1]);
    // That is a half of its wakes.
    assert_eq!(matched([1, 1], [0, 2]), [0, 2]);
}

/// Returns a run of a long task and its poller, which yields so often. A look takes 1 µs.
fn polling_run(yields: u64, long_end_ms: u64) -> StoredProfile {
    let task = |ordinal, yields: u64, run: u64, end_ms: u64| {
        let mut task = profiles::task(ordinal);
        task.figures.run = Figure::once(run);
        task.figures.ready = Figure::once(end_ms * MS - run);
        task.figures.yields = Figure::once(yields);
        let phase = |ended, times, run| StoredPhase::new(ended, times, Counts(run), Counts::ZERO);
        let all = [phase(Ended::Yield, yields, run), phase(Ended::Exit, 1, 0)];
        let list = all.into_iter().filter(|phase| phase.intervals > 0);
        task.phases.list = list.collect();
        task
    };
    let looks = (yields - 20) * 1_000;
    let long = task(0, 0, 600 * MS, long_end_ms);
    let poller = task(1, yields, 20 * MS + looks, long_end_ms + 100);
    profiles::profile("polls", [long, poller])
}

/// Returns the steps of the poller with these orders of the tasks.
fn poller(profile: &StoredProfile, orders: &[StoredProfile]) -> Vec<Work> {
    let orders = stored::merge(orders).unwrap();
    let clock = Clock::of_frequency(1_000_000_000);
    let mut jobs = recorded(profile, &orders, clock, TICK_NS).jobs;
    jobs.remove(1).steps
}

#[test]
fn yields_beyond_the_fewest_are_looks_of_a_poller() {
    let (fifo, rr) = (polling_run(20, 600), polling_run(32, 624));
    let poll = Then::Poll {
        awaited: 0,
        sleep_ns: 0.0,
    };
    let orders = [fifo.clone(), rr.clone()];
    let work = [work(20, 1.0, Then::Yield), work(1, 0.0, Then::Exit)];
    let expected = [&[Work::new(12, 1_000.0, poll)][..], &work].concat();
    assert_eq!(poller(&rr, &orders), expected);
    // It looked once, and saw what it waited for.
    let expected = [&[Work::new(1, 1_000.0, poll)][..], &work].concat();
    assert_eq!(poller(&fifo, &orders), expected);
    let alone = poller(&rr, std::slice::from_ref(&rr));
    assert_eq!(alone[0].then, Then::Yield, "one order tells nothing");
}

#[test]
fn task_does_not_poll_for_one_that_waits_for_it() {
    let (mut fifo, mut rr) = (polling_run(20, 600), polling_run(32, 624));
    for run in [&mut fifo, &mut rr] {
        let mut wait = StoredPhase::new(Ended::Block, 1, Counts::ZERO, Counts::ZERO);
        wait.woken_by = Waker::Task(1);
        run.tasks[0].phases.list.insert(0, wait);
    }
    let steps = poller(&rr, &[fifo, rr.clone()]);
    assert_eq!(steps[0].then, Then::Yield);
}
