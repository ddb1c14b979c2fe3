//! The CPU time outside the tasks of the workload. With it, a phase's figures add up to its makespan.
//!
//! The [meters](crate::meter) have the tasks' time. The time between the leave of one metered task
//! and the entry of the next belongs to tasks without a meter. No code of ours runs when `axtask`
//! switches among those. So the time is booked piece by piece, each to the task that is current at
//! its end:
//!
//! | seen | by | booked to |
//! |---|---|---|
//! | a metered task enters after one without a meter | the hook, which still finds that one current | that one |
//! | a timer tick hits one without a meter | a timer callback, on each CPU that has had a metered task | that one |
//! | main is about to wait, or back from it | [`main_waits`] | main; idle |
//! | a metered task enters after a metered one | the hook | no account: there is no piece, as the second stay begins where the first ended |
//!
//! Two pieces count as idle and are not, both below a thousandth in all test programs. One is the
//! time that `gc` needs to reclaim a task before the CPU goes idle. The other is main's way back out
//! of a wait. A `gc` that spins does so until there is nothing to reclaim,
//! so no CPU is idle then.
//!
//! **The window** ends at the last task's own reading of the counter, which is also the end of that
//! task's work. On one CPU nothing runs between that reading and the end of the account, so the
//! parts add up to the makespan exactly, in ticks of the counter. The time that a task needs after
//! its work counts up to the end of the window.
//!
//! **Order.** A CPU's ledger is written by that CPU only, with interrupts off. But main opens it
//! before there is any metered task, and the last of them closes it, when the others are at most on
//! their way out. All is `Relaxed`. A tick that another CPU books at that moment may be booked twice
//! or not at all: a piece of a tick at most.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axhal::{
    percpu::this_cpu_id,
    time::{current_ticks, ticks_to_nanos},
};
use axtask::TaskInner;
use kernel_guard::NoPreemptIrqSave;

use crate::{events, measured::Unmetered};

/// The most CPUs that `SMP=` allows.
pub(crate) const MAX_CPUS: usize = 8;

/// Later than any time: nothing is booked meanwhile.
const METERED: u64 = u64::MAX;

/// The owner of a CPU that no metered task has. The numbers are those of the log of events
/// (`sched_tests_results::events`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Main,
    Gc,
    Idle,
    /// Any other task without a meter, such as a migration helper.
    Other,
}

/// The account of one CPU, in ticks of the hardware counter.
#[repr(align(64))]
struct Ledger {
    /// Until when all is booked; [`METERED`] while a metered task has the CPU.
    until: AtomicU64,
    /// The time of each [`Who`], by its number.
    booked: [AtomicU64; 4],
    /// The ids of this CPU's `idle` and `gc`, once they were met; ids begin at 1.
    idle: AtomicU64,
    gc: AtomicU64,
}

static LEDGERS: [Ledger; MAX_CPUS] = [const {
    Ledger {
        until: AtomicU64::new(0),
        booked: [const { AtomicU64::new(0) }; 4],
        idle: AtomicU64::new(0),
        gc: AtomicU64::new(0),
    }
}; MAX_CPUS];

/// The id of the task that opened the ledgers.
static MAIN: AtomicU64 = AtomicU64::new(0);
/// When they were opened, in ticks.
static OPENED: AtomicU64 = AtomicU64::new(0);
/// When the window ends, in ticks: at the last task's own reading. Later than any time before that.
static WINDOW_END: AtomicU64 = AtomicU64::new(u64::MAX);

impl Ledger {
    #[inline]
    fn of_this_cpu() -> &'static Self {
        &LEDGERS[this_cpu_id() % MAX_CPUS] // the remainder saves a check
    }

    /// Books the time from `until` to `now`.
    #[inline]
    fn book(&self, who: Who, now: u64) {
        let booked = &self.booked[who as usize];
        let piece = now.saturating_sub(self.until.load(Relaxed));
        booked.store(booked.load(Relaxed) + piece, Relaxed);
        self.until.store(now, Relaxed);
    }

    /// Ends at `now` the account that began at `opened`. Another CPU may have booked beyond that meanwhile:
    /// this call comes late if the host has other things to do. And one from which the host took away its
    /// CPU after it had read the clock, and before the account began, has booked time from before it.
    fn end(&self, opened: u64, now: u64) {
        let until = self.until.load(Relaxed);
        if until == METERED || until <= now {
            self.book(Who::Idle, now); // or a metered task has it
        } else {
            self.take_off(until - now);
        }
        let all: u64 = self.booked.iter().map(|of| of.load(Relaxed)).sum();
        self.take_off(all.saturating_sub(now - opened));
    }

    /// Subtracts time that was booked too much.
    fn take_off(&self, mut beyond: u64) {
        for who in [Who::Idle, Who::Other, Who::Main, Who::Gc] {
            let booked = &self.booked[who as usize];
            let part = booked.load(Relaxed).min(beyond);
            booked.store(booked.load(Relaxed) - part, Relaxed);
            beyond -= part;
        }
    }

    /// Books on its own CPU, and says so to the log of events.
    #[inline]
    fn book_here(&self, who: Who, now: u64) {
        self.book(who, now);
        events::booked(who as u64, now);
    }

    /// Books the time until now to `task`. Not inlined, so that the way from one metered task
    /// to the next is short.
    #[cold]
    #[inline(never)]
    fn book_until_now(&self, task: &TaskInner) {
        self.book_here(self.who(task), current_ticks());
    }

    fn who(&self, task: &TaskInner) -> Who {
        match task.id().as_u64() {
            id if id == self.idle.load(Relaxed) => Who::Idle,
            id if id == self.gc.load(Relaxed) => Who::Gc,
            id if id == MAIN.load(Relaxed) => Who::Main,
            _ => self.identify(task),
        }
    }

    /// Identifies a task that this CPU has not met yet. `axtask` tells that by the name only, of
    /// which it makes a copy.
    #[cold]
    fn identify(&self, task: &TaskInner) -> Who {
        let (field, who) = match task.name().as_str() {
            "idle" => (&self.idle, Who::Idle),
            "gc" => (&self.gc, Who::Gc),
            _ => return Who::Other,
        };
        field.store(task.id().as_u64(), Relaxed);
        who
    }
}

