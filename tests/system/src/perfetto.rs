//! A reader of files for Perfetto that shares nothing with their writer: it walks the wire format
//! of protobuf, by the field numbers of Perfetto's public definitions (`trace_packet.proto`,
//! `ftrace_event.proto`, `sched.proto`, `process_tree.proto`, `track_event.proto`), and replays
//! what it finds as Linux means it.

use std::collections::{BTreeMap, VecDeque};

use anyhow::{Context, Result, bail, ensure};

/// A file's switches, wakings and counters, in the order of the file, and its names.
#[derive(Debug, Default)]
pub struct Trace {
    /// Of each pid of a thread: its name, and the name of its process.
    pub threads: BTreeMap<u64, (String, String)>,
    pub events: Vec<Event>,
    /// When, and how many tasks were ready from then on.
    pub counts: Vec<(u64, u64)>,
    pub has_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    Switch {
        at: u64,
        cpu: u64,
        prev: u64,
        state: u64,
        next: u64,
    },
    Waking {
        at: u64,
        cpu: u64,
        pid: u64,
    },
}

impl Event {
    const fn at(&self) -> u64 {
        match *self {
            Self::Switch { at, .. } | Self::Waking { at, .. } => at,
        }
    }

    const fn cpu(&self) -> u64 {
        match *self {
            Self::Switch { cpu, .. } | Self::Waking { cpu, .. } => cpu,
        }
    }

    /// Whether it can be next, if the threads are in these states. Of a thread without one,
    /// only its time on a CPU is known.
    fn fits(&self, states: &BTreeMap<u64, (State, u64)>) -> bool {
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
const IDLE: u64 = 0;

/// Linux's states of a thread that leaves its CPU.
const READY: u64 = 0;
const SLEEPS: u64 = 1;
const DEAD: u64 = 16;

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
        for (field, packet) in fields(bytes)? {
            ensure!(field == 1, "expected packets, found field {field}");
            trace.add(packet.message()?)?;
        }
        Ok(trace)
    }

    fn add(&mut self, packet: &[u8]) -> Result<()> {
        if let Some(bundle) = one(packet, 1)? {
            let bundle = bundle.message()?;
            let cpu = number(bundle, 1)?;
            self.has_lost |= number(bundle, 3)? != 0;
            for event in all(bundle, 2)? {
                self.events.push(event_of(cpu, event.message()?)?);
            }
        }
        if let Some(tree) = one(packet, 2)? {
            self.name(tree.message()?)?;
        }
        if let Some(event) = one(packet, 11)? {
            let event = event.message()?;
            ensure!(number(event, 9)? == 4, "expected a counter");
            self.counts.push((number(packet, 8)?, number(event, 30)?));
        }
        Ok(())
    }

    fn name(&mut self, tree: &[u8]) -> Result<()> {
        let mut processes = BTreeMap::new();
        for process in all(tree, 1)? {
            let process = process.message()?;
            processes.insert(number(process, 1)?, text(process, 3)?);
        }
        for thread in all(tree, 2)? {
            let thread = thread.message()?;
            let process = processes.get(&number(thread, 3)?).context("no process")?;
            let names = (text(thread, 2)?, process.clone());
            let before = self.threads.insert(number(thread, 1)?, names);
            ensure!(before.is_none(), "two threads with one pid: {before:?}");
        }
        Ok(())
    }

    /// The events of each CPU.
    fn by_cpu(&self) -> Result<Vec<VecDeque<Event>>> {
        let mut queues: BTreeMap<u64, VecDeque<Event>> = BTreeMap::new();
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
    pub fn lives(&self) -> Result<BTreeMap<u64, Life>> {
        let mut lives: BTreeMap<u64, Life> = BTreeMap::new();
        let mut states: BTreeMap<u64, (State, u64)> = BTreeMap::new();
        let mut cpus: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
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
                let ready = states.values().filter(|(s, _)| *s == State::Ready).count() as u64;
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
fn next(queues: &mut [VecDeque<Event>], states: &BTreeMap<u64, (State, u64)>) -> Option<Event> {
    let at = heads(queues).map(Event::at).min()?;
    let of_moment = |queue: &&mut VecDeque<Event>| queue.front().is_some_and(|e| e.at() == at);
    let fits = |queue: &VecDeque<Event>| queue.front().is_some_and(|event| event.fits(states));
    // If none fits, the first one says why.
    let mut of_moment: Vec<_> = queues.iter_mut().filter(of_moment).collect();
    let chosen = of_moment.iter().position(|queue| fits(queue)).unwrap_or(0);
    of_moment[chosen].pop_front()
}

fn life(lives: &mut BTreeMap<u64, Life>, pid: u64) -> Result<&mut Life> {
    lives
        .get_mut(&pid)
        .with_context(|| format!("pid {pid} was never woken"))
}

fn event_of(cpu: u64, event: &[u8]) -> Result<Event> {
    let at = number(event, 1)?;
    Ok(match (one(event, 4)?, one(event, 20)?) {
        (Some(switch), None) => {
            let switch = switch.message()?;
            Event::Switch {
                at,
                cpu,
                prev: number(switch, 2)?,
                state: number(switch, 4)?,
                next: number(switch, 6)?,
            }
        }
        (None, Some(waking)) => Event::Waking {
            at,
            cpu,
            pid: number(waking.message()?, 2)?,
        },
        _ => bail!("neither sched_switch nor sched_waking"),
    })
}

// --- The wire format -------------------------------------------------------------

#[derive(Clone, Copy, Debug)]
enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    fn message(self) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            Self::Number(number) => bail!("expected a message, found {number}"),
        }
    }
}

fn fields(mut bytes: &[u8]) -> Result<Vec<(u64, Value<'_>)>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut bytes)?),
            2 => {
                let length = varint(&mut bytes)? as usize;
                let (value, rest) = bytes
                    .split_at_checked(length)
                    .context("a message was cut")?;
                bytes = rest;
                Value::Bytes(value)
            }
            other => bail!("expected wire type 0 or 2, found {other}"),
        };
        fields.push((key >> 3, value));
    }
    Ok(fields)
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first().context("a number was cut")?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Ok(number);
        }
    }
    bail!("a number of more than 64 bits")
}

fn all(message: &[u8], field: u64) -> Result<Vec<Value<'_>>> {
    let of_field = fields(message)?.into_iter().filter(|(f, _)| *f == field);
    Ok(of_field.map(|(_, value)| value).collect())
}

fn one(message: &[u8], field: u64) -> Result<Option<Value<'_>>> {
    let all = all(message, field)?;
    ensure!(all.len() < 2, "field {field} twice");
    Ok(all.first().copied())
}

/// 0 if it is not there.
fn number(message: &[u8], field: u64) -> Result<u64> {
    match one(message, field)? {
        None => Ok(0),
        Some(Value::Number(number)) => Ok(number),
        Some(Value::Bytes(_)) => bail!("expected a number in field {field}"),
    }
}

fn text(message: &[u8], field: u64) -> Result<String> {
    let value = one(message, field)?.with_context(|| format!("no field {field}"))?;
    Ok(String::from_utf8(value.message()?.to_vec())?)
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

    #[test]
    fn a_file_that_was_cut_is_refused() {
        // A packet with a counter: at 300, 2 are ready.
        let file = [10, 10, 64, 172, 2, 90, 5, 72, 4, 240, 1, 2];
        assert_eq!(Trace::of(&file).unwrap().counts, [(300, 2)]);
        for end in 1..file.len() {
            assert!(Trace::of(&file[..end]).is_err(), "{end}");
        }
    }
}
