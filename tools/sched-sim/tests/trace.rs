//! Traces of played workloads: the stays on CPUs and the wakes agree with the outcome of the run.

mod common;

use std::num::NonZeroUsize;

use axsched_ext::{
    pbg::stored::{Ended, Figure, Figures, Phases, Place, StoredPhase, StoredProfile, StoredTask},
    units::Counts,
};
use common::{MS, TICK_NS, costs, machine, policy, profiles};
use sched_sim::{
    play::{Outcome, play, play_traced},
    policies::{Policy, policies},
    recorded::recorded,
    trace::{Left, Stay, Thread, Traced},
    workload::Workload,
};

const ALL: NonZeroUsize = NonZeroUsize::MAX;

/// Returns a task with these phases: their end, their number of run intervals, and the length of
/// each.
fn task(ordinal: u32, list: &[(Ended, u64, u64)]) -> StoredTask {
    let phase = |&(ended, intervals, each_ns): &(Ended, u64, u64)| {
        let blocked = match ended {
            Ended::Block => Counts(intervals * 25 * MS),
            _ => Counts::ZERO,
        };
        StoredPhase::new(ended, intervals, Counts(intervals * each_ns), blocked)
    };
    let run = list
        .iter()
        .map(|(_, intervals, each_ns)| intervals * each_ns);
    StoredTask {
        figures: Figures {
            run: Figure::once(run.sum()),
            ready: Figure::once(2_000 * MS),
            ..Figures::default()
        },
        phases: Phases {
            list: list.iter().map(phase).collect(),
            ..Phases::default()
        },
        ..profiles::task(ordinal)
    }
}

/// Returns twelve tasks that run, yield and sleep for different times. The last is a child of the
/// first.
fn mixed() -> StoredProfile {
    let of = |i: u32| {
        let long = u64::from(i + 1) * MS;
        let sleeps = (Ended::Block, u64::from(i % 3) + 1, long);
        let yields = (Ended::Yield, 20, long / 8);
        task(i, &[yields, sleeps, (Ended::Exit, 1, long)])
    };
    let mut tasks: Vec<_> = (0..12).map(of).collect();
    tasks[11].place = Place::Child {
        parent: 0,
        ordinal: 0,
    };
    tasks[11].key = tasks[0].key.child(0);
    profiles::profile("mixed", tasks)
}

fn workload(profile: &StoredProfile) -> Workload {
    recorded(profile, profile, machine(1).clock, TICK_NS)
}

fn traced_of(
    profile: &StoredProfile,
    policy: &Policy,
    cpus: usize,
    most: NonZeroUsize,
) -> (Outcome, Traced) {
    let (workload, machine) = (workload(profile), machine(cpus));
    play_traced(&workload, policy, profile, &costs(), &machine, most).unwrap()
}

/// Returns the outcome and the trace of the mixed tasks. A log does not change the outcome.
fn traced(policy: &Policy, cpus: usize, most: NonZeroUsize) -> (Outcome, Traced) {
    let profile = mixed();
    let plain = play(
        &workload(&profile),
        policy,
        &profile,
        &costs(),
        &machine(cpus),
    )
    .unwrap();
    let (outcome, traced) = traced_of(&profile, policy, cpus, most);
    assert_eq!(outcome, plain);
    (outcome, traced)
}

/// Asserts that the stays fill each CPU's time without a gap or an overlap.
fn assert_whole(traced: &Traced, cpus: usize) {
    for cpu in 0..cpus {
        let mut at = 0;
        for stay in traced.stays.iter().filter(|stay| stay.cpu == cpu) {
            assert_eq!(stay.from_ns, at, "{stay:?}");
            assert!(stay.to_ns > at, "{stay:?}");
            match stay.thread {
                Thread::Idle(of) | Thread::Gc(of) => assert_eq!(of, cpu, "{stay:?}"),
                Thread::Main | Thread::Task(_) => {}
            }
            at = stay.to_ns;
        }
        assert_eq!(at, traced.end_ns, "CPU {cpu}");
    }
    let stays = &traced.stays;
    assert!(stays.is_sorted_by_key(|stay| (stay.cpu, stay.from_ns)));
    assert!(traced.wakes.is_sorted_by_key(|wake| wake.at_ns));
}

