//! The measurement, and what is printed of it.

use alloc::{format, sync::Arc, vec, vec::Vec};
use core::{
    future::poll_fn,
    hint::spin_loop,
    sync::atomic::{AtomicU64, Ordering::*},
    task::{Context, Poll, Waker},
    time::Duration,
};

use axhal::percpu::this_cpu_id;
use axsched_ext::balance::SMP_STATE;
use axtask::{AxTaskRef, TaskState, future::block_on};
use kernel_guard::NoPreempt;
use sched_tests_common::{
    config::SCALE,
    latencies::Latencies,
    platform::{self, now_ns, print, println},
    results::{Phase, ResultLine, Setting, context},
    runner::{print_heading, print_lines, setting},
};
use sched_tests_results::WakeLine;
use spin::Once;

use crate::histogram::histogram;

/// The number of wakes of a phase that count.
const WAKES: u64 = 2_000;
/// The number of wakes before those, which do not count.
const NOT_COUNTED: u64 = 20;
/// A timer tick, and how long the waker keeps its CPU if the sleeper does not run.
const TICK_NS: u64 = 10_000_000;
/// The least time between two wakes. It may be a tick longer.
const PAUSE_NS: u64 = 1_000_000;
const STACK_BYTES: usize = 16 * 1024;
/// The pause between two checks whether the sleeper is reclaimed.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Runs the phases that the build has and prints the results.
pub fn main() {
    let setting = setting("wake");
    print_heading(&setting);
    if setting.smp == 1 {
        println!("No CPU idles beside the only one: make run A=wake SMP=2\n");
        return print_lines(&setting, &[phase("before", false)]);
    }
    let mut phases = vec![run_phase("before")];
    if platform::IS_BALANCED {
        platform::connect_cpus();
        phases.push(run_phase("after"));
    }
    print_table(&phases);
    println!("");
    for (phase, kinds) in &phases {
        for kind in kinds {
            println!("{}", kind.line(&setting, phase.name).to_line());
        }
    }
    let phases: Vec<_> = phases.into_iter().map(|(phase, _)| phase).collect();
    print_lines(&setting, &phases);
}

/// The state that the waker and the sleeper share.
///
/// The sleeper waits all its life in one future. That future's waker wakes it, and `axtask` makes
/// exactly one wake of that. A wait queue may make two: it wakes with its list locked, and a task
/// that comes that fast waits once more, for the list.
#[derive(Default)]
struct Bed {
    waker: Once<Waker>,
    /// The number of the current wake, from 1.
    wake: AtomicU64,
    /// The last wake after which the sleeper has run.
    ran: AtomicU64,
    /// When it ran after that wake, since boot.
    ran_at_ns: AtomicU64,
    /// The last wake of which the waker knows into which CPU's queue the sleeper was put.
    known: AtomicU64,
}

impl Bed {
    /// The number of the wake that makes the sleeper end.
    const END: u64 = u64::MAX;

    /// Notes that the sleeper runs, in each poll of its future.
    fn sleep(&self, context: &Context) -> Poll<()> {
        let at_ns = now_ns();
        self.waker.call_once(|| context.waker().clone());
        let wake = self.wake.load(Acquire);
        if self.ran.load(Relaxed) != wake {
            self.ran_at_ns.store(at_ns, Relaxed);
            self.ran.store(wake, Release);
            // A woken task yields once more before it blocks, which puts it into the queue of its
            // own CPU.
            while self.known.load(Acquire) != wake {
                spin_loop();
            }
        }
        match wake {
            Self::END => Poll::Ready(()),
            _ => Poll::Pending,
        }
    }

    /// Wakes the sleeper, which is blocked. Returns when that was, and true if the sleeper went
    /// into this CPU's queue.
    fn wake(&self, wake: u64, sleeper: &AxTaskRef) -> (u64, bool) {
        let waker = self.waker.get().expect("it has run, as it is blocked");
        let _here_until_it_is_done = NoPreempt::new();
        self.wake.store(wake, Release);
        let at_ns = now_ns();
        waker.wake_by_ref();
        let is_here = sleeper.cpu_id() as usize == this_cpu_id();
        self.known.store(wake, Release);
        (at_ns, is_here)
    }

    /// Computes until the sleeper has run and is blocked again. After a tick it yields instead.
    /// Returns how long after the wake the sleeper ran.
    fn until_asleep(&self, wake: u64, at_ns: u64, sleeper: &AxTaskRef) -> u64 {
        while self.ran.load(Acquire) != wake || sleeper.state() != TaskState::Blocked {
            if now_ns() - at_ns > TICK_NS {
                axtask::yield_now();
            }
            spin_loop();
        }
        self.ran_at_ns.load(Relaxed).saturating_sub(at_ns)
    }
}

/// The wakes of a phase that put the sleeper into the same kind of queue.
struct OfQueue {
    name: &'static str,
    latencies: Latencies,
    interrupts: u64,
    most_interrupts: u64,
}

