//! The table of `perf sched`: how long each task waited, and behind which.

use super::timeline::{Interval, Left, State, Stay, Teller, ThreadKind, Timeline};
use crate::{grid, output::count};

/// The report of a phase.
pub struct Report<'a> {
    timeline: &'a Timeline,
    tasks: Vec<OfTask>,
    idle_while_ready: IdleWhileReady,
}

/// The time in which CPUs were idle while a task was ready.
#[derive(Debug, Default, PartialEq, Eq)]
struct IdleWhileReady {
    /// The time of all CPUs together.
    ns: u64,
    /// The number of samples in which a CPU was, one each [`SAMPLE_NS`] from 0 on.
    samples: u64,
}

/// The time between two samples.
const SAMPLE_NS: u64 = 100_000;

/// Returns the number of samples before a time.
const fn samples_until(ns: u64) -> u64 {
    ns.div_ceil(SAMPLE_NS)
}

/// One task's times, in nanoseconds, and counts.
#[derive(Debug, Default, PartialEq, Eq)]
struct OfTask {
    thread: usize,
    run_ns: u64,
    ready_ns: u64,
    blocked_ns: u64,
    yielded: u64,
    preempted: u64,
    blocked: u64,
    ended: u64,
    /// The times from its submission, and from each wake-up, until it had a CPU.
    waits: Vec<Wait>,
}

/// The time from a wake-up, or the submission, until the task had a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Wait {
    ns: u64,
    at_ns: u64,
    /// The thread that had that CPU longest meanwhile, if one had.
    behind: Option<usize>,
}

const TITLES: [&str; 14] = [
    "task",
    ">run, ms",
    ">ready, ms",
    ">blocked, ms",
    ">yields",
    ">preempted",
    ">blocks",
    ">ended",
    ">wake-ups",
    ">median",
    ">99 %",
    ">worst, ms",
    ">at, ms",
    ">behind",
];

impl<'a> Report<'a> {
    pub fn new(timeline: &'a Timeline) -> Self {
        let states = timeline.states();
        let tasks = timeline.tasks().zip(&states);
        Self {
            timeline,
            tasks: tasks
                .map(|((thread, _), states)| OfTask::new(timeline, thread, states))
                .collect(),
            idle_while_ready: IdleWhileReady::new(timeline, &states),
        }
    }

    pub fn text(&self) -> String {
        let rows = self.tasks.iter().map(|task| self.row(task));
        let grid = grid::text(&TITLES, rows, grid::CLOSE);
        let mut text = format!("{}\n\n{grid}", self.timeline.name);
        let available_ns = u128::from(self.timeline.cpus) * u128::from(self.timeline.end_ns);
        text += &format!(
            "\nA CPU was idle while a task was ready for {} ms, {:.3} % of {} ms on {}; \
             in {} of {}, one each 0.1 ms.\n",
            ms(self.idle_while_ready.ns),
            percent(self.idle_while_ready.ns, available_ns),
            ms(self.timeline.end_ns),
            count(self.timeline.cpus as usize, "CPU"),
            self.idle_while_ready.samples,
            count(samples_until(self.timeline.end_ns) as usize, "sample"),
        );
        if let Some(lost) = lost(self.timeline) {
            text += &lost;
            text.push('\n');
        }
        text
    }

    fn row(&self, task: &OfTask) -> [String; 14] {
        let mut waits = task.waits.clone();
        waits.sort_by_key(|wait| wait.ns);
        let rank = |percent: usize| match waits.len() {
            0 => "-".to_owned(),
            n => ms(waits[(n * percent).div_ceil(100) - 1].ns),
        };
        let worst = waits.last();
        let behind = worst.and_then(|wait| wait.behind);
        [
            self.timeline.threads[task.thread].name.clone(),
            ms(task.run_ns),
            ms(task.ready_ns),
            ms(task.blocked_ns),
            task.yielded.to_string(),
            task.preempted.to_string(),
            task.blocked.to_string(),
            task.ended.to_string(),
            waits.len().to_string(),
            rank(50),
            rank(99),
            rank(100),
            worst.map_or("-".into(), |wait| ms(wait.at_ns)),
            behind.map_or("-".into(), |i| self.timeline.threads[i].name.clone()),
        ]
    }
}

/// Returns the note about a log that was full.
pub fn lost(timeline: &Timeline) -> Option<String> {
    (timeline.lost > 0).then(|| {
        let whose = match timeline.teller {
            Teller::Guest => "the guest's",
            Teller::Model => "the model's",
        };
        format!(
            "{}: {whose} log was full; {} lost, all after {} ms",
            timeline.name,
            count(timeline.lost as usize, "event"),
            ms(timeline.end_ns),
        )
    })
}

impl OfTask {
    fn new(timeline: &Timeline, thread: usize, states: &[Interval]) -> Self {
        let mut task = Self {
            thread,
            ..Self::default()
        };
        let mut is_woken = true;
        for (i, interval) in states.iter().enumerate() {
            match interval.state {
                State::Running { left, .. } => {
                    // A task that was not blocked became ready when it left its CPU.
                    if i == 0 || !matches!(states[i - 1].state, State::Ready) && is_woken {
                        task.waits.push(Wait::none(interval));
                    }
                    task.run_ns += interval.ns();
                    is_woken = left == Left::Blocked;
                    match left {
                        Left::Yielded => task.yielded += 1,
                        Left::Preempted => task.preempted += 1,
                        Left::Blocked => task.blocked += 1,
                        Left::Ended => task.ended += 1,
                        Left::Unknown => {}
                    }
                }
                State::Ready => {
                    task.ready_ns += interval.ns();
                    if let (true, Some(next)) = (is_woken, states.get(i + 1)) {
                        task.waits.push(Wait::new(timeline, interval, next));
                    }
                }
                State::Blocked => task.blocked_ns += interval.ns(),
            }
        }
        task
    }
}

