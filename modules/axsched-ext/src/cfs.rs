//! CFS: completely fair scheduling.
//!
//!  1. A task's vruntime grows by its time on the CPU, in counts of the hardware
//!     counter, times 1024 over the weight of its nice value ([`WEIGHTS`](nice::WEIGHTS)).
//!  2. The ready task with the smallest vruntime runs; ties in order of arrival.
//!  3. `min_vruntime` is the smallest vruntime in the queue, the running task's
//!     included. It never decreases, and moves on every pick, put and tick.
//!  4. A new task starts [`GRANULARITY_TICKS`] after `min_vruntime`, as if it had
//!     just had a turn: a chain of tasks that spawn each other cannot keep those
//!     waiting that were there before.
//!  5. A task that wakes is at most [`SLEEPER_CREDIT_TICKS`] behind
//!     `min_vruntime`, however long it slept.
//!  6. A task that yields goes behind the first in line: its vruntime is raised to
//!     that one's. It is never lowered: what the task is ahead, it stays.
//!  7. A task that changes queues keeps its lag: as far as its vruntime is ahead of the
//!     old queue's virtual time as of now, or behind it, so far is it put from the new one's.
//!     The virtual time moves by the service over the weight of all who are ready or run;
//!     it is at most [`SLEEPER_CREDIT_TICKS`] behind `min_vruntime` and
//!     [`GRANULARITY_TICKS`] ahead.
//!  8. `set_priority` takes nice values from −20 to 19. The time until then is
//!     charged by the old weight, and nothing that was charged is forgotten.
//!  9. A tick preempts the running task if it is, to the nearest tick of its own
//!     weight, at least [`GRANULARITY_TICKS`] ahead of the first in line. A waker
//!     preempts nobody: the next tick does.
//! 10. A preempted task keeps its vruntime.
//! 11. Who comes from another queue starts no earlier than this queue's entry line. It
//!     moves half as fast as the virtual time, and is at most [`GRANULARITY_TICKS`] +
//!     [`SLEEPER_CREDIT_TICKS`] behind `min_vruntime` and [`ENTRY_TICKS`] ahead.
//!
//! After Linux's scheduler of that name (Molnár, 2007) and its weights: a step of
//! one nice value is a tenth of the CPU, more or less. Stock axsched 0.3.1 differs
//! in rules 1 (ticks), 3 (moves only in add and remove), 5, 7, 8, 9 and 11. Rule 4 is
//! Linux's `START_DEBIT`. Rule 7 is Linux's with another virtual time: generalised
//! processor sharing's in place of `min_vruntime`, which stands still for a round and
//! then jumps. Rule 11 is ours: what a mover owes on a slow queue it works off on a fast
//! one, and could come back first in line every time; those who stay would starve
//! (`docs/adr/0015-lag-by-virtual-time.md`).
//!
//! **Bounds.** vruntime is 64 bits wide and wraps, on every architecture: it is
//! compared by difference, and one that is older than [`MEMORY`] not at all. Below, all
//! weights are equal, and n counts the tasks, sleepers and movers too, that are on the
//! queue at any time while somebody waits there.
//!
//! - One queue: each runs again after at most (n − 1) × (2 × `GRANULARITY_TICKS` +
//!   `SLEEPER_CREDIT_TICKS` + 1) = 6 × (n − 1) ticks. So it is on several that are
//!   equally loaded, in all scenes of `tests/movers.rs`.
//! - Several queues, whatever their loads: a preempted task within 27 × n ticks, one that
//!   has just come within 48 × n. A preempted one is at most L = `GRANULARITY_TICKS` + 1
//!   ahead of `min_vruntime`, a mover L = 6. The entry line is there, or as far as it
//!   goes, after 2 × (L + 3) × n ticks of service; from then on nobody comes before
//!   `min_vruntime` + 1, and for each tick that this moves, each of n tasks has at most 5.
//!   The longest wait in the lopsided scenes of `tests/movers.rs` is 8.5 × n.
//! - Shares, on one queue and on several that are equally loaded, are within a tenth of
//!   max-min fair where sleepers ask for more than that and never sleep for so long that
//!   they lose more than their credit; else within a tenth of what lies between that and
//!   generalised processor sharing. `tests/movers.rs` defines both.
//! - A yield gains nobody anything, and loses who yields what it was behind (rule 6).
//!
//! **Cost.** O(log n) for put and pick, one counter read each; a multiplication for a
//! charge, no division. A tick, spawn, wake and leave have one, under a lock that is
//! held for little more than that; a change of queues has two more, and a search that is
//! linear in the number of queues. Nothing allocates on up to 64 queues. Needs
//! `axtask/preempt`.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Return, Tick, Tracks};
use crate::nice::{self, NICE_0, weighted};
use crate::ordered::{Key, Keyed, KeyedTask, Ordered};
use crate::run_interval::{Account, Accounted, RunIntervals, TickLength};
use crate::task::InitialState;
use crate::units::Counts;
use crate::virtual_time::{QueueTime, VirtualTime};

