//! CFS: completely fair scheduling.
//!
//!  1. A task's vruntime grows by its time on the CPU, in counts of the hardware counter, times
//!     1024 over the weight of its nice value ([`WEIGHTS`](nice::WEIGHTS)).
//!  2. The ready task with the smallest vruntime runs, to the precision of one
//!     [bucket](sched_core::buckets). Among tasks whose vruntimes differ by less than a bucket's
//!     width, the one that came first may run. A width is at most half a tick.
//!     [`ExactCfsScheduler`] has no buckets. There ties are in order of arrival.
//!  3. `min_vruntime` is the smallest vruntime among the ready tasks and the running one, or the
//!     start of its bucket. It never decreases, and moves at every tick and before a task joins or
//!     leaves.
//!  4. A new task starts [`GRANULARITY_TICKS`] after `min_vruntime`, as if it had just run: a
//!     chain of tasks that spawn each other cannot starve tasks that were there before.
//!  5. A task that wakes is at most [`SLEEPER_CREDIT_TICKS`] behind `min_vruntime`, however long
//!     it slept.
//!  6. A task that yields sits out one pick if another task is ready. It goes behind the task that
//!     runs then: its vruntime is raised to the start of that task's bucket. It is never lowered,
//!     so no debt is forgiven.
//!  7. A task that changes queues keeps its lag: vruntime_new = V_new + (vruntime_old − V_old),
//!     where V is a queue's virtual time, as of now. V moves by the service over the weight of all
//!     ready and running tasks. It is at most [`SLEEPER_CREDIT_TICKS`] behind `min_vruntime` and
//!     [`GRANULARITY_TICKS`] ahead.
//!  8. `set_priority` takes nice values from −20 to 19. The time until then is charged by the old
//!     weight, and no charge is lost.
//!  9. A tick preempts the running task if it is, to the nearest tick of its own weight, at least
//!     [`GRANULARITY_TICKS`] ahead of the task that a pick would take. A wake preempts no task:
//!     the next tick does.
//! 10. A preempted task keeps its vruntime.
//! 11. A task from another queue starts no earlier than this queue's entry line. The line moves
//!     half as fast as the virtual time, and is at most [`GRANULARITY_TICKS`] +
//!     [`SLEEPER_CREDIT_TICKS`] behind `min_vruntime` and [`ENTRY_TICKS`] ahead.
//! 12. Another CPU gets the task that would run first here among those that may run there (the
//!     crate `sched-smp`). That task changes queues by rules 7 and 11.
//!
//! After Linux's scheduler of that name (Molnár, 2007) and its weights: a step of one nice value is
//! about a tenth of the CPU. Stock axsched 0.3.1 differs in rules 1 (ticks), 3 (moves only in add
//! and remove), 5, 7, 8, 9 and 11. Rule 4 is Linux's `START_DEBIT`. Rule 7 is Linux's with another
//! virtual time: that of generalised processor sharing in place of `min_vruntime`, which stands
//! still for a round and then jumps. Rule 11 is ours. Without it, a mover could work off the debt
//! of a slow queue on a fast one, and come back first in line every time. The tasks that stay would
//! starve (`docs/adr/0015-lag-by-virtual-time.md`).
//!
//! **Bounds.** vruntime is 64 bits wide and wraps, on every architecture. It is compared by
//! difference, and ignored if it is older than [`MEMORY`]. Below, all weights are equal. n counts
//! the tasks that are on the queue at any time while a task waits there, with sleepers and movers.
//!
//! - One queue: each task runs again after at most (n − 1) × (2 × `GRANULARITY_TICKS` +
//!   `SLEEPER_CREDIT_TICKS` + 1½) = 6½ × (n − 1) ticks. In exact order it is 6 × (n − 1). The same
//!   holds on several queues with equal loads, in all scenes of `tests/movers.rs`. While the length
//!   of a tick changes, half an old tick is added.
//! - Several queues, whatever their loads: a preempted task runs again within 38 × n ticks, one
//!   that has just come within 52 × n. A preempted task is at most L = `GRANULARITY_TICKS` + 2
//!   ahead of `min_vruntime`, with two widths of a bucket, and a mover L = 6. After 2 × (L + 3) × n
//!   ticks of service, the entry line has reached the task or its own limit. From then on no task
//!   comes before `min_vruntime` + 1. For each tick that this moves, each of n tasks has at most 5.
//!   The tasks before it in its bucket then have at most 4 each. The longest wait in the lopsided
//!   scenes of `tests/movers.rs` is 8.7 × n.
//! - Shares are within a tenth of max-min fair, on one queue and on several with equal loads. That
//!   holds if sleepers ask for more than their share and never sleep so long that they lose more
//!   than their credit. Else they are within a tenth of the range between that and generalised
//!   processor sharing. `tests/movers.rs` defines both.
//! - A yield gains nothing, and the yielder loses the time that it was behind (rule 6).
//! - A yield gains nothing, and the yielder loses what it was behind (rule 6).
//!
//! **Cost.** A put and the pick after it have one counter read, one multiplication, no division,
//! and the same number of instructions for any number of tasks. Tasks of high nice values
//! ([`buckets`](sched_core::buckets)), and all until two ticks have been seen, cost O(log n). A
//! tick, spawn, wake and leave have a division, under a lock that is held for little more than
//! that. A change of queues has two more, and a search that is linear in the number of queues.
//! Nothing allocates on up to 64 queues. The policy needs `axtask/preempt`.
//! `docs/adr/0020-order-to-a-bucket.md` says how the cost is kept low.

