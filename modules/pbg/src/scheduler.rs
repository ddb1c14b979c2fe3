//! A task's way through PBG: added, put back, picked, hit by a tick, removed.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use super::control::{Command, ModeByte};
use super::cpus::first;
use pbg_record::record::{IDLE, OUTSIDE, RecordRef};
use pbg_record::recorder::Recorder;
use super::replay::Replay;
use super::source::{ControlSource, SystemControl};
use super::task::{PbgState, PbgTask, Role};
use sched_core::base::BaseScheduler;
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::{Return, Running, Tick};
use sched_core::queue::{Queue, Slot};
use sched_policies::rr;

/// `budget` of a queue that follows no plan.
pub(super) const NO_PLAN: i64 = -1;

/// Who made the last starting call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// There was no such call.
    Nobody,
    /// `main`, before its first pick.
    Main,
    /// The task at this address.
    At(*const ()),
}

/// What this queue does in the present mode: that of the last command that it took. Another
/// queue may have taken another.
#[expect(clippy::large_enum_variant, reason = "one, on the scheduling path")]
pub(super) enum Work<T> {
    /// The base policy runs, and nothing is recorded.
    Base,
    /// The base policy runs, and here is recorded what it does.
    Measure(&'static Recorder),
    /// A plan is followed, which has all that are ready.
    Replay(Replay<T>),
}

/// The PBG scheduler, as the [module documentation](super) has it; `C` is where it reads
/// the time, `M` where it finds its control.
///
/// Not a [`Policy`](sched_core::event::Policy): one that keeps the CPU across a yield has to
/// know of the put and of the pick that follows, and needs no event for either.
pub struct PbgScheduler<T, C = CpuCounter, M = SystemControl> {
    /// Who has the CPU, or had it last.
    pub(super) running: Running,
    /// Counts the commands that this queue has taken, from 1.
    pub(super) epoch: u32,
    /// This queue has had its first task, which is its CPU's `gc`.
    has_gc: bool,
    root: Root,
    /// KEEP: how often the running task may yield and go on at once. Above 0 only if
    /// it follows the plan, and nothing has become ready and no tick has asked for
    /// the CPU since it was dispatched: then nobody can be before it. Below 0
    /// exactly if the queue does not replay: then a yield is the base policy's. So one
    /// load and one comparison tell a yield which of its three ways to go.
    pub(super) budget: i64,
    /// The running task, between its yield and the pick that gives it the CPU back.
    pub(super) kept: Slot<T, PbgState>,
    /// Every ready task, but in a replay, which has them.
    pub(super) queue: Queue<T, PbgState>,
    pub(super) work: Work<T>,
    types: PhantomData<(C, M)>,
}

// SAFETY: the address in `root` is compared only, the queue and the replay own their
// tasks, and `C` and `M` are only names.
unsafe impl<T: Send + Sync, C, M> Send for PbgScheduler<T, C, M> {}

/// The record of who has the CPU that acts.
#[inline(always)]
fn running<M: ControlSource>() -> &'static RecordRef {
    &M::control().running[M::cpu()]
}

impl<T, C, M> PbgScheduler<T, C, M> {
    /// An empty scheduler.
    pub const fn new() -> Self {
        Self {
            running: Running::NOBODY,
            epoch: 1,
            has_gc: false,
            root: Root::Nobody,
            budget: NO_PLAN,
            kept: Slot::EMPTY,
            queue: Queue::new(),
            work: Work::Base,
            types: PhantomData,
        }
    }

    /// An empty scheduler that is of no CPU, and so has no `gc` of its own.
    pub(super) const fn without_gc() -> Self {
        let mut scheduler = Self::new();
        scheduler.has_gc = true;
        scheduler
    }

