//! The same program in a changed world: what if?
//!
//! 1. A task that takes longer or shorter computes longer or shorter in each of its run
//!    intervals, all by the same factor. It yields and waits as often, and waits as long.
//! 2. A task that is told a time computes that long altogether. One that has computed nothing
//!    computes as long in each run interval.
//! 3. A change of no task is one of every task, copies of earlier changes included.
//! 4. More of a task are copies of it, each with all that it spawns. They are spawned by the
//!    same parent, after all others; so none of the recording's tasks gets another place. Where
//!    one of them waits for a task that is not copied with it, its copy yields.
//! 5. More of no task are copies of main's tasks in turn, as the workload was before.
//! 6. Changes are made in the order in which they are asked for.
//!
//! 7. A task that goes on does what it did again and again until it has computed for so long. Its
//!    last run interval, which its end cut short, is no part of that, nor what it spawns.
//! 8. Tasks that come at a time of their own come so many times as late after the first.
//!
//! The recording stays as it is, and so does the plan that PBG makes of it: a copy is a task that
//! the plan does not know.

use std::{fmt, str::FromStr};

use crate::workload::{Arrival, Job, Peer, Then, Wakes, Work, Workload};

/// How many tasks there may be with all copies.
pub const MOST_TASKS: usize = 16_384;
/// How many times as long a task may take at most.
pub const MOST_TIMES: f64 = 1_000.0;
/// How long a task may compute, in nanoseconds: a day.
pub const LONGEST_NS: f64 = 86_400e9;

/// How much longer or shorter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// So many times as long, from 0 to [`MOST_TIMES`].
    Times(f64),
    /// So long, in nanoseconds, from 0 to [`LONGEST_NS`].
    Exactly(f64),
}

/// A change.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The task of this name, or each, computes for another time.
    Run {
        /// The task; `None` is each.
        task: Option<String>,
        /// How long.
        amount: Amount,
    },
    /// There are so many more of the task of this name, or of main's tasks in turn.
    Add {
        /// The task.
        task: Option<String>,
        /// How many copies.
        copies: usize,
    },
    /// Tasks that come late come so many times as late.
    Arrivals {
        /// From 0 to [`MOST_TIMES`].
        times: f64,
    },
}

/// Why a change cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WhatIfError {
    /// The recording has none of this name.
    #[error("--task {name}: expected one of {}", few(known))]
    NoSuchTask {
        /// What was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// There would be too many.
    #[error("--add: expected {MOST_TASKS} tasks at most, found {found}")]
    TooMany {
        /// How many there would be.
        found: usize,
    },
    /// A task would compute for more than a day.
    #[error("--run: expected tasks that compute for a day at most, found {name} with {:.0} s", ns / 1e9)]
    TooLong {
        /// The task.
        name: String,
        /// How long it would compute.
        ns: f64,
    },
    /// No task comes late.
    #[error(
        "--arrivals: expected a recording that has tasks come late, found one in which all are there at the start, or of version 1, which does not say"
    )]
    NoArrivals,
}

/// The first of them.
fn few(names: &[String]) -> String {
    const FEW: usize = 12;
    let more = match names.len() > FEW {
        true => format!(" and {} more", names.len() - FEW),
        false => String::new(),
    };
    names[..names.len().min(FEW)].join(" ") + &more
}

/// The workload with these changes.
///
/// # Errors
/// See [`WhatIfError`].
pub fn changed(workload: &Workload, changes: &[Change]) -> Result<Workload, WhatIfError> {
    let mut changed = workload.clone();
    for change in changes {
        match change {
            Change::Run { task, amount } => run(&mut changed, task.as_deref(), *amount)?,
            Change::Add { task, copies } => add(&mut changed, task.as_deref(), *copies)?,
            Change::Arrivals { times } => arrivals(&mut changed, *times)?,
        }
    }
    Ok(changed)
}

/// Rules 1 to 3.
fn run(workload: &mut Workload, task: Option<&str>, amount: Amount) -> Result<(), WhatIfError> {
    if let Some(name) = task {
        named(workload, name)?;
    }
    for job in &mut workload.jobs {
        if task.is_none_or(|name| name == job.name) {
            amount.apply(job);
            let ns = job.run_ns();
            if ns > LONGEST_NS {
                let name = job.name.clone();
                return Err(WhatIfError::TooLong { name, ns });
            }
        }
    }
    Ok(())
}

