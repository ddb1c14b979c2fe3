//! The plan: a pure function of the profile.
//!
//! A plan is an order of tasks, made so that their average turnaround is the
//! least on one CPU, under what the user has asked for: priorities, and latest
//! times at which a task must have ended.
//!
//!  1. **Expected.** A task is expected to use what it used on average over its
//!     runs. A promise is checked with the most that it used in any of them.
//!  2. **Priority.** The tasks of one priority are a class, those without one the
//!     last. Classes go strictly one after the other.
//!  3. **Steps.** What a task does is cut at its blocks, into bursts of CPU time:
//!     a task keeps the CPU across its own yields, and being preempted is not its
//!     doing, so time before those counts to the burst that they are in. Bursts
//!     that follow one another and come from the same phase are a step. Where the
//!     order of the phases is not known, the task has one step, of equal bursts.
//!  4. **Shortest first.** A class in which no task has a latest time is one band:
//!     its tasks are ranked by what is before them, and a replay orders them by what
//!     remains of it. Before a task is the burst that it is in, and of its CPU time
//!     after that a part, the task's weight: R / (R + Z × n / [`BLOCKS_IN_FULL`]),
//!     where R is all its CPU time, Z the time that it is blocked, and n how often. So
//!     it is all of it for a task that is never blocked for long (a job), which is
//!     planned as one step of one burst; and next to nothing for one that is
//!     blocked again and again, and for longer than it runs (a server).
//!  5. **Equal is by arrival.** Of tasks in a band who have before them what differs by
//!     at most 1/[`EQUAL_WITHIN`] of the least, the first spawned goes first.
//!  6. **Latest times.** In a class in which some task has a latest time, every task
//!     is a band by itself, and the order is one in which every task ends in
//!     time; of those orders, one with the least average turnaround.
//!  7. **In time** is a task if the most of all classes before, of the tasks before it
//!     in its class, and of itself, and the most time that it was ever blocked, do
//!     not exceed its latest time together.
//!  8. **Too much.** If no order has every task in time, as few as can be are late.
//!     They lose their latest time, are ranked by rule 6 without it, and are named
//!     in [`Plan::late`].
//!
//! **Sources.** Rule 4: for tasks that never block, shortest first has the least
//! average turnaround (Smith, Various optimizers for single-stage production, 1956),
//! with late arrivals if what remains is compared (Schrage, 1968). For tasks that
//! block there is no such theorem, but the same argument of exchange: who goes first
//! costs the others the CPU time that it uses before they end, and what a sleeper uses
//! later than that costs them nothing. R / (R + Z) is the share of its own time in which
//! it uses the CPU. That Z counts by the number of blocks is a weighing of many programs
//! (`docs/adr/0013-weighed-by-blocked-time.md`): a task of few bursts is over after
//! those, and to let a long one go first because it waits soon costs all the others (by
//! next bursts, as SJF and its kin go, the app `batch`, of whose jobs a quarter waits
//! four times, has an average turnaround of 903 ms, and of 813 ms by all that remains;
//! x86_64, full scale); of many, each answer may be what somebody waits for. Rule 6 is
//! Smith's backward rule, from the
//! same paper: of the tasks that may be last, the longest is. It finds an order if
//! there is one, that is, if the order of latest times is one (Jackson, Scheduling
//! a production line to minimize maximum tardiness, 1955; today EDF). Rule 8 is
//! Moore's algorithm in Hodgson's form (Moore, An n job, one machine sequencing
//! algorithm for minimizing the number of late jobs, 1968): add the tasks by latest
//! time, and whenever the one just added is late, give up the longest so far.
//!
//! **Why rule 7 is a promise.** While a task is ready and does not run, one of a
//! lower rank runs, and those have only so much to do. So it ends at most that much
//! later than it would alone, whenever it and the others were spawned and however
//! they block. The times of rule 7 may be of different runs: then the promise is on
//! the safe side, and a task may be named late that would just have been in time.
//! For tasks that were spawned together and never block it is exact: those are late
//! of which no order has more in time.
//!
//! **Why rule 8 harms nobody.** The tasks that are not given up, by latest time, and
//! then the others, is an order with the former in time; so one exists, and Smith's
//! rule finds the best. A task in `late` is late there too: were it not, that order
//! would have fewer late tasks than the fewest.
//!
//! **Which time is least.** By rule 6 the average turnaround is least when every task
//! takes its most, as rule 7 assumes. Smith's rule needs one and the same length
//! for both questions: with the mean for one and the most for the other, putting
//! the longest last may cost a shorter one its latest time.
//!
//! **Cost.** n tasks: n log n comparisons. A plan has 64 bytes a task, 16 a step (at
//! least one a task, at most [`MAX_PHASES`](super::stored::MAX_PHASES)) and 24 a late
//! task; making it takes 40 more a task, and 16 more if any has a latest time.
//! A replay of n tasks with latest times is one of n bands.
//!
//! **Limits.** What the plan does not know is not in its promises: tasks outside the
//! plan, which have their share of the CPU; the tick that it may take, each time that a
//! task or one of lower rank becomes ready, until the CPU is taken from one of higher
//! rank; and blocked time that depends on the order, as
//! that of a task that waits for another. Leave room for it. Within a class with
//! latest times a task that arrives late does not take over by what remains of it,
//! as that could break a promise. The largest latest time, 2^64 − 1, is none.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::ops::Range;

