//! Reads files for Perfetto and replays them as Linux means them: which thread has which CPU, and
//! how long each is ready and blocked. The messages are schedlab's.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail, ensure};
use prost::Message;

use proto::{FtraceEvent, ProcessTree, TYPE_COUNTER};

#[path = "../../../tools/schedlab/src/trace/proto.rs"]
mod proto;

/// The names, events and counters of a file, in its order.
#[derive(Debug, Default)]
pub struct Trace {
    /// For each thread's pid its name and the name of its process.
    pub threads: BTreeMap<i32, (String, String)>,
    /// Switches and wakings.
    pub events: Vec<Event>,
    /// Times, and the number of ready tasks from then on.
    pub counts: Vec<(u64, i64)>,
    pub has_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    at: u64,
    cpu: u32,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Switch { prev: i32, state: i64, next: i32 },
    Waking { pid: i32 },
}

/// The times of one thread, from the switches and wakings of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    pub first_ns: u64,
    pub end_ns: u64,
    pub run_ns: u64,
    pub ready_ns: u64,
    pub blocked_ns: u64,
    pub dispatches: u64,
}

/// A thread during the replay.
#[derive(Clone, Copy, Default)]
struct Thread {
    state: State,
    since: u64,
    life: Life,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// Never woken so far, like main and the kernel's threads. Only its time on a CPU is known.
    #[default]
    Unknown,
    Ready,
    Running,
    Blocked,
    Dead,
}

type Threads = BTreeMap<i32, Thread>;

/// The pid that is on a CPU without a task.
const IDLE: i32 = 0;

/// Linux's states of a thread that leaves its CPU.
const READY: i64 = 0;
const SLEEPS: i64 = 1;
const DEAD: i64 = 16;

impl Trace {
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let mut trace = Self::default();
        for packet in proto::Trace::decode(bytes)?.packet {
            if let Some(bundle) = &packet.ftrace_events {
                trace.has_lost |= bundle.lost_events();
                for event in &bundle.event {
                    trace.events.push(Event::of(bundle.cpu(), event)?);
                }
            }
            if let Some(tree) = &packet.process_tree {
                trace.name(tree)?;
            }
            if let Some(event) = &packet.track_event {
                ensure!(event.r#type() == TYPE_COUNTER, "expected a counter");
                let count = (packet.timestamp(), event.counter_value());
                trace.counts.push(count);
            }
        }
        Ok(trace)
    }

    fn name(&mut self, tree: &ProcessTree) -> Result<()> {
        for thread in &tree.threads {
            let mut processes = tree.processes.iter();
            let process = processes.find(|process| process.pid() == thread.tgid());
            let process = process.and_then(|process| process.cmdline.first());
            let process = process.context("no process")?.clone();
            let names = (thread.name().to_owned(), process);
            let before = self.threads.insert(thread.tid(), names);
            ensure!(before.is_none(), "two threads with one pid: {before:?}");
        }
        Ok(())
    }

    /// Returns the events of each CPU.
    fn by_cpu(&self) -> Result<Vec<VecDeque<Event>>> {
        let mut queues: BTreeMap<u32, VecDeque<Event>> = BTreeMap::new();
        for event in &self.events {
            let queue = queues.entry(event.cpu).or_default();
            let last = queue.back().map_or(0, |event| event.at);
            ensure!(event.at >= last, "{event:?}: before {last}");
            queue.push_back(*event);
        }
        Ok(queues.into_values().collect())
    }