use alloc::sync::Arc;
use core::marker::PhantomData;

use sched_core::buckets::Buckets;
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::nice::{self, Factor, LONGEST_CHARGE, Share};
use sched_core::ordered::{ByKey, Key, Keyed, KeyedTask, Ordered};
use sched_core::run_interval::{Account, Accounted, RunIntervals, TickLength};
use sched_core::task::InitialState;
use sched_core::units::Counts;
use sched_core::virtual_time::{QueueTime, VirtualTime};

/// A task under [`CfsScheduler`].
pub type CfsTask<T> = KeyedTask<T, CfsState>;
/// The completely fair scheduler. `C` is the clock that it reads.
pub type CfsScheduler<T, C = CpuCounter> = Adapter<Cfs<T, C>>;
/// The scheduler with its ready queue in exact order (rule 2), in O(log n).
pub type ExactCfsScheduler<T, C = CpuCounter> = Adapter<Cfs<T, C, Ordered<T, CfsState>>>;

/// The lead over the first task in line at which a tick preempts the running task, in ticks of its
/// own weight. It is two, so that equal tasks alternate every few ticks and not at each.
pub const GRANULARITY_TICKS: u64 = 2;

/// The most by which a task may wake behind `min_vruntime`, in ticks. It is one: such a task is
/// first in line, and cannot keep the CPU for longer than a tick because of that.
pub const SLEEPER_CREDIT_TICKS: u64 = 1;

/// The furthest start ahead of `min_vruntime` that rule 11 demands of movers, in ticks. It is one:
/// with less, movers would hold `min_vruntime` where it is.
pub const ENTRY_TICKS: u64 = 1;

/// The time for which a task that is away is remembered, in counts: 2.4 hours at 1 GHz. A task that
/// comes back later owes nothing and is owed nothing, since no debt is that large. Within this time
/// no `min_vruntime` goes half-way round the line, not even beside a task of nice 19.
pub const MEMORY: Counts = LONGEST_CHARGE;

/// The state of CFS in a task; its vruntime is the key. Relaxed: see LOCK in
/// [`task`](sched_core::task).
pub struct CfsState {
    account: Account,
    share: Share,
}

impl InitialState for CfsState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        share: Share::INITIAL,
    };
}

impl Accounted for CfsState {
    fn account(&self) -> &Account {
        &self.account
    }
}

#[inline]
fn share<T>(task: &CfsTask<T>) -> &Share {
    &task.policy_state().data().share
}