use super::error::{Error, reserved};
use super::stored::{Ended, Figure, PhaseOrder, StoredProfile, StoredTask};
use crate::units::{Counts, TaskKey};

/// First bursts that differ by at most one in so many are equal (rule 5).
///
/// What is meant to be equal is hardly ever measured as equal: a timer interrupt
/// more or a cold cache, and tasks would change places from one profile to the
/// next. 64, as that costs next to nothing where the difference was meant: n tasks
/// of s to s + s/64, in any order, have an average turnaround less than 1/128 above
/// the least, as all their pairs together differ by at most n²/4 × s/64 and the
/// least sum of turnarounds is above n²/2 × s.
pub const EQUAL_WITHIN: u64 = 64;

/// After so many blocks the time blocked counts in full, before that in proportion, and
/// beyond that several times (rule 4). So the weight has no limit where it would change
/// at once, and a task that goes on for ever is weighed by `BLOCKS_IN_FULL` × r² / z,
/// where r is a burst and z the time blocked after it. Of 16, 32, 64 and 128 the one
/// with the least turnaround over random programs, but for 128, where servers wait longer
/// for nearly the same.
pub const BLOCKS_IN_FULL: u64 = 64;

/// The part of a task's CPU time after its burst that is before it (rule 4): from
/// nothing to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Weight(u32);

impl Weight {
    /// All of it.
    pub const WHOLE: Self = Self(1 << 16);

    /// Of a task that uses the CPU for `run` in all and is blocked `blocks` times, for
    /// `blocked` in all. Rounded down, but the whole is exact.
    pub const fn of(run: Counts, blocked: Counts, blocks: u64) -> Self {
        let asleep = blocked.0 as u128 * blocks as u128 / BLOCKS_IN_FULL as u128;
        if asleep == 0 {
            return Self::WHOLE;
        }
        let whole = Self::WHOLE.0 as u128;
        Self((run.0 as u128 * whole / (run.0 as u128 + asleep)) as u32)
    }

    /// What is before a task in whose burst `burst` remains, and in all `rest`: it
    /// is between the two. Cost: two multiplications.
    #[inline]
    pub const fn before(self, burst: Counts, rest: Counts) -> Counts {
        let other = Self::WHOLE.0 - self.0;
        let sum = rest.0 as u128 * self.0 as u128 + burst.0 as u128 * other as u128;
        Counts((sum >> Self::WHOLE.0.trailing_zeros()) as u64)
    }
}

/// One task of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedTask {
    /// Who it is.
    pub key: TaskKey,
    /// Bands are strict: no task runs while one of a lower band is ready. Tasks of
    /// one band stand together and are ordered among themselves by what is before
    /// them (rule 4). Counted from 0 without gaps.
    pub band: u32,
    /// Where in its band it stands: what is before it at first, or before the shortest
    /// task that counts as equal. Within a band it never decreases from rank to rank, so
    /// the place of any remaining time is found by binary search.
    pub sort_key: Counts,
    /// The time on the CPU that it is expected to use in all: the mean of its runs.
    pub run: Counts,
    /// The most that it used in any run.
    pub most: Counts,
    /// How long it lived, from its spawn to its end: the mean of its runs.
    pub turnaround: Counts,
    /// How often it yielded in the run in which it yielded most.
    pub yields: u64,
    /// What part of its time after a burst is before it (rule 4). If it is not all of
    /// it, each block ends a burst of its steps.
    pub weight: Weight,
    /// Which of [`Plan::steps`] are its own, in the order in which they run; at
    /// least one.
    pub steps: Range<u32>,
}

/// Bursts of CPU time, one after the other, from one block to the next or to the
/// exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// How many, in one run; at least 1.
    pub times: u64,
    /// How long each is, on average, rounded down.
    pub run: Counts,
}

/// A task that does not end in time (rule 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Who it is.
    pub key: TaskKey,
    /// When it should have ended at the latest, counted from its spawn.
    pub latest: Counts,
    /// When it ends by the plan, counted alike: the sum of rule 7. Always later.
    pub end: Counts,
}

/// An order of tasks; the place in it is the rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    tasks: Vec<PlannedTask>,
    steps: Vec<Step>,
    late: Vec<Late>,
}

/// A task on its way to its rank.
struct Candidate {
    /// Its priority; [`NO_PRIORITY`] without one (rule 2).
    class: u16,
    /// Its place among the profile's tasks: its arrival.
    place: u32,
    sort_key: Counts,
    weight: Weight,
    steps: Range<u32>,
    /// When its CPU time must be over, counted from the start of the plan, or
    /// [`NO_DUE`]: its latest time less the most that it was blocked.
    due: u64,
    late: bool,
    /// Its place in a class with latest times.
    rank: u32,
}

