//! What happened on each CPU in one phase, whoever tells: a guest's log, or a simulator.
//!
//! A teller gives the [`Stay`]s, which leave no time of a CPU out, and the [`Wake`]s. What a task
//! did when it had no CPU follows from them: [`Timeline::states`].

/// One phase. All times are in nanoseconds since its start.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    /// What people are told that it is: the app, the policy, the phase.
    pub name: String,
    /// When it started, since boot.
    pub start_ns: u64,
    /// When it ended: the work of the last task was done, or a log was full.
    pub end_ns: u64,
    pub cpus: u32,
    /// The first one is main.
    pub threads: Vec<Thread>,
    /// By CPU, and of each CPU from 0 to `end_ns` without a gap or an overlap.
    pub stays: Vec<Stay>,
    /// In the order of their times. Each is of a task that is not on a CPU, or blocks at once.
    pub wakes: Vec<Wake>,
    /// When tasks, that count as ready until they are let in, were on a CPU or blocked.
    pub held: Vec<Held>,
    /// How many records there was no room for.
    pub lost: u64,
    pub teller: Teller,
}

/// Who tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Teller {
    #[default]
    Guest,
    Model,
}

/// Somebody who can have a CPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    pub name: String,
    pub kind: ThreadKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadKind {
    /// A task of the workload, and when it was submitted: ready from then on.
    Task { submit_ns: u64 },
    /// Main or the kernel's: only its time on a CPU is known.
    System,
    /// Nobody.
    Idle,
}

/// A time on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stay {
    pub cpu: u32,
    /// Its place among [`Timeline::threads`].
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
    /// Of who is no task; and of all at the end of a log that was full.
    Unknown,
}

/// A task became ready: it was submitted or woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    pub at_ns: u64,
    pub thread: usize,
    /// On which CPU that was done.
    pub cpu: u32,
    /// Into which CPU's queue the task went; a guest does not tell, and it is `cpu`.
    pub to: u32,
    /// Who was on that CPU: it did it, or an interrupt that hit it.
    pub by: usize,
}

/// A time in which a task counts as ready and no CPU could have run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    pub from_ns: u64,
    pub to_ns: u64,
}

/// What a task was doing.
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
    /// The tasks of the workload: their places, and when they were submitted.
    pub fn tasks(&self) -> impl Iterator<Item = (usize, u64)> {
        let task = |(i, thread): (usize, &Thread)| match thread.kind {
            ThreadKind::Task { submit_ns } => Some((i, submit_ns)),
            _ => None,
        };
        self.threads.iter().enumerate().filter_map(task)
    }

    /// What each task did from its submission to its end, without a gap; in the order of
    /// [`tasks`](Self::tasks). A task that blocks is so until it is woken, and ready then until
    /// it has a CPU.
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
                // Another CPU may have woken it on its way out: then it was never blocked.
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

    /// One CPU: main to 10, `a` blocks at 20, idle to 50, `a` yields at 55, `b` ends at 70, `a`
    /// ends at 80. `a` is woken at 40.
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

    fn in_short(states: &[Interval]) -> String {
        let of = |interval: &Interval| {
            let state = match interval.state {
                State::Running { .. } => "run",
                State::Ready => "ready",
                State::Blocked => "blocked",
            };
            format!("{state} {}", interval.to_ns)
        };
        states.iter().map(of).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn states_follow_from_stays_and_wakes() {
        let states = sample().states();
        assert_eq!(
            in_short(&states[0]),
            "ready 10, run 20, blocked 40, ready 50, run 55, ready 70, run 80"
        );
        assert_eq!(in_short(&states[1]), "ready 55, run 70");
        assert_eq!((states[0][0].from_ns, states[1][0].from_ns), (2, 4));
    }

    #[test]
    fn who_is_woken_on_its_way_out_is_not_blocked() {
        let mut sample = sample();
        sample.wakes[2].at_ns = 15;
        assert_eq!(
            in_short(&sample.states()[0]),
            "ready 10, run 20, ready 50, run 55, ready 70, run 80"
        );
    }

    #[test]
    fn who_is_not_woken_is_blocked_to_the_end() {
        let mut sample = sample();
        sample.wakes.pop();
        sample.stays.truncate(3);
        sample.end_ns = 60;
        assert_eq!(
            in_short(&sample.states()[0]),
            "ready 10, run 20, blocked 60"
        );
        assert_eq!(in_short(&sample.states()[1]), "ready 60");
    }
}