fn weight<T>(task: &CfsTask<T>) -> u64 {
    share(task).weight()
}

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Cfs<T, C, Q = Buckets<T, CfsState>> {
    ready: Q,
    intervals: RunIntervals<T, Keyed<CfsState>>,
    min_vruntime: Key,
    /// The virtual time of this queue (rule 7), moved at every tick.
    time: QueueTime,
    /// The entry line (rule 11).
    entry: Key,
    tick: TickLength,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock, Q: ByKey<T, CfsState>> Cfs<T, C, Q> {
    /// Returns what this many ticks add to the vruntime of a task.
    #[inline]
    fn ticks(&self, ticks: u64, factor: Factor) -> u64 {
        factor.times(self.tick.ticks(ticks))
    }

    /// Returns the vruntime this many ticks before `min_vruntime`.
    fn before_min(&self, ticks: u64) -> Key {
        let ticks = self.ticks(ticks, Factor::NICE_0);
        self.min_vruntime.later(ticks.wrapping_neg())
    }

    /// Returns the vruntime this many ticks after `min_vruntime`.
    fn after_min(&self, ticks: u64) -> Key {
        self.min_vruntime.later(self.ticks(ticks, Factor::NICE_0))
    }

    /// Charges a running or just returned task (rule 1).
    #[inline]
    fn charge(&mut self, task: &CfsTask<T>, run: Counts) {
        let charge = share(task).factor().times(run);
        task.set_key(task.key().later(charge));
        self.time.charged(run);
    }

    /// Moves `min_vruntime`, at every tick and before a task joins or leaves (rule 3). `also` is
    /// the vruntime of a task that is about to leave.
    fn move_min(&mut self, also: Option<Key>) {
        let running = self.intervals.running().map(KeyedTask::key);
        let all = also
            .into_iter()
            .chain(running)
            .chain(self.ready.first_key());
        if let Some(min) = all.min() {
            self.min_vruntime = self.min_vruntime.max(min);
        }
    }

    fn time(&mut self) -> &'static VirtualTime {
        self.time.of(self.intervals.id())
    }

    /// Moves the virtual time and the entry line by the charged time (rules 7 and 11), and by the
    /// run that is not charged yet.
    fn move_time(&mut self, now: Counts, uncharged: Counts) {
        let within = self.before_min(SLEEPER_CREDIT_TICKS)..=self.after_min(GRANULARITY_TICKS);
        let moved = self
            .time
            .advance(self.intervals.id(), now, uncharged, within);
        let entry = self.entry.later(moved.by / 2);
        let last = self.after_min(ENTRY_TICKS);
        let first = self.before_min(GRANULARITY_TICKS + SLEEPER_CREDIT_TICKS);
        self.entry = entry.max(first).min(last);
    }

    /// Brings the virtual time up to date before a task joins or leaves, since the tasks that were
    /// ready share the time until now. The running task is not charged. This may be another CPU
    /// than its own, on which the task may be migrating, and then it is in another queue (KEY).
    fn catch_up(&mut self, now: Counts) {
        let uncharged = self.intervals.uncharged(now);
        self.move_time(now, uncharged);
    }

    /// Adds a task that was away.
    fn arrived(&mut self, task: Arc<CfsTask<T>>, why: EnqueueReason, now: Counts) {
        let came = self.intervals.arrived(&task, why, now);
        self.move_min(None);
        let mut floor = self.before_min(SLEEPER_CREDIT_TICKS); // rule 5
        self.catch_up(now);
        let time = self.time();
        let mut key = task.key();
        if came.moved {
            let old = VirtualTime::find(came.from);
            let lag = old.map_or(0, |old| key.after(old.at(now))) as u64;
            let run = share(&task).factor().times(came.interval);
            key = time.at(now).later(lag).later(run); // rule 7
            floor = floor.max(self.entry); // rule 11
            if came.ran
                && let Some(old) = old
            {
                // MIGRATION: its old queue will not see it leave
                old.leave_running(weight(&task), came.interval);
            }
        }
        if came.age >= MEMORY {
            key = self.min_vruntime;
        }
        time.join(weight(&task));
        self.put(task, key.max(floor));
    }

    /// Accounts for a ready task that was taken out.
    fn removed(&mut self, task: &CfsTask<T>) {
        self.intervals.removed(task);
        self.move_min(Some(task.key()));
        self.catch_up(C::now());
        self.time().leave(weight(task));
    }

    /// Ends a pick that follows no yield.
    #[cold]
    #[inline(never)]
    fn dispatch_after_no_yield(
        &mut self,
        first: Option<Arc<CfsTask<T>>>,
    ) -> Option<Arc<CfsTask<T>>> {
        self.intervals.begin_or_idle::<C>(first.as_ref());
        if first.is_none() {
            self.tick.idle();
        }
        first
    }

    /// Enqueues a task that has not just yielded here.
    #[cold]
    #[inline(never)]
    fn enqueue_slow(&mut self, task: Arc<CfsTask<T>>, why: EnqueueReason) {
        let now = C::now();
        if !self.intervals.ran_here(&task, why) {
            return self.arrived(task, why, now);
        }
        let interval = self.intervals.end(&task, now);
        self.intervals.let_go();
        self.charge(&task, interval); // rule 10: and no more
        let key = task.key();
        self.put(task, key);
    }

    /// Puts a task that has not yielded into the queue.
    fn put(&mut self, task: Arc<CfsTask<T>>, key: Key) {
        self.ready.place(task, key, self.min_vruntime);
    }
}