const NO_PRIORITY: u16 = u8::MAX as u16 + 1;
const NO_DUE: u64 = u64::MAX;

#[cfg(target_pointer_width = "64")]
const _: () = {
    use core::mem::size_of;
    assert!(size_of::<PlannedTask>() == 64 && size_of::<Step>() == 16 && size_of::<Late>() == 24);
    assert!(size_of::<Candidate>() == 40 && size_of::<Longest>() == 16);
};

/// A task by its length and arrival, and its place among the candidates of its
/// class. The largest is the longest, and of those the last to arrive.
type Longest = (Counts, u32, u32);

/// The user's latest time, if there is one that can be missed.
fn latest(task: &StoredTask) -> Option<Counts> {
    task.latest.filter(|latest| latest.0 != NO_DUE)
}

/// The most CPU time of a task: how long it is where promises are made.
fn most(task: &StoredTask) -> Counts {
    Counts(task.figures.run.most)
}

impl Plan {
    /// The plan of a profile that keeps its rules
    /// ([`validate`](StoredProfile::validate)): every task once, by rank. The
    /// same profile has the same plan, on every machine.
    ///
    /// # Errors
    /// [`Error::NoMemory`]. Cost: see the module's documentation.
    pub fn of(profile: &StoredProfile) -> Result<Self, Error> {
        let stored = &profile.tasks;
        let phases = |task: &StoredTask| task.phases.list.len().max(1);
        let mut steps = reserved(stored.iter().map(phases).sum())?;
        let mut order = reserved(stored.len())?;
        let mut tasks = reserved(stored.len())?;
        let mut late = Vec::new();
        let mut longest = BinaryHeap::new();
        if stored.iter().any(|task| latest(task).is_some()) {
            longest
                .try_reserve_exact(stored.len())
                .map_err(|_| Error::NoMemory)?;
        }

        for (place, task) in stored.iter().enumerate() {
            let first = steps.len();
            push_steps(task, &mut steps);
            let run = Counts(task.figures.run.mean(task.runs));
            let weight = weight_of(task, &steps[first..]);
            if weight == Weight::WHOLE {
                steps.truncate(first);
                steps.push(Step { times: 1, run });
            }
            let due = latest(task).map(|latest| latest.0.checked_sub(task.figures.blocked.most));
            order.push(Candidate {
                class: task.priority.map_or(NO_PRIORITY, |p| p.get().into()),
                place: place as u32,
                sort_key: weight.before(steps[first].run, run),
                weight,
                steps: first as u32..steps.len() as u32,
                due: due.flatten().unwrap_or(NO_DUE),
                late: due == Some(None), // blocked for longer than it may take
                rank: 0,
            });
        }
        order.sort_unstable_by_key(|task| (task.class, task.sort_key, task.place));

        // Wider than a time, as sums that stop would make everybody in time who
        // has the largest latest time but one.
        let mut end: u128 = 0;
        let mut band = 0;
        for class in order.chunk_by_mut(|a, b| a.class == b.class) {
            let strict = class.iter().any(|task| task.late || task.due != NO_DUE);
            if strict {
                give_up_late(class, stored, end, &mut longest);
                longest_last(class, stored, end, &mut longest);
                late.try_reserve_exact(class.iter().filter(|task| task.late).count())
                    .map_err(|_| Error::NoMemory)?;
            } else {
                equal_by_arrival(class);
            }
            for candidate in class {
                let task = &stored[candidate.place as usize];
                let figures = &task.figures;
                end += figures.run.most as u128;
                if let (true, Some(latest)) = (candidate.late, task.latest) {
                    let end = end + figures.blocked.most as u128;
                    let end = Counts(u64::try_from(end).unwrap_or(u64::MAX));
                    late.push(Late {
                        key: task.key,
                        latest,
                        end,
                    });
                }
                tasks.push(PlannedTask {
                    key: task.key,
                    band,
                    sort_key: candidate.sort_key,
                    run: Counts(figures.run.mean(task.runs)),
                    most: most(task),
                    turnaround: task.turnaround(),
                    yields: figures.yields.most,
                    weight: candidate.weight,
                    steps: candidate.steps.clone(),
                });
                band += strict as u32;
            }
            band += !strict as u32;
        }
        Ok(Self { tasks, steps, late })
    }

    /// The tasks by rank. The lower of two ready ones runs.
    pub fn tasks(&self) -> &[PlannedTask] {
        &self.tasks
    }

    /// The steps of all tasks; see [`PlannedTask::steps`].
    pub fn steps(&self) -> &[Step] {
        &self.steps
    }

    /// The tasks that do not end in time, by rank.
    pub fn late(&self) -> &[Late] {
        &self.late
    }
}

