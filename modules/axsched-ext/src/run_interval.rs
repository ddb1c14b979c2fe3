//! Run intervals: how long a task had the CPU, for policies that act on it.
//!
//! A run interval begins when a task is dispatched and ends when it yields, is
//! preempted, blocks, exits or migrates. (A CPU burst, of which SJF and PBG speak, is
//! of one or more.) When a task leaves by itself the trait
//! hands out no handle of it, so the queue keeps one while the task runs, and
//! lets it go at the pick that shows that the task has left: before `gc` can
//! wait for it.
//!
//! STAMP: a pick follows the put of the task that ran, or the `left` that it causes, at
//! once; so the counter is read there, and the next interval begins where the last one
//! ended: no time between two tasks is nobody's. Only the first pick, and one of an
//! idle CPU, have nothing to follow, and read for themselves.
//!
//! MIGRATION: a task that migrates is put on the other queue, by a helper that
//! runs on this queue's CPU, before this queue's next pick. The other queue then
//! ends the run interval and becomes the task's home, and this one, which reads `home`
//! afterwards on the same CPU, leaves the task alone.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::clock::Clock;
use crate::event::Return;
use crate::queue::Slot;
use crate::task::{InitialState, Task};
use crate::units::Counts;

/// What a task carries of its run intervals. Relaxed: see LOCK in [`task`](crate::task).
pub struct Account {
    /// The queue that the task is or was last on; 0 before the first.
    home: AtomicU32,
    since: AtomicU64,
    running: AtomicBool,
}

impl InitialState for Account {
    const INITIAL: Self = Self {
        home: AtomicU32::new(0),
        since: AtomicU64::new(0),
        running: AtomicBool::new(false),
    };
}

/// A state with an [`Account`] in it.
pub trait Accounted {
    /// That account.
    fn account(&self) -> &Account;
}

/// Names a queue, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueId(pub u32);

impl QueueId {
    pub(crate) const NONE: Self = Self(0);
}

/// What a queue learns of a task that was away.
pub(crate) struct Returned {
    /// The length of the interval that ended with the return or before; zero if
    /// none is unaccounted for.
    pub interval: Counts,
    /// Whether that interval ended with the return: the task ran until now.
    pub ran: bool,
    /// Whether the task comes from another queue.
    pub moved: bool,
    /// The queue that the task was on before.
    pub from: QueueId,
    /// How long ago it was dispatched, or was last charged while it ran; ages for a
    /// task that never was. At least the time that it was away.
    pub age: Counts,
}

/// The queue's side: who runs here.
pub(crate) struct RunIntervals<T, S> {
    /// None until the queue has had a task.
    id: QueueId,
    running: Slot<T, S>,
    /// STAMP. Zero if the next pick follows nothing.
    stamp: Counts,
}

impl<T, S: Accounted> RunIntervals<T, S> {
    pub(crate) const fn new() -> Self {
        Self {
            id: QueueId::NONE,
            running: Slot::EMPTY,
            stamp: Counts::ZERO,
        }
    }

    /// The name of this queue.
    #[inline]
    pub(crate) fn id(&mut self) -> QueueId {
        static LAST: AtomicU32 = AtomicU32::new(0);
        if self.id == QueueId::NONE {
            self.id = QueueId(LAST.fetch_add(1, Relaxed) + 1);
            debug_assert_ne!(self.id, QueueId::NONE);
        }
        self.id
    }

    /// The queue that `task` is or was last on.
    #[inline]
    pub(crate) fn home(task: &Task<T, S>) -> QueueId {
        QueueId(task.state().account().home.load(Relaxed))
    }

    /// The task that has the CPU. `main` has no account before its first pick.
    #[inline]
    pub(crate) const fn running(&self) -> Option<&Task<T, S>> {
        self.running.get()
    }

    /// A new task belongs here.
    pub(crate) fn adopt(&mut self, task: &Task<T, S>) {
        task.state().account().home.store(self.id().0, Relaxed);
    }

    /// When the next interval begins (STAMP).
    #[inline]
    pub(crate) fn now<C: Clock>(&self) -> Counts {
        if self.stamp == Counts::ZERO {
            return C::now();
        }
        self.stamp
    }

