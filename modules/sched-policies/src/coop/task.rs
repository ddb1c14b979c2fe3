//! The state of the policy in a task, and the part of it that a layer may set.
//!
//! A layer runs coroutines on tasks, or has locks, and knows nothing else of the scheduler. It
//! finds a task's state under any policy, and only COOP has one. On ArceOS it asks
//! `axsched::coop_of(axtask::current().as_task_ref())`, which builds under the registry's
//! schedulers, too, and within every layer.
//!
//! ```
//! use sched_policies::coop::{self, DomainId};
//! use sched_policies::{CoopTask, RrTask};
//!
//! let worker = CoopTask::new("worker");
//! if let Some(coop) = coop::of(&worker) {
//!     coop.serve(DomainId::new(3));
//! }
//! assert_eq!(coop::of(&worker).unwrap().domain(), Some(DomainId::new(3)));
//! assert!(coop::of(&RrTask::<_, 5>::new("worker")).is_none());
//! ```

use core::any::Any;
use core::fmt;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed, Ordering::Release};

use axcoop_summary::{DOMAINS, DomainId, PRIORITIES, Priority};

use super::level::{Level, columns};
use super::source::{CoopSource, SystemCoop};
use crate::rr::SLICE_TICKS;
use sched_core::task::{InitialState, Task};

/// The state of COOP in a task.
pub struct CoopState {
    // A layer or `set_priority` writes these, and scheduler calls read them. Relaxed: each is a
    // word of its own, and a write that is seen late has only a late effect.
    /// The domain that it serves; [`DOMAINS`] for none.
    domain: AtomicU8,
    /// The level of the coroutine that it polls: as it says, or, with [`ASSUMED`], the one that it
    /// was picked for.
    polled: AtomicU8,
    /// DONATED: eight bits for each priority. They count how often the priority is donated to the
    /// task, and [`OWN`] is set if it is the task's own. So the lowest bit belongs to the most
    /// urgent one, as in the summary. A CPU that reads the word during a change sees the old
    /// priority or the new one.
    donated: AtomicU64,

    // Relaxed: see LOCK in `task`.
    /// The number of ticks left of its slice.
    left: AtomicU8,
    /// The level of a midway worker in its list.
    claim: AtomicU8,
    /// STAMP: the number of the task's arrival in this queue.
    stamp: AtomicU64,
}

/// Marks an assumed level. A worker that says nothing is assumed to poll the coroutine that it was
/// picked for, while it has the CPU.
const ASSUMED: u8 = 0x80;

impl InitialState for CoopState {
    const INITIAL: Self = Self {
        domain: AtomicU8::new(DOMAINS as u8),
        polled: AtomicU8::new(Level::NOTHING.to_bits()),
        donated: AtomicU64::new(OWN << shift_of(Priority::DEFAULT)),
        left: AtomicU8::new(SLICE_TICKS as u8),
        claim: AtomicU8::new(Level::NOTHING.to_bits()),
        stamp: AtomicU64::new(0),
    };
}

/// The part for layers. Each call is a load or a store unless it says otherwise. Any task may make
/// it for any task, also in an interrupt.
impl CoopState {
    /// Makes the task a worker of that domain. For a running task this counts at once, for a ready
    /// one when it becomes ready again.
    pub fn serve(&self, domain: DomainId) {
        self.domain.store(domain.index() as u8, Relaxed);
    }

    /// Makes the task an ordinary one again. This counts as [`serve`](Self::serve) does.
    pub fn stop_serving(&self) {
        self.domain.store(DOMAINS as u8, Relaxed);
        self.set_polled(None);
    }

    /// Returns the domain that the task serves.
    pub fn domain(&self) -> Option<DomainId> {
        let domain = usize::from(self.domain.load(Relaxed));
        (domain < DOMAINS).then(|| DomainId::new(domain))
    }

    /// Says that the task, a running worker, polls a coroutine of this priority from now on, or
    /// none. A polled coroutine is not ready and not in the summary, so only the worker can say so.
    /// A worker that is preempted in a poll, or blocks in one, keeps the priority that it has said,
    /// until it says otherwise. It calls this when the priority changes, and with `None` before it
    /// parks or yields. If a worker says nothing, the policy assumes that it polls the coroutine
    /// that it was picked for, until it gives the CPU away by itself.
    #[inline]
    pub fn set_polled(&self, priority: Option<Priority>) {
        let level = priority.map_or(Level::NOTHING, Level::of);
        self.polled.store(level.to_bits(), Relaxed);
    }

    /// Returns the task's own priority, as set by `set_priority`; 4 at first.
    pub fn priority(&self) -> Priority {
        Priority::new(Level::first(self.donated.load(Relaxed) & OWNS).index())
    }

