//! The events on each CPU in one phase, from the log of a guest or of the model.
//!
//! A log gives the [`Stay`]s, which cover all time of each CPU, and the [`Wake`]s. The state of a
//! task that has no CPU follows from them: [`Timeline::states`].

/// The events of one phase. All times are in nanoseconds since its start.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// The title for people: the app, the policy, the phase.
    pub name: String,
    /// The time of the phase's start, since boot.
    pub start_ns: u64,
    /// The end of the phase: the last task had done its work, or a log was full.
    pub end_ns: u64,
    pub cpus: u32,
    /// The first one is main.
    pub threads: Vec<Thread>,
    /// Sorted by CPU; those of a CPU cover 0 to `end_ns` without a gap or an overlap.
    pub stays: Vec<Stay>,
    /// Sorted by time. The task of each is not on a CPU, or blocks at once.
    pub wakes: Vec<Wake>,
    /// The times in which tasks that were not let in yet, and count as ready, were on a CPU or
    /// blocked.
    pub held: Vec<Held>,
    /// The number of records that found the log full.
    pub lost: u64,
    pub teller: Teller,
}

/// The source of a timeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Teller {
    #[default]
    Guest,
    Model,
}

/// A thread that can have a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    pub kind: ThreadKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A task of the workload, which is ready from its submission on.
    Task { submit_ns: u64 },
    /// Main or the kernel's: only its time on a CPU is known.
    System,
    /// The idle thread of a CPU.
    Idle,
}

/// A time for which a CPU runs the same thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub cpu: u32,
    /// Its index in [`Timeline::threads`].
    pub thread: usize,
    pub from_ns: u64,
    pub to_ns: u64,
    pub left: Left,
}

/// How a stay ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    Yielded,
    Preempted,
    Blocked,
    Ended,
    /// The thread is no task, or a log was full.
    Unknown,
}

/// A task became ready: it was submitted or woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    pub at_ns: u64,
    pub thread: usize,
    /// The CPU that did it.
    pub cpu: u32,
    /// The CPU whose queue the task went into. A guest does not tell it: there it is `cpu`.
    pub to: u32,
    /// The thread on that CPU, which did it or was interrupted by it.
    pub by: usize,
}

/// A time in which a task counts as ready and no CPU could have run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Running { cpu: u32, left: Left },
    Ready,
    Blocked,
}

/// A task in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    pub from_ns: u64,
    pub to_ns: u64,
    pub state: State,
}

impl Interval {
    pub const fn ns(&self) -> u64 {
        self.to_ns - self.from_ns
    }
}

impl Timeline {
    /// Returns the tasks of the workload: their indices, and the times of their submission.
    pub fn tasks(&self) -> impl Iterator<Item = (usize, u64)> {
        let task = |(i, thread): (usize, &Thread)| match thread.kind {
            ThreadKind::Task { submit_ns } => Some((i, submit_ns)),
            _ => None,
        };
        self.threads.iter().enumerate().filter_map(task)
    }

    /// Returns the states of each task from its submission to its end, without a gap, in the order
    /// of [`tasks`](Self::tasks). A task that blocks is blocked until it is woken, and then ready
    /// until it has a CPU.
    pub fn states(&self) -> Vec<Vec<Interval>> {
        let mut stays: Vec<Vec<&Stay>> = vec![Vec::new(); self.threads.len()];
        let mut wakes: Vec<Vec<u64>> = vec![Vec::new(); self.threads.len()];
        for stay in &self.stays {
            stays[stay.thread].push(stay);
        }
        for wake in &self.wakes {
            wakes[wake.thread].push(wake.at_ns);
        }
        let of = |(task, submit_ns): (usize, u64)| {
            stays[task].sort_by_key(|stay| stay.from_ns);
            states(submit_ns, &stays[task], &wakes[task], self.end_ns)
        };
        self.tasks().map(of).collect()
    }
}

/// Returns main, the threads that each CPU has of its own, and the tasks with the times of their
/// submission, in this order. On several CPUs the number of the CPU is in the names of its threads.
pub fn threads(
    cpus: usize,
    of_cpu: &[&str],
    tasks: impl Iterator<Item = (String, u64)>,
) -> Vec<Thread> {
    let thread = |name: String, kind| Thread { name, kind };
    let of_cpu = |cpu: usize| {
        of_cpu.iter().map(move |&name| Thread {
            name: match cpus {
                1 => name.to_owned(),
                _ => format!("{name}/{cpu}"),
            },
            kind: match name {
                "idle" => ThreadKind::Idle,
                _ => ThreadKind::System,
            },
        })
    };
    let tasks = tasks.map(|(name, submit_ns)| thread(name, ThreadKind::Task { submit_ns }));
    let main = thread("main".to_owned(), ThreadKind::System);
    let system = (0..cpus).flat_map(of_cpu);
    [main].into_iter().chain(system).chain(tasks).collect()
}

