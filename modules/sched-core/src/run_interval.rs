//! Run intervals: how long a task had the CPU, for policies that act on it.
//!
//! A run interval begins when a task is dispatched and ends when it yields, is preempted, blocks,
//! exits or migrates. (A CPU burst, as of SJF and PBG, has one or more.) When a task leaves by
//! itself, the trait hands out no handle of it. So the queue keeps a handle while the task runs. It
//! releases the handle at the pick that shows that the task has left, before `gc` can wait for it.
//!
//! STAMP: a pick directly follows the put of the task that ran, or the `current_left` that it
//! causes. So the counter is read there, and the next interval begins where the last one ended.
//! Every interval is charged to some task, unless a policy opts out (`set_aside_from`). Only the
//! first pick, and a pick of an idle CPU, follow nothing, and read the counter themselves. (Between
//! a put and its pick no other call has the queue's lock.)
//!
//! YIELDER: a pick finds that handle only if its task has just yielded. Then the handle is the
//! ready task itself: a put of any other kind, and a departure, remove it. So a yielder is set
//! aside without a store.
//!
//! MIGRATION: a helper that runs on this queue's CPU puts a migrating task on the other queue,
//! before this queue's next pick. The other queue then ends the run interval and becomes the task's
//! home. This queue reads `home` afterwards on the same CPU, and leaves the task alone. The task
//! may come back before that pick, while the helper still has the CPU. Then this queue releases its
//! old handle at once, and at the pick the task is a ready one like any other.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::clock::Clock;
use crate::event::EnqueueReason;
use crate::nice::LONGEST_CHARGE;
use crate::ordered::Keyed;
use crate::queue::Slot;
use crate::task::{InitialState, Task};
use crate::units::Counts;

/// The run interval of a task. Relaxed: see LOCK in [`task`](crate::task).
pub struct Account {
    /// The queue that the task is or was last on; 0 before the first.
    home: AtomicU32,
    /// HERE: true while it is ready or runs there, and has not left.
    here: AtomicBool,
    /// While the task runs: the start of the part of its interval that is not accounted for. While
    /// it waits after it was away: the start of that wait.
    since: AtomicU64,
}

impl InitialState for Account {
    const INITIAL: Self = Self {
        home: AtomicU32::new(0),
        here: AtomicBool::new(false),
        since: AtomicU64::new(0),
    };
}

/// A state with an [`Account`] in it.
pub trait Accounted {
    /// Returns the account.
    fn account(&self) -> &Account;
}

impl<D: Accounted> Accounted for Keyed<D> {
    #[inline(always)]
    fn account(&self) -> &Account {
        self.data().account()
    }
}

/// Names a queue, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueId(pub u32);

impl QueueId {
    /// The name of no queue.
    pub const NONE: Self = Self(0);
}

/// The interval and the age of a task that was away.
pub struct Returned {
    /// The length of the interval that ended with the return or before; zero if
    /// none is unaccounted for. No interval counts for more than [`LONGEST_CHARGE`].
    pub interval: Counts,
    /// True if that interval ended with the return: the task ran until now.
    pub ran: bool,
    /// True if the task comes from another queue.
    pub moved: bool,
    /// The queue that the task was on before.
    pub from: QueueId,
    /// The time since the task was last dispatched, charged or woken; a huge time for a task that
    /// never was. It is at least the time that the task was away, or that it has waited.
    pub age: Counts,
}

/// A queue's run intervals: its name, its running task and the time stamp.
pub struct RunIntervals<T, S> {
    /// The name of the queue; `NONE` until its first task comes.
    id: QueueId,
    running: Slot<T, S>,
    /// STAMP: the start of the next interval. Zero if the next pick follows nothing.
    stamp: Counts,
}

impl<T, S: Accounted> Default for RunIntervals<T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Accounted> RunIntervals<T, S> {
    /// Creates the intervals of a queue that has no name yet and on which no task runs.
    pub const fn new() -> Self {
        Self {
            id: QueueId::NONE,
            running: Slot::EMPTY,
            stamp: Counts::ZERO,
        }
    }

    /// Returns the name of this queue.
    #[inline]
    pub fn id(&mut self) -> QueueId {
        static LAST: AtomicU32 = AtomicU32::new(0);
        if self.id == QueueId::NONE {
            self.id = QueueId(LAST.fetch_add(1, Relaxed) + 1);
            debug_assert_ne!(self.id, QueueId::NONE);
        }
        self.id
    }

    /// Returns the queue that `task` is or was last on.
    #[inline]
    pub fn home(task: &Task<T, S>) -> QueueId {
        QueueId(task.policy_state().account().home.load(Relaxed))
    }

    /// Returns the task that has the CPU, or has just yielded (YIELDER). A task that has migrated
    /// meanwhile belongs to another queue and is not returned (MIGRATION). Nor is `main` before its
    /// first pick, since it has no account until then.
    #[inline]
    pub fn running(&self) -> Option<&Task<T, S>> {
        self.running
            .get()
            .filter(|task| Self::home(task) == self.id)
    }

