//! Lower bounds that know which task waits for which.
//!
//! A task cannot end before the tasks that it waits for have done a part of their work. All of that
//! work is the task's *need*. The bounds read it from the programs that the model plays: the n-th
//! wait at a queue takes the n-th permit.
//!
//! **One CPU.** Tasks that share a part of their needs are a *set*. At least t(k) of a set's work
//! is done when k of its tasks have ended. For a set of at most 12 tasks t(k) is the least that any
//! k of them need together. For a larger one it is the k-th smallest need. If the part that all
//! their needs share and the k smallest parts that no other task needs are more, it is those. Let
//! each set be a chain of jobs, the k-th of length t(k) − t(k − 1). A schedule of the tasks is one
//! of the chains, in which the k-th job ends no later than k tasks have ended. So the least sum
//! over all schedules of the chains is a bound. It takes again and again the begin of a chain with
//! the least time for each job (Sidney, Decomposition algorithms for single-machine sequencing with
//! precedence relations and deferral costs, 1975).
//!
//! **Several CPUs.** m CPUs do no more than one that is m times as fast. A task also ends no
//! earlier than its *path*, the time at which it ends if each task has a CPU of its own.
//!
//! Only tasks that main spawns in its first go count in this way, since they are all submitted at
//! the start. Any other task adds its own computing and sleeping. Switches and calls cost nothing.

use std::collections::HashMap;

use axsched_ext::model::{Op, Program};

use crate::{
    programs::{MARK, Programs},
    workload::{Arrival, Job, Workload},
};

/// A workload with more events times tasks than this has no such bound: it would take seconds.
const MOST: usize = 300_000_000;
/// The most tasks of a set of which all parts are tried.
const SMALL: usize = 12;
/// Main waits at this queue for the end of all.
const ALL_DONE: u32 = 0;

/// The work that each task of a workload needs before it can end. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct Needs {
    /// True for each task that is submitted at the start.
    is_at_start: Vec<bool>,
    /// The work of all tasks that has to be done before each can end.
    need: Vec<u64>,
    /// The time at which each ends if each has a CPU of its own, since the start.
    path: Vec<u64>,
    /// The time at which each is submitted, if that is known.
    submitted: Vec<Option<u64>>,
    /// The time that each computes.
    run: Vec<u64>,
    /// The time that each computes and sleeps.
    length: Vec<u64>,
    /// The work t(k) of each set, from t(1).
    sets: Vec<Vec<u64>>,
}

impl Needs {
    /// Returns the needs of a workload; `None` if its tasks wait for each other for ever, or if it
    /// has too many waits.
    pub fn of(workload: &Workload, tick_ns: u64) -> Option<Self> {
        let actors = Actors::of(workload, tick_ns);
        let events: usize = actors.list.iter().map(|actor| actor.events.len()).sum();
        if events.saturating_mul(workload.jobs.len()) > MOST {
            return None;
        }
        let tasks = &actors.list[..workload.jobs.len()];
        let mut needs = Self {
            need: Vec::with_capacity(tasks.len()),
            submitted: workload.jobs.iter().map(submitted_ns).collect(),
            run: tasks.iter().map(|task| task.run).collect(),
            length: tasks.iter().map(|task| task.run + task.sleep).collect(),
            path: actors.paths()?,
            is_at_start: vec![false; tasks.len()],
            sets: Vec::new(),
        };
        for &task in &actors.at_start {
            needs.submitted[task] = Some(0);
            needs.is_at_start[task] = true;
        }
        let mut shares = vec![Share::default(); tasks.len()];
        let mut set_of: Vec<usize> = (0..tasks.len()).collect();
        let mut closure = Closure::new(&actors);
        for task in 0..tasks.len() {
            let works = closure.of(task);
            needs.need.push(works.iter().sum());
            if needs.is_at_start[task] {
                for (other, &work) in works.iter().enumerate().filter(|(_, work)| **work > 0) {
                    shares[other].add(task, work);
                    join(&mut set_of, task, other);
                }
            }
        }
        needs.sets = needs.chains(&shares, &mut set_of, &mut closure);
        Some(needs)
    }

    /// Returns the tasks that are submitted at the start.
    fn at_start(&self) -> impl Iterator<Item = usize> {
        let all = self.is_at_start.iter().enumerate();
        all.filter(|(_, is)| **is).map(|(task, _)| task)
    }

