//! EEVDF: earliest eligible virtual deadline first.
//!
//!  1. A queue's virtual time moves by the service over the weight of all who are ready
//!     or run there, at every tick, join and leave. It never decreases; where all of them
//!     are ahead of it, it goes on to the first of them.
//!  2. A task's vruntime grows by its time on the CPU, in counts of the hardware counter,
//!     times 1024 over the weight of its nice value ([`WEIGHTS`](nice::WEIGHTS)). Its lag
//!     is how far that is behind the virtual time: what the queue owes it, or, negative,
//!     what it has had too much. It is eligible if its lag is not negative.
//!  3. A task requests [`SLICE_TICKS`] of the CPU at a time. The virtual deadline of a
//!     request is the task's vruntime at its beginning, plus the request over its weight.
//!     When the vruntime is there, to the nearest tick, the next request begins.
//!  4. The eligible task with the earliest deadline runs; ties in the order in which they
//!     became eligible. Where nobody is eligible, the smallest vruntime runs.
//!  5. A tick preempts the running task if its request is served and somebody is ready.
//!     Before that neither an earlier deadline nor a waker does (run to parity).
//!  6. A new task starts without lag.
//!  7. A task that leaves keeps its lag, for however long and whatever queue it comes back
//!     to: at most [`SLICE_TICKS`] of what it is owed and [`LAG_TICKS`] of what it owes, in
//!     ticks of its own weight. It comes back with a new request.
//!  8. A task that yields while anybody else is ready gives up the rest of its request: its
//!     vruntime is raised to the deadline, and what it gave up counts as service (rule 1).
//!     It sits out one pick.
//!  9. A preempted task keeps its vruntime and what is left of its request.
//! 10. `set_priority` takes nice values from −20 to 19. The time until then is charged by
//!     the old weight; the lag and what is left of the request stay what they are in time
//!     on the CPU.
//!
//! After Stoica and Abdel-Wahab (1995), and what Linux 6.6 made of it: requests of one
//! size, and rule 5, its `RUN_TO_PARITY` (there a wake ends the turn of a task that is not
//! eligible any more; here no wake does). Linux's virtual time is the average of all
//! vruntimes, which goes back when somebody comes who is owed or leaves who owes. Rule 1
//! has the slope of generalised processor sharing and the step to the first of WF2Q+
//! (Bennett and Zhang, 1997), and does not go back: whoever waits is overtaken by those
//! before its deadline, and the time of these passes. Rule 8 is that of later Linux (2025),
//! which takes only from a task that is eligible. Two limits in rule 7 in place of Linux's
//! one: with no more credit than a request, who comes has no deadline before the virtual
//! time, so no rule like CFS's 11 is needed against movers.
//!
//! **Bounds.** Below, all weights are equal, and n counts the tasks, sleepers and movers
//! too, that are on the queue at any time while somebody waits there. Ticks in which
//! preemption is forbidden come on top.
//!
//! - Each runs again after at most [`WAIT_TICKS`] × n ticks, on one queue and on several,
//!   whatever their loads. Who waits has its deadline [`LAG_TICKS`] + [`SLICE_TICKS`] after
//!   the virtual time at most, which is there after n times that in ticks. Nobody comes
//!   before it any more then, and who is before it has as much to come at most.
//!   The longest wait in a test, of one that owes most among n − 1 that come back owed
//!   most, is 7.8 × n.
//! - vruntime is 64 bits wide and wraps; only those of tasks that are in one queue are
//!   compared. Of who is away the lag is kept and nothing else, so it may be away for ever.
//! - A yield gains nobody anything, and neither does a change of queues.
//!
//! **Cost.** Put and pick are O(log n) on average over the requests, with one counter read
//! each and no division: each request is moved from one tree to another once. A pick
//! after many have become eligible at once moves all of them. A tick, spawn, wake and
//! leave have a division, under a lock that is held for little more than that. Nothing
//! allocates on up to 64 queues. Needs `axtask/preempt`.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI64, AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::clock::{Clock, CpuCounter};
use crate::event::{Adapter, Policy, Return, Tick, Tracks};
use crate::nice::{self, FRACTION_BITS, NICE_0, NORMAL_WEIGHT, weighted};
use crate::ordered::{Key, Keyed, KeyedTask, Ordered};
use crate::queue::{Slot, sit_out};
use crate::run_interval::{Account, Accounted, RunIntervals, TickLength};
use crate::task::InitialState;
use crate::units::Counts;
use crate::virtual_time::{QueueTime, VirtualTime};

