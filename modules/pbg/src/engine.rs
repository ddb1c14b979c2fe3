//! The engine of PBG, for one CPU or for several. The CPU that calls is a parameter.
//!
//! The engine has the ready tasks, takes the commands of the [control](super::control), and
//! measures or follows a plan. It knows no lock and no machine: [`front`](super::front) does.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::sync::atomic::Ordering::Relaxed;

use pbg_record::record::{IDLE, OUTSIDE, RecordRef};
use pbg_record::recorder::Recorder;
use sched_core::clock::Clock;
use sched_core::event::{Return, Tick};
use sched_core::queue::Queue;
use sched_core::units::Counts;
use sched_policies::rr;

use super::caller::{Caller, take_first};
use super::control::{Command, ModeByte};
use super::grant::{Grant, NO_PLAN};
use super::replay::{OnCpu, Place, Replay};
use super::source::ControlSource;
use super::task::{PbgState, PbgTask, Role};

type Handle<T> = Arc<PbgTask<T>>;

/// The part of the engine that belongs to one CPU.
pub struct Cpu {
    /// The commands that had been taken when it made its last call.
    epoch: u32,
    /// The part of a replay that belongs to it.
    here: OnCpu,
}

impl Cpu {
    /// A CPU that has made no call.
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

/// The work in the present mode, which is that of the last command that the engine took. The engine of
/// another queue may have taken another command.
#[expect(clippy::large_enum_variant, reason = "one, on the scheduling path")]
enum Work<T> {
    /// The base policy runs, and nothing is recorded.
    Base,
    /// The base policy runs, and what it does is recorded.
    Measure(&'static Recorder),
    /// A plan is followed, which has all ready tasks.
    Replay(Replay<T>),
}

/// PBG of tasks `T`; `C` is where it reads the time, `M` where it finds its control.
pub struct Engine<T, C, M> {
    /// How many commands were taken, from 1.
    epoch: u32,
    root: Root,
    /// Every ready task, but in a replay, which has them.
    queue: Queue<T, PbgState>,
    work: Work<T>,
    types: PhantomData<(C, M)>,
}

// SAFETY: the address in `root` is compared only, the queue and the replay own their
// tasks, and `C` and `M` are only names.
unsafe impl<T: Send + Sync, C, M> Send for Engine<T, C, M> {}

/// The record of the task that runs on this CPU.
#[inline(always)]
fn running<M: ControlSource>(by: impl Caller) -> &'static RecordRef {
    &M::control().running[by.number()]
}

impl<T, C, M> Engine<T, C, M> {
    /// An engine without tasks.
    pub const fn new() -> Self {
        Self {
            epoch: 1,
            root: Root::Nobody,
            queue: Queue::new(),
            work: Work::Base,
            types: PhantomData,
        }
    }

    /// How many commands were taken, from 1.
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Returns true if a plan is followed, or was until it was dropped.
    pub const fn replays(&self) -> bool {
        matches!(self.work, Work::Replay(_))
    }

    /// Takes a ready task out of an engine that does not replay.
    pub fn pop(&mut self) -> Option<Handle<T>> {
        self.queue.pop_front()
    }

    /// A yield under the base policy.
    #[inline(always)]
    pub fn put_yielded(&mut self, task: Handle<T>) {
        rr::requeue(&mut self.queue, task, Return::Yielded);
    }

    /// All ready tasks.
    #[cfg(test)]
    pub fn ready(&self) -> impl Iterator<Item = &PbgTask<T>> {
        let replay = match &self.work {
            Work::Replay(replay) => Some(replay),
            _ => None,
        };
        self.queue
            .iter()
            .chain(replay.into_iter().flat_map(Replay::ready))
    }
}

impl<T, C: Clock, M: ControlSource> Engine<T, C, M> {
    /// This CPU makes a call, and others may have made some since its last.
    pub fn catch_up<const S: bool>(&mut self, cpu: &mut Cpu, grant: &Grant<T, S>) {
        let is_old = core::mem::replace(&mut cpu.epoch, self.epoch) != self.epoch;
        if is_old {
            // A command was taken since: the task that runs is older than that, and returns as one
            // that has to be looked at.
            grant.forget();
        }
        match &mut self.work {
            Work::Replay(replay) => {
                if is_old {
                    cpu.here = OnCpu::since(Counts::ZERO, Role::OUTSIDE);
                    grant.set_budget(0);
                }
                grant.set_budget(replay.go_on(&mut cpu.here, grant.budget()));
            }
            _ => grant.set_budget(NO_PLAN),
        }
    }