/// Rule 3: appends what `task` does, at least one step and no more than it has
/// phases.
fn push_steps(task: &StoredTask, steps: &mut Vec<Step>) {
    let runs = u64::from(task.runs.max(1));
    // In one run, to the nearest: a task that blocked 9 times in 10 runs blocks once.
    let once = |total: u64| total.saturating_add(runs / 2) / runs;
    let phases = &task.phases.list;
    if phases.is_empty() || task.phases.order == PhaseOrder::ByEnding {
        let figures = &task.figures;
        let times = if !phases.is_empty() {
            // The last burst ends by the exit, which is one of the blocks if
            // nobody could tell.
            let bursts = (phases.iter())
                .filter(|phase| ends_burst(phase.ended))
                .fold(0u64, |sum, phase| sum.saturating_add(phase.intervals));
            once(bursts).max(1)
        } else if figures.blocked.most > 0 {
            once(figures.blocks.total).saturating_add(1)
        } else {
            1 // it never came back from a block: that one is the exit
        };
        let run = Counts(figures.run.mean(task.runs) / times);
        return steps.push(Step { times, run });
    }
    // The time since the last block, over all runs.
    let mut since = Counts::ZERO;
    for phase in phases {
        if !ends_burst(phase.ended) {
            since += phase.run;
            continue;
        }
        let times = once(phase.intervals).max(1);
        let run = phase.mean_run();
        let first = Counts(since.0 / runs).saturating_add(run);
        since = Counts::ZERO;
        // Only the first burst has the yields before it.
        if first == run || times == 1 {
            steps.push(Step { times, run: first });
        } else {
            steps.push(Step {
                times: 1,
                run: first,
            });
            steps.push(Step {
                times: times - 1,
                run,
            });
        }
    }
    // A record that ends before the task does.
    if phases.last().is_some_and(|last| !ends_burst(last.ended)) {
        let run = Counts(since.0 / runs);
        steps.push(Step { times: 1, run });
    }
}

/// Rule 4: the weight of `task`, which does `steps`.
fn weight_of(task: &StoredTask, steps: &[Step]) -> Weight {
    let times = |sum: u64, step: &Step| sum.saturating_add(step.times);
    let bursts = steps.iter().fold(0, times);
    let mean = |figure: Figure| Counts(figure.mean(task.runs));
    let [run, blocked] = [task.figures.run, task.figures.blocked].map(mean);
    Weight::of(run, blocked, bursts - 1)
}

fn ends_burst(ended: Ended) -> bool {
    match ended {
        Ended::Yield | Ended::Preemption => false,
        Ended::Block | Ended::Exit => true,
    }
}

/// Rule 5, for a class sorted by `sort_key`: cuts it into groups, each from the
/// shortest task that is left to the longest that counts as equal to it. So
/// "equal" is a matter of the group, and not of pairs, which would have a and b
/// equal and b and c, but not a and c.
fn equal_by_arrival(class: &mut [Candidate]) {
    let mut rest = class;
    while let Some(shortest) = rest.first().map(|task| task.sort_key) {
        let allowed = shortest.saturating_add(Counts(shortest.0 / EQUAL_WITHIN));
        let equal = rest.partition_point(|task| task.sort_key <= allowed);
        let (group, longer) = rest.split_at_mut(equal);
        for task in group.iter_mut() {
            task.sort_key = shortest;
        }
        group.sort_unstable_by_key(|task| task.place);
        rest = longer;
    }
}

/// Rule 8, for a class that begins at `start`: as few tasks as can be lose their
/// due time, so that the others can all be in time. Leaves the class sorted by due
/// time. `longest` is there for its memory.
fn give_up_late(
    class: &mut [Candidate],
    stored: &[StoredTask],
    start: u128,
    longest: &mut BinaryHeap<Longest>,
) {
    class.sort_unstable_by_key(|task| (task.due, task.place));
    longest.clear();
    let mut end = start;
    for i in 0..class.len() {
        let Candidate { due, place, .. } = class[i];
        if due == NO_DUE {
            break; // and so have those after it
        }
        let most = most(&stored[place as usize]);
        end += most.0 as u128;
        longest.push((most, place, i as u32)); // has room for every task of the profile
        if end > due as u128
            && let Some((most, _, given_up)) = longest.pop()
        {
            end -= most.0 as u128;
            class[given_up as usize].late = true;
        }
    }
    for task in class.iter_mut().filter(|task| task.late) {
        task.due = NO_DUE;
    }
    class.sort_unstable_by_key(|task| (task.due, task.place));
}

/// Rule 6, for a class that begins at `start` and is sorted by due time, of which
/// some order has all in time: puts the class in order, from the end.
fn longest_last(
    class: &mut [Candidate],
    stored: &[StoredTask],
    start: u128,
    longest: &mut BinaryHeap<Longest>,
) {
    longest.clear();
    let length = |task: &Candidate| most(&stored[task.place as usize]);
    let lengths = class.iter().map(|task| length(task).0 as u128);
    let mut end = start + lengths.sum::<u128>();
    let mut unseen = class.len();
    for rank in (0..class.len()).rev() {
        // The earlier the end, the more may be there.
        while let Some(task) = class[..unseen].last()
            && (task.due == NO_DUE || task.due as u128 >= end)
        {
            unseen -= 1;
            longest.push((length(task), task.place, unseen as u32));
        }
        let (most, _, last) = (longest.pop()).expect("some order has every task in time");
        class[last as usize].rank = rank as u32;
        end -= most.0 as u128;
    }
    class.sort_unstable_by_key(|task| task.rank);
}

