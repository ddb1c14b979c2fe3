//! MLFQ: a multi-level feedback queue.
//!
//!  1. There are [`LEVELS`] levels, 0 the highest. The first ready task of the highest level that
//!     has one runs.
//!  2. A new task starts at level 0.
//!  3. At level i a task has an allotment of 2^i ticks of time on the CPU. When it is used up,
//!     which a tick sees to the nearest tick, the task moves down a level, to the end of that
//!     queue. At the lowest level it stays, and goes to the end.
//!  4. The allotment counts over yields and blocks, in time and not in ticks: a task that gives
//!     way just before every tick moves down all the same.
//!  5. A task that yields or wakes goes to the end of its level. One that is preempted with
//!     allotment left goes to the front.
//!  6. Every `RESET` ticks of a queue all its tasks, ready, running or blocked, return to level 0
//!     with a fresh allotment. So does a task that comes from another queue after that time, and
//!     one that is handed over and has waited since before the last reset of its new queue. (An
//!     idle CPU has no ticks, and no task waits there.)
//!  7. A tick preempts the running task if its allotment is used up and another task is ready, or
//!     if a task is ready at a higher level.
//!  8. A task that yields sits out one pick if another task is ready.
//!  9. Another CPU gets the first task of the highest level that may run there (the crate
//!     `sched-smp`). The task keeps its level and the time that it has used, and goes to the end of
//!     that level.
//!
//! After Corbató (1962), in the form of Arpaci-Dusseau, *Operating Systems: Three Easy Pieces*.
//! Levels and allotments are the PBG report's. Its reset period was 100,000 ticks (1000 s at 100
//! Hz), which never came in its tests. The default here is [`RESET_TICKS`], one second.
//!
//! **Bound.** With n ready tasks each runs again within `RESET` + 2 × n ticks. After a reset all
//! share level 0, where an allotment is one tick, or up to one and a half if it begins between
//! ticks. On several CPUs, with n tasks on all of them, the bound is `RESET` + 4 × n ticks. A task
//! that is handed over is at level 0 within `RESET` ticks, too. If the other queue's last reset
//! came before it waited, the next one comes in time. If not, the last one counts for it (rule 6).
//! At level 0 it waits for a round of each of two queues.
//!
//! **Cost.** Put and pick are one list operation each, with one counter read for both and a
//! find-first-set. Nothing allocates. STEPS: no call takes more than 3 × [`LEVELS`] steps, where a
//! step is a look at a task's link or an iteration of a loop. A reset appends queue to queue, and
//! all tasks learn of it by a number. (Only `remove_task`, which `axtask` never calls, and rule 9
//! search.) The policy needs `axtask/preempt`. `set_priority` returns false: levels are earned.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::queue::Queue;
use sched_core::run_interval::{Account, Accounted, RunIntervals, TickLength};
use sched_core::steps;
use sched_core::task::{InitialState, Task};
use sched_core::units::Counts;

/// A task under [`MlfqScheduler`].
pub type MlfqTask<T> = Task<T, MlfqState>;
/// The multi-level feedback queue. `C` is the clock that it reads, and `RESET` the period of rule 6
/// in timer ticks, at least 1.
pub type MlfqScheduler<T, C = CpuCounter, const RESET: u32 = RESET_TICKS> =
    Adapter<Mlfq<T, C, RESET>>;

/// The number of levels.
pub const LEVELS: usize = 8;
/// The default period of rule 6, in timer ticks: 1 s at 100 Hz.
pub const RESET_TICKS: u32 = 100;

/// The state of MLFQ in a task. Relaxed: see LOCK in [`task`](sched_core::task).
pub struct MlfqState {
    account: Account,
    /// STANDING: the task's level, plus the number of the queue's reset that level and use belong
    /// to. If that is not the queue's last reset, they are void.
    standing: AtomicU32,
    /// The time on the CPU at this level.
    used: AtomicU64,
}

impl InitialState for MlfqState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        standing: AtomicU32::new(0),
        used: AtomicU64::new(0),
    };
}

impl MlfqState {
    /// Returns the level of a task that has seen the last reset of its queue.
    #[inline]
    fn level(&self) -> usize {
        self.standing.load(Relaxed) as usize % LEVELS
    }
}

impl Accounted for MlfqState {
    fn account(&self) -> &Account {
        &self.account
    }
}

/// The allotment at each level (rule 3).
struct Allotments {
    /// EACH: `tick << i` at level i, up to [`MOST`](Self::MOST).
    each: [Counts; LEVELS],
    /// The length of a tick as last learned; zero if it is unknown.
    tick: Counts,
}

impl Allotments {
    /// The largest allotment. A use added to it stays below 2^64, so that a charge need not check
    /// for overflow. It is also the allotment before two ticks have been seen.
    const MOST: Counts = Counts(1 << 62);
    const UNKNOWN: Self = Self {
        each: [Self::MOST; LEVELS],
        tick: Counts::ZERO,
    };

