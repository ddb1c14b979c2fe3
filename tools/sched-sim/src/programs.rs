//! A workload as programs of the model of `axtask`.
//!
//! Main first runs for some ticks, so that every policy knows how long a tick is. It sleeps until a
//! tick, runs for the phase of the tick, and then spawns its tasks. No task that it spawns in one
//! go starts before the last of them is there, unless main computes for long in between. At the end
//! main waits at a latch until all tasks have ended.

use std::iter;

use axsched_ext::model::{Op, Program};

use crate::{
    waits::{Waits, Wake},
    workload::{Arrival, Peer, Then, Workload, portion},
};

/// The call of main that starts to follow the plan.
pub const START: u32 = u32::MAX;
/// The begin of the name of a workload's task in the model; the task's number follows.
pub const MARK: &str = "job ";

/// The wait queue at which main waits for all.
const ALL_DONE: u32 = 0;
/// Main forbids preemption while it spawns tasks in one go, if that takes less than this part of
/// a tick.
const IN_ONE_GO: f64 = 0.5;

/// A workload, prepared for the model.
pub struct Programs<'a> {
    workload: &'a Workload,
    waits: Waits,
    /// True if tasks are announced by their number ([`Op::Call`]) before they are spawned.
    announces: bool,
    /// The children of each task, and last those of main, whose time of spawn was not recorded.
    children: Vec<Vec<usize>>,
}

impl<'a> Programs<'a> {
    /// Prepares a workload. If `announces` is true, its programs announce each spawn to the plan
    /// that is followed.
    pub fn new(workload: &'a Workload, announces: bool) -> Self {
        let jobs = &workload.jobs;
        let mut children = vec![Vec::new(); jobs.len() + 1];
        let mut is_placed = vec![false; jobs.len()];
        for work in jobs.iter().flat_map(|job| &job.steps) {
            if let Then::Spawn(child) = work.then {
                is_placed[child] = true;
            }
        }
        for (i, job) in jobs.iter().enumerate().filter(|(i, _)| !is_placed[*i]) {
            children[job.parent.unwrap_or(jobs.len())].push(i);
        }
        Self {
            workload,
            waits: Waits::new(workload, ALL_DONE + 1),
            announces,
            children,
        }
    }

    /// Returns the program of main on a machine with such ticks, if the workload begins `phase_ns`
    /// after one.
    pub fn main(&self, tick_ns: u64, phase_ns: u64) -> Program {
        // It begins with the first tick a whole one away, and wakes at that. A guest begins its
        // program as early, when no policy has learned the length of a tick.
        let mut ops = vec![Op::Run(tick_ns / 2)];
        ops.extend(self.waits.rooms().map(Op::notify));
        ops.push(Op::Sleep(tick_ns / 4));
        if self.announces {
            ops.push(Op::Call(START));
            // The call takes effect when main next has the CPU.
            ops.push(Op::Yield);
        }
        ops.push(Op::Run(phase_ns));
        let jobs = &self.workload.jobs;
        let children = &self.children[jobs.len()];
        let mut programs = self.of_tasks();
        let in_one_go = |&i: &usize| matches!(jobs[i].arrival, Arrival::After(_));
        let drops = self.workload.gc_look_ns.is_none();
        let mut spawned = 0;
        while let Some(&first) = children.get(spawned) {
            match jobs[first].arrival {
                Arrival::After(_) => {}
                Arrival::At(due_ns) => ops.push(Op::SleepSince(due_ns.round() as u64)),
                Arrival::When(waker) => ops.push(self.wait(waker, Peer::Main)),
            }
            let rest = &children[spawned + 1..];
            let more = rest.iter().take_while(|i| in_one_go(i)).count();
            let go = &children[spawned..=spawned + more];
            let run_ns = |&i: &usize| match jobs[i].arrival {
                Arrival::After(run_ns) => run_ns,
                Arrival::At(_) | Arrival::When(_) => 0.0,
            };
            let guards = go.iter().map(run_ns).sum::<f64>() < IN_ONE_GO * tick_ns as f64;
            ops.extend(guards.then_some(Op::PreemptOff));
            for i in go {
                let run_ns = run_ns(i).round() as u64;
                ops.extend((run_ns > 0).then_some(Op::Run(run_ns)));
                ops.extend(self.announced(*i));
                ops.extend((spawned == 0).then_some(Op::Mark));
                ops.push(spawn(&mut programs, *i));
                ops.extend(drops.then_some(Op::DropHandle(spawned)));
                spawned += 1;
            }
            ops.extend(guards.then_some(Op::PreemptOn));
        }
        ops.push(Op::wait(ALL_DONE));
        Program::new("main", ops)
    }

    fn wait(&self, waker: usize, waiter: Peer) -> Op {
        Op::wait(self.waits.queue(waker, waiter))
    }