    fn chains(
        &self,
        shares: &[Share],
        set_of: &mut [usize],
        closure: &mut Closure,
    ) -> Vec<Vec<u64>> {
        let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
        for task in self.at_start() {
            members.entry(root(set_of, task)).or_default().push(task);
        }
        // The work that all tasks of a set need, and the work that only one task needs.
        let mut common: HashMap<usize, u64> = HashMap::new();
        let mut own = vec![0; self.run.len()];
        for (task, share) in shares
            .iter()
            .enumerate()
            .filter(|(_, share)| share.count > 0)
        {
            let set = root(set_of, task);
            own[share.by] += share.most - share.second;
            if share.count == members[&set].len() {
                *common.entry(set).or_default() += share.least;
            }
        }
        let mut sets: Vec<(usize, Vec<u64>)> = members
            .into_iter()
            .map(|(set, members)| {
                let sorted = |of: &[u64]| {
                    let mut values: Vec<u64> = members.iter().map(|&task| of[task]).collect();
                    values.sort_unstable();
                    values
                };
                let mut works = sorted(&self.need);
                if members.len() <= SMALL {
                    let needs = members.iter().map(|&task| closure.of(task).to_vec());
                    let mut needs: Vec<Vec<u64>> = needs.collect();
                    let is_needed = |task: &usize| needs.iter().any(|works| works[*task] > 0);
                    let needed: Vec<usize> = (0..self.run.len()).filter(is_needed).collect();
                    for works in &mut needs {
                        *works = needed.iter().map(|&task| works[task]).collect();
                    }
                    least_together(&needs, &mut works);
                } else {
                    let mut work = common.get(&set).copied().unwrap_or(0);
                    for (least, own) in works.iter_mut().zip(sorted(&own)) {
                        work += own;
                        *least = work.max(*least);
                    }
                }
                (members[0], works)
            })
            .collect();
        sets.sort_unstable();
        sets.into_iter().map(|(_, works)| works).collect()
    }

    /// Returns a lower bound of the average turnaround.
    pub fn average_ns(&self, cpus: usize) -> f64 {
        let by_path = |task: usize| match self.submitted[task] {
            Some(at) => self.length[task].max(self.path[task].saturating_sub(at)),
            None => self.length[task],
        };
        let paths = (0..self.run.len()).map(by_path).sum::<u64>() as f64;
        let others = (0..self.run.len()).filter(|&task| !self.is_at_start[task]);
        let others = others.map(by_path).sum::<u64>() as f64;
        let chains = chains_sum(&self.sets) as f64 / cpus as f64 + others;
        paths.max(chains) / self.run.len().max(1) as f64
    }

    /// Returns a lower bound of the time until all tasks have ended.
    pub fn makespan_ns(&self, cpus: usize) -> f64 {
        let work = self.run.iter().sum::<u64>() as f64 / cpus as f64;
        let path = self.path.iter().max().copied().unwrap_or(0);
        work.max(path as f64)
    }

    /// Returns a lower bound of the largest turnaround as a multiple of the time that its task
    /// computes.
    pub fn slowdown(&self, cpus: usize) -> f64 {
        let of = |ns: f64, run: u64| ns / run.max(1) as f64;
        let alone = (0..self.run.len()).map(|task| {
            let length = of(self.length[task] as f64, self.run[task]);
            let end = self.submitted[task].map(|at| self.least_end_ns(task, cpus) - at as f64);
            length.max(of(end.unwrap_or(0.0), self.run[task]))
        });
        // Tasks of at most this time all end within the slowdown of the longest of them.
        let mut runs: Vec<u64> = self.at_start().map(|task| self.run[task]).collect();
        runs.sort_unstable();
        let mut work = 0.0;
        let together = runs.into_iter().map(|run| {
            work += run as f64;
            of(work / cpus as f64, run)
        });
        alone.chain(together).fold(1.0, f64::max)
    }

    /// Returns a lower bound of the sum of the times by which tasks end after their deadlines, each
    /// since its submission.
    pub fn tardiness_ns(&self, deadlines_ns: &[Option<f64>], cpus: usize) -> f64 {
        let late = |task: usize, due: f64| {
            let end = self.submitted[task].map(|at| self.least_end_ns(task, cpus) - at as f64);
            let end = end.unwrap_or(0.0).max(self.length[task] as f64);
            (end - due).max(0.0)
        };
        let dues = deadlines_ns.iter().enumerate();
        let each = dues.filter_map(|(task, due)| Some(late(task, (*due)?)));
        let each = each.sum::<f64>();
        // By the order of deadlines the latest task is the least late (Jackson, 1955).
        let mut dues: Vec<(f64, u64)> = self
            .at_start()
            .filter_map(|task| Some((deadlines_ns[task]?, self.run[task])))
            .collect();
        dues.sort_by(|one, other| one.0.total_cmp(&other.0));
        let mut work = 0.0;
        let latest = dues.into_iter().map(|(due, run)| {
            work += run as f64;
            work / cpus as f64 - due
        });
        latest.fold(each, f64::max)
    }

