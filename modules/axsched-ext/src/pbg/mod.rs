//! PBG: program-behaviour-guided scheduling.
//!
//! A unikernel runs the same program again and again. The first run is
//! measured, the measurement becomes a plan, later runs follow the plan:
//! profile-guided optimisation, for the scheduler. The idea, the three calls
//! and the shortest-job-first order are from Qin Ruoyu's report on scheduling
//! in ArceOS (Tsinghua University, 2023), which took its cue from Mira (Guo, He
//! and Zhang, SOSP 2023); there the measurement was constants in the test programs.
//!
//! **Who is who**
//!  1. The task that makes a starting call is the root. A task's key is its
//!     parent's key and its place among its parent's spawns, so it is the same
//!     on every run; or, if it was given a label, that, whichever of the program's
//!     tasks spawned it. Only the root's descendants have keys; the root itself,
//!     `gc`, helpers, and tasks older than the call are outside. (A spawn from a
//!     timer callback counts as one of the task that was interrupted.)
//!
//! **Measuring**
//!  2. Before, while, and unless a plan is followed, the base policy runs: round
//!     robin with 5 ticks ([`rr`], its rules). A measurement may be made under
//!     FIFO instead ([`Base`]).
//!  3. Of each task its time on the CPU, its time ready and its time blocked are
//!     recorded; how often it was dispatched, yielded, was preempted and blocked;
//!     and in which order ([`stored::Phases`]). A burst begins when the task is
//!     dispatched and ends when it yields, is preempted, blocks or exits; the last
//!     one of a record counts as ended by the exit.
//!  4. At most [`MAX_TASKS`] tasks are recorded, each with at most [`MAX_PHASES`]
//!     phases; later tasks run, unrecorded, and more phases become coarser.
//!
//! **Following the plan**
//!  5. Tasks run in the order of the [plan]: band by band, and within a band the
//!     ready task first that has the least before it: all that remains of it, or, the
//!     more it is blocked, only up to its next block; the plan knows how much that is,
//!     and the replay what is done already. A task keeps the CPU across its own yields,
//!     without a context switch, and one that becomes ready and has less before it takes over
//!     at the next yield or tick. A blocked task is simply not ready.
//!  6. A task whose key is not in the plan, or is taken already, runs from the
//!     fallback queue, round robin, whenever no planned task is ready.
//!  7. While tasks outside the plan and planned ones are both ready, one of the
//!     former gets a turn after every [`PLAN_TICKS`] ticks, until it gives way or
//!     for a whole tick. So they have at least one tick in `PLAN_TICKS` + 1 if
//!     they can use it, and one of n of them runs again within n × (`PLAN_TICKS`
//!     + 2) ticks: a turn that begins in the midst of a tick has all of the next.
//!  8. A planned task found beyond [`OVERRUN_FACTOR`] times the most time that was
//!     recorded of it, by [`OVERRUN_TICKS`] ticks, or at [`OVERRUN_HANDOVERS`]
//!     handovers of the CPU (its exit is one; a tick counts for eight of them),
//!     or that has yielded [`FREE_YIELDS`] times more than that factor allows,
//!     is demoted: it runs from the fallback queue from then on, and the rest of
//!     the plan stands. So a planned task waits for its predecessors' planned
//!     time twice, and for each for that many ticks or handovers; and for the
//!     tenth of rule 7.
//!  9. The root is outside the plan, but the program's next steps depend on it: when
//!     it wakes it goes first, at the next yield or tick, or when the turn of
//!     rule 7 ends that somebody has, until it gives way or the next tick comes;
//!     once between two ticks that hit planned tasks, and the turns of the others
//!     do not wait for that.
//! 10. When more than two thirds of the plan's tasks have been demoted, the plan is dropped
//!     at the next tick: all that are ready go to the fallback queue, by rank, and round
//!     robin runs. Tasks outside the plan, however many and however long they run,
//!     say nothing about what is in it.
//! 11. Shortest first keeps at no time more tasks waiting than another order (Schrage, A
//!     proof of the optimality of the shortest remaining processing time discipline, 1968),
//!     unless one waits for another, which a record does not say. So it is told by the
//!     turnaround: when the tasks that have come are later than when they were measured, by
//!     more than 1/[`BEHIND_BEYOND`] of all measured turnaround together and a tick for each
//!     task of the plan, the replay is behind, and the plan is dropped at that tick: all that
//!     are ready go to the fallback queue, first those that are late, as they came, and
//!     then the others, by rank. Not counted are [`LATE_BY_ITSELF`] times what a late task has used beyond its record, and,
//!     for each task of the plan, what all have used beyond their record and unknown
//!     tasks at all. The plan stays if the call that started it says so ([`Behind`]), or if
//!     the user has set priorities or latest times. After the last task's end the status
//!     tells, with nothing left out, whether the replay was slower.
//!
//! **Cost.** Measuring adds to a switch one counter read and six memory
//! accesses. Following the plan, a
//! yield that keeps the CPU moves one pointer aside and back and counts; other picks
//! are a find-first-set over two words, and a return to the ready set is a binary
//! search in the task's band and, among those who stand at the same place, a walk past
//! 64 at most. The counter is read only when the CPU may change hands. Once, when
//! an order is taken, every ready task is looked at, and every place of the plan; once,
//! when a task is demoted, those who stand where it stands. A tick looks at 64 tasks.
//! Nothing allocates in pick, put or tick: the calls do.
//!
//! **Limits.** One CPU ([`syscall`](crate::syscall)). Ticks and preemption
//! (`axtask/preempt`) are needed for rules 7 to 11.

