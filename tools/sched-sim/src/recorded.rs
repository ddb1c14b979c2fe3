//! The workload that was recorded: the mean of the runs of a profile, with what switching cost
//! still in it.
//!
//! - **Waits** for the timer are sleeps, half a tick shorter than they were: a task is woken at the
//!   first tick after it has slept enough. Waits for another task are waits for it. Other waits
//!   count as sleeps: waits for main, for tasks outside the program, and for tasks that were not
//!   nearly always the same.
//! - **Main** spawns the recorded tasks in their order. A task that main spawned after a sleep
//!   comes half a tick before main was woken, independent of the other tasks. A task that main
//!   spawned after another task had woken it comes after that wake.
//! - **A task** spawns a child after as many waits, and as much computing, as it had then.
//! - **A poller** ([`polls`](crate::polls)) polls before its other work. Its yields or sleeps beyond
//!   those of the run that had the fewest are looks.

use std::{cmp::Reverse, collections::BTreeMap};

use axsched_ext::pbg::stored::{
    Ended, Figure, PhaseOrder, Place, Spawned, StoredPhase, StoredProfile, StoredTask, Waker,
};

use crate::{
    polls::{Polling, awaited, polling},
    time::Clock,
    workload::{Arrival, Job, Peer, Then, Wakes, Work, Workload, portion},
};

/// Returns the workload of a recording on a machine with such a clock and such ticks. `orders` is a
/// profile of the program's runs in different orders, which tells the tasks that poll. It may be the
/// recording itself.
pub fn recorded(
    profile: &StoredProfile,
    orders: &StoredProfile,
    clock: Clock,
    tick_ns: u64,
) -> Workload {
    let mut paths: Vec<String> = Vec::new();
    let mut usual = usual_wakers(profile).into_iter();
    let jobs = profile.tasks.iter().map(|task| {
        let path = match task.place {
            Place::Root { ordinal } => ordinal.to_string(),
            Place::Child { parent, ordinal } => format!("{}.{ordinal}", paths[parent as usize]),
            Place::Several => task.key.to_string(),
        };
        paths.push(path.clone());
        let label = task.label.map(|label| label.to_string());
        Job {
            name: label.clone().unwrap_or(path),
            label,
            parent: parent(task),
            arrival: Arrival::After(0.0),
            steps: steps(task, usual.next().flatten(), clock, tick_ns),
        }
    });
    let mut jobs: Vec<Job> = jobs.collect();
    jobs.iter_mut()
        .for_each(|job| ignore_lone_sleeps(&mut job.steps));
    let spawns = Spawns {
        profile,
        clock,
        tick_ns: tick_ns as f64,
    };
    spawns.by_main(&mut jobs);
    spawns.by_tasks(&mut jobs);
    let mut workload = Workload {
        jobs,
        gc_look_ns: None,
    };
    add_polls(&mut workload, profile, orders, clock, tick_ns);
    match_wakes(&mut workload);
    workload
}

/// Makes tasks poll that do so by their runs in different orders. A task whose awaited task may
/// depend on it stays as it is, as both might run for ever.
fn add_polls(
    workload: &mut Workload,
    profile: &StoredProfile,
    orders: &StoredProfile,
    clock: Clock,
    tick_ns: u64,
) {
    let keys = |profile: &StoredProfile| profile.tasks.iter().map(|task| task.key).collect();
    let (keys, keys_of_orders): (Vec<_>, Vec<_>) = (keys(profile), keys(orders));
    if keys != keys_of_orders {
        return;
    }
    let mut needs = dependencies(workload);
    for (i, (task, of_orders)) in profile.tasks.iter().zip(&orders.tasks).enumerate() {
        let Some(polling) = polling(of_orders, orders.header.frequency_hz) else {
            continue;
        };
        let Some(awaited) = awaited(orders, i).filter(|&task| !reaches(&needs, task, i)) else {
            continue;
        };
        needs[i].push(awaited);
        let (figures, all) = (&task.figures, &of_orders.figures);
        let (count, sleep_ns) = match polling.by {
            Ended::Block => {
                let blocked_ns = clock.ns(all.blocked.total as f64);
                let mean_ns = blocked_ns / all.blocks.total.max(1) as f64;
                (figures.blocks, (mean_ns - tick_ns as f64 / 2.0).max(1.0))
            }
            Ended::Yield | Ended::Preemption | Ended::Exit => (figures.yields, 0.0),
        };
        let looks = count.mean(task.runs).saturating_sub(polling.least);
        let poll = Work::new(
            looks,
            clock.ns(polling.look.0 as f64),
            Then::Poll { awaited, sleep_ns },
        );
        add_poll(&mut workload.jobs[i].steps, poll, &polling);
    }
}

