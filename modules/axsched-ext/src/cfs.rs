//! CFS: completely fair scheduling.
//!
//!  1. A task's vruntime grows by its time on the CPU, in counts of the hardware
//!     counter, times 1024 over the weight of its nice value ([`WEIGHTS`]).
//!  2. The ready task with the smallest vruntime runs; ties in order of arrival.
//!  3. `min_vruntime` is the smallest vruntime in the queue, the running task's
//!     included. It never decreases, and moves on every pick, put and tick.
//!  4. A new task starts [`GRANULARITY_TICKS`] after `min_vruntime`, as if it had
//!     just had a turn: a chain of tasks that spawn each other cannot keep those
//!     waiting that were there before.
//!  5. A task that wakes is at most [`SLEEPER_CREDIT_TICKS`] behind
//!     `min_vruntime`, however long it slept.
//!  6. A task that yields goes behind the first in line: its vruntime is raised to
//!     that one's.
//!  7. A task that changes queues keeps its distance from `min_vruntime`, not its
//!     vruntime: the queues' lines of time have nothing to do with each other. What
//!     it is ahead shrinks by the time since it ran, as it would have at the old one.
//!  8. `set_priority` takes nice values from −20 to 19. The time until then is
//!     charged by the old weight, and nothing that was charged is forgotten.
//!  9. A tick preempts the running task if it is, to the nearest tick of its own
//!     weight, at least [`GRANULARITY_TICKS`] ahead of the first in line. A waker
//!     preempts nobody: the next tick does.
//! 10. A preempted task keeps its vruntime.
//!
//! After Linux's scheduler of that name (Molnár, 2007) and its weights: a step of
//! one nice value is a tenth of the CPU, more or less. Stock axsched 0.3.1 differs
//! in rules 1 (ticks), 3 (moves only in add and remove), 5, 7, 8 and 9. Rule 4 is
//! Linux's `START_DEBIT`.
//!
//! **Bounds.** vruntime is 64 bits wide and wraps, on every architecture: it is
//! compared by difference, and one that is older than [`MEMORY`] not at all. Among n
//! ready tasks of equal weight each runs again after at most (n − 1) ×
//! (2 × `GRANULARITY_TICKS` + `SLEEPER_CREDIT_TICKS` + 1) ticks.
//!
//! **Cost.** O(log n) for put and pick, one counter read each; a multiplication
//! for a charge, no division. Nothing allocates. Needs `axtask/preempt`.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI64, AtomicU8, Ordering::Relaxed};

use crate::burst::{Account, Accounted, Bursts, TickLength};
use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Remember, Return, Tick};
use crate::ordered::{Key, Keyed, KeyedTask, Ordered};
use crate::task::Fresh;
use crate::units::Counts;

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

/// For how long a task that is away is remembered, in counts: 2.4 hours at 1 GHz.
/// Whoever comes back later is treated as having nothing and owing nothing: no debt
/// is that large, and within this time no `min_vruntime` goes half-way round the line,
/// not even beside a task of nice 19.
pub const MEMORY: Counts = Counts(1 << 43);

/// The weights of the nice values from −20 to 19, as in Linux's
/// `sched_prio_to_weight`: each is about 1.25 times the next.
pub const WEIGHTS: [u32; 40] = [
    88761, 71755, 56483, 46273, 36291, 29154, 23254, 18705, 14949, 11916, //
    9548, 7620, 6100, 4904, 3906, 3121, 2501, 1991, 1586, 1277, //
    1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, //
    110, 87, 70, 56, 45, 36, 29, 23, 18, 15,
];

/// The weight at which vruntime is time.
const NORMAL_WEIGHT: u64 = 1024;

/// Place of nice 0 in [`WEIGHTS`].
const NICE_0: u8 = 20;

/// vruntime is in counts over 2^12: a heavy task's burst of a few counts, as a slow
/// counter has them, must not be charged as nothing.
const FRACTION_BITS: u32 = 12;

/// `NORMAL_WEIGHT / weight` in such fractions, over 2^32, so that a charge needs no
/// division.
const FACTORS: [u64; 40] = {
    let mut factors = [0; 40];
    let mut i = 0;
    while i < 40 {
        factors[i] = (NORMAL_WEIGHT << (32 + FRACTION_BITS)) / WEIGHTS[i] as u64;
        i += 1;
    }
    factors
};

/// What CFS remembers of a task; its vruntime is the key. Relaxed: see LOCK in
/// [`task`](crate::task).
pub struct CfsState {
    account: Account,
    /// Nice value + 20.
    nice: AtomicU8,
    /// vruntime − `min_vruntime`, as of the last dispatch or charge (rule 7).
    lag: AtomicI64,
}

impl Fresh for CfsState {
    const FRESH: Self = Self {
        account: Account::FRESH,
        nice: AtomicU8::new(NICE_0),
        lag: AtomicI64::new(0),
    };
}

impl Accounted for Keyed<CfsState> {
    fn account(&self) -> &Account {
        &self.data().account
    }
}

/// Rule 1. What a year without a tick would charge is cut off at half the line.
#[inline]
fn weighted(run: Counts, nice: u8) -> u64 {
    let product = (u128::from(run.0) * u128::from(FACTORS[nice as usize])) >> 32;
    product.min(1 << 62) as u64
}

