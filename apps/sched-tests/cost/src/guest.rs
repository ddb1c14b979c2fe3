//! The measurement, and what is printed of it.

use alloc::{format, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::{
    pbg::{CONTROL, MAX_TASKS},
    syscall::{self, Error},
};
use axtask::{WaitQueue, WeakAxTaskRef};
use kernel_guard::NoPreempt;
use sched_tests_common::{
    config::{self, SCALE},
    platform::{self, now_ns, println},
    results::{Phase, ResultLine, Setting, cost_line},
    runner::{print_heading, print_lines, setting},
};

/// The sizes that the group grows to. The last is all that PBG records.
const SIZES: [usize; 4] = [1, 4, 256, MAX_TASKS];
/// Yields of all tasks together in the first round, at any size: enough that the
/// timer ticks, which a round may have one more or less of, do not show.
const YIELDS: u64 = 1 << 18;
/// Of a task: 4,096 of them fit into the guest's default memory, and a timer
/// interrupt fits on top of the little that a task itself needs.
const STACK_BYTES: usize = 16 * 1024;
/// How many tasks may be far beyond the plan. The queue that they wait in is a list with a
/// lock; whoever comes while it is locked leaves what is to be done, and the holder does it
/// at the end. If a tick takes the CPU from a holder, it comes back to the work of all
/// others: 15 ms for 4,096 tasks. That is a tick's doing, and there is one or none in each
/// of the four rounds of that size.
const MOST_DEMOTED: u32 = 4;
/// How long gc may take to reclaim the tasks, and how often it is looked at.
const PATIENCE_NS: u64 = 10_000_000_000;
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// One figure.
struct Cost {
    tasks: usize,
    ns_per_yield: f64,
}

/// Runs every phase that the policy has and prints the results.
pub fn main() {
    let setting = setting("cost");
    print_heading(&setting);
    let phases = match setting.sched {
        "pbg" | "pbg-coop" => idle_measure_and_replay(),
        _ => [run_phase("run")].into(),
    };
    print_table(&setting, &phases);
    for (phase, costs) in &phases {
        for cost in costs {
            let line = cost_line(&setting, phase.name, cost.tasks, cost.ns_per_yield);
            println!("{}", line.to_line());
        }
    }
    let phases: Vec<_> = phases.into_iter().map(|(phase, _)| phase).collect();
    print_lines(&setting, &phases);
}

fn idle_measure_and_replay() -> Vec<(Phase, Vec<Cost>)> {
    let mut phases: Vec<_> = [run_phase("idle")].into();
    if let Err(error) = syscall::measure_start_under(config::PBG_BASE) {
        println!("No measurement: {error}.\n");
        phases[0].0.pass &= error == Error::NotSupported && platform::cpus() > 1;
        return phases;
    }
    let mut measure = run_phase("measure");
    let planned = syscall::measure_end().and_then(|_| syscall::start_pbg());
    if let Err(error) = planned {
        println!("PBG has no plan: {error}.\n");
    }
    measure.0.pass &= planned == Ok(MAX_TASKS);
    let mut replay = run_phase("replay");
    let status = CONTROL.status();
    if !status.is_ok_and(|s| s.matched as usize == MAX_TASKS && s.demoted <= MOST_DEMOTED) {
        println!("The plan was not followed: {status:?}\n");
        replay.0.pass = false;
    }
    phases.extend([measure, replay]);
    phases
}

/// The group of tasks. They stand still until told to go.
#[derive(Default)]
struct Group {
    /// Wakes the tasks for the next round.
    go: WaitQueue,
    round: AtomicU64,
    /// What each task yields in this round; [`END`](Self::END) lets it end.
    yields_each: AtomicU64,
    /// The tasks that this round is still to hear of.
    absent: AtomicU64,
    met: WaitQueue,
    yields_done: AtomicU64,
}

impl Group {
    const END: u64 = u64::MAX;

    /// Has `tasks` tasks yield `yields_each` times each; how long that took.
    ///
    /// From a given phase of the timer tick on: a policy that charges whole ticks to whoever
    /// is hit has a tree of another shape at another phase.
    fn round(&self, tasks: usize, yields_each: u64) -> u64 {
        platform::await_tick_phase();
        let begin_ns = now_ns();
        self.absent.store(tasks as u64, Relaxed);
        self.yields_each.store(yields_each, Relaxed);
        self.round.fetch_add(1, Release);
        {
            // The queue is locked meanwhile. Under a plan the next tick would take
            // the CPU from us, who are not in it, and each task would then find the
            // lock taken when it comes back to wait: a longer way, in some rounds.
            let _guard = NoPreempt::new();
            self.go.notify_all(false);
        }
        self.met.wait_until(|| self.absent.load(Acquire) == 0);
        now_ns() - begin_ns
    }

    /// What a task does, from the round after `round` on.
    fn task(&self, mut round: u64) {
        loop {
            self.go.wait_until(|| self.round.load(Acquire) > round);
            round += 1;
            let yields = self.yields_each.load(Relaxed);
            if yields != Self::END {
                for _ in 0..yields {
                    axtask::yield_now();
                }
                self.yields_done.fetch_add(yields, Relaxed);
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

/// Measures every size once.
fn run_phase(name: &'static str) -> (Phase, Vec<Cost>) {
    let group = Arc::new(Group::default());
    let mut tasks: Vec<WeakAxTaskRef> = Vec::with_capacity(MAX_TASKS);
    let mut yields_expected = 0;
    let mut costs = Vec::with_capacity(SIZES.len());
    for size in SIZES {
        let round = group.round.load(Relaxed);
        while tasks.len() < size {
            let group = group.clone();
            let task = axtask::spawn_raw(move || group.task(round), "".into(), STACK_BYTES);
            tasks.push(Arc::downgrade(&task)); // a handle would keep gc spinning
        }
        let yields_each = (YIELDS / size as u64 / SCALE).max(1);
        // Nobody's first time: a first run takes longer than a wake-up.
        group.round(size, 0);
        let first_ns = group.round(size, yields_each);
        let second_ns = group.round(size, 2 * yields_each);
        let extra = size as u64 * yields_each;
        yields_expected += 3 * extra;
        costs.push(Cost {
            tasks: size,
            ns_per_yield: second_ns.saturating_sub(first_ns) as f64 / extra as f64,
        });
    }
    group.round(tasks.len(), Group::END);
    let reclaimed = all_reclaimed(&tasks);
    let yields_done = group.yields_done.load(Relaxed);
    if !reclaimed || yields_done != yields_expected {
        println!(
            "phase {name}: {yields_done} yields of {yields_expected}, all tasks gone: {reclaimed}\n"
        );
    }
    let phase = Phase {
        name,
        pass: reclaimed && yields_done == yields_expected,
        ..Phase::default()
    };
    (phase, costs)
}

/// Waits until every task has ended and gc has given its stack back, which the
/// next phase needs; false if that takes for ever.
fn all_reclaimed(tasks: &[WeakAxTaskRef]) -> bool {
    let begin_ns = now_ns();
    while tasks.iter().any(|task| task.strong_count() > 0) {
        if now_ns() - begin_ns > PATIENCE_NS {
            return false;
        }
        axtask::sleep(LOOK_AGAIN);
    }
    true
}

fn print_table(setting: &Setting, phases: &[(Phase, Vec<Cost>)]) {
    let unit = if setting.timing == "icount" {
        "instructions"
    } else {
        "nanoseconds"
    };
    println!("{unit} per yield, by the number of tasks\n");
    let sizes: Vec<_> = SIZES.iter().map(|size| format!("{size:>12}")).collect();
    println!("{:10}{}", "phase", sizes.concat());
    for (phase, costs) in phases {
        let figures: Vec<_> = costs
            .iter()
            .map(|cost| format!("{:>12.1}", cost.ns_per_yield))
            .collect();
        println!("{:10}{}", phase.name, figures.concat());
    }
    println!("");
}
