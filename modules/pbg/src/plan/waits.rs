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
//!     phase tells the place of its last wake if it has one run interval, or a wake in each.
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
    /// True if the waker's last wake is in the second half of its CPU time (rule 3).
    pub is_late: bool,
    /// True if the waiter has also ended waits of the waker (rule 4).
    pub is_mutual: bool,
}

impl Edge {
    /// Returns true if the two tasks hand data over piece by piece (rule 2). `runs` is the number
    /// of runs in the profile.
    pub fn is_stream(&self, runs: u32) -> bool {
        self.waits / runs.max(1) >= STREAM_WAKES
    }

    /// Returns true if the waker has to go before the waiter, or both go together.
    pub fn counts(&self, runs: u32) -> bool {
        self.is_stream(runs) || self.is_late && !self.is_mutual
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
/// Returns [`Error::NoMemory`] if there is no memory for them: 12 bytes for each phase that names a
/// task, and 32 a task during the call.
pub fn edges(profile: &StoredProfile) -> Result<Vec<Edge>, Error> {
    let tasks = &profile.tasks;
    let named = |waker: Waker| usize::from(matches!(waker, Waker::Task(_)));
    let of_task = |task: &StoredTask| {
        let phases = &task.phases.list;
        let of_phase = phases.iter().map(|phase| {
            named(phase.woken_by)
                + phase
                    .wakes
                    .iter()
                    .map(|woken| named(woken.whom))
                    .sum::<usize>()
        });
        let is_child = matches!(task.place, Place::Child { .. });
        let others = [is_child, task.varies].into_iter().map(usize::from);
        of_phase.sum::<usize>() + others.sum::<usize>() + named(task.spawned.after)
    };
    let most = tasks.iter().map(of_task).sum();
    let mut edges: Vec<Edge> = reserved(most)?;
    if most == 0 {
        return Ok(edges);
    }
    let mut last: Vec<LastWakes> = reserved(tasks.len())?;
    last.extend(tasks.iter().map(last_wakes));
    for (index, task) in tasks.iter().enumerate() {
        let index = index as u16; // a profile has at most MAX_TASKS tasks
        for (phase, end) in with_ends(task) {
            for woken in phase.wakes.iter() {
                if let Waker::Task(waiter) = woken.whom {
                    edges.push(Edge {
                        waker: index,
                        waiter,
                        waits: saturated(woken.count),
                        is_late: is_late(last_wake(phase, task.runs, end, woken), task),
                        is_mutual: false,
                    });
                }
            }
            if let (Ended::Block, Waker::Task(waker)) = (phase.ended, phase.woken_by) {
                let at = last[usize::from(waker)].unnamed;
                edges.push(Edge {
                    waker,
                    waiter: index,
                    waits: saturated(phase.intervals),
                    is_late: is_late(at, &tasks[usize::from(waker)]),
                    is_mutual: false,
                });
            }
        }
        edges.extend(by_spawn(index, task, tasks, &last));
        let before = task.varies.then(|| last_before(task, tasks)).flatten();
        edges.extend(before.map(|waker| Edge {
            waker,
            waiter: index,
            waits: 0,
            is_late: true,
            is_mutual: false,
        }));
    }
    edges.retain(|edge| edge.waker != edge.waiter);
    edges.sort_unstable_by_key(|edge| (edge.waker, edge.waiter));
    edges.dedup_by(|next, first| {
        let is_same = (next.waker, next.waiter) == (first.waker, first.waiter);
        if is_same {
            // Both sides may know of the same waits.
            first.waits = first.waits.max(next.waits);
            first.is_late |= next.is_late;
        }
        is_same
    });
    for index in 0..edges.len() {
        let Edge { waker, waiter, .. } = edges[index];
        let back = edges.binary_search_by_key(&(waiter, waker), |edge| (edge.waker, edge.waiter));
        edges[index].is_mutual = back.is_ok_and(|back| edges[back].waits > 0);
    }
    Ok(edges)
}

/// Returns the edge to a task from the task without which it would not have been spawned.
fn by_spawn(
    index: u16,
    task: &StoredTask,
    tasks: &[StoredTask],
    last: &[LastWakes],
) -> Option<Edge> {
    let (waker, is_late) = match (task.place, task.spawned.after) {
        (Place::Child { parent, .. }, _) => {
            let parent_run = tasks[parent as usize].figures.run.total / 2;
            (parent as u16, task.spawned.parent_run.total >= parent_run)
        }
        (Place::Root { .. }, Waker::Task(waker)) => {
            let at = last[usize::from(waker)].root;
            (waker, is_late(at, &tasks[usize::from(waker)]))
        }
        (Place::Root { .. } | Place::Several, _) => return None,
    };
    Some(Edge {
        waker,
        waiter: index,
        waits: 0,
        is_late,
        is_mutual: false,
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

fn is_late(at: Option<Counts>, waker: &StoredTask) -> bool {
    at.is_some_and(|at| at.0 >= waker.figures.run.total / 2)
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
                // In several phases, each may have woken another task.
                Waker::Unknown => last.unnamed = at.filter(|_| !has_unnamed),
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

    fn edge(waker: u16, waiter: u16, waits: u32, is_late: bool) -> Edge {
        Edge {
            waker,
            waiter,
            waits,
            is_late,
            is_mutual: false,
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
        assert_eq!(edges(&profile), Ok(vec![edge(0, 1, 1, true)]));
    }

    #[test]
    fn rule_1_child_goes_behind_a_parent_that_spawns_it_late() {
        for (parent_run, is_late) in [(499, false), (500, true)] {
            let mut child = child_of_root(0, 5);
            child.place = Place::Child {
                parent: 0,
                ordinal: 0,
            };
            child.spawned.parent_run = pbg_profile::Figure::once(parent_run);
            let profile = of(vec![task(0, vec![exit(1000)]), child]);
            assert_eq!(edges(&profile), Ok(vec![edge(0, 1, 0, is_late)]));
        }
    }

    #[test]
    fn rule_1_task_that_main_spawns_after_a_wake_goes_behind_the_waker() {
        let mut late = child_of_root(1, 5);
        late.spawned.after = Waker::Task(0);
        let waker = task(0, vec![wakes(Waker::Root, 1, 0, exit(1000))]);
        assert_eq!(
            edges(&of(vec![waker, late.clone()])),
            Ok(vec![edge(0, 1, 0, false)])
        );
        let waker = task(0, vec![wakes(Waker::Root, 1, 1000, exit(1000))]);
        assert_eq!(edges(&of(vec![waker, late])), Ok(vec![edge(0, 1, 0, true)]));
    }

    #[test]
    fn rule_2_two_tasks_with_many_waits_are_a_stream() {
        let stream = edge(0, 1, STREAM_WAKES, false);
        assert!(stream.is_stream(1) && stream.counts(1));
        assert!(!stream.is_stream(2) && !stream.counts(2), "in each run");
        // Both sides tell of the same waits.
        let waker = task(0, vec![wakes(Waker::Task(1), 16, 16, block(16, 1000))]);
        let waiter = task(1, vec![waits(0, block(20, 900)), exit(100)]);
        assert_eq!(
            edges(&of(vec![waker, waiter])),
            Ok(vec![edge(0, 1, 20, true)])
        );
    }

    #[test]
    fn rule_3_last_wake_decides() {
        let with = |first: u64, last: StoredPhase| {
            let early = wakes(Waker::Task(1), 1, first, block(1, 400));
            let waker = task(0, vec![early, last]);
            let edges = edges(&of(vec![waker, task(1, vec![exit(1000)])])).unwrap();
            edges[0].is_late
        };
        assert!(!with(400, exit(600)));
        assert!(!with(0, wakes(Waker::Task(1), 1, 99, exit(600))));
        assert!(with(0, wakes(Waker::Task(1), 1, 100, exit(600))));
        // The last of three run intervals of 200 each begins at 800.
        let thrice = wakes(Waker::Task(1), 3, 0, block(3, 600));
        assert!(with(0, thrice));
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
            edges(&profile).unwrap()[0].is_late
        };
        assert!(!twice(99) && twice(100));
    }

    #[test]
    fn rule_3_phase_with_a_wake_in_few_intervals_tells_no_place() {
        let with = |count, phase| {
            let waker = task(0, vec![wakes(Waker::Task(1), count, 0, phase)]);
            edges(&of(vec![waker, task(1, vec![exit(1000)])])).unwrap()[0].is_late
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
        assert_eq!(found, [edge(0, 4, 0, true), edge(1, 3, 0, true)]);
        assert!(found.iter().all(|edge| edge.counts(1)));
        // It may have been spawned late.
        let mut late = of(&tasks);
        late[3].spawned.at = pbg_profile::Figure::once(25);
        assert_eq!(
            behind(&late),
            [edge(2, 3, 0, true), edge(0, 4, 0, true)]
                .map(|edge| edge)
                .into_iter()
                .rev()
                .collect::<Vec<_>>()
        );
        // None ended before it.
        tasks[1].0 = 21;
        assert_eq!(behind(&of(&tasks)), [edge(0, 4, 0, true)]);
    }

    #[test]
    fn wakes_without_a_name_are_known_from_the_waiters() {
        let unnamed = wakes(Waker::Unknown, 3, 2700, exit(1000));
        let mut tasks = vec![task(0, vec![unnamed])];
        tasks.extend((1..4).map(|i| task(i, vec![waits(0, block(1, 10)), exit(990)])));
        let all = |is_late| (1..4).map(|i| edge(0, i, 1, is_late)).collect();
        assert_eq!(edges(&of(tasks.clone())), Ok(all(true)));
        // In another phase it may have woken any of them.
        let early = wakes(Waker::Unknown, 3, 0, block(1, 0));
        tasks[0].phases.list.insert(0, early);
        assert_eq!(edges(&of(tasks)), Ok(all(false)));
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
            edges(&of(vec![waker.clone(), waiter.clone()])).unwrap()[0].is_late
        };
        assert!(!is_late(&waker));
        waker.phases = by_ending(vec![block(1, 900), wakes(Waker::Task(1), 1, 1, exit(100))]);
        assert!(is_late(&waker));
    }
}
