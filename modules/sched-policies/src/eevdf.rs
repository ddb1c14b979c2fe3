//! EEVDF: earliest eligible virtual deadline first.
//!
//!  1. A queue's virtual time moves by the service over the weight of all ready and running tasks,
//!     at every tick, join and leave. It never decreases. If all of them are ahead of it, it jumps
//!     to the first of them.
//!  2. A task's vruntime grows by its time on the CPU, in counts of the hardware counter, times
//!     1024 over the weight of its nice value ([`WEIGHTS`](nice::WEIGHTS)). Its lag is how far that
//!     is behind the virtual time: the time that the queue owes it or, if negative, has given it
//!     too much. It is eligible if its lag is not negative.
//!  3. A task requests [`SLICE_TICKS`] of the CPU at a time. The virtual deadline of a request is
//!     the task's vruntime at its beginning, plus the request over its weight. When the vruntime
//!     is there, to the nearest tick, the next request begins.
//!  4. The eligible task with the earliest deadline runs. If no task is eligible, the task with the
//!     smallest vruntime runs. Both orders are to the precision of one
//!     [bucket](sched_core::buckets). Among tasks whose deadlines or vruntimes differ by less than
//!     a bucket's width, the one that came first may be first. A width is at most half a tick. A
//!     task may become eligible late by the same width of vruntime. A pick moves at most [`MOVES`]
//!     tasks that have become eligible, and the next picks move the rest. [`ExactEevdfScheduler`]
//!     has no buckets. There ties are in the order in which the tasks became eligible.
//!  5. A tick preempts the running task if its request is served and another task is ready. Before
//!     that neither an earlier deadline nor a wake does (run to parity).
//!  6. A new task starts without lag.
//!  7. A task that leaves keeps its lag, however long it is away and to whichever queue it comes
//!     back. It keeps at most [`SLICE_TICKS`] that it is owed and [`LAG_TICKS`] that it owes, in
//!     ticks of its own weight. It comes back with a new request. A running task owes no more than
//!     `LAG_TICKS` after a tick, either: it had that time while no task was ready that is owed it.
//!  8. A task that yields while another is ready gives up the rest of its request. Its vruntime is
//!     raised to the deadline, and to the virtual time if it is owed more than that. The time given
//!     up counts as service (rule 1). It sits out one pick.
//!  9. A preempted task keeps its vruntime and the rest of its request.
//! 10. `set_priority` takes nice values from −20 to 19. The time until then is charged by the old
//!     weight. The lag and the rest of the request stay the same in time on the CPU.
//! 11. Another CPU gets the task that would run first here among those that may run there (the
//!     crate `sched-smp`). That task keeps its lag by rule 7.
//!
//! After Stoica and Abdel-Wahab (1995), and its form in Linux 6.6: requests of one size, and rule
//! 5, its `RUN_TO_PARITY`. (There a wake preempts a task that is no longer eligible; here no wake
//! does.) Linux's virtual time is the average of all vruntimes, which goes back when a task comes
//! that is owed, or leaves that owes. Rule 1 has the slope of generalised processor sharing and the
//! step to the first task of WF2Q+ (Bennett and Zhang, 1997). It does not go back. So a waiting
//! task is overtaken only by tasks before its deadline, and their time passes.
//!
//! Rule 8 is that of later Linux (2025), which takes only from an eligible task, and never more
//! than the request. There a task that yields beside slices longer than a request saves up the
//! difference. Rule 7 has two limits in place of Linux's one. With no more credit than a request, a
//! task that comes has no deadline before the virtual time. So no rule like CFS's 11 is needed
//! against movers.
//!
//! **Bounds.** Below, all weights are equal. n counts the tasks that are on the queue at any time
//! while a task waits there, with sleepers and movers. Ticks in which preemption is disabled are
//! added.
//!
//! - Each task runs again after at most [`WAIT_TICKS`] × n ticks, on one queue and on several,
//!   whatever their loads. A waiting task has its deadline at most [`LAG_TICKS`] + [`SLICE_TICKS`]
//!   after the virtual time (rule 7), which reaches it after n times that in ticks. Then no task
//!   comes before it any more, and the tasks before it have at most as much to come. The order to
//!   one bucket adds half a tick to each of the two, and half a tick for becoming eligible late.
//!   The picks until it is moved, at most n / `MOVES` of three ticks, are less than the remaining
//!   half. In exact order the bound is 12 × n. A task that has yielded has its next request behind
//!   the one that it gave up, and so waits up to 2 × `SLICE_TICKS` × n more. The longest wait in a
//!   test, of a task that owes most among n − 1 that come back owed most, is 7.8 × n.
//! - vruntime is 64 bits wide and wraps; only those of tasks in one queue are compared. A task
//!   that is away keeps only its lag, so it may be away for ever.
//! - Neither a yield nor a change of queues gains anything.
//!
//! **Cost.** A put and the pick after it have one counter read, three multiplications, no division,
//! and the same number of instructions for any number of tasks. Each request is moved from one
//! queue to the other once, and a pick moves at most [`MOVES`]. Tasks of high nice values
//! ([`buckets`](sched_core::buckets)), and all until two ticks have been seen, cost O(log n). A
//! tick, spawn, wake and leave have a division, under a lock that is held for little more than
//! that. Nothing allocates on up to 64 queues. The policy needs `axtask/preempt`.
//! `docs/adr/0020-order-to-a-bucket.md` says how the cost is kept low.

