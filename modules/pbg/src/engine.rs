//! The engine of PBG: the ready tasks, and every decision about them.
//!
//! The engine knows no lock and no machine. The scheduler of one CPU and that of several, both in
//! [`front`](super::front), call the same engine and pass the calling CPU as parameters. These are
//! its number and the tasks that it may run ([`Caller`](super::caller::Caller)), its state
//! ([`Cpu`]), and its [`Grant`].
//!
//! **Which task runs next.** [`Engine::pick`] decides. Without a plan it takes the first task of
//! the one round-robin queue, which is all that the base policy and a measurement need. With a
//! plan the [replay](super::replay) chooses, in this order:
//!
//! 1. A task of the fallback queue, while that queue has its turn (rule 7).
//! 2. The root, if it woke and goes first (rule 9).
//! 3. The first ready task by the plan (rule 5), unless a turn of the fallback queue is due.
//! 4. The first task of the fallback queue (rules 6 and 7).
//!
//! A CPU takes only those of these tasks that it may run. A task that yields within its grant is not
//! picked at all: it goes on. If a turn is due and the fallback queue is empty, the plan goes on.
//!
//! **The grant.** After a pick the engine grants the running task a number of yields, its budget.
//! A yield within the budget moves one pointer aside and back, and counts: it takes no lock, reads
//! no clock and switches no stack. Only a planned task has a budget. The budget is 0 as soon as
//! another task becomes ready or a tick wants the CPU, so such a yield never overtakes a task. The
//! engine learns of the yields later: each call into a replay first *settles* the budget, which
//! tells it how many were made. Without a plan the budget is [`NO_PLAN`].
//!
//! **Commands.** A call such as `start_pbg` leaves a command in the [control](super::control). The
//! next add or pick takes it. The epoch counts the commands. A task or a CPU with an older epoch
//! is looked at anew: the task is the root or outside the plan, and the CPU has no grant.

// This file is long because it has every event of a CPU, measured or replayed, in one place.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use pbg_record::record::{IDLE, OUTSIDE, RecordRef};
use pbg_record::recorder::Recorder;
use sched_core::clock::Clock;
use sched_core::event::{EnqueueReason, Tick};
use sched_core::queue::Queue;
use sched_core::units::Counts;
use sched_policies::rr;

use super::caller::{Caller, take_first};
use super::control::{Command, GlobalMode};
use super::grant::{Grant, NO_PLAN};
use super::replay::{OnCpu, PlanPosition, Replay};
use super::source::ControlSource;
use super::task::{PbgState, PbgTask, Role};

type Handle<T> = Arc<PbgTask<T>>;

/// The part of the engine that belongs to one CPU.
pub struct Cpu {
    /// The number of commands taken when the CPU made its last call.
    epoch: u32,
    /// The state of a replay on this CPU.
    here: OnCpu,
}

impl Cpu {
    /// Returns the state of a CPU that has made no call.
    pub const fn new() -> Self {
        Self {
            epoch: 1,
            here: OnCpu::since(Counts::ZERO, Role::OUTSIDE),
        }
    }
}

/// The task that made the last starting call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root {
    /// There was no such call.
    Nobody,
    /// `main`, before its first pick.
    Main,
    /// The task at this address.
    At(*const ()),
}

/// The mode of one queue, which is that of the last command that its engine took. The engine of
/// another queue may have taken another command.
#[expect(clippy::large_enum_variant, reason = "one, on the scheduling path")]
enum EngineMode<T> {
    /// The base policy runs, and nothing is recorded.
    Base,
    /// The base policy runs, and what it does is recorded.
    Measure(&'static Recorder),
    /// A plan is followed, which has all ready tasks.
    Replay(Replay<T>),
}

/// The engine of tasks `T`; `C` is where it reads the time, `M` where it finds its control.
pub struct Engine<T, C, M> {
    /// The number of commands taken, from 1.
    epoch: u32,
    root: Root,
    /// Every ready task, unless a replay holds them.
    queue: Queue<T, PbgState>,
    mode: EngineMode<T>,
    types: PhantomData<(C, M)>,
}

// SAFETY: the address in `root` is compared only, the queue and the replay own their
// tasks, and `C` and `M` are only names.
unsafe impl<T: Send + Sync, C, M> Send for Engine<T, C, M> {}

/// Returns the record of the task that runs on this CPU.
#[inline(always)]
fn running<M: ControlSource>(by: impl Caller) -> &'static RecordRef {
    &M::control().running[by.number()]
}

