//! The wait graph of a profile: which task has to go before which.
//!
//!  1. **Edges.** An edge leads from a waker to a waiter: the waker ended at least one wait of the
//!     waiter, or the waiter's parent spawned it after such a wake. A parent is a waker of its
//!     children.
//!  2. **Streams.** Two tasks with at least [`STREAM_WAKES`] such waits a run hand data over piece
//!     by piece. Neither can go before the other, so there is an edge both ways.
//!  3. **Late wakes.** Any other edge counts if the waker's last wake of the waiter is known to be
//!     in the second half of the waker's CPU time. A wake in the first half says little about the
//!     rest of its work: 32 tasks that only share a lock have such wakes at random, and no order. A
//!     phase tells the place of its last wake if it has one run interval, or a wake in each. One or
//!     two wakes that do not name the woken task may be an interrupt's, and have no place.
//!  4. **Mutual waits.** Such an edge does not count if there are also waits the other way, as
//!     between a server and a client that seldom waits for it. Neither goes before the other, and
//!     the waits are too few to keep the two together.
//!  5. **Work that varies.** A task whose work depends on the order ([`StoredTask::varies`]) waits
//!     for something that the record does not show. It goes behind the last of those tasks that
//!     ended before it and do not vary.
//!
//! **Limits.** A wait that did not happen is not recorded, so its edge is missing. A waker that
//! wakes more than two tasks in a phase is known only from the waiters' side. The place of such a
//! wake is known if all of them are in one phase. In phases by ending only the exit has a place.

use alloc::vec::Vec;

use pbg_profile::{Ended, PhaseOrder, Place, StoredPhase, StoredProfile, StoredTask, Waker, Woken};
use pbg_record::error::{Error, reserved};
use sched_core::units::Counts;

/// The number of waits a run from which two tasks are a stream (rule 2). The number was found by a
/// trial over random programs: locks reach it rarely, and pipelines always do.
pub const STREAM_WAKES: u32 = 16;

/// The tasks of a pair, and what the profile knows about the waits of one for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The index of the waker in the profile.
    pub waker: u16,
    /// The index of the waiter in the profile.
    pub waiter: u16,
    /// The number of waits that the waker ended, over all runs; 0 for a spawn, and at most 2^32 −
    /// 1.
    pub waits: u32,
    /// The waker's CPU time after its last wake of the waiter, in each run, if the wake is in the
    /// second half of the waker's CPU time (rule 3).
    pub rest: Option<Counts>,
    /// True if the waiter has also ended waits of the waker (rule 4).
    pub is_mutual: bool,
}

impl Edge {
    const fn of(waker: u16, waiter: u16) -> Self {
        Self {
            waker,
            waiter,
            waits: 0,
            rest: None,
            is_mutual: false,
        }
    }

    /// Returns true if the two tasks hand data over piece by piece (rule 2). `runs` is the number
    /// of runs in the profile.
    pub fn is_stream(&self, runs: u32) -> bool {
        self.waits / runs.max(1) >= STREAM_WAKES
    }

    /// Returns true if the waker has to go before the waiter, or both go together.
    pub fn counts(&self, runs: u32) -> bool {
        self.is_stream(runs) || self.rest.is_some() && !self.is_mutual
    }
}

/// The CPU time of a task at its last wakes, summed over its runs.
#[derive(Clone, Copy, Default)]
struct LastWakes {
    /// At the last wake that does not name the woken task; `None` if its place is unknown.
    unnamed: Option<Counts>,
    /// At the last wake of the root.
    root: Option<Counts>,
}

