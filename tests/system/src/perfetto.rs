//! Reads files for Perfetto and replays what they say as Linux means it: which thread has which CPU,
//! and how long each is ready and blocked. The messages are those of schedlab.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail, ensure};
use prost::Message;

use proto::{FtraceEvent, ProcessTree, TYPE_COUNTER};

#[path = "../../../tools/schedlab/src/trace/proto.rs"]
mod proto;

/// A file's switches, wakings and counters, in the order of the file, and its names.
#[derive(Debug, Default)]
pub struct Trace {
    /// Of each pid of a thread: its name, and the name of its process.
    pub threads: BTreeMap<i32, (String, String)>,
    pub events: Vec<Event>,
    /// When, and how many tasks were ready from then on.
    pub counts: Vec<(u64, i64)>,
    pub has_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Switch {
        at: u64,
        cpu: u32,
        prev: i32,
        state: i64,
        next: i32,
    },
    Waking {
        at: u64,
        cpu: u32,
        pid: i32,
    },
}

impl Event {
    const fn at(&self) -> u64 {
        match *self {
            Self::Switch { at, .. } | Self::Waking { at, .. } => at,
        }
    }

    const fn cpu(&self) -> u32 {
        match *self {
            Self::Switch { cpu, .. } | Self::Waking { cpu, .. } => cpu,
        }
    }

    /// Whether it can be next, if the threads are in these states. Of a thread without one,
    /// only its time on a CPU is known.
    fn fits(&self, states: &BTreeMap<i32, (State, u64)>) -> bool {
        let state = |pid| states.get(&pid).map(|(state, _)| *state);
        match *self {
            Self::Waking { pid, .. } => matches!(state(pid), None | Some(State::Blocked)),
            Self::Switch { next, .. } => matches!(state(next), None | Some(State::Ready)),
        }
    }
}

/// One thread, as the switches and wakings of the file have it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Life {
    pub first_ns: u64,
    pub end_ns: u64,
    pub run_ns: u64,
    pub ready_ns: u64,
    pub blocked_ns: u64,
    pub dispatches: u64,
}

/// What the thread with this pid is when its CPU has nothing to do.
const IDLE: i32 = 0;

/// Linux's states of a thread that leaves its CPU.
const READY: i64 = 0;
const SLEEPS: i64 = 1;
const DEAD: i64 = 16;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Ready,
    Running,
    Blocked,
    Dead,
}

