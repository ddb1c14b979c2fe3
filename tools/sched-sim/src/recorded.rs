//! The workload that was recorded: the mean of the runs of a profile, with what switching cost
//! still in it.
//!
//! - **Waits** for the timer are sleeps, half a tick shorter than they were: a task is woken at a
//!   tick, up to one after it has slept enough. Waits for another task are waits for it. What
//!   nobody has noted is taken for a sleep: waits for main, for tasks that are not the program's,
//!   for whom it was not nearly always the same, and all of format 1.
//! - **Main** spawns what it spawned, in that order. What came after a sleep of main comes at that
//!   time, whatever happens: half a tick before main was woken. What came after main was woken by
//!   a task comes after that.
//! - **A task** spawns its children after as many waits as it had had, and so much computing.
//!   Of format 1 nobody knows: then all that main spawns come at the start, and the others when
//!   their parents begin.

use std::{cmp::Reverse, collections::BTreeMap};

use axsched_ext::pbg::stored::{
    Ended, Figure, PhaseOrder, Place, Spawned, StoredPhase, StoredProfile, StoredTask, Waker,
};

use crate::{
    time::Clock,
    workload::{Arrival, Job, Peer, Then, Wakes, Work, Workload, portion},
};

/// The workload of a recording on a machine with such a clock and such ticks.
pub fn recorded(profile: &StoredProfile, clock: Clock, tick_ns: u64) -> Workload {
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
    let mut workload = Workload { jobs };
    match_wakes(&mut workload);
    workload
}

/// Who waits for one task so many times as often as for the timer never sleeps.
const LONE: u64 = 64;

/// Of each task the one that ended nearly all of its waits, going by whom tasks woke. If one wake
/// among hundreds was noted as the timer's, phases that were added up say that it was not always
/// the same, and no more.
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

