//! Workloads by hand under every policy, and what holds for each of them.

mod common;

use axsched_ext::{
    pbg::stored::{
        Ended, Figure, Figures, Label, Phases, Place, StoredPhase, StoredProfile, StoredTask,
        Waker, Wakes, Woken,
    },
    units::{Counts, TaskKey},
};
use common::{MS, TICK_NS, costs, machine, policy, profiles};
use sched_sim::{
    bound::{self, BoundKind, bound},
    calibrate::{CLOSE, TOLERANCE, calibrate},
    costs::YieldCost,
    play::{Machine, Outcome, play},
    policies::{Policy, Sharing, policies},
    recorded::recorded,
    time::Clock,
    workload::{Arrival, Job, Then, Work, Workload},
};

/// Returns a task that computes for `run_ns` in `intervals` run intervals, and yields after each
/// but the last.
fn task(ordinal: u32, label: &str, intervals: u64, run_ns: u64) -> StoredTask {
    let yields = intervals - 1;
    let each = run_ns / intervals;
    let phase =
        |ended, intervals, run| StoredPhase::new(ended, intervals, Counts(run), Counts::ZERO);
    let mut list = vec![phase(Ended::Exit, 1, run_ns - each * yields)];
    if yields > 0 {
        list.insert(0, phase(Ended::Yield, yields, each * yields));
    }
    StoredTask {
        key: TaskKey::labelled(label),
        label: Some(Label::new(label).unwrap()),
        figures: Figures {
            run: Figure::once(run_ns),
            // PBG gives up a plan under which tasks live longer than measured.
            ready: Figure::once(2_000 * MS),
            dispatches: Figure::once(intervals),
            yields: Figure::once(yields),
            ..Figures::default()
        },
        phases: Phases {
            list,
            ..Phases::default()
        },
        ..profiles::task(ordinal)
    }
}

fn recording(tasks: impl IntoIterator<Item = StoredTask>) -> StoredProfile {
    profiles::profile("by hand", tasks)
}

/// Returns tasks with the same number of run intervals and yields, the longest first.
fn shorter_and_shorter() -> StoredProfile {
    recording((0..6_u32).map(|i| task(i, &format!("t{i}"), 3, (64 >> i) * 5 * MS)))
}

fn played(profile: &StoredProfile, policy: &Policy, cpus: usize) -> Outcome {
    played_on(&machine(cpus), profile, policy)
}

fn played_on(machine: &Machine, profile: &StoredProfile, policy: &Policy) -> Outcome {
    let workload = recorded(profile, profile, machine.clock, TICK_NS);
    play(&workload, policy, profile, &costs(), machine).unwrap()
}

/// Returns the bound of a recording whose tasks are all there at the start.
fn least_ns(profile: &StoredProfile, cpus: usize) -> f64 {
    let tasks = profile.tasks.iter();
    let jobs = tasks.map(|task| bound::Job::computing(0, task.figures.run.total));
    bound(&jobs.collect::<Vec<_>>(), cpus).average_ns
}

/// As on riscv64. The model reports a preempted task that goes on elsewhere.
#[test]
fn preempted_task_stays_where_it_has_to() {
    // Each runs for longer than a slice of any policy, and yields twice.
    let profile = shorter_and_shorter();
    let average = |policy: &Policy, preempted_stay| {
        let machine = Machine {
            preempted_stay,
            sharing: Sharing::Balanced,
            ..machine(4)
        };
        played_on(&machine, &profile, policy).average_ns()
    };
    for policy in policies() {
        let [moves, stays] = [false, true].map(|stay| average(policy, stay));
        let name = policy.name();
        if policy.is_preemptive() && policy.can_share(Sharing::Balanced) {
            let may_differ = !matches!(name, "rr" | "cfs");
            let differs = (moves - stays).abs() >= 1.0;
            assert!(may_differ || differs, "{name}: {moves} {stays}");
        } else {
            // No task is preempted, or none migrates.
            assert_eq!(moves, stays, "{name}");
        }
    }
}

#[test]
fn every_policy_does_all_the_work_and_none_beats_the_bound() {
    let profile = shorter_and_shorter();
    for cpus in [1, 2, 4, 64] {
        let least = least_ns(&profile, cpus);
        for policy in policies() {
            let outcome = played(&profile, policy, cpus);
            let name = policy.name();
            for (task, recorded) in outcome.tasks.iter().zip(&profile.tasks) {
                let run = recorded.figures.run.total;
                assert!(task.run_ns >= run, "{name}: {task:?}");
                // Beyond that a few switches, ticks and calls.
                assert!(task.run_ns < run + MS, "{name}: {task:?}");
                assert_eq!(task.yields, 2, "{name}: {task:?}");
                assert!(task.submit_ns <= task.first_run_ns, "{name}: {task:?}");
                assert!(task.first_run_ns < task.finish_ns, "{name}: {task:?}");
            }
            let average = outcome.average_ns();
            assert!(average >= least, "{name} on {cpus}: {average} < {least}");
        }
    }
}