mod control;
mod measure;
pub mod plan;
mod replay;
pub mod stored;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

#[cfg(feature = "std")]
pub use control::PerThread;
pub use control::{
    About, Base, Behind, CONTROL, Control, Divergence, LoadError, Mailbox, Phase, Status, System,
    Why,
};
pub use measure::{MAX_PHASES, MAX_TASKS, RECORD_BYTES};
pub use plan::{BLOCKS_IN_FULL, EQUAL_WITHIN, Late, Plan, PlannedTask, Step, Weight};
pub use replay::{
    BEHIND_BEYOND, ENTRY_BYTES, FREE_YIELDS, LATE_BY_ITSELF, OVERRUN_FACTOR, OVERRUN_HANDOVERS,
    OVERRUN_TICKS, PLAN_TICKS,
};

use crate::base::BaseScheduler;
use crate::clock::{Clock, CpuCounter};
use crate::event::{Return, Running, Tick};
use crate::queue::{Queue, Slot};
use crate::rr::{self, RrState};
use crate::syscall::Error;
use crate::task::{Fresh, Task};
use crate::units::Counts;
use control::{Order, Stance};
use measure::{OUTSIDE, Recorded, Recorder};
use replay::Replay;

/// Timer ticks in a slice of the base policy and of the fallback queue.
pub const SLICE_TICKS: usize = 5;

/// A task under [`PbgScheduler`].
pub type PbgTask<T> = Task<T, PbgState>;

/// Which of the program's tasks somebody is while a plan is followed: a rank, or one
/// of three that have none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
struct Member(u32);

impl Member {
    /// None of the program's.
    const OUTSIDE: Self = Self(u32::MAX);
    const ROOT: Self = Self(u32::MAX - 1);
    /// The program's, but not in the plan.
    const UNKNOWN: Self = Self(u32::MAX - 2);

    const fn of(rank: u32) -> Self {
        Self(rank)
    }

    #[inline]
    const fn index(self) -> Option<usize> {
        if self.0 < Self::UNKNOWN.0 {
            Some(self.0 as usize)
        } else {
            None
        }
    }

    /// The rank of one who has one.
    #[inline]
    const fn rank(self) -> usize {
        self.0 as usize
    }
}