// The file is long because a policy is one file, and a fifth of it is the rules.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use sched_core::buckets::Buckets;
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{Adapter, EnqueueReason, EventLevel, May, Policy, TaskRef, Tick};
use sched_core::nice::{self, FRACTION_BITS, Factor, LONGEST_CHARGE, NORMAL_WEIGHT, Share};
use sched_core::ordered::{ByKey, Key, Keyed, KeyedTask, Ordered};
use sched_core::run_interval::{Account, Accounted, RunIntervals, TickLength};
use sched_core::task::InitialState;
use sched_core::units::Counts;
use sched_core::virtual_time::{QueueTime, VirtualTime};

/// A task under [`EevdfScheduler`].
pub type EevdfTask<T> = KeyedTask<T, EevdfState>;
/// The scheduler by virtual deadlines. `C` is the clock that it reads.
pub type EevdfScheduler<T, C = CpuCounter> = Adapter<Eevdf<T, C>>;
/// The scheduler with its queues in exact order (rule 4), in O(log n).
pub type ExactEevdfScheduler<T, C = CpuCounter> = Adapter<Eevdf<T, C, Ordered<T, EevdfState>>>;

/// The length of a request, in ticks of the task's own weight. It is two, like CFS's granularity,
/// so that equal tasks alternate every few ticks and not at each.
pub const SLICE_TICKS: u64 = 2;

/// The most debt that a task keeps when it leaves, in ticks of its own weight. It is two requests,
/// as in Linux: a task can be one ahead when it gets the CPU, and have one then.
pub const LAG_TICKS: u64 = 2 * SLICE_TICKS;

/// The longest wait of a task, in ticks for each task of its queue, if all weights are equal.
pub const WAIT_TICKS: u64 = 2 * (LAG_TICKS + SLICE_TICKS) + 2;

/// The largest number of tasks that a pick moves from the waiting to the eligible ones. The next
/// picks move the rest.
pub const MOVES: usize = 64;

const ELIGIBLE: u8 = 1;
const MOVED: u8 = 2;

/// The state of EEVDF in a task. Relaxed: see LOCK in [`task`](sched_core::task).
pub struct EevdfState {
    account: Account,
    share: Share,
    /// The vruntime; valid while the task is ready or runs.
    vruntime: AtomicU64,
    /// The end of the request; valid while the task is ready or runs.
    deadline: AtomicU64,
    /// The lag; valid while the task is away.
    lag: AtomicI64,
}

impl InitialState for EevdfState {
    const INITIAL: Self = Self {
        account: Account::INITIAL,
        share: Share::INITIAL,
        vruntime: AtomicU64::new(0),
        deadline: AtomicU64::new(0),
        lag: AtomicI64::new(0),
    };
}

impl EevdfState {
    #[inline]
    fn vruntime(&self) -> Key {
        Key(self.vruntime.load(Relaxed))
    }

    #[inline]
    fn deadline(&self) -> Key {
        Key(self.deadline.load(Relaxed))
    }

    /// Returns the rest of the request, as vruntime.
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

    #[inline]
    fn weight(&self) -> u64 {
        self.share.weight()
    }

    #[inline]
    fn factor(&self) -> Factor {
        self.share.factor()
    }
}

impl Accounted for EevdfState {
    fn account(&self) -> &Account {
        &self.account
    }
}