    /// Returns a time before which a task cannot end.
    fn least_end_ns(&self, task: usize, cpus: usize) -> f64 {
        (self.need[task] as f64 / cpus as f64).max(self.path[task] as f64)
    }
}

/// Returns the time at which main submits a task, if it is due at a time.
fn submitted_ns(job: &Job) -> Option<u64> {
    match (job.parent, job.arrival) {
        (None, Arrival::At(due_ns)) => Some(due_ns.round() as u64),
        _ => None,
    }
}

/// Sets the k-th of `least` to the least work that any k of these needs have together.
fn least_together(needs: &[Vec<u64>], least: &mut [u64]) {
    least.fill(u64::MAX);
    // The needs that are not looked at yet, the work of those taken, and their number.
    let mut left = vec![(needs, vec![0; needs[0].len()], 0)];
    while let Some((needs, works, taken)) = left.pop() {
        let Some((first, rest)) = needs.split_first() else {
            continue;
        };
        let both = works.iter().zip(first).map(|(one, other)| *one.max(other));
        let both: Vec<u64> = both.collect();
        least[taken] = least[taken].min(both.iter().sum());
        left.push((rest, works, taken));
        left.push((rest, both, taken + 1));
    }
}

/// The parts of a task's work that tasks need.
#[derive(Clone, Debug, Default)]
struct Share {
    /// The number of tasks that need some of it.
    count: usize,
    /// The least that one of them needs.
    least: u64,
    /// The most that one of them needs.
    most: u64,
    /// The task that needs most.
    by: usize,
    /// The most that another one needs.
    second: u64,
}

impl Share {
    fn add(&mut self, task: usize, work: u64) {
        self.least = if self.count == 0 {
            work
        } else {
            self.least.min(work)
        };
        self.count += 1;
        if work > self.most {
            self.second = self.most;
            (self.most, self.by) = (work, task);
        } else {
            self.second = self.second.max(work);
        }
    }
}

/// Returns the set of a task: the first found task of it.
fn root(set_of: &mut [usize], task: usize) -> usize {
    let mut at = task;
    while set_of[at] != at {
        set_of[at] = set_of[set_of[at]];
        at = set_of[at];
    }
    at
}

fn join(set_of: &mut [usize], one: usize, other: usize) {
    let [one, other] = [one, other].map(|task| root(set_of, task));
    set_of[one.max(other)] = one.min(other);
}

/// Returns the least sum of the times at which the jobs of chains end on one CPU. The k-th job of a
/// chain ends when this work of the chain is done.
fn chains_sum(chains: &[Vec<u64>]) -> u128 {
    let mut blocks: Vec<(&[u64], u64)> = Vec::new();
    for chain in chains {
        let (mut rest, mut done) = (&chain[..], 0);
        while !rest.is_empty() {
            let density = |jobs: usize| (rest[jobs - 1] - done, jobs as u64);
            let less = |one: &usize, other: &usize| {
                let [one, other] = [*one, *other].map(density);
                let cross = |a: (u64, u64), b: (u64, u64)| u128::from(a.0) * u128::from(b.1);
                cross(one, other).cmp(&cross(other, one))
            };
            let jobs = (1..=rest.len()).min_by(less).expect("there is a job left");
            let (block, left) = rest.split_at(jobs);
            blocks.push((block, done));
            (rest, done) = (left, block[jobs - 1]);
        }
    }
    let time = |&(block, done): &(&[u64], u64)| block[block.len() - 1] - done;
    blocks.sort_by(|one, other| {
        let [a, b] = [one, other].map(|block| (u128::from(time(block)), block.0.len() as u128));
        (a.0 * b.1).cmp(&(b.0 * a.1))
    });
    let (mut now, mut sum) = (0, 0);
    for block in &blocks {
        let ends = block.0.iter().map(|&end| now + u128::from(end - block.1));
        sum += ends.sum::<u128>();
        now += u128::from(time(block));
    }
    sum
}

