//! Logs that are kept: one for each CPU, all in memory that is taken before the first phase.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axhal::{percpu::this_cpu_id, time::ticks_to_nanos};
use axtask::TaskState;
pub(crate) use sched_tests_results::events::What;
use sched_tests_results::events::{self, EventsLine, FIRST_TASK};
use spin::Once;

use super::log::Log;

/// The room for the logs of all CPUs together: for 10^6 switches of up to eight bytes each,
/// where most take three. A phase's log is copied when the phase is over.
const ROOM_BYTES: usize = 8 << 20;

/// What a CPU's tasks tell.
struct OfCpu {
    log: Log,
    /// How the current task was put back, as a [`What`]; 0 if it was not.
    put_back: AtomicU64,
}

static CPUS: Once<Vec<OfCpu>> = Once::new();

/// When the phase started, in ticks.
static START: AtomicU64 = AtomicU64::new(0);

/// The number of the task that is spawned next.
static NEXT: AtomicU64 = AtomicU64::new(FIRST_TASK);

/// A task's number in its phase, as in the log.
#[derive(Default)]
pub(crate) struct Number(u64);

/// The number of the task that is about to be spawned.
pub(crate) fn next_number() -> Number {
    Number(NEXT.fetch_add(1, Relaxed))
}

/// Takes the memory, the first time; before the time of a phase begins.
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

/// Begins the logs of a phase at `now`; its tasks are not spawned yet.
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

/// What the logs of a phase have come to.
#[derive(Clone, Debug, Default)]
pub struct Logs(Vec<events::Log>);

impl Logs {
    /// One for each CPU, without a context.
    pub(crate) fn take(self) -> Vec<events::Log> {
        self.0
    }
}

/// The logs of the phase that was closed last, when its tasks are reclaimed; the counter has so
/// many ticks a second.
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

/// Until `now` somebody without a meter was on this CPU.
pub(crate) fn booked(who: u64, now: u64) {
    record(who, What::Booked, now);
}

/// The account of the task that is on this CPU begins.
pub(crate) fn let_in(number: &Number, now: u64) {
    record(number.0, What::LetIn, now);
}

/// The work of the task that is on this CPU is done.
pub(crate) fn done(number: &Number, now: u64) {
    record(number.0, What::Done, now);
}

/// The task leaves this CPU; it still is the current one, and its state is set already.
#[inline]
pub(crate) fn left(number: &Number, now: u64) {
    let Some(cpu) = this_cpu() else { return };
    let put_back = cpu.put_back.swap(0, Relaxed);
    let what = match axtask::current().state() {
        TaskState::Exited => What::Ended,
        TaskState::Ready if put_back == What::Yielded as u64 => What::Yielded,
        TaskState::Ready if put_back == What::Preempted as u64 => What::Preempted,
        // Ready without having been put back: another CPU has woken it already.
        _ => What::Blocked,
    };
    cpu.log.record(number.0, what, now);
}

/// The task on this CPU is put back: it yields, or is preempted.
pub(crate) fn put_back(what: What) {
    if let Some(cpu) = this_cpu() {
        cpu.put_back.store(what as u64, Relaxed);
    }
}

/// A task that is on no CPU becomes ready.
pub(crate) fn woken(number: &Number, now: u64) {
    record(number.0, What::Woken, now);
}