    /// Donates a priority to the task until the returned value is dropped. The task is then
    /// scheduled as early as the task that waits for it would be. A task calls this before it
    /// blocks for something that the other task holds. Several may donate, and the most urgent
    /// priority counts. The task does not pass it on by itself: a layer whose locks form chains
    /// follows the chain.
    ///
    /// For a running or blocked task it counts at the next decision. For a task that is ready on
    /// this CPU it counts when the caller blocks; on another CPU, with its next tick. A returned
    /// priority counts as soon as the task runs.
    ///
    /// **Cost.** One compare-and-swap and one atomic addition. If the task is ready, each queue
    /// also looks at all its ready tasks at the next tick, block or preemption there.
    ///
    /// # Errors
    /// [`TooManyDonors`], if 127 have donated that very priority to it. Nothing has changed.
    pub fn donate(&self, priority: Priority) -> Result<TaskDonation<'_>, TooManyDonors> {
        self.donate_by::<SystemCoop>(priority)
    }

    /// Donates a priority under a scheduler with another source.
    #[doc(hidden)]
    pub fn donate_by<S: CoopSource>(
        &self,
        priority: Priority,
    ) -> Result<TaskDonation<'_>, TooManyDonors> {
        let shift = shift_of(priority);
        let added =
            |donated: u64| (donated >> shift & COUNT != COUNT).then(|| donated + (1 << shift));
        (self.donated.fetch_update(Relaxed, Relaxed, added)).map_err(|_| TooManyDonors)?;
        // A reader that sees this number sees the donated priority.
        S::donations().fetch_add(1, Release);
        Ok(TaskDonation { to: self, priority })
    }

    /// Returns the most urgent priority that is donated to the task at present.
    pub fn donated(&self) -> Option<Priority> {
        let donated = self.donated_level().index();
        (donated < PRIORITIES).then(|| Priority::new(donated))
    }
}

/// DONATED: the bit of the task's own priority, and the bits of the number of donations.
const OWN: u64 = 0x80;
const COUNT: u64 = OWN - 1;
const OWNS: u64 = OWN * u64::from_ne_bytes([1; PRIORITIES]);

/// DONATED: returns the position of the bits of that priority.
const fn shift_of(priority: Priority) -> usize {
    u8::BITS as usize * priority.index()
}

/// A priority that is donated to a task while this value exists.
#[must_use = "it is given back when this is dropped"]
pub struct TaskDonation<'a> {
    to: &'a CoopState,
    priority: Priority,
}

impl Drop for TaskDonation<'_> {
    fn drop(&mut self) {
        let one = 1 << shift_of(self.priority);
        self.to.donated.fetch_sub(one, Relaxed);
    }
}

/// The error of donating a priority that is donated as often as can be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyDonors;

impl fmt::Display for TooManyDonors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("127 others have donated this priority to the task: no more are counted")
    }
}

impl core::error::Error for TooManyDonors {}

/// Returns COOP's state of the task, or `None` under every other policy. The compiler knows which
/// it is.
#[inline(always)]
pub fn of<T, S: 'static>(task: &Task<T, S>) -> Option<&CoopState> {
    (task.policy_state() as &dyn Any).downcast_ref()
}

/// The part for the scheduler.
impl CoopState {
    /// Returns the most urgent donated level, without the task's own (DONATED).
    pub(super) fn donated_level(&self) -> Level {
        Level::first(self.donated.load(Relaxed) & !OWNS)
    }

    /// Returns the level of a task that serves no domain (rules 1 and 8).
    #[inline]
    pub(super) fn level(&self) -> Level {
        Level::first(self.donated.load(Relaxed))
    }

    pub(super) fn set_priority(&self, priority: Priority) {
        let own = OWN << shift_of(priority);
        let exchanged = |donated: u64| Some(donated & !OWNS | own);
        // The closure always returns a value, so this cannot fail.
        let _ = self.donated.fetch_update(Relaxed, Relaxed, exchanged);
    }

    /// Returns the number of its domain, if it has one.
    #[inline]
    pub(super) fn served(&self) -> Option<usize> {
        let domain = usize::from(self.domain.load(Relaxed));
        (domain < DOMAINS).then_some(domain)
    }

    /// Returns the level of a worker without the ready coroutines of its domain (rules 2 and 8).
    pub(super) fn current_claim(&self) -> Level {
        let polled = Level::from_bits(self.polled.load(Relaxed) & !ASSUMED);
        polled.min(self.donated_level())
    }

    /// Returns the level of a running worker, while these coroutines are ready (rule 2).
    pub(super) fn running_level(&self, domain: usize, ready: u64) -> Level {
        let of_domain = Level::first(ready & columns(1 << domain));
        self.current_claim().min(of_domain)
    }

