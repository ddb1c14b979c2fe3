//! The trace of a run: the stays of tasks on CPUs, and the wakes.

pub use axsched_ext::model::Left;
use axsched_ext::model::{Log, Logged, TaskId};

/// A task that can have a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thread {
    /// Main, which submits the workload.
    Main,
    /// The task that releases tasks that have ended, on this CPU.
    Gc(usize),
    /// The idle task of this CPU.
    Idle(usize),
    /// The task with this place in the workload.
    Task(usize),
}

/// A time for which a CPU runs the same task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    /// The CPU that the stay was on, from 0.
    pub cpu: usize,
    /// The task that had the CPU.
    pub thread: Thread,
    /// The time at which the task got the CPU, in nanoseconds since the first submission.
    pub from_ns: u64,
    /// The time at which it left the CPU, in nanoseconds since the first submission.
    pub to_ns: u64,
    /// The way in which the stay ended; `None` at the end of the trace.
    pub left: Option<Left>,
}

/// The submission or the wake of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// The time, in nanoseconds since the first submission.
    pub at_ns: u64,
    /// The task's place in the workload.
    pub task: usize,
    /// The CPU that submitted or woke the task.
    pub cpu: usize,
    /// The task that had that CPU. It woke the task, or a tick that interrupted it did.
    pub by: Thread,
    /// The CPU whose queue the task went into.
    pub to: usize,
}

/// The trace of a run from the submission of the first task on. Times are in nanoseconds since
/// then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The submission of the first task, in nanoseconds since boot.
    pub start_ns: u64,
    /// The time at which the last task left its CPU, or at which the log was full.
    pub end_ns: u64,
    /// Sorted by CPU; those of a CPU cover 0 to `end_ns` without a gap or an overlap. A task's
    /// stays add up to its [`run_ns`](crate::play::Played::run_ns), unless some were lost.
    pub stays: Vec<Stay>,
    /// Sorted by time.
    pub wakes: Vec<Wake>,
    /// The number of switches and wakes that did not fit into the log, all of them after `end_ns`.
    /// It is 0 if all tasks had ended before.
    pub lost: u64,
}

impl Traced {
    /// Reads a log, where `threads` are the tasks of the model by their ids.
    pub(crate) fn new(log: &Log, threads: &[Thread], start_ns: u64) -> Self {
        let thread = |id: TaskId| threads[id.0];
        let mut current: Vec<_> = log.idle.iter().map(|&idle| (thread(idle), 0)).collect();
        current[0].0 = thread(TaskId::MAIN);
        // The tasks that have not ended.
        let is_task = |thread: &&Thread| matches!(thread, Thread::Task(_));
        let mut alive = threads.iter().filter(is_task).count();
        let mut traced = Self {
            start_ns,
            end_ns: 0,
            stays: Vec::new(),
            wakes: Vec::new(),
            lost: log.lost,
        };
        for record in &log.records {
            let (at, cpu) = (record.time, record.cpu());
            match record.what {
                Logged::Spawned(to) | Logged::Woken(to) => {
                    if let Thread::Task(task) = thread(record.task()) {
                        traced.wakes.push(Wake {
                            at_ns: at - start_ns,
                            task,
                            cpu,
                            by: current[cpu].0,
                            to: to.into(),
                        });
                    }
                }
                Logged::Switched(left) => {
                    let next = (thread(record.task()), at);
                    let (thread, since) = std::mem::replace(&mut current[cpu], next);
                    if matches!(thread, Thread::Task(_)) {
                        traced.end_ns = at - start_ns;
                        alive -= usize::from(left == Left::Exited);
                    }
                    traced.stay(cpu, thread, (since, at), Some(left));
                }
            }
        }
        match log.records.last() {
            Some(last) if alive > 0 => traced.end_ns = last.time.saturating_sub(start_ns),
            // The lost records are of main and gc, after the end.
            _ => traced.lost = 0,
        }
        let end_ns = traced.end_ns;
        for (cpu, (thread, since)) in current.into_iter().enumerate() {
            traced.stay(cpu, thread, (since, start_ns + end_ns), None);
        }
        traced.stays.retain_mut(|stay| {
            if stay.to_ns > end_ns {
                (stay.to_ns, stay.left) = (end_ns, None);
            }
            stay.from_ns < stay.to_ns
        });
        traced.stays.sort_by_key(|stay| (stay.cpu, stay.from_ns));
        traced.wakes.retain(|wake| wake.at_ns < end_ns);
        traced
    }

    /// Adds the part of a stay that lies after the start. All times are since boot.
    fn stay(&mut self, cpu: usize, thread: Thread, (from, to): (u64, u64), left: Option<Left>) {
        let since_start = |at: u64| at.saturating_sub(self.start_ns);
        let (from_ns, to_ns) = (since_start(from), since_start(to));
        if from_ns < to_ns {
            self.stays.push(Stay {
                cpu,
                thread,
                from_ns,
                to_ns,
                left,
            });
        }
    }
}