#[inline]
fn state<T>(task: &EevdfTask<T>) -> &EevdfState {
    task.policy_state().data()
}

/// Returns how long a task runs for its vruntime to grow this far.
#[inline]
fn service(vruntime: u64, weight: u64) -> Counts {
    let weighted = u128::from(vruntime) * u128::from(weight);
    Counts((weighted >> (NORMAL_WEIGHT.trailing_zeros() + FRACTION_BITS)) as u64)
}

/// The policy for one queue, as the [module documentation](self) describes.
pub struct Eevdf<T, C, Q = Buckets<T, EevdfState>> {
    /// The tasks that were not eligible when they came, by vruntime.
    waiting: Q,
    /// The eligible tasks, by deadline. They stay eligible: the virtual time does not go back.
    eligible: Q,
    intervals: RunIntervals<T, Keyed<EevdfState>>,
    time: QueueTime,
    /// The virtual time as last moved (rule 1).
    now: Key,
    /// LOOK: the checks that a pick needs before it takes the first waiting task. `ELIGIBLE` is set
    /// exactly if `eligible` has a task. While it is, `MOVED` is set unless the first waiting task
    /// is not eligible.
    look: u8,
    tick: TickLength,
    /// A request, in counts (rule 3).
    slice: Counts,
    clock: PhantomData<fn() -> C>,
}

impl<T, C: Clock, Q: ByKey<T, EevdfState>> Eevdf<T, C, Q> {
    /// Charges a running or just returned task (rule 2).
    #[inline]
    fn charge(&mut self, state: &EevdfState, run: Counts) {
        state.set_vruntime(state.vruntime().later(state.factor().times(run)));
        self.time.charged(run);
    }

    /// Begins a request at this vruntime (rule 3).
    #[inline]
    fn request(&self, state: &EevdfState, vruntime: Key) {
        state.set_deadline(vruntime.later(state.factor().times(self.slice)));
    }

    /// Begins the next request if this one is served (rule 3).
    fn next_request(&self, state: &EevdfState) -> bool {
        let half_tick = state.factor().times(self.tick.half().min(LONGEST_CHARGE));
        let vruntime = state.vruntime();
        let is_served = vruntime.later(half_tick) >= state.deadline();
        if is_served {
            self.request(state, vruntime);
        }
        is_served
    }

    /// Forgives the running task the debt beyond [`LAG_TICKS`], as if it had left (rule 7). It had
    /// that time while no other task was ready that is owed it, and such debts would add up. `now`
    /// must be up to date.
    fn forgive(&self, state: &EevdfState) {
        let most = self
            .now
            .later(state.factor().times(self.tick.ticks(LAG_TICKS)));
        if state.vruntime() > most {
            let rest = state.rest();
            state.set_vruntime(most);
            state.set_deadline(most.later(rest));
        }
    }

    /// Gives up the rest of a request, and any further time that the task is owed (rule 8). Returns
    /// the vruntime after that. Otherwise a task that yields again and again would save up credit
    /// without end, since each time another task runs, perhaps for longer than a request.
    #[inline]
    fn give_up(&mut self, state: &EevdfState) -> Key {
        let (vruntime, deadline) = (state.vruntime(), state.deadline().max(self.now));
        let rest = deadline.after(vruntime);
        let vruntime = if rest > 0 {
            self.time.charged(service(rest as u64, state.weight()));
            state.set_vruntime(deadline);
            deadline
        } else {
            vruntime
        };
        self.request(state, vruntime);
        vruntime
    }

    /// Moves the virtual time (rule 1). `also` is the vruntime of a task that is about to leave.
    fn move_time(&mut self, now: Counts, uncharged: Counts, also: Option<Key>) {
        let running = self.intervals.running();
        let running = running.map(|running| state(running).vruntime());
        let not_waiting = running.into_iter().chain(also);
        let first = not_waiting.chain(self.waiting.next_key()).min();
        let first = first.filter(|_| self.eligible.is_empty());
        let first = first.map_or(self.now, |first| first.max(self.now));
        let within = first..=first.later(1 << 62);
        self.look |= MOVED;
        self.now = self
            .time
            .advance(self.intervals.id(), now, uncharged, within)
            .to;
    }

    /// Brings the virtual time up to date before a task joins or leaves, since the tasks that were
    /// ready share the time until now. The running task is not charged. This may be another CPU
    /// than its own, on which the task may be migrating, and then it is in another queue (KEY).
    fn catch_up(&mut self, now: Counts, also: Option<Key>) {
        let uncharged = self.intervals.uncharged(now);
        self.move_time(now, uncharged, also);
    }