    /// Replays the file. Returns the times of each thread that was woken before it ran. The other
    /// threads have only their time on a CPU.
    ///
    /// # Errors
    /// A CPU switches from a thread that it does not run. A thread runs that is not ready, or is
    /// woken and is not blocked. A counter differs from the number of ready threads.
    pub fn lives(&self) -> Result<BTreeMap<i32, Life>> {
        let mut threads = Threads::new();
        let mut cpus: BTreeMap<u32, (i32, u64)> = BTreeMap::new();
        let mut counts = self.counts.iter().peekable();
        let mut ready_before = 0;
        let mut queues = self.by_cpu()?;
        while let Some(event) = next(&mut queues, &threads) {
            let Event { at, cpu, kind } = event;
            match kind {
                Kind::Waking { pid } => {
                    let thread = threads.entry(pid).or_default();
                    match thread.state {
                        State::Unknown => thread.life.first_ns = at,
                        State::Blocked => thread.life.blocked_ns += at - thread.since,
                        state => bail!("{event:?}: it was {state:?}"),
                    }
                    (thread.state, thread.since) = (State::Ready, at);
                }
                Kind::Switch { prev, state, next } => {
                    let (on_cpu, since) = cpus.get(&cpu).copied().unwrap_or((IDLE, at));
                    ensure!(on_cpu == prev, "{event:?}: {on_cpu} was on the CPU");
                    cpus.insert(cpu, (next, at));
                    let thread = threads.entry(prev).or_default();
                    thread.life.run_ns += at - since;
                    if thread.state != State::Unknown {
                        let was = thread.state;
                        ensure!(was == State::Running, "{event:?}: it was {was:?}");
                        thread.state = match state {
                            READY => State::Ready,
                            SLEEPS => State::Blocked,
                            DEAD => State::Dead,
                            _ => bail!("{event:?}: an unknown state"),
                        };
                        (thread.since, thread.life.end_ns) = (at, at);
                    }
                    let thread = threads.entry(next).or_default();
                    if thread.state != State::Unknown {
                        let was = thread.state;
                        ensure!(was == State::Ready, "{event:?}: it was {was:?}");
                        thread.life.ready_ns += at - thread.since;
                        thread.life.dispatches += 1;
                        (thread.state, thread.since) = (State::Running, at);
                    }
                }
            }
            // The counter is compared after the last event of a moment.
            if heads(&queues).all(|next| next.at > at) {
                let is_ready = |thread: &&Thread| thread.state == State::Ready;
                let ready = threads.values().filter(is_ready).count() as i64;
                match counts.next_if(|(when, _)| *when == at) {
                    Some((_, count)) => ensure!(
                        *count == ready,
                        "at {at}: {ready} are ready, the counter says {count}"
                    ),
                    None => ensure!(
                        ready == ready_before,
                        "at {at}: {ready} are ready, no counter says so"
                    ),
                }
                ready_before = ready;
            }
        }
        ensure!(counts.peek().is_none(), "a counter without an event");
        let is_over = |thread: &Thread| matches!(thread.state, State::Dead | State::Unknown);
        let alive = threads.iter().find(|(_, thread)| !is_over(thread));
        ensure!(alive.is_none(), "not at its end: {:?}", alive.unzip().0);
        let busy = cpus.iter().find(|(_, (pid, _))| *pid != IDLE);
        ensure!(busy.is_none(), "a CPU is not left at the end: {busy:?}");
        let life = |(pid, thread): (i32, Thread)| (pid, thread.life);
        Ok(threads.into_iter().map(life).collect())
    }
}

/// Returns the first event of each CPU.
fn heads(queues: &[VecDeque<Event>]) -> impl Iterator<Item = &Event> {
    queues.iter().filter_map(VecDeque::front)
}

/// Takes the next event of all CPUs. If two CPUs have events at the same moment, the one that is
/// possible comes first: a wake on one CPU before the switch to that thread on the other.
fn next(queues: &mut [VecDeque<Event>], threads: &Threads) -> Option<Event> {
    let at = heads(queues).map(|event| event.at).min()?;
    let of_moment = |queue: &&mut VecDeque<Event>| queue.front().is_some_and(|e| e.at == at);
    let fits = |queue: &VecDeque<Event>| {
        queue
            .front()
            .is_some_and(|event| event.is_possible(threads))
    };
    let mut of_moment: Vec<_> = queues.iter_mut().filter(of_moment).collect();
    // If none fits, the error names the first one.
    let chosen = of_moment.iter().position(|queue| fits(queue)).unwrap_or(0);
    of_moment[chosen].pop_front()
}

impl Event {
    fn of(cpu: u32, event: &FtraceEvent) -> Result<Self> {
        let kind = match (&event.sched_switch, &event.sched_waking) {
            (Some(switch), None) => Kind::Switch {
                prev: switch.prev_pid(),
                state: switch.prev_state(),
                next: switch.next_pid(),
            },
            (None, Some(waking)) => Kind::Waking { pid: waking.pid() },
            _ => bail!("neither sched_switch nor sched_waking"),
        };
        let at = event.timestamp();
        Ok(Self { at, cpu, kind })
    }