/// Rules 4 and 5.
fn add(workload: &mut Workload, task: Option<&str>, copies: usize) -> Result<(), WhatIfError> {
    let originals: Vec<usize> = match task {
        Some(name) => vec![named(workload, name)?],
        None => {
            let is_mains = |i: &usize| workload.jobs[*i].parent.is_none();
            (0..workload.jobs.len()).filter(is_mains).collect()
        }
    };
    let families: Vec<Vec<usize>> = originals.iter().map(|&i| family(workload, i)).collect();
    let mut made = vec![0; families.len()];
    for copy in 0..copies {
        let turn = copy % families.len();
        let first = workload.jobs.len();
        let found = first + families[turn].len();
        if found > MOST_TASKS {
            return Err(WhatIfError::TooMany { found });
        }
        // A number that none of the family has yet.
        let number = loop {
            made[turn] += 1;
            let is_taken = |&i: &usize| {
                let name = numbered(&workload.jobs[i], made[turn]);
                workload.jobs.iter().any(|job| job.name == name)
            };
            if !families[turn].iter().any(is_taken) {
                break made[turn];
            }
        };
        for &i in &families[turn] {
            let mut job = workload.jobs[i].clone();
            job.name = numbered(&job, number);
            job.label = None;
            // Of the copy's own, or of who spawned the original.
            let own = job
                .parent
                .and_then(|parent| families[turn].iter().position(|&member| member == parent));
            job.parent = own.map_or(job.parent, |place| Some(first + place));
            let place = |task: usize| families[turn].iter().position(|&member| member == task);
            among_copies(&mut job, |task| place(task).map(|place| first + place));
            workload.jobs.push(job);
        }
    }
    Ok(())
}

/// Rule 8.
fn arrivals(workload: &mut Workload, times: f64) -> Result<(), WhatIfError> {
    let mut changed = false;
    for job in &mut workload.jobs {
        if let Arrival::At(due_ns) = &mut job.arrival {
            *due_ns *= times;
            changed = true;
        }
    }
    match changed {
        true => Ok(()),
        false => Err(WhatIfError::NoArrivals),
    }
}

/// Has a copy spawn and wait for the copies of its family, where `copy_of` says who that is, and
/// for nobody else: rule 4.
fn among_copies(job: &mut Job, copy_of: impl Fn(usize) -> Option<usize>) {
    for work in &mut job.steps {
        work.then = match work.then {
            Then::Spawn(child) => match copy_of(child) {
                Some(copy) => Then::Spawn(copy),
                None => Then::Yield,
            },
            Then::Wait(waker) => copy_of(waker).map_or(Then::Yield, Then::Wait),
            then => then,
        };
        for wakes in &mut work.wakes {
            if let Some(Peer::Task(task)) = wakes.whom {
                match copy_of(task) {
                    Some(copy) => wakes.whom = Some(Peer::Task(copy)),
                    None => *wakes = Wakes::default(),
                }
            }
        }
    }
    if let Arrival::When(_) = job.arrival {
        job.arrival = Arrival::After(0.0);
    }
}

/// What a copy is called.
fn numbered(job: &Job, number: usize) -> String {
    format!("{}+{number}", job.name)
}

/// A task and all that it spawns, parents first.
fn family(workload: &Workload, of: usize) -> Vec<usize> {
    let mut family = vec![of];
    for (i, job) in workload.jobs.iter().enumerate().skip(of + 1) {
        if job.parent.is_some_and(|parent| family.contains(&parent)) {
            family.push(i);
        }
    }
    family
}

fn named(workload: &Workload, name: &str) -> Result<usize, WhatIfError> {
    let place = workload.jobs.iter().position(|job| job.name == name);
    place.ok_or_else(|| WhatIfError::NoSuchTask {
        name: name.to_owned(),
        known: workload.jobs.iter().map(|job| job.name.clone()).collect(),
    })
}