    /// Adds a task with this lag.
    fn join(&mut self, task: Arc<EevdfTask<T>>, lag: i64, now: Counts) {
        self.catch_up(now, None);
        let state = state(&task);
        let vruntime = self.now.later((lag as u64).wrapping_neg());
        state.set_vruntime(vruntime);
        self.request(state, vruntime);
        self.time.of(self.intervals.id()).join(state.weight());
        self.put(task);
    }

    /// Accounts for a ready or running task that has left with its lag (rule 7). `now` must be up
    /// to date.
    fn leave(&mut self, state: &EevdfState) {
        let lag = self.limited(self.now.after(state.vruntime()), state);
        state.lag.store(lag, Relaxed);
        self.time.of(self.intervals.id()).leave(state.weight());
    }

    /// Returns the part of its lag that a task may keep (rule 7).
    fn limited(&self, lag: i64, state: &EevdfState) -> i64 {
        let owes = state.factor().times(self.tick.ticks(LAG_TICKS)) as i64;
        let owed = state.factor().times(self.slice) as i64;
        lag.clamp(-owes, owed)
    }

    /// Adds a task that was away.
    fn arrived(&mut self, task: Arc<EevdfTask<T>>, why: EnqueueReason, now: Counts) {
        let came = self.intervals.arrived(&task, why, now);
        let state = state(&task);
        let mut lag = state.lag.load(Relaxed);
        if came.moved && came.ran {
            // MIGRATION: its old queue will not see it leave
            let run = state.factor().times(came.interval);
            let vruntime = state.vruntime().later(run);
            lag = VirtualTime::find(came.from).map_or(0, |old| {
                let lag = old.at(now).after(vruntime);
                old.leave_running(state.weight(), came.interval);
                self.limited(lag, state)
            });
        }
        // The lag is in ticks of the queue that it left, which may have been longer.
        let request = state.factor().times(self.slice) as i64;
        self.join(task, lag.min(request), now);
    }

    /// Puts a ready task into its queue. `around` is that of [`ByKey::insert`].
    #[inline]
    fn enqueue_at(&mut self, task: Arc<EevdfTask<T>>, vruntime: Key, around: Key) {
        if vruntime > self.now {
            self.waiting.insert(task, vruntime, around);
        } else {
            self.make_eligible(task);
        }
    }

    /// Makes a task eligible. It is not inlined, since the rarely used code would make each yield
    /// dearer.
    #[inline(never)]
    fn make_eligible(&mut self, task: Arc<EevdfTask<T>>) {
        self.look |= ELIGIBLE | MOVED;
        let deadline = state(&task).deadline();
        self.eligible.insert(task, deadline, self.now);
    }

    /// Puts a task that has not yielded into its queue.
    #[inline(never)]
    fn put(&mut self, task: Arc<EevdfTask<T>>) {
        let vruntime = state(&task).vruntime();
        if vruntime > self.now {
            self.waiting.place(task, vruntime, self.now);
        } else {
            self.look |= ELIGIBLE | MOVED;
            let deadline = state(&task).deadline();
            self.eligible.place(task, deadline, self.now);
        }
    }

    /// Takes out the next task (rule 4).
    #[inline]
    fn pop(&mut self) -> Option<Arc<EevdfTask<T>>> {
        if self.look != 0 {
            return self.pop_eligible();
        }
        self.waiting.pop()
    }

    /// Takes out the next task if a task is eligible, or may have become so (LOOK).
    #[inline(never)]
    fn pop_eligible(&mut self) -> Option<Arc<EevdfTask<T>>> {
        if self.look & MOVED != 0 {
            self.move_eligible();
        }
        let first = self.eligible.pop();
        if self.eligible.is_empty() {
            self.look &= !ELIGIBLE;
        }
        first.or_else(|| self.waiting.pop())
    }

    /// Moves the waiting tasks that have become eligible, at most [`MOVES`] of them.
    fn move_eligible(&mut self) {
        for _ in 0..MOVES {
            let next = self.waiting.next_key();
            if next.is_none_or(|next| next > self.now) {
                self.look &= !MOVED;
                return;
            }
            let task = self.waiting.pop().expect("it was next");
            self.make_eligible(task);
        }
    }

