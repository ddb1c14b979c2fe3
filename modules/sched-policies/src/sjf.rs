//! SJF: shortest job first, where a job is a CPU burst.
//!
//!  1. A burst is the time on the CPU between two points at which a task gives the CPU away by
//!     itself. That is a yield (unlike in PBG), a block, or its exit. Time asleep or waiting is not
//!     part of it, and a preemption does not end it.
//!  2. The expected burst of a task is the exponential average of its bursts, the newest with
//!     weight 1/[`AVERAGE_WEIGHT`]. A new task has 0, so that it is tried before it is judged.
//!  3. Each burst has a due time: the time at which it became ready, plus [`PATIENCE`] times its
//!     expected length. Ready tasks are in [`classes`](sched_core::classes), two per octave, by how
//!     far off their due times were when they came there. Among the first tasks of the classes the
//!     one with the earliest due time runs. Within a class, and among tasks that are due at once,
//!     the one that came first runs. So the picked task is due later than another by at most half
//!     of the other's wait. Among tasks that are ready together that is shortest job first, if one
//!     is longer than the other by half. A waiting task is overtaken only by shorter ones, and not
//!     for ever. No due time is further off than [`LONGEST`] counts, 13.7 minutes at 1 GHz.
//!  4. A preempted task keeps its due time, but is not due before the time of its return. A burst
//!     that has outgrown its expected length is due later by `PATIENCE` times what it has had since
//!     beyond that. Time that it ran while no task was ready, as the ticks found it, costs nothing.
//!  5. A tick preempts the running task if the first task in line is due before the running one
//!     would be after a put at this moment. The first tick after a dispatch does not, so that a
//!     dispatched task makes progress by a whole tick at least.
//!  6. A task that yields sits out one pick if another task is ready.
//!  7. Another CPU gets the task that would run first here among those that may run there (the
//!     crate `sched-smp`), within a class the one that came first. Its burst and its wait continue
//!     there: it keeps its due time, and an overdue task is due at once.
//!
//! Rule 2 is textbook (Silberschatz et al.), with the weight of the PBG report's code. Rule 3 is
//! aging folded into a constant key: all waiting tasks age alike, so their order never changes
//! while they wait. Rule 4 charges each tick once. If each preemption computed the due time anew
//! from all that a burst has had, two tasks that yield constantly would delay it by the square of
//! its length.
//!
//! **Bound.** Half a class means the width of a class, which is at most half of the waits in it, or
//! [`SHORTEST`] counts if that is more. Let e be a task's expected burst, or what it has had of its
//! present burst if that is more. With n ready tasks it runs again after at most `PATIENCE` × 3/2 ×
//! e + 2 × n ticks, and `SHORTEST` counts. Once it is overdue by half a class, each newcomer is due
//! later than the first task of its class. The tasks before it lose the CPU at the second tick
//! after that.
//!
//! A burst of x ticks, with e expected, is done after a bounded time, whatever the other tasks do.
//! It is at most `PATIENCE` × 3/2 × max(e, x) + (x + 1) × (2 × n + 1) ticks, and x + 1 times
//! `SHORTEST` counts. The burst makes progress by at least a tick each time it runs. It waits past
//! its due time for half a class and one dispatch of each other task. (The wait past its due time
//! does not count again: the class of its next wait is that of the rest, and of what it has had
//! since.) The dispatches of busy yielders (`gc`) are as short as their bursts. Beside them the
//! first term is what counts, however many they are.
//!
//! On several CPUs a task that is handed over keeps its due time, so only its wait past that may
//! come twice. With n tasks on all CPUs a task runs again after at most `PATIENCE` × 3/2 × e + 4 ×
//! n ticks, and `SHORTEST` counts. A task that is overdue when it is handed over is due at once in
//! the other queue. Each task that was there before it has at most two ticks, and it stays until it
//! has run.
//!
//! STEADY: a yield costs more if its burst changes the class of the task. That extra time is not
//! charged to the next burst. Otherwise it could lift a task whose bursts are just below the border
//! of two classes over that border. The task would then go back and forth for ever, and every
//! second yield would be slow.
//!
//! Several CPUs: a due time is by the counter of the CPU that makes the task ready. If two counters
//! disagree, add their difference. A task that migrates while it runs keeps its due time.
//!
//! **Cost.** A put and the pick after it have one counter read, and one list operation each.
//! Nothing allocates. STEPS: no call takes more than [`CLASSES`] + 5 steps, where a step is a look
//! at a task's link or at the first task of a class. A pick and a tick look at the classes that
//! have a task. (Only `remove_task`, which `axtask` never calls, and rule 7 search.) The policy
//! needs `axtask/preempt` for rules 4 and 5. `set_priority` returns false.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