/// A task under [`EevdfScheduler`].
pub type EevdfTask<T> = KeyedTask<T, EevdfState>;
/// The scheduler by virtual deadlines; `C` is where it reads the time.
pub type EevdfScheduler<T, C = CpuCounter> = Adapter<Eevdf<T, C>>;

/// A request, in ticks of the task's own weight. Two, as CFS's granularity: equal tasks
/// change places every few ticks and not at each.
pub const SLICE_TICKS: u64 = 2;

/// How much of what it owes a task takes along when it leaves, in ticks of its own
/// weight. Two requests, as in Linux: it can be one ahead when it gets the CPU, and have
/// one then.
pub const LAG_TICKS: u64 = 2 * SLICE_TICKS;

/// How long a task may wait, in ticks for each task of its queue, where all weights are
/// equal.
pub const WAIT_TICKS: u64 = 2 * (LAG_TICKS + SLICE_TICKS);

/// What EEVDF remembers of a task. Relaxed: see LOCK in [`task`](crate::task).
pub struct EevdfState {
    account: Account,
    /// Index of its nice value in [`WEIGHTS`](nice::WEIGHTS).
    nice: AtomicU8,
    /// While it is ready or runs.
    vruntime: AtomicU64,
    /// While it is ready or runs: when its request ends.
    deadline: AtomicU64,
    /// While it is away.
    lag: AtomicI64,
}

impl InitialState for EevdfState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        nice: AtomicU8::new(NICE_0),
        vruntime: AtomicU64::new(0),
        deadline: AtomicU64::new(0),
        lag: AtomicI64::new(0),
    };
}

impl EevdfState {
    #[inline]
    fn nice(&self) -> u8 {
        self.nice.load(Relaxed)
    }

    #[inline]
    fn vruntime(&self) -> Key {
        Key(self.vruntime.load(Relaxed))
    }

    #[inline]
    fn deadline(&self) -> Key {
        Key(self.deadline.load(Relaxed))
    }

    /// How much of the request is left, as vruntime.
    #[inline]
    fn rest(&self) -> u64 {
        self.deadline().after(self.vruntime()).max(0) as u64
    }

    #[inline]
    fn set_vruntime(&self, vruntime: Key) {
        self.vruntime.store(vruntime.0, Relaxed);
    }

    #[inline]
    fn set_deadline(&self, deadline: Key) {
        self.deadline.store(deadline.0, Relaxed);
    }

    fn weight(&self) -> u64 {
        nice::weight(self.nice())
    }
}

impl Accounted for Keyed<EevdfState> {
    fn account(&self) -> &Account {
        &self.data().account
    }
}

#[inline]
fn state<T>(task: &EevdfTask<T>) -> &EevdfState {
    task.state().data()
}

/// How long a task runs for its vruntime to grow so far.
#[inline]
fn service(vruntime: u64, nice: u8) -> Counts {
    let weighted = u128::from(vruntime) * u128::from(nice::weight(nice));
    Counts((weighted >> (NORMAL_WEIGHT.trailing_zeros() + FRACTION_BITS)) as u64)
}

