//! MLFQ: a multi-level feedback queue.
//!
//!  1. There are [`LEVELS`] levels, 0 the highest. The first ready task of the
//!     highest level that has one runs.
//!  2. A new task starts at level 0.
//!  3. At level i a task has an allotment of 2^i ticks of time on the CPU. When it
//!     is used up, which a tick sees to the nearest tick, the task moves down a
//!     level, to the end of that queue; at the lowest level it stays, and goes to
//!     the end.
//!  4. The allotment counts over yields and blocks, in time and not in ticks: a
//!     task that gives way just before every tick moves down all the same.
//!  5. A task that yields or wakes goes to the end of its level; one that is
//!     preempted with allotment left goes to the front.
//!  6. Every `RESET` ticks of a queue all its tasks, ready, running or blocked, are
//!     back at level 0 with a fresh allotment; so is one that comes from another
//!     queue after that time. (An idle CPU has no ticks, and nobody who waits.)
//!  7. A tick preempts the running task if its allotment is used up and somebody
//!     is ready, or if somebody is ready at a higher level.
//!  8. A task that yields sits out one pick if anybody else is ready.
//!
//! After Corbató (1962), in the form of Arpaci-Dusseau, *Operating Systems: Three
//! Easy Pieces*; levels and allotments are the PBG report's. Its reset period was
//! 100,000 ticks (1000 s at 100 Hz), which never came in its tests; the default
//! here is [`RESET_TICKS`], one second.
//!
//! **Bound.** n ready tasks: each runs again within `RESET` + 2 × n ticks, since after
//! a reset all share level 0, where a turn is one tick, or up to one and a half if it
//! begins between ticks.
//!
//! **Cost.** Put and pick are one list operation, one counter read and a
//! find-first-set. Nothing allocates. A reset moves the ready tasks of the lower
//! levels up, O(n) at a tick; running and blocked tasks learn of it by a counter.
//! Needs `axtask/preempt`. `set_priority` returns false: levels are earned.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};

use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Return, Tick, Tracks};
use crate::queue::{Queue, sit_out};
use crate::run_interval::{Account, Accounted, RunIntervals, TickLength};
use crate::task::{InitialState, Task};
use crate::units::Counts;

/// A task under [`MlfqScheduler`].
pub type MlfqTask<T> = Task<T, MlfqState>;
/// The multi-level feedback queue; `C` is where it reads the time, `RESET` the
/// period of rule 6 in timer ticks, at least 1.
pub type MlfqScheduler<T, C = CpuCounter, const RESET: u32 = RESET_TICKS> =
    Adapter<Mlfq<T, C, RESET>>;

/// How many levels there are.
pub const LEVELS: usize = 8;
/// The default period of rule 6, in timer ticks: 1 s at 100 Hz.
pub const RESET_TICKS: u32 = 100;

const LOWEST: u8 = LEVELS as u8 - 1;

/// What MLFQ remembers of a task. Relaxed: see LOCK in [`task`](crate::task).
pub struct MlfqState {
    account: Account,
    level: AtomicU8,
    /// Time on the CPU at this level.
    used: AtomicU64,
    /// The reset that level and use belong to; of an earlier one they are void.
    reset: AtomicU32,
}

impl InitialState for MlfqState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        level: AtomicU8::new(0),
        used: AtomicU64::new(0),
        reset: AtomicU32::new(0),
    };
}

impl Accounted for MlfqState {
    fn account(&self) -> &Account {
        &self.account
    }
}

