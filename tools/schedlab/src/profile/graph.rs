//! The tasks that a profile's tasks wait for, as a picture in text, and the groups of its plan.
//!
//! ```text
//! Waits that the plan goes by (→ goes before, = both wait for each other):
//!   start → part1 … part6 (6) → join
//! ```

use std::{collections::BTreeMap, fmt::Write};

use axsched_ext::pbg::{Plan, stored::StoredProfile};
use sched_sim::orders::Components;

use super::{names::Names, quantity::Clock};
use crate::output::count;

/// The most lines of the picture, and of the list of groups.
const LINES: usize = 10;
/// The number of tasks from which a list has its first and its last name alone.
const MANY: usize = 5;
/// The most edges that are drawn.
const MOST_EDGES: usize = 1_000;

/// Returns the picture and the groups, or nothing if no wait counts and no order is stored.
pub fn text(profile: &StoredProfile, names: &Names, clock: Clock) -> String {
    let (Ok(components), Ok(plan)) = (Components::of(profile), Plan::of(profile)) else {
        return String::new(); // there is no memory
    };
    let mut out = String::new();
    let edges: usize = components.after.iter().map(Vec::len).sum();
    let chains = match edges > MOST_EDGES {
        true => Vec::new(),
        false => chains(&components, names),
    };
    if edges > MOST_EDGES {
        let _ = writeln!(
            out,
            "\nThe plan goes by {edges} waits, which are too many to draw."
        );
    } else if !chains.is_empty() {
        out += "\nWaits that the plan goes by (→ goes before, = both wait for each other):\n";
        push_lines(&mut out, &chains, "chains");
    }
    let first = plan.tasks().first().map_or(0, |task| task.band);
    if plan.tasks().iter().any(|task| task.band != first) {
        let by = match &profile.order {
            Some(order) => {
                let cpus = count(order.cpus.into(), "CPU");
                format!(", by the order that was found for {cpus}")
            }
            None => String::new(),
        };
        let _ = writeln!(
            out,
            "\nThe plan takes these groups one after the other{by}:"
        );
        let place: BTreeMap<_, _> = (0..)
            .zip(&profile.tasks)
            .map(|(i, task)| (task.key, i))
            .collect();
        let bands = plan.tasks().chunk_by(|a, b| a.band == b.band).map(|band| {
            let tasks: Vec<usize> = band.iter().map(|task| place[&task.key]).collect();
            let run: u64 = band.iter().map(|task| task.run.0).sum();
            format!("{}: {}", list(&tasks, names), clock.show(run as f64))
        });
        push_lines(&mut out, &bands.collect::<Vec<_>>(), "groups");
    }
    out
}

fn push_lines(out: &mut String, lines: &[String], what: &str) {
    for line in lines.iter().take(LINES) {
        let _ = writeln!(out, "  {line}");
    }
    if lines.len() > LINES {
        let _ = writeln!(out, "  and {} more {what}", lines.len() - LINES);
    }
}