/// See the [module documentation](self).
pub struct Eevdf<T, C> {
    /// Those who were not eligible when they came, by vruntime.
    waiting: Ordered<T, EevdfState>,
    /// Those who are eligible, by deadline. They stay so: the virtual time does not go
    /// back.
    eligible: Ordered<T, EevdfState>,
    /// The task that has just yielded, until the next pick (rule 8).
    yielder: Slot<T, Keyed<EevdfState>>,
    intervals: RunIntervals<T, Keyed<EevdfState>>,
    time: QueueTime,
    /// The virtual time as last moved (rule 1).
    now: Key,
    tick: TickLength,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock> Eevdf<T, C> {
    /// What so many ticks add to the vruntime of a task.
    #[inline]
    fn ticks(&self, ticks: u64, nice: u8) -> u64 {
        weighted(self.tick.length().saturating_mul(ticks), nice)
    }

    /// Charges a running or just returned task (rule 2).
    #[inline]
    fn charge(&mut self, state: &EevdfState, run: Counts) {
        state.set_vruntime(state.vruntime().later(weighted(run, state.nice())));
        self.time.charged(run);
    }

    /// Begins a request (rule 3).
    #[inline]
    fn request(&self, state: &EevdfState) {
        let request = self.ticks(SLICE_TICKS, state.nice());
        state.set_deadline(state.vruntime().later(request));
    }

    /// Begins the next request if this one is served (rule 3).
    fn next_request(&self, state: &EevdfState) -> bool {
        let half_tick = weighted(self.tick.half(), state.nice());
        let is_served = state.vruntime().later(half_tick) >= state.deadline();
        if is_served {
            self.request(state);
        }
        is_served
    }

    /// Gives up the rest of a request (rule 8).
    #[inline]
    fn give_up(&mut self, state: &EevdfState) {
        let rest = state.rest();
        self.time.charged(service(rest, state.nice()));
        state.set_vruntime(state.vruntime().later(rest));
        self.request(state);
    }

    /// Rule 1; `also` is the vruntime of a task that is on its way out.
    fn move_time(&mut self, now: Counts, uncharged: Counts, also: Option<Key>) {
        let running = self.intervals.running();
        let running = running.map(|running| state(running).vruntime());
        let not_waiting = running.into_iter().chain(also);
        let first = not_waiting.chain(self.waiting.first_key()).min();
        let first = first.filter(|_| self.eligible.is_empty());
        // A task that has just migrated is still `running` here, by another queue's time.
        let first = first.map_or(self.now, |first| first.max(self.now));
        let within = first..=first.later(1 << 62);
        self.now = self
            .time
            .moves(self.intervals.id(), now, uncharged, within)
            .to;
    }

    /// Who is ready is about to change: up to now, those share who were. The running
    /// task is not charged: this may be another CPU than its own, on which it may be
    /// migrating, and then it stands in another queue (KEY).
    fn catch_up(&mut self, now: Counts, also: Option<Key>) {
        let running = self.intervals.running();
        let uncharged = running.map_or(Counts::ZERO, |task| RunIntervals::uncharged(task, now));
        self.move_time(now, uncharged, also);
    }

    /// A task is ready here from now on, with so much lag.
    fn join(&mut self, task: Arc<EevdfTask<T>>, lag: i64, now: Counts) {
        self.catch_up(now, None);
        let state = state(&task);
        state.set_vruntime(self.now.later((lag as u64).wrapping_neg()));
        self.request(state);
        self.time.of(self.intervals.id()).join(state.weight());
        self.enqueue(task);
    }

    /// A task that was ready here or ran is gone: it takes its lag along (rule 7). The
    /// virtual time is that of now.
    fn leave(&mut self, state: &EevdfState) {
        let lag = self.limited(self.now.after(state.vruntime()), state);
        state.lag.store(lag, Relaxed);
        self.time.of(self.intervals.id()).leave(state.weight());
    }

    /// What a task may keep of its lag (rule 7).
    fn limited(&self, lag: i64, state: &EevdfState) -> i64 {
        let owes = self.ticks(LAG_TICKS, state.nice()) as i64;
        let owed = self.ticks(SLICE_TICKS, state.nice()) as i64;
        lag.clamp(-owes, owed)
    }

    /// A task that was away is ready here.
    #[cold]
    fn arrived(&mut self, task: Arc<EevdfTask<T>>, why: Return, now: Counts) {
        let came = self.intervals.arrived(&task, why, now);
        let state = state(&task);
        let mut lag = state.lag.load(Relaxed);
        if came.moved && came.ran {
            // MIGRATION: its old queue will not see it leave
            let vruntime = state
                .vruntime()
                .later(weighted(came.interval, state.nice()));
            lag = VirtualTime::find(came.from).map_or(0, |old| {
                let lag = old.at(now).after(vruntime);
                old.leave_running(state.weight(), came.interval);
                self.limited(lag, state)
            });
        }
        // In ticks of the queue that it left, which may have been longer.
        let request = self.ticks(SLICE_TICKS, state.nice()) as i64;
        self.join(task, lag.min(request), now);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<EevdfTask<T>>) {
        let vruntime = state(&task).vruntime();
        if vruntime <= self.now {
            self.make_eligible(task);
        } else {
            task.state().set_key(vruntime);
            self.waiting.insert(task);
        }
    }

    #[inline]
    fn make_eligible(&mut self, task: Arc<EevdfTask<T>>) {
        task.state().set_key(state(&task).deadline());
        self.eligible.insert(task);
    }

    /// Takes the next out (rule 4).
    #[inline]
    fn pop(&mut self) -> Option<Arc<EevdfTask<T>>> {
        while self
            .waiting
            .first_key()
            .is_some_and(|first| first <= self.now)
        {
            let task = self.waiting.pop_first()?;
            self.make_eligible(task);
        }
        self.eligible
            .pop_first()
            .or_else(|| self.waiting.pop_first())
    }

    /// Takes a ready task out.
    fn take(&mut self, task: &Arc<EevdfTask<T>>) -> Option<Arc<EevdfTask<T>>> {
        if self.yielder.holds(task) {
            return self.yielder.take();
        }
        if !task.state().is_queued() {
            return None;
        }
        let eligible = self.eligible.remove(task);
        eligible.or_else(|| self.waiting.remove(task))
    }

    fn is_anybody_ready(&self) -> bool {
        !(self.eligible.is_empty() && self.waiting.is_empty())
    }
}

#[cfg(test)]
impl<T, C: Clock> Eevdf<T, C> {
    /// The virtual time has the weights of who is ready or runs here, and of nobody else.
    /// Who is eligible stands in that tree by its deadline.
    fn assert_valid(&mut self) {
        let id = self.intervals.id();
        let running = self.intervals.running().into_iter();
        let running = running.filter(|task| RunIntervals::home(task) == id); // MIGRATION
        let running: u64 = running.map(|task| state(task).weight()).sum();
        let ready = self.eligible.iter().chain(self.waiting.iter());
        let ready: u64 = ready.map(|task| state(task).weight()).sum();
        let yielder = self.yielder.take().into_iter();
        let yielder: u64 = yielder
            .map(|task| {
                let weight = state(&task).weight();
                self.yielder.put(task);
                weight
            })
            .sum();
        assert_eq!(self.time.of(id).weight(), ready + running + yielder);
        for task in self.eligible.iter() {
            let state = state(task);
            assert_eq!(task.state().key(), state.deadline());
            assert!(state.vruntime() <= self.now, "rule 2: not eligible");
        }
        for task in self.waiting.iter() {
            assert_eq!(task.state().key(), state(task).vruntime());
        }
    }
}

impl<T, C: Clock> Policy for Eevdf<T, C> {
    type Inner = T;
    type State = Keyed<EevdfState>;
    const NAME: &'static str = "EEVDF";
    const TRACKS: Tracks = Tracks::Departures;
    const NEW: Self = Self {
        waiting: Ordered::new(),
        eligible: Ordered::new(),
        yielder: Slot::EMPTY,
        intervals: RunIntervals::new(),
        time: QueueTime::NEW,
        now: Key(0),
        tick: TickLength::new(),
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<EevdfTask<T>>) {
        self.intervals.adopt(&task);
        self.join(task, 0, C::now()); // rule 6
    }