fn states(submit_ns: u64, stays: &[&Stay], wakes: &[u64], end_ns: u64) -> Vec<Interval> {
    let mut states = Vec::with_capacity(2 * stays.len());
    let mut push = |from_ns, to_ns, state| {
        if from_ns < to_ns {
            states.push(Interval {
                from_ns,
                to_ns,
                state,
            });
        }
    };
    let mut wakes = wakes.iter().copied().peekable();
    let (mut since_ns, mut left, mut began_ns) = (submit_ns, Left::Unknown, 0);
    for stay in stays.iter().copied().map(Some).chain([None]) {
        let until_ns = stay.map_or(end_ns, |stay| stay.from_ns);
        match left {
            Left::Ended => {}
            Left::Blocked => {
                // If another CPU woke it before it had left its CPU, it was never blocked.
                while wakes.next_if(|&at| at < began_ns).is_some() {}
                let wake = wakes.next_if(|&at| at <= until_ns);
                let woken_ns = wake.map_or(until_ns, |at| at.max(since_ns));
                push(since_ns, woken_ns, State::Blocked);
                push(woken_ns, until_ns, State::Ready);
            }
            Left::Yielded | Left::Preempted | Left::Unknown => {
                push(since_ns, until_ns, State::Ready);
            }
        }
        let Some(stay) = stay else { break };
        let (cpu, from_ns) = (stay.cpu, stay.from_ns);
        left = stay.left;
        push(from_ns, stay.to_ns, State::Running { cpu, left });
        (since_ns, began_ns) = (stay.to_ns, from_ns.saturating_add(1));
    }
    states
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::testing::assert_golden;

    /// Returns a run on one CPU: main to 10, `a` blocks at 20, idle to 50, `a` yields at 55, `b`
    /// ends at 70, `a` ends at 80. `a` is woken at 40.
    pub fn sample() -> Timeline {
        let names = ["main", "a", "b", "idle"];
        let kinds = [
            ThreadKind::System,
            ThreadKind::Task { submit_ns: 2 },
            ThreadKind::Task { submit_ns: 4 },
            ThreadKind::Idle,
        ];
        let pieces = [
            (0, 10, Left::Unknown),
            (1, 20, Left::Blocked),
            (3, 50, Left::Unknown),
            (1, 55, Left::Yielded),
            (2, 70, Left::Ended),
            (1, 80, Left::Ended),
        ];
        let mut from_ns = 0;
        let stays = pieces.map(|(thread, to_ns, left)| {
            let stay = Stay {
                cpu: 0,
                thread,
                from_ns,
                to_ns,
                left,
            };
            from_ns = to_ns;
            stay
        });
        let wake = |at_ns, thread, by| Wake {
            at_ns,
            thread,
            cpu: 0,
            to: 0,
            by,
        };
        Timeline {
            name: "sample".into(),
            start_ns: 1_000,
            end_ns: 80,
            cpus: 1,
            threads: (names.into_iter().zip(kinds))
                .map(|(name, kind)| Thread {
                    name: name.into(),
                    kind,
                })
                .collect(),
            stays: stays.into(),
            wakes: vec![wake(2, 1, 0), wake(4, 2, 0), wake(40, 1, 3)],
            held: Vec::new(),
            lost: 0,
            teller: Teller::Guest,
        }
    }

    /// Returns all that a timeline says, in lines for golden files.
    pub fn in_words(timeline: &Timeline) -> String {
        let name = |thread: usize| &timeline.threads[thread].name;
        let Timeline {
            start_ns,
            end_ns,
            lost,
            ..
        } = timeline;
        let mut out = format!(
            "{}: {end_ns} ns from {start_ns} on, {lost} lost\n",
            timeline.name
        );
        for stay in &timeline.stays {
            let Stay {
                cpu,
                from_ns,
                to_ns,
                left,
                ..
            } = stay;
            let thread = name(stay.thread);
            out += &format!("CPU {cpu}: {from_ns} to {to_ns} {thread}, {left:?}\n");
        }
        for wake in &timeline.wakes {
            let Wake { at_ns, cpu, to, .. } = wake;
            let [task, by] = [wake.thread, wake.by].map(name);
            out += &format!("{at_ns}: {by} on CPU {cpu} wakes {task} for CPU {to}\n");
        }
        for Held { from_ns, to_ns } in timeline
            .held
            .iter()
            .filter(|held| held.from_ns < held.to_ns)
        {
            out += &format!("{from_ns} to {to_ns}: a task is held\n");
        }
        for ((task, _), states) in timeline.tasks().zip(timeline.states()) {
            let state = |interval: &Interval| {
                let state = match interval.state {
                    State::Running { .. } => "running",
                    State::Ready => "ready",
                    State::Blocked => "blocked",
                };
                format!(" {state} {} to {}", interval.from_ns, interval.to_ns)
            };
            let states: Vec<_> = states.iter().map(state).collect();
            out += &format!("{}:{}\n", name(task), states.join(","));
        }
        out
    }

    #[test]
    fn states_follow_from_stays_and_wakes() {
        let mut all = in_words(&sample());
        let mut woken_before_it_left = sample();
        woken_before_it_left.wakes[2].at_ns = 15;
        let mut never_woken = sample();
        never_woken.wakes.pop();
        never_woken.stays.truncate(3);
        never_woken.end_ns = 60;
        all += &in_words(&woken_before_it_left);
        all += &in_words(&never_woken);
        assert_golden("trace-states.txt", &all);
    }
}
