//! From what a guest printed to [`Timeline`]s.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use sched_tests_results::{
    Kind, ResultLine,
    events::{self, EventsLine, FIRST_TASK, GC, IDLE, Log, MAIN, Record, What},
};

use super::timeline::{Held, Left, Stay, Thread, ThreadKind, Timeline, Wake};
use crate::record::{self, Phase};

/// The phases of a console of `make run TRACE=events`.
pub fn timelines(console: &str) -> Result<Vec<(Phase, Timeline)>> {
    // What is no figure is an empty line, so that the numbers are those of the file.
    let mut figures = String::new();
    let mut logs: BTreeMap<(String, u32), Vec<EventsLine>> = BTreeMap::new();
    for (number, line) in (1..).zip(console.lines()) {
        if record::split(line).is_some() {
            figures += line;
        } else if let Some((Kind::Events, json)) = Kind::split(line) {
            let line = EventsLine::from_json(json).with_context(|| format!("{number}"))?;
            let log = (line.context.phase.clone(), line.cpu);
            logs.entry(log).or_default().push(line);
        }
        figures.push('\n');
    }
    let outcome = record::parse(&figures)?;
    let several = outcome.phases.len() > 1;
    let mut timelines = Vec::new();
    for phase in outcome.phases {
        let mut cpus = Vec::new();
        for cpu in 0..phase.run.context.smp {
            let lines = logs.remove(&(phase.name().to_owned(), cpu));
            let log = Log::collect(lines.unwrap_or_default());
            let log = log.with_context(|| {
                format!(
                    "the events of CPU {cpu} in phase `{}` (`make run TRACE=events` prints them)",
                    phase.name()
                )
            })?;
            ensure!(
                log.head.context == phase.run.context && log.head.counter_hz > 0,
                "the events of CPU {cpu}: expected those of {:?} and a counter_hz from 1, found {:?} and {}",
                phase.run.context,
                log.head.context,
                log.head.counter_hz,
            );
            cpus.push(log);
        }
        let timeline = Builder::new(&phase, &cpus)?.build(&cpus, several)?;
        timelines.push((phase, timeline));
    }
    if let Some((phase, cpu)) = logs.keys().next() {
        bail!(
            "the events of CPU {cpu} in phase `{phase}`: expected a SCHED-RUN line of that phase and more CPUs, found none"
        );
    }
    Ok(timelines)
}

/// What is known of a task while its records are read.
#[derive(Clone, Copy, Default)]
struct Seen {
    is_let_in: bool,
    is_done: bool,
    is_submitted: bool,
    run_ticks: u64,
    /// At the gate: since when it is blocked. Of no meaning if it was woken on its way out.
    blocked_since: Option<u64>,
}

struct Builder<'a> {
    phase: &'a Phase,
    records: Vec<Vec<Record>>,
    hz: u64,
    tasks: Vec<Seen>,
    /// Where the last stay of each CPU is among the timeline's.
    last_stay: Vec<Option<usize>>,
    timeline: Timeline,
}

/// The threads of a CPU beside its tasks, after main: in this order.
const OF_CPU: [&str; 4] = ["gc", "idle", "other", "rest"];
const REST: usize = 3;

impl<'a> Builder<'a> {
    fn new(phase: &'a Phase, logs: &[Log]) -> Result<Self> {
        let records = logs
            .iter()
            .map(Log::records)
            .collect::<Result<Vec<_>, _>>()?;
        // Of one CPU, tasks are let in as they begin, and there is no record of that.
        let has_gate = records.iter().flatten().any(|r| r.what == What::LetIn);
        let seen = Seen {
            is_let_in: !has_gate,
            ..Seen::default()
        };
        Ok(Self {
            phase,
            records,
            hz: logs[0].head.counter_hz,
            tasks: vec![seen; phase.tasks.len()],
            last_stay: vec![None; logs.len()],
            timeline: Timeline::default(),
        })
    }

    fn build(mut self, logs: &[Log], several: bool) -> Result<Timeline> {
        let run = &self.phase.run;
        let name = &run.context;
        self.timeline = Timeline {
            name: match several {
                true => format!("{} under {}, {}", name.app, name.sched, name.phase),
                false => format!("{} under {}", name.app, name.sched),
            },
            start_ns: logs[0].head.start_ns,
            end_ns: 0,
            cpus: logs.len() as u32,
            threads: self.threads(),
            lost: logs.iter().map(|log| log.head.lost).sum(),
            ..Timeline::default()
        };
        // In the order of time, as a task's account goes on on another CPU.
        let records = std::mem::take(&mut self.records);
        let mut order: Vec<_> = (0..records.len())
            .flat_map(|cpu| (0..records[cpu].len()).map(move |i| (cpu, i)))
            .collect();
        order.sort_by_key(|&(cpu, i)| (records[cpu][i].at_ticks, cpu, i));
        let mut since = vec![0; records.len()];
        let ends: Vec<_> = records.iter().map(stay_ends).collect();
        for (cpu, i) in order {
            let record = records[cpu][i];
            if record.what.ends_a_stay() {
                self.stay(cpu, since[cpu], record)?;
                since[cpu] = record.at_ticks;
            } else {
                self.wake(cpu, record, ends[cpu][i])?;
            }
        }
        self.end(logs, &since);
        self.check()?;
        Ok(self.timeline)
    }