    /// Returns true if the event is possible while the threads are in these states.
    fn is_possible(&self, threads: &Threads) -> bool {
        let (pid, needed) = match self.kind {
            Kind::Waking { pid } => (pid, State::Blocked),
            Kind::Switch { next, .. } => (next, State::Ready),
        };
        let thread = threads.get(&pid).copied().unwrap_or_default();
        thread.state == State::Unknown || thread.state == needed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(at: u64, cpu: u32, prev: i32, state: i64, next: i32) -> Event {
        let kind = Kind::Switch { prev, state, next };
        Event { at, cpu, kind }
    }

    fn waking(at: u64, cpu: u32, pid: i32) -> Event {
        let kind = Kind::Waking { pid };
        Event { at, cpu, kind }
    }

    /// 7 is woken, runs, blocks, is woken, runs and ends.
    fn good() -> Trace {
        Trace {
            events: vec![
                waking(10, 0, 7),
                switch(12, 0, IDLE, READY, 7),
                switch(20, 0, 7, SLEEPS, IDLE),
                waking(30, 0, 7),
                switch(31, 0, IDLE, READY, 7),
                switch(40, 0, 7, DEAD, IDLE),
            ],
            counts: vec![(10, 1), (12, 0), (30, 1), (31, 0)],
            ..Trace::default()
        }
    }

    #[test]
    fn life_has_no_gap() {
        let expected = Life {
            first_ns: 10,
            end_ns: 40,
            run_ns: 17,
            ready_ns: 3,
            blocked_ns: 10,
            dispatches: 2,
        };
        assert_eq!(good().lives().unwrap()[&7], expected);
    }

    /// CPU 1 wakes a thread at 30, and CPU 0 switches to it at 30.
    #[test]
    fn wake_on_another_cpu_is_first_at_the_same_moment() {
        let mut trace = good();
        trace.events[3].cpu = 1;
        trace.events[4].at = 30;
        trace.counts.truncate(2);
        assert_eq!(trace.lives().unwrap()[&7].ready_ns, 2);
        // It cannot be on two CPUs at once.
        trace.events[1].cpu = 1;
        assert!(trace.lives().is_err());
    }

    #[test]
    fn impossible_events_and_counters_are_refused() {
        type Case = (fn(&mut Trace), &'static str);
        let cases: [Case; 8] = [
            (|t| _ = t.events.remove(2), "it was Running"),
            (|t| _ = t.events.remove(3), "it was Blocked"),
            (|t| _ = t.events.pop(), "not at its end"),
            (|t| t.events.swap(1, 2), "before 20"),
            (|t| _ = t.events.remove(1), "was on the CPU"),
            (|t| t.counts[2].1 = 2, "the counter says 2"),
            (|t| _ = t.counts.remove(1), "no counter says so"),
            (|t| t.counts.push((50, 0)), "without an event"),
        ];
        for (change, expected) in cases {
            let mut trace = good();
            change(&mut trace);
            let error = trace.lives().unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
    }

    /// Reads one packet of each kind with every field, encoded by the field numbers of the
    /// public definitions. A message whose number is wrong is not written again as it was read.
    #[test]
    fn messages_have_the_numbers_of_the_definitions() {
        let bundle = [
            10, 53, 10, 49, 8, 2, 18, 18, 8, 9, 16, 7, 162, 1, 11, 10, 1, 98, 16, 8, 24, 120, 32,
            1, 40, 3, 18, 23, 8, 172, 2, 16, 7, 34, 16, 10, 1, 97, 16, 7, 24, 120, 32, 1, 42, 1,
            98, 48, 8, 56, 120, 24, 1, 80, 1,
        ];
        let tree = [
            10, 20, 18, 16, 10, 5, 8, 5, 26, 1, 112, 18, 7, 8, 7, 18, 1, 97, 24, 5, 80, 1,
        ];
        let descriptor = [
            10, 15, 80, 1, 226, 3, 10, 8, 6, 18, 1, 114, 66, 3, 50, 1, 116,
        ];
        let counter = [10, 14, 64, 172, 2, 80, 1, 90, 7, 72, 4, 88, 6, 240, 1, 2];
        let file: Vec<u8> = [&bundle[..], &tree, &descriptor, &counter].concat();
        let decoded = proto::Trace::decode(&file[..]).unwrap();
        assert_eq!(decoded.encode_to_vec(), file);
        let trace = Trace::of(&file).unwrap();
        assert_eq!(trace.threads[&7], ("a".to_owned(), "p".to_owned()));
        let events = [waking(9, 2, 8), switch(300, 2, 7, SLEEPS, 8)];
        assert_eq!(trace.events, events);
        assert_eq!(trace.counts, [(300, 2)]);
        assert!(trace.has_lost);
        for end in 1..counter.len() {
            assert!(Trace::of(&counter[..end]).is_err(), "{end}");
        }
    }
}