/// Notes that a metered task leaves this CPU at `now`. Its meter has all time until then.
#[inline]
pub(crate) fn metered_leaves(now: u64) {
    Ledger::of_this_cpu().until.store(now, Relaxed);
}

/// Notes that a metered task enters this CPU. Returns the time from which its stay counts.
/// Interrupts are off, and the current task still is the one that goes.
#[inline]
pub(crate) fn metered_enters() -> Entry {
    let ledger = Ledger::of_this_cpu();
    let before = axtask::current();
    let after_metered = before.task_ext().is_some();
    if !after_metered {
        ledger.book_until_now(&before);
    }
    let ticks = ledger.until.load(Relaxed);
    ledger.until.store(METERED, Relaxed);
    Entry {
        ticks,
        after_metered,
    }
}

/// The entry of a metered task onto its CPU.
pub(crate) struct Entry {
    /// The time from which its stay counts.
    pub ticks: u64,
    /// True if the task that goes carries a meter, too.
    pub after_metered: bool,
}

/// Runs `wait`, in which main gives the CPU away.
pub(crate) fn main_waits<R>(wait: impl FnOnce() -> R) -> R {
    let book = |who| {
        let _guard = NoPreemptIrqSave::new();
        Ledger::of_this_cpu().book_here(who, current_ticks());
    };
    book(Who::Main);
    let done = wait();
    book(Who::Idle);
    done
}

/// Books the time until a timer tick at `now`. Called in an interrupt handler.
pub(crate) fn ticked(now: u64) {
    let hit = axtask::current();
    if hit.task_ext().is_none() {
        let ledger = Ledger::of_this_cpu();
        ledger.book_here(ledger.who(&hit), now);
    }
}

/// Begins the account of a phase, by main. Returns when that was, in ticks.
pub(crate) fn open() -> u64 {
    let _guard = NoPreemptIrqSave::new();
    MAIN.store(axtask::current().id().as_u64(), Relaxed);
    let now = current_ticks();
    OPENED.store(now, Relaxed);
    WINDOW_END.store(u64::MAX, Relaxed);
    for ledger in &LEDGERS {
        ledger
            .booked
            .iter()
            .for_each(|field| field.store(0, Relaxed));
        ledger.until.store(now, Relaxed);
    }
    events::open(now);
    now
}

/// Returns when the window ends, in ticks; later than any time while it is open.
pub(crate) fn window_end() -> u64 {
    WINDOW_END.load(Relaxed)
}

/// Ends the account of a phase. Called by the last metered task to end, with interrupts off since
/// it read the clock; the work of all was done at `now`, the latest of these readings.
pub(crate) fn close(now: u64) {
    WINDOW_END.store(now, Relaxed);
    events::close();
    for ledger in &LEDGERS[..axhal::cpu_num()] {
        ledger.end(OPENED.load(Relaxed), now);
    }
    for who in [Who::Main, Who::Gc, Who::Idle, Who::Other] {
        let of = |ledger: &Ledger| ledger.booked[who as usize].load(Relaxed);
        CLOSED[who as usize].store(LEDGERS.iter().map(of).sum(), Relaxed);
    }
}

/// The sums of the ledgers when they were closed last, by [`Who`].
static CLOSED: [AtomicU64; 4] = [const { AtomicU64::new(0) }; 4];

/// Returns the account that was closed last.
pub(crate) fn closed() -> Unmetered {
    let [main_ns, gc_ns, idle_ns, other_ns] = [Who::Main, Who::Gc, Who::Idle, Who::Other]
        .map(|who| ticks_to_nanos(CLOSED[who as usize].load(Relaxed)));
    Unmetered {
        main_ns,
        gc_ns,
        idle_ns,
        other_ns,
    }
}