/// What PBG remembers of a task. Relaxed: see LOCK in [`task`](crate::task).
///
/// KNOWN: of a task in a queue, `epoch` is its queue's, and the rest is of that
/// epoch. 0 is a task that was never added: `main`, or a migration helper.
pub struct PbgState {
    slice: RrState<SLICE_TICKS>,
    epoch: AtomicU32,
    /// A [`Member`].
    member: AtomicU32,
    record: Recorded,
}

impl PbgState {
    fn set(&self, epoch: u32, member: Member, record: &'static measure::Record) {
        self.epoch.store(epoch, Relaxed);
        self.member.store(member.0, Relaxed);
        self.record.set(record);
    }

    #[inline]
    fn member(&self) -> Member {
        Member(self.member.load(Relaxed))
    }
}

impl Fresh for PbgState {
    const FRESH: Self = Self {
        slice: RrState::FRESH,
        epoch: AtomicU32::new(0),
        member: AtomicU32::new(Member::OUTSIDE.0),
        record: Recorded::nowhere(),
    };
}

impl AsRef<RrState<SLICE_TICKS>> for PbgState {
    #[inline]
    fn as_ref(&self) -> &RrState<SLICE_TICKS> {
        &self.slice
    }
}

/// An empty vector with room for `len`: what the calls allocate may be refused.
fn reserved<A>(len: usize) -> Result<Vec<A>, Error> {
    let mut vec = Vec::new();
    vec.try_reserve_exact(len).map_err(|_| Error::NoMemory)?;
    Ok(vec)
}

/// `keeps` of a queue that follows no plan.
const NO_PLAN: i64 = -1;

/// Who made the last starting call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// There was none.
    Nobody,
    /// `main`, before its first pick.
    Main,
    /// The task at this address.
    At(*const ()),
}

/// The PBG scheduler, as the [module documentation](self) has it; `C` is where it reads
/// the time, `M` where it finds its control.
///
/// Not a [`Policy`](crate::event::Policy): one that keeps the CPU across a yield has to
/// know of the put and of the pick that follows, and needs no event for either.
pub struct PbgScheduler<T, C = CpuCounter, M = System> {
    /// Who has the CPU, or had it last.
    running: Running,
    /// Counts the orders that this queue has taken, from 1.
    epoch: u32,
    registered: bool,
    root: Root,
    /// While measuring.
    recorder: Option<&'static Recorder>,
    /// Every ready task; in a replay, those that run from the fallback queue.
    queue: Queue<T, PbgState>,
    replay: Option<Replay<T>>,
    /// In a replay: who has the CPU, or had it last, and since when it was not charged.
    member: Member,
    since: Counts,
    /// KEEP: how often the running task may yield and go on at once. Above 0 only if
    /// it follows the plan, and nothing has become ready and no tick has asked for
    /// the CPU since it was dispatched: then nobody can be before it. Below 0
    /// exactly if there is no `replay`: then a yield is the base policy's.
    keeps: i64,
    /// What `keeps` was at the dispatch, in a replay.
    granted: i64,
    /// The running task, between its yield and the pick that gives it the CPU back.
    held: Slot<T, PbgState>,
    types: PhantomData<(C, M)>,
}

// SAFETY: the address in `root` is compared only, the queue and the replay own their
// tasks, and `C` and `M` are only names.
unsafe impl<T: Send + Sync, C, M> Send for PbgScheduler<T, C, M> {}

impl<T, C, M> PbgScheduler<T, C, M> {
    /// An empty scheduler.
    pub const fn new() -> Self {
        Self {
            running: Running::NOBODY,
            epoch: 1,
            registered: false,
            root: Root::Nobody,
            recorder: None,
            queue: Queue::new(),
            replay: None,
            member: Member::OUTSIDE,
            since: Counts::ZERO,
            keeps: NO_PLAN,
            granted: 0,
            held: Slot::EMPTY,
            types: PhantomData,
        }
    }

    /// The name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        "PBG"
    }
}