    /// Adopts a new task.
    pub fn adopt(&mut self, task: &Task<T, S>) {
        let account = task.policy_state().account();
        account.home.store(self.id().0, Relaxed);
        account.here.store(true, Relaxed);
    }

    /// Returns the start of the next interval (STAMP).
    #[inline]
    pub fn now<C: Clock>(&self) -> Counts {
        if self.stamp == Counts::ZERO {
            return C::now();
        }
        self.stamp
    }

    /// Begins an interval: `task` has the CPU from `now` on.
    #[inline]
    pub fn begin(&mut self, task: &Arc<Task<T, S>>, now: Counts) {
        let account = task.policy_state().account();
        account.since.store(now.0, Relaxed);
        debug_assert!(account.here.load(Relaxed), "HERE: it was ready");
        self.running.put(task.clone());
    }

    /// Begins an interval for the picked task, if there is one, at a pick that follows no yield.
    pub fn begin_or_idle<C: Clock>(&mut self, picked: Option<&Arc<Task<T, S>>>) {
        match picked {
            Some(task) => self.begin(task, self.now::<C>()),
            None => self.stamp = Counts::ZERO,
        }
    }

    /// Returns true if a task that seems to come back from the CPU does so. A task that has been
    /// elsewhere meanwhile may look like it (see `event::Running`).
    #[inline]
    pub fn ran_here(&self, task: &Task<T, S>, why: EnqueueReason) -> bool {
        ran(why) && Self::home(task) == self.id
    }

    /// Ends the interval of the running task, which has [run here](Self::ran_here). Returns the
    /// part that has not been accounted for. [`let_go`](Self::let_go) or
    /// [`set_aside`](Self::set_aside) follows.
    #[inline]
    pub fn end(&mut self, task: &Task<T, S>, now: Counts) -> Counts {
        self.stamp = now;
        let account = task.policy_state().account();
        debug_assert!(account.here.load(Relaxed), "HERE: it runs");
        interval(account.since.load(Relaxed), now)
    }

    /// Releases the handle of a task that gave way. It is the last step of a put, so that the
    /// compiler need not save registers for a drop that never happens.
    #[inline(always)]
    pub fn let_go(&mut self) {
        self.running.take();
    }

    /// Sets a task that yields aside, in place of [`let_go`](Self::let_go) (YIELDER).
    ///
    /// # Panics
    /// If the handle belongs to another task.
    #[inline(always)]
    pub fn set_aside(&self, task: &Arc<Task<T, S>>) {
        assert!(
            self.running.holds(task),
            "YIELDER: the running task is kept"
        );
    }

    /// Sets a task aside, and notes that it is charged up to `now`. It is for policies that charge
    /// tasks between a put and its pick, too.
    #[inline(always)]
    pub fn set_aside_charged(&self, task: &Arc<Task<T, S>>, now: Counts) {
        self.set_aside(task);
        task.policy_state().account().since.store(now.0, Relaxed);
    }

    /// Sets a task aside, and begins the next interval only `now`. The time since the put belongs
    /// to no task.
    pub fn set_aside_from(&mut self, task: &Arc<Task<T, S>>, now: Counts) {
        self.set_aside(task);
        self.stamp = now;
    }

    /// Sets aside a task that has yielded and whose handle has been released.
    pub fn set_aside_again(&mut self, task: Arc<Task<T, S>>) {
        self.running.put(task);
    }

    /// Takes the task that has been set aside since the last pick, and the time of its put.
    #[inline]
    pub fn take_yielder(&mut self) -> Option<(Arc<Task<T, S>>, Counts)> {
        self.running.take().map(|task| (task, self.stamp))
    }

    /// Takes a ready task out, if it has been set aside. [`removed`](Self::removed) follows.
    pub fn remove_yielder(&mut self, task: &Arc<Task<T, S>>) -> Option<Arc<Task<T, S>>> {
        self.running.holds(task).then(|| self.running.take())?
    }

    /// Adds a task that was away, and ends its interval, if one is open.
    pub fn arrived(&mut self, task: &Task<T, S>, why: EnqueueReason, now: Counts) -> Returned {
        let runs_here = |running: &Task<T, S>| core::ptr::eq(running, task);
        if ran(why) {
            self.running.take();
            self.stamp = now;
        } else if self.running.get().is_some_and(runs_here) {
            self.running.take(); // MIGRATION: it went and came back
        }
        let account = task.policy_state().account();
        let from = Self::home(task);
        // HERE: it is not ready, so it runs, or did until now.
        let ran = account.here.load(Relaxed);
        let since = account.since.load(Relaxed);
        self.adopt(task);
        if why != EnqueueReason::HandedOver {
            account.since.store(now.0, Relaxed);
        }
        Returned {
            ran,
            interval: if ran {
                interval(since, now)
            } else {
                Counts::ZERO
            },
            moved: from != self.id,
            from,
            age: now - Counts(since),
        }
    }