/// Takes the looks of a poll from the step that has most of such run intervals, and puts the poll
/// before it.
fn add_poll(steps: &mut Vec<Work>, mut poll: Work, polling: &Polling) {
    let is_like = |work: &Work| match polling.by {
        Ended::Block => matches!(work.then, Then::Sleep(_)),
        Ended::Yield | Ended::Preemption | Ended::Exit => work.then == Then::Yield,
    };
    let like = steps.iter().enumerate().filter(|(_, work)| is_like(work));
    let most = like.max_by_key(|(at, work)| (work.times, Reverse(*at)));
    let at = most.map_or(0, |(at, _)| at);
    let looks = most.map_or(0, |(_, work)| poll.times.min(work.times));
    if looks > 0 {
        let work = &mut steps[at];
        let all_ns = work.times as f64 * work.run_ns;
        work.times -= looks;
        if work.times == 0 {
            poll.run_ns = all_ns / looks as f64;
            steps.remove(at);
        } else {
            let left_ns = (all_ns - looks as f64 * poll.run_ns).max(0.0);
            work.run_ns = left_ns / work.times as f64;
        }
    }
    // It looks at least once.
    poll.times = looks.max(1);
    steps.insert(at, poll);
}

/// Returns the tasks on which each task may depend, and last those on which main does: its parent,
/// and the tasks at either end of its waits.
fn dependencies(workload: &Workload) -> Vec<Vec<usize>> {
    let main = workload.jobs.len();
    let mut needs = vec![Vec::new(); main + 1];
    for (i, job) in workload.jobs.iter().enumerate() {
        needs[i].push(job.parent.unwrap_or(main));
    }
    for &(waker, waiter) in workload.waits().keys() {
        match waiter {
            Peer::Main => needs[main].push(waker),
            Peer::Task(waiter) => {
                needs[waiter].push(waker);
                needs[waker].push(waiter);
            }
        }
    }
    needs
}

/// Returns true if `from` depends on `to`, perhaps by others.
fn reaches(needs: &[Vec<usize>], from: usize, to: usize) -> bool {
    let mut seen = vec![false; needs.len()];
    let mut left = vec![from];
    while let Some(task) = left.pop() {
        if !std::mem::replace(&mut seen[task], true) {
            left.extend(&needs[task]);
        }
    }
    seen[to]
}

/// A task that waits at least this many times as often for one task as for the timer never sleeps.
const LONE: u64 = 64;

/// Returns, for each task, the task that ended nearly all of its waits, by the recorded wakes. If
/// one wake among hundreds was noted as the timer's, the sums of phases only tell that the waker
/// was not always the same.
fn usual_wakers(profile: &StoredProfile) -> Vec<Option<usize>> {
    let mut wakes: Vec<BTreeMap<usize, u64>> = vec![BTreeMap::new(); profile.tasks.len()];
    for (waker, task) in profile.tasks.iter().enumerate() {
        for woken in task.phases.list.iter().flat_map(|phase| phase.wakes.iter()) {
            if let Waker::Task(whom) = woken.whom {
                *wakes[usize::from(whom)].entry(waker).or_default() += woken.count;
            }
        }
    }
    let tasks = profile.tasks.iter().zip(wakes);
    let usual = tasks.map(|(task, wakes)| {
        let blocks = task
            .phases
            .list
            .iter()
            .filter(|phase| phase.ended == Ended::Block);
        let waits: u64 = blocks.map(|phase| phase.intervals).sum();
        let is_usual = |&(_, times): &(usize, u64)| waits - times.min(waits) <= waits / LONE;
        wakes.into_iter().find(is_usual).map(|(waker, _)| waker)
    });
    usual.collect()
}

