//! The measurement, and what is printed of it.

use alloc::{format, sync::Arc, vec::Vec};
use core::{
    sync::atomic::{AtomicU64, Ordering::*},
    time::Duration,
};

use axsched_ext::{
    pbg::{CONTROL, MAX_TASKS},
    recorded::RECORDING,
    syscall::{self, Error},
};
use axtask::{WaitQueue, WeakAxTaskRef};
use kernel_guard::NoPreempt;
use sched_tests_common::{
    config::{self, SCALE},
    kept,
    platform::{self, now_ns, println},
    results::{Phase, ResultLine, Setting, cost_line},
    runner::{print_heading, print_lines, setting},
};

/// The numbers of tasks that the group grows to. The last is the most that PBG records.
const SIZES: [usize; 6] = [1, 4, 64, 256, 1_024, MAX_TASKS];
/// The yields of all tasks together that the second round has more than the first, at any size.
/// They are so numerous that a timer tick more or less in a round does not show.
const YIELDS: u64 = 1 << 18;
/// The stack of a task. 4,096 stacks fit into the guest's default memory. A timer interrupt fits on
/// top of the little that a task itself needs.
const STACK_BYTES: usize = 16 * 1024;
/// The most tasks that may be far beyond the plan.
///
/// The queue that they wait in is a list with a lock. A task that comes while the list is locked
/// leaves its work to the holder, which does it at the end. If a tick takes the CPU from a holder,
/// the holder comes back to the work of all others: 15 ms for 4,096 tasks. Only a tick causes this,
/// and at most once in each of the four rounds of that size.
const MOST_DEMOTED: u32 = 4;
/// The time that main computes before the first phase. A policy that measures the length of a tick
/// has then seen two ticks without idling between them, and its result no longer changes.
const THREE_TICKS_NS: u64 = 30_000_000;
/// The longest time that gc may take to reclaim the tasks.
const PATIENCE_NS: u64 = 10_000_000_000;
/// The pause between two checks for that.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// The cost of a yield at one size.
struct Cost {
    tasks: usize,
    ns_per_yield: f64,
}