    /// Ends a pick that follows no yield.
    #[cold]
    #[inline(never)]
    fn dispatch_after_no_yield(
        &mut self,
        first: Option<Arc<EevdfTask<T>>>,
    ) -> Option<Arc<EevdfTask<T>>> {
        self.intervals.begin_or_idle::<C>(first.as_ref());
        if first.is_none() {
            self.tick.idle();
        }
        first
    }

    /// Enqueues a task that has not just yielded here.
    #[cold]
    #[inline(never)]
    fn enqueue_slow(&mut self, task: Arc<EevdfTask<T>>, why: EnqueueReason) {
        let now = C::now();
        if !self.intervals.ran_here(&task, why) {
            return self.arrived(task, why, now);
        }
        let interval = self.intervals.end(&task, now);
        self.intervals.let_go();
        self.charge(state(&task), interval); // rule 9: and no more
        self.next_request(state(&task));
        self.put(task);
    }

    /// Fits the request and the buckets to the length of a tick, which may have changed.
    fn fit(&mut self) {
        let tick = self.tick.length();
        self.slice = self.tick.ticks(SLICE_TICKS);
        self.waiting.fit(tick);
        self.eligible.fit(tick);
    }

    /// Takes a ready task out.
    fn take(&mut self, task: &Arc<EevdfTask<T>>) -> Option<Arc<EevdfTask<T>>> {
        if !task.is_queued() {
            return None;
        }
        let eligible = self.eligible.remove(task);
        if self.eligible.is_empty() {
            self.look &= !ELIGIBLE;
        }
        eligible.or_else(|| self.waiting.remove(task))
    }

    /// Accounts for a ready task that was taken out.
    fn removed(&mut self, task: &EevdfTask<T>) {
        self.intervals.removed(task);
        let state = state(task);
        self.catch_up(C::now(), Some(state.vruntime()));
        self.leave(state);
    }

    fn has_ready(&self) -> bool {
        !(self.eligible.is_empty() && self.waiting.is_empty())
    }
}

#[cfg(test)]
impl<T, C: Clock, Q: ByKey<T, EevdfState>> Eevdf<T, C, Q> {
    /// Checks that the virtual time has the weights of the ready and running tasks only, and that
    /// each eligible task is in that queue by its deadline.
    fn assert_valid(&mut self) {
        let id = self.intervals.id();
        let running = self.intervals.running().into_iter();
        let running: u64 = running.map(|task| state(task).weight()).sum();
        let ready = self
            .eligible
            .tasks()
            .into_iter()
            .chain(self.waiting.tasks());
        let ready: u64 = ready.map(|task| state(task).weight()).sum();
        assert_eq!(self.time.of(id).weight(), ready + running);
        let is_eligible = self.look & ELIGIBLE != 0;
        assert_eq!(is_eligible, !self.eligible.is_empty(), "LOOK");
        let next = self.waiting.next_key();
        let none_waits = next.is_none_or(|next| next > self.now);
        assert!(!is_eligible || none_waits || self.look & MOVED != 0, "LOOK");
        for task in self.eligible.tasks() {
            let state = state(task);
            assert_eq!(task.key(), state.deadline());
            assert!(state.vruntime() <= self.now, "rule 2: not eligible");
        }
        for task in self.waiting.tasks() {
            assert_eq!(task.key(), state(task).vruntime());
        }
    }
}

impl<T, C: Clock, Q: ByKey<T, EevdfState>> Policy for Eevdf<T, C, Q> {
    type Inner = T;
    type State = Keyed<EevdfState>;
    const NAME: &'static str = "EEVDF";
    const EVENTS: EventLevel = EventLevel::Departures;
    const NEW: Self = Self {
        waiting: Q::NEW,
        eligible: Q::NEW,
        intervals: RunIntervals::new(),
        time: QueueTime::NEW,
        now: Key(0),
        look: 0,
        tick: TickLength::new(),
        slice: Counts::ZERO,
        clock: PhantomData,
    };

    fn spawned(&mut self, task: Arc<EevdfTask<T>>) {
        self.intervals.adopt(&task);
        self.join(task, 0, C::now()); // rule 6
    }