/// Turns the few sleeps of a task that mostly waits for the same task into such waits. A wake just
/// before a tick is noted as the timer's.
fn ignore_lone_sleeps(steps: &mut [Work]) {
    let (mut sleeps, mut waits) = (0, BTreeMap::<usize, u64>::new());
    for work in &*steps {
        match work.then {
            Then::Sleep(_) => sleeps += work.times,
            Then::Wait(waker) => *waits.entry(waker).or_default() += work.times,
            Then::Yield | Then::Poll { .. } | Then::Spawn(_) | Then::Exit => {}
        }
    }
    let most = waits
        .into_iter()
        .max_by_key(|&(waker, times)| (times, Reverse(waker)));
    let Some((waker, _)) = most.filter(|&(_, times)| times >= LONE * sleeps) else {
        return;
    };
    for work in steps {
        if let Then::Sleep(_) = work.then {
            work.then = Then::Wait(waker);
        }
    }
}

/// Makes tasks wake as often as they are waited for. Rounding, the mean of several runs and wakes
/// that were noted as the timer's have changed the numbers. First, phases that woke a task nearly
/// once in each run interval do so in each. Then the phase that wakes most makes up the rest.
fn match_wakes(workload: &mut Workload) {
    let waits = workload.waits();
    for (waker, job) in workload.jobs.iter_mut().enumerate() {
        let wakes = |whom: Option<Peer>| {
            let all = job.steps.iter().flat_map(|work| &work.wakes);
            let of = all.filter(move |wakes| wakes.whom == whom);
            of.map(|wakes| wakes.count as i64).sum::<i64>()
        };
        let pairs = waits.range((waker, Peer::Main)..=(waker, Peer::Task(usize::MAX)));
        let mut change: Vec<(Option<Peer>, i64)> = Vec::new();
        // Missing wakes of named tasks are among the unnamed ones, if there are any.
        let (has_unnamed, mut unnamed) = (wakes(None) > 0, 0);
        for (&(_, whom), &waits) in pairs {
            let missing = waits as i64 - wakes(Some(whom));
            match has_unnamed {
                true => unnamed += missing.max(0),
                false => change.push((Some(whom), missing)),
            }
        }
        if has_unnamed {
            change.push((None, unnamed - wakes(None)));
        }
        for (whom, by) in change {
            let mut by = by;
            // If a task woke another a little more often than once in each interval, it did so once
            // in each. All intervals count together, because a wake may be noted one interval late,
            // when the next wake, spawn or tick tells if it was the timer's.
            let (mut times, mut beyond, mut below) = (0, 0, 0);
            for work in &job.steps {
                for wakes in work.wakes.iter().filter(|wakes| wakes.whom == whom) {
                    times += work.times;
                    beyond += wakes.count.saturating_sub(work.times);
                    below += work.times.saturating_sub(wakes.count);
                }
            }
            if beyond <= times / LONE {
                for work in &mut job.steps {
                    for wakes in work.wakes.iter_mut().filter(|wakes| wakes.whom == whom) {
                        by += wakes.count.saturating_sub(work.times) as i64;
                        wakes.count = wakes.count.min(work.times);
                    }
                }
            }
            // The same holds if it woke the other nearly once in each, in all phases or in one.
            let is_nearly_each = below <= times / LONE;
            for work in &mut job.steps {
                let times = work.times;
                for wakes in work.wakes.iter_mut().filter(|wakes| wakes.whom == whom) {
                    let missing = times.saturating_sub(wakes.count) as i64;
                    let is_nearly_each = is_nearly_each || missing <= (times / LONE) as i64;
                    if wakes.count > 0 && is_nearly_each {
                        let more = missing.min(by).max(0);
                        wakes.count += more as u64;
                        by -= more;
                    }
                }
            }
            let all = job.steps.iter_mut().rev().flat_map(|work| &mut work.wakes);
            let of = all.filter(|wakes| wakes.whom == whom && wakes.count > 0);
            if let Some(most) = of.max_by_key(|wakes| wakes.count) {
                most.count = most.count.saturating_add_signed(by);
            }
        }
    }
}

/// Returns the task that spawns it; `None` is main, which also spawns the tasks that were at
/// several places.
fn parent(task: &StoredTask) -> Option<usize> {
    match task.place {
        Place::Child { parent, .. } => Some(parent as usize),
        Place::Root { .. } | Place::Several => None,
    }
}