impl<T, C, M> Default for PbgScheduler<T, C, M> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, C: Clock, M: Mailbox> PbgScheduler<T, C, M> {
    /// Takes the order that a call has left. The running task is still the caller
    /// then, which is how the root is known.
    ///
    /// Only an add and a pick look: until one of them comes, nothing happens
    /// that depends on it.
    #[cold]
    fn take_order(&mut self) {
        let control = M::control();
        // A call holds the lock at this moment: the stance is left as it is, to look
        // again. Or another queue has the order: the stance is its affair.
        let Some(order) = control.take_order() else {
            return;
        };
        self.epoch += 1;
        self.root = match (self.running.address(), self.root) {
            (running, _) if !running.is_null() => Root::At(running),
            (_, Root::Nobody) => Root::Main,
            // Still `main`, or one that we had forgotten (`add_task`).
            (_, last) => last,
        };
        let stance = match order {
            Order::Stop => {
                self.recorder = None;
                Stance::BASE
            }
            Order::Measure(recorder) => {
                // Here and not in the call: until now this queue may have written
                // into the record of the measurement before.
                recorder.clear();
                control.running.set(recorder.root());
                self.recorder = Some(recorder);
                Stance::MEASURE
            }
            Order::Replay(table) => {
                assert!(self.replay.is_none(), "a control replays once");
                self.replay = Some(Replay::new(table));
                self.keeps = 0;
                self.member = Member::ROOT;
                self.since = C::now();
                Stance::REPLAY
            }
        };
        self.queue.each(|task| {
            self.recognise(task);
        }); // KNOWN
        control.set_stance(stance);
    }

    /// Who a task is that is older than the epoch: its root, or outside.
    fn look_at(&self, task: &PbgTask<T>) -> Member {
        let is_root = match self.root {
            Root::Nobody => false,
            // On one CPU no other task that was never added comes back (migration
            // helpers do, on several).
            Root::Main => task.state().epoch.load(Relaxed) == 0,
            Root::At(address) => core::ptr::eq((&raw const *task).cast(), address),
        };
        if is_root {
            Member::ROOT
        } else {
            Member::OUTSIDE
        }
    }

    /// Looks at it and lets it know.
    #[cold]
    fn recognise(&self, task: &PbgTask<T>) -> Member {
        let member = self.look_at(task);
        let record = match (member, self.recorder) {
            (Member::ROOT, Some(recorder)) => recorder.root(),
            _ => &OUTSIDE,
        };
        // `main` is known by its 0, as long as it has not been picked.
        let epoch = match task.state().epoch.load(Relaxed) {
            0 => 0,
            _ => self.epoch,
        };
        task.state().set(epoch, member, record);
        member
    }

    /// Who a task is that comes from elsewhere.
    #[inline]
    fn known(&self, task: &PbgTask<T>) -> Member {
        if task.state().epoch.load(Relaxed) == self.epoch {
            task.state().member()
        } else {
            self.recognise(task)
        }
    }

    /// A yield under the base policy. Not inlined, so that `axtask` can inline what
    /// leads here: that is cheaper than to have this inlined where that is not.
    #[inline(never)]
    fn yields(&mut self, task: Arc<PbgTask<T>>) {
        rr::requeue(&mut self.queue, task, Return::Yielded);
    }

    /// A task comes back, and neither keeps the CPU nor yields under the base policy.
    ///
    /// Not inlined, so that `axtask` can inline those two.
    #[inline(never)]
    fn come_back(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        match M::control().stance() {
            Stance::REPLAY => return self.come_back_planned(task, why),
            Stance::MEASURE if why == Return::Woken => {
                self.known(&task);
                task.state().record.get().woken(C::now());
            }
            Stance::MEASURE => task.state().record.get().preempted(),
            _ => {}
        }
        rr::requeue(&mut self.queue, task, why);
    }

