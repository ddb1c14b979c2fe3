//! Counts the instructions of a yield under each mode.

use alloc::{boxed::Box, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::delegated::{Agent, AgentPolicy, Enclave, Settings, serve};
use axtask::WaitQueue;
use delegated_common::{enclave, is_delegated, join, settings, spawn_agent};
use delegated_fifo::Fifo;
use sched_tests_common::{
    config::SCALE,
    platform::{self, now_ns, println},
    results::{Phase, Setting},
    runner::{print_heading, print_lines, setting},
};

/// The numbers of tasks.
const SIZES: [usize; 4] = [1, 4, 64, 1024];
/// The yields of all tasks together that the second round has more than the first.
const YIELDS: u64 = 1 << 16;
const STACK_BYTES: usize = 16 * 1024;

/// How the tasks are decided on.
#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Plain,
    Parked,
    Agent,
    Plan(usize),
    Fast,
}

#[derive(Default)]
struct Group {
    go: WaitQueue,
    round: AtomicU64,
    yields_each: AtomicU64,
    absent: AtomicU64,
    met: WaitQueue,
    begin_ns: AtomicU64,
    end_ns: AtomicU64,
}

impl Group {
    const END: u64 = u64::MAX;

    /// Makes all tasks yield so often. Returns how long that took.
    fn round(&self, tasks: usize, yields_each: u64) -> u64 {
        platform::await_tick_phase();
        self.absent.store(tasks as u64, Relaxed);
        self.yields_each.store(yields_each, Relaxed);
        self.begin_ns.store(u64::MAX, Relaxed);
        self.end_ns.store(0, Relaxed);
        self.round.fetch_add(1, Release);
        self.go.notify_all(false);
        self.met.wait_until(|| self.absent.load(Acquire) == 0);
        self.end_ns.load(Relaxed) - self.begin_ns.load(Relaxed)
    }

    fn task(&self) {
        for round in 1.. {
            self.go.wait_until(|| self.round.load(Acquire) >= round);
            let yields = self.yields_each.load(Relaxed);
            if yields != Self::END {
                self.begin_ns.fetch_min(now_ns(), Relaxed);
                for _ in 0..yields {
                    axtask::yield_now();
                }
                self.end_ns.fetch_max(now_ns(), Relaxed);
            }
            if self.absent.fetch_sub(1, AcqRel) == 1 {
                self.met.notify_one(false);
            }
            if yields == Self::END {
                return;
            }
        }
    }
}

fn unwatched() -> Settings {
    Settings {
        ring: 1024,
        limit: None,
        ..settings()
    }
}

/// Serves an enclave with plans of `length` decisions.
fn serve_plans(agent: &mut Agent, length: usize) {
    let mut fifo = Fifo::default();
    let mut plan = Vec::with_capacity(length);
    loop {
        while let Some(message) = agent.read() {
            fifo.told(message);
        }
        plan.clear();
        while plan.len() < length
            && let Some(task) = fifo.choose(0)
        {
            plan.push(task);
        }
        // Each task yields and comes back, so the plan may go round them until it is long enough.
        let tasks = plan.len();
        for at in tasks..if tasks == 0 { 0 } else { length } {
            plan.push(plan[at % tasks]);
        }
        agent.plan(0, &plan);
        if agent.wait(axtask::yield_now).is_err() {
            return;
        }
    }
}

/// Measures every size under one mode. Returns the cost of a yield by size.
fn measure(mode: Mode, sizes: &[usize]) -> Vec<f64> {
    let mut costs = Vec::new();
    for &size in sizes {
        let enclave = (mode != Mode::Plain).then(|| enclave(1, unwatched()));
        let agent = enclave.filter(|_| mode != Mode::Fast).map(|enclave| {
            spawn_agent(enclave, 0, move |agent| match mode {
                Mode::Plan(length) => serve_plans(agent, length),
                _ => drop(serve(agent, &mut Fifo::default(), axtask::yield_now)),
            })
        });
        if let (Mode::Fast, Some(enclave)) = (mode, enclave) {
            enclave
                .set_fast_path(Some(Box::new(Fifo::default())))
                .ok()
                .unwrap();
        }
        let delegates = enclave.filter(|_| mode != Mode::Parked);
        costs.push(yields(size, delegates, &Arc::new(Group::default())));
        if let Some(enclave) = enclave {
            enclave.end();
        }
        if let Some(agent) = agent {
            agent.join();
        }
        axtask::sleep(Duration::from_millis(300)); // until gc has all stacks
    }
    costs
}

/// Returns the cost of a yield among `size` tasks.
fn yields(size: usize, enclave: Option<Enclave>, group: &Arc<Group>) -> f64 {
    for _ in 0..size {
        let group = group.clone();
        let body = move || {
            if let Some(enclave) = enclave {
                join(enclave).expect("there is a slot");
            }
            group.task();
        };
        axtask::spawn_raw(body, "".into(), STACK_BYTES);
    }
    let each = (YIELDS / size as u64 / SCALE).max(1);
    group.round(size, 0);
    let first = group.round(size, each);
    let second = group.round(size, 2 * each);
    group.round(size, Group::END);
    (second as f64 - first as f64) / (size as u64 * each) as f64
}

/// Runs every phase and prints the figures.
pub fn main() {
    let setting: Setting = setting("cycle");
    print_heading(&setting);
    let modes = [
        ("plain", Mode::Plain),
        ("parked", Mode::Parked),
        ("agent", Mode::Agent),
        ("plan10", Mode::Plan(10)),
        ("plan32", Mode::Plan(32)),
        ("fast", Mode::Fast),
    ];
    let modes = if is_delegated() {
        &modes[..]
    } else {
        &modes[..1]
    };
    println!("instructions per yield, by the number of tasks\n");
    println!("{:10}{:>10}{:>10}{:>10}{:>10}", "phase", 1, 4, 64, 1024);
    let mut phases = Vec::new();
    for &(name, mode) in modes {
        let costs = measure(mode, &SIZES);
        let figures: Vec<_> = costs
            .iter()
            .map(|cost| alloc::format!("{cost:>10.1}"))
            .collect();
        println!("{name:10}{}", figures.concat());
        phases.push(Phase {
            name,
            pass: true,
            ..Phase::default()
        });
    }
    println!("");
    print_lines(&setting, &phases);
}