    /// Returns the handle and the interval of the running task, which has left, unless it migrated.
    pub fn left(&mut self, now: Counts) -> Option<(Arc<Task<T, S>>, Counts)> {
        self.stamp = now;
        let task = self.running.take()?;
        let account = task.policy_state().account();
        if Self::home(&task) != self.id {
            return None; // MIGRATION
        }
        account.here.store(false, Relaxed);
        let interval = interval(account.since.load(Relaxed), now);
        Some((task, interval))
    }

    /// Forgets a ready task that was taken out.
    pub fn removed(&mut self, task: &Task<T, S>) {
        task.policy_state().account().here.store(false, Relaxed);
    }

    /// Returns the part of the running task's interval that has not been accounted for, and does
    /// not account for it. Zero if no task runs, or it has migrated.
    pub fn uncharged(&self, now: Counts) -> Counts {
        self.running().map_or(Counts::ZERO, |task| {
            interval(task.policy_state().account().since.load(Relaxed), now)
        })
    }

    /// Accounts for the interval of a task that is not ready, and returns that part. Returns `None`
    /// if the task does not run, and for `main` before its first pick, whose interval has no known
    /// start.
    #[inline]
    pub fn take_uncharged(task: &Task<T, S>, now: Counts) -> Option<Counts> {
        let account = task.policy_state().account();
        if !account.here.load(Relaxed) {
            return None;
        }
        let since = account.since.load(Relaxed);
        account.since.store(now.0, Relaxed);
        Some(interval(since, now))
    }
}

/// Returns true if a task that returns for this reason seems to have had the CPU until now.
#[inline(always)]
const fn ran(why: EnqueueReason) -> bool {
    matches!(why, EnqueueReason::Yielded | EnqueueReason::Preempted)
}

/// Returns the time from `since` to `now`, as [`Counts`] are subtracted, and at most
/// [`LONGEST_CHARGE`]. An interval within that range costs one comparison.
#[inline]
fn interval(since: u64, now: Counts) -> Counts {
    let interval = Counts(now.0.wrapping_sub(since));
    if interval.0 >> LONGEST_CHARGE.0.ilog2() == 0 {
        return interval;
    }
    out_of_range(now - Counts(since))
}

#[cold]
fn out_of_range(interval: Counts) -> Counts {
    interval.min(LONGEST_CHARGE)
}

/// The length of a timer tick, in counts, learned from the ticks themselves. The library knows
/// neither the counter's rate nor the timer's.
///
/// It is the shortest distance between two ticks in the last full window, since disabled interrupts
/// only stretch the distance to a tick. (They can shorten the next one, which is forgotten a window
/// later.) Idle time does not count, since the scheduler is not told of an idle CPU's ticks.
pub struct TickLength {
    last: Option<Counts>,
    shortest: Counts,
    seen: u8,
    length: Counts,
}

impl Default for TickLength {
    fn default() -> Self {
        Self::new()
    }
}

impl TickLength {
    /// The number of tick distances in a window.
    const WINDOW: u8 = 8;
    const NONE: Counts = Counts(u64::MAX);

    /// Creates a length that is zero until a first window of ticks has passed.
    pub const fn new() -> Self {
        Self {
            last: None,
            shortest: Self::NONE,
            seen: 0,
            length: Counts::ZERO,
        }
    }

    /// Learns from a tick at `now`.
    pub fn tick(&mut self, now: Counts) {
        let Some(last) = self.last.replace(now) else {
            return;
        };
        self.shortest = self.shortest.min(now - last);
        self.seen += 1;
        if self.seen == Self::WINDOW || self.length == Counts::ZERO {
            self.length = self.shortest;
        }
        if self.seen == Self::WINDOW {
            self.shortest = Self::NONE;
            self.seen = 0;
        }
    }

    /// Notes that the CPU idles: the distance to the next tick is not learned.
    #[inline]
    pub fn idle(&mut self) {
        self.last = None;
    }

    /// Returns half of the length, to count ticks by time. A task that runs from just after one
    /// tick to the next has run for a little less than a tick.
    #[inline]
    pub const fn half(&self) -> Counts {
        Counts(self.length.0 / 2)
    }

    /// Returns the length of `ticks` ticks, at most the longest charge; zero until two have been
    /// seen.
    #[inline]
    pub fn ticks(&self, ticks: u64) -> Counts {
        self.length.saturating_mul(ticks).min(LONGEST_CHARGE)
    }

    /// Returns the length; zero until two ticks have been seen.
    #[inline]
    pub const fn length(&self) -> Counts {
        self.length
    }
}

#[cfg(test)]
mod tests;