#[test]
fn none_beats_the_bound_of_tasks_that_come_late_and_sleep() {
    let job = |i: u64| {
        let run_ns = (MS * (7 + 13 * (i * 5 % 11))) as f64;
        let sleep = Work::new(3, run_ns / 4.0, Then::Sleep(15.0 * MS as f64));
        let exit = |run_ns| Work::new(1, run_ns, Then::Exit);
        Job {
            name: format!("t{i}"),
            label: None,
            parent: None,
            arrival: match i {
                0..8 => Arrival::After(0.0),
                _ => Arrival::At((i * 20 * MS) as f64),
            },
            steps: match i % 3 {
                0 => vec![sleep, exit(run_ns / 4.0)],
                _ => vec![exit(run_ns)],
            },
        }
    };
    let workload = Workload {
        gc_look_ns: None,
        jobs: (0..14).map(job).collect(),
    };
    let profile = shorter_and_shorter();
    for (cpus, sharing) in [
        (2, Sharing::Balanced),
        (4, Sharing::Balanced),
        (3, Sharing::None),
    ] {
        let bound = workload.bound(cpus);
        assert_eq!(bound.kind, BoundKind::BusyTimes);
        let machine = Machine {
            sharing,
            ..machine(cpus)
        };
        let mut least = f64::MAX;
        for policy in policies().iter().filter(|policy| !policy.is_planned()) {
            let outcome = play(&workload, policy, &profile, &costs(), &machine);
            let ratio = outcome.unwrap().average_ns() / bound.average_ns;
            assert!(ratio >= 1.0, "{} on {cpus}: {ratio}", policy.name());
            least = least.min(ratio);
        }
        // A bound far below every policy would say little.
        let is_near = sharing == Sharing::None || least < 1.6;
        assert!(is_near, "{cpus} CPUs: {least}");
    }
}

#[test]
fn pbg_follows_its_plan_on_one_cpu_and_is_at_the_bound() {
    let profile = shorter_and_shorter();
    let least = least_ns(&profile, 1);
    let average = |name, cpus| played(&profile, policy(name), cpus).average_ns();
    let ratio = average("pbg", 1) / least;
    assert!((1.0..1.001).contains(&ratio), "{ratio}");
    assert!(average("rr", 1) > 1.2 * least);
    // PBG refuses to follow a plan there, and round robin runs.
    let ratio = average("pbg", 2) / average("rr", 2);
    assert!((0.999..1.001).contains(&ratio), "{ratio}");
}

#[test]
fn an_instrument_a_crowd_and_a_start_all_count() {
    // Under FIFO all tasks switch at each yield.
    let profile = recording((0..256).map(|i| task(i, &format!("t{i}"), 100, MS)));
    let workload = recorded(&profile, &profile, machine(1).clock, TICK_NS);
    let run = |costs: &YieldCost, machine: &Machine| {
        play(&workload, policy("fifo"), &profile, costs, machine).unwrap()
    };
    let ran = |outcome: &Outcome| outcome.tasks.iter().map(|task| task.run_ns).sum::<u64>();
    let plain = run(&costs(), &machine(1));
    // 99 yields of each, and the time of a switch for the task that comes.
    let switches = plain.switches;
    assert!((25_300..=25_900).contains(&switches), "{switches}");
    assert_eq!(plain.tasks[0].dispatches, 100);
    let metered = Machine {
        hook_ns: 50,
        ..machine(1)
    };
    let more = ran(&run(&costs(), &metered)) - ran(&plain);
    assert!((25_200 * 50..=25_900 * 50).contains(&more), "{more}");
    let crowded = YieldCost::new([(1, 100.0), (4, 140.0), (256, 900.0)]);
    let more = ran(&run(&crowded, &machine(1))) - ran(&plain);
    // Until the last round all but one are ready, which costs as 128 or 256 do.
    assert!((25_200 * 640..=25_900 * 760).contains(&more), "{more}");
    let averages = [0, 1, 2, 3].map(|quarter| {
        let machine = Machine {
            phase_ns: quarter * TICK_NS / 4,
            ..machine(1)
        };
        played_on(&machine, &shorter_and_shorter(), policy("cfs")).average_ns()
    });
    let differs = averages.iter().any(|average| *average != averages[0]);
    assert!(differs, "{averages:?}");
}