impl<T, C, M> Engine<T, C, M> {
    /// Creates an engine without tasks.
    pub const fn new() -> Self {
        Self {
            epoch: 1,
            root: Root::Nobody,
            queue: Queue::new(),
            mode: EngineMode::Base,
            types: PhantomData,
        }
    }

    /// Returns the number of commands taken, from 1.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns true if a plan is followed, or was until it was dropped.
    pub const fn is_replaying(&self) -> bool {
        matches!(self.mode, EngineMode::Replay(_))
    }

    /// Takes a ready task out of an engine that does not replay.
    pub fn pop(&mut self) -> Option<Handle<T>> {
        self.queue.pop_front()
    }

    /// Requeues a task that yields under the base policy.
    #[inline(always)]
    pub fn put_yielded(&mut self, task: Handle<T>) {
        rr::requeue(&mut self.queue, task, EnqueueReason::Yielded);
    }

    /// Returns all ready tasks.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = &PbgTask<T>> {
        let replay = match &self.mode {
            EngineMode::Replay(replay) => Some(replay),
            _ => None,
        };
        self.queue
            .iter()
            .chain(replay.into_iter().flat_map(Replay::ready))
    }
}

impl<T, C: Clock, M: ControlSource> Engine<T, C, M> {
    /// Brings the state of the calling CPU up to date: other CPUs may have made calls since its
    /// last.
    pub fn catch_up<const S: bool>(&mut self, cpu: &mut Cpu, grant: &Grant<T, S>) {
        let is_old = core::mem::replace(&mut cpu.epoch, self.epoch) != self.epoch;
        if is_old {
            // A command was taken since the last call. The running task is older than the command, and
            // its role is found when it comes back.
            grant.forget();
        }
        match &mut self.mode {
            EngineMode::Replay(replay) => {
                if is_old {
                    cpu.here = OnCpu::since(Counts::ZERO, Role::OUTSIDE);
                    grant.set_budget(0);
                }
                grant.set_budget(replay.go_on(&mut cpu.here, grant.budget()));
            }
            _ => grant.set_budget(NO_PLAN),
        }
    }