    #[inline]
    fn enqueue(&mut self, task: Arc<EevdfTask<T>>, why: EnqueueReason) {
        // A yield's path is inlined as under CFS.
        if why != EnqueueReason::Yielded || !self.intervals.ran_here(&task, why) {
            return self.enqueue_slow(task, why);
        }
        let now = C::now();
        let interval = self.intervals.end(&task, now);
        self.charge(state(&task), interval);
        self.intervals.set_aside_charged(&task, now); // rule 8
    }

    #[inline(never)]
    fn current_left(&mut self) {
        let now = C::now();
        let Some((task, interval)) = self.intervals.left(now) else {
            return; // MIGRATION: the virtual time has its CPU time here
        };
        let state = state(&task);
        self.charge(state, interval);
        self.move_time(now, Counts::ZERO, Some(state.vruntime()));
        self.leave(state);
    }

    #[inline(always)]
    fn dispatch(&mut self) -> Option<Arc<EevdfTask<T>>> {
        let first = self.pop();
        let Some((yielder, now)) = self.intervals.take_yielder() else {
            return self.dispatch_after_no_yield(first);
        };
        let next = match first {
            Some(first) => {
                let vruntime = self.give_up(state(&yielder)); // rule 8
                self.enqueue_at(yielder, vruntime, state(&first).vruntime());
                first
            }
            None => {
                self.next_request(state(&yielder));
                yielder
            }
        };
        self.intervals.begin(&next, now);
        Some(next)
    }

    fn ticked(&mut self, running: &Arc<EevdfTask<T>>) -> Tick {
        let now = C::now();
        self.tick.tick(now);
        self.fit();
        let Some(interval) = RunIntervals::take_uncharged(running, now) else {
            // `main` before its first pick has no account: any ready task goes before it.
            return Tick::reschedule_if(self.has_ready());
        };
        let state = state(running);
        self.charge(state, interval);
        self.move_time(now, Counts::ZERO, None);
        if self.slice != Counts::ZERO {
            self.forgive(state);
        }
        Tick::reschedule_if(self.next_request(state) && self.has_ready()) // rule 5
    }

    fn remove(&mut self, task: &Arc<EevdfTask<T>>) -> Option<Arc<EevdfTask<T>>> {
        let yielder = self.intervals.remove_yielder(task);
        let removed = yielder.or_else(|| self.take(task))?;
        self.removed(&removed);
        Some(removed)
    }

    fn migrate_out(
        &mut self,
        may: &May<'_, Self>,
        take_request: &dyn Fn() -> bool,
    ) -> Option<TaskRef<Self>> {
        // As a pick does: after one of a waiting task the next is picked by its virtual runtime.
        if self.look & MOVED != 0 {
            self.move_eligible();
        }
        let eligible = self.eligible.remove_first(may, take_request);
        if self.eligible.is_empty() {
            self.look &= !ELIGIBLE;
        }
        let given = eligible.or_else(|| self.waiting.remove_first(may, take_request))?; // rule 11
        self.removed(&given);
        Some(given)
    }

    /// Sets the nice value. Linear for a ready task, for which `axtask` never calls it.
    fn set_priority(&mut self, task: &Arc<EevdfTask<T>>, nice: isize) -> bool {
        let Some(index) = nice::index(nice) else {
            return false;
        };
        let now = C::now();
        let state = state(task);
        let ready = self.take(task);
        let is_ready = ready.is_some() || task.is_queued(); // here, or elsewhere
        let interval = match is_ready {
            true => None,
            false => RunIntervals::take_uncharged(task, now),
        };
        if let Some(interval) = interval {
            self.charge(state, interval); // rule 10
        }
        self.catch_up(now, ready.as_ref().map(|_| state.vruntime()));
        let old = state.weight();
        state.share.set(index);
        let new = state.weight();
        let reweighed = |time: i64| (i128::from(time) * i128::from(old) / i128::from(new)) as i64;
        let is_here = interval.is_some() || ready.is_some();
        if is_here {
            let lag = reweighed(self.now.after(state.vruntime()));
            let rest = reweighed(state.rest() as i64);
            state.set_vruntime(self.now.later((lag as u64).wrapping_neg()));
            state.set_deadline(state.vruntime().later(rest as u64));
        } else {
            state.lag.store(reweighed(state.lag.load(Relaxed)), Relaxed);
        }
        if (is_here || task.is_queued())
            && let Some(time) = VirtualTime::find(RunIntervals::home(task))
        {
            time.reweigh(old, new);
        }
        if let Some(ready) = ready {
            self.put(ready);
        }
        true
    }
}

#[cfg(test)]
mod tests;