    #[inline(never)]
    fn come_back_planned(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        let Some(replay) = &mut self.replay else {
            return rr::requeue(&mut self.queue, task, why);
        };
        let tally = &M::control().tally;
        if why == Return::Woken {
            self.stop_keeping();
            let member = self.known(&task);
            let Some(replay) = &mut self.replay else {
                return;
            };
            replay.waits(member);
            if replay.follows(member) {
                return replay.ready_woken(member, task);
            }
            // (It may be running: then it was forgotten, and has only given way.)
            let wakes = member == Member::ROOT && self.member != Member::ROOT;
            let rest = if wakes {
                replay.root_woke(task) // rule 9
            } else {
                Some(task)
            };
            if let Some(task) = rest {
                rr::requeue(&mut self.queue, task, why);
            }
            return;
        }
        // It had the CPU: it is `self.member`.
        let now = C::now();
        replay.charge(self.member, now - self.since);
        self.since = now;
        replay.yielded(self.member, (self.granted - self.keeps) as u64, tally);
        self.granted = 0;
        self.keeps = 0;
        if why == Return::Yielded {
            replay.yielded(self.member, 1, tally);
        }
        replay.waits(self.member);
        if replay.follows(self.member) {
            replay.ready_again(self.member, task);
        } else {
            rr::requeue(&mut self.queue, task, why);
        }
    }

    /// Rules 10 and 11: from this tick on, round robin runs.
    #[cold]
    fn drop_plan(&mut self, running: &PbgTask<T>) -> Tick {
        self.stop_keeping();
        if let Some(replay) = &mut self.replay {
            let queue = &mut self.queue;
            replay.drop_plan(|task| queue.push_back(task), &M::control().tally);
        }
        running.state().slice.tick()
    }

    /// KEEP ends: somebody has become ready, or a tick wants the CPU.
    fn stop_keeping(&mut self) {
        if let Some(replay) = &mut self.replay {
            let tally = &M::control().tally;
            replay.yielded(self.member, (self.granted - self.keeps) as u64, tally);
        }
        self.granted = 0;
        self.keeps = 0;
        if let Some(task) = self.held.take() {
            // On another CPU, between the yield and the pick.
            self.come_back_planned(task, Return::Yielded);
        }
    }

    #[inline(always)]
    fn dispatch_measured(&mut self) -> Option<Arc<PbgTask<T>>> {
        let running = &M::control().running;
        let now = C::now();
        running.get().ends(now);
        let Some(next) = self.queue.pop_front() else {
            running.set(&OUTSIDE);
            return None;
        };
        let record = next.state().record.get();
        record.begins(now);
        running.set(record);
        Some(next)
    }

    /// Not inlined, and all in one, so that the ways that matter are short.
    #[inline(never)]
    fn dispatch_otherwise(&mut self) -> Option<Arc<PbgTask<T>>> {
        if M::control().stance() == Stance::ORDER {
            self.take_order();
        }
        match M::control().stance() {
            Stance::MEASURE => self.dispatch_measured(),
            Stance::REPLAY => self.dispatch_planned(),
            _ => self.queue.pop_front(), // or the order has to wait
        }
    }

    fn dispatch_planned(&mut self) -> Option<Arc<PbgTask<T>>> {
        let Some(replay) = &mut self.replay else {
            return self.queue.pop_front(); // the plan is another queue's
        };
        let tally = &M::control().tally;
        let waiting = !self.queue.is_empty();
        let next = if let Some(root) = replay.take_root() {
            Some(root) // rule 9
        } else if let Some(task) = replay.take_first(waiting) {
            Some(task)
        } else {
            replay.fallback_turn(tally);
            self.queue.pop_front()
        };
        let member = next
            .as_ref()
            .map_or(Member::OUTSIDE, |task| task.state().member());
        let now = C::now();
        replay.charge(self.member, now - self.since);
        // What it has yielded and was not told, if it has left by itself.
        replay.yielded(self.member, (self.granted - self.keeps) as u64, tally);
        if member != self.member
            && let Some(demoted) = replay.handed_over(self.member, now, tally)
        {
            rr::requeue(&mut self.queue, demoted, Return::Yielded); // rule 8
        }
        self.member = member;
        self.since = now;
        self.granted = replay.dispatched(member);
        self.keeps = self.granted;
        next
    }

