//! The instrument: it measures what a task did with its CPU.
//!
//! It sits in `axtask`'s own task-extension hook. So every policy, stock ones included, is measured
//! by the same few instructions in the same place.
//!
//! `axtask` calls the hook inside its context switch with interrupts off. It calls `on_leave` of the
//! task that goes, then `on_enter` of the one that comes. It moves the current-task pointer after both.
//!
//! **A stay on the CPU** begins where the one before it ended. An enter after a metered task takes
//! over the time of that task's leave. The time between two metered stays is in the
//! [ledger](crate::ledger). So every instruction is in some account. The part of a switch before
//! the hook belongs to the task that goes, and the part after it to the task that comes.
//!
//! **Context switches** are those with a task of the workload at either end, each counted once. A
//! leave always counts. An enter counts only if the task that goes carries no meter (main, gc,
//! idle) and therefore did not count itself. A task that is picked again while it runs does not
//! switch, and `axtask` calls no hook then.
//!
//! **The window.** A meter may have a deadline. The CPU time after the deadline is kept apart, to
//! the tick of the counter: a stay that extends beyond the deadline is cut there.
//!
//! **The trace.** An image built with `TRACE=y` also keeps when each stay was
//! ([`trace`](crate::trace)). That costs every leave some instructions after the counter was read,
//! so they count for the task that comes.
//!
//! **The events.** An image built with `TRACE=events` keeps each stay in a log
//! ([`events`](crate::events)). That, too, counts for the task that comes.
//!
//! **The cost** of the meter in a context switch from one metered task to another is 41
//! instructions on x86_64, 46 on riscv64 and 44 on aarch64, under any policy. The whole switch
//! under FIFO takes 181, 254 and 206 there. These figures come from
//!
//! ```text
//! make run A=selftest T=meter FEATURES=sched_fifo
//! ```
//!
//! **Order.** Only the CPU that runs a task writes its meter, with interrupts off. Between two CPUs
//! the task itself is handed over through a run queue's lock. So everything is `Relaxed`. The
//! reader of the figures has waited for the end of the task's work at a
//! [latch](crate::platform::Latch), which orders them.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axhal::time::{current_ticks, nanos_to_ticks, ticks_to_nanos};
use axtask::{TaskExt, TaskState};
use extern_trait::extern_trait;
use kernel_guard::NoPreemptIrqSave;

use crate::{
    events::{self, Number},
    ledger,
    measured::Figures,
    trace::{BIN_NS, Recorder},
    window::time_after,
};

/// The running account of one task, in ticks of the hardware counter.
///
/// Aligned, so that tasks on two CPUs do not fight over a cache line.
#[derive(Default)]
#[repr(align(64))]
pub struct Meter {
    /// The deadline, in ticks. It is 0 once the work is done, so that each leave calls
    /// [`leave_late`](Self::leave_late).
    deadline_ticks: AtomicU64,
    entered_ticks: AtomicU64,
    first_run_ticks: AtomicU64,
    run_ticks: AtomicU64,
    /// The time on a CPU before the task was let in.
    waited_ticks: AtomicU64,
    /// The part of `run_ticks` after the deadline.
    late_ticks: AtomicU64,
    dispatches: AtomicU64,
    switches: AtomicU64,
    end: End,
    trace: Recorder,
    number: Number,
}

/// The account at the moment the task's work was done.
#[derive(Default)]
struct End {
    times: AtomicU64,
    at_ticks: AtomicU64,
    run_ticks: AtomicU64,
    late_ticks: AtomicU64,
    dispatches: AtomicU64,
    /// The time on a CPU after that moment, within the window.
    beside_ticks: AtomicU64,
}

impl Meter {
    /// Makes the account of a task in a phase that started at `start_ns`, with a deadline in ticks
    /// or `u64::MAX`. Both are times since boot. Meters are made in the order in which tasks are
    /// submitted.
    pub fn new(start_ns: u64, deadline_ticks: u64) -> Self {
        Self {
            deadline_ticks: deadline_ticks.into(),
            number: events::next_number(),
            trace: Recorder::new(nanos_to_ticks(start_ns), nanos_to_ticks(BIN_NS)),
            ..Self::default()
        }
    }

    /// Starts the account anew, for a task that had to wait to be let in.
    ///
    /// Called by the running task itself.
    pub fn restart(&self) {
        let _guard = NoPreemptIrqSave::new();
        let now = current_ticks();
        let open = now.wrapping_sub(self.entered_ticks.load(Relaxed));
        let waited = self.waited_ticks.load(Relaxed) + self.run_ticks.load(Relaxed) + open;
        self.waited_ticks.store(waited, Relaxed);
        self.entered_ticks.store(now, Relaxed);
        self.first_run_ticks.store(now, Relaxed);
        self.run_ticks.store(0, Relaxed);
        self.late_ticks.store(0, Relaxed);
        self.dispatches.store(1, Relaxed);
        self.switches.store(0, Relaxed);
        self.trace.clear();
        events::let_in(&self.number, now);
    }