    /// Adds a task that the running task has spawned.
    #[inline]
    pub fn add<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: Handle<T>,
    ) {
        let control = M::control();
        if control.global_mode() == GlobalMode::COMMAND {
            self.take_command(cpu, grant, by);
        }
        let label = control.take_label();
        if let EngineMode::Replay(_) = self.mode {
            let epoch = self.epoch;
            let now = C::now();
            return self.replay(cpu, grant, |replay, here| {
                replay.spawned(here, task, epoch, label.as_ref(), now);
            });
        }
        let record = match self.mode {
            EngineMode::Measure(recorder) if control.global_mode() == GlobalMode::MEASURING => {
                recorder.spawned(
                    by.number(),
                    running::<M>(by).get(),
                    label.as_ref(),
                    C::now(),
                )
            }
            _ => &OUTSIDE,
        };
        task.policy_state().set(self.epoch, Role::OUTSIDE, record);
        self.queue.push_back(task);
    }

    /// Requeues a task that does not go on by its [grant](Grant).
    #[inline(always)]
    pub fn put<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: Handle<T>,
        why: EnqueueReason,
    ) {
        if let EngineMode::Replay(_) = self.mode {
            return self.put_replayed(cpu, grant, task, why);
        }
        if let EngineMode::Measure(recorder) = self.mode
            && M::control().global_mode() == GlobalMode::MEASURING
        {
            if why == EnqueueReason::Woken {
                self.known(&task);
                let waker = running::<M>(by).get();
                recorder.woken(
                    by.number(),
                    task.policy_state().record.get(),
                    waker,
                    C::now(),
                );
            } else if why == EnqueueReason::Preempted {
                let record = task.policy_state().record.get();
                recorder.preempted(by.number(), record, C::now());
            }
        }
        rr::requeue(&mut self.queue, task, why);
    }

    #[inline(never)]
    fn put_replayed<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        task: Handle<T>,
        why: EnqueueReason,
    ) {
        if why == EnqueueReason::Woken {
            let role = self.known(&task);
            self.replay(cpu, grant, |replay, here| replay.woken(here, task, role));
        } else {
            let now = C::now();
            self.replay(cpu, grant, |replay, here| {
                replay.gave_way(here, task, why, now)
            });
        }
    }

    /// Takes the task that this CPU runs next out of its queue.
    #[inline(always)]
    pub fn pick<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
    ) -> Option<Handle<T>> {
        let global_mode = M::control().global_mode();
        let next = if global_mode == GlobalMode::IDLE {
            take_first(&mut self.queue, by)
        } else if global_mode == GlobalMode::MEASURING {
            self.pick_measured(by)
        } else {
            self.pick_otherwise(cpu, grant, by)
        };
        grant.picked(next.as_ref());
        next
    }

    #[inline(always)]
    fn pick_measured(&mut self, by: impl Caller) -> Option<Handle<T>> {
        let running = running::<M>(by);
        let now = C::now();
        running.get().end_interval(now);
        let Some(next) = take_first(&mut self.queue, by) else {
            running.set(&IDLE);
            return None;
        };
        let record = next.policy_state().record.get();
        record.begin_interval(now);
        running.set(record);
        Some(next)
    }

    /// Picks while a command waits or a plan is followed. This is one function that is not inlined, so
    /// that the other picks are short.
    #[inline(never)]
    fn pick_otherwise<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
    ) -> Option<Handle<T>> {
        if M::control().global_mode() == GlobalMode::COMMAND {
            self.take_command(cpu, grant, by);
        }
        if let EngineMode::Replay(_) = self.mode {
            let mut next = None;
            self.replay(cpu, grant, |replay, here| {
                next = replay.pick(here, by, C::now())
            });
            next
        } else if M::control().global_mode() == GlobalMode::MEASURING {
            self.pick_measured(by)
        } else {
            // The command has to wait, or another queue follows the plan.
            take_first(&mut self.queue, by)
        }
    }

    /// Handles a tick that hits the running task of this CPU.
    pub fn tick<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: &PbgTask<T>,
    ) -> Tick {
        if let EngineMode::Replay(_) = self.mode {
            let mut tick = Tick::Continue;
            let now = C::now();
            self.replay(cpu, grant, |replay, here| {
                tick = replay.tick(here, by, task, now);
            });
            return tick;
        }
        let tick = match task.policy_state().slice.tick() {
            tick if M::control().is_base_preemptive() => tick,
            _ => Tick::Continue,
        };
        if let EngineMode::Measure(recorder) = self.mode
            && M::control().global_mode() == GlobalMode::MEASURING
        {
            recorder.tick(by.number(), tick == Tick::Reschedule, C::now());
        }
        tick
    }

    /// Handles an IPI: a task has become ready that preempts the running one.
    pub fn interrupted<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
    ) -> Tick {
        let mut tick = Tick::Continue;
        let now = C::now();
        self.replay(cpu, grant, |replay, here| {
            tick = replay.interrupted(here, by, now);
        });
        tick
    }

    /// Takes `task` out if it is ready here.
    pub fn remove(&mut self, task: &Handle<T>) -> Option<Handle<T>> {
        match &mut self.mode {
            EngineMode::Replay(replay) => replay.remove(task),
            _ => self.queue.remove(task),
        }
    }

    /// Returns the position to preempt `cpu`, if `task`, which is ready, comes before it.
    pub fn after(&self, cpu: &Cpu, task: &PbgTask<T>, now: Counts) -> Option<PlanPosition> {
        let EngineMode::Replay(replay) = &self.mode else {
            return None;
        };
        let place = replay.position_of_ready(task)?;
        let running = replay.position_to_preempt(&cpu.here, now);
        running.filter(|&running| place < running)
    }

    /// Takes the command that a call has left. The caller is still the running task then, so it is the
    /// root.
    ///
    /// Only an add and a pick look for a command, because nothing depends on it before one of them.
    #[cold]
    fn take_command<const S: bool>(&mut self, cpu: &mut Cpu, grant: &Grant<T, S>, by: impl Caller) {
        let control = M::control();
        // A call may hold the lock at this moment. Then the mode stays, and the next add or pick looks
        // again. Or another queue has taken the command.
        let Some((command, giver)) = control.take_command() else {
            return;
        };
        self.epoch += 1;
        cpu.epoch = self.epoch;
        let caller = match giver.is_null() {
            true => grant.running().address(),
            false => giver,
        };
        self.root = match self.root {
            _ if !caller.is_null() => Root::At(caller),
            Root::Nobody => Root::Main,
            // It is `main`, or a task that was forgotten when the last command was taken.
            last => last,
        };
        assert!(!self.is_replaying(), "a control replays once");
        self.mode = EngineMode::Base;
        if let Command::Measure(recorder) = command {
            // The call could not do this: until now this queue may have written to the record of the
            // measurement before.
            recorder.clear();
            running::<M>(by).set(recorder.root());
            self.mode = EngineMode::Measure(recorder);
        }
        self.queue.iter().for_each(|task| {
            self.recognise(task);
        }); // KNOWN
        if let Command::Replay(prepared) = command {
            let ready = core::mem::replace(&mut self.queue, Queue::new());
            cpu.here = OnCpu::since(C::now(), Role::ROOT);
            grant.set_budget(cpu.here.granted());
            self.mode = EngineMode::Replay(Replay::new(prepared, ready, &control.counters));
        }
        // The caller may still have its role of an earlier epoch, so it must not go on by its grant,
        // and its role is found anew when it comes back. The early return above does not forget the
        // running task, because a later command finds the root by it.
        grant.forget();
    }

    /// Returns the role of a task that is older than the epoch: the root, or outside.
    fn look_at(&self, task: &PbgTask<T>) -> Role {
        let is_root = match self.root {
            Root::Nobody => false,
            // On one CPU no other task that was never added comes back. (On several CPUs, migration
            // helpers do.)
            Root::Main => task.policy_state().epoch.load(Relaxed) == 0,
            Root::At(address) => core::ptr::eq((&raw const *task).cast(), address),
        };
        if is_root { Role::ROOT } else { Role::OUTSIDE }
    }

    /// Finds the role of a task that is older than the epoch, and stores it in the task.
    #[cold]
    fn recognise(&self, task: &PbgTask<T>) -> Role {
        let role = self.look_at(task);
        let record = match (role, &self.mode) {
            (Role::ROOT, EngineMode::Measure(recorder)) => recorder.root(),
            _ => &OUTSIDE,
        };
        // `main` keeps its 0 until it is picked.
        let epoch = match task.policy_state().epoch.load(Relaxed) {
            0 => 0,
            _ => self.epoch,
        };
        task.policy_state().set(epoch, role, record);
        role
    }

    /// Returns the role of a task that comes back or is woken. The role is stored, or is found now.
    #[inline]
    fn known(&self, task: &PbgTask<T>) -> Role {
        if task.policy_state().epoch.load(Relaxed) == self.epoch {
            task.policy_state().role()
        } else {
            self.recognise(task)
        }
    }

    /// Calls `verb` on the replay, if there is one. Before that the replay settles the budget. It also
    /// takes back a task that is kept for a pick of another CPU that has not come yet. After the call
    /// the budget is the new grant of the replay.
    ///
    /// The yield of a kept task is one of the settled yields. So the task is requeued as if it were
    /// preempted, because as a yield it would be counted twice.
    #[inline]
    fn replay<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        verb: impl FnOnce(&mut Replay<T>, &mut OnCpu),
    ) {
        let EngineMode::Replay(replay) = &mut self.mode else {
            return;
        };
        let here = &mut cpu.here;
        replay.settle(here, grant.budget());
        if let Some(task) = grant.take_kept() {
            replay.gave_way(here, task, EnqueueReason::Preempted, C::now());
        }
        verb(replay, here);
        grant.set_budget(here.granted());
    }
}