#[cfg(test)]
mod tests {
    use core::num::NonZeroU8;

    use proptest::prelude::*;

    use super::super::stored::tests::{child_of_root, of, phase, profile as any_profile};
    use super::super::stored::{MAX_PHASES, PhaseOrder, Phases};
    use super::*;

    const MAX: u64 = u64::MAX;

    /// What the order of a plan is, as places in the profile.
    fn places(plan: &Plan, profile: &StoredProfile) -> Vec<usize> {
        let place = |task: &PlannedTask| {
            let of_key = |stored: &StoredTask| stored.key == task.key;
            profile.tasks.iter().position(of_key).unwrap()
        };
        plan.tasks().iter().map(place).collect()
    }

    fn column<A>(plan: &Plan, field: impl Fn(&PlannedTask) -> A) -> Vec<A> {
        plan.tasks().iter().map(field).collect()
    }

    /// A profile of tasks that were changed from children of the root that run for
    /// `runs`.
    fn changed(runs: &[u64], change: impl Fn(usize, &mut StoredTask)) -> StoredProfile {
        let task = |(i, &run): (usize, &u64)| {
            let mut task = child_of_root(i as u32, run);
            change(i, &mut task);
            task
        };
        of(runs.iter().enumerate().map(task).collect())
    }

    /// The same, with latest times.
    fn with_latest(tasks: &[(u64, Option<u64>)]) -> StoredProfile {
        let runs: Vec<_> = tasks.iter().map(|task| task.0).collect();
        changed(&runs, |i, task| task.latest = tasks[i].1.map(Counts))
    }

    #[test]
    fn rule_1_expected_is_the_mean_and_promises_are_checked_with_the_most() {
        let twice = |least, most| Figure {
            total: least + most,
            least,
            most,
        };
        let mut profile = changed(&[0, 0], |i, task| {
            task.runs = 2;
            task.figures.run = [twice(10, 21), twice(2, 40)][i];
            task.figures.yields = twice(3, 8);
        });
        profile.header.runs = 2;
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(column(&plan, |t| (t.run.0, t.most.0)), [(15, 21), (21, 40)]);
        assert_eq!(column(&plan, |t| t.yields), [8, 8]);
        for (latest, late) in [(40, 0), (39, 1)] {
            profile.tasks[1].latest = Some(Counts(latest));
            assert_eq!(Plan::of(&profile).unwrap().late().len(), late);
        }
    }

    #[test]
    fn rule_2_priorities_are_strict() {
        let runs = [1, 100, 7, 50, 3, 200];
        let priorities = [0, 255, 2, 1, 2, 1];
        for latest in [None, Some(Counts(1000))] {
            let profile = changed(&runs, |i, task| {
                task.priority = NonZeroU8::new(priorities[i]);
                task.latest = latest.filter(|_| priorities[i] == 2);
            });
            let plan = Plan::of(&profile).unwrap();
            assert_eq!(places(&plan, &profile), [3, 5, 4, 2, 1, 0]);
            let bands = match latest {
                None => [0, 0, 1, 1, 2, 3],
                Some(_) => [0, 0, 1, 2, 3, 4],
            };
            assert_eq!(column(&plan, |t| t.band), bands);
            assert!(plan.late().is_empty());
        }
    }

    fn steps_of(change: impl Fn(&mut StoredTask)) -> Vec<(u64, u64)> {
        let profile = changed(&[1000], |_, task| change(task));
        let mut steps = Vec::new();
        push_steps(&profile.tasks[0], &mut steps);
        let plan = Plan::of(&profile).unwrap();
        let planned = &plan.tasks()[0];
        if planned.weight == Weight::WHOLE {
            let job = Step {
                times: 1,
                run: planned.run,
            };
            assert_eq!(plan.steps(), [job]);
        } else {
            assert_eq!(plan.steps(), steps);
        }
        assert_eq!(planned.steps, 0..plan.steps().len() as u32);
        let first = planned.weight.before(plan.steps()[0].run, planned.run);
        assert_eq!(planned.sort_key, first);
        steps.iter().map(|s| (s.times, s.run.0)).collect()
    }