#[test]
fn each_task_has_its_time_its_switches_and_its_wakes() {
    for (policy, cpus) in policies()
        .iter()
        .flat_map(|p| [1, 2, 4, 64].map(|cpus| (p, cpus)))
    {
        let (outcome, traced) = traced(policy, cpus, ALL);
        assert_whole(&traced, cpus);
        assert_eq!(traced.lost, 0);
        for (i, played) in outcome.tasks.iter().enumerate() {
            let name = format!("{} on {cpus}: {}", policy.name(), played.name);
            let mut stays: Vec<&Stay> = traced.stays.iter().collect();
            stays.retain(|stay| stay.thread == Thread::Task(i));
            stays.sort_by_key(|stay| stay.from_ns);
            assert!(stays.is_sorted_by(|a, b| a.to_ns <= b.from_ns), "{name}");
            let sum: u64 = stays.iter().map(|stay| stay.to_ns - stay.from_ns).sum();
            assert_eq!(sum, played.run_ns, "{name}");
            assert_eq!(stays.len() as u64, played.dispatches, "{name}");
            assert_eq!(stays[0].from_ns, played.first_run_ns, "{name}");
            let (last, others) = stays.split_last().unwrap();
            assert_eq!(last.left, Some(Left::Exited), "{name}");
            assert!(last.from_ns < played.finish_ns && played.finish_ns < last.to_ns);

            // It is submitted, and woken after each time that it was blocked, off its CPU.
            let mut wakes = traced.wakes.iter().filter(|wake| wake.task == i);
            assert_eq!(wakes.next().unwrap().at_ns, played.submit_ns, "{name}");
            for (stay, next) in others.iter().zip(&stays[1..]) {
                match stay.left {
                    Some(Left::Blocked) => {
                        let wake = wakes.next().expect("a wake for each wait");
                        let while_off = stay.to_ns..=next.from_ns;
                        assert!(while_off.contains(&wake.at_ns), "{name}: {wake:?}");
                        // It stays where it was put.
                        assert_eq!(wake.to, next.cpu, "{name}: {wake:?}");
                    }
                    Some(Left::Yielded | Left::Preempted) => {}
                    other => panic!("{name}: {other:?}"),
                }
            }
            assert_eq!(wakes.next(), None, "{name}");
        }
        for wake in &traced.wakes {
            let is_it = |stay: &&Stay| {
                let its = stay.from_ns..=stay.to_ns;
                (stay.cpu, stay.thread) == (wake.cpu, wake.by) && its.contains(&wake.at_ns)
            };
            assert!(traced.stays.iter().any(|stay| is_it(&stay)), "{wake:?}");
        }
    }
}

/// Returns the task that spawned this one.
fn spawner(traced: &Traced, task: usize) -> Thread {
    let mut wakes = traced.wakes.iter();
    wakes.find(|wake| wake.task == task).unwrap().by
}

#[test]
fn main_submits_and_a_parent_its_child() {
    let (_, traced) = traced(policy("rr"), 4, ALL);
    let by = |task| spawner(&traced, task);
    assert_eq!(
        (by(0), by(10), by(11)),
        (Thread::Main, Thread::Main, Thread::Task(0))
    );
    assert_eq!(traced.stays[0].thread, Thread::Main);
}

#[test]
fn records_that_do_not_fit_are_counted() {
    let rr = policy("rr");
    let (_, whole) = traced(rr, 4, ALL);
    let records = |most: usize| traced(rr, 4, NonZeroUsize::new(most).unwrap()).1;
    // The numbers of records up to the end of the last task, and after it.
    let all = (1..).find(|&most| records(most).lost == 0).unwrap();
    let after = records(all - 1).lost - 1;
    assert!((1..20).contains(&after), "{after}");
    assert_eq!(records(all), whole);
    for most in [1, 20, 60, all / 2, all - 1] {
        let cut = records(most);
        assert_eq!(cut.lost, (all - most) as u64 + after);
        // At its end the last one wakes gc, at the same moment.
        assert!(cut.end_ns <= whole.end_ns);
        if cut.end_ns > 0 {
            assert_whole(&cut, 4);
        }
        // The stays are the same, but the last one of each CPU is cut at the end of the trace.
        for stay in &cut.stays {
            let same = |other: &&Stay| (other.cpu, other.from_ns) == (stay.cpu, stay.from_ns);
            let other = whole.stays.iter().find(same).unwrap();
            assert_eq!(stay.thread, other.thread);
            match stay.left {
                Some(_) => assert_eq!(stay, other),
                None => assert!(stay.to_ns == cut.end_ns && other.to_ns >= cut.end_ns),
            }
        }
    }
}

#[test]
fn a_million_switches_are_kept() {
    let yields = |i| {
        task(
            i,
            &[(Ended::Yield, 500_000, 1_000), (Ended::Exit, 1, 1_000)],
        )
    };
    let profile = profiles::profile("yields", (0..2).map(yields));
    let most = NonZeroUsize::new(1_000_100).unwrap();
    let (outcome, traced) = traced_of(&profile, policy("fifo"), 1, most);
    assert_eq!(traced.lost, 0);
    assert!(traced.stays.len() > 1_000_000, "{}", traced.stays.len());
    assert_whole(&traced, 1);
    let run_ns: u64 = outcome.tasks.iter().map(|task| task.run_ns).sum();
    let of_tasks = |stay: &&Stay| matches!(stay.thread, Thread::Task(_));
    let stays = traced.stays.iter().filter(of_tasks);
    assert_eq!(
        stays.map(|stay| stay.to_ns - stay.from_ns).sum::<u64>(),
        run_ns
    );
}

/// No task's program holds that of another by value, nor is it made or dropped inside it: a test's
/// stack has 2 MiB.
#[test]
fn a_chain_of_4096_tasks_that_spawn_each_other_is_played() {
    let mut tasks: Vec<_> = (0..4_096)
        .map(|i| task(i, &[(Ended::Exit, 1, 1_000)]))
        .collect();
    for i in 1..tasks.len() {
        tasks[i].key = tasks[i - 1].key.child(0);
        tasks[i].place = Place::Child {
            parent: i as u32 - 1,
            ordinal: 0,
        };
    }
    let profile = profiles::profile("chain", tasks);
    let (outcome, traced) = traced_of(&profile, policy("rr"), 4, ALL);
    assert!(outcome.tasks.is_sorted_by_key(|task| task.submit_ns));
    let spawned_by = |task| spawner(&traced, task);
    assert_eq!(spawned_by(0), Thread::Main);
    assert!((1..4_096).all(|task| spawned_by(task) == Thread::Task(task - 1)));
}
