//! The search for an order of tasks, with a judge of each.
//!
//! The search is late acceptance hill climbing (Burke and Bykov, The late acceptance hill-climbing
//! heuristic, 2017). A changed order is taken if it is no worse than the one of [`HISTORY`] judgements
//! ago, or than the present one. So it leaves local optima as annealing does, without a temperature
//! that must fit the program, and without a function that differs from machine to machine.
//!
//! Several chains search on their own, each with a seed of its own. Their number does not depend on
//! the machine. So the same seed finds the same order everywhere, if no chain is stopped early.

use std::{
    num::NonZeroUsize,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use rand_xoshiro::{
    Xoshiro256PlusPlus,
    rand_core::{Rng, SeedableRng},
};

/// The number of chains.
pub const CHAINS: usize = 4;
/// The part of its judgements that a chain looks back, at most.
pub const HISTORY: usize = 20;

/// An order of groups of tasks, and its value. Less is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// The tasks of each group.
    pub groups: Vec<Vec<usize>>,
    /// The value that the judge gave it.
    pub value: f64,
}

/// Searches from `start` with at most `judgements` judgements, and returns the best order of each
/// chain, the best chain first. `judge` returns `None` to stop.
///
/// # Panics
/// If the judge does.
pub fn search(
    start: &Found,
    judgements: usize,
    seed: u64,
    judge: impl Fn(&[Vec<usize>]) -> Option<f64> + Sync,
) -> Vec<Found> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut found = Vec::new();
        loop {
            let number = next.fetch_add(1, Relaxed);
            if number >= CHAINS {
                return found;
            }
            let share = judgements / CHAINS + usize::from(number < judgements % CHAINS);
            found.push((
                number,
                chain(start, share, chain_random(seed, number), &judge),
            ));
        }
    };
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let mut found: Vec<(usize, Found)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(CHAINS)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|found| found.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    found.sort_by(|one, other| (one.1.value.total_cmp(&other.1.value)).then(one.0.cmp(&other.0)));
    found.into_iter().map(|(_, found)| found).collect()
}

fn chain_random(seed: u64, number: usize) -> Xoshiro256PlusPlus {
    let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
    (0..number).for_each(|_| random.jump());
    random
}

fn chain(
    start: &Found,
    judgements: usize,
    mut random: Xoshiro256PlusPlus,
    judge: &impl Fn(&[Vec<usize>]) -> Option<f64>,
) -> Found {
    let (mut best, mut here) = (start.clone(), start.clone());
    let mut history = vec![start.value; (judgements / HISTORY).max(1)];
    let tasks: usize = start.groups.iter().map(Vec::len).sum();
    if tasks < 2 {
        return best;
    }
    for judgement in 0..judgements {
        let mut groups = here.groups.clone();
        change(&mut groups, tasks, &mut random);
        let Some(value) = judge(&groups) else {
            return best;
        };
        let at = judgement % history.len();
        if value <= here.value || value <= history[at] {
            here = Found { groups, value };
        }
        if here.value < best.value {
            best = here.clone();
        }
        history[at] = history[at].min(here.value);
    }
    best
}

/// Changes an order of at least two tasks at random.
fn change(groups: &mut Vec<Vec<usize>>, tasks: usize, random: &mut Xoshiro256PlusPlus) {
    let mut below = |count: usize| {
        let product = u128::from(random.next_u64()) * count as u128;
        (product >> 64) as usize
    };
    let before = sorted(groups.clone());
    loop {
        match below(8) {
            // A task goes to another place, by itself.
            0..=2 => {
                let task = take(groups, below(tasks));
                let at = below(groups.len() + 1);
                groups.insert(at, vec![task]);
            }
            // A task goes into another group.
            3 => {
                let task = take(groups, below(tasks));
                let count = groups.len();
                match count {
                    0 => groups.push(vec![task]),
                    _ => groups[below(count)].push(task),
                }
            }
            // Two tasks change places.
            4 => {
                let [one, other] = [below(tasks), below(tasks)].map(|task| place(groups, task));
                let task = groups[one.0][one.1];
                groups[one.0][one.1] = groups[other.0][other.1];
                groups[other.0][other.1] = task;
            }
            // A group goes to another place.
            5 => {
                let group = groups.remove(below(groups.len()));
                let at = below(groups.len() + 1);
                groups.insert(at, group);
            }
            // Two neighbours become one group.
            6 => {
                let at = below(groups.len());
                if at + 1 < groups.len() {
                    let next = groups.remove(at + 1);
                    groups[at].extend(next);
                }
            }
            // A group becomes two.
            _ => {
                let at = below(groups.len());
                let (first, rest): (Vec<_>, Vec<_>) =
                    groups[at].iter().partition(|_| below(2) == 0);
                if !first.is_empty() && !rest.is_empty() {
                    groups[at] = first;
                    groups.insert(at + 1, rest);
                }
            }
        }
        *groups = sorted(std::mem::take(groups));
        if *groups != before {
            return;
        }
    }
}