/// Sets the arrivals of tasks.
struct Spawns<'a> {
    profile: &'a StoredProfile,
    clock: Clock,
    tick_ns: f64,
}

impl Spawns<'_> {
    fn ns(&self, figure: Figure, task: &StoredTask) -> f64 {
        self.clock.ns(figure.total as f64) / f64::from(task.runs)
    }

    /// Returns the tasks, and how each was spawned.
    fn tasks(&self) -> impl Iterator<Item = (usize, &StoredTask, Spawned)> {
        let tasks = self.profile.tasks.iter().enumerate();
        tasks.map(|(i, task)| (i, task, task.spawned))
    }

    fn by_main(&self, jobs: &mut [Job]) {
        let (mut run_before, mut blocks_before) = (0.0, 0);
        // A task that was spawned before them all may have been left out of the recording.
        let mut first_ns: Option<f64> = None;
        for (i, task, spawned) in self.tasks().filter(|(_, task, _)| parent(task).is_none()) {
            let run_ns = self.ns(spawned.parent_run, task);
            let blocks = spawned.parent_blocks.mean(task.runs);
            jobs[i].arrival = match (first_ns, spawned.after) {
                (None, _) => Arrival::After(0.0),
                _ if blocks <= blocks_before => Arrival::After((run_ns - run_before).max(0.0)),
                (_, Waker::Task(other)) => Arrival::When(usize::from(other)),
                (Some(first_ns), _) => {
                    let woken_ns = self.ns(spawned.parent_woken, task) - first_ns;
                    Arrival::At((woken_ns - self.tick_ns / 2.0).max(0.0))
                }
            };
            first_ns = first_ns.or(Some(self.ns(spawned.at, task)));
            (run_before, blocks_before) = (run_ns, blocks);
        }
    }

    fn by_tasks(&self, jobs: &mut [Job]) {
        for (i, task, spawned) in self.tasks() {
            let Some(parent) = parent(task) else {
                continue;
            };
            let blocks = spawned.parent_blocks.mean(task.runs);
            let run_ns = self.ns(spawned.parent_run, task);
            insert(&mut jobs[parent].steps, i, blocks, run_ns);
        }
    }
}

/// Makes a task spawn another after `blocks` blocks and `run_ns` of computing, or at its end.
fn insert(steps: &mut Vec<Work>, child: usize, blocks: u64, run_ns: f64) {
    let (mut blocks_left, mut run_left) = (blocks, run_ns);
    let mut at = 0;
    while let Some(&work) = steps.get(at) {
        let blocks = matches!(work.then, Then::Sleep(_) | Then::Wait(_));
        let skipped = match (blocks_left, blocks) {
            // An elder sibling is spawned first, whatever the rounding of times.
            _ if matches!(work.then, Then::Spawn(_)) => work.times,
            // The spawn comes after this number of blocks.
            (1.., true) => work.times.min(blocks_left),
            (1.., false) => work.times,
            // The spawn is before the next block.
            (0, _) if run_left < work.run_ns => 0,
            (0, true) => 0,
            (0, false) => ((run_left / work.run_ns.max(1.0)) as u64).min(work.times),
        };
        run_left = (run_left - skipped as f64 * work.run_ns).max(0.0);
        blocks_left -= if blocks { skipped } else { 0 };
        if skipped == work.times {
            at += 1;
            continue;
        }
        // One of the run intervals that are left is split by the spawn.
        let part = run_left.min(work.run_ns);
        let mut pieces = Vec::new();
        let share = |from: u64, to: u64| {
            let count = |count| portion(count, to, work.times) - portion(count, from, work.times);
            work.wakes.map(|wakes| Wakes {
                count: count(wakes.count),
                ..wakes
            })
        };
        if skipped > 0 {
            pieces.push(Work {
                times: skipped,
                wakes: share(0, skipped),
                ..work
            });
        }
        pieces.push(Work::new(1, part, Then::Spawn(child)));
        pieces.push(Work {
            times: 1,
            run_ns: work.run_ns - part,
            wakes: share(skipped, skipped + 1),
            ..work
        });
        if skipped + 1 < work.times {
            pieces.push(Work {
                times: work.times - skipped - 1,
                wakes: share(skipped + 1, work.times),
                ..work
            });
        }
        steps.splice(at..=at, pieces);
        return;
    }
    steps.push(Work::new(1, 0.0, Then::Spawn(child)));
}