/// An event of a task, or of main.
#[derive(Clone, Copy, Debug)]
struct Event {
    /// The work of its own that the task has done before.
    work: u64,
    what: What,
}

#[derive(Clone, Copy, Debug)]
enum What {
    Sleep(u64),
    SleepUntil(u64),
    /// The n-th wait at a queue, from 0.
    Wait(u32, usize),
    Wake,
    Spawn,
}

/// A task, or main.
#[derive(Debug, Default)]
struct Actor {
    events: Vec<Event>,
    run: u64,
    sleep: u64,
    /// The event that spawns it, by its actor.
    spawned: Option<(usize, usize)>,
}

/// The permits of a queue.
#[derive(Debug, Default)]
struct Permits {
    /// The events that add one, by their actors.
    each: Vec<(usize, usize)>,
    /// The event after which no task waits any more, by its actor.
    opened: Option<(usize, usize)>,
}

/// All tasks, and main as the last.
#[derive(Debug)]
struct Actors {
    list: Vec<Actor>,
    queues: HashMap<u32, Permits>,
    /// The tasks that main spawns in its first go.
    at_start: Vec<usize>,
}

impl Actors {
    fn of(workload: &Workload, tick_ns: u64) -> Self {
        let tasks = workload.jobs.len();
        let mut this = Self {
            list: Vec::new(),
            queues: HashMap::new(),
            at_start: Vec::new(),
        };
        this.list.resize_with(tasks + 1, Actor::default);
        let mut left = vec![(tasks, Programs::new(workload, false).main(tick_ns, 0))];
        while let Some((actor, program)) = left.pop() {
            this.read(actor, &program, &mut left);
        }
        this
    }

    /// Reads the events of a program, and adds the programs that it spawns to `left`.
    fn read(&mut self, actor: usize, program: &Program, left: &mut Vec<(usize, Program)>) {
        let is_main = actor + 1 == self.list.len();
        // Main's own work, and its sleep before it submits the first task, are no part of the
        // bound.
        let (mut is_submitting, mut guards) = (!is_main, 0);
        let mut waits: HashMap<u32, usize> = HashMap::new();
        let mut events: Vec<Event> = Vec::new();
        let (mut work, mut sleep) = (0, 0);
        for op in program.steps() {
            let what = match *op {
                Op::Run(ns) => {
                    work += if is_main { 0 } else { ns };
                    continue;
                }
                Op::Mark => {
                    is_submitting = true;
                    continue;
                }
                Op::PreemptOff => {
                    guards += 1;
                    continue;
                }
                Op::Sleep(ns) if is_submitting => {
                    sleep += ns;
                    What::Sleep(ns)
                }
                Op::SleepSince(ns) => What::SleepUntil(ns),
                Op::Wait { queue, .. } if queue != ALL_DONE => {
                    let n = waits.entry(queue).or_default();
                    *n += 1;
                    What::Wait(queue, *n - 1)
                }
                Op::Notify { queue, .. } => {
                    let permits = self.queues.entry(queue).or_default();
                    permits.each.push((actor, events.len()));
                    What::Wake
                }
                Op::Open { queue } => {
                    let permits = self.queues.entry(queue).or_default();
                    permits.opened = Some((actor, events.len()));
                    What::Wake
                }
                Op::Spawn(ref child) => {
                    let number = child.name.strip_prefix(MARK).map(str::parse);
                    let Some(Ok(number)) = number else { continue };
                    let number: usize = number;
                    self.list[number].spawned = Some((actor, events.len()));
                    // Before it first sleeps or waits, main submits all that it spawns in one go.
                    let is_first = self.at_start.is_empty() || guards == 1;
                    let waits = |event: &Event| !matches!(event.what, What::Wake | What::Spawn);
                    if is_main && is_first && !events.iter().any(waits) {
                        self.at_start.push(number);
                    }
                    left.push((number, child.clone()));
                    What::Spawn
                }
                _ => continue,
            };
            match (events.last_mut(), what) {
                // Sleeps without work between them are one.
                (Some(last), What::Sleep(ns)) if last.work == work => match &mut last.what {
                    What::Sleep(all) => *all += ns,
                    _ => events.push(Event { work, what }),
                },
                _ => events.push(Event { work, what }),
            }
        }
        let this = &mut self.list[actor];
        (this.events, this.run, this.sleep) = (events, work, sleep);
    }