    /// `task` has the CPU from `now` on.
    #[inline]
    pub(crate) fn begin(&mut self, task: &Arc<Task<T, S>>, now: Counts) {
        let account = task.state().account();
        account.since.store(now.0, Relaxed);
        account.running.store(true, Relaxed);
        self.running.put(task.clone());
    }

    /// Nobody has the CPU from now on.
    #[inline]
    pub(crate) const fn idle(&mut self) {
        self.stamp = Counts::ZERO;
    }

    /// Whether a task that comes back, as it seems from the CPU, does so: a task that
    /// has been elsewhere meanwhile may look like it (see `event::Running`).
    #[inline]
    pub(crate) fn ran_here(&self, task: &Task<T, S>, why: Return) -> bool {
        why != Return::Woken && Self::home(task) == self.id
    }

    /// The running task gives way, having [run here](Self::ran_here): the part of its
    /// interval that has not been accounted for.
    #[inline]
    pub(crate) fn gives_way(&mut self, task: &Task<T, S>, now: Counts) -> Counts {
        self.running.take();
        self.stamp = now;
        let account = task.state().account();
        debug_assert!(account.running.load(Relaxed), "who runs has an interval");
        account.running.store(false, Relaxed);
        now - Counts(account.since.load(Relaxed))
    }

    /// `task` was away and is ready here: ends its interval, if it has one open.
    pub(crate) fn arrived(&mut self, task: &Task<T, S>, why: Return, now: Counts) -> Returned {
        if why != Return::Woken {
            self.running.take();
            self.stamp = now;
        }
        let account = task.state().account();
        let id = self.id();
        let from = Self::home(task);
        account.home.store(id.0, Relaxed);
        Returned {
            ran: account.running.load(Relaxed),
            interval: end(account, now),
            moved: from != id,
            from,
            age: now - Counts(account.since.load(Relaxed)),
        }
    }

    /// The running task has left: its handle and interval, unless it migrated.
    pub(crate) fn left(&mut self, now: Counts) -> Option<(Arc<Task<T, S>>, Counts)> {
        self.stamp = now;
        let task = self.running.take()?;
        let account = task.state().account();
        if Self::home(&task) != self.id {
            return None; // MIGRATION
        }
        let interval = end(account, now);
        Some((task, interval))
    }

    /// The part of a task's interval that has not been accounted for, which it is not now
    /// either. Zero if the task does not run.
    pub(crate) fn uncharged(task: &Task<T, S>, now: Counts) -> Counts {
        let account = task.state().account();
        if !account.running.load(Relaxed) {
            return Counts::ZERO;
        }
        now - Counts(account.since.load(Relaxed))
    }

    /// The part of a running task's interval that has not been accounted for, which
    /// it is now. `None` if the task does not run, and for `main` before its first
    /// pick, whose interval nobody saw begin.
    #[inline]
    pub(crate) fn take_uncharged(task: &Task<T, S>, now: Counts) -> Option<Counts> {
        let account = task.state().account();
        if !account.running.load(Relaxed) {
            return None;
        }
        Some(now - Counts(replace(&account.since, now.0)))
    }
}

#[inline]
fn replace(field: &AtomicU64, new: u64) -> u64 {
    let old = field.load(Relaxed);
    field.store(new, Relaxed);
    old
}

fn end(account: &Account, now: Counts) -> Counts {
    if !account.running.load(Relaxed) {
        return Counts::ZERO;
    }
    account.running.store(false, Relaxed);
    now - Counts(account.since.load(Relaxed))
}

/// The length of a timer tick, in counts, learned from the ticks themselves: the
/// library is told neither the counter's nor the timer's rate.
///
/// The shortest distance between two ticks in the last full window, since disabled
/// interrupts only stretch the distance to a tick. (They can shorten the next one;
/// that is forgotten a window later.) Idle time is no distance: an idle CPU is not
/// told of its ticks.
pub(crate) struct TickLength {
    last: Option<Counts>,
    shortest: Counts,
    seen: u8,
    length: Counts,
}