/// Returns the edges of a profile, by waker and waiter, each pair once. Edges that do not count are
/// among them.
///
/// # Errors
/// Returns [`Error::NoMemory`] if there is no memory for them. They take 32 bytes for each name in a
/// phase, and up to 64 a task. The call takes as much again, and 32 a task.
pub fn edges(profile: &StoredProfile) -> Result<Vec<Edge>, Error> {
    let tasks = &profile.tasks;
    let named = |waker: Waker| usize::from(matches!(waker, Waker::Task(_)));
    let phases = || tasks.iter().flat_map(|task| &task.phases.list);
    let told_by_wakers = phases().flat_map(|phase| phase.wakes.iter());
    let told_by_wakers: usize = told_by_wakers.map(|woken| named(woken.whom)).sum();
    let others = |task: &StoredTask| {
        let by_spawn = match task.place {
            Place::Child { .. } => 1,
            Place::Root { .. } => named(task.spawned.after),
            Place::Several => 0,
        };
        by_spawn + usize::from(task.varies)
    };
    let told_by_waiters = phases().map(|phase| named(phase.woken_by)).sum::<usize>();
    let told_by_waiters = told_by_waiters + tasks.iter().map(others).sum::<usize>();
    // Both sides may know of the same waits.
    let mut edges: Vec<Edge> = reserved(told_by_wakers + told_by_waiters)?;
    let mut by_waiters: Vec<Edge> = reserved(told_by_waiters)?;
    if edges.capacity() == 0 {
        return Ok(edges);
    }
    let mut last: Vec<LastWakes> = reserved(tasks.len())?;
    last.extend(tasks.iter().map(last_wakes));
    for (index, task) in (0..).zip(tasks) {
        for (phase, end) in with_ends(task) {
            for woken in phase.wakes.iter() {
                if let Waker::Task(waiter) = woken.whom {
                    let at = last_wake(phase, task.runs, end, woken);
                    edges.push(Edge {
                        waits: saturated(woken.count),
                        rest: rest(at, task),
                        ..Edge::of(index, waiter)
                    });
                }
            }
            if let (Ended::Block, Waker::Task(waker)) = (phase.ended, phase.woken_by) {
                let at = last[usize::from(waker)].unnamed;
                by_waiters.push(Edge {
                    waits: saturated(phase.intervals),
                    rest: rest(at, &tasks[usize::from(waker)]),
                    ..Edge::of(waker, index)
                });
            }
        }
        by_waiters.extend(by_spawn(index, task, tasks, &last));
        let before = task.varies.then(|| last_before(task, tasks)).flatten();
        by_waiters.extend(before.map(|waker| Edge {
            rest: Some(Counts::ZERO),
            ..Edge::of(waker, index)
        }));
    }
    join(&mut edges, u32::saturating_add);
    join(&mut by_waiters, u32::saturating_add);
    edges.append(&mut by_waiters);
    join(&mut edges, u32::max);
    edges.retain(|edge| edge.waker != edge.waiter);
    for index in 0..edges.len() {
        let Edge { waker, waiter, .. } = edges[index];
        let back = edges.binary_search_by_key(&(waiter, waker), |edge| (edge.waker, edge.waiter));
        edges[index].is_mutual = back.is_ok_and(|back| edges[back].waits > 0);
    }
    Ok(edges)
}

/// Makes the edges of each pair one, with the last of their wakes. `waits` is its number of waits.
fn join(edges: &mut Vec<Edge>, waits: impl Fn(u32, u32) -> u32) {
    edges.sort_unstable_by_key(|edge| (edge.waker, edge.waiter));
    edges.dedup_by(|next, first| {
        let is_same = (next.waker, next.waiter) == (first.waker, first.waiter);
        if is_same {
            first.waits = waits(first.waits, next.waits);
            first.rest = [first.rest, next.rest].into_iter().flatten().min();
        }
        is_same
    });
}

/// Returns the edge to a task from the task without which it would not have been spawned.
fn by_spawn(
    index: u16,
    task: &StoredTask,
    tasks: &[StoredTask],
    last: &[LastWakes],
) -> Option<Edge> {
    let (waker, at) = match (task.place, task.spawned.after) {
        (Place::Child { parent, .. }, _) => {
            let at = Counts(task.spawned.parent_run.total);
            (parent as u16, Some(at))
        }
        (Place::Root { .. }, Waker::Task(waker)) => (waker, last[usize::from(waker)].root),
        (Place::Root { .. } | Place::Several, _) => return None,
    };
    Some(Edge {
        rest: rest(at, &tasks[usize::from(waker)]),
        ..Edge::of(waker, index)
    })
}

/// Returns the last task that ended before this one and does not vary (rule 5).
fn last_before(task: &StoredTask, tasks: &[StoredTask]) -> Option<u16> {
    let end = |task: &StoredTask| {
        let spawned = Counts(task.spawned.at.mean(task.runs));
        spawned.saturating_add(task.turnaround())
    };
    let before = (0..).zip(tasks).filter(|(_, other)| !other.varies);
    let before = before.filter(|(_, other)| end(other) <= end(task));
    before
        .max_by_key(|(_, other)| end(other))
        .map(|(index, _)| index)
}

