//! A coroutine whose awaits are all ready at once keeps no other waiting: neither a more urgent one
//! of its worker nor its own timeout.
//!
//! | coroutine | priority | what it does |
//! |---|--:|---|
//! | busy | 7 | locks a free mutex again and again, for 300 ms, and then for a second in a timeout of 100 ms |
//! | urgent | 0 | sleeps 1 ms, again and again, as long as the first of them |
//!
//! A sleep takes at most 2 granules of the timers, and the awaits of one budget.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use core::time::Duration;

use axcoop_arceos::{Elapsed, GRANULE_NANOS, Mutex, Options, Priority, now, sleep, timeout};
use sched_tests_common::platform::println;

use super::verdict;

const BUSY: Duration = Duration::from_millis(300);
const LIMIT: Duration = Duration::from_millis(100);
/// The most time that the locks of a budget take, in ns.
const SLACK_NANOS: u64 = 1_000_000;
const MIN_TURNS: u64 = BUSY.as_nanos() as u64 / (2 * GRANULE_NANOS + SLACK_NANOS);
const MAX_LATE_NANOS: u64 = GRANULE_NANOS + SLACK_NANOS;

static MUTEX: Mutex<()> = Mutex::new(());
static IS_OVER: AtomicBool = AtomicBool::new(false);
static TURNS: AtomicU64 = AtomicU64::new(0);

/// Runs the case.
pub fn run() {
    let options = Options::new("awaits").workers(1);
    let domain = options.open().expect("a domain is free");
    let urgent = domain.spawn(urgent(), Priority::FIRST);
    let busy = domain.spawn(busy(), Priority::LAST);
    let (turns, late_nanos) = busy.join().expect("it is not cancelled");
    urgent.join().expect("it is not cancelled");

    println!("the urgent coroutine had {turns} turns in {BUSY:?}, at least {MIN_TURNS}");
    println!("the timeout was {late_nanos} ns late, at most {MAX_LATE_NANOS}\n");
    verdict(turns >= MIN_TURNS && late_nanos <= MAX_LATE_NANOS);
}

/// Takes and releases the mutex again and again for `time`.
async fn locks(time: Duration) {
    let end = now() + time.as_nanos() as u64;
    while now() < end {
        drop(MUTEX.lock().await);
    }
}

/// Runs the busy coroutine. Returns the turns of the urgent one in the first part, and how late the
/// timeout was.
async fn busy() -> (u64, u64) {
    locks(BUSY).await;
    IS_OVER.store(true, Relaxed);
    let turns = TURNS.load(Relaxed);
    let until = now() + LIMIT.as_nanos() as u64;
    let ended = timeout(LIMIT, locks(Duration::from_secs(1))).await;
    let late_nanos = now() - until;
    assert_eq!(ended, Err(Elapsed), "it was not seen in time");
    (turns, late_nanos)
}

async fn urgent() {
    while !IS_OVER.load(Relaxed) {
        sleep(Duration::from_millis(1)).await;
        TURNS.fetch_add(1, Relaxed);
    }
}