/// A task under [`CfsScheduler`].
pub type CfsTask<T> = KeyedTask<T, CfsState>;
/// The completely fair scheduler; `C` is where it reads the time.
pub type CfsScheduler<T, C = CpuCounter> = Adapter<Cfs<T, C>>;

/// How far ahead of the first in line the running task must be for a tick to
/// preempt it, in ticks of its own weight. Two, so that equal tasks change places
/// every few ticks and not at each.
pub const GRANULARITY_TICKS: u64 = 2;

/// How far behind `min_vruntime` a task may wake, in ticks. One: it is first in
/// line, and cannot keep the CPU for longer than a tick on the strength of it.
pub const SLEEPER_CREDIT_TICKS: u64 = 1;

/// How far ahead of `min_vruntime` movers may be made to start, in ticks (rule 11).
/// One: with less, those who come would hold `min_vruntime` where it is.
pub const ENTRY_TICKS: u64 = 1;

/// For how long a task that is away is remembered, in counts: 2.4 hours at 1 GHz.
/// Whoever comes back later is treated as having nothing and owing nothing: no debt
/// is that large, and within this time no `min_vruntime` goes half-way round the line,
/// not even beside a task of nice 19.
pub const MEMORY: Counts = nice::LONGEST_CHARGE;

/// What CFS remembers of a task; its vruntime is the key. Relaxed: see LOCK in
/// [`task`](crate::task).
pub struct CfsState {
    account: Account,
    /// Nice value + 20.
    nice: AtomicU8,
}

impl InitialState for CfsState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        nice: AtomicU8::new(NICE_0),
    };
}

impl Accounted for Keyed<CfsState> {
    fn account(&self) -> &Account {
        &self.data().account
    }
}

#[inline]
fn nice<T>(task: &CfsTask<T>) -> u8 {
    task.state().data().nice.load(Relaxed)
}

fn weight<T>(task: &CfsTask<T>) -> u64 {
    nice::weight(nice(task))
}

/// See the [module documentation](self).
pub struct Cfs<T, C> {
    ready: Ordered<T, CfsState>,
    intervals: RunIntervals<T, Keyed<CfsState>>,
    min_vruntime: Key,
    /// Rule 7. It is moved at every tick.
    time: QueueTime,
    /// The entry line (rule 11).
    entry: Key,
    tick: TickLength,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock> Cfs<T, C> {
    /// What so many ticks add to the vruntime of a task.
    #[inline]
    fn ticks(&self, ticks: u64, nice: u8) -> u64 {
        weighted(self.tick.length().saturating_mul(ticks), nice)
    }

    /// So many ticks before `min_vruntime`.
    fn before_min(&self, ticks: u64) -> Key {
        let ticks = self.ticks(ticks, NICE_0);
        self.min_vruntime.later(ticks.wrapping_neg())
    }

    /// So many ticks after `min_vruntime`.
    fn after_min(&self, ticks: u64) -> Key {
        self.min_vruntime.later(self.ticks(ticks, NICE_0))
    }

    /// Charges a running or just returned task (rule 1).
    #[inline]
    fn charge(&mut self, task: &CfsTask<T>, run: Counts) {
        let state = task.state();
        state.set_key(state.key().later(weighted(run, nice(task))));
        self.time.charged(run);
    }

    /// Rule 3; `also` is the vruntime of a task that is on its way in or out.
    #[inline]
    fn move_min(&mut self, also: Key) {
        let mut min = also;
        if let Some(first) = self.ready.first_key() {
            min = min.min(first);
        }
        if let Some(running) = self.intervals.running() {
            min = min.min(running.state().key());
        }
        if min > self.min_vruntime {
            self.min_vruntime = min;
        }
    }

    fn time(&mut self) -> &'static VirtualTime {
        self.time.of(self.intervals.id())
    }

    /// What has been charged moves the virtual time and the entry line (rules 7 and 11),
    /// and so does what runs and is not charged yet.
    fn move_time(&mut self, now: Counts, uncharged: Counts) {
        let within = self.before_min(SLEEPER_CREDIT_TICKS)..=self.after_min(GRANULARITY_TICKS);
        let moved = self.time.moves(self.intervals.id(), now, uncharged, within);
        let entry = self.entry.later(moved.by / 2);
        let last = self.after_min(ENTRY_TICKS);
        let first = self.before_min(GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS);
        self.entry = entry.max(first).min(last);
    }

    /// Who is ready is about to change: up to now, those share who were. The running
    /// task is not charged: this may be another CPU than its own, on which it may be
    /// migrating, and then it stands in another queue (KEY).
    fn catch_up(&mut self, now: Counts) {
        let running = self.intervals.running();
        let uncharged = running.map_or(Counts::ZERO, |task| RunIntervals::uncharged(task, now));
        self.move_time(now, uncharged);
    }

