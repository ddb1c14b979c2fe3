extern crate alloc;

use alloc::{string::ToString, sync::Arc, vec::Vec};
use core::{
    hint::black_box,
    iter::successors,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    time::Duration,
};

use ax_hal::time::monotonic_time_nanos;
use ax_task::{
    sync::PreemptGuard,
    thread::{ThreadBuilder, current::sleep},
};
use axstd::println;
use pbg::{BasePolicy, Status};
use pbg_guest::CONTROL;
use sched_core::units::TaskKey;

/// Enough planned threads that some share the last rank.
const PLANNED: usize = 110;
/// The threads of the program that changes.
const CHANGING: usize = 9;
/// Rounds of the loop of the shortest thread. Each is longer than the next shorter one by a part of it that the plan
/// does not take for noise.
const SHORTEST: u64 = 4_000;
const LONGER_BY: u64 = 14;
/// Times its record that a thread takes that is far beyond it.
const BEYOND: u64 = 4_000;
const CHANGED_BY: u64 = 40;

/// A thread that has ended.
#[derive(Clone, Copy, Default)]
struct Ended {
    first_ns: u64,
    end_ns: u64,
    /// The number of threads that ended before.
    order: usize,
}

/// Runs a thread for each number of rounds, all submitted before the first may start. Returns what became of each,
/// with times since the start.
fn run(rounds: &[u64]) -> Vec<Ended> {
    let order = Arc::new(AtomicUsize::new(0));
    let ends: Arc<Vec<_>> = Arc::new(rounds.iter().map(|_| spin_cell()).collect());
    let start_ns = monotonic_time_nanos();
    let guard = PreemptGuard::new();
    let threads: Vec<_> = (rounds.iter().copied().enumerate())
        .map(|(place, rounds)| {
            let (order, ends) = (order.clone(), ends.clone());
            let work = move || {
                let first_ns = monotonic_time_nanos() - start_ns;
                (0..rounds).for_each(|round| _ = black_box(round));
                *ends[place].lock_irqsave() = Ended {
                    first_ns,
                    end_ns: monotonic_time_nanos() - start_ns,
                    order: order.fetch_add(1, Relaxed),
                };
            };
            let builder = ThreadBuilder::new("thread".to_string()).stack_size(16 * 1024);
            pbg_guest::spawn(builder, work).expect("there is memory for a thread")
        })
        .collect();
    drop(guard);
    for thread in threads {
        thread.join().expect("a thread can be joined");
    }
    ends.iter().map(|end| *end.lock_irqsave()).collect()
}

fn spin_cell() -> ax_task::sync::SpinLock<Ended> {
    ax_task::sync::SpinLock::new(Ended::default())
}

/// Measures a run, and starts to follow its plan.
fn measure(rounds: &[u64]) {
    CONTROL
        .measure_start_under(BasePolicy::Fifo)
        .expect("no other measurement");
    run(rounds);
    assert_eq!(CONTROL.measure_end(), Ok(rounds.len()));
    assert_eq!(CONTROL.start_pbg(), Ok(rounds.len()));
}

fn status() -> Status {
    CONTROL.status().expect("there is always a status")
}

fn ms(ns: u64) -> f64 {
    ns as f64 / 1e6
}

#[unsafe(no_mangle)]
extern "C" fn main() {
    // The longest first, so the plan is the other way round.
    let longer = |rounds: &u64| Some(rounds + rounds / LONGER_BY);
    let mut rounds: Vec<_> = successors(Some(SHORTEST), longer).take(PLANNED).collect();
    rounds.reverse();
    measure(&rounds);
    // One that the plan does not know comes last, and the shortest of the plan is far longer than it was.
    rounds[PLANNED - 1] *= BEYOND;
    rounds.push(SHORTEST);
    let ends = run(&rounds);
    let status = status();
    // The places of the ends in the spawns: as the plan has them, and as they were, both without the demoted one.
    let plan = CONTROL
        .plan()
        .expect("there is memory")
        .expect("there is a profile");
    let place = |key| (0..PLANNED).find(|&place| TaskKey::ROOT.child(place as u32) == key);
    let planned = plan.tasks().iter().filter_map(|task| place(task.key));
    let planned: Vec<_> = planned.filter(|&place| place != PLANNED - 1).collect();
    let mut ended: Vec<_> = (0..PLANNED - 1).collect();
    ended.sort_unstable_by_key(|&place| ends[place].order);
    let ranked = planned
        .iter()
        .zip(&ended)
        .take_while(|(a, b)| a == b)
        .count();
    let in_spawn_order = ended[ranked..].is_sorted();
    let all_planned_ns = ends[..PLANNED - 1].iter().map(|end| end.end_ns).max();
    let (overrun, unplanned) = (ends[PLANNED - 1], ends[PLANNED]);
    println!(
        "LIMITS ranks: {PLANNED} threads planned, one demoted; {ranked} others ended in the order of the plan, and \
         the last {} in the order of their spawns: {in_spawn_order}",
        PLANNED - 1 - ranked
    );
    println!(
        "LIMITS unplanned: ready from the start, it first ran after {:.3} ms; the last planned one ended after {:.3} ms",
        ms(unplanned.first_ns),
        ms(all_planned_ns.unwrap_or(0))
    );
    println!(
        "LIMITS overrun: the shortest of the plan took {BEYOND} times as long as recorded, and ended after {:.3} ms, \
         as number {}; demoted: {}, dropped: {}",
        ms(overrun.end_ns),
        overrun.order + 1,
        status.demoted,
        status.dropped
    );
    assert!(ranked == 96 && in_spawn_order);
    assert!(unplanned.first_ns >= all_planned_ns.unwrap_or(0));
    assert!((status.unplanned, status.demoted, status.dropped) == (1, 1, false));

    // A thread that has been joined may still be on its way out.
    sleep(Duration::from_millis(20));
    let rounds = [100 * SHORTEST; CHANGING];
    measure(&rounds);
    let ends = run(&rounds.map(|rounds| rounds * CHANGED_BY));
    let status = self::status();
    let all_ran_ns = ends.iter().map(|end| end.first_ns).max();
    let first_end_ns = ends.iter().map(|end| end.end_ns).min();
    println!(
        "LIMITS changed: all {CHANGING} threads took {CHANGED_BY} times as long; the last first ran after {:.3} ms, and \
         the first ended after {:.3} ms; demoted: {}, dropped: {}",
        ms(all_ran_ns.unwrap_or(0)),
        ms(first_end_ns.unwrap_or(0)),
        status.demoted,
        status.dropped
    );
    assert!(status.dropped && 3 * status.demoted as usize > 2 * CHANGING);
}