impl Trace {
    pub fn of(bytes: &[u8]) -> Result<Self> {
        let mut trace = Self::default();
        for packet in proto::Trace::decode(bytes)?.packet {
            if let Some(bundle) = &packet.ftrace_events {
                trace.has_lost |= bundle.lost_events();
                for event in &bundle.event {
                    trace.events.push(event_of(bundle.cpu(), event)?);
                }
            }
            if let Some(tree) = &packet.process_tree {
                trace.name(tree)?;
            }
            if let Some(event) = &packet.track_event {
                ensure!(event.r#type() == TYPE_COUNTER, "expected a counter");
                trace
                    .counts
                    .push((packet.timestamp(), event.counter_value()));
            }
        }
        Ok(trace)
    }

    fn name(&mut self, tree: &ProcessTree) -> Result<()> {
        for thread in &tree.threads {
            let mut processes = tree.processes.iter();
            let process = processes.find(|process| process.pid() == thread.tgid());
            let process = process.and_then(|process| process.cmdline.first());
            let names = (
                thread.name().to_owned(),
                process.context("no process")?.clone(),
            );
            let before = self.threads.insert(thread.tid(), names);
            ensure!(before.is_none(), "two threads with one pid: {before:?}");
        }
        Ok(())
    }

    /// The events of each CPU.
    fn by_cpu(&self) -> Result<Vec<VecDeque<Event>>> {
        let mut queues: BTreeMap<u32, VecDeque<Event>> = BTreeMap::new();
        for event in &self.events {
            let queue = queues.entry(event.cpu()).or_default();
            let last = queue.back().map_or(0, Event::at);
            ensure!(event.at() >= last, "{event:?}: before {last}");
            queue.push_back(*event);
        }
        Ok(queues.into_values().collect())
    }

    /// What became of each thread that was woken before it ran, which main and the kernel's are
    /// not, and how long the others were on a CPU.
    ///
    /// # Errors
    /// Two threads are on a CPU at once, or nobody; a thread runs that is blocked or has ended;
    /// one is woken that runs or has not been blocked; a counter is not the number of the ready.
    pub fn lives(&self) -> Result<BTreeMap<i32, Life>> {
        let mut lives: BTreeMap<i32, Life> = BTreeMap::new();
        let mut states: BTreeMap<i32, (State, u64)> = BTreeMap::new();
        let mut cpus: BTreeMap<u32, (i32, u64)> = BTreeMap::new();
        let mut counts = self.counts.iter().peekable();
        let mut ready_now = 0;
        let mut queues = self.by_cpu()?;
        while let Some(event) = next(&mut queues, &states) {
            let at = event.at();
            match event {
                Event::Waking { pid, .. } => {
                    match states.get(&pid).copied() {
                        None => lives.entry(pid).or_default().first_ns = at,
                        Some((State::Blocked, since)) => {
                            life(&mut lives, pid)?.blocked_ns += at - since
                        }
                        Some((state, _)) => bail!("{event:?}: it was {state:?}"),
                    }
                    states.insert(pid, (State::Ready, at));
                }
                Event::Switch {
                    cpu,
                    prev,
                    state,
                    next,
                    ..
                } => {
                    let (on_cpu, since) = cpus.get(&cpu).copied().unwrap_or((IDLE, at));
                    ensure!(on_cpu == prev, "{event:?}: {on_cpu} was on the CPU");
                    cpus.insert(cpu, (next, at));
                    lives.entry(prev).or_default().run_ns += at - since;
                    if let Some((was, _)) = states.get(&prev).copied() {
                        ensure!(was == State::Running, "{event:?}: it was {was:?}");
                        let is = match state {
                            READY => State::Ready,
                            SLEEPS => State::Blocked,
                            DEAD => State::Dead,
                            _ => bail!("{event:?}: an unknown state"),
                        };
                        life(&mut lives, prev)?.end_ns = at;
                        states.insert(prev, (is, at));
                    }
                    if let Some((was, since)) = states.get(&next).copied() {
                        ensure!(was == State::Ready, "{event:?}: it was {was:?}");
                        let life = life(&mut lives, next)?;
                        life.ready_ns += at - since;
                        life.dispatches += 1;
                        states.insert(next, (State::Running, at));
                    }
                }
            }
            // Of one moment, only what it ends with counts.
            if heads(&queues).all(|next| next.at() > at) {
                let ready = states.values().filter(|(s, _)| *s == State::Ready).count() as i64;
                if let Some((_, count)) = counts.next_if(|(when, _)| *when == at) {
                    ensure!(
                        *count == ready,
                        "at {at}: {ready} are ready, the counter says {count}"
                    );
                } else {
                    ensure!(
                        ready == ready_now,
                        "at {at}: {ready} are ready, no counter says so"
                    );
                }
                ready_now = ready;
            }
        }
        ensure!(counts.peek().is_none(), "a counter without an event");
        let alive = states.iter().find(|(_, (state, _))| *state != State::Dead);
        ensure!(alive.is_none(), "not at its end: {alive:?}");
        let busy = cpus.iter().find(|(_, (pid, _))| *pid != IDLE);
        ensure!(busy.is_none(), "a CPU is not left at the end: {busy:?}");
        Ok(lives)
    }
}

/// The first event of each CPU.
fn heads(queues: &[VecDeque<Event>]) -> impl Iterator<Item = &Event> {
    queues.iter().filter_map(VecDeque::front)
}

/// The next event of all CPUs. What two CPUs do at the same moment may be in any order that can
/// be, such as that one wakes a thread that gets the other.
fn next(queues: &mut [VecDeque<Event>], states: &BTreeMap<i32, (State, u64)>) -> Option<Event> {
    let at = heads(queues).map(Event::at).min()?;
    let of_moment = |queue: &&mut VecDeque<Event>| queue.front().is_some_and(|e| e.at() == at);
    let fits = |queue: &VecDeque<Event>| queue.front().is_some_and(|event| event.fits(states));
    // If none fits, the first one says why.
    let mut of_moment: Vec<_> = queues.iter_mut().filter(of_moment).collect();
    let chosen = of_moment.iter().position(|queue| fits(queue)).unwrap_or(0);
    of_moment[chosen].pop_front()
}

fn life(lives: &mut BTreeMap<i32, Life>, pid: i32) -> Result<&mut Life> {
    lives
        .get_mut(&pid)
        .with_context(|| format!("pid {pid} was never woken"))
}

fn event_of(cpu: u32, event: &FtraceEvent) -> Result<Event> {
    let at = event.timestamp();
    Ok(match (&event.sched_switch, &event.sched_waking) {
        (Some(switch), None) => Event::Switch {
            at,
            cpu,
            prev: switch.prev_pid(),
            state: switch.prev_state(),
            next: switch.next_pid(),
        },
        (None, Some(waking)) => Event::Waking {
            at,
            cpu,
            pid: waking.pid(),
        },
        _ => bail!("neither sched_switch nor sched_waking"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 7 is woken, runs, blocks, is woken, runs and ends.
    fn good() -> Trace {
        let switch = |at, prev, state, next| Event::Switch {
            at,
            cpu: 0,
            prev,
            state,
            next,
        };
        let waking = |at, cpu| Event::Waking { at, cpu, pid: 7 };
        Trace {
            events: vec![
                waking(10, 0),
                switch(12, IDLE, READY, 7),
                switch(20, 7, SLEEPS, IDLE),
                waking(30, 0),
                switch(31, IDLE, READY, 7),
                switch(40, 7, DEAD, IDLE),
            ],
            counts: vec![(10, 1), (12, 0), (30, 1), (31, 0)],
            ..Trace::default()
        }
    }

    fn fails(change: impl FnOnce(&mut Trace)) -> String {
        let mut trace = good();
        change(&mut trace);
        trace.lives().unwrap_err().to_string()
    }

    #[test]
    fn a_life_is_without_a_gap() {
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

    /// CPU 0 is given at 30 to whom CPU 1 wakes at 30.
    #[test]
    fn of_one_moment_a_wake_on_another_cpu_is_first() {
        let mut trace = good();
        trace.events[4] = Event::Switch {
            at: 30,
            cpu: 0,
            prev: IDLE,
            state: READY,
            next: 7,
        };
        let Event::Waking { cpu, .. } = &mut trace.events[3] else {
            panic!("it is woken");
        };
        *cpu = 1;
        trace.counts.truncate(2);
        assert_eq!(trace.lives().unwrap()[&7].ready_ns, 2);
        // On two CPUs at once it cannot be.
        let Event::Switch { cpu, .. } = &mut trace.events[1] else {
            panic!("it runs");
        };
        *cpu = 1;
        assert!(trace.lives().is_err());
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(
            fails(|t| {
                t.events.remove(2);
            })
            .contains("it was Running")
        );
        assert!(
            fails(|t| {
                t.events.remove(3);
            })
            .contains("it was Blocked")
        );
        assert!(
            fails(|t| {
                t.events.pop();
            })
            .contains("not at its end")
        );
        assert!(fails(|t| t.events.swap(1, 2)).contains("before 20"));
        let at_once = |t: &mut Trace| {
            t.events.remove(1);
        };
        assert!(fails(at_once).contains("was on the CPU"));
        assert!(fails(|t| t.counts[2].1 = 2).contains("the counter says 2"));
        assert!(
            fails(|t| {
                t.counts.remove(1);
            })
            .contains("no counter says so")
        );
        assert!(fails(|t| t.counts.push((50, 0))).contains("without an event"));
    }

    /// One packet of each kind with every field, encoded by the field numbers of the public
    /// definitions: a message whose number is wrong is not written again as it was read.
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
        assert_eq!(
            proto::Trace::decode(&file[..]).unwrap().encode_to_vec(),
            file
        );
        let trace = Trace::of(&file).unwrap();
        assert_eq!(trace.threads[&7], ("a".to_owned(), "p".to_owned()));
        let (cpu, pid) = (2, 8);
        let switch = Event::Switch {
            at: 300,
            cpu,
            prev: 7,
            state: SLEEPS,
            next: 8,
        };
        assert_eq!(trace.events, [Event::Waking { at: 9, cpu, pid }, switch]);
        assert_eq!(trace.counts, [(300, 2)]);
        assert!(trace.has_lost);
        for end in 1..counter.len() {
            assert!(Trace::of(&counter[..end]).is_err(), "{end}");
        }
    }
}
