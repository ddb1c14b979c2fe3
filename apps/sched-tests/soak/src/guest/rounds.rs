//! The rounds of main. Main spawns tasks, under PBG measures and replays them, and counts how many
//! have ended.

use alloc::format;
use axsched_ext::syscall;
use axstd::println;
use core::sync::atomic::Ordering::*;

use super::{
    clock::{MS, now_ns, sleep_until_ns},
    orders::{Orders, Planted},
    random::{Random, seed_of},
    record::PLACES_OF,
    task::{self, ALIVE, ENDED, SPAWNED, spawn},
    watch::{self, MAIN_NS, found},
};

/// The most tasks that main spawns in a round. With their children they are no more than PBG
/// records.
const MOST_OF_MAIN: u64 = 400;
/// The time for which a round spawns tasks.
const ROUND_NS: u64 = 5_000 * MS;
/// The pause between two looks of main at its tasks.
const LOOK_NS: u64 = 10 * MS;

/// The work that main did.
#[derive(Default)]
pub struct Done {
    /// The number of rounds of all kinds.
    pub rounds: u64,
    /// The number of rounds that PBG measured.
    pub measured: u64,
    /// The number of tasks in the plan, if there is one.
    pub planned: Option<usize>,
}

/// Runs rounds of tasks until the time is over.
pub fn run(orders: &Orders) -> Done {
    let mut done = Done::default();
    let end = now_ns() + orders.seconds * 1_000 * MS;
    if orders.planted == Some(Planted::Stall) {
        plant_stall();
    }
    task::TO_BREAK_OUTSIDE.store(orders.planted == Some(Planted::Outside), Relaxed);
    task::TO_BREAK_LOCK.store(orders.planted == Some(Planted::Lock), Relaxed);
    if syscall::measure_start().is_ok() {
        pbg(orders, end, &mut done);
    }
    while done.rounds == 0 || now_ns() < end {
        done.rounds += 1;
        round(seed_of(orders.seed, done.rounds), u64::MAX, end);
    }
    MAIN_NS.store(0, Relaxed);
    done
}

/// Measures rounds for a third of the time, then replays the last of them.
fn pbg(orders: &Orders, end: u64, done: &mut Done) {
    let third = now_ns() + end.saturating_sub(now_ns()) / 3;
    let (seed, tasks) = loop {
        done.rounds += 1;
        done.measured += 1;
        let seed = seed_of(orders.seed, done.rounds);
        let before = SPAWNED.load(Relaxed);
        let of_main = round(seed, u64::MAX, third);
        let spawned = (SPAWNED.load(Relaxed) - before) as usize;
        let recorded = syscall::measure_end();
        if recorded != Ok(spawned) {
            found(
                0,
                &format!("has spawned {spawned} tasks, of which PBG recorded {recorded:?}"),
            );
        }
        if now_ns() >= third {
            break (seed, of_main);
        }
        let again = syscall::measure_start();
        assert_eq!(again, Ok(()), "measuring again");
    };
    let planned = syscall::start_pbg();
    done.planned = Some(planned.expect("there is a profile"));
    done.rounds += 1;
    round(seed, tasks, u64::MAX);
}

/// Spawns tasks of this seed from main, and waits for all to end. Returns how many main spawned.
///
/// That is `at_most`. If `at_most` is `u64::MAX`, main spawns tasks until `end` has come or the
/// round's time is over. It is never more than [`MOST_OF_MAIN`].
fn round(seed: u64, at_most: u64, end: u64) -> u64 {
    let begun = now_ns();
    let mut goals = Random::new(seed);
    let mut goal = 0;
    let mut spawned = 0;
    let is_over = |spawned| {
        let now = now_ns();
        spawned >= at_most.min(MOST_OF_MAIN)
            || at_most == u64::MAX && now >= end.min(begun + ROUND_NS)
    };
    while spawned == 0 || !is_over(spawned) {
        while ALIVE.load(Relaxed) <= goal && !is_over(spawned) {
            if spawned % 32 == 0 {
                goal = 15 + goals.below(33) as usize;
            }
            spawn(seed_of(seed, spawned), 0, None);
            spawned += 1;
        }
        wait_and_clear_places();
    }
    while wait_and_clear_places() {}
    let (all, ended) = (SPAWNED.load(Relaxed), ENDED.load(Relaxed));
    if all != ended {
        found(
            0,
            &format!("has spawned {all} tasks, of which {ended} have ended"),
        );
    }
    for lock in &super::lock::LOCKS {
        let (expected, counted) = lock.counts();
        if expected != counted {
            let what = format!("finds {counted} of {expected} in what a lock guards");
            found(0, &what);
        }
    }
    spawned
}

/// Sleeps for [`LOOK_NS`], then clears the places of the tasks that are reclaimed. Returns true if
/// any task is left.
fn wait_and_clear_places() -> bool {
    sleep_until_ns(now_ns() + LOOK_NS);
    MAIN_NS.store(now_ns(), Relaxed);
    let mut is_left = false;
    for place in &PLACES_OF {
        let mut place = place.lock();
        let gone = place.take_if(|record| record.is_reclaimed());
        is_left |= place.is_some();
        drop(place);
        drop(gone);
    }
    is_left
}

/// Spawns a task that is pinned to a CPU whose running task never gives way.
fn plant_stall() {
    use super::record::Record;
    use alloc::sync::Arc;
    let last = axhal::cpu_num() - 1;
    let pinned = |id| Arc::new(Record::new(id, None, 1 << last));
    let (hog, waits) = (pinned(1_000_001), pinned(1_000_002));
    task::spawn_recorded(&hog, || {
        watch::watch_this_cpu();
        let _guard = kernel_guard::NoPreempt::new();
        loop {
            core::hint::black_box(task::spin(1, 1_000));
        }
    });
    sleep_until_ns(now_ns() + 100 * MS);
    task::take_place(&waits);
    task::spawn_recorded(&waits, || println!("soak: it has run after all"));
}
