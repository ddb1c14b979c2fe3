//! SJF: shortest job first, where a job is a CPU burst.
//!
//!  1. A burst is the time on the CPU between two points at which a task gives
//!     the CPU away by itself: a yield (unlike in PBG), a block, its exit. Time asleep or
//!     waiting is no part of it; being preempted does not end it.
//!  2. The expected burst of a task is the exponential average of its bursts, the
//!     newest with weight 1/[`AVERAGE_WEIGHT`]; of a new task it is zero, so that a
//!     task is tried before it is judged.
//!  3. Each burst has a due time: when it became ready, plus [`PATIENCE`] times what
//!     is expected of it. The ready task with the earliest due time runs; ties in order
//!     of arrival. Of tasks that are ready together that is shortest job first; a
//!     task that waits is overtaken only by shorter ones, and not for ever.
//!  4. A preempted task keeps its due time, but is not due before the time of its
//!     return. A burst that has outgrown what was expected is due later by `PATIENCE`
//!     times what it has had since beyond that; time that it ran with nobody ready, as
//!     of the ticks, costs nothing.
//!  5. A tick preempts the running task if the first in line is due before the
//!     running one would be, were it put back now; but not the first tick after a
//!     dispatch, so that whoever runs gets on by a whole tick at least.
//!  6. A task that yields sits out one pick if anybody else is ready.
//!
//! Rule 2 is textbook (Silberschatz et al.), the weight that of the PBG report's
//! code. Rule 3 is aging folded into a constant key: all waiting tasks age alike,
//! so their order never changes while they wait. Rule 4 charges each tick once: were
//! the due time computed anew from all that a burst has had, at each preemption, two
//! tasks that yield all the time would delay it by the square of its length.
//!
//! **Bound.** With n ready tasks, one with an expected burst e, or that has had e of
//! its present burst if that is more, runs again after at most `PATIENCE` × e + 2 × n
//! ticks: later arrivals are due later than it, and those before it lose the CPU at
//! the second tick after its due time. A burst of x ticks, with e expected, is done
//! after at most `PATIENCE` × max(e, x) + (x + 1) × (2 × n + 1) ticks, whatever the
//! others do: it gets on by a tick at least in each of its turns, and waits past its
//! due time for one turn of each other. Those of busy yielders (`gc`) are as short as
//! their bursts; beside them the first term is what counts, however many they are.
//! Several CPUs: a due time is by the counter of the CPU that makes the task ready, so
//! counters that disagree add their difference; a task that migrates while it runs
//! takes it along.
//!
//! **Cost.** O(log n) for put and pick, one counter read each. Nothing allocates.
//! Needs `axtask/preempt` for rules 4 and 5. `set_priority` returns false.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Return, Tick, Tracks};
use crate::ordered::{ByKey, Key, Keyed, KeyedTask, Ordered};
use crate::run_interval::{Account, Accounted, RunIntervals};
use crate::task::InitialState;
use crate::units::Counts;

/// A task under [`SjfScheduler`].
pub type SjfTask<T> = KeyedTask<T, SjfState>;
/// The shortest-job-first scheduler; `C` is where it reads the time.
pub type SjfScheduler<T, C = CpuCounter> = Adapter<Sjf<T, C>>;

/// The newest burst counts as one in so many.
pub const AVERAGE_WEIGHT: u64 = 16;

/// For how many times its expected burst a task lets shorter ones overtake it. Eight:
/// a task of 20 ticks beside two that yield all the time takes eight times as long as
/// alone. In the model of `realtime` sixteen makes the average turnaround 1 % less,
/// four 2 % more.
pub const PATIENCE: u64 = 8;

/// What SJF remembers of a task; its due time is the key. Relaxed: see LOCK in
/// [`task`](crate::task).
pub struct SjfState {
    account: Account,
    expected: AtomicU64,
    /// What the present burst has had, over preemptions (rule 1).
    used: AtomicU64,
}

impl InitialState for SjfState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        expected: AtomicU64::new(0),
        used: AtomicU64::new(0),
    };
}

impl Accounted for Keyed<SjfState> {
    fn account(&self) -> &Account {
        &self.data().account
    }
}

impl SjfState {
    fn ran(&self, time: Counts) {
        let used = self.used.load(Relaxed).saturating_add(time.0);
        self.used.store(used, Relaxed);
    }

    /// The burst is over (rule 2).
    fn learn(&self) {
        let (old, burst) = (self.expected.load(Relaxed), self.used.load(Relaxed));
        // The old part is rounded up, so that a steady burst is met exactly.
        let kept = old - old / AVERAGE_WEIGHT;
        self.expected
            .store(kept.saturating_add(burst / AVERAGE_WEIGHT), Relaxed);
        self.used.store(0, Relaxed);
    }
}