    #[inline]
    fn returned(&mut self, task: Arc<EevdfTask<T>>, why: Return) {
        let now = C::now();
        if !self.intervals.ran_here(&task, why) {
            return self.arrived(task, why, now);
        }
        let interval = self.intervals.gives_way(&task, now);
        let state = state(&task);
        self.charge(state, interval);
        if why == Return::Yielded {
            if self.is_anybody_ready() {
                self.give_up(state);
            } else {
                self.next_request(state);
            }
            self.yielder.put(task);
        } else {
            self.next_request(state);
            self.enqueue(task);
        }
    }

    fn left(&mut self) {
        let now = C::now();
        let Some((task, interval)) = self.intervals.left(now) else {
            return; // MIGRATION: what it had here stands in the virtual time
        };
        let state = state(&task);
        self.charge(state, interval);
        self.move_time(now, Counts::ZERO, Some(state.vruntime()));
        self.leave(state);
    }

    #[inline]
    fn dispatch(&mut self) -> Option<Arc<EevdfTask<T>>> {
        let (first, yielder) = (self.pop(), self.yielder.take());
        let Some(next) = sit_out(first, yielder, |yielder| self.enqueue(yielder)) else {
            self.tick.idle();
            self.intervals.idle();
            return None;
        };
        self.intervals.begin(&next, self.intervals.now::<C>());
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<EevdfTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick has no account: whoever is ready is next.
            return Tick::reschedule_if(self.is_anybody_ready());
        };
        let state = state(running);
        self.charge(state, interval);
        self.move_time(now, Counts::ZERO, None);
        Tick::reschedule_if(self.next_request(state) && self.is_anybody_ready()) // rule 5
    }

