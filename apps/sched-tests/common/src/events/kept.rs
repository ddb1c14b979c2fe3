//! The logs of an image with `TRACE=events`: one per CPU, in memory that is allocated before the
//! first phase.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axhal::{percpu::this_cpu_id, time::ticks_to_nanos};
use axtask::TaskState;
pub(crate) use sched_tests_results::events::What;
use sched_tests_results::events::{self, EventsLine, FIRST_TASK};
use spin::Once;

use super::log::Log;

/// The room for the logs of all CPUs together. It holds 10^6 switches of up to eight bytes each,
/// and most switches take three. A phase's log is copied when the phase is over.
const ROOM_BYTES: usize = 8 << 20;

/// The log of one CPU, and the state that its next entry needs.
struct OfCpu {
    log: Log,
    /// How the current task was put back, as a [`What`]; 0 if it was not.
    put_back: AtomicU64,
}

static CPUS: Once<Vec<OfCpu>> = Once::new();

/// The start of the phase, in ticks since boot.
static START: AtomicU64 = AtomicU64::new(0);

/// The number of the task that is spawned next.
static NEXT: AtomicU64 = AtomicU64::new(FIRST_TASK);

/// A task's number in its phase, as in the log.
#[derive(Default)]
pub(crate) struct Number(u64);

/// Returns the number of the task that is about to be spawned.
pub(crate) fn next_number() -> Number {
    Number(NEXT.fetch_add(1, Relaxed))
}

/// Allocates the logs at the first call. Called before the time of a phase begins.
pub(crate) fn prepare() {
    CPUS.call_once(|| {
        let count = axhal::cpu_num();
        let of_cpu = |_| OfCpu {
            log: Log::new(ROOM_BYTES / count),
            put_back: AtomicU64::new(0),
        };
        (0..count).map(of_cpu).collect()
    });
}

/// Begins the logs of a phase at `now`. Its tasks are not spawned yet.
pub(crate) fn open(now: u64) {
    START.store(now, Relaxed);
    NEXT.store(FIRST_TASK, Relaxed);
    for cpu in CPUS.get().into_iter().flatten() {
        cpu.log.open(now);
    }
}

/// Ends the logs of a phase.
pub(crate) fn close() {
    for cpu in CPUS.get().into_iter().flatten() {
        cpu.log.close();
    }
}

/// The logs of a phase, one for each CPU.
#[derive(Clone, Debug, Default)]
pub struct Logs(Vec<events::Log>);

impl Logs {
    /// Returns the logs, one for each CPU, without a context.
    pub(crate) fn take(self) -> Vec<events::Log> {
        self.0
    }
}

/// Returns the logs of the phase that was closed last, for a counter with `counter_hz` ticks a
/// second. Called when the tasks of the phase are reclaimed.
pub(crate) fn logs(counter_hz: u64) -> Logs {
    let of_cpu = |(cpu, of_cpu): (usize, &OfCpu)| {
        let written = of_cpu.log.written();
        let head = EventsLine {
            cpu: cpu as u32,
            counter_hz,
            start_ns: ticks_to_nanos(START.load(Relaxed)),
            records: written.kept,
            lost: written.lost,
            ..EventsLine::default()
        };
        events::Log::new(head, written.bytes)
    };
    let cpus = CPUS.get().into_iter().flatten();
    Logs(cpus.enumerate().map(of_cpu).collect())
}

#[inline]
fn this_cpu() -> Option<&'static OfCpu> {
    CPUS.get()?.get(this_cpu_id())
}

#[inline]
fn record(who: u64, what: What, now: u64) {
    if let Some(cpu) = this_cpu() {
        cpu.log.record(who, what, now);
    }
}

/// Records that `who`, which has no meter, was on this CPU until `now`.
pub(crate) fn booked(who: u64, now: u64) {
    record(who, What::Booked, now);
}

/// Records that the account of the task on this CPU begins.
pub(crate) fn let_in(number: &Number, now: u64) {
    record(number.0, What::LetIn, now);
}

/// Records that the work of the task on this CPU is done.
pub(crate) fn done(number: &Number, now: u64) {
    record(number.0, What::Done, now);
}

/// Records that the task leaves this CPU. It still is the current one, and its state is set
/// already.
#[inline]
pub(crate) fn left(number: &Number, now: u64) {
    let Some(cpu) = this_cpu() else { return };
    let put_back = cpu.put_back.swap(0, Relaxed);
    let what = match axtask::current().state() {
        TaskState::Exited => What::Ended,
        TaskState::Ready if put_back == What::Yielded as u64 => What::Yielded,
        TaskState::Ready if put_back == What::Preempted as u64 => What::Preempted,
        // Ready, but not put back by this CPU: another CPU has woken it already.
        _ => What::Blocked,
    };
    cpu.log.record(number.0, what, now);
}

/// Notes that the task on this CPU is put back into the queue: it yields, or is preempted.
pub(crate) fn put_back(what: What) {
    if let Some(cpu) = this_cpu() {
        cpu.put_back.store(what as u64, Relaxed);
    }
}

/// Records that a task that is on no CPU becomes ready.
pub(crate) fn woken(number: &Number, now: u64) {
    record(number.0, What::Woken, now);
}