/// See the [module documentation](self).
pub struct Cfs<T, C> {
    ready: Ordered<T, CfsState>,
    bursts: Bursts<T, Keyed<CfsState>>,
    min_vruntime: Key,
    tick: TickLength,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock> Cfs<T, C> {
    /// What so many ticks add to the vruntime of a task.
    #[inline]
    fn ticks(&self, ticks: u64, nice: u8) -> u64 {
        weighted(self.tick.length().saturating_mul(ticks), nice)
    }

    /// Charges a running or just returned task (rule 1).
    #[inline]
    fn charge(&mut self, task: &CfsTask<T>, run: Counts) {
        let state = task.state();
        let nice = state.data().nice.load(Relaxed);
        state.set_key(state.key().later(weighted(run, nice)));
    }

    /// Rule 3; `also` is the vruntime of a task that is on its way in or out.
    #[inline]
    fn move_min(&mut self, also: Key) {
        let mut min = also;
        if let Some(first) = self.ready.first_key() {
            min = min.min(first);
        }
        if let Some(running) = self.bursts.running() {
            min = min.min(running.state().key());
        }
        if min > self.min_vruntime {
            self.min_vruntime = min;
        }
    }

    fn note_lag(&self, task: &CfsTask<T>) {
        let lag = task.state().key().after(self.min_vruntime);
        task.state().data().lag.store(lag, Relaxed);
    }
}

impl<T, C: Clock> Policy for Cfs<T, C> {
    type Inner = T;
    type State = Keyed<CfsState>;
    type Memory = Remember;
    const NAME: &'static str = "CFS";
    const NEW: Self = Self {
        ready: Ordered::new(),
        bursts: Bursts::new(),
        min_vruntime: Key(0),
        tick: TickLength::new(),
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<CfsTask<T>>) {
        self.bursts.adopt(&task);
        let debit = self.ticks(GRANULARITY_TICKS, NICE_0);
        task.state().set_key(self.min_vruntime.later(debit)); // rule 4
        self.ready.insert(task);
    }

    #[inline]
    fn returned(&mut self, task: Arc<CfsTask<T>>, why: Return) {
        let state = task.state();
        let came = self.bursts.returned(&task, why, C::now());
        if came.age >= MEMORY {
            state.set_key(self.min_vruntime);
        } else if came.moved {
            let away = weighted(came.age - came.burst, NICE_0) as i64;
            let lag = state.data().lag.load(Relaxed);
            let lag = if lag > 0 { (lag - away).max(0) } else { lag };
            state.set_key(self.min_vruntime.later(lag as u64)); // rule 7
        }
        self.charge(&task, came.burst);
        match why {
            Return::Preempted => {} // rule 10
            Return::Yielded => {
                if let Some(first) = self.ready.first_key() {
                    state.set_key(state.key().max(first)); // rule 6
                }
            }
            Return::Woken => {
                let credit = self.ticks(SLEEPER_CREDIT_TICKS, NICE_0);
                let floor = self.min_vruntime.later(credit.wrapping_neg());
                state.set_key(state.key().max(floor)); // rule 5
            }
        }
        self.move_min(state.key());
        self.note_lag(&task);
        self.ready.insert(task);
    }

    fn left(&mut self) {
        if let Some((task, burst)) = self.bursts.left(C::now()) {
            self.charge(&task, burst);
            self.move_min(task.state().key());
            self.note_lag(&task);
        }
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<CfsTask<T>>> {
        let Some(next) = self.ready.pop_first() else {
            self.tick.idle();
            return None;
        };
        self.bursts.begin(&next, C::now());
        self.move_min(next.state().key());
        self.note_lag(&next);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<CfsTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        let Some(burst) = Bursts::so_far(running, now) else {
            // `main` before its first pick has no account: whoever is ready is next.
            return Tick::reschedule_if(!self.ready.is_empty());
        };
        self.charge(running, burst);
        let vruntime = running.state().key();
        self.move_min(vruntime);
        self.note_lag(running);
        let nice = running.state().data().nice.load(Relaxed);
        let ticks = self.ticks(GRANULARITY_TICKS, nice);
        let granularity = ticks - weighted(self.tick.half(), nice);
        let is_ahead = |first| vruntime.after(first) >= granularity.max(1) as i64;
        Tick::reschedule_if(self.ready.first_key().is_some_and(is_ahead)) // rule 9
    }

    fn remove(&mut self, task: &Arc<CfsTask<T>>) -> Option<Arc<CfsTask<T>>> {
        self.ready.remove(task)
    }

    fn set_priority(&mut self, task: &Arc<CfsTask<T>>, nice: isize) -> bool {
        if !(-20..=19).contains(&nice) {
            return false;
        }
        if let Some(burst) = Bursts::so_far(task, C::now()) {
            self.charge(task, burst); // rule 8
            self.move_min(task.state().key());
            self.note_lag(task);
        }
        let place = (nice + NICE_0 as isize) as u8;
        task.state().data().nice.store(place, Relaxed);
        true
    }
}

#[cfg(test)]
mod tests;