#[cfg(test)]
impl<T, C: Clock, Q: ByKey<T, CfsState>> Cfs<T, C, Q> {
    /// Checks that the virtual time has the weights of the ready and running tasks only.
    fn assert_valid(&mut self) {
        let running = self.intervals.running().into_iter();
        let running: u64 = running.map(|task| weight(task)).sum();
        let ready: u64 = self.ready.tasks().into_iter().map(weight).sum();
        assert_eq!(self.time().weight(), ready + running);
        let ahead = self.entry.after(self.after_min(ENTRY_TICKS));
        assert!(ahead <= 0, "rule 11: {ahead}");
    }
}

impl<T, C: Clock, Q: ByKey<T, CfsState>> Policy for Cfs<T, C, Q> {
    type Inner = T;
    type State = Keyed<CfsState>;
    const NAME: &'static str = "CFS";
    const EVENTS: EventLevel = EventLevel::Departures;
    const NEW: Self = Self {
        ready: Q::NEW,
        intervals: RunIntervals::new(),
        min_vruntime: Key(0),
        time: QueueTime::NEW,
        entry: Key(0),
        tick: TickLength::new(),
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<CfsTask<T>>) {
        self.intervals.adopt(&task);
        self.move_min(None);
        let start = self.after_min(GRANULARITY_TICKS); // rule 4
        self.catch_up(C::now());
        self.time().join(weight(&task));
        self.put(task, start);
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<CfsTask<T>>, why: EnqueueReason) {
        // Code that a yield does not need is out of line, and is its last call. So no register is
        // saved over it, and `axtask` can inline the rest.
        if why != EnqueueReason::Yielded || !self.intervals.ran_here(&task, why) {
            return self.enqueue_slow(task, why);
        }
        let now = C::now();
        let interval = self.intervals.end(&task, now);
        self.charge(&task, interval);
        self.intervals.set_aside_charged(&task, now); // rule 6
    }

    #[cold]
    #[inline(never)]
    fn current_left(&mut self) {
        let now = C::now();
        let Some((task, interval)) = self.intervals.left(now) else {
            return; // MIGRATION: the virtual time has its CPU time here
        };
        self.charge(&task, interval);
        self.move_min(Some(task.key()));
        self.move_time(now, Counts::ZERO);
        self.time().leave(weight(&task));
    }

    #[inline(always)]
    fn dispatch(&mut self) -> Option<Arc<CfsTask<T>>> {
        let first = self.ready.pop();
        let Some((yielder, now)) = self.intervals.take_yielder() else {
            return self.dispatch_after_no_yield(first);
        };
        let next = match first {
            Some(first) => {
                let start = self.ready.floor(first.key());
                let key = yielder.key().max(start); // rule 6
                self.ready.insert(yielder, key, start);
                first
            }
            None => yielder,
        };
        self.intervals.begin(&next, now);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<CfsTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        self.ready.fit(self.tick.length());
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick has no account: any ready task goes before it.
            return Tick::reschedule_if(!self.ready.is_empty());
        };
        self.charge(running, interval);
        let vruntime = running.key();
        self.move_min(None);
        self.move_time(now, Counts::ZERO);
        let factor = share(running).factor();
        let ticks = self.ticks(GRANULARITY_TICKS, factor);
        let granularity = ticks - factor.times(self.tick.half().min(LONGEST_CHARGE));
        let is_ahead = |next| vruntime.after(next) >= granularity.max(1) as i64;
        Tick::reschedule_if(self.ready.next_key().is_some_and(is_ahead)) // rule 9
    }

    fn remove(&mut self, task: &Arc<CfsTask<T>>) -> Option<Arc<CfsTask<T>>> {
        let yielder = self.intervals.remove_yielder(task);
        let removed = yielder.or_else(|| self.ready.remove(task))?;
        self.removed(&removed);
        Some(removed)
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        let given = self.ready.remove_first(may, take_request)?; // rule 12
        self.removed(&given);
        Some(given)
    }

    fn set_priority(&mut self, task: &Arc<CfsTask<T>>, nice: isize) -> bool {
        let Some(index) = nice::index(nice) else {
            return false;
        };
        let now = C::now();
        let is_ready = task.is_queued();
        let mut is_here = is_ready;
        if !is_ready && let Some(interval) = RunIntervals::take_uncharged(task, now) {
            self.charge(task, interval); // rule 8
            is_here = true;
        }
        self.move_min(None);
        self.catch_up(now);
        let old = weight(task);
        share(task).set(index);
        if is_here && let Some(time) = VirtualTime::find(RunIntervals::home(task)) {
            time.reweigh(old, weight(task));
        }
        true
    }
}

#[cfg(test)]
mod tests;