impl TickLength {
    /// Ticks per window.
    const WINDOW: u8 = 8;
    const NONE: Counts = Counts(u64::MAX);

    pub(crate) const fn new() -> Self {
        Self {
            last: None,
            shortest: Self::NONE,
            seen: 0,
            length: Counts::ZERO,
        }
    }

    /// A tick came at `now`.
    pub(crate) fn tick(&mut self, now: Counts) {
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

    /// The CPU has nothing to do: the next tick is no measure.
    #[inline]
    pub(crate) fn idle(&mut self) {
        self.last = None;
    }

    /// Half of it, to count ticks by time: what runs from just after one tick to
    /// the next has run for a little less than a tick.
    #[inline]
    pub(crate) const fn half(&self) -> Counts {
        Counts(self.length.0 / 2)
    }

    /// The length; zero until two ticks have been seen.
    #[inline]
    pub(crate) const fn length(&self) -> Counts {
        self.length
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    impl Accounted for Account {
        fn account(&self) -> &Account {
            self
        }
    }

    #[test]
    fn an_interval_begins_where_the_last_one_ended() {
        let mut intervals = RunIntervals::new();
        let [a, b] = ["a", "b"].map(|name| Arc::new(Task::<_, Account>::new(name)));
        [&a, &b].map(|task| intervals.adopt(task));
        let mut had = Counts::ZERO;
        let pick = |intervals: &mut RunIntervals<_, _>, task| {
            VirtualClock::advance(3); // between a put and its pick
            intervals.begin(task, intervals.now::<VirtualClock>());
            VirtualClock::advance(10);
        };
        VirtualClock::set(100);
        pick(&mut intervals, &a);
        assert!(intervals.ran_here(&a, Return::Yielded));
        had += intervals.gives_way(&a, VirtualClock::now());
        pick(&mut intervals, &b);
        had += intervals.left(VirtualClock::now()).unwrap().1;
        pick(&mut intervals, &a);
        had += intervals.gives_way(&a, VirtualClock::now());
        assert_eq!(had, VirtualClock::now() - Counts(103), "all but the start");
        intervals.idle();
        VirtualClock::advance(1000);
        intervals.arrived(&b, Return::Woken, VirtualClock::now());
        pick(&mut intervals, &b);
        let (_, interval) = intervals.left(VirtualClock::now()).unwrap();
        assert_eq!(interval, Counts(10), "idle time is nobody's");
    }

    fn learn(ticks: impl IntoIterator<Item = u64>) -> u64 {
        let mut length = TickLength::new();
        ticks.into_iter().for_each(|at| length.tick(Counts(at)));
        length.length().0
    }

    #[test]
    fn a_tick_is_learned_from_two_and_idle_gaps_do_not_matter() {
        assert_eq!(learn([5]), 0);
        assert_eq!(learn([5, 105]), 100);
        assert_eq!(
            learn([0, 5000, 5100, 5200, 9200, 9300, 9400, 9500, 9600, 9700]),
            100
        );
    }

    #[test]
    fn ticks_before_and_after_idling_are_not_a_ticks_length_apart() {
        let mut length = TickLength::new();
        for at in (0..100).map(|i| i * 5000) {
            length.tick(Counts(at));
            length.tick(Counts(at + 100));
            length.idle();
        }
        assert_eq!(length.length().0, 100);
        length.tick(Counts(1_000_000));
        assert_eq!(length.length().0, 100);
    }

    #[test]
    fn within_a_window_the_length_stays_and_is_the_shortest_at_its_end() {
        // Seven distances of a window, then the eighth.
        let begin = [0, 100, 200, 280, 380, 480, 580, 680];
        assert_eq!(learn(begin), 100);
        assert_eq!(learn(begin.into_iter().chain([780])), 80);
        assert_eq!(learn(begin.into_iter().chain([740])), 60);
    }

    #[test]
    fn a_late_tick_is_forgotten_after_a_window() {
        let regular = (1..=20).map(|i| i * 100);
        assert_eq!(learn([0, 90].into_iter().chain(regular)), 100);
    }
}