impl OfQueue {
    /// Sums up wakes. Each is its latency and the number of IPIs that were sent from it on.
    fn new(name: &'static str, wakes: &[(u64, u64)]) -> Self {
        let interrupts = || wakes.iter().map(|(_, interrupts)| interrupts);
        Self {
            name,
            latencies: Latencies::new(wakes.iter().map(|(ns, _)| *ns).collect()),
            interrupts: interrupts().sum(),
            most_interrupts: interrupts().max().copied().unwrap_or(0),
        }
    }

    fn line(&self, setting: &Setting, phase: &str) -> WakeLine {
        WakeLine {
            context: context(setting, phase),
            timing: setting.timing.into(),
            scale: setting.scale,
            queue: self.name.into(),
            wakes: self.latencies.count(),
            median_ns: self.latencies.percentile(50),
            p99_ns: self.latencies.percentile(99),
            worst_ns: self.latencies.percentile(100),
            bins: self.latencies.bins(),
            interrupts: self.interrupts,
            most_interrupts: self.most_interrupts,
        }
    }
}

/// Returns the number of IPIs sent to all CPUs until now.
fn interrupts() -> u64 {
    (0..platform::cpus())
        .map(|cpu| SMP_STATE.interrupts(cpu))
        .sum()
}

fn run_phase(name: &'static str) -> (Phase, [OfQueue; 2]) {
    let is_before = name == "before";
    let bed = Arc::new(Bed::default());
    let in_it = bed.clone();
    let sleeps = move || block_on(poll_fn(|context| in_it.sleep(context)));
    let sleeper = axtask::spawn_raw(sleeps, "sleeper".into(), STACK_BYTES);
    while sleeper.state() != TaskState::Blocked {
        axtask::yield_now();
    }
    let (mut of_waker, mut of_idle) = (Vec::new(), Vec::new());
    let mut random = Random(1);
    for wake in 1..=NOT_COUNTED + (WAKES / SCALE).max(2) {
        let sent = interrupts();
        let (at_ns, is_here) = bed.wake(wake, &sleeper);
        let latency_ns = bed.until_asleep(wake, at_ns, &sleeper);
        let pause_end_ns = now_ns() + PAUSE_NS + random.below(TICK_NS);
        while now_ns() < pause_end_ns {
            spin_loop();
        }
        if wake > NOT_COUNTED {
            let of = if is_here { &mut of_waker } else { &mut of_idle };
            of.push((latency_ns, interrupts() - sent));
        }
    }
    bed.wake(Bed::END, &sleeper);
    // A task that is left behind, such as `gc`, would wait behind the waker of the next phase.
    let sleeper = {
        let weak = Arc::downgrade(&sleeper);
        drop(sleeper);
        weak
    };
    while sleeper.strong_count() > 0 {
        axtask::sleep(LOOK_AGAIN);
    }
    let kinds = [
        OfQueue::new("waker", &of_waker),
        OfQueue::new("idle", &of_idle),
    ];
    let most = if is_before { 0 } else { 1 };
    let are_right = |kind: &OfQueue| kind.latencies.count() > 0 && kind.most_interrupts <= most;
    (phase(name, kinds.iter().all(are_right)), kinds)
}

/// Makes a phase without rows.
fn phase(name: &'static str, pass: bool) -> Phase {
    Phase {
        name,
        pass,
        ..Phase::default()
    }
}

/// The sequence of Marsaglia's xorshift64.
struct Random(u64);

impl Random {
    /// Returns the next number of the sequence, below `end`.
    const fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

fn print_table(phases: &[(Phase, [OfQueue; 2])]) {
    println!("From a wake until the woken task runs, while a CPU idles, µs\n");
    println!(
        "{:8}{:8}{:>8}{:>12}{:>12}{:>12}{:>13}{:>14}",
        "phase", "queue", "wakes", "median", "99 %", "worst", "interrupts", "most a wake"
    );
    let us = |ns: u64| format!("{}.{}", ns / 1_000, ns % 1_000 / 100);
    for (phase, kinds) in phases {
        for kind in kinds {
            let [median, p99, worst] = [50, 99, 100].map(|p| us(kind.latencies.percentile(p)));
            println!(
                "{:8}{:8}{:>8}{median:>12}{p99:>12}{worst:>12}{:>13}{:>14}",
                phase.name,
                kind.name,
                kind.latencies.count(),
                kind.interrupts,
                kind.most_interrupts,
            );
        }
    }
    for place in 0..2 {
        let bins: Vec<_> = (phases.iter())
            .map(|(_, kinds)| kinds[place].latencies.bins())
            .collect();
        let columns: Vec<_> = (phases.iter().zip(&bins))
            .map(|((phase, _), bins)| (phase.name, &bins[..]))
            .collect();
        println!("\nInto the queue of: {}\n", phases[0].1[place].name);
        print!("{}", histogram(&columns));
    }
}