/// Runs every phase that the policy has and prints the results.
pub fn main() {
    let setting = setting("cost");
    print_heading(&setting);
    let start = now_ns();
    while now_ns() - start < THREE_TICKS_NS {}
    let phases = match setting.sched {
        "pbg" | "pbg-coop" => idle_measure_and_replay(),
        _ if config::RECORDED => idle_and_measure(setting.app),
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

/// Measures any other policy within the layer that records it. Prints the profile, for
/// `make record`.
fn idle_and_measure(app: &str) -> Vec<(Phase, Vec<Cost>)> {
    platform::connect_recording();
    let idle = run_phase("idle");
    let started = syscall::measure_start();
    let mut measure = run_phase("measure");
    let recorded = started.and_then(|()| syscall::measure_end());
    measure.0.pass &= recorded == Ok(MAX_TASKS);
    match kept::encoded(RECORDING.profile(&kept::about(app))) {
        Ok(profile) => kept::print_frame(&profile),
        Err(error) => {
            println!("No recording: {error}.\n");
            measure.0.pass = false;
        }
    }
    [idle, measure].into()
}

/// The tasks of a phase. Each stands still until its next round begins.
#[derive(Default)]
struct Group {
    /// Two sets for each size but the last, one for each round. At the last size all sets yield in
    /// both rounds, and the last set has the tasks that are missing for that. So a task yields in
    /// three rounds at most, which PBG records one by one. With more rounds the plan would go by
    /// their average.
    sets: [Set; 2 * SIZES.len() - 1],
    /// The yields of each task in this round. [`END`](Self::END) makes the tasks end.
    yields_each: AtomicU64,
    /// The number of tasks that have not finished this round.
    absent: AtomicU64,
    met: WaitQueue,
    yields_done: AtomicU64,
    yielding: Yielding,
}

/// Tasks that take part in the same rounds.
#[derive(Default)]
struct Set {
    /// Wakes the tasks for the next round.
    go: WaitQueue,
    round: AtomicU64,
}

/// The time in a round in which at least one task is between its first yield and its last.
///
/// Under a policy that switches at a yield all tasks are there at once, and under a plan one after
/// the other. The time to wake each of those and to let it wait again does not count. It is longer
/// in some rounds, for example if a tick hits the task that wakes them.
#[derive(Default)]
struct Yielding {
    tasks: AtomicU64,
    /// The sum of the times at which the number of tasks left 0. It is a sum because several CPUs
    /// may add out of order.
    begins_ns: AtomicU64,
    /// The sum of the times at which the number came back to 0.
    ends_ns: AtomicU64,
}

impl Yielding {
    fn begin(&self) {
        // A tick between the count and the clock would count for the wrong side.
        let _guard = NoPreempt::new();
        if self.tasks.fetch_add(1, AcqRel) == 0 {
            self.begins_ns.fetch_add(now_ns(), Relaxed);
        }
    }

    fn end(&self) {
        let _guard = NoPreempt::new();
        if self.tasks.fetch_sub(1, AcqRel) == 1 {
            self.ends_ns.fetch_add(now_ns(), Relaxed);
        }
    }

    /// Returns the time of the round that is over. The next round begins at 0.
    fn take_ns(&self) -> u64 {
        self.ends_ns.swap(0, Relaxed) - self.begins_ns.swap(0, Relaxed)
    }
}

impl Group {
    const END: u64 = u64::MAX;

    /// Makes the `tasks` tasks of these sets yield `yields_each` times each. Returns how long they
    /// did.
    ///
    /// A round begins at a given phase of the timer tick. A policy that charges whole ticks to the
    /// task that a tick hits has a tree of another shape at another phase.
    fn round(&self, sets: &[Set], tasks: usize, yields_each: u64) -> u64 {
        platform::await_tick_phase();
        self.absent.store(tasks as u64, Relaxed);
        self.yields_each.store(yields_each, Relaxed);
        {
            // A queue is locked meanwhile. Under a plan the next tick would take the CPU from main,
            // which is not in the plan. Each task would then find the lock taken when it comes back
            // to wait, which takes longer, in some rounds only.
            let _guard = NoPreempt::new();
            for set in sets {
                set.round.fetch_add(1, Release);
                set.go.notify_all(false);
            }
        }
        self.met.wait_until(|| self.absent.load(Acquire) == 0);
        self.yielding.take_ns()
    }

    /// Runs a task of this set, which yields in each round until the last.
    fn task(&self, set: &Set) {
        for round in 1.. {
            set.go.wait_until(|| set.round.load(Acquire) >= round);
            let yields = self.yields_each.load(Relaxed);
            if yields != Self::END {
                self.yielding.begin();
                for _ in 0..yields {
                    axtask::yield_now();
                }
                self.yielding.end();
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
    for (i, size) in SIZES.into_iter().enumerate() {
        let all = &group.sets;
        let (new, first, second, each) = match all.get(2 * i..2 * i + 2) {
            Some(new) => (new, &new[..1], &new[1..], size),
            None => (&all[2 * i..], &all[..], &all[..], size - tasks.len()),
        };
        let before = tasks.len();
        for set in 2 * i..2 * i + new.len() {
            for _ in 0..each {
                let group = group.clone();
                let body = move || group.task(&group.sets[set]);
                let task = axtask::spawn_raw(body, "".into(), STACK_BYTES);
                tasks.push(Arc::downgrade(&task)); // a handle would keep gc spinning
            }
        }
        let more_each = (YIELDS / size as u64 / SCALE).max(1);
        let first_each = more_each.div_ceil(2);
        // A round without yields comes first, because a task's first run takes longer than a
        // wake-up.
        group.round(new, tasks.len() - before, 0);
        let first_ns = group.round(first, size, first_each);
        let second_ns = group.round(second, size, first_each + more_each);
        let extra = size as u64 * more_each;
        yields_expected += extra + 2 * size as u64 * first_each;
        costs.push(Cost {
            tasks: size,
            ns_per_yield: second_ns.saturating_sub(first_ns) as f64 / extra as f64,
        });
    }
    group.round(&group.sets, tasks.len(), Group::END);
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

/// Waits until every task has ended and gc has given its stack back, which the next phase needs.
/// Returns false after [`PATIENCE_NS`].
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