/// The workload with each of those tasks for which `goes_on` says so computing for `ns`
/// altogether: rule 7.
pub fn going_on(workload: &Workload, goes_on: impl Fn(&Job) -> bool, ns: f64) -> Workload {
    let mut longer = workload.clone();
    for job in longer.jobs.iter_mut().filter(|job| goes_on(job)) {
        let is_whole = |work: &&Work| !matches!(work.then, Then::Exit | Then::Spawn(_));
        let spawns = job
            .steps
            .iter()
            .filter(|work| matches!(work.then, Then::Spawn(_)));
        let mut steps: Vec<Work> = spawns.copied().collect();
        let round: Vec<Work> = job.steps.iter().filter(is_whole).copied().collect();
        let round_ns: f64 = round
            .iter()
            .map(|work| work.times as f64 * work.run_ns)
            .sum();
        if round_ns > 0.0 {
            let intervals: u64 = round.iter().map(|work| work.times).sum();
            let most = (MOST_INTERVALS / intervals).max(1) as f64;
            steps.extend(round.repeat((ns / round_ns).ceil().clamp(1.0, most) as usize));
            job.steps = steps;
        }
        Amount::Exactly(ns).apply(job);
    }
    longer
}

/// A task that goes on has no more run intervals than that, or than in one round; then they are
/// longer.
const MOST_INTERVALS: u64 = 100_000;

impl Amount {
    fn apply(self, job: &mut Job) {
        let now = job.run_ns();
        let factor = match self {
            Self::Times(times) => times,
            Self::Exactly(ns) if now > 0.0 => ns / now,
            Self::Exactly(ns) => {
                let each = ns / job.intervals().max(1) as f64;
                job.steps.iter_mut().for_each(|work| work.run_ns = each);
                return;
            }
        };
        job.steps.iter_mut().for_each(|work| work.run_ns *= factor);
    }
}

/// `x2`: from 0 to [`MOST_TIMES`].
///
/// # Errors
/// What is allowed.
pub fn times(text: &str) -> Result<f64, String> {
    let times = text.strip_prefix('x').and_then(number);
    times
        .filter(|times| *times <= MOST_TIMES)
        .ok_or_else(|| format!("expected x2 or the like, from x0 to x{MOST_TIMES}"))
}

/// A number of digits and a point, as people write one.
fn number(text: &str) -> Option<f64> {
    let is_plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    is_plain.then(|| text.parse().ok())?
}

impl FromStr for Amount {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let percent = |sign| {
            let digits = text.strip_prefix(sign)?.strip_suffix('%')?;
            number(digits.trim_end())
        };
        let found = if let Some(more) = percent('+') {
            Some(Self::Times((100.0 + more) / 100.0))
        } else if let Some(less) = percent('-') {
            (less <= 100.0).then_some(Self::Times((100.0 - less) / 100.0))
        } else if let Some(time) = text.strip_prefix('=') {
            let units = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
            let of_unit = |(unit, ns): (&str, f64)| Some(number(time.strip_suffix(unit)?)? * ns);
            units.into_iter().find_map(of_unit).map(Self::Exactly)
        } else {
            times(text).ok().map(Self::Times)
        };
        let is_allowed = |amount: &Self| match amount {
            Self::Times(times) => *times <= MOST_TIMES,
            Self::Exactly(ns) => *ns <= LONGEST_NS,
        };
        found.filter(is_allowed).ok_or_else(|| {
            format!(
                "expected +20%, -50%, x2 or =30ms (ns, us, ms, s), at most x{MOST_TIMES} or a day"
            )
        })
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Times(times) => write!(f, "× {times}"),
            Self::Exactly(ns) => write!(f, "= {} ms", ns / 1e6),
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Run { task, amount } => match task {
                Some(name) => write!(f, "run time of {name} {amount}"),
                None => write!(f, "run time of every task {amount}"),
            },
            Self::Add { task, copies } => match task {
                Some(name) => write!(f, "{copies} more of {name}"),
                None => write!(f, "{copies} more of main's tasks, in turn"),
            },
            Self::Arrivals { times } => write!(f, "times of arrival × {times}"),
        }
    }
}

#[cfg(test)]
mod tests {
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