    fn remove(&mut self, task: &Arc<EevdfTask<T>>) -> Option<Arc<EevdfTask<T>>> {
        let removed = self.take(task)?;
        let state = state(&removed);
        self.catch_up(C::now(), Some(state.vruntime()));
        self.leave(state);
        Some(removed)
    }

    /// Linear for a ready task, of which `axtask` does not ask it.
    fn set_priority(&mut self, task: &Arc<EevdfTask<T>>, nice: isize) -> bool {
        let Some(index) = nice::index(nice) else {
            return false;
        };
        let now = C::now();
        let state = state(task);
        let ready = self.take(task);
        let interval = RunIntervals::take_uncharged(task, now);
        if let Some(interval) = interval {
            self.charge(state, interval); // rule 10
        }
        self.catch_up(now, ready.as_ref().map(|_| state.vruntime()));
        let (old, new) = (state.weight(), nice::weight(index));
        let reweighed = |time: i64| (i128::from(time) * i128::from(old) / i128::from(new)) as i64;
        state.nice.store(index, Relaxed);
        let is_here = interval.is_some() || ready.is_some();
        if is_here {
            let lag = reweighed(self.now.after(state.vruntime()));
            let rest = reweighed(state.rest() as i64);
            state.set_vruntime(self.now.later((lag as u64).wrapping_neg()));
            state.set_deadline(state.vruntime().later(rest as u64));
        } else {
            state.lag.store(reweighed(state.lag.load(Relaxed)), Relaxed);
        }
        if (is_here || task.state().is_queued())
            && let Some(time) = VirtualTime::find(RunIntervals::home(task))
        {
            time.reweigh(old, new);
        }
        if let Some(ready) = ready {
            self.enqueue(ready);
        }
        true
    }
}

#[cfg(test)]
mod tests;