    fn threads(&self) -> Vec<Thread> {
        let thread = |name: String, kind| Thread { name, kind };
        let mut threads = vec![thread("main".into(), ThreadKind::System)];
        let cpus = self.records.len();
        for cpu in 0..cpus {
            for name in OF_CPU {
                let kind = match name {
                    "idle" => ThreadKind::Idle,
                    _ => ThreadKind::System,
                };
                let name = match cpus {
                    1 => name.to_owned(),
                    _ => format!("{name}/{cpu}"),
                };
                threads.push(thread(name, kind));
            }
        }
        for task in &self.phase.tasks {
            let submit_ns = task.submit_ns;
            threads.push(thread(task.task.clone(), ThreadKind::Task { submit_ns }));
        }
        threads
    }

    fn of_cpu(cpu: usize, which: usize) -> usize {
        1 + cpu * OF_CPU.len() + which
    }

    fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.hz)) as u64
    }

    /// The task of a record, if it is of one.
    fn task(&self, who: u64) -> Result<Option<usize>> {
        let Some(task) = who.checked_sub(FIRST_TASK) else {
            return Ok(None);
        };
        ensure!(
            task < self.tasks.len() as u64,
            "the events of phase `{}`: expected tasks 0 to {}, found {task}",
            self.phase.name(),
            self.tasks.len().saturating_sub(1),
        );
        Ok(Some(task as usize))
    }

    /// The threads' places that a record's `who` has, whatever a task's account says.
    fn place(&self, cpu: usize, who: u64) -> Result<usize> {
        Ok(match self.task(who)? {
            Some(task) if self.tasks[task].is_let_in && !self.tasks[task].is_done => {
                Self::of_cpu(self.timeline.cpus as usize, 0) + task
            }
            Some(_) => Self::of_cpu(cpu, REST),
            None => match who {
                MAIN => 0,
                GC => Self::of_cpu(cpu, 0),
                IDLE => Self::of_cpu(cpu, 1),
                events::OTHER.. => Self::of_cpu(cpu, 2),
            },
        })
    }

    fn stay(&mut self, cpu: usize, since: u64, record: Record) -> Result<()> {
        let thread = self.place(cpu, record.who)?;
        let mut left = Left::Unknown;
        if let Some(task) = self.task(record.who)? {
            self.at_gate(task, since, record);
            let seen = &mut self.tasks[task];
            if seen.is_let_in && !seen.is_done {
                seen.run_ticks += record.at_ticks - since;
                left = match record.what {
                    What::Blocked => Left::Blocked,
                    What::Yielded => Left::Yielded,
                    What::Preempted => Left::Preempted,
                    _ => Left::Ended,
                };
            }
            seen.is_let_in |= record.what == What::LetIn;
            if record.what == What::Done {
                seen.is_done = true;
                self.timeline.end_ns = self.ns(record.at_ticks);
            }
        }
        self.push(cpu, thread, since, record.at_ticks, left);
        Ok(())
    }

    /// A stay before the task is let in: it is not ready then, nor while it is blocked afterwards.
    fn at_gate(&mut self, task: usize, since: u64, record: Record) {
        let seen = &mut self.tasks[task];
        if seen.is_let_in {
            return;
        }
        seen.blocked_since = (record.what == What::Blocked).then_some(record.at_ticks);
        self.hold(since, record.at_ticks);
    }

    fn hold(&mut self, from: u64, to: u64) {
        let (from_ns, to_ns) = (self.ns(from), self.ns(to));
        self.timeline.held.push(Held { from_ns, to_ns });
    }

    /// Pieces of the same thread without a meter are one stay: it did not leave between them.
    fn push(&mut self, cpu: usize, thread: usize, since: u64, until: u64, left: Left) {
        let (from_ns, to_ns) = (self.ns(since), self.ns(until));
        let last = &mut self.last_stay[cpu];
        let before = last.map(|last| &mut self.timeline.stays[last]);
        match before {
            Some(before)
                if before.thread == thread
                    && before.left == Left::Unknown
                    && left == Left::Unknown =>
            {
                before.to_ns = to_ns;
            }
            _ if from_ns < to_ns || left == Left::Ended => {
                *last = Some(self.timeline.stays.len());
                self.timeline.stays.push(Stay {
                    cpu: cpu as u32,
                    thread,
                    from_ns,
                    to_ns,
                    left,
                });
            }
            _ => {}
        }
    }

    /// A task is submitted when the `SCHED-TASK` line says so, a moment before it is spawned;
    /// at a gate it counts as ready.
    fn wake(&mut self, cpu: usize, record: Record, by: Option<Record>) -> Result<()> {
        let Some(task) = self.task(record.who)? else {
            return Ok(());
        };
        let seen = &mut self.tasks[task];
        let at_ns = if seen.is_submitted {
            if !seen.is_let_in {
                if let Some(since) = seen.blocked_since.take() {
                    self.hold(since, record.at_ticks);
                }
                return Ok(());
            }
            if seen.is_done {
                return Ok(());
            }
            self.ns(record.at_ticks)
        } else {
            seen.is_submitted = true;
            self.phase.tasks[task].submit_ns
        };
        let by = by.map_or(Ok(Self::of_cpu(cpu, 1)), |by| self.place(cpu, by.who))?;
        self.timeline.wakes.push(Wake {
            at_ns,
            thread: Self::of_cpu(self.timeline.cpus as usize, 0) + task,
            cpu: cpu as u32,
            to: cpu as u32,
            by,
        });
        Ok(())
    }

    /// Cuts all at the end: the work of the last task was done, or a log was full.
    fn end(&mut self, logs: &[Log], since: &[u64]) {
        let full = logs.iter().zip(since).filter(|(log, _)| log.head.lost > 0);
        if let Some(until) = full.map(|(_, &since)| since).min() {
            self.timeline.end_ns = self.ns(until);
        }
        let end_ns = self.timeline.end_ns;
        self.timeline.stays.retain(|stay| stay.from_ns < end_ns);
        for stay in &mut self.timeline.stays {
            if stay.to_ns > end_ns {
                (stay.to_ns, stay.left) = (end_ns, Left::Unknown);
            }
        }
        // A CPU that had no more to tell was idle, as in the account.
        for (cpu, &since) in since.iter().enumerate() {
            if self.ns(since) < end_ns {
                let until = self.timeline.end_ns;
                let idle = Self::of_cpu(cpu, 1);
                self.timeline.stays.push(Stay {
                    cpu: cpu as u32,
                    thread: idle,
                    from_ns: self.ns(since),
                    to_ns: until,
                    left: Left::Unknown,
                });
            }
        }
        self.timeline
            .stays
            .sort_by_key(|stay| (stay.cpu, stay.from_ns));
        self.timeline.wakes.retain(|wake| wake.at_ns < end_ns);
        // Another CPU may have woken a task that was on its way out: when it was out.
        let mut of_thread = vec![Vec::new(); self.timeline.threads.len()];
        for stay in &self.timeline.stays {
            of_thread[stay.thread].push((stay.from_ns, stay.to_ns));
        }
        of_thread.iter_mut().for_each(|stays| stays.sort_unstable());
        for wake in &mut self.timeline.wakes {
            let stays = &of_thread[wake.thread];
            let next = stays.partition_point(|(_, to_ns)| *to_ns <= wake.at_ns);
            if let Some((from_ns, to_ns)) = stays.get(next)
                && *from_ns < wake.at_ns
            {
                wake.at_ns = *to_ns;
            }
        }
        self.timeline.wakes.sort_by_key(|wake| wake.at_ns);
    }

    /// Whether each task has the time that its `SCHED-TASK` line says. Both are the same ticks,
    /// converted as a sum, so that they are equal whatever the clock's rate is.
    fn check(&self) -> Result<()> {
        if self.timeline.lost > 0 {
            return Ok(());
        }
        for (task, seen) in self.phase.tasks.iter().zip(&self.tasks) {
            let (expected, found) = (task.run_ns, self.ns(seen.run_ticks));
            ensure!(
                seen.is_done && expected == found,
                "task `{}` in phase `{}`: expected stays of {expected} ns until its work is done, as run_ns says, found {found}",
                task.task,
                self.phase.name(),
            );
        }
        Ok(())
    }
}

/// Returns, for each record of a CPU, the first one from it on that ends a stay: that stay was
/// under way when the record was made. Each record is looked at once, from the last to the first.
fn stay_ends<'r>(
    records: impl IntoIterator<Item = &'r Record, IntoIter: DoubleEndedIterator>,
) -> Vec<Option<Record>> {
    let mut next = None;
    let mut ends: Vec<_> = (records.into_iter().rev())
        .map(|record| {
            if record.what.ends_a_stay() {
                next = Some(*record);
            }
            next
        })
        .collect();
    ends.reverse();
    ends
}

#[cfg(test)]
mod tests;