    /// A task that was away is ready here; it is not in the queue yet.
    #[cold]
    fn arrived(&mut self, task: &Arc<CfsTask<T>>, why: Return, now: Counts) {
        let came = self.intervals.arrived(task, why, now);
        let mut floor = self.before_min(SLEEPER_CREDIT_TICKS); // rule 5
        self.catch_up(now);
        let time = self.time();
        let state = task.state();
        if came.moved {
            let old = VirtualTime::find(came.from);
            let lag = old.map_or(0, |old| state.key().after(old.at(now))) as u64;
            let run = weighted(came.interval, nice(task));
            state.set_key(time.at(now).later(lag).later(run)); // rule 7
            floor = floor.max(self.entry); // rule 11
            if came.ran
                && let Some(old) = old
            {
                // MIGRATION: its old queue will not see it leave
                old.leave_running(weight(task), came.interval);
            }
        }
        if came.age >= MEMORY {
            state.set_key(self.min_vruntime);
        }
        state.set_key(state.key().max(floor));
        time.join(weight(task));
    }
}

#[cfg(test)]
impl<T, C: Clock> Cfs<T, C> {
    /// The virtual time has the weights of who is ready or runs here, and of nobody else.
    fn assert_valid(&mut self) {
        let id = self.intervals.id();
        let running = self.intervals.running().into_iter();
        let running = running.filter(|task| RunIntervals::home(task) == id); // MIGRATION
        let running: u64 = running.map(|task| weight(task)).sum();
        let ready: u64 = self.ready.iter().map(weight).sum();
        assert_eq!(self.time().weight(), ready + running);
        let ahead = self.entry.after(self.after_min(ENTRY_TICKS));
        assert!(ahead <= 0, "rule 11: {ahead}");
    }
}

impl<T, C: Clock> Policy for Cfs<T, C> {
    type Inner = T;
    type State = Keyed<CfsState>;
    const NAME: &'static str = "CFS";
    const TRACKS: Tracks = Tracks::Departures;
    const NEW: Self = Self {
        ready: Ordered::new(),
        intervals: RunIntervals::new(),
        min_vruntime: Key(0),
        time: QueueTime::NEW,
        entry: Key(0),
        tick: TickLength::new(),
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<CfsTask<T>>) {
        self.intervals.adopt(&task);
        let start = self.after_min(GRANULARITY_TICKS); // rule 4
        self.catch_up(C::now());
        self.time().join(weight(&task));
        task.state().set_key(start);
        self.ready.insert(task);
    }

    #[inline]
    fn returned(&mut self, task: Arc<CfsTask<T>>, why: Return) {
        let now = C::now();
        let state = task.state();
        if !self.intervals.ran_here(&task, why) {
            self.arrived(&task, why, now);
        } else {
            let interval = self.intervals.gives_way(&task, now);
            self.charge(&task, interval); // rule 10: and no more
        }
        if why == Return::Yielded
            && let Some(first) = self.ready.first_key()
        {
            state.set_key(state.key().max(first)); // rule 6
        }
        self.move_min(state.key());
        self.ready.insert(task);
    }

    fn left(&mut self) {
        let now = C::now();
        let Some((task, interval)) = self.intervals.left(now) else {
            return; // MIGRATION: what it had here stands in the virtual time
        };
        self.charge(&task, interval);
        self.move_min(task.state().key());
        self.move_time(now, Counts::ZERO);
        self.time().leave(weight(&task));
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<CfsTask<T>>> {
        let Some(next) = self.ready.pop_first() else {
            self.tick.idle();
            self.intervals.idle();
            return None;
        };
        self.intervals.begin(&next, self.intervals.now::<C>());
        self.move_min(next.state().key());
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<CfsTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick has no account: whoever is ready is next.
            return Tick::reschedule_if(!self.ready.is_empty());
        };
        self.charge(running, interval);
        let vruntime = running.state().key();
        self.move_min(vruntime);
        self.move_time(now, Counts::ZERO);
        let nice = nice(running);
        let ticks = self.ticks(GRANULARITY_TICKS, nice);
        let granularity = ticks - weighted(self.tick.half(), nice);
        let is_ahead = |first| vruntime.after(first) >= granularity.max(1) as i64;
        Tick::reschedule_if(self.ready.first_key().is_some_and(is_ahead)) // rule 9
    }

    fn remove(&mut self, task: &Arc<CfsTask<T>>) -> Option<Arc<CfsTask<T>>> {
        let removed = self.ready.remove(task)?;
        self.catch_up(C::now());
        self.time().leave(weight(&removed));
        Some(removed)
    }

    fn set_priority(&mut self, task: &Arc<CfsTask<T>>, nice: isize) -> bool {
        let Some(index) = nice::index(nice) else {
            return false;
        };
        let now = C::now();
        let interval = RunIntervals::take_uncharged(task, now);
        if let Some(interval) = interval {
            self.charge(task, interval); // rule 8
            self.move_min(task.state().key());
        }
        self.catch_up(now);
        let old = weight(task);
        task.state().data().nice.store(index, Relaxed);
        if (interval.is_some() || task.state().is_queued())
            && let Some(time) = VirtualTime::find(RunIntervals::home(task))
        {
            time.reweigh(old, weight(task));
        }
        true
    }
}

#[cfg(test)]
mod tests;
