//! Counts the instructions of a yield under each mode.

use alloc::{boxed::Box, sync::Arc, vec, vec::Vec};
use core::{
    sync::atomic::{AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::delegated::{Agent, AgentPolicy, Enclave, Settings, TaskId, serve};
use axtask::WaitQueue;
use delegated_common::{enclave, is_delegated, join, phase, settings, spawn_agent};
use delegated_fifo::Fifo;
use sched_tests_common::{
    config::SCALE,
    platform::{self, now_ns, println},
    results::Setting,
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
    /// As `Agent`, with time stamps between the parts of a cycle.
    Parts,
}

/// The parts of a cycle: until the agent has the message, until its policy has chosen, and until the
/// chosen task runs.
const PARTS: [&str; 3] = ["message", "policy", "local"];

/// The times and the numbers of the parts that were measured.
struct Stamps {
    began_ns: AtomicU64,
    sums_ns: [AtomicU64; 3],
    counts: [AtomicU64; 3],
}

static STAMPS: Stamps = Stamps {
    began_ns: AtomicU64::new(0),
    sums_ns: [const { AtomicU64::new(0) }; 3],
    counts: [const { AtomicU64::new(0) }; 3],
};

impl Stamps {
    /// Ends a part, and begins the next one.
    fn end(&self, part: usize) {
        let began_ns = self.began_ns.load(Relaxed);
        let end_ns = now_ns();
        if began_ns != 0 {
            self.sums_ns[part].fetch_add(end_ns - began_ns, Relaxed);
            self.counts[part].fetch_add(1, Relaxed);
        }
        self.began_ns.store(now_ns(), Relaxed);
    }

    /// Begins anew: the next part is not measured.
    fn forget(&self) {
        self.began_ns.store(0, Relaxed);
    }

    /// Takes the sum and the number of each part since the last call.
    fn take(&self) -> [(f64, f64); 3] {
        let take = |word: &AtomicU64| word.swap(0, Relaxed) as f64;
        [0, 1, 2].map(|part| (take(&self.sums_ns[part]), take(&self.counts[part])))
    }
}

#[derive(Default)]
struct Group {
    is_stamped: bool,
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
                match self.is_stamped {
                    true => (0..yields).for_each(|_| {
                        axtask::yield_now();
                        STAMPS.end(2);
                    }),
                    false => (0..yields).for_each(|_| axtask::yield_now()),
                }
                STAMPS.forget();
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
    let mut plan = vec![TaskId::from_bits(0); length];
    loop {
        while let Some(message) = agent.read() {
            fifo.told(message);
        }
        let mut chosen = 0;
        for (entry, task) in plan.iter_mut().zip(core::iter::from_fn(|| fifo.choose(0))) {
            *entry = task;
            chosen += 1;
        }
        if chosen > 0 {
            // Each task yields and comes back, so the plan may go round them until it is long enough.
            for at in chosen..length {
                plan[at] = plan[at - chosen];
            }
            agent.plan(0, &plan);
        }
        if agent.wait(axtask::yield_now).is_err() {
            return;
        }
    }
}

/// Serves an enclave as [`serve`] does, with time stamps.
fn serve_stamped(agent: &mut Agent) {
    let mut fifo = Fifo::default();
    loop {
        let first = agent.read();
        STAMPS.end(0);
        let mut next = first;
        while let Some(message) = next {
            fifo.told(message);
            next = agent.read();
        }
        let task = fifo.choose(0);
        STAMPS.end(1);
        match task {
            Some(task) => assert!(agent.run_next(task).is_none(), "it was followed"),
            None => STAMPS.forget(), // the CPU idles
        }
        if agent.wait(axtask::yield_now).is_err() {
            return;
        }
    }
}

/// Returns the cost of a yield among `size` tasks under one mode, and of the parts of a cycle if they
/// are stamped.
fn measure(mode: Mode, size: usize) -> (f64, [f64; 3]) {
    let enclave = (mode != Mode::Plain).then(|| enclave(1, unwatched()));
    let agent = enclave.filter(|_| mode != Mode::Fast).map(|enclave| {
        spawn_agent(enclave, 0, move |agent| match mode {
            Mode::Plan(length) => serve_plans(agent, length),
            Mode::Parts => serve_stamped(agent),
            _ => drop(serve(agent, &mut Fifo::default(), axtask::yield_now)),
        })
    });
    if let (Mode::Fast, Some(enclave)) = (mode, enclave) {
        let before = enclave.set_fast_path(Some(Box::new(Fifo::default())));
        assert!(before.is_ok());
    }
    let delegates = enclave.filter(|_| mode != Mode::Parked);
    let group = Group {
        is_stamped: mode == Mode::Parts,
        ..Group::default()
    };
    let costs = yields(size, delegates, &Arc::new(group));
    if let Some(enclave) = enclave {
        enclave.end();
    }
    if let Some(agent) = agent {
        agent.join();
    }
    axtask::sleep(Duration::from_millis(300)); // until gc has all stacks
    costs
}

/// Returns the parts of a cycle among `size` tasks, without the time stamps.
fn measure_parts(size: usize) -> [f64; 3] {
    let (_, parts) = measure(Mode::Parts, size);
    STAMPS.forget();
    STAMPS.take();
    for _ in 0..1_000 {
        STAMPS.end(0);
    }
    STAMPS.forget();
    let [(sum_ns, count), ..] = STAMPS.take();
    parts.map(|part| part - sum_ns / count)
}

/// Returns the cost of a yield among `size` tasks, and of its parts. Each is the difference of two rounds,
/// which leaves out their begin and end.
fn yields(size: usize, enclave: Option<Enclave>, group: &Arc<Group>) -> (f64, [f64; 3]) {
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
    STAMPS.take();
    let (first, first_parts) = (group.round(size, each), STAMPS.take());
    let (second, second_parts) = (group.round(size, 2 * each), STAMPS.take());
    group.round(size, Group::END);
    let parts = [0, 1, 2].map(|part| {
        let ((first, before), (second, after)) = (first_parts[part], second_parts[part]);
        (second - first) / (after - before)
    });
    let cost = (second as f64 - first as f64) / (size as u64 * each) as f64;
    (cost, parts)
}

/// Runs every phase and prints the figures.
pub fn main() {
    let setting: Setting = setting("cycle");
    print_heading(&setting);
    if is_delegated() && platform::cpus() > 1 {
        crate::remote::measure();
        crate::latency::measure();
        return print_lines(&setting, &[phase("remote", true)]);
    }
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
    let print_row = |name: &str, costs: [f64; SIZES.len()]| {
        let costs = costs.map(|cost| alloc::format!("{cost:>10.1}"));
        println!("{name:10}{}", costs.concat());
    };
    let mut phases = Vec::new();
    for &(name, mode) in modes {
        print_row(name, SIZES.map(|size| measure(mode, size).0));
        phases.push(phase(name, true));
    }
    if is_delegated() {
        println!("\nthe parts of an agent's cycle\n");
        let parts = SIZES.map(measure_parts);
        for (part, name) in PARTS.into_iter().enumerate() {
            print_row(name, parts.map(|parts| parts[part]));
        }
    }
    println!("");
    print_lines(&setting, &phases);
}