/// Returns the groups with their tasks in order, which means nothing to a plan.
fn sorted(mut groups: Vec<Vec<usize>>) -> Vec<Vec<usize>> {
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Returns the group of the `n`-th task, and its place there.
fn place(groups: &[Vec<usize>], n: usize) -> (usize, usize) {
    let mut left = n;
    for (number, group) in groups.iter().enumerate() {
        if left < group.len() {
            return (number, left);
        }
        left -= group.len();
    }
    panic!("there are at most {n} tasks");
}

/// Takes the `n`-th task out, and its group if that is empty then.
fn take(groups: &mut Vec<Vec<usize>>, n: usize) -> usize {
    let (number, at) = place(groups, n);
    let task = groups[number].remove(at);
    if groups[number].is_empty() {
        groups.remove(number);
    }
    task
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const TASKS: usize = 10;

    /// Returns the number of pairs of tasks that are not in the order of their numbers.
    fn unsorted(groups: &[Vec<usize>]) -> f64 {
        let ranks = groups.iter().enumerate();
        let ranks = ranks.flat_map(|(rank, group)| group.iter().map(move |&task| (task, rank)));
        let ranks: Vec<(usize, usize)> = ranks.collect();
        let pairs = ranks
            .iter()
            .flat_map(|one| ranks.iter().map(move |other| (one, other)));
        pairs
            .filter(|(one, other)| one.0 < other.0 && one.1 >= other.1)
            .count() as f64
    }

    fn start() -> Found {
        let groups = vec![(0..TASKS).rev().collect()];
        Found {
            value: unsorted(&groups),
            groups,
        }
    }

    #[test]
    fn order_is_found_and_the_same_with_the_same_seed() {
        let [one, again, other] =
            [1, 1, 2].map(|seed| search(&start(), 20_000, seed, |groups| Some(unsorted(groups))));
        assert_eq!(one.len(), CHAINS);
        assert_eq!(one[0].value, 0.0);
        assert_eq!(one, again);
        assert_eq!(other[0].value, 0.0);
        let short = |seed| search(&start(), 100, seed, |groups| Some(unsorted(groups)));
        assert_ne!(short(1), short(2));
        assert!(short(1).is_sorted_by(|one, next| one.value <= next.value));
    }

    #[test]
    fn judged_orders_have_each_task_once_and_no_empty_group() {
        search(&start(), 4_000, 7, |groups| {
            let tasks: Vec<usize> = groups.iter().flatten().copied().collect();
            let distinct: BTreeSet<usize> = tasks.iter().copied().collect();
            assert_eq!((tasks.len(), distinct.len()), (TASKS, TASKS), "{groups:?}");
            assert!(groups.iter().all(|group| !group.is_empty()), "{groups:?}");
            Some(unsorted(groups))
        });
    }

    #[test]
    fn search_plays_as_often_as_it_may_and_keeps_the_best_when_stopped() {
        for most in [0, 1, 7, 4_000] {
            let plays = AtomicUsize::new(0);
            search(&start(), most, 3, |groups| {
                plays.fetch_add(1, Relaxed);
                Some(unsorted(groups))
            });
            assert_eq!(plays.into_inner(), most);
        }
        let left = AtomicUsize::new(400);
        let found = search(&start(), 4_000, 3, |groups| {
            let goes_on = left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1));
            goes_on.ok().map(|_| unsorted(groups))
        });
        assert!(found[0].value < start().value);
        assert_eq!(found[0].value, unsorted(&found[0].groups));
        let none = search(&start(), 4_000, 3, |_| None);
        assert!(none.iter().all(|found| *found == start()));
    }

    #[test]
    fn one_task_has_one_order() {
        let start = Found {
            groups: vec![vec![0]],
            value: 1.0,
        };
        assert_eq!(search(&start, 100, 1, |_| panic!("not judged"))[0], start);
    }
}