    /// Returns the step of a task that polls for the end of another.
    fn poll(&self, awaited: usize, look_ns: f64, sleep_ns: f64) -> Op {
        let queue = self.waits.end(awaited);
        match sleep_ns.round() as u64 {
            0 => Op::YieldUntil {
                queue,
                look: look_ns.round() as u64,
            },
            units => Op::SleepUntil { queue, units },
        }
    }

    fn announced(&self, i: usize) -> Option<Op> {
        self.announces.then_some(Op::Call(i as u32))
    }

    /// Returns the programs of main's tasks, which hold those of their children. They are made from
    /// the last one on, as a child comes after its parent.
    fn of_tasks(&self) -> Vec<Option<Program>> {
        let mut programs = vec![None; self.workload.jobs.len()];
        for i in (0..programs.len()).rev() {
            programs[i] = Some(self.of(i, &mut programs));
        }
        programs
    }

    /// Returns the program of a task, and takes the programs of its children.
    fn of(&self, i: usize, programs: &mut [Option<Program>]) -> Program {
        let mut ops = Vec::new();
        let mut spawned = 0;
        let mut spawn = |child: usize, ops: &mut Vec<Op>| {
            ops.extend(self.announced(child));
            ops.push(spawn(programs, child));
            ops.push(Op::DropHandle(spawned));
            spawned += 1;
        };
        for &child in &self.children[i] {
            spawn(child, &mut ops);
        }
        let mut waking = self.waits.waking(i);
        for work in &self.workload.jobs[i].steps {
            if let Then::Spawn(child) = work.then {
                ops.push(Op::Run(work.run_ns.round() as u64));
                spawn(child, &mut ops);
                continue;
            }
            if let Then::Poll { awaited, sleep_ns } = work.then {
                ops.push(self.poll(awaited, work.run_ns, sleep_ns));
                continue;
            }
            let then = match work.then {
                Then::Yield => vec![Op::Yield],
                Then::Sleep(ns) => vec![Op::Sleep(ns.round() as u64)],
                Then::Wait(waker) => {
                    let room = self.waits.room(waker, i);
                    let takes = room.map(Op::notify).into_iter();
                    iter::once(self.wait(waker, Peer::Task(i)))
                        .chain(takes)
                        .collect()
                }
                Then::Exit | Then::Spawn(_) | Then::Poll { .. } => vec![],
            };
            let run_ns = work.run_ns.round() as u64;
            // Run intervals that wake alike, and how many there are so far.
            let (mut alike, mut times) = (Vec::new(), 0);
            let mut next = 0;
            while next < work.times {
                let mut wakes: Vec<(u64, Wake)> = Vec::new();
                let mut same = work.times - next;
                for wakes_of in work.wakes.iter().filter(|wakes| wakes.count > 0) {
                    let upto = |n| portion(wakes_of.count, n, work.times);
                    let after_ns = run_ns.min(wakes_of.after_ns.round() as u64);
                    let each = (upto(next)..upto(next + 1)).map_while(|_| waking.next(wakes_of));
                    wakes.extend(each.map(|wake| (after_ns, wake)));
                    same = 1;
                }
                wakes.sort_unstable_by_key(|wake| wake.0);
                if times > 0 && wakes != alike {
                    again(&mut ops, interval(run_ns, &alike, &then), times);
                    times = 0;
                }
                (alike, times) = (wakes, times + same);
                next += same;
            }
            again(&mut ops, interval(run_ns, &alike, &then), times);
        }
        // No task waits for one that has ended.
        ops.extend(self.waits.of_task(i).map(|queue| Op::Open { queue }));
        ops.push(Op::CountDown {
            queue: ALL_DONE,
            of: self.workload.jobs.len() as u64,
        });
        Program::new(&format!("{MARK}{i}"), ops)
    }
}

/// Spawns this task.
///
/// # Panics
/// If it was spawned before, or its program is not made yet.
fn spawn(programs: &mut [Option<Program>], task: usize) -> Op {
    Op::Spawn(programs[task].take().expect("each task is spawned once"))
}

/// Returns the steps of a run interval: it computes, wakes others after their times, and does
/// `then`.
fn interval(run_ns: u64, wakes: &[(u64, Wake)], then: &[Op]) -> Vec<Op> {
    let mut steps = Vec::new();
    let mut done_ns = 0;
    for &(after_ns, wake) in wakes {
        steps.push(Op::Run(after_ns - done_ns));
        done_ns = after_ns;
        steps.extend(wake.room.map(Op::wait));
        steps.push(Op::notify(wake.queue));
    }
    steps.push(Op::Run(run_ns - done_ns));
    steps.extend_from_slice(then);
    steps
}

/// Appends the steps `times` times.
fn again(ops: &mut Vec<Op>, steps: Vec<Op>, times: u64) {
    if times == 0 {
        return;
    }
    let len = steps.len();
    ops.extend(steps);
    if times > 1 {
        ops.push(Op::Again {
            steps: len,
            times: times - 1,
        });
    }
}