    #[test]
    fn rule_3_bursts_are_from_block_to_block() {
        use Ended::{Block, Exit, Preemption, Yield};
        let as_run = |runs: u32, list: &[(Ended, u64, u64)]| {
            steps_of(|task| {
                task.runs = runs;
                let phases = list.iter().map(|&(ended, n, run)| phase(ended, n, run, 0));
                task.phases.list = phases.collect();
            })
        };
        // Never blocks: one burst, however often it yields or is preempted.
        assert_eq!(as_run(1, &[(Exit, 1, 1000)]), [(1, 1000)]);
        let yields = [(Yield, 50, 500), (Preemption, 2, 300), (Exit, 1, 200)];
        assert_eq!(as_run(1, &yields), [(1, 1000)]);
        // Until the record ended.
        assert_eq!(as_run(1, &yields[..2]), [(1, 800)]);
        let open = [(Block, 2, 80), (Yield, 3, 30)];
        assert_eq!(as_run(1, &open), [(2, 40), (1, 30)]);
        // Equal bursts stay together; yields count to the first after them.
        let mixed = [
            (Block, 4, 100),
            (Yield, 10, 60),
            (Block, 3, 90),
            (Yield, 5, 5),
            (Block, 1, 20),
            (Exit, 1, 7),
        ];
        let steps = [(4, 25), (1, 90), (2, 30), (1, 25), (1, 7)];
        assert_eq!(as_run(1, &mixed), steps);
        // The same three times, and once more in four runs.
        let thrice = mixed.map(|(ended, n, run)| (ended, 3 * n, 3 * run));
        assert_eq!(as_run(3, &thrice), steps);
        assert_eq!(
            as_run(4, &[(Block, 9, 90), (Exit, 4, 40)]),
            [(2, 10), (1, 10)]
        );
        assert_eq!(
            as_run(4, &[(Block, 1, 10), (Exit, 4, 40)]),
            [(1, 10), (1, 10)]
        );
        // No more than phases, whatever they say.
        let alternating = [(Yield, MAX, MAX), (Block, MAX, MAX)];
        let alternating: Vec<_> = alternating.into_iter().cycle().take(MAX_PHASES).collect();
        assert_eq!(as_run(1, &alternating).len(), MAX_PHASES);
    }

    #[test]
    fn rule_3_of_unknown_order_all_bursts_are_equal() {
        let by_ending = |runs: u32, list: &[(Ended, u64)]| {
            steps_of(|task| {
                task.runs = runs;
                let list = list.iter().map(|&(ended, n)| phase(ended, n, 1, 0));
                task.phases = Phases {
                    order: PhaseOrder::ByEnding,
                    list: list.collect(),
                };
            })
        };
        use Ended::{Block, Exit, Yield};
        assert_eq!(
            by_ending(1, &[(Yield, 9), (Block, 4), (Exit, 1)]),
            [(5, 200)]
        );
        assert_eq!(by_ending(1, &[(Yield, 9), (Block, 4)]), [(4, 250)]); // one is the exit
        assert_eq!(by_ending(1, &[(Yield, 9)]), [(1, 1000)]);
        assert_eq!(by_ending(2, &[(Block, 8), (Exit, 2)]), [(5, 100)]);

        let no_phases = |blocks, blocked| {
            steps_of(|task| {
                task.figures.blocks = Figure::once(blocks);
                task.figures.blocked = Figure::once(blocked);
            })
        };
        assert_eq!(no_phases(0, 0), [(1, 1000)]);
        assert_eq!(no_phases(1, 0), [(1, 1000)]); // the exit, as it never came back
        assert_eq!(no_phases(3, 77), [(4, 250)]);
        assert_eq!(no_phases(MAX, MAX), [(MAX, 0)]);
    }

    /// A change to a task of 1,000 that blocks `blocks` times for 100 each, in equal
    /// bursts.
    fn blocking(blocks: u64) -> impl Fn(&mut StoredTask) {
        move |task| {
            let run = 1000 * blocks / (blocks + 1);
            task.figures.blocked = Figure::once(blocks * 100);
            task.phases.list = vec![
                phase(Ended::Block, blocks, run, blocks * 100),
                phase(Ended::Exit, 1, 1000 - run, 0),
            ];
        }
    }