    /// Learns the length of a tick.
    fn learn(&mut self, tick: Counts) {
        if tick != self.tick && tick != Counts::ZERO {
            self.tick = tick;
            for (level, each) in self.each.iter_mut().enumerate() {
                steps::count(1);
                *each = tick.saturating_mul(1 << level).min(Self::MOST);
            }
        }
    }
}

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Mlfq<T, C, const RESET: u32> {
    levels: [Queue<T, MlfqState>; LEVELS],
    /// OCCUPIED: bit i is set exactly if `levels[i]` has a task.
    occupied: u32,
    /// The number of the last reset: [`LEVELS`] times the count of resets, modulo 2^32.
    reset: u32,
    intervals: RunIntervals<T, MlfqState>,
    allotments: Allotments,
    /// True if the running task's allotment was used up at the last tick, whatever its level is now
    /// (rule 3).
    expired: bool,
    ticks_since_reset: u32,
    tick: TickLength,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock, const RESET: u32> Mlfq<T, C, RESET> {
    /// Returns the task's level, or `None` if it has not seen the last reset.
    #[inline]
    fn level(&self, state: &MlfqState) -> Option<usize> {
        let level = state.standing.load(Relaxed).wrapping_sub(self.reset) as usize;
        (level < LEVELS).then_some(level)
    }

    /// Resets a task that has not seen the last reset. Returns its level after that.
    fn catch_up(&self, state: &MlfqState) -> usize {
        self.level(state).unwrap_or_else(|| {
            self.place(state, 0);
            0
        })
    }

    /// Moves the task to this level, with a fresh allotment.
    fn place(&self, state: &MlfqState, level: usize) {
        let standing = self.reset.wrapping_add(level as u32);
        state.standing.store(standing, Relaxed);
        state.used.store(0, Relaxed);
    }

    /// Adds to a task's use if that leaves more than `slack` of its allotment. Returns true if it
    /// did, and false also if the task has not seen the last reset.
    #[inline]
    fn charge_within(&self, state: &MlfqState, run: Counts, slack: Counts) -> bool {
        let Some(level) = self.level(state) else {
            return false;
        };
        // The terms are below 2^62, 2^63 and 2^62 (see `Allotments::MOST`).
        let used = state.used.load(Relaxed) + run.0;
        let within = used + slack.0 < self.allotments.each[level].0;
        if within {
            state.used.store(used, Relaxed);
        }
        within
    }

    /// Adds to a task's use. Returns true if that used up its allotment, or all but `slack` of it
    /// (rules 3 and 4).
    fn charge(&self, state: &MlfqState, run: Counts, slack: Counts) -> bool {
        let level = self.catch_up(state);
        let used_up = !self.charge_within(state, run, slack);
        if used_up {
            self.place(state, (level + 1).min(LEVELS - 1));
        }
        used_up
    }

    /// Accounts for a task from another queue. The resets of that queue do not count here, so the
    /// level stays, unless the task missed a reset of this queue meanwhile (rule 6). A task that
    /// was handed over waited all the while, and missed the last reset if it came since then.
    fn moved(&self, state: &MlfqState, age: Counts, why: EnqueueReason) {
        let ticks = |ticks| self.tick.length().saturating_mul(u64::from(ticks));
        let period = ticks(RESET);
        let missed = match why {
            EnqueueReason::HandedOver => age >= ticks(self.ticks_since_reset),
            _ => period > Counts::ZERO && age >= period,
        };
        if missed {
            self.place(state, 0);
        } else {
            let standing = self.reset.wrapping_add(state.level() as u32);
            state.standing.store(standing, Relaxed);
        }
    }

    /// Puts a task that has seen the last reset at the end of its level.
    #[inline]
    fn push_back(&mut self, task: Arc<MlfqTask<T>>) {
        let level = task.policy_state().level();
        let queue = &mut self.levels[level];
        if queue.is_empty() {
            self.occupied |= 1 << level;
        }
        queue.push_back(task);
    }

    /// Takes the first task of the highest occupied level.
    #[inline]
    fn pop(&mut self) -> Option<Arc<MlfqTask<T>>> {
        // By OCCUPIED the lowest level is empty, too, if no bit is set.
        let level = (self.occupied | 1 << (LEVELS - 1)).trailing_zeros() as usize % LEVELS;
        let queue = &mut self.levels[level];
        let task = queue.pop_front()?;
        if queue.is_empty() {
            self.occupied ^= 1 << level;
        }
        Some(task)
    }

    /// Takes the fast path of a task that yields within its allotment. Returns true if the task
    /// fits. If not, nothing has happened to it.
    #[inline]
    fn try_enqueue_yielded(&mut self, task: &Arc<MlfqTask<T>>, why: EnqueueReason) -> bool {
        if why != EnqueueReason::Yielded || !self.intervals.ran_here(task, why) {
            return false;
        }
        let interval = self.intervals.end(task, C::now());
        let fits = self.charge_within(task.policy_state(), interval, Counts::ZERO);
        if fits {
            self.intervals.set_aside(task); // rule 8
        }
        fits
    }

    /// Enqueues any task by the slow path.
    #[cold]
    #[inline(never)]
    fn enqueue_slow(&mut self, task: Arc<MlfqTask<T>>, why: EnqueueReason) {
        let now = C::now();
        let state = task.policy_state();
        let (interval, why) = if self.intervals.ran_here(&task, why) {
            let interval = self.intervals.end(&task, now);
            self.intervals.let_go();
            (interval, why)
        } else {
            let came = self.intervals.arrived(&task, why, now);
            if came.moved {
                self.moved(state, came.age, why);
            }
            (came.interval, EnqueueReason::Woken) // though it may look like a yield
        };
        let used_up = self.charge(state, interval, Counts::ZERO);
        match why {
            EnqueueReason::Yielded => self.intervals.set_aside_again(task),
            EnqueueReason::Preempted if !used_up && !self.expired => {
                let level = state.level();
                self.occupied |= 1 << level;
                self.levels[level].push_front(task); // rule 5
            }
            _ => self.push_back(task),
        }
    }

    #[inline(never)]
    fn dispatch_after_no_yield(
        &mut self,
        first: Option<Arc<MlfqTask<T>>>,
    ) -> Option<Arc<MlfqTask<T>>> {
        self.intervals.begin_or_idle::<C>(first.as_ref());
        if first.is_none() {
            self.tick.idle();
        }
        first
    }

    fn remove_queued(&mut self, wanted: &May<'_, Self>) -> Option<Arc<MlfqTask<T>>> {
        let mut levels = self.levels.iter_mut().enumerate();
        let (level, removed) =
            levels.find_map(|(level, queue)| Some((level, queue.remove_first(wanted)?)))?;
        if self.levels[level].is_empty() {
            self.occupied &= !(1 << level);
        }
        Some(removed)
    }

    /// Resets all tasks (rule 6). Each sees it by the number in `reset`.
    #[cold]
    #[inline(never)]
    fn reset(&mut self) {
        self.ticks_since_reset = 0;
        self.reset = self.reset.wrapping_add(LEVELS as u32);
        let (highest, lower) = self.levels.split_at_mut(1);
        for queue in lower {
            steps::count(1);
            highest[0].append(queue);
        }
        self.occupied = !highest[0].is_empty() as u32;
    }
}

impl<T, C: Clock, const RESET: u32> Policy for Mlfq<T, C, RESET> {
    type Inner = T;
    type State = MlfqState;
    const NAME: &'static str = "MLFQ";
    const EVENTS: EventLevel = EventLevel::Departures;
    const NEW: Self = {
        assert!(RESET > 0, "the reset period has at least one tick");
        Self {
            levels: [const { Queue::new() }; LEVELS],
            occupied: 0,
            reset: 0,
            intervals: RunIntervals::new(),
            allotments: Allotments::UNKNOWN,
            expired: false,
            ticks_since_reset: 0,
            tick: TickLength::new(),
            clock: PhantomData,
        }
    };

    fn spawned(&mut self, task: Arc<MlfqTask<T>>) {
        self.intervals.adopt(&task);
        self.place(task.policy_state(), 0); // rule 2
        self.push_back(task);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<MlfqTask<T>>, why: EnqueueReason) {
        if !self.try_enqueue_yielded(&task, why) {
            self.enqueue_slow(task, why);
        }
    }

    #[cold]
    #[inline(never)]
    fn current_left(&mut self) {
        if let Some((task, interval)) = self.intervals.left(C::now()) {
            self.charge(task.policy_state(), interval, Counts::ZERO);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<MlfqTask<T>>> {
        self.expired = false;
        let first = self.pop();
        let Some((yielder, now)) = self.intervals.take_yielder() else {
            return self.dispatch_after_no_yield(first);
        };
        let next = match first {
            Some(first) => {
                self.push_back(yielder); // rule 8
                first
            }
            None => yielder,
        };
        self.intervals.begin(&next, now);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<MlfqTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        self.allotments.learn(self.tick.length());
        let interval = RunIntervals::take_uncharged(running, now);
        let half = self.tick.half();
        self.expired |=
            interval.is_none_or(|interval| self.charge(running.policy_state(), interval, half));
        self.ticks_since_reset += 1;
        if self.ticks_since_reset >= RESET {
            self.reset();
        }
        // `main` before its first pick has no account, and gives way to any task.
        let level = self.catch_up(running.policy_state());
        let higher = (self.occupied & ((1 << level) - 1)) != 0;
        Tick::reschedule_if(higher || self.expired && self.occupied != 0) // rule 7
    }

    fn remove(&mut self, task: &Arc<MlfqTask<T>>) -> Option<Arc<MlfqTask<T>>> {
        let yielder = self.intervals.remove_yielder(task);
        let is_task = |other: &MlfqTask<T>| ptr::eq(other, Arc::as_ptr(task));
        let removed = yielder.or_else(|| self.remove_queued(&is_task))?;
        self.intervals.removed(&removed);
        Some(removed)
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        let given = self.remove_queued(&|task| may(task) && take_request())?; // rule 9
        self.catch_up(given.policy_state());
        self.intervals.removed(&given);
        Some(given)
    }
}

#[cfg(test)]
mod tests;