    /// The task that runs has spawned `task`.
    #[inline]
    pub fn add<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: Handle<T>,
    ) {
        let control = M::control();
        if control.mode() == ModeByte::COMMAND {
            self.take_command(cpu, grant, by);
        }
        let label = control.take_label();
        if let Work::Replay(_) = self.work {
            let epoch = self.epoch;
            let now = C::now();
            return self.replay(cpu, grant, |replay, here| {
                replay.spawned(here, task, epoch, label.as_ref(), now);
            });
        }
        let record = match self.work {
            Work::Measure(recorder) if control.mode() == ModeByte::MEASURING => recorder.spawned(
                by.number(),
                running::<M>(by).get(),
                label.as_ref(),
                C::now(),
            ),
            _ => &OUTSIDE,
        };
        task.policy_state().set(self.epoch, Role::OUTSIDE, record);
        self.queue.push_back(task);
    }

    /// A task comes back, and does not go on at once by its [grant](Grant).
    #[inline(always)]
    pub fn put<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: Handle<T>,
        why: Return,
    ) {
        if let Work::Replay(_) = self.work {
            return self.put_replayed(cpu, grant, task, why);
        }
        if let Work::Measure(recorder) = self.work
            && M::control().mode() == ModeByte::MEASURING
        {
            if why == Return::Woken {
                self.known(&task);
                let waker = running::<M>(by).get();
                recorder.woken(
                    by.number(),
                    task.policy_state().record.get(),
                    waker,
                    C::now(),
                );
            } else if why == Return::Preempted {
                recorder.preempted(by.number(), task.policy_state().record.get());
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
        why: Return,
    ) {
        if why == Return::Woken {
            let role = self.known(&task);
            self.replay(cpu, grant, |replay, here| replay.woken(here, task, role));
        } else {
            let now = C::now();
            self.replay(cpu, grant, |replay, here| {
                replay.gave_way(here, task, why, now)
            });
        }
    }

    /// Takes the task out that this CPU runs next.
    #[inline(always)]
    pub fn pick<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
    ) -> Option<Handle<T>> {
        let mode = M::control().mode();
        let next = if mode == ModeByte::IDLE {
            take_first(&mut self.queue, by)
        } else if mode == ModeByte::MEASURING {
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
        running.get().ends(now);
        let Some(next) = take_first(&mut self.queue, by) else {
            running.set(&IDLE);
            return None;
        };
        let record = next.policy_state().record.get();
        record.begins(now);
        running.set(record);
        Some(next)
    }

    /// Picks while a command waits or a plan is followed. Not inlined, and all in one, so
    /// that the other picks are short.
    #[inline(never)]
    fn pick_otherwise<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
    ) -> Option<Handle<T>> {
        if M::control().mode() == ModeByte::COMMAND {
            self.take_command(cpu, grant, by);
        }
        if let Work::Replay(_) = self.work {
            let mut next = None;
            self.replay(cpu, grant, |replay, here| {
                next = replay.pick(here, by, C::now())
            });
            next
        } else if M::control().mode() == ModeByte::MEASURING {
            self.pick_measured(by)
        } else {
            // The command has to wait, or the plan is another queue's.
            take_first(&mut self.queue, by)
        }
    }

    /// A tick hits the task that this CPU runs.
    pub fn tick<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        by: impl Caller,
        task: &PbgTask<T>,
    ) -> Tick {
        if let Work::Replay(_) = self.work {
            let mut tick = Tick::Continue;
            let now = C::now();
            self.replay(cpu, grant, |replay, here| {
                tick = replay.tick(here, by, task, now);
            });
            return tick;
        }
        let tick = match task.policy_state().slice.tick() {
            tick if M::control().base_ticks() => tick,
            _ => Tick::Continue,
        };
        if let Work::Measure(recorder) = self.work
            && M::control().mode() == ModeByte::MEASURING
        {
            recorder.tick(by.number(), tick == Tick::Reschedule, C::now());
        }
        tick
    }

    /// Another CPU has interrupted this one, as a task has become ready that comes before the one
    /// that it runs.
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
        match &mut self.work {
            Work::Replay(replay) => replay.remove(task),
            _ => self.queue.remove(task),
        }
    }

    /// The place of the task that this CPU runs, if that comes after `task`, which is ready.
    pub fn after(&self, cpu: &Cpu, task: &PbgTask<T>, now: Counts) -> Option<Place> {
        let Work::Replay(replay) = &self.work else {
            return None;
        };
        let place = replay.place_of_ready(task)?;
        let running = replay.place_of_running(&cpu.here, now);
        running.filter(|&running| place < running)
    }

    /// Takes the command that a call has left. The running task is still the caller
    /// then, which is how the root is known.
    ///
    /// Only an add and a pick look: until one of them comes, nothing happens
    /// that depends on it.
    #[cold]
    fn take_command<const S: bool>(&mut self, cpu: &mut Cpu, grant: &Grant<T, S>, by: impl Caller) {
        let control = M::control();
        // A call holds the lock at this moment: the mode stays as it is, to look
        // again. Or another queue has the command.
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
            // Still `main`, or one that was forgotten when the last command was taken.
            last => last,
        };
        assert!(!self.replays(), "a control replays once");
        self.work = Work::Base;
        if let Command::Measure(recorder) = command {
            // Here and not in the call: until now this queue may have written
            // into the record of the measurement before.
            recorder.clear();
            running::<M>(by).set(recorder.root());
            self.work = Work::Measure(recorder);
        }
        self.queue.iter().for_each(|task| {
            self.recognise(task);
        }); // KNOWN
        if let Command::Replay(prepared) = command {
            let ready = core::mem::replace(&mut self.queue, Queue::new());
            cpu.here = OnCpu::since(C::now(), Role::ROOT);
            grant.set_budget(cpu.here.granted());
            self.work = Work::Replay(Replay::new(prepared, ready, &control.counters));
        }
        // The caller may be known by what it was in an earlier epoch: it shall come back
        // as one that has to be looked at. Not where nothing was taken: then the running task is
        // what the root is still to be known by.
        grant.forget();
    }

    /// The role of a task that is older than the epoch: its root, or outside.
    fn look_at(&self, task: &PbgTask<T>) -> Role {
        let is_root = match self.root {
            Root::Nobody => false,
            // On one CPU no other task that was never added comes back (migration
            // helpers do, on several).
            Root::Main => task.policy_state().epoch.load(Relaxed) == 0,
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
        let epoch = match task.policy_state().epoch.load(Relaxed) {
            0 => 0,
            _ => self.epoch,
        };
        task.policy_state().set(epoch, role, record);
        role
    }

    /// The role of a task that comes back or is woken, noted in it or found now.
    #[inline]
    fn known(&self, task: &PbgTask<T>) -> Role {
        if task.policy_state().epoch.load(Relaxed) == self.epoch {
            task.policy_state().role()
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
    fn replay<const S: bool>(
        &mut self,
        cpu: &mut Cpu,
        grant: &Grant<T, S>,
        verb: impl FnOnce(&mut Replay<T>, &mut OnCpu),
    ) {
        let Work::Replay(replay) = &mut self.work else {
            return;
        };
        let here = &mut cpu.here;
        replay.settle(here, grant.budget());
        if let Some(task) = grant.take_kept() {
            replay.gave_way(here, task, Return::Preempted, C::now());
        }
        verb(replay, here);
        grant.set_budget(here.granted());
    }
}