/// Returns the names of tasks, or the first, the last and their number.
fn list(tasks: &[usize], names: &Names) -> String {
    match tasks {
        [first, .., last] if tasks.len() >= MANY => {
            let (first, last) = (names.name(*first), names.name(*last));
            format!("{first} … {last} ({})", tasks.len())
        }
        _ => tasks
            .iter()
            .map(|&task| names.name(task))
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// Returns a line for each set of components that are connected by edges. They stand in steps, and
/// each step waits for one before it.
fn chains(components: &Components, names: &Names) -> Vec<String> {
    let count = components.tasks.len();
    let (mut step, mut set) = (vec![0; count], (0..count).collect::<Vec<usize>>());
    let mut has_edges: Vec<bool> = components
        .tasks
        .iter()
        .map(|tasks| tasks.len() > 1)
        .collect();
    // Each component comes after all that it waits for, so its step is known when it is reached.
    for before in 0..count {
        for &after in &components.after[before] {
            step[after] = step[after].max(step[before] + 1);
            (has_edges[before], has_edges[after]) = (true, true);
            // The first component of a set stands for it.
            let (keep, drop) = (set[before].min(set[after]), set[before].max(set[after]));
            set.iter_mut()
                .filter(|of| **of == drop)
                .for_each(|of| *of = keep);
        }
    }
    let mut lines: BTreeMap<usize, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    for number in (0..count).filter(|&number| has_edges[number]) {
        let steps = lines.entry(set[number]).or_default();
        steps.entry(step[number]).or_default().push(number);
    }
    let of_step = |numbers: &Vec<usize>| {
        let tasks = numbers.iter().flat_map(|&number| &components.tasks[number]);
        let mut tasks: Vec<usize> = tasks.copied().collect();
        tasks.sort_unstable();
        match numbers.len() == 1 && tasks.len() < MANY {
            true => tasks
                .iter()
                .map(|&task| names.name(task))
                .collect::<Vec<_>>()
                .join(" = "),
            false => list(&tasks, names),
        }
    };
    let line = |steps: BTreeMap<usize, Vec<usize>>| {
        let steps: Vec<String> = steps.values().map(of_step).collect();
        steps.join(" → ")
    };
    lines.into_values().map(line).collect()
}

#[cfg(test)]
mod tests {
    use axsched_ext::{
        pbg::stored::{Ended, Place, StoredOrder, StoredPhase, StoredTask, Waker, Wakes, Woken},
        units::{Counts, TaskKey},
    };

    use super::*;
    use crate::{
        profile::tests::{sample, task},
        testing::assert_golden,
    };

    /// The name of a task, and the tasks that it waits for with the number of waits.
    type Waiting<'a> = (&'a str, &'a [(u16, u64)]);

    /// Returns a profile of tasks with these names. Each waits so often for these others, and its
    /// exit wakes the tasks that wait for it.
    fn profile(tasks: &[Waiting]) -> StoredProfile {
        let mut profile = sample();
        let of = |(i, &(name, waits)): (usize, &Waiting)| {
            let place = Place::Root { ordinal: i as u32 };
            let mut task = task(place, TaskKey::ROOT, Some(name), [1_000_000, 0, 0]);
            let wait = |&(waker, times): &(u16, u64)| StoredPhase {
                woken_by: Waker::Task(waker),
                ..StoredPhase::new(Ended::Block, times, Counts(0), Counts(1))
            };
            task.phases.list = waits.iter().map(wait).collect();
            let waiters = (0u16..)
                .zip(tasks)
                .filter(|(_, (_, waits))| waits.iter().any(|(waker, _)| usize::from(*waker) == i));
            let woken = waiters.map(|(waiter, _)| Woken {
                whom: Waker::Task(waiter),
                count: 1,
                after: Counts(1_000_000),
            });
            task.phases.list.push(StoredPhase {
                wakes: Wakes::of(woken),
                ..StoredPhase::new(Ended::Exit, 1, Counts(1_000_000), Counts(0))
            });
            task
        };
        profile.tasks = tasks
            .iter()
            .enumerate()
            .map(of)
            .collect::<Vec<StoredTask>>();
        profile
    }

    fn drawn(profile: &StoredProfile) -> String {
        let clock = Clock::new(profile.header.frequency_hz);
        text(profile, &Names::of(profile), clock)
    }

    #[test]
    fn waits_are_drawn_in_steps_and_groups_are_listed() {
        let from_0: &[(u16, u64)] = &[(0, 1)];
        let names: Vec<String> = (1..7).map(|i| format!("part{i}")).collect();
        let mut forks: Vec<Waiting> = vec![("start", &[])];
        forks.extend(names.iter().map(|name| (&**name, from_0)));
        let join = [(1, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 1)];
        forks.push(("join", &join));
        let stream = [
            ("source", &[(1, 20)][..]),
            ("sink", &[(0, 20)]),
            ("alone", &[]),
        ];
        let mut ordered = profile(&stream);
        ordered.order = Some(StoredOrder {
            cpus: 4,
            groups: vec![1, 1, 0],
        });
        let names: Vec<String> = (0..13).map(|i| format!("link{i}")).collect();
        let waits: Vec<[(u16, u64); 1]> = (0..12).map(|i| [(i, 1)]).collect();
        let mut chain: Vec<Waiting> = vec![(&names[0], &[])];
        chain.extend(
            names[1..]
                .iter()
                .zip(&waits)
                .map(|(name, waits)| (&**name, &waits[..])),
        );
        let profiles = [
            ("no waits", sample()),
            ("a fork and a join", profile(&forks)),
            ("a stream", profile(&stream)),
            ("an order", ordered),
            ("many groups", profile(&chain)),
        ];
        let texts = profiles.map(|(what, profile)| format!("- {what}\n{}", drawn(&profile)));
        assert_golden("profile-waits.txt", texts.concat());
    }
}
