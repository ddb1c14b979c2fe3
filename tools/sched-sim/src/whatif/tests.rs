use super::*;
use proptest::prelude::*;

const MS: f64 = 1e6;

fn work(times: u64, run_ms: f64, then: Then) -> Work {
    Work::new(times, run_ms * MS, then)
}

fn job(name: &str, parent: Option<usize>, steps: Vec<Work>) -> Job {
    Job {
        name: name.to_owned(),
        label: Some(name.to_owned()),
        parent,
        arrival: Arrival::After(0.0),
        steps,
    }
}

/// Returns a workload in which `a` spawns `b`, `b` spawns `c`, and `d` spawns no task.
fn workload() -> Workload {
    let steps = || {
        vec![
            work(2, 3.0, Then::Yield),
            work(1, 4.0, Then::Sleep(5.0 * MS)),
            work(1, 0.0, Then::Exit),
        ]
    };
    Workload {
        gc_look_ns: None,
        jobs: vec![
            job("a", None, steps()),
            job("b", Some(0), steps()),
            job("c", Some(1), steps()),
            job("d", None, vec![work(4, 0.0, Then::Yield)]),
        ],
    }
}

fn run_of(task: Option<&str>, amount: &str) -> Change {
    Change::Run {
        task: task.map(str::to_owned),
        amount: amount.parse().unwrap(),
    }
}

fn more_of(task: Option<&str>, copies: usize) -> Change {
    let task = task.map(str::to_owned);
    Change::Add { task, copies }
}

fn run_ms(workload: &Workload) -> Vec<f64> {
    workload.jobs.iter().map(|job| job.run_ns() / MS).collect()
}

#[test]
fn rule_1_each_run_interval_is_longer_by_the_same_factor_and_all_else_stays() {
    let found = changed(&workload(), &[run_of(Some("b"), "+50%")]).unwrap();
    let mut expected = workload();
    expected.jobs[1].steps = vec![
        work(2, 4.5, Then::Yield),
        work(1, 6.0, Then::Sleep(5.0 * MS)),
        work(1, 0.0, Then::Exit),
    ];
    assert_eq!(found, expected);
    let found = changed(&workload(), &[run_of(Some("a"), "-100%")]).unwrap();
    assert_eq!(run_ms(&found), [0.0, 10.0, 10.0, 0.0]);
}

#[test]
fn rule_2_task_computes_for_the_given_time() {
    let found = changed(&workload(), &[run_of(Some("a"), "=30ms")]).unwrap();
    assert_eq!(run_ms(&found), [30.0, 10.0, 10.0, 0.0]);
    assert_eq!(found.jobs[0].steps[0].run_ns, 9.0 * MS);
    let found = changed(&workload(), &[run_of(Some("d"), "=8us")]).unwrap();
    assert_eq!(found.jobs[3].steps, [work(4, 0.002, Then::Yield)]);
}

#[test]
fn rule_3_change_without_a_task_applies_to_every_task() {
    let all = [more_of(Some("a"), 1), run_of(None, "x3")];
    let found = changed(&workload(), &all).unwrap();
    assert_eq!(run_ms(&found), [30.0, 30.0, 30.0, 0.0, 30.0, 30.0, 30.0]);
}

#[test]
fn rule_4_copies_come_last_with_all_that_they_spawn() {
    let found = changed(&workload(), &[more_of(Some("b"), 2)]).unwrap();
    assert_eq!(found.jobs[..4], workload().jobs);
    let copies: Vec<_> = found.jobs[4..]
        .iter()
        .map(|job| (job.name.as_str(), job.parent, job.label.clone()))
        .collect();
    let expected = [
        ("b+1", Some(0), None),
        ("c+1", Some(4), None),
        ("b+2", Some(0), None),
        ("c+2", Some(6), None),
    ];
    assert_eq!(copies, expected);
    assert_eq!(found.jobs[5].steps, workload().jobs[2].steps);
    // A second time they have other names.
    let twice = [more_of(Some("d"), 1), more_of(Some("d"), 1)];
    let found = changed(&workload(), &twice).unwrap();
    let names: Vec<_> = found.jobs[4..].iter().map(|job| &job.name).collect();
    assert_eq!(names, ["d+1", "d+2"]);
}

#[test]
fn rule_5_copies_without_a_task_are_of_mains_tasks_in_turn() {
    let found = changed(&workload(), &[more_of(None, 3)]).unwrap();
    let names: Vec<_> = found.jobs[4..].iter().map(|job| &job.name).collect();
    assert_eq!(names, ["a+1", "b+1", "c+1", "d+1", "a+2", "b+2", "c+2"]);
}

#[test]
fn rule_6_changes_are_made_in_their_order() {
    let [run, add] = [run_of(Some("d"), "=1ms"), more_of(Some("d"), 1)];
    let then = |changes: &[Change]| run_ms(&changed(&workload(), changes).unwrap())[3..].to_vec();
    assert_eq!(then(&[run.clone(), add.clone()]), [1.0, 1.0]);
    assert_eq!(then(&[add, run]), [1.0, 0.0]);
}