/// See the [module documentation](self).
pub struct Mlfq<T, C, const RESET: u32> {
    levels: [Queue<T, MlfqState>; LEVELS],
    /// OCCUPIED: bit i is set exactly if `levels[i]` has a task.
    occupied: u32,
    /// The task that has just yielded, until the next pick (rule 8).
    yielder: Option<Arc<MlfqTask<T>>>,
    intervals: RunIntervals<T, MlfqState>,
    tick: TickLength,
    /// The running task's allotment was used up at the last tick, of whatever level
    /// it is at now (rule 3).
    expired: bool,
    ticks_since_reset: u32,
    resets: u32,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock, const RESET: u32> Mlfq<T, C, RESET> {
    /// Tells the task of a reset that it has not heard of; its level, after that.
    #[inline]
    fn catch_up(&self, state: &MlfqState) -> u8 {
        if state.reset.load(Relaxed) != self.resets {
            state.reset.store(self.resets, Relaxed);
            state.level.store(0, Relaxed);
            state.used.store(0, Relaxed);
        }
        state.level.load(Relaxed)
    }

    /// Adds to a task's use; whether that used its allotment up, or all but `slack`
    /// of it (rules 3 and 4).
    #[inline]
    fn charge(&self, state: &MlfqState, run: Counts, slack: Counts) -> bool {
        let level = self.catch_up(state);
        let used = Counts(state.used.load(Relaxed)).saturating_add(run);
        let tick = self.tick.length();
        // Before two ticks have been seen there is no measure of an allotment.
        if tick == Counts::ZERO || used.saturating_add(slack) < tick.saturating_mul(1 << level) {
            state.used.store(used.0, Relaxed);
            return false;
        }
        state.used.store(0, Relaxed);
        state.level.store((level + 1).min(LOWEST), Relaxed);
        true
    }

    /// A task comes from another queue. That one's resets are none of this one's, so
    /// the level stands, unless the task missed one meanwhile (rule 6).
    fn moved(&self, state: &MlfqState, age: Counts) {
        let period = self.tick.length().saturating_mul(u64::from(RESET));
        let reset = if period > Counts::ZERO && age >= period {
            self.resets.wrapping_sub(1)
        } else {
            self.resets
        };
        state.reset.store(reset, Relaxed);
    }

    #[inline]
    fn push_back(&mut self, task: Arc<MlfqTask<T>>) {
        let level = self.catch_up(task.state()) as usize;
        self.occupied |= 1 << level;
        self.levels[level].push_back(task);
    }

    /// Takes the first task of the highest occupied level.
    #[inline]
    fn pop(&mut self) -> Option<Arc<MlfqTask<T>>> {
        if self.occupied == 0 {
            return None;
        }
        let level = self.occupied.trailing_zeros() as usize % LEVELS;
        let task = self.levels[level].pop_front();
        if self.levels[level].is_empty() {
            self.occupied &= !(1 << level);
        }
        task
    }

    /// Rule 6. Tasks that are not ready learn of it from `resets`.
    #[cold]
    fn reset(&mut self) {
        self.ticks_since_reset = 0;
        self.resets = self.resets.wrapping_add(1);
        for level in 1..LEVELS {
            while let Some(task) = self.levels[level].pop_front() {
                self.levels[0].push_back(task);
            }
        }
        self.occupied = !self.levels[0].is_empty() as u32;
    }
}

impl<T, C: Clock, const RESET: u32> Policy for Mlfq<T, C, RESET> {
    type Inner = T;
    type State = MlfqState;
    const NAME: &'static str = "MLFQ";
    const TRACKS: Tracks = Tracks::Departures;
    const NEW: Self = {
        assert!(RESET > 0, "the reset period has at least one tick");
        Self {
            levels: [const { Queue::new() }; LEVELS],
            occupied: 0,
            yielder: None,
            intervals: RunIntervals::new(),
            tick: TickLength::new(),
            expired: false,
            ticks_since_reset: 0,
            resets: 0,
            clock: PhantomData,
        }
    };

    fn spawned(&mut self, task: Arc<MlfqTask<T>>) {
        self.intervals.adopt(&task);
        task.state().reset.store(self.resets, Relaxed); // rule 2
        self.push_back(task);
    }

    #[inline]
    fn returned(&mut self, task: Arc<MlfqTask<T>>, why: Return) {
        let now = C::now();
        let state = task.state();
        let interval = if self.intervals.ran_here(&task, why) {
            let interval = self.intervals.gives_way(&task, now);
            self.intervals.let_go();
            interval
        } else {
            let came = self.intervals.arrived(&task, why, now);
            if came.moved {
                self.moved(state, came.age);
            }
            came.interval
        };
        let used_up = self.charge(state, interval, Counts::ZERO);
        match why {
            Return::Yielded => self.yielder = Some(task),
            Return::Preempted if !used_up && !self.expired => {
                let level = self.catch_up(state) as usize;
                self.occupied |= 1 << level;
                self.levels[level].push_front(task); // rule 5
            }
            Return::Preempted | Return::Woken => self.push_back(task),
        }
    }

    fn left(&mut self) {
        if let Some((task, interval)) = self.intervals.left(C::now()) {
            self.charge(task.state(), interval, Counts::ZERO);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<MlfqTask<T>>> {
        self.expired = false;
        let (first, yielder) = (self.pop(), self.yielder.take());
        let Some(next) = sit_out(first, yielder, |yielder| self.push_back(yielder)) else {
            self.tick.idle();
            self.intervals.idle();
            return None;
        };
        self.intervals.begin(&next, self.intervals.now::<C>());
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<MlfqTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        let interval = RunIntervals::take_uncharged(running, now);
        let half = self.tick.half();
        self.expired |=
            interval.is_none_or(|interval| self.charge(running.state(), interval, half));
        self.ticks_since_reset += 1;
        if self.ticks_since_reset >= RESET {
            self.reset();
        }
        // `main` before its first pick has no account, and gives way to anybody.
        let level = self.catch_up(running.state());
        let higher = (self.occupied & ((1 << level) - 1)) != 0;
        Tick::reschedule_if(higher || self.expired && self.occupied != 0) // rule 7
    }

    fn remove(&mut self, task: &Arc<MlfqTask<T>>) -> Option<Arc<MlfqTask<T>>> {
        let aside = self.yielder.take_if(|yielder| Arc::ptr_eq(yielder, task));
        if aside.is_some() {
            self.intervals.removed(task);
            return aside;
        }
        for (level, queue) in self.levels.iter_mut().enumerate() {
            if let Some(task) = queue.remove(task) {
                if queue.is_empty() {
                    self.occupied &= !(1 << level);
                }
                self.intervals.removed(&task);
                return Some(task);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