#[cfg(doc)]
use sched_core::classes::CLASSES;
use sched_core::classes::{Class, Classes, Due, LONGEST, SHORTEST};
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::ordered::Key;
use sched_core::run_interval::{Account, Accounted, RunIntervals};
use sched_core::task::{InitialState, Task};
use sched_core::units::Counts;

/// A task under [`SjfScheduler`].
pub type SjfTask<T> = Task<T, SjfState>;
/// The shortest-job-first scheduler. `C` is the clock that it reads.
pub type SjfScheduler<T, C = CpuCounter> = Adapter<Sjf<T, C>>;

/// The inverse of the newest burst's weight in the average (rule 2).
pub const AVERAGE_WEIGHT: u64 = 16;

/// The number of expected bursts for which a task lets shorter ones overtake it. Eight: a task of
/// 20 ticks beside two that yield all the time takes eight times as long as alone. In the model of
/// `realtime` sixteen makes the average turnaround 1 % less, and four 2 % more.
pub const PATIENCE: u64 = 8;

/// The state of SJF in a task. Relaxed: see LOCK in [`task`](sched_core::task).
pub struct SjfState {
    account: Account,
    /// The due time of its present burst, which never changes while the task is in a class.
    due: AtomicU64,
    /// The expected length of its bursts, at most [`LONGEST_EXPECTED`].
    expected: AtomicU64,
    /// The time of the present burst so far, over preemptions (rule 1).
    used: AtomicU64,
    /// WAIT: the class of a burst of the expected length, the shortest length in that class, and
    /// the width of the class.
    class: AtomicU32,
    from: AtomicU64,
    width: AtomicU64,
}

impl InitialState for SjfState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        due: AtomicU64::new(0),
        expected: AtomicU64::new(0),
        used: AtomicU64::new(0),
        class: AtomicU32::new(Class::FIRST.to_index()),
        from: AtomicU64::new(0),
        width: AtomicU64::new(SHORTEST / PATIENCE),
    };
}

impl Accounted for SjfState {
    fn account(&self) -> &Account {
        &self.account
    }
}

impl Due for SjfState {
    #[inline]
    fn due(&self) -> Key {
        Key(self.due.load(Relaxed))
    }
}

/// The expected length of a burst that waits for the [`LONGEST`] time.
const LONGEST_EXPECTED: u64 = LONGEST / PATIENCE;

/// Returns the expected length after a burst whose expected length was `old` (rule 2).
#[inline]
const fn average(old: u64, burst: Counts) -> u64 {
    // The old part is rounded up, so that a steady burst is met exactly.
    old - old / AVERAGE_WEIGHT + burst.0 / AVERAGE_WEIGHT
}

/// Returns the wait of a burst of that length (rule 3).
#[inline]
fn patience(length: u64) -> u64 {
    length.saturating_mul(PATIENCE).min(LONGEST)
}

impl SjfState {
    #[inline]
    fn set_due(&self, due: Key) {
        self.due.store(due.0, Relaxed);
    }

    /// Begins a burst that is ready from `now` on (rule 3). Returns its class.
    #[inline]
    fn begin(&self, now: Counts) -> Class {
        self.set_due(Key(now.0).later(PATIENCE * self.expected.load(Relaxed)));
        Class::from_index(self.class.load(Relaxed))
    }

    /// Continues the wait of a burst (rule 4). Returns its class. An overdue burst is due now.
    fn go_on(&self, now: Counts) -> Class {
        let wait = self.due().after(Key(now.0)).clamp(0, LONGEST as i64) as u64;
        self.set_due(Key(now.0).later(wait));
        Class::of(wait)
    }

    fn ran(&self, time: Counts) {
        let used = self.used.load(Relaxed).saturating_add(time.0);
        self.used.store(used, Relaxed);
    }

    /// Charges a task that is within a burst and in no class (rule 4).
    fn charge(&self, time: Counts) {
        let expected = self.expected.load(Relaxed);
        let before = self.used.load(Relaxed).max(expected);
        self.ran(time);
        let after = self.used.load(Relaxed).max(expected);
        self.set_due(self.due().later(patience(after - before)));
    }

    /// Ends the burst after `time` more (rule 2).
    fn learn(&self, time: Counts) {
        self.ran(time);
        let burst = Counts(self.used.load(Relaxed));
        self.used.store(0, Relaxed);
        let expected = average(self.expected.load(Relaxed), burst).min(LONGEST_EXPECTED);
        self.expected.store(expected, Relaxed);
        let class = Class::of(PATIENCE * expected);
        let (shortest, width) = class.shortest_and_width();
        self.class.store(class.to_index(), Relaxed);
        self.from.store(shortest / PATIENCE, Relaxed);
        self.width.store(width / PATIENCE, Relaxed);
    }