    /// Notes the level that a worker was picked for, if it says nothing (rule 2).
    pub(super) fn picked_for(&self, level: Level) {
        self.polled.store(level.to_bits() | ASSUMED, Relaxed);
    }

    /// Forgets the assumption at a yield or wake (rule 2).
    pub(super) fn forget_assumed(&self) {
        if self.polled.load(Relaxed) & ASSUMED != 0 {
            self.set_polled(None);
        }
    }

    /// Returns the level by which the worker is in its list, from [`current_claim`](Self::current_claim).
    #[inline]
    pub(super) fn claim(&self) -> Level {
        Level::from_bits(self.claim.load(Relaxed))
    }

    pub(super) fn set_claim(&self, claim: Level) {
        self.claim.store(claim.to_bits(), Relaxed);
    }

    #[inline]
    pub(super) fn stamp(&self) -> u64 {
        self.stamp.load(Relaxed)
    }

    #[inline]
    pub(super) fn set_stamp(&self, stamp: u64) {
        self.stamp.store(stamp, Relaxed);
    }

    /// Begins a slice.
    #[inline]
    pub(super) fn renew(&self) {
        self.left.store(SLICE_TICKS as u8, Relaxed);
    }

    /// Makes the first tick end its slice (rule 7).
    pub(super) fn limit_to_one_tick(&self) {
        self.left.store(0, Relaxed);
    }

    /// Returns true if its slice is over.
    #[inline]
    pub(super) fn is_over(&self) -> bool {
        self.left.load(Relaxed) == 0
    }

    /// Takes a tick. Returns true if it ended the slice. It stops at 0, since ticks go on coming
    /// while preemption is disabled.
    pub(super) fn tick(&self) -> bool {
        let left = self.left.load(Relaxed);
        self.left.store(left.saturating_sub(1), Relaxed);
        left == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coop::CoopPerThread;
    use core::sync::atomic::AtomicBool;

    #[test]
    fn most_urgent_donated_priority_counts_until_it_is_returned() {
        let state = CoopState::INITIAL;
        assert_eq!((state.donated(), state.level().index()), (None, 4));
        let donate = |p| state.donate_by::<CoopPerThread>(Priority::new(p)).unwrap();
        let (five, two, again) = (donate(5), donate(2), donate(2));
        assert_eq!(state.level().index(), 2);
        drop(two);
        assert_eq!(
            state.donated(),
            Some(Priority::new(2)),
            "it was donated twice"
        );
        drop(again);
        assert_eq!(state.donated(), Some(Priority::new(5)));
        assert_eq!(state.level().index(), 4, "its own is more urgent");
        drop(five);
        assert_eq!(state.donated(), None);
    }

    #[test]
    fn donating_one_priority_more_than_127_times_is_refused() {
        let state = CoopState::INITIAL;
        let donate = |p| state.donate_by::<CoopPerThread>(Priority::new(p));
        for p in [0, 7, 4] {
            let all: Vec<_> = (0..127).map(|_| donate(p).unwrap()).collect();
            let before = state.donated.load(Relaxed);
            assert_eq!(donate(p).err(), Some(TooManyDonors));
            assert_eq!(state.donated.load(Relaxed), before);
            state.set_priority(Priority::new(p));
            assert_eq!(donate(p).err(), Some(TooManyDonors));
            assert_eq!(state.donated(), Some(Priority::new(p)));
            drop(donate(3).unwrap());
            drop(all);
            assert_eq!((state.donated(), state.priority().index()), (None, p));
            state.set_priority(Priority::DEFAULT);
        }
        let why = format!("{TooManyDonors}");
        assert!(why.starts_with("127 others"), "{why}");
    }

    #[test]
    fn another_cpu_sees_the_old_priority_or_the_new_one() {
        let state = CoopState::INITIAL;
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..200_000 {
                    state.set_priority(Priority::new([2, 6][n % 2]));
                }
                done.store(true, Relaxed);
            });
            while !done.load(Relaxed) {
                assert_eq!(state.donated(), None);
                assert!([2, 4, 6].contains(&state.priority().index()));
            }
        });
    }

    #[test]
    fn a_worker_that_says_nothing_is_assumed_to_poll_what_it_was_picked_for() {
        let state = CoopState::INITIAL;
        state.serve(DomainId::new(0));
        state.picked_for(Level::of(Priority::new(3)));
        assert_eq!(state.current_claim().index(), 3);
        state.forget_assumed();
        assert_eq!(state.current_claim(), Level::NOTHING);
        state.set_polled(Some(Priority::new(6)));
        state.forget_assumed();
        assert_eq!(state.current_claim().index(), 6, "it says so");
        state.stop_serving();
        assert_eq!(state.current_claim(), Level::NOTHING);
        assert_eq!(state.domain(), None);
    }
}