    /// Marks the first task that is added to this queue, which is its CPU's `gc`. Returns true
    /// if `task` is that.
    pub(super) fn mark_gc(&mut self, task: &PbgTask<T>) -> bool {
        let is_gc = !core::mem::replace(&mut self.has_gc, true);
        if is_gc {
            task.state().mark_gc();
        }
        is_gc
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

impl<T, C: Clock, M: ControlSource> BaseScheduler for PbgScheduler<T, C, M> {
    type SchedItem = Arc<PbgTask<T>>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Arc<PbgTask<T>>) {
        let control = M::control();
        if control.mode() == ModeByte::COMMAND {
            self.take_command();
        }
        if self.mark_gc(&task) {
            control.register_queue();
        }
        let label = control.take_label();
        if let Work::Replay(_) = self.work {
            let epoch = self.epoch;
            let now = C::now();
            return self.replay(|replay| replay.spawned(task, epoch, label.as_ref(), now));
        }
        let record = match self.work {
            Work::Measure(recorder) if control.mode() == ModeByte::MEASURING => {
                recorder.spawned(M::cpu(), running::<M>().get(), label.as_ref(), C::now())
            }
            _ => &OUTSIDE,
        };
        task.state().set(self.epoch, Role::OUTSIDE, record);
        self.queue.push_back(task);
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Arc<PbgTask<T>>, preempt: bool) {
        if !preempt && self.running.is(&prev) {
            if self.budget > 0 {
                self.budget -= 1;
                self.kept.put(prev); // rule 5
                return;
            }
            if self.budget < 0 {
                return self.put_yielded(prev);
            }
        }
        let why = self.running.why(&prev, preempt);
        self.put_otherwise(prev, why);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Arc<PbgTask<T>>> {
        if let Some(task) = self.kept.take() {
            return Some(task); // it is the one who runs
        }
        let mode = M::control().mode();
        let next = if mode == ModeByte::IDLE {
            first::<T, M>(&mut self.queue)
        } else if mode == ModeByte::MEASURING {
            self.pick_measured()
        } else {
            self.pick_otherwise()
        };
        self.running.picked(next.as_ref());
        next
    }

    #[inline]
    fn task_tick(&mut self, current: &Arc<PbgTask<T>>) -> bool {
        self.tick(current) == Tick::Reschedule
    }

    fn remove_task(&mut self, task: &Arc<PbgTask<T>>) -> Option<Arc<PbgTask<T>>> {
        if self.kept.holds(task) {
            return self.kept.take();
        }
        match &mut self.work {
            Work::Replay(replay) => replay.remove(task),
            _ => self.queue.remove(task),
        }
    }

    fn set_priority(&mut self, _: &Arc<PbgTask<T>>, _: isize) -> bool {
        false
    }
}

impl<T, C: Clock, M: ControlSource> PbgScheduler<T, C, M> {
    /// Takes the command that a call has left. The running task is still the caller
    /// then, which is how the root is known.
    ///
    /// Only an add and a pick look: until one of them comes, nothing happens
    /// that depends on it.
    #[cold]
    fn take_command(&mut self) {
        let control = M::control();
        // A call holds the lock at this moment: the mode stays as it is, to look
        // again. Or another queue has the command.
        let Some((command, giver)) = control.take_command() else {
            return;
        };
        self.epoch += 1;
        let caller = match giver.is_null() {
            true => self.running.address(),
            false => giver,
        };
        self.root = match self.root {
            _ if !caller.is_null() => Root::At(caller),
            Root::Nobody => Root::Main,
            // Still `main`, or one that was forgotten when the last command was taken.
            last => last,
        };
        assert!(
            !matches!(self.work, Work::Replay(_)),
            "a control replays once"
        );
        self.work = Work::Base;
        if let Command::Measure(recorder) = command {
            // Here and not in the call: until now this queue may have written
            // into the record of the measurement before.
            recorder.clear();
            running::<M>().set(recorder.root());
            self.work = Work::Measure(recorder);
        }
        self.queue.iter().for_each(|task| {
            self.recognise(task);
        }); // KNOWN
        if let Command::Replay(prepared) = command {
            let ready = core::mem::replace(&mut self.queue, Queue::new());
            let replay = Replay::new(prepared, ready, &control.counters, C::now());
            self.budget = replay.granted();
            self.work = Work::Replay(replay);
        }
        // The caller may be known by what it was in an earlier epoch: it shall come back
        // as one who has to be looked at. Not where nothing was taken: then who runs is
        // what the root is still to be known by.
        self.running.forget();
    }

    /// The role of a task that is older than the epoch: its root, or outside.
    fn look_at(&self, task: &PbgTask<T>) -> Role {
        let is_root = match self.root {
            Root::Nobody => false,
            // On one CPU no other task that was never added comes back (migration
            // helpers do, on several).
            Root::Main => task.state().epoch.load(Relaxed) == 0,
            Root::At(address) => core::ptr::eq((&raw const *task).cast(), address),
        };
        if is_root { Role::ROOT } else { Role::OUTSIDE }
    }

    /// Finds the role of a task that is older than the epoch, and notes it in the task.
    #[cold]
    fn recognise(&self, task: &PbgTask<T>) -> Role {
        let role = self.look_at(task);
        let record = match (role, &self.work) {
            (Role::ROOT, Work::Measure(recorder)) => recorder.root(),
            _ => &OUTSIDE,
        };
        // `main` is known by its 0, as long as it has not been picked.
        let epoch = match task.state().epoch.load(Relaxed) {
            0 => 0,
            _ => self.epoch,
        };
        task.state().set(epoch, role, record);
        role
    }

    /// The role of a task that comes back or is woken, noted in it or found now.
    #[inline]
    fn known(&self, task: &PbgTask<T>) -> Role {
        if task.state().epoch.load(Relaxed) == self.epoch {
            task.state().role()
        } else {
            self.recognise(task)
        }
    }

    /// Has the replay do something, if there is one: first it is told what is left of the
    /// budget, and of the task that was kept for a pick which has not come yet (which is on
    /// another CPU); and afterwards it says what the budget is.
    ///
    /// The yield of a kept task is one of those that are settled. So the task gives way as if
    /// the CPU was taken from it: as one that yielded it would be counted again.
    #[inline]
    pub(super) fn replay(&mut self, verb: impl FnOnce(&mut Replay<T>)) {
        let Work::Replay(replay) = &mut self.work else {
            return;
        };
        replay.settle(self.budget);
        if let Some(task) = self.kept.take() {
            replay.gave_way(task, Return::Preempted, C::now());
        }
        verb(replay);
        self.budget = replay.granted();
    }

    /// A yield under the base policy. Not inlined, so that `axtask` can inline what
    /// leads here: that is cheaper than to have this inlined where that is not.
    #[inline(never)]
    fn put_yielded(&mut self, task: Arc<PbgTask<T>>) {
        rr::requeue(&mut self.queue, task, Return::Yielded);
    }

    /// A task comes back, and neither keeps the CPU nor yields under the base policy.
    ///
    /// Not inlined, so that `axtask` can inline those two.
    #[inline(never)]
    fn put_otherwise(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        if let Work::Replay(_) = self.work {
            return self.put_replayed(task, why);
        }
        if let Work::Measure(recorder) = self.work
            && M::control().mode() == ModeByte::MEASURING
        {
            if why == Return::Woken {
                self.known(&task);
                let waker = running::<M>().get();
                recorder.woken(M::cpu(), task.state().record.get(), waker, C::now());
            } else {
                recorder.preempted(M::cpu(), task.state().record.get());
            }
        }
        rr::requeue(&mut self.queue, task, why);
    }

    #[inline(never)]
    fn put_replayed(&mut self, task: Arc<PbgTask<T>>, why: Return) {
        if why == Return::Woken {
            let role = self.known(&task);
            self.replay(|replay| replay.woken(task, role));
        } else {
            let now = C::now();
            self.replay(|replay| replay.gave_way(task, why, now));
        }
    }

    #[inline(always)]
    fn pick_measured(&mut self) -> Option<Arc<PbgTask<T>>> {
        let running = running::<M>();
        let now = C::now();
        running.get().ends(now);
        let Some(next) = first::<T, M>(&mut self.queue) else {
            running.set(&IDLE);
            return None;
        };
        let record = next.state().record.get();
        record.begins(now);
        running.set(record);
        Some(next)
    }

    /// A pick while a command waits or a plan is followed. Not inlined, and all in one, so
    /// that the other picks are short.
    #[inline(never)]
    fn pick_otherwise(&mut self) -> Option<Arc<PbgTask<T>>> {
        if M::control().mode() == ModeByte::COMMAND {
            self.take_command();
        }
        if let Work::Replay(_) = self.work {
            let mut next = None;
            self.replay(|replay| next = replay.pick::<M>(C::now()));
            next
        } else if M::control().mode() == ModeByte::MEASURING {
            self.pick_measured()
        } else {
            first::<T, M>(&mut self.queue) // or the command has to wait, or the plan is another queue's
        }
    }

    fn tick(&mut self, running: &PbgTask<T>) -> Tick {
        if let Work::Replay(_) = self.work {
            let mut tick = Tick::Continue;
            let now = C::now();
            self.replay(|replay| tick = replay.tick::<M>(running, now));
            return tick;
        }
        let tick = match running.state().slice.tick() {
            tick if M::control().base_ticks() => tick,
            _ => Tick::Continue,
        };
        if let Work::Measure(recorder) = self.work
            && M::control().mode() == ModeByte::MEASURING
        {
            recorder.tick(M::cpu(), tick == Tick::Reschedule, C::now());
        }
        tick
    }
}