fn saturated(count: u64) -> u32 {
    count.try_into().unwrap_or(u32::MAX)
}

/// Returns the CPU time of a task after its last wake at `at`, in each run, if the wake is late
/// (rule 3).
fn rest(at: Option<Counts>, waker: &StoredTask) -> Option<Counts> {
    let run = waker.figures.run.total;
    let at = at.filter(|at| at.0 >= run / 2)?;
    Some(Counts(run.saturating_sub(at.0) / u64::from(waker.runs)))
}

/// Returns the phases of a task, each with the CPU time of the task at its end, over all runs. The
/// time is known if the phases are in the order in which they ran, or at the exit.
fn with_ends(task: &StoredTask) -> impl Iterator<Item = (&StoredPhase, Option<Counts>)> {
    let is_ordered = task.phases.order == PhaseOrder::AsRun;
    let mut end = Counts::ZERO;
    task.phases.list.iter().map(move |phase| {
        end += phase.run;
        let is_known = is_ordered || phase.ended == Ended::Exit;
        (phase, is_known.then_some(end))
    })
}

/// Returns the CPU time at the last of these wakes in a phase of `runs` runs that ends at `end`, if
/// the phase tells it (rule 3). It is in the last run interval, as late in it as the wakes are on
/// average.
fn last_wake(phase: &StoredPhase, runs: u32, end: Option<Counts>, woken: &Woken) -> Option<Counts> {
    let is_known = phase.intervals <= woken.count.max(runs.into());
    let after = woken.after.0 / woken.count.max(1);
    let rest = phase.mean_run().0.saturating_sub(after);
    let rest = rest.saturating_mul(runs.into());
    end.filter(|_| is_known)
        .map(|end| Counts(end.0.saturating_sub(rest)))
}