impl Wait {
    fn none(run: &Interval) -> Self {
        Self {
            ns: 0,
            at_ns: run.from_ns,
            behind: None,
        }
    }

    fn new(timeline: &Timeline, ready: &Interval, run: &Interval) -> Self {
        let State::Running { cpu, .. } = run.state else {
            return Self::none(ready);
        };
        let stays = &timeline.stays;
        let first = stays.partition_point(|s| (s.cpu, s.to_ns) <= (cpu, ready.from_ns));
        let meanwhile = |s: &&Stay| s.cpu == cpu && s.from_ns < ready.to_ns;
        let mut had = vec![0; timeline.threads.len()];
        for stay in stays[first..].iter().take_while(meanwhile) {
            if timeline.threads[stay.thread].kind != ThreadKind::Idle {
                let (from, to) = (stay.from_ns.max(ready.from_ns), stay.to_ns.min(ready.to_ns));
                had[stay.thread] += to - from;
            }
        }
        let longest = had.iter().enumerate().max_by_key(|(_, ns)| **ns);
        Self {
            ns: ready.ns(),
            at_ns: ready.from_ns,
            behind: longest.filter(|(_, ns)| **ns > 0).map(|(thread, _)| thread),
        }
    }
}

impl IdleWhileReady {
    fn new(timeline: &Timeline, states: &[Vec<Interval>]) -> Self {
        // For each time: the number of CPUs that become idle, and of tasks that become ready.
        let mut changes: Vec<(u64, i64, i64)> = Vec::new();
        for stay in &timeline.stays {
            if timeline.threads[stay.thread].kind == ThreadKind::Idle {
                changes.extend([(stay.from_ns, 1, 0), (stay.to_ns, -1, 0)]);
            }
        }
        for interval in states.iter().flatten() {
            if interval.state == State::Ready {
                changes.extend([(interval.from_ns, 0, 1), (interval.to_ns, 0, -1)]);
            }
        }
        for held in &timeline.held {
            changes.extend([(held.from_ns, 0, -1), (held.to_ns, 0, 1)]);
        }
        changes.sort_unstable();
        let mut sum = Self::default();
        let (mut since_ns, mut idle, mut ready) = (0, 0i64, 0i64);
        for (at_ns, more_idle, more_ready) in changes {
            if ready > 0 && idle > 0 {
                sum.ns += idle.unsigned_abs() * (at_ns - since_ns);
                sum.samples += samples_until(at_ns) - samples_until(since_ns);
            }
            (since_ns, idle, ready) = (at_ns, idle + more_idle, ready + more_ready);
        }
        sum
    }
}

fn percent(part_ns: u64, of_ns: u128) -> f64 {
    match of_ns {
        0 => 0.0,
        of_ns => part_ns as f64 * 100.0 / of_ns as f64,
    }
}

fn ms(ns: u64) -> String {
    format!("{:.3}", ns as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        testing::assert_golden,
        trace::timeline::{Held, tests::sample},
    };

    #[test]
    fn report_has_times_switches_and_waits_of_each_task() {
        let sample = sample();
        let report = Report::new(&sample);
        let mut found = String::new();
        for task in &report.tasks {
            found += &format!("{task:?}\n");
        }
        assert_golden("trace-tasks.txt", &found);
        // From 20 to 50 the CPU is idle, and `b` is ready.
        assert_eq!(report.idle_while_ready.ns, 30);
    }

    #[test]
    fn sample_is_at_the_beginning_of_its_tenth_of_a_millisecond() {
        let ns = [0, 1, SAMPLE_NS, SAMPLE_NS + 1];
        assert_eq!(ns.map(samples_until), [0, 1, 1, 2]);
    }

    #[test]
    fn samples_are_moments_and_held_tasks_are_not_ready() {
        let mut sample = sample();
        let stays = sample.stays.iter_mut();
        let stays = stays.flat_map(|stay| [&mut stay.from_ns, &mut stay.to_ns]);
        let wakes = sample.wakes.iter_mut().map(|wake| &mut wake.at_ns);
        let times = stays.chain(wakes).chain([&mut sample.end_ns]);
        times.for_each(|ns| *ns *= SAMPLE_NS / 10);
        // The CPU is idle for three samples, 2 to 4, and `b` is ready.
        let found = Report::new(&sample);
        let idle = |ns, samples| IdleWhileReady { ns, samples };
        assert_eq!(found.idle_while_ready, idle(3 * SAMPLE_NS, 3));
        let mut text = found.text();
        sample.lost = 3;
        text += &Report::new(&sample).text();
        assert_golden("trace-report.txt", &text);
        // `a` is ready from 40 to 50.
        sample.held = vec![Held {
            from_ns: 2 * SAMPLE_NS,
            to_ns: 5 * SAMPLE_NS,
        }];
        assert_eq!(Report::new(&sample).idle_while_ready, idle(SAMPLE_NS, 1));
    }
}