    #[test]
    fn rule_4_shortest_first_by_a_burst_and_a_part_of_what_follows() {
        let mut profile = changed(&[900, 300, 500, 300, 0], |_, _| {});
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [4, 1, 3, 2, 0]);
        assert_eq!(column(&plan, |t| t.band), [0; 5]);
        assert_eq!(column(&plan, |t| t.weight), [Weight::WHOLE; 5]);
        // The longest of all blocks: it has 1000, in bursts of 50.
        profile.tasks[0] = changed(&[1000], |_, task| blocking(19)(task))
            .tasks
            .remove(0);
        for (blocked, order, key) in [
            (0, [4, 1, 3, 2, 0], 1000),    // a job, however often it blocks
            (1000, [4, 1, 3, 2, 0], 783),  // 1000/1296 of the 950 that follow, and 50
            (9_000, [4, 1, 3, 0, 2], 308), // 1000/3671
            (64_000, [4, 0, 1, 3, 2], 97), // 1/20
            (MAX, [4, 0, 1, 3, 2], 50),    // nothing
        ] {
            profile.tasks[0].figures.blocked = Figure::once(blocked);
            let plan = Plan::of(&profile).unwrap();
            assert_eq!(places(&plan, &profile), order, "{blocked}");
            let place = order.iter().position(|&place| place == 0).unwrap();
            assert_eq!(plan.tasks()[place].sort_key, Counts(key), "{blocked}");
        }
    }

    /// From one number of blocks to the next nothing changes by much, nor in the wrong
    /// direction.
    #[test]
    fn rule_4_has_no_cliff() {
        let before = |blocks: u64| {
            let profile = changed(&[1_000_000], |_, task| {
                blocking(blocks)(task);
                task.figures.blocked.total *= 1000;
                task.figures.run.total = 1_000_000;
                task.phases
                    .list
                    .iter_mut()
                    .for_each(|phase| phase.run.0 *= 1000);
            });
            Plan::of(&profile).unwrap().tasks()[0].sort_key.0
        };
        assert_eq!(before(0), 1_000_000);
        for blocks in 1..1000 {
            let (fewer, more) = (before(blocks - 1), before(blocks));
            assert!(more <= fewer, "{blocks}: {fewer}, then {more}");
            assert!(fewer - more <= fewer / 16, "{blocks}: {fewer}, then {more}");
        }
    }

    #[test]
    fn rule_4_a_weight_is_a_part_at_any_size() {
        let of = |run, blocked, blocks| Weight::of(Counts(run), Counts(blocked), blocks);
        for whole in [of(0, 0, 0), of(7, 1000, 0), of(7, 0, 1000), of(7, 63, 1)] {
            assert_eq!(whole, Weight::WHOLE);
        }
        assert_eq!(of(1000, 1000, BLOCKS_IN_FULL), Weight(1 << 15));
        assert_eq!(of(0, MAX, MAX), Weight(0));
        assert_eq!(of(MAX, MAX, BLOCKS_IN_FULL), Weight(1 << 15));
        for weight in [Weight(0), Weight(1 << 15), Weight::WHOLE] {
            assert_eq!(weight.before(Counts(MAX), Counts(MAX)), Counts(MAX));
        }
        assert_eq!(Weight(0).before(Counts(3), Counts(99)), Counts(3));
        assert_eq!(Weight::WHOLE.before(Counts(3), Counts(99)), Counts(99));
        assert_eq!(Weight(1 << 14).before(Counts(8), Counts(40)), Counts(16));
    }

    #[test]
    fn rule_5_equal_is_by_arrival() {
        // Meant to be twice 6400, once 3200: noise of up to 100 is no difference.
        let profile = changed(&[6500, 6401, 3200, 6400, 3250, 6450], |_, _| {});
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [2, 4, 0, 1, 3, 5]);
        let keys = [3200, 3200, 6400, 6400, 6400, 6400];
        assert_eq!(column(&plan, |t| t.sort_key.0), keys);
        // One more is; and a chain of neighbours is cut, not one group.
        let profile = changed(&[6501, 6400, 6602, 6560, 6500], |_, _| {});
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [1, 4, 0, 2, 3]);
        let keys = [6400, 6400, 6501, 6501, 6501];
        assert_eq!(column(&plan, |t| t.sort_key.0), keys);
        // Below 64 counts only equals are equal; at the top nothing overflows.
        let profile = changed(&[MAX, 63, MAX - 1, 62, 1, 0, 62], |_, _| {});
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [5, 4, 3, 6, 1, 0, 2]);
    }

    /// Tasks meant to be equal stand in the order of arrival under any noise that is
    /// within the tolerance.
    #[test]
    fn rule_5_noise_changes_no_order() {
        proptest!(|(noise in prop::collection::vec(0..=1000u64, 1..60))| {
            let runs: Vec<_> = noise.iter().map(|noise| 64_000 + noise).collect();
            let profile = changed(&runs, |_, _| {});
            let plan = Plan::of(&profile).unwrap();
            prop_assert!(places(&plan, &profile).is_sorted());
        });
    }

    #[test]
    fn rule_6_of_the_orders_in_time_the_one_of_least_turnaround() {
        // By latest time: 50 + 60 + 63 + 73 = 246. Smith's: 3 + 53 + 63 + 73 = 192;
        // shortest first would be 3 + 13 + 23 + 73, but 50 must end by 60.
        let tasks = [(50, Some(60)), (10, Some(70)), (3, None), (10, None)];
        let profile = with_latest(&tasks);
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [2, 0, 1, 3]);
        assert_eq!(column(&plan, |t| t.band), [0, 1, 2, 3]);
        // With room, shortest first; equals by arrival.
        let room = with_latest(&[(50, Some(73)), (10, Some(73)), (3, None), (10, None)]);
        assert_eq!(places(&Plan::of(&room).unwrap(), &room), [2, 1, 3, 0]);
        assert!(plan.late().is_empty());
    }

    #[test]
    fn rule_7_in_time_counts_the_classes_before_and_the_time_blocked() {
        let latest_of_second = |latest: u64, priority: u8, blocked: u64| {
            let profile = changed(&[30, 20], |i, task| {
                if i == 0 {
                    task.priority = NonZeroU8::new(7);
                } else {
                    task.priority = NonZeroU8::new(priority);
                    task.latest = Some(Counts(latest));
                    task.figures.blocked = Figure::once(blocked);
                }
            });
            let plan = Plan::of(&profile).unwrap();
            plan.late()
                .iter()
                .map(|late| late.end.0)
                .collect::<Vec<_>>()
        };
        assert_eq!(latest_of_second(50, 8, 0), []);
        assert_eq!(latest_of_second(49, 8, 0), [50]);
        assert_eq!(latest_of_second(20, 7, 0), []); // it may be first
        assert_eq!(latest_of_second(19, 6, 0), [20]);
        assert_eq!(latest_of_second(55, 8, 5), []);
        assert_eq!(latest_of_second(54, 8, 5), [55]);
        assert_eq!(latest_of_second(5, 6, 6), [26]); // blocked for longer than that
        assert_eq!(latest_of_second(MAX - 1, 6, MAX), [MAX]);
        assert_eq!(latest_of_second(MAX, 6, MAX), []); // none
    }

    #[test]
    fn rule_8_as_few_as_can_be_are_late_and_named() {
        // 40 by 40 leaves no room for the three others, which have room together.
        let tasks = [
            (40, Some(40)),
            (10, Some(40)),
            (10, Some(45)),
            (20, Some(50)),
        ];
        let profile = with_latest(&tasks);
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [1, 2, 3, 0]);
        let late = Late {
            key: profile.tasks[0].key,
            latest: Counts(40),
            end: Counts(80),
        };
        assert_eq!(plan.late(), [late]);
        // Where it has lost its latest time, a late task goes by its length: it may
        // go before those that have time.
        let profile = with_latest(&[(5, Some(4)), (50, Some(90))]);
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [0, 1]);
        assert_eq!(plan.late()[0].end, Counts(5));
    }

    #[test]
    fn sums_beyond_64_bits_make_nobody_early() {
        let tasks = [
            (MAX, Some(MAX - 1)),
            (MAX, Some(MAX)),
            (1, Some(1)),
            (MAX, None),
        ];
        let profile = with_latest(&tasks);
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(places(&plan, &profile), [2, 0, 1, 3]);
        let named: Vec<_> = plan.late().iter().map(|l| (l.latest.0, l.end.0)).collect();
        assert_eq!(named, [(MAX - 1, MAX)]);
    }

    #[test]
    fn the_largest_profile_has_a_plan() {
        let n = super::super::stored::MAX_TASKS as u64;
        let runs: Vec<u64> = (0..n).map(|i| i * 7919 % n).collect();
        let profile = changed(&runs, |_, task| task.latest = Some(Counts(n * n / 4)));
        let plan = Plan::of(&profile).unwrap();
        assert_eq!(plan.tasks().len() as u64, n);
        // Equal latest times, so the longest are given up: 0 + 1 + … + k ≤ n²/4.
        let kept = (0..n).take_while(|k| k * (k + 1) / 2 <= n * n / 4).count();
        assert_eq!(plan.late().len(), n as usize - kept);
        assert!(column(&plan, |t| t.run).is_sorted());
    }

    proptest! {
        #[test]
        fn any_profile_has_a_plan_with_every_task_once(profile in any_profile()) {
            prop_assert_eq!(profile.validate(), Ok(()));
            let plan = Plan::of(&profile).unwrap();
            prop_assert_eq!(Plan::of(&profile.clone()).unwrap(), plan.clone());
            let mut once = places(&plan, &profile);
            let classes = once.iter().map(|&place| {
                profile.tasks[place].priority.map_or(256, |p| u16::from(p.get()))
            });
            let by_rank: Vec<_> = classes.zip(plan.tasks()).collect();
            once.sort_unstable();
            prop_assert!(once.into_iter().eq(0..profile.tasks.len()));

            for (class, task) in &by_rank {
                let steps = task.steps.start as usize..task.steps.end as usize;
                prop_assert!((1..=MAX_PHASES).contains(&steps.len()));
                prop_assert!(plan.steps()[steps.clone()].iter().all(|step| step.times > 0));
                let first = task.weight.before(plan.steps()[steps][0].run, task.run);
                prop_assert!(task.weight <= Weight::WHOLE);
                prop_assert!(task.sort_key <= first);
                prop_assert!(first.0 - task.sort_key.0 <= task.sort_key.0 / EQUAL_WITHIN);
                prop_assert!(task.run <= task.most);
                prop_assert!(*class > 0);
            }
            prop_assert_eq!(plan.tasks().first().map_or(0, |task| task.band), 0);
            for pair in by_rank.windows(2) {
                let [(class, task), (next_class, next)] = pair else { unreachable!() };
                prop_assert!(class <= next_class);
                prop_assert!(next.band == task.band || next.band == task.band + 1);
                prop_assert!(class == next_class || task.band < next.band);
                prop_assert!(task.band < next.band || task.sort_key <= next.sort_key);
            }
            for late in plan.late() {
                let task = profile.tasks.iter().find(|task| task.key == late.key).unwrap();
                prop_assert_eq!(Some(late.latest), task.latest);
                prop_assert!(late.end > late.latest);
            }
        }
    }
}