/// A wake that happens to come just before a tick is noted as the timer's. So the few sleeps of who
/// mostly waits for one and the same task are such waits.
fn ignore_lone_sleeps(steps: &mut [Work]) {
    let (mut sleeps, mut waits) = (0, BTreeMap::<usize, u64>::new());
    for work in &*steps {
        match work.then {
            Then::Sleep(_) => sleeps += work.times,
            Then::Wait(waker) => *waits.entry(waker).or_default() += work.times,
            Then::Yield | Then::Spawn(_) | Then::Exit => {}
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

/// Has tasks wake as often as they are waited for, within what rounding, the mean of several runs
/// and wakes that were noted as the timer's made of it: first phases in which it woke somebody
/// nearly once in each run interval do so in each, and the one that wakes most makes up the rest.
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
        // What is missing of the named ones is among those that are not, if there are such.
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
            // Where it woke somebody a little more often than each time, it did so each time.
            for work in &mut job.steps {
                let times = work.times;
                for wakes in work.wakes.iter_mut().filter(|wakes| wakes.whom == whom) {
                    let beyond = wakes.count.saturating_sub(times);
                    if beyond <= times / LONE {
                        wakes.count -= beyond;
                        by += beyond as i64;
                    }
                }
            }
            // And where it did so nearly each time, as well.
            for work in &mut job.steps {
                let times = work.times;
                for wakes in work.wakes.iter_mut().filter(|wakes| wakes.whom == whom) {
                    let missing = times.saturating_sub(wakes.count) as i64;
                    if wakes.count > 0 && missing <= (times / LONE) as i64 {
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

/// Who spawns it; `None` is main, who has those too that stood at several places.
fn parent(task: &StoredTask) -> Option<usize> {
    match task.place {
        Place::Child { parent, .. } => Some(parent as usize),
        Place::Root { .. } | Place::Several => None,
    }
}

/// When tasks come.
struct Spawns<'a> {
    profile: &'a StoredProfile,
    clock: Clock,
    tick_ns: f64,
}

impl Spawns<'_> {
    fn ns(&self, figure: Figure, task: &StoredTask) -> f64 {
        self.clock.ns(figure.total as f64) / f64::from(task.runs)
    }

    /// The tasks of which it is known how they were spawned.
    fn known(&self) -> impl Iterator<Item = (usize, &StoredTask, Spawned)> {
        let tasks = self.profile.tasks.iter().enumerate();
        tasks.filter_map(|(i, task)| Some((i, task, task.spawned?)))
    }

    fn by_main(&self, jobs: &mut [Job]) {
        let (mut run_before, mut blocks_before) = (0.0, 0);
        // Who was spawned before them all may have been left out of the recording.
        let mut first_ns: Option<f64> = None;
        for (i, task, spawned) in self.known().filter(|(_, task, _)| parent(task).is_none()) {
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
        for (i, task, spawned) in self.known() {
            let Some(parent) = parent(task) else {
                continue;
            };
            let blocks = spawned.parent_blocks.mean(task.runs);
            let run_ns = self.ns(spawned.parent_run, task);
            insert(&mut jobs[parent].steps, i, blocks, run_ns);
        }
    }
}

/// Has a task spawn another after so many blocks and so much computing, or at its end.
fn insert(steps: &mut Vec<Work>, child: usize, blocks: u64, run_ns: f64) {
    let (mut blocks_left, mut run_left) = (blocks, run_ns);
    let mut at = 0;
    while let Some(&work) = steps.get(at) {
        let blocks = matches!(work.then, Then::Sleep(_) | Then::Wait(_));
        let skipped = match (blocks_left, blocks) {
            // Its elder sibling comes first, whatever rounding says.
            _ if matches!(work.then, Then::Spawn(_)) => work.times,
            // It blocks as often, and the spawn comes afterwards.
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
        // One of those that are left spawns in its middle.
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

/// The steps of a task, the mean of its runs, and whom it waits for where the recording does not
/// say.
fn steps(task: &StoredTask, usual: Option<usize>, clock: Clock, tick_ns: u64) -> Vec<Work> {
    let runs = f64::from(task.runs);
    // What a preemption cut off of the run interval that goes on afterwards: no business of the
    // program's.
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

/// The order is not known: yields are dealt out evenly between the waits.
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
mod tests {
    use super::*;
    use axsched_ext::{
        pbg::stored::{
            self, Architecture, Figures, Header, Phases, PolicyName, Program, Start, StoredPhase,
            Timing, Woken,
        },
        units::{Counts, TaskKey},
    };

    const TICK_NS: u64 = 10_000_000;
    const MS: u64 = 1_000_000;

    /// `(ending, run intervals, run in ms, blocked in ms)`, all sums over the runs.
    fn played(runs: u32, order: PhaseOrder, phases: &[(Ended, u64, u64, u64)]) -> Vec<Work> {
        let phase = |&(ended, intervals, run, blocked): &(Ended, u64, u64, u64)| {
            StoredPhase::new(ended, intervals, Counts(run * MS), Counts(blocked * MS))
        };
        let task = StoredTask {
            key: TaskKey::ROOT.child(0),
            label: None,
            place: Place::Root { ordinal: 0 },
            runs,
            priority: None,
            deadline: None,
            figures: Figures::default(),
            phases: Phases {
                order,
                list: phases.iter().map(phase).collect(),
            },
            spawned: None,
        };
        steps(&task, None, Clock::of_frequency(1_000_000_000), TICK_NS)
    }

    fn work(times: u64, run_ms: f64, then: Then) -> Work {
        Work::new(times, run_ms * MS as f64, then)
    }

    #[test]
    fn steps_are_the_mean_of_the_runs_and_no_time_is_lost_to_rounding() {
        let exit = (Ended::Exit, 3, 30, 0);
        let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 4, 1200, 0), exit]);
        assert_eq!(
            found,
            [work(1, 400.0, Then::Yield), work(1, 10.0, Then::Exit)]
        );
        let found = played(3, PhaseOrder::AsRun, &[(Ended::Yield, 1, 300, 0), exit]);
        assert_eq!(
            found,
            [work(1, 100.0, Then::Yield), work(1, 10.0, Then::Exit)]
        );
        let found = played(2, PhaseOrder::AsRun, &[(Ended::Yield, 10, 100, 0)]);
        assert_eq!(found, [work(5, 10.0, Then::Yield)]);
    }

    #[test]
    fn a_wait_is_half_a_tick_shorter_than_it_was() {
        let found = played(1, PhaseOrder::AsRun, &[(Ended::Block, 4, 8, 100)]);
        assert_eq!(found, [work(4, 2.0, Then::Sleep(20.0 * MS as f64))]);
        let found = played(2, PhaseOrder::AsRun, &[(Ended::Block, 2, 2, 4)]);
        assert_eq!(found, [work(1, 1.0, Then::Sleep(1.0))]);
    }

    #[test]
    fn what_a_preemption_cut_goes_on() {
        let cut = (Ended::Preemption, 5, 500, 0);
        let found = played(1, PhaseOrder::AsRun, &[cut, (Ended::Yield, 2, 100, 0)]);
        assert_eq!(found, [work(2, 300.0, Then::Yield)]);
        assert_eq!(
            played(1, PhaseOrder::AsRun, &[cut]),
            [work(1, 500.0, Then::Exit)]
        );
        let phases = [(Ended::Yield, 1, 1, 0), cut, (Ended::Exit, 1, 2, 0)];
        let found = played(1, PhaseOrder::ByEnding, &phases);
        let run_ns: f64 = found.iter().map(|work| work.run_ns).sum();
        assert_eq!(run_ns, 503.0 * MS as f64);
    }

    #[test]
    fn without_an_order_yields_are_dealt_out_between_the_sleeps() {
        let phases = [
            (Ended::Yield, 7, 70, 0),
            (Ended::Block, 2, 6, 50),
            (Ended::Exit, 1, 4, 0),
        ];
        let found = played(1, PhaseOrder::ByEnding, &phases);
        let sleep = Then::Sleep(20.0 * MS as f64);
        let expected = [
            work(2, 10.0, Then::Yield),
            work(1, 3.0, sleep),
            work(2, 10.0, Then::Yield),
            work(1, 3.0, sleep),
            work(3, 10.0, Then::Yield),
            work(1, 4.0, Then::Exit),
        ];
        assert_eq!(found, expected);
    }

    /// Two tasks, of which the second waits for nobody knows whom, and was woken so often by the
    /// first; whom it waits for when it is played.
    fn unnamed(waits: u64, woken: u64) -> Then {
        let mut profile = profile_of(&[
            (None, spawned(0, 0, 0, 0, Waker::Unknown)),
            (None, spawned(0, 0, 0, 0, Waker::Unknown)),
        ]);
        profile.tasks[0].phases.list[0].wakes = stored::Wakes::of([Woken {
            whom: Waker::Task(1),
            count: woken,
            after: Counts::ZERO,
        }]);
        let wait = StoredPhase::new(Ended::Block, waits, Counts(waits * MS), Counts(waits * MS));
        profile.tasks[1].phases.list.insert(0, wait);
        let played = recorded(&profile, Clock::of_frequency(1_000_000_000), TICK_NS);
        played.jobs[1].steps[0].then
    }

    #[test]
    fn whom_a_task_waited_for_is_told_by_who_woke_it() {
        assert_eq!(unnamed(2 * LONE, 2 * LONE), Then::Wait(0));
        assert_eq!(unnamed(2 * LONE, 2 * LONE - 2), Then::Wait(0));
        assert!(matches!(unnamed(2 * LONE, 2 * LONE - 3), Then::Sleep(_)));
        assert!(matches!(unnamed(2 * LONE, 0), Then::Sleep(_)));
    }

    fn spawned(at_ms: u64, run_ms: u64, blocks: u64, woken_ms: u64, after: Waker) -> Spawned {
        let [at, parent_run, parent_woken] =
            [at_ms, run_ms, woken_ms].map(|ms| Figure::once(ms * MS));
        Spawned {
            at,
            parent_run,
            parent_blocks: Figure::once(blocks),
            parent_woken,
            after,
        }
    }

    fn of_tasks(tasks: &[(Option<u32>, Spawned)]) -> Vec<Job> {
        let profile = profile_of(tasks);
        recorded(&profile, Clock::of_frequency(1_000_000_000), TICK_NS).jobs
    }

    /// Tasks that compute for 1 ms, and how each was spawned; by whom, if not by main.
    fn profile_of(tasks: &[(Option<u32>, Spawned)]) -> StoredProfile {
        let task = |(i, &(parent, spawned)): (u32, &(Option<u32>, Spawned))| StoredTask {
            key: TaskKey::ROOT.child(i),
            label: None,
            place: match parent {
                None => Place::Root { ordinal: i },
                Some(parent) => Place::Child { parent, ordinal: i },
            },
            runs: 1,
            priority: None,
            deadline: None,
            figures: Figures::default(),
            phases: Phases {
                order: PhaseOrder::AsRun,
                list: vec![StoredPhase::new(Ended::Exit, 1, Counts(MS), Counts::ZERO)],
            },
            spawned: Some(spawned),
        };
        StoredProfile {
            header: Header {
                architecture: Architecture::X86_64,
                timing: Timing::Counted,
                frequency_hz: 1_000_000_000,
                cpus: 1,
                program: Program::scaled("by hand", 1),
                policy: PolicyName::new("rr").unwrap(),
                runs: 1,
                unrecorded: 0,
                start: Some(Start::default()),
            },
            tasks: (0..).zip(tasks).map(task).collect(),
        }
    }

    #[test]
    fn who_main_spawns_comes_after_it_computed_slept_or_was_woken_by_a_task() {
        let jobs = of_tasks(&[
            // The first that is known came 3 ms after one that is not.
            (None, spawned(3, 3, 0, 0, Waker::Unknown)),
            (None, spawned(5, 5, 0, 0, Waker::Unknown)),
            (None, spawned(40, 6, 1, 30, Waker::Timer)),
            (None, spawned(41, 7, 1, 30, Waker::Timer)),
            (None, spawned(60, 8, 2, 58, Waker::Task(1))),
        ]);
        let expected = [
            Arrival::After(0.0),
            Arrival::After(2e6),
            // Main was woken at 30, at a tick; it slept until some time before.
            Arrival::At(22e6),
            Arrival::After(1e6),
            Arrival::When(1),
        ];
        assert_eq!(
            jobs.iter().map(|job| job.arrival).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn a_task_spawns_where_it_had_computed_and_waited_as_much() {
        let mut steps = vec![
            work(4, 10.0, Then::Yield),
            work(2, 10.0, Then::Sleep(5.0)),
            work(3, 10.0, Then::Yield),
            work(1, 10.0, Then::Exit),
        ];
        steps[0].wakes[0].count = 4;
        let ms = MS as f64;
        insert(&mut steps, 7, 0, 13.0 * ms);
        insert(&mut steps, 8, 2, 72.0 * ms);
        insert(&mut steps, 9, 2, 1_000.0 * ms);
        let found: Vec<_> = steps
            .iter()
            .map(|work| (work.times, work.run_ns / ms, work.then, work.wakes[0].count))
            .collect();
        let expected = [
            (1, 10.0, Then::Yield, 1),
            (1, 3.0, Then::Spawn(7), 0),
            (1, 7.0, Then::Yield, 1),
            (2, 10.0, Then::Yield, 2),
            (2, 10.0, Then::Sleep(5.0), 0),
            (1, 10.0, Then::Yield, 0),
            (1, 2.0, Then::Spawn(8), 0),
            (1, 8.0, Then::Yield, 0),
            (1, 10.0, Then::Yield, 0),
            (1, 10.0, Then::Exit, 0),
            (1, 0.0, Then::Spawn(9), 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_sleep_among_many_waits_is_one_of_them_and_among_few_is_not() {
        let then = |waits| {
            let mut steps = vec![
                work(waits, 1.0, Then::Wait(3)),
                work(1, 1.0, Then::Sleep(1.0)),
            ];
            ignore_lone_sleeps(&mut steps);
            steps[1].then
        };
        assert_eq!(then(LONE), Then::Wait(3));
        assert_eq!(then(LONE - 1), Then::Sleep(1.0));
    }

    /// Two that wake and wait for each other; how often the second wakes the first, phase by phase.
    fn matched(counts: [u64; 2]) -> [u64; 2] {
        let job = |steps| Job {
            name: "job".to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps,
        };
        let mut wakes = [100, 300].map(|times| work(times, 1.0, Then::Yield));
        for (work, count) in wakes.iter_mut().zip(counts) {
            work.wakes[0] = Wakes {
                count,
                whom: Some(Peer::Task(0)),
                after_ns: 0.0,
            };
        }
        let waits = vec![work(400, 1.0, Then::Wait(1))];
        let mut workload = Workload {
            jobs: vec![job(waits), job(wakes.to_vec())],
        };
        match_wakes(&mut workload);
        [0, 1].map(|i| workload.jobs[1].steps[i].wakes[0].count)
    }

    #[test]
    fn tasks_wake_as_often_as_they_are_waited_for() {
        assert_eq!(matched([100, 300]), [100, 300]);
        // One was lost in the first phase, or another was noted too late.
        assert_eq!(matched([99, 300]), [100, 300]);
        assert_eq!(matched([99, 301]), [100, 300]);
        // That is no accident: where it woke most, it does so more often.
        assert_eq!(matched([50, 300]), [50, 350]);
        assert_eq!(matched([200, 300]), [200, 200]);
    }
}