    /// Returns the event, by its actor, that ends the n-th wait at a queue; `None` if none does.
    fn ends_wait(&self, queue: u32, n: usize) -> Option<(usize, usize)> {
        let permits = self.queues.get(&queue)?;
        permits.each.get(n).copied().or(permits.opened)
    }

    /// Returns the end of each task if each has a CPU of its own; `None` if some never ends.
    fn paths(&self) -> Option<Vec<u64>> {
        // The times of the events of each actor that are known. The first is that of its spawn.
        let mut times: Vec<Vec<u64>> = vec![Vec::new(); self.list.len()];
        let mut waiting: Vec<Vec<usize>> = vec![Vec::new(); self.list.len()];
        let mut left: Vec<usize> = (0..self.list.len()).collect();
        while let Some(actor) = left.pop() {
            let Actor {
                events, spawned, ..
            } = &self.list[actor];
            let known = times[actor].len();
            if times[actor].is_empty() {
                let time = match *spawned {
                    Some((parent, event)) => times[parent].get(event + 1).copied().ok_or(parent),
                    None => Ok(0),
                };
                match time {
                    Ok(time) => times[actor].push(time),
                    Err(parent) => {
                        waiting[parent].push(actor);
                        continue;
                    }
                }
            }
            while let Some(event) = events.get(times[actor].len() - 1) {
                let done = times[actor].len() - 1;
                let before = done.checked_sub(1).map_or(0, |last| events[last].work);
                let mut time = times[actor][done] + event.work - before;
                match event.what {
                    What::Sleep(ns) => time += ns,
                    What::SleepUntil(ns) => time = time.max(ns),
                    What::Wait(queue, n) => {
                        let (waker, wake) = self.ends_wait(queue, n)?;
                        let Some(&woken) = times[waker].get(wake + 1) else {
                            waiting[waker].push(actor);
                            break;
                        };
                        time = time.max(woken);
                    }
                    What::Wake | What::Spawn => {}
                }
                times[actor].push(time);
            }
            if times[actor].len() > known {
                left.append(&mut waiting[actor]);
            }
        }
        let tasks = self.list.iter().zip(times).take(self.list.len() - 1);
        let ends = tasks.map(|(actor, times)| {
            let last = actor.events.last().map_or(0, |event| event.work);
            let is_over = times.len() == actor.events.len() + 1;
            is_over.then(|| times[actor.events.len()] + actor.run - last)
        });
        ends.collect()
    }
}

/// The work that has to be done before a task can end.
struct Closure<'a> {
    actors: &'a Actors,
    /// The number of events of each actor that have to be done.
    events: Vec<usize>,
    works: Vec<u64>,
    left: Vec<usize>,
    /// The number of events of each actor that were followed.
    followed: Vec<usize>,
}

impl<'a> Closure<'a> {
    fn new(actors: &'a Actors) -> Self {
        let count = actors.list.len();
        Self {
            actors,
            events: vec![0; count],
            works: vec![0; count],
            left: Vec::new(),
            followed: vec![0; count],
        }
    }

    /// Returns the work of each task that has to be done before `task` can end.
    fn of(&mut self, task: usize) -> &[u64] {
        self.events.fill(0);
        self.works.fill(0);
        self.followed.fill(0);
        let actors = self.actors;
        let list = &actors.list;
        self.need(task, list[task].events.len());
        self.works[task] = list[task].run;
        while let Some(actor) = self.left.pop() {
            while self.followed[actor] < self.events[actor] {
                let event = list[actor].events[self.followed[actor]];
                self.followed[actor] += 1;
                if let What::Wait(queue, n) = event.what
                    && let Some((waker, wake)) = actors.ends_wait(queue, n)
                {
                    self.need(waker, wake + 1);
                }
            }
        }
        &self.works[..list.len() - 1]
    }