    fn ticked(&mut self, running: &Arc<PbgTask<T>>) -> Tick {
        let control = M::control();
        let Some(replay) = &mut self.replay else {
            let tick = running.state().slice.tick();
            return if control.base_ticks() {
                tick
            } else {
                Tick::Continue
            };
        };
        let tally = &control.tally;
        let member = self.member;
        if replay.is_refuted(tally) {
            return self.drop_plan(running); // rule 10
        }
        let now = C::now();
        if replay.is_behind(member, self.since, now, tally) {
            return self.drop_plan(running); // rule 11
        }
        if replay.follows(member) {
            let burst = now - self.since;
            let tick = replay.ticked(member, burst, !self.queue.is_empty(), tally);
            if !replay.follows(member) {
                running.state().slice.end_turn(); // demoted: to the end of the queue
            }
            if tick == Tick::Reschedule {
                self.stop_keeping();
            }
            return tick;
        }
        if !replay.any_ready() {
            let tick = running.state().slice.tick();
            return if replay.root_due() {
                Tick::Reschedule // rule 9
            } else {
                tick
            };
        }
        let tick = replay.ticked_outside(tally);
        if tick == Tick::Reschedule {
            running.state().slice.end_turn();
        }
        tick
    }
}

impl<T, C: Clock, M: Mailbox> BaseScheduler for PbgScheduler<T, C, M> {
    type SchedItem = Arc<PbgTask<T>>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Arc<PbgTask<T>>) {
        if M::control().stance() == Stance::ORDER {
            self.take_order();
            // The caller may be known by what it was in an earlier epoch: it shall
            // come back as one who has to be looked at.
            self.running.forget();
        }
        let control = M::control();
        if !self.registered {
            self.registered = true; // this is `gc`, the queue's first task
            control.register_queue();
        }
        let label = control.take_label();
        let mut member = Member::OUTSIDE;
        let mut record = &OUTSIDE;
        match (control.stance(), self.recorder, &mut self.replay) {
            (Stance::MEASURE, Some(recorder), _) => {
                record = recorder.spawned(control.running.get(), label.as_ref(), C::now());
            }
            (Stance::REPLAY, _, Some(replay)) => {
                member = replay.spawned(self.member, label.as_ref(), C::now(), &control.tally);
                self.stop_keeping();
            }
            _ => {}
        }
        task.state().set(self.epoch, member, record);
        match &mut self.replay {
            Some(replay) if replay.follows(member) => replay.ready_first(member, task),
            _ => self.queue.push_back(task),
        }
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Arc<PbgTask<T>>, preempt: bool) {
        if !preempt && self.running.is(&prev) {
            if self.keeps > 0 {
                self.keeps -= 1;
                self.held.put(prev); // rule 5
                return;
            }
            if self.keeps < 0 {
                return self.yields(prev);
            }
        }
        let why = self.running.why(&prev, preempt);
        self.come_back(prev, why);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Arc<PbgTask<T>>> {
        if let Some(task) = self.held.take() {
            return Some(task); // it is the one who runs
        }
        let stance = M::control().stance();
        let next = if stance == Stance::BASE {
            self.queue.pop_front()
        } else if stance == Stance::MEASURE {
            self.dispatch_measured()
        } else {
            self.dispatch_otherwise()
        };
        self.running.picked(next.as_ref());
        next
    }

    #[inline]
    fn task_tick(&mut self, current: &Arc<PbgTask<T>>) -> bool {
        self.ticked(current) == Tick::Reschedule
    }

    fn remove_task(&mut self, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        if self.held.holds(task) {
            return self.held.take();
        }
        if let Some(replay) = &mut self.replay
            && let Some(task) = replay.remove(task.state().member(), task)
        {
            return Some(task);
        }
        self.queue.remove(task)
    }

    fn set_priority(&mut self, _: &Arc<PbgTask<T>>, _: isize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
