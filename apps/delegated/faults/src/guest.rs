//! The faults, and the workers that must survive them.

extern crate alloc;

use alloc::{string::String, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::delegated::{
    Agent, AgentPolicy, Commit, Enclave, End, Kind, Kinds, Message, Settings, TaskId, decide, serve,
};
use axtask::AxTaskRef;
use delegated_common::{all_cpus, begin, enclave, join, phase, settings, spawn_agent, spawn_on};
use delegated_fifo::Fifo;
use sched_tests_common::{
    config::SCALE,
    platform::{self, now_ns, println},
    results::Phase,
    runner::print_lines,
    work,
};

const WORKERS: usize = 12;
const ROUNDS: u64 = 60;
const TICK_NS: u64 = 10_000_000;
const HAND_OVERS: u64 = 1_000;

/// First in, first out, without the task that came first.
#[derive(Default)]
struct Starving {
    fifo: Fifo,
    first: Option<TaskId>,
}

impl AgentPolicy for Starving {
    fn told(&mut self, message: Message) {
        if !message.kind().is_ready() || message.task() != *self.first.get_or_insert(message.task())
        {
            self.fifo.told(message);
        }
    }

    fn choose(&mut self, cpu: usize) -> Option<TaskId> {
        self.fifo.choose(cpu)
    }
}

/// The fault of an agent, with its watchdog on or off.
struct Fault {
    name: &'static str,
    serve: fn(&mut Agent),
    ring: usize,
    has_limit: bool,
    wakes: Kinds,
    ends: End,
}

const fn fault(name: &'static str, serve: fn(&mut Agent), has_limit: bool, ends: End) -> Fault {
    Fault {
        name,
        serve,
        ring: 256,
        has_limit,
        wakes: Kinds::NONE,
        ends,
    }
}

fn honest(agent: &mut Agent) {
    serve(agent, &mut Fifo::default(), axtask::yield_now);
}

fn ends(agent: &mut Agent) {
    while let Some(message) = agent.read() {
        if message.kind() == Kind::NEW {
            return;
        }
    }
    let _ = agent.wait(axtask::yield_now);
}

fn hangs(agent: &mut Agent) {
    let _ = agent.wait(axtask::yield_now);
    while agent.check().is_ok() {
        core::hint::spin_loop();
    }
}

fn sleeps(agent: &mut Agent) {
    serve(agent, &mut Fifo::default(), || {
        axtask::yield_now();
        axtask::sleep(Duration::from_millis(1));
    });
}

fn sleeps_for_ever(agent: &mut Agent) {
    while agent.check().is_ok() {
        axtask::sleep(Duration::from_millis(50));
    }
}

/// It fills the rings of all CPUs with decisions about all tasks.
fn floods(agent: &mut Agent) {
    let mut fifo = Fifo::default();
    let mut seen = Vec::new();
    loop {
        while let Some(message) = agent.read() {
            if message.kind() != Kind::REDISCOVER && !seen.contains(&message.task()) {
                seen.push(message.task());
            }
            fifo.told(message);
        }
        let cpus = (0..64).filter(|cpu| agent.cpus() >> cpu & 1 != 0);
        for cpu in cpus.collect::<Vec<_>>() {
            // Not until it is full: another CPU empties it meanwhile.
            for _ in 0..8 {
                agent.plan(cpu, &seen);
            }
        }
        decide(agent, &mut fifo);
        if agent.wait(axtask::yield_now).is_err() {
            return;
        }
    }
}

fn starves(agent: &mut Agent) {
    serve(agent, &mut Starving::default(), axtask::yield_now);
}

/// It commits dead, foreign, stale, blocked and forbidden tasks at random, and serves beside that.
fn lies(agent: &mut Agent) {
    let mut fifo = Fifo::default();
    let mut seen = Vec::new();
    let mut x = 1;
    loop {
        while let Some(message) = agent.read() {
            if message.kind() != Kind::REDISCOVER && seen.len() < 64 {
                seen.push(message.task());
            }
            fifo.told(message);
        }
        for _ in 0..4 {
            x = work::spin(x, 7);
            let task = match x % 3 {
                _ if seen.is_empty() => TaskId::from_bits(x as u32),
                0 => TaskId::from_bits(x as u32),
                _ => seen[x as usize % seen.len()],
            };
            let commit = Commit {
                seq: (x >> 8 & 1 != 0).then_some((x >> 16) as u32),
                unless_told: x >> 9 & 1 != 0,
                preempts: x >> 10 & 1 != 0,
                ..Commit::new(task, (x >> 12) as usize % 9)
            };
            match agent.commit(commit) {
                Ok(ticket) if x >> 11 & 1 != 0 => drop(agent.withdraw(ticket)),
                // The task that it replaces is in the queue, too.
                _ if x >> 13 & 7 == 0 => drop(agent.run_next(task)),
                _ => {}
            }
        }
        decide(agent, &mut fifo);
        if agent.wait(axtask::yield_now).is_err() {
            return;
        }
    }
}

fn is_blind(agent: &mut Agent) {
    while agent.wait(axtask::yield_now).is_ok() {}
}

/// A worker: it computes, yields, and now and then sleeps. Returns its longest yield.
fn work_in(enclave: Enclave, rounds: u64) -> u64 {
    let begin_ns = now_ns();
    join(enclave);
    let mut longest_ns = now_ns() - begin_ns;
    for round in 1..=rounds {
        let _ = work::spin(round, 2_000);
        let begin_ns = now_ns();
        axtask::yield_now();
        longest_ns = longest_ns.max(now_ns() - begin_ns);
        if round % 16 == 0 {
            axtask::sleep(Duration::from_millis(1));
        }
    }
    longest_ns
}

/// The workers of a phase.
struct Crew {
    rounds_done: Arc<AtomicU64>,
    longest_ns: Arc<AtomicU64>,
    tasks: Vec<AxTaskRef>,
}

impl Crew {
    fn spawn(enclave: Enclave, rounds: u64) -> Self {
        let (rounds_done, longest_ns) = (Arc::default(), Arc::default());
        let tasks = (0..WORKERS).map(|n| {
            let (done, longest): (Arc<AtomicU64>, Arc<AtomicU64>) =
                (Arc::clone(&rounds_done), Arc::clone(&longest_ns));
            let body = move || {
                longest.fetch_max(work_in(enclave, rounds), Relaxed);
                done.fetch_add(rounds, Relaxed);
            };
            axtask::spawn_raw(body, alloc::format!("worker{n}"), 32 * 1024)
        });
        let tasks = tasks.collect();
        Self {
            rounds_done,
            longest_ns,
            tasks,
        }
    }

    /// Waits for all. Returns the rounds that were done, and the longest wait.
    fn join(self) -> (u64, u64) {
        for task in self.tasks {
            task.join();
        }
        (
            self.rounds_done.load(Relaxed),
            self.longest_ns.load(Relaxed),
        )
    }
}

fn run_fault(fault: &Fault) -> Phase {
    let defaults = settings();
    let settings = Settings {
        ring: fault.ring,
        limit: defaults.limit.filter(|_| fault.has_limit),
        wakes: fault.wakes,
        ..defaults
    };
    let enclave = enclave(all_cpus(), settings);
    let agent = spawn_agent(enclave, 0, fault.serve);
    let rounds = (ROUNDS / SCALE).max(16);
    let crew = Crew::spawn(enclave, rounds);
    let (done, longest_ns) = crew.join();
    finish(fault, enclave, [agent].into(), done, rounds, longest_ns)
}

/// 1,000 agents replace each other while the workers yield.
fn run_hand_overs(fault: &Fault) -> Phase {
    let settings = Settings {
        limit: None,
        ..settings()
    };
    let enclave = enclave(all_cpus(), settings);
    let first = spawn_agent(enclave, 0, honest);
    let rounds = (4 * ROUNDS / SCALE).max(16);
    let crew = Crew::spawn(enclave, rounds);
    let times = HAND_OVERS / SCALE;
    let replaced = spawn_on(0, "replaces", move || {
        for n in 0..times {
            let cpu = n as usize % platform::cpus();
            drop(spawn_agent(enclave, cpu, honest));
            axtask::sleep(Duration::from_millis(1));
        }
    });
    let (done, longest_ns) = crew.join();
    replaced.join();
    finish(fault, enclave, [first].into(), done, rounds, longest_ns)
}

fn finish(
    fault: &Fault,
    enclave: Enclave,
    agents: Vec<AxTaskRef>,
    done: u64,
    rounds: u64,
    longest_ns: u64,
) -> Phase {
    enclave.end();
    for agent in agents {
        agent.join();
    }
    let report = enclave.report().expect("it has ended");
    let expected = WORKERS as u64 * rounds;
    // The limit and a tick, and the time from the end of that wait to the reading of the clock.
    let bound_ns = (10 + 1) * TICK_NS + 1_000_000;
    let is_in_time = !fault.has_limit || platform::TIMING != "icount" || longest_ns <= bound_ns;
    let pass = done == expected && report.end == fault.ends && is_in_time;
    let longest = String::from(if is_in_time { "" } else { " (too long)" });
    println!(
        "{:14}{done} of {expected} rounds, longest wait {:.1} ms{longest}: {report}",
        fault.name,
        longest_ns as f64 / 1e6,
    );
    phase(fault.name, pass)
}

pub fn main() {
    let Some(setting) = begin("faults") else {
        return;
    };
    let faults = [
        fault("honest", honest, false, End::Asked),
        fault("ends", ends, false, End::AgentLeft),
        fault("hangs", hangs, true, End::Watchdog),
        fault("sleeps", sleeps, false, End::Asked),
        fault("sleeps-long", sleeps_for_ever, true, End::Watchdog),
        fault("floods", floods, false, End::Asked),
        fault("starves", starves, true, End::Watchdog),
        fault("lies", lies, false, End::Asked),
        fault("blind", is_blind, true, End::Watchdog),
        Fault {
            ring: 1,
            ..fault("ring-of-1", honest, false, End::Asked)
        },
        Fault {
            wakes: Kinds::READY,
            ..fault("woken", honest, false, End::Asked)
        },
    ];
    let mut phases: Vec<_> = faults.iter().map(run_fault).collect();
    phases.push(run_hand_overs(&fault(
        "replaced",
        honest,
        false,
        End::Asked,
    )));
    println!("");
    print_lines(&setting, &phases);
}