/// Returns the steps of a task as the mean of its runs. `usual` is the task that it waits for if
/// the recording does not tell.
fn steps(task: &StoredTask, usual: Option<usize>, clock: Clock, tick_ns: u64) -> Vec<Work> {
    let runs = f64::from(task.runs);
    // The part of a run interval before a preemption, which does not depend on the program.
    let mut cut_ns = 0.0;
    let mut steps = Vec::new();
    for phase in &task.phases.list {
        let run_ns = clock.ns(phase.run.0 as f64) / runs;
        if phase.ended == Ended::Preemption {
            cut_ns += run_ns;
            continue;
        }
        let times = (phase.intervals as f64 / runs).round().max(1.0);
        steps.push(Work {
            times: times as u64,
            run_ns: (run_ns + std::mem::take(&mut cut_ns)) / times,
            then: match (phase.ended, phase.woken_by, usual) {
                (Ended::Preemption | Ended::Yield, ..) => Then::Yield,
                (Ended::Block, Waker::Task(other), _) => Then::Wait(usize::from(other)),
                (Ended::Block, Waker::Unknown, Some(other)) => Then::Wait(other),
                (Ended::Block, ..) => {
                    let blocked = clock.ns(phase.blocked.0 as f64) / runs / times;
                    Then::Sleep((blocked - tick_ns as f64 / 2.0).max(1.0))
                }
                (Ended::Exit, ..) => Then::Exit,
            },
            wakes: wakes(phase, task.runs, clock),
        });
    }
    if cut_ns > 0.0 {
        steps.push(Work::new(1, cut_ns, Then::Exit));
    }
    match task.phases.order {
        PhaseOrder::AsRun => steps,
        PhaseOrder::ByEnding => spread(&steps),
    }
}

fn wakes(phase: &StoredPhase, runs: u32, clock: Clock) -> [Wakes; 2] {
    let mut wakes = [Wakes::default(); 2];
    for (wakes, woken) in wakes.iter_mut().zip(phase.wakes.iter()) {
        *wakes = Wakes {
            count: (woken.count as f64 / f64::from(runs)).round() as u64,
            whom: match woken.whom {
                Waker::Root => Some(Peer::Main),
                Waker::Task(index) => Some(Peer::Task(usize::from(index))),
                Waker::Unknown | Waker::Timer | Waker::Outside => None,
            },
            after_ns: clock.ns(woken.after.0 as f64) / woken.count as f64,
        };
    }
    wakes
}

/// Deals the yields out evenly between the waits, as their order is not known.
fn spread(steps: &[Work]) -> Vec<Work> {
    let find = |is: fn(Then) -> bool| steps.iter().find(|work| is(work.then)).copied();
    let yields = find(|then| then == Then::Yield);
    let waits = find(|then| matches!(then, Then::Sleep(_) | Then::Wait(_)));
    let exit = find(|then| then == Then::Exit);
    let mut spread = Vec::new();
    match (yields, waits) {
        (Some(yields), Some(waits)) => {
            // Before each wait, and before the end.
            let parts = waits.times + 1;
            let dealt =
                |count, part, parts| portion(count, part + 1, parts) - portion(count, part, parts);
            for part in 0..parts {
                let times = dealt(yields.times, part, parts);
                let wakes = yields.wakes.map(|wakes| Wakes {
                    count: dealt(wakes.count, part, parts),
                    ..wakes
                });
                spread.extend((times > 0).then_some(Work {
                    times,
                    wakes,
                    ..yields
                }));
                let wakes = waits.wakes.map(|wakes| Wakes {
                    count: dealt(wakes.count, part, waits.times),
                    ..wakes
                });
                spread.extend((part < waits.times).then_some(Work {
                    times: 1,
                    wakes,
                    ..waits
                }));
            }
        }
        (one, other) => spread.extend(one.into_iter().chain(other)),
    }
    spread.extend(exit);
    spread
}

#[cfg(test)]
pub(crate) mod tests;