fn last_wakes(task: &StoredTask) -> LastWakes {
    let mut last = LastWakes::default();
    let mut has_unnamed = false;
    for (phase, end) in with_ends(task) {
        for woken in phase.wakes.iter() {
            let at = last_wake(phase, task.runs, end, woken);
            match woken.whom {
                // In several phases, each may have woken another task. A phase names one or two.
                Waker::Unknown => {
                    let are_several = woken.count > 2 * u64::from(task.runs);
                    last.unnamed = at.filter(|_| !has_unnamed && are_several);
                }
                Waker::Root => last.root = last.root.max(at),
                Waker::Timer | Waker::Outside | Waker::Task(_) => {}
            }
            has_unnamed |= woken.whom == Waker::Unknown;
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use pbg_profile::samples::{child_of_root, of, phase, woken};
    use pbg_profile::{Phases, Wakes};
    use std::vec;

    /// Returns a task that runs for 1,000 in these phases.
    fn task(ordinal: u32, phases: Vec<StoredPhase>) -> StoredTask {
        let mut task = child_of_root(ordinal, 1000);
        task.phases.list = phases;
        task
    }

    fn wakes(whom: Waker, count: u64, after: u64, phase: StoredPhase) -> StoredPhase {
        StoredPhase {
            wakes: Wakes::of([woken(whom, count, after)]),
            ..phase
        }
    }

    fn waits(waker: u16, phase: StoredPhase) -> StoredPhase {
        StoredPhase {
            woken_by: Waker::Task(waker),
            ..phase
        }
    }

    fn edge(waker: u16, waiter: u16, waits: u32, rest: Option<u64>) -> Edge {
        Edge {
            waits,
            rest: rest.map(Counts),
            ..Edge::of(waker, waiter)
        }
    }

    fn exit(run: u64) -> StoredPhase {
        phase(Ended::Exit, 1, run, 0)
    }

    fn block(times: u64, run: u64) -> StoredPhase {
        phase(Ended::Block, times, run, 7)
    }

    #[test]
    fn rule_1_waker_goes_before_waiter() {
        let waker = task(0, vec![wakes(Waker::Task(1), 1, 900, exit(1000))]);
        let waiter = task(1, vec![waits(0, block(1, 10)), exit(990)]);
        let profile = of(vec![waker, waiter]);
        assert_eq!(edges(&profile), Ok(vec![edge(0, 1, 1, Some(100))]));
    }

    #[test]
    fn rule_1_child_goes_behind_a_parent_that_spawns_it_late() {
        for (parent_run, rest) in [(499, None), (500, Some(500)), (900, Some(100))] {
            let mut child = child_of_root(0, 5);
            child.place = Place::Child {
                parent: 0,
                ordinal: 0,
            };
            child.spawned.parent_run = pbg_profile::Figure::once(parent_run);
            let profile = of(vec![task(0, vec![exit(1000)]), child]);
            assert_eq!(edges(&profile), Ok(vec![edge(0, 1, 0, rest)]));
        }
    }

    #[test]
    fn rule_1_task_that_main_spawns_after_a_wake_goes_behind_the_waker() {
        let mut late = child_of_root(1, 5);
        late.spawned.after = Waker::Task(0);
        let waker = task(0, vec![wakes(Waker::Root, 1, 0, exit(1000))]);
        assert_eq!(
            edges(&of(vec![waker, late.clone()])),
            Ok(vec![edge(0, 1, 0, None)])
        );
        let waker = task(0, vec![wakes(Waker::Root, 1, 1000, exit(1000))]);
        let expected = vec![edge(0, 1, 0, Some(0))];
        assert_eq!(edges(&of(vec![waker, late])), Ok(expected));
    }

    #[test]
    fn rule_2_two_tasks_with_many_waits_are_a_stream() {
        let stream = edge(0, 1, STREAM_WAKES, None);
        assert!(stream.is_stream(1) && stream.counts(1));
        assert!(!stream.is_stream(2) && !stream.counts(2), "in each run");
    }

    #[test]
    fn rule_2_waits_are_the_sum_of_phases_and_either_side_tells_them() {
        let with = |of_waker: &[u64], of_waiter: &[u64]| {
            let waking = |&count: &u64| wakes(Waker::Task(1), count, count, block(count, 10));
            let waiting = |&count: &u64| waits(0, block(count, 10));
            let waker = task(0, of_waker.iter().map(waking).collect());
            let waiter = task(1, of_waiter.iter().map(waiting).collect());
            edges(&of(vec![waker, waiter])).unwrap()[0].waits
        };
        assert_eq!(with(&[9, 7], &[]), 16);
        assert_eq!(with(&[], &[9, 7]), 16);
        assert_eq!(with(&[9, 6], &[8, 8]), 16);
        assert_eq!(with(&[9, 7], &[8, 7]), 16);
    }

    #[test]
    fn rule_3_last_wake_decides() {
        let with = |first: u64, last: StoredPhase| {
            let early = wakes(Waker::Task(1), 1, first, block(1, 400));
            let waker = task(0, vec![early, last]);
            let edges = edges(&of(vec![waker, task(1, vec![exit(1000)])])).unwrap();
            edges[0].rest.map(|rest| rest.0)
        };
        assert_eq!(with(400, exit(600)), None);
        let last = |after| with(0, wakes(Waker::Task(1), 1, after, exit(600)));
        assert_eq!([99, 100, 580].map(last), [None, Some(500), Some(20)]);
        // The last of three run intervals of 200 each begins at 800.
        let thrice = wakes(Waker::Task(1), 3, 0, block(3, 600));
        assert_eq!(with(0, thrice), Some(200));
        // The same in each of two runs, with half of the time.
        let twice = |after| {
            let mut waker = task(
                0,
                vec![block(2, 400), wakes(Waker::Task(1), 2, after, exit(600))],
            );
            waker.phases.list[1].intervals = 2;
            waker.runs = 2;
            let mut profile = of(vec![waker, task(1, vec![exit(1000)])]);
            profile.header.runs = 2;
            edges(&profile).unwrap()[0].rest
        };
        assert_eq!([99, 100].map(twice), [None, Some(Counts(250))]);
    }

    #[test]
    fn rule_3_phase_with_a_wake_in_few_intervals_tells_no_place() {
        let with = |count, phase| {
            let waker = task(0, vec![wakes(Waker::Task(1), count, 0, phase)]);
            let edges = edges(&of(vec![waker, task(1, vec![exit(1000)])])).unwrap();
            edges[0].rest.is_some()
        };
        let yields = phase(Ended::Yield, 10, 1000, 0);
        assert!(!with(9, yields) && with(10, yields));
        assert!(with(1, phase(Ended::Yield, 1, 1000, 0)) == with(1, exit(1000)));
    }

    #[test]
    fn rule_4_few_waits_both_ways_do_not_count() {
        let both = |back: u64| {
            let waker = wakes(Waker::Task(1), 1, 1000, exit(1000));
            let waker = task(0, vec![waits(1, block(back, 0)), waker]);
            let waiter = task(1, vec![waits(0, block(1, 10)), exit(990)]);
            edges(&of(vec![waker, waiter])).unwrap()
        };
        let all = both(3);
        assert!(all.iter().all(|edge| edge.is_mutual && !edge.counts(1)));
        // Many waits are a stream, both ways or one.
        assert!(both(16)[1].counts(1));
        // A parent that waits for its child goes behind it.
        let mut child = task(1, vec![wakes(Waker::Task(0), 1, 1000, exit(1000))]);
        child.place = Place::Child {
            parent: 0,
            ordinal: 0,
        };
        let parent = task(0, vec![waits(1, block(1, 10)), exit(990)]);
        let all = edges(&of(vec![parent, child])).unwrap();
        assert_eq!(
            all.iter().map(|edge| edge.counts(1)).collect::<Vec<_>>(),
            [false, true]
        );
    }

    #[test]
    fn rule_5_task_that_varies_goes_behind_the_last_that_ended_before_it() {
        let ending = |ordinal, at, varies| {
            let mut task = task(ordinal, vec![exit(1000)]);
            task.figures.ready = pbg_profile::Figure::once(at);
            task.varies = varies;
            task
        };
        let behind = |tasks: &[StoredTask]| edges(&of(tasks.to_vec())).unwrap();
        let mut tasks = [
            (30, false),
            (10, false),
            (40, false),
            (20, true),
            (35, true),
        ];
        let of = |tasks: &[(u64, bool)]| {
            let of = tasks.iter().zip(0..);
            of.map(|(&(at, varies), i)| ending(i, at, varies))
                .collect::<Vec<_>>()
        };
        let found = behind(&of(&tasks));
        let behind_it = |waker, waiter| edge(waker, waiter, 0, Some(0));
        assert_eq!(found, [behind_it(0, 4), behind_it(1, 3)]);
        assert!(found.iter().all(|edge| edge.counts(1)));
        // It may have been spawned late.
        let mut late = of(&tasks);
        late[3].spawned.at = pbg_profile::Figure::once(25);
        assert_eq!(behind(&late), [behind_it(0, 4), behind_it(2, 3)]);
        // None ended before it.
        tasks[1].0 = 21;
        assert_eq!(behind(&of(&tasks)), [behind_it(0, 4)]);
    }

    #[test]
    fn wakes_without_a_name_are_known_from_the_waiters() {
        let unnamed = wakes(Waker::Unknown, 3, 2700, exit(1000));
        let mut tasks = vec![task(0, vec![unnamed])];
        tasks.extend((1..4).map(|i| task(i, vec![waits(0, block(1, 10)), exit(990)])));
        let all = |rest| (1..4).map(|i| edge(0, i, 1, rest)).collect();
        assert_eq!(edges(&of(tasks.clone())), Ok(all(Some(100))));
        // In another phase it may have woken any of them.
        let early = wakes(Waker::Unknown, 3, 0, block(1, 0));
        tasks[0].phases.list.insert(0, early);
        assert_eq!(edges(&of(tasks)), Ok(all(None)));
    }

    #[test]
    fn rule_3_one_or_two_wakes_without_a_name_have_no_place() {
        for (count, rest) in [(1, None), (2, None), (3, Some(0))] {
            let unnamed = wakes(Waker::Unknown, count, count * 1000, exit(1000));
            let waiter = task(1, vec![waits(0, block(count, 10)), exit(990)]);
            let profile = of(vec![task(0, vec![unnamed]), waiter]);
            assert_eq!(edges(&profile), Ok(vec![edge(0, 1, count as u32, rest)]));
        }
    }

    #[test]
    fn in_phases_by_ending_only_the_exit_has_a_place() {
        let by_ending = |list| Phases {
            order: PhaseOrder::ByEnding,
            list,
        };
        let mut waker = task(0, vec![]);
        let early = wakes(Waker::Task(1), 1, 400, block(1, 900));
        waker.phases = by_ending(vec![early, exit(100)]);
        let waiter = task(1, vec![exit(1000)]);
        let is_late = |waker: &StoredTask| {
            let edges = edges(&of(vec![waker.clone(), waiter.clone()])).unwrap();
            edges[0].rest.is_some()
        };
        assert!(!is_late(&waker));
        waker.phases = by_ending(vec![block(1, 900), wakes(Waker::Task(1), 1, 1, exit(100))]);
        assert!(is_late(&waker));
    }
}