    /// Notes that the work is done, and returns when, in ticks. Afterwards only the number of switches
    /// and the time beside the work may change, for example if the task is preempted on its way out.
    ///
    /// Called by the running task itself with interrupts off, so that the parts belong to the same
    /// moment.
    pub fn finish(&self) -> u64 {
        let now = current_ticks();
        let entered = self.entered_ticks.load(Relaxed);
        let open = now.wrapping_sub(entered);
        let late = time_after(self.deadline_ticks.load(Relaxed), entered, now);
        self.deadline_ticks.store(0, Relaxed);
        add(&self.end.times, 1);
        self.end.at_ticks.store(now, Relaxed);
        self.end
            .run_ticks
            .store(self.run_ticks.load(Relaxed) + open, Relaxed);
        self.end
            .late_ticks
            .store(self.late_ticks.load(Relaxed) + late, Relaxed);
        self.end
            .dispatches
            .store(self.dispatches.load(Relaxed), Relaxed);
        self.trace.stay(entered, now);
        self.trace.close();
        events::done(&self.number, now);
        now
    }

    /// Returns the task's number in the log of events.
    #[cfg(feature = "events")]
    pub(crate) fn number(&self) -> &Number {
        &self.number
    }

    /// Notes at a timer tick whether the task is blocked; for a traced task.
    pub fn ticked(&self, is_blocked: impl FnOnce() -> bool) {
        self.trace.ticked(current_ticks(), is_blocked);
    }

    /// Counts a stay that ended after the deadline or after the task's work. The latter is time
    /// beside the work, up to the end of the window: the last task's own reading.
    #[cold]
    #[inline(never)]
    fn leave_late(&self, entered: u64, now: u64) {
        if self.end.times.load(Relaxed) == 0 {
            let deadline = self.deadline_ticks.load(Relaxed);
            add(&self.late_ticks, time_after(deadline, entered, now));
        } else {
            let done = self.end.at_ticks.load(Relaxed);
            let left = now.min(ledger::window_end());
            add(&self.end.beside_ticks, time_after(done, entered, left));
        }
    }

    /// Returns the figures. They are complete once [`finish`](Self::finish) has happened. Only
    /// `switches` and `beside_ns` go on until the task is off its CPU for the last time.
    pub fn figures(&self) -> Figures {
        let run_ticks = self.end.run_ticks.load(Relaxed);
        let late_ticks = self.end.late_ticks.load(Relaxed);
        // Only the stays that are over count: the last one may still be open.
        let beside_ticks = self.waited_ticks.load(Relaxed) + self.end.beside_ticks.load(Relaxed);
        Figures {
            first_run_ns: ticks_to_nanos(self.first_run_ticks.load(Relaxed)),
            finish_ns: ticks_to_nanos(self.end.at_ticks.load(Relaxed)),
            run_ns: ticks_to_nanos(run_ticks),
            run_in_window_ns: ticks_to_nanos(run_ticks - late_ticks),
            dispatches: self.end.dispatches.load(Relaxed),
            switches: self.switches.load(Relaxed),
            ends: self.end.times.load(Relaxed),
            beside_ns: ticks_to_nanos(beside_ticks),
            timeline: self.trace.timeline(ticks_to_nanos),
        }
    }
}

/// The hook that `axtask` keeps for a task, with a reference to its meter.
pub struct Hook(pub Arc<Meter>);

#[extern_trait]
impl TaskExt for Hook {
    fn on_enter(&self) {
        let meter = &*self.0;
        let entry = ledger::metered_enters();
        if meter.dispatches.load(Relaxed) == 0 {
            meter.first_run_ticks.store(entry.ticks, Relaxed);
        }
        meter.entered_ticks.store(entry.ticks, Relaxed);
        meter.trace.entered(entry.ticks);
        add(&meter.dispatches, 1);
        if !entry.after_metered {
            add(&meter.switches, 1);
        }
    }

    fn on_leave(&self) {
        let meter = &*self.0;
        let (entered, now) = (meter.entered_ticks.load(Relaxed), current_ticks());
        ledger::metered_leaves(now);
        add(&meter.run_ticks, now.wrapping_sub(entered));
        if now > meter.deadline_ticks.load(Relaxed) {
            meter.leave_late(entered, now);
        }
        meter.trace.stay(entered, now);
        // Still the current task, and its state is set already.
        let is_blocked = || axtask::current().state() == TaskState::Blocked;
        meter.trace.left(now, is_blocked);
        events::left(&meter.number, now);
        add(&meter.switches, 1);
    }
}

/// Adds without a locked instruction, because there is one writer at a time.
fn add(to: &AtomicU64, amount: u64) {
    to.store(to.load(Relaxed).wrapping_add(amount), Relaxed);
}