#[test]
fn rule_7_extended_task_repeats_its_steps() {
    let steps = vec![work(5, 3.0, Then::Yield), work(1, 0.5, Then::Exit)];
    let endless = || job("e", None, steps.clone());
    let once = Workload {
        gc_look_ns: None,
        jobs: vec![endless(), job("o", None, vec![work(1, 7.0, Then::Exit)])],
    };
    let found = extended(&once, |job| job.name == "e", 60.0 * MS);
    assert_eq!(found.jobs[0].steps, vec![work(5, 3.0, Then::Yield); 4]);
    assert_eq!(found.jobs[1], once.jobs[1]);
    // Not too often.
    let found = extended(&once, |job| job.name == "e", 1e9 * MS);
    assert_eq!(found.jobs[0].intervals(), MOST_INTERVALS);
    assert_eq!(found.jobs[0].run_ns(), 1e9 * MS);
    // One that only computes computes for longer.
    let found = extended(&once, |job| job.name == "o", 60.0 * MS);
    assert_eq!(run_ms(&found), [15.5, 60.0]);
    assert_eq!(found.jobs[1].intervals(), 1);
}

#[test]
fn rule_8_factor_multiplies_late_arrivals() {
    let mut late = workload();
    late.jobs[3].arrival = Arrival::At(20.0 * MS);
    let twice = changed(&late, &[Change::Arrivals { times: 2.0 }]).unwrap();
    assert_eq!(twice.jobs[0].arrival, Arrival::After(0.0));
    assert_eq!(twice.jobs[3].arrival, Arrival::At(40.0 * MS));
}

#[test]
fn rule_4_copy_spawns_and_waits_for_copies_only() {
    let mut tight = workload();
    tight.jobs[0].steps.insert(0, work(1, 1.0, Then::Spawn(1)));
    tight.jobs[0].steps.insert(1, work(7, 1.0, Then::Wait(1)));
    tight.jobs[1].steps.insert(0, work(1, 1.0, Then::Wait(3)));
    tight.jobs[1].steps[0].wakes[0] = Wakes {
        count: 1,
        whom: Some(Peer::Task(0)),
        after_ns: 0.0,
    };
    let add = Change::Add {
        task: Some("a".to_owned()),
        copies: 1,
    };
    let more = changed(&tight, &[add]).unwrap();
    let (a, b) = (&more.jobs[4], &more.jobs[5]);
    assert_eq!((&*a.name, &*b.name), ("a+1", "b+1"));
    assert_eq!(
        [a.steps[0].then, a.steps[1].then],
        [Then::Spawn(5), Then::Wait(5)]
    );
    assert_eq!(b.steps[0].then, Then::Yield);
    assert_eq!(b.steps[0].wakes[0].whom, Some(Peer::Task(4)));
}

#[test]
fn impossible_change_is_refused() {
    let fails = |change| changed(&workload(), &[change]).unwrap_err().to_string();
    assert_eq!(
        fails(run_of(Some("e"), "x2")),
        "--task e: expected one of a b c d"
    );
    assert_eq!(
        fails(more_of(Some("e"), 1)),
        "--task e: expected one of a b c d"
    );
    assert_eq!(
        fails(more_of(None, MOST_TASKS)),
        "--add: expected 16384 tasks at most, found 16387"
    );
    let long = [run_of(Some("a"), "=80000s"), run_of(None, "x2")];
    assert_eq!(
        changed(&workload(), &long).unwrap_err().to_string(),
        "--run: expected tasks that compute for a day at most, found a with 160000 s"
    );
    let text = fails(Change::Arrivals { times: 2.0 });
    assert!(text.starts_with("--arrivals: expected a recording with tasks that come late"));
    let names: Vec<_> = (0..14).map(|i| i.to_string()).collect();
    assert_eq!(few(&names), "0 1 2 3 4 5 6 7 8 9 10 11 and 2 more");
}

#[test]
fn amounts_are_parsed() {
    for (text, amount) in [
        ("+20%", Amount::Times(1.2)),
        ("-50%", Amount::Times(0.5)),
        ("+0%", Amount::Times(1.0)),
        ("x2", Amount::Times(2.0)),
        ("x0.5", Amount::Times(0.5)),
        ("=30ms", Amount::Exactly(30.0 * MS)),
        ("=1.5s", Amount::Exactly(1500.0 * MS)),
        ("=7us", Amount::Exactly(7e3)),
        ("=7ns", Amount::Exactly(7.0)),
    ] {
        assert_eq!(text.parse(), Ok(amount), "{text}");
    }
    for text in [
        "", "2", "20%", "+20", "-101%", "x", "x-1", "x1e3", "x1001", "+99901%", "=30", "=ms",
        "=-1ms", "=86401s", "xinf", "xNaN", "=infs", "x2 ", "x.", "+.%",
    ] {
        let why = text.parse::<Amount>().expect_err(text);
        assert!(why.starts_with("expected +20%"), "{text}: {why}");
    }
    assert_eq!(times("x3"), Ok(3.0));
    assert!(times("3").is_err());
}

proptest! {
    /// After any changes parents stay before their children, the recording's tasks keep their
    /// places, and names are unique.
    #[test]
    fn changed_workload_is_valid(
        changes in prop::collection::vec((0..4_usize, 0..6_usize, 0.0..3.0), 0..5)
    ) {
        let changes: Vec<_> = changes.into_iter().map(|(task, copies, times)| {
            let task = ["a", "b", "d"].get(task).map(|name| (*name).to_owned());
            match copies {
                0 => Change::Run { task, amount: Amount::Times(times) },
                copies => Change::Add { task, copies },
            }
        }).collect();
        let found = changed(&workload(), &changes).unwrap();
        for (i, job) in found.jobs.iter().enumerate() {
            prop_assert!(job.parent.is_none_or(|parent| parent < i));
            prop_assert!(found.jobs[..i].iter().all(|other| other.name != job.name));
        }
        for (job, recorded) in found.jobs.iter().zip(workload().jobs) {
            prop_assert_eq!(&job.name, &recorded.name);
            prop_assert_eq!(job.parent, recorded.parent);
        }
    }
}