/// The tasks have no labels here, and their ordinals have gaps.
#[test]
fn plan_knows_its_tasks_by_their_ordinals() {
    let expected = played(&shorter_and_shorter(), policy("pbg"), 1).average_ns();
    let mut profile = shorter_and_shorter();
    for (task, ordinal) in profile.tasks.iter_mut().zip([0, 2, 5, 6, 9, 11]) {
        task.label = None;
        task.key = TaskKey::ROOT.child(ordinal);
        task.place = Place::Root { ordinal };
    }
    let found = played(&profile, policy("pbg"), 1).average_ns();
    let is_same = (found / expected - 1.0).abs() < 1e-3;
    assert!(is_same, "{found} for {expected}");
}

#[test]
fn tasks_that_others_spawn_are_there_when_these_begin() {
    let mut profile = shorter_and_shorter();
    profile.tasks[5].place = Place::Child {
        parent: 0,
        ordinal: 0,
    };
    for policy in policies() {
        let outcome = played(&profile, policy, 1);
        let [parent, child] = [&outcome.tasks[0], &outcome.tasks[5]];
        let name = policy.name();
        assert!(child.submit_ns > parent.first_run_ns, "{name}");
        assert!(child.submit_ns < parent.first_run_ns + MS, "{name}");
    }
}

/// Returns the recording of a source, a filter and a slow sink that handed over `items` items, one
/// by one.
fn handing_over(items: u64) -> StoredProfile {
    let task = |ordinal: u32, label, run_ns: u64, waker, woken: &[u16]| {
        let mut stored = task(ordinal, label, 1, run_ns);
        let woken = woken.iter().map(|&task| Woken {
            whom: Waker::Task(task),
            count: items,
            after: Counts(run_ns * items * u64::from(task > 0)),
        });
        let phase = StoredPhase::new(Ended::Block, items, Counts(run_ns * items), Counts(1));
        let phase = StoredPhase {
            woken_by: Waker::Task(waker),
            wakes: Wakes::of(woken),
            ..phase
        };
        stored.phases.list.insert(0, phase);
        stored
    };
    recording([
        task(0, "source", 20_000, 1, &[1]),
        task(1, "filter", 20_000, 0, &[0, 2]),
        task(2, "sink", 500_000, 1, &[]),
    ])
}

#[test]
fn filter_that_hands_over_item_by_item_does_not_run_ahead_of_its_sink() {
    let items = 200;
    for policy in policies().iter().filter(|policy| !policy.is_planned()) {
        let outcome = played(&handing_over(items), policy, 1);
        let [filter, sink] = [1, 2].map(|i| outcome.tasks[i].finish_ns);
        let ahead = sink.saturating_sub(filter);
        assert!(ahead < 3 * 520_000, "{}: by {ahead} ns", policy.name());
    }
}

#[test]
fn two_runs_are_the_same() {
    let profile = shorter_and_shorter();
    for policy in policies() {
        for cpus in [1, 8] {
            let runs = [(); 2].map(|()| played(&profile, policy, cpus));
            assert_eq!(runs[0], runs[1], "{} on {cpus}", policy.name());
        }
    }
}

#[test]
fn a_calibrated_workload_takes_as_long_as_recorded() {
    let profile = shorter_and_shorter();
    let machine = machine(1);
    let original = recorded(&profile, &profile, machine.clock, TICK_NS);
    let rr = policy("rr");
    let turnarounds = profile.tasks.iter().map(|task| task.turnaround().0 as f64);
    let turnarounds: Vec<f64> = turnarounds.collect();
    let found = calibrate(&original, &turnarounds, rr, &profile, &costs(), &machine).unwrap();
    assert!(found.rest <= TOLERANCE, "{}", found.rest);
    let outcome = play(&found.workload, rr, &profile, &costs(), &machine).unwrap();
    for (task, recorded) in outcome.tasks.iter().zip(&profile.tasks) {
        let ratio = task.run_ns as f64 / recorded.figures.run.total as f64;
        assert!((ratio - 1.0).abs() <= TOLERANCE, "{task:?}");
    }
    // The switches are taken off.
    let [before, after] = [&original, &found.workload].map(|w| w.jobs[5].run_ns());
    assert!(after < before, "{after} of {before}");
}

