//! A workload with changes that the user asks for.
//!
//! 1. A task that is given a factor computes longer or shorter by it in each of its run intervals.
//!    It yields and waits as often, and waits as long.
//! 2. A task that is given a time computes for that time altogether. If it has computed nothing,
//!    all its run intervals get the same time.
//! 3. A change without a task applies to every task, copies of earlier changes included.
//! 4. Additional tasks are copies of a task, each with all that it spawns. The same parent spawns
//!    them after all others, so the recording's tasks keep their places. Where a copy would wait
//!    for a task that is not copied with it, it yields.
//! 5. Additional tasks without a name are copies of main's tasks in turn, as the workload was
//!    before.
//! 6. Changes are made in the order in which they are given.
//! 7. A task that is extended repeats its steps until it has computed for a given time. Its last
//!    run interval, which its end cut short, and its spawns are not repeated.
//! 8. The arrival time of each task that has one, since the first task, is multiplied by a factor.
//!
//! The recording stays as it is, and so does the plan that PBG makes of it: a copy is a task that
//! the plan does not know.

use std::{fmt, str::FromStr};

use crate::workload::{Arrival, Job, Peer, Then, Wakes, Work, Workload};

/// The largest number of tasks with all copies.
pub const MOST_TASKS: usize = 16_384;
/// The largest factor of a task's time.
pub const MOST_TIMES: f64 = 1_000.0;
/// The longest time that a task may compute, in nanoseconds: a day.
pub const LONGEST_NS: f64 = 86_400e9;

/// The amount of a change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Amount {
    /// A factor from 0 to [`MOST_TIMES`].
    Times(f64),
    /// A time in nanoseconds from 0 to [`LONGEST_NS`].
    Exactly(f64),
}

/// A change of a recorded workload.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Makes the task of this name, or each task, compute for another time.
    Run {
        /// The name of the task; `None` is each task.
        task: Option<String>,
        /// The time that it computes, or the factor of that time.
        amount: Amount,
    },
    /// Adds copies of the task of this name, or of main's tasks in turn.
    Add {
        /// The name of the task; `None` is main's tasks in turn.
        task: Option<String>,
        /// The number of copies in all.
        copies: usize,
    },
    /// Multiplies the arrival times of tasks that come late.
    Arrivals {
        /// The factor, from 0 to [`MOST_TIMES`].
        times: f64,
    },
}

/// The reason why a change cannot be made.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum WhatIfError {
    /// The recording has no task of this name.
    #[error("--task {name}: expected one of {}", few(known))]
    NoSuchTask {
        /// The name that was asked for.
        name: String,
        /// The names in the recording.
        known: Vec<String>,
    },
    /// The workload would have more than [`MOST_TASKS`] tasks.
    #[error("--add: expected {MOST_TASKS} tasks at most, found {found}")]
    TooMany {
        /// The number of tasks that there would be.
        found: usize,
    },
    /// A task would compute for more than a day.
    #[error("--run: expected tasks that compute for a day at most, found {name} with {:.0} s", ns / 1e9)]
    TooLong {
        /// The name of the task.
        name: String,
        /// The time that it would compute, in nanoseconds.
        ns: f64,
    },
    /// No task of the recording comes late.
    #[error(
        "--arrivals: expected a recording with tasks that come late, found one in which all are there at the start"
    )]
    NoArrivals,
}

/// Returns the first names of a list.
fn few(names: &[String]) -> String {
    const FEW: usize = 12;
    let more = match names.len() > FEW {
        true => format!(" and {} more", names.len() - FEW),
        false => String::new(),
    };
    names[..names.len().min(FEW)].join(" ") + &more
}

/// Returns the workload with these changes.
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

/// Changes the time that a task computes (rules 1 to 3).
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

/// Adds copies of tasks (rules 4 and 5).
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
            // The parent is in the copy, or is that of the original.
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

/// Multiplies the arrival times by a factor (rule 8).
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

/// Makes a copy spawn and wait for the copies of its family, given by `copy_of`, and for no other
/// task (rule 4).
fn among_copies(job: &mut Job, copy_of: impl Fn(usize) -> Option<usize>) {
    for work in &mut job.steps {
        work.then = match work.then {
            Then::Spawn(child) => match copy_of(child) {
                Some(copy) => Then::Spawn(copy),
                None => Then::Yield,
            },
            Then::Wait(waker) => copy_of(waker).map_or(Then::Yield, Then::Wait),
            Then::Poll { awaited, sleep_ns } => Then::Poll {
                awaited: copy_of(awaited).unwrap_or(awaited),
                sleep_ns,
            },
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

/// Returns the name of a copy.
fn numbered(job: &Job, number: usize) -> String {
    format!("{}+{number}", job.name)
}

/// Returns a task and all that it spawns, parents first.
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

/// Returns the workload in which each task for which `is_extended` returns true computes for `ns`
/// altogether (rule 7).
pub fn extended(workload: &Workload, is_extended: impl Fn(&Job) -> bool, ns: f64) -> Workload {
    let mut longer = workload.clone();
    for job in longer.jobs.iter_mut().filter(|job| is_extended(job)) {
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

/// The largest number of run intervals of an extended task, unless one repetition has more. If they
/// do not suffice, they get longer.
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

/// Parses a factor such as `x2`, from 0 to [`MOST_TIMES`].
///
/// # Errors
/// Names the allowed factors.
pub fn times(text: &str) -> Result<f64, String> {
    let times = text.strip_prefix('x').and_then(number);
    times
        .filter(|times| *times <= MOST_TIMES)
        .ok_or_else(|| format!("expected x2 or the like, from x0 to x{MOST_TIMES}"))
}

/// Parses a number of digits and a point.
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
mod tests;
