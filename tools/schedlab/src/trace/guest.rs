//! The console of a guest as [`Timeline`]s.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use sched_tests_results::{
    Kind, ResultLine,
    events::{self, EventsLine, FIRST_TASK, GC, IDLE, Log, MAIN, Record, What},
};

use super::timeline::{Held, Left, Stay, Timeline, Wake, threads};
use crate::record::{self, Phase};

/// Returns the phases of a console of `make run TRACE=events`.
pub fn timelines(console: &str) -> Result<Vec<(Phase, Timeline)>> {
    let (figures, others) = record::separate(console);
    let mut logs: BTreeMap<(String, u32), Vec<EventsLine>> = BTreeMap::new();
    for (number, kind, json) in others {
        if kind == Kind::Events {
            let line = EventsLine::from_json(json).with_context(|| format!("{number}"))?;
            let log = (line.context.phase.clone(), line.cpu);
            logs.entry(log).or_default().push(line);
        }
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

/// The state of a task while its records are read.
#[derive(Clone, Copy, Default)]
struct Seen {
    is_let_in: bool,
    is_done: bool,
    is_submitted: bool,
    run_ticks: u64,
    /// The time at which it blocked at the gate. It has no meaning if the task was woken before it
    /// had left its CPU.
    blocked_since: Option<u64>,
}

struct Builder<'a> {
    phase: &'a Phase,
    records: Vec<Vec<Record>>,
    hz: u64,
    tasks: Vec<Seen>,
    /// The index of each CPU's last stay in the timeline.
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
        // On one CPU tasks are let in as they begin, and there is no record of that.
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
        let tasks = self.phase.tasks.iter();
        let tasks = tasks.map(|task| (task.task.clone(), task.submit_ns));
        self.timeline = Timeline {
            name: match several {
                true => format!("{} under {}, {}", name.app, name.sched, name.phase),
                false => format!("{} under {}", name.app, name.sched),
            },
            start_ns: logs[0].head.start_ns,
            end_ns: 0,
            cpus: logs.len() as u32,
            threads: threads(logs.len(), &OF_CPU, tasks),
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

    fn of_cpu(cpu: usize, which: usize) -> usize {
        1 + cpu * OF_CPU.len() + which
    }

    fn ns(&self, ticks: u64) -> u64 {
        (u128::from(ticks) * 1_000_000_000 / u128::from(self.hz)) as u64
    }

    /// Returns the task of a record; `None` if it is not about a task.
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

    /// Returns the thread of a record. It is `rest` while the task is not in an account.
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

    /// Takes a stay of a task that is not let in yet. The task is not ready then, nor while it is
    /// blocked afterwards.
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

    /// Adds a stay. Consecutive pieces of a thread without a meter are one stay, as the thread did
    /// not leave between them.
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

    /// Adds a wake-up, or the submission of a task: its time is that of the `SCHED-TASK` line, a
    /// moment before the task is spawned. At a gate a task counts as ready.
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

    /// Cuts everything at the end, when the work of the last task was done or a log was full.
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
        // Another CPU may have woken a task before it had left its CPU: it is woken when it has.
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

    /// Refuses a task whose stays do not add up to the time in its `SCHED-TASK` line. Both are the
    /// same ticks, converted as a sum, so they are equal at any rate of the clock.
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