    /// Needs the first events of an actor, and its spawn.
    fn need(&mut self, actor: usize, events: usize) {
        let (mut actor, mut events) = (actor, events);
        let list = &self.actors.list;
        loop {
            if events > self.events[actor] {
                self.events[actor] = events;
                let work = list[actor].events[events - 1].work;
                self.works[actor] = self.works[actor].max(work);
                self.left.push(actor);
            }
            let Some((parent, event)) = list[actor].spawned else {
                return;
            };
            (actor, events) = (parent, event + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Peer, Then, Wakes, Work};

    const TICK_NS: u64 = 1_000;

    fn job(steps: Vec<Work>) -> Job {
        Job {
            name: "job".to_owned(),
            label: None,
            parent: None,
            arrival: Arrival::After(0.0),
            steps,
        }
    }

    /// Returns a run interval that wakes `whom` after `after_ns`.
    fn waking(times: u64, run_ns: f64, whom: usize, after_ns: f64) -> Work {
        let mut work = Work::new(times, run_ns, Then::Exit);
        work.wakes[0] = Wakes {
            count: times,
            whom: Some(Peer::Task(whom)),
            after_ns,
        };
        work
    }

    fn needs(jobs: Vec<Job>) -> Needs {
        Needs::of(
            &Workload {
                jobs,
                gc_look_ns: None,
            },
            TICK_NS,
        )
        .expect("it ends")
    }

    #[test]
    fn wait_needs_the_work_up_to_its_own_wake_and_all_behind_it() {
        let needs = needs(vec![
            // Twice it wakes task 1 after 30 of 100.
            job(vec![waking(2, 100.0, 1, 30.0)]),
            // Its second wait needs 130 of task 0. The third has no wake, and needs its end.
            job(vec![
                Work::new(2, 5.0, Then::Wait(0)),
                waking(1, 5.0, 2, 5.0),
                Work::new(1, 5.0, Then::Wait(0)),
                Work::new(1, 5.0, Then::Exit),
            ]),
            job(vec![
                Work::new(1, 0.0, Then::Wait(1)),
                Work::new(1, 7.0, Then::Sleep(50.0)),
            ]),
        ]);
        assert_eq!(needs.need, [200, 200 + 25, 130 + 15 + 7]);
        assert_eq!(needs.path, [200, 205, 142 + 50]);
        assert_eq!(needs.length, [200, 25, 57]);
    }

    #[test]
    fn chains_are_taken_by_least_time_for_each_job() {
        // 3 is taken first, then 10 and 11 together before 7, and 40 last.
        let sum = chains_sum(&[vec![10, 11, 51], vec![3, 10]]);
        assert_eq!(sum, 3 + 13 + 14 + 21 + 61);
    }

    #[test]
    fn tasks_that_share_a_need_are_a_set() {
        let fan = |own: f64| {
            job(vec![
                Work::new(1, 0.0, Then::Wait(0)),
                Work::new(1, own, Then::Exit),
            ])
        };
        let mut first = waking(1, 100.0, 1, 100.0);
        first.wakes[1] = Wakes {
            whom: Some(Peer::Task(2)),
            ..first.wakes[0]
        };
        let alone = job(vec![Work::new(1, 60.0, Then::Exit)]);
        let jobs = vec![job(vec![first]), fan(10.0), fan(20.0), alone];
        let needs = needs(jobs);
        assert_eq!(needs.sets, [vec![100, 110, 130], vec![60]]);
        // The three have 130 / 3 for each, which is less than 60.
        assert_eq!(needs.average_ns(1), (100 + 110 + 130 + 190) as f64 / 4.0);
        assert_eq!(needs.makespan_ns(1), 190.0);
        assert_eq!(needs.makespan_ns(8), 120.0);
        assert_eq!(needs.slowdown(1), 11.0);
        let deadlines = [None, Some(50.0), Some(500.0), Some(10.0)];
        assert_eq!(needs.tardiness_ns(&deadlines, 1), 60.0 + 50.0);
    }

    #[test]
    fn tasks_that_come_later_count_by_themselves() {
        let late = |arrival| Job {
            arrival,
            ..job(vec![Work::new(1, 30.0, Then::Exit)])
        };
        let needs = needs(vec![
            job(vec![Work::new(1, 10.0, Then::Exit)]),
            late(Arrival::At(500.0)),
            late(Arrival::When(0)),
        ]);
        assert_eq!(needs.is_at_start, [true, false, false]);
        assert_eq!(needs.average_ns(1), (10 + 30 + 30) as f64 / 3.0);
        // Main waits for a task that has ended.
        assert_eq!(needs.path, [10, 530, 530]);
    }

    #[test]
    fn tasks_that_wait_for_each_other_for_ever_have_no_needs() {
        let waits = |other| job(vec![Work::new(1, 1.0, Then::Wait(other))]);
        let jobs = vec![waits(1), waits(0)];
        assert!(
            Needs::of(
                &Workload {
                    jobs,
                    gc_look_ns: None
                },
                TICK_NS
            )
            .is_none()
        );
    }
}