    /// Ends a burst that has not been charged, if its class stays. Returns true if it does.
    #[inline]
    fn learn_within(&self, burst: Counts) -> bool {
        let expected = average(self.expected.load(Relaxed), burst);
        let above = expected.wrapping_sub(self.from.load(Relaxed));
        let within = self.used.load(Relaxed) == 0 && above < self.width.load(Relaxed);
        if within {
            self.expected.store(expected, Relaxed);
        }
        within
    }
}

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Sjf<T, C> {
    ready: Classes<T, SjfState>,
    intervals: RunIntervals<T, SjfState>,
    /// True if a tick has hit the running task since its dispatch (rule 5).
    ticked: bool,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock> Sjf<T, C> {
    /// Takes the fast path of a task that yields after a burst of its class. Returns true if the
    /// task fits. If not, nothing has happened to it.
    #[inline]
    fn try_enqueue_yielded(&mut self, task: &Arc<SjfTask<T>>, why: EnqueueReason) -> bool {
        if why != EnqueueReason::Yielded || !self.intervals.ran_here(task, why) {
            return false;
        }
        let burst = self.intervals.end(task, C::now());
        let fits = task.policy_state().learn_within(burst);
        if fits {
            self.intervals.set_aside(task); // rule 6
        }
        fits
    }

    /// Enqueues any task by the slow path.
    #[cold]
    #[inline(never)]
    fn enqueue_slow(&mut self, task: Arc<SjfTask<T>>, why: EnqueueReason) {
        let ran_here = self.intervals.ran_here(&task, why);
        if ran_here && why == EnqueueReason::Yielded {
            // The fast path has read the counter.
            let burst = self.intervals.end(&task, self.intervals.now::<C>());
            task.policy_state().learn(burst);
            return self.intervals.set_aside_from(&task, C::now()); // STEADY
        }
        let now = C::now();
        let interval = if ran_here {
            let interval = self.intervals.end(&task, now);
            self.intervals.let_go();
            interval
        } else {
            self.intervals.arrived(&task, why, now).interval
        };
        let state = task.policy_state();
        // A task that has migrated while it ran continues its burst, and one that was handed over
        // continues its wait (rule 7).
        let has_begun = interval > Counts::ZERO || state.used.load(Relaxed) > 0;
        let is_within = ran_here || has_begun || why == EnqueueReason::HandedOver;
        let class = if is_within {
            state.charge(interval);
            state.go_on(now)
        } else {
            state.begin(now)
        };
        self.ready.push(task, class);
    }

    /// Ends a pick that follows no yield.
    #[inline(never)]
    fn dispatch_after_no_yield(
        &mut self,
        first: Option<Arc<SjfTask<T>>>,
    ) -> Option<Arc<SjfTask<T>>> {
        self.intervals.begin_or_idle::<C>(first.as_ref());
        first
    }
}

impl<T, C: Clock> Policy for Sjf<T, C> {
    type Inner = T;
    type State = SjfState;
    const NAME: &'static str = "SJF";
    const EVENTS: EventLevel = EventLevel::Departures;
    const NEW: Self = Self {
        ready: Classes::new(),
        intervals: RunIntervals::new(),
        ticked: false,
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<SjfTask<T>>) {
        self.intervals.adopt(&task);
        let class = task.policy_state().begin(C::now());
        self.ready.push(task, class);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<SjfTask<T>>, why: EnqueueReason) {
        if !self.try_enqueue_yielded(&task, why) {
            self.enqueue_slow(task, why);
        }
    }

    #[cold]
    #[inline(never)]
    fn current_left(&mut self) {
        if let Some((task, interval)) = self.intervals.left(C::now()) {
            task.policy_state().learn(interval);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<SjfTask<T>>> {
        self.ticked = false;
        let first = self.ready.pop();
        let Some((yielder, now)) = self.intervals.take_yielder() else {
            return self.dispatch_after_no_yield(first);
        };
        let class = yielder.policy_state().begin(now);
        let next = match first {
            Some(first) => {
                self.ready.push(yielder, class); // rule 6
                first
            }
            None => yielder,
        };
        self.intervals.begin(&next, now);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<SjfTask<T>>) -> Tick {
        let now = C::now();
        let whole = core::mem::replace(&mut self.ticked, true);
        let first = self.ready.first_due();
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick.
            return Tick::reschedule_if(first.is_some());
        };
        let state = running.policy_state();
        let Some(first) = first else {
            state.ran(interval);
            state.set_due(state.due().max(Key(now.0)));
            return Tick::Continue;
        };
        state.charge(interval);
        Tick::reschedule_if(whole && first < state.due().max(Key(now.0)))
    }

    fn remove(&mut self, task: &Arc<SjfTask<T>>) -> Option<Arc<SjfTask<T>>> {
        let yielder = self.intervals.remove_yielder(task);
        let removed = yielder.or_else(|| self.ready.remove(task))?;
        self.intervals.removed(&removed);
        Some(removed)
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        let given = self.ready.remove_first(may, take_request)?; // rule 7
        self.intervals.removed(&given);
        Some(given)
    }
}

#[cfg(test)]
mod tests;