/// Rule 3: what a burst of that length lets pass before it.
#[inline]
fn patience(length: u64) -> u64 {
    length.saturating_mul(PATIENCE).min(1 << 62)
}

/// A burst is ready from `now` on (rule 3).
#[inline]
fn set_due<T>(task: &SjfTask<T>, now: Counts) {
    let expected = task.state().data().expected.load(Relaxed);
    task.set_key(Key(now.0).later(patience(expected)));
}

/// Charges a task that is within a burst and stands in no queue (rule 4).
fn charge<T>(task: &SjfTask<T>, time: Counts) {
    let data = task.state().data();
    let expected = data.expected.load(Relaxed);
    let before = data.used.load(Relaxed).max(expected);
    data.ran(time);
    let after = data.used.load(Relaxed).max(expected);
    task.set_key(task.key().later(patience(after - before)));
}

/// See the [module documentation](self).
pub struct Sjf<T, C> {
    ready: Ordered<T, SjfState>,
    /// The task that has just yielded, until the next pick (rule 6).
    yielder: Option<Arc<SjfTask<T>>>,
    intervals: RunIntervals<T, Keyed<SjfState>>,
    /// Whether a tick has hit the running task already (rule 5).
    ticked: bool,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock> Sjf<T, C> {
    /// A burst begins to wait (rule 3).
    #[inline]
    fn begin(&mut self, task: Arc<SjfTask<T>>, now: Counts) {
        set_due(&task, now);
        let key = task.key();
        self.ready.insert(task, key, Key(0));
    }

    /// A burst goes on waiting (rule 4).
    fn go_on(&mut self, task: Arc<SjfTask<T>>, now: Counts) {
        task.set_key(task.key().max(Key(now.0)));
        let key = task.key();
        self.ready.insert(task, key, Key(0));
    }
}

impl<T, C: Clock> Policy for Sjf<T, C> {
    type Inner = T;
    type State = Keyed<SjfState>;
    const NAME: &'static str = "SJF";
    const TRACKS: Tracks = Tracks::Departures;
    const NEW: Self = Self {
        ready: Ordered::NEW,
        yielder: None,
        intervals: RunIntervals::new(),
        ticked: false,
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<SjfTask<T>>) {
        self.intervals.adopt(&task);
        self.begin(task, C::now());
    }

    #[inline]
    fn returned(&mut self, task: Arc<SjfTask<T>>, why: Return) {
        let now = C::now();
        let interval = if self.intervals.ran_here(&task, why) {
            let interval = self.intervals.gives_way(&task, now);
            self.intervals.let_go();
            interval
        } else {
            self.intervals.arrived(&task, why, now).interval
        };
        let data = task.state().data();
        match why {
            Return::Yielded => {
                data.ran(interval);
                data.learn();
                self.yielder = Some(task);
            }
            Return::Preempted => {
                charge(&task, interval);
                self.go_on(task, now);
            }
            // It has migrated while it ran: its burst goes on.
            Return::Woken if interval > Counts::ZERO || data.used.load(Relaxed) > 0 => {
                charge(&task, interval);
                self.go_on(task, now);
            }
            Return::Woken => self.begin(task, now),
        }
    }

    fn left(&mut self) {
        if let Some((task, interval)) = self.intervals.left(C::now()) {
            let data = task.state().data();
            data.ran(interval);
            data.learn();
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<SjfTask<T>>> {
        let now = self.intervals.now::<C>();
        let first = self.ready.pop();
        let next = match (first, self.yielder.take()) {
            (Some(first), Some(yielder)) => {
                self.begin(yielder, now);
                first
            }
            (Some(first), None) => first,
            (None, Some(yielder)) => {
                set_due(&yielder, now);
                yielder
            }
            (None, None) => {
                self.intervals.idle();
                return None;
            }
        };
        self.intervals.begin(&next, now);
        self.ticked = false;
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<SjfTask<T>>) -> Tick {
        let now = C::now();
        let whole = core::mem::replace(&mut self.ticked, true);
        let first = self.ready.first_key();
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick.
            return Tick::reschedule_if(first.is_some());
        };
        let state = running.state();
        let Some(first) = first else {
            state.data().ran(interval);
            running.set_key(running.key().max(Key(now.0)));
            return Tick::Continue;
        };
        charge(running, interval);
        Tick::reschedule_if(whole && first < running.key().max(Key(now.0)))
    }

    fn remove(&mut self, task: &Arc<SjfTask<T>>) -> Option<Arc<SjfTask<T>>> {
        let aside = self.yielder.take_if(|yielder| Arc::ptr_eq(yielder, task));
        let removed = aside.or_else(|| self.ready.remove(task))?;
        self.intervals.removed(&removed);
        Some(removed)
    }
}

#[cfg(test)]
mod tests;