    /// `a`, which spawns `b`, which spawns `c`; and `d`.
    fn workload() -> Workload {
        let steps = || {
            vec![
                work(2, 3.0, Then::Yield),
                work(1, 4.0, Then::Sleep(5.0 * MS)),
                work(1, 0.0, Then::Exit),
            ]
        };
        Workload {
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
    fn rule_2_a_task_that_is_told_a_time_computes_that_long() {
        let found = changed(&workload(), &[run_of(Some("a"), "=30ms")]).unwrap();
        assert_eq!(run_ms(&found), [30.0, 10.0, 10.0, 0.0]);
        assert_eq!(found.jobs[0].steps[0].run_ns, 9.0 * MS);
        let found = changed(&workload(), &[run_of(Some("d"), "=8us")]).unwrap();
        assert_eq!(found.jobs[3].steps, [work(4, 0.002, Then::Yield)]);
    }

    #[test]
    fn rule_3_a_change_of_no_task_is_one_of_every_task() {
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
    fn rule_5_more_of_no_task_are_of_mains_tasks_in_turn() {
        let found = changed(&workload(), &[more_of(None, 3)]).unwrap();
        let names: Vec<_> = found.jobs[4..].iter().map(|job| &job.name).collect();
        assert_eq!(names, ["a+1", "b+1", "c+1", "d+1", "a+2", "b+2", "c+2"]);
    }

    #[test]
    fn rule_6_changes_are_made_in_their_order() {
        let [run, add] = [run_of(Some("d"), "=1ms"), more_of(Some("d"), 1)];
        let then =
            |changes: &[Change]| run_ms(&changed(&workload(), changes).unwrap())[3..].to_vec();
        assert_eq!(then(&[run.clone(), add.clone()]), [1.0, 1.0]);
        assert_eq!(then(&[add, run]), [1.0, 0.0]);
    }

    #[test]
    fn rule_7_a_task_that_goes_on_does_the_same_again_and_again() {
        let steps = vec![work(5, 3.0, Then::Yield), work(1, 0.5, Then::Exit)];
        let endless = || job("e", None, steps.clone());
        let once = Workload {
            jobs: vec![endless(), job("o", None, vec![work(1, 7.0, Then::Exit)])],
        };
        let found = going_on(&once, |job| job.name == "e", 60.0 * MS);
        assert_eq!(found.jobs[0].steps, vec![work(5, 3.0, Then::Yield); 4]);
        assert_eq!(found.jobs[1], once.jobs[1]);
        // Not too often.
        let found = going_on(&once, |job| job.name == "e", 1e9 * MS);
        assert_eq!(found.jobs[0].intervals(), MOST_INTERVALS);
        assert_eq!(found.jobs[0].run_ns(), 1e9 * MS);
        // One that only computes computes for longer.
        let found = going_on(&once, |job| job.name == "o", 60.0 * MS);
        assert_eq!(run_ms(&found), [15.5, 60.0]);
        assert_eq!(found.jobs[1].intervals(), 1);
    }

    #[test]
    fn rule_8_tasks_that_come_late_come_so_many_times_as_late() {
        let mut late = workload();
        late.jobs[3].arrival = Arrival::At(20.0 * MS);
        let twice = changed(&late, &[Change::Arrivals { times: 2.0 }]).unwrap();
        assert_eq!(twice.jobs[0].arrival, Arrival::After(0.0));
        assert_eq!(twice.jobs[3].arrival, Arrival::At(40.0 * MS));
    }

    #[test]
    fn rule_4_a_copy_spawns_and_waits_for_copies_and_for_nobody_else() {
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
    fn what_cannot_be_is_refused() {
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
        assert!(text.starts_with("--arrivals: expected a recording that has tasks come late"));
        let names: Vec<_> = (0..14).map(|i| i.to_string()).collect();
        assert_eq!(few(&names), "0 1 2 3 4 5 6 7 8 9 10 11 and 2 more");
    }

    #[test]
    fn amounts_are_read_as_people_write_them() {
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
        /// Whatever is asked for: parents stay before their children, the recording's tasks stay
        /// in their places, and no two have a name.
        #[test]
        fn a_changed_workload_is_one(
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
}