/// A count of riscv64 on QEMU is 100 ns.
#[test]
fn a_coarser_counter_changes_next_to_nothing() {
    let fine = shorter_and_shorter();
    let mut coarse = fine.clone();
    coarse.header.frequency_hz = 10_000_000;
    for task in &mut coarse.tasks {
        task.figures.run = Figure::once(task.figures.run.total / 100);
        task.figures.ready = Figure::once(task.figures.ready.total / 100);
        let phases = task.phases.list.iter_mut();
        phases.for_each(|phase| phase.run.0 /= 100);
    }
    let clock = Clock::of_frequency(10_000_000);
    let workload = recorded(&coarse, &coarse, clock, TICK_NS);
    let run_ns = workload.jobs[0].run_ns();
    assert!((run_ns - 320.0 * MS as f64).abs() <= 300.0, "{run_ns}");
    for policy in policies() {
        let machine = Machine {
            clock,
            ..machine(1)
        };
        let outcome = play(&workload, policy, &coarse, &costs(), &machine).unwrap();
        let ratio = outcome.average_ns() / played(&fine, policy, 1).average_ns();
        assert!((0.98..1.02).contains(&ratio), "{}: {ratio}", policy.name());
    }
}

#[test]
fn thousands_of_tasks_on_64_cpus_all_end() {
    let tasks = (0..4096).map(|i| task(i, &format!("t{i}"), 2, MS + u64::from(i % 7) * 5 * MS));
    let profile = recording(tasks);
    for policy in policies() {
        let outcome = played(&profile, policy, 64);
        assert_eq!(outcome.tasks.len(), 4096);
        let all_end = outcome.tasks.iter().all(|task| task.finish_ns > 0);
        assert!(all_end, "{}", policy.name());
    }
}

#[test]
fn poller_goes_on_when_the_awaited_task_has_ended_under_every_policy() {
    let profile = shorter_and_shorter();
    for sleep_ns in [0.0, 15.0 * MS as f64] {
        let job = |steps| Job {
            name: "job".to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps,
        };
        let poll = Then::Poll {
            awaited: 1,
            sleep_ns,
        };
        let work = |ms: u64, then| Work::new(1, (ms * MS) as f64, then);
        let poller = vec![
            Work::new(9, 1_000.0, poll),
            work(10, Then::Yield),
            work(10, Then::Exit),
        ];
        let workload = Workload {
            gc_look_ns: None,
            jobs: vec![job(poller), job(vec![work(95, Then::Exit)])],
        };
        for policy in policies().iter().filter(|policy| !policy.is_planned()) {
            for cpus in [1, 2] {
                let name = format!("{} on {cpus}, {sleep_ns}", policy.name());
                let played = play(&workload, policy, &profile, &costs(), &machine(cpus)).unwrap();
                let [poller, awaited] = &played.tasks[..] else {
                    panic!("two tasks");
                };
                let after = poller.finish_ns - awaited.finish_ns;
                assert!((20 * MS..56 * MS).contains(&after), "{name}: {after}");
                // It has yielded or slept at least once, and once after its work.
                assert!(poller.dispatches + poller.yields >= 2, "{name}: {poller:?}");
            }
        }
    }
}

#[test]
fn calibration_finds_that_main_keeps_handles_and_how_long_gc_looks() {
    let profile = shorter_and_shorter();
    let (rr, machine) = (policy("rr"), machine(1));
    let job = |times, run_ns, then| Job {
        name: "job".to_owned(),
        label: None,
        parent: None,
        arrival: Arrival::After(0.0),
        steps: vec![
            Work::new(times, run_ns, then),
            Work::new(1, 1_000.0, Then::Exit),
        ],
    };
    let mut yielding = vec![job(20_000, 2_000.0, Then::Yield); 2];
    yielding.insert(0, job(1, MS as f64, Then::Yield));
    let recorded = Workload {
        gc_look_ns: None,
        jobs: yielding,
    };
    let calibrated = |turnarounds: &[f64]| {
        calibrate(&recorded, turnarounds, rr, &profile, &costs(), &machine).unwrap()
    };
    let turnarounds = |workload: &Workload| -> Vec<f64> {
        let played = play(workload, rr, &profile, &costs(), &machine).unwrap();
        let tasks = played.tasks.iter();
        tasks
            .map(|task| (task.finish_ns - task.submit_ns) as f64)
            .collect()
    };
    // No task ends too early here.
    let mut workload = calibrated(&[0.0; 3]).workload;
    assert_eq!(workload.gc_look_ns, None);
    workload.gc_look_ns = Some(400.0);
    let kept = calibrated(&turnarounds(&workload));
    let look_ns = kept.workload.gc_look_ns.expect("main keeps handles");
    assert!((380.0..420.0).contains(&look_ns), "{look_ns}");
    assert!(kept.off.abs() <= CLOSE, "{}", kept.off);
    // Tasks that all take twice as long are no work of gc's.
    workload.gc_look_ns = None;
    let twice: Vec<f64> = turnarounds(&workload).iter().map(|ns| ns * 2.0).collect();
    assert_eq!(calibrated(&twice).workload.gc_look_ns, None);
}
