//! The placement of ready tasks on several CPUs, under one lock, around the
//! [engine](crate::engine).
//!
//! [`Locked`] is everything that the lock guards: the engine, the state of each CPU in it, and the
//! [`Placement`]. The rules are those of [`several_cpus`](super::several_cpus). These invariants
//! are named where they are used:
//!
//! - PLACED: a CPU that was interrupted for a ready task is not asked again before it has
//!   answered. Its next pick answers, and so does a tick that does not preempt. `asked_for` is that
//!   task while it is ready, and otherwise null.
//! - LEFT: a task that gives its CPU away is held there until the CPU has switched to another
//!   stack. `left` is that task while it is in a queue, and otherwise null.
//! - COUNTED: `free` counts the ready tasks that are held on no CPU, and `held` those that are
//!   held on one. A yield reads copies of the counts without the lock.

use alloc::sync::Arc;
use core::ptr;

use sched_core::clock::Clock;
use sched_core::event::{EnqueueReason, Tick};
use sched_smp::{MAX_CPUS, Machine, SmpStateSource};

use crate::caller::Caller;
use crate::engine::{Cpu, Engine};
use crate::grant::Grant;
use crate::replay::PlanPosition;
use crate::source::ControlSource;
use crate::task::{PbgTask, Reservation};

type Handle<T> = Arc<PbgTask<T>>;

/// The CPU that calls.
pub struct Here<'a, T, S> {
    machine: &'a Machine,
    cpu: usize,
    grant: &'a Grant<T, true>,
    shared: core::marker::PhantomData<S>,
}

impl<T, S> Clone for Here<'_, T, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, S> Copy for Here<'_, T, S> {}

impl<'a, T, S> Here<'a, T, S> {
    pub const fn new(machine: &'a Machine, cpu: usize, grant: &'a Grant<T, true>) -> Self {
        Self {
            machine,
            cpu,
            grant,
            shared: core::marker::PhantomData,
        }
    }
}

impl<I, S> Caller for Here<'_, I, S> {
    fn number(self) -> usize {
        self.cpu
    }

    fn may_have<T>(self, task: &PbgTask<T>) -> bool {
        may_have(self.machine, task, self.cpu)
    }

    fn is_reserved_elsewhere<T>(self, task: &PbgTask<T>) -> bool {
        let held = task.policy_state().reservation();
        held != Reservation::NONE && held.is_reserved_but_for(self.cpu)
    }
}

pub fn may_have<T>(machine: &Machine, task: &PbgTask<T>, cpu: usize) -> bool {
    match task.policy_state().reservation().only() {
        Some((only, true)) => only == cpu,
        Some((only, false)) => only == cpu && may_run(machine, task, cpu),
        None => may_run(machine, task, cpu),
    }
}

fn may_run<T>(machine: &Machine, task: &PbgTask<T>, cpu: usize) -> bool {
    let inner = ptr::from_ref(task.inner()).cast();
    // SAFETY: the promise of `connect`, and a reference.
    unsafe { (machine.may_run)(inner, cpu) }
}

/// The state of one CPU in the placement.
pub(super) struct CpuPlacement<T> {
    /// The CPU has joined, so its tasks are in the common engine.
    joined: bool,
    /// Its last pick found no task.
    pub(super) idles: bool,
    /// It was interrupted for a task, and has not answered yet.
    pub(super) asked: bool,
    /// PLACED: the task for which it was interrupted, or null. It is in a queue, and so alive.
    pub(super) asked_for: *const PbgTask<T>,
    /// Its next pick follows a put.
    returned: bool,
    /// LEFT: the task whose stack the CPU may still use, or null. It is in a queue, and so alive.
    pub(super) left: *const PbgTask<T>,
    /// COUNTED: the number of ready tasks that are held on this CPU.
    pub(super) held: u32,
}

/// The CPUs that may run the ready tasks, and those that were interrupted for one.
pub struct Placement<T> {
    /// COUNTED: the number of ready tasks that are held on no CPU.
    free: u32,
    /// The CPUs to interrupt when the lock is released, as a bit mask.
    pub(super) to_interrupt: u64,
    pub(super) cpus: [CpuPlacement<T>; MAX_CPUS],
}

impl<T> Placement<T> {
    const fn new() -> Self {
        Self {
            free: 0,
            to_interrupt: 0,
            cpus: [const {
                CpuPlacement {
                    joined: false,
                    idles: false,
                    asked: false,
                    asked_for: ptr::null(),
                    returned: false,
                    left: ptr::null(),
                    held: 0,
                }
            }; MAX_CPUS],
        }
    }

    /// Returns the number of ready tasks that are held on no CPU (COUNTED).
    pub const fn free(&self) -> u32 {
        self.free
    }

    /// Returns the number of ready tasks that are held on this CPU (COUNTED).
    pub const fn held(&self, cpu: usize) -> u32 {
        self.cpus[cpu].held
    }

    /// Requests an IPI to this CPU, which is sent when the lock is released.
    pub const fn interrupt(&mut self, cpu: usize) {
        self.to_interrupt |= 1 << cpu;
    }

    /// Takes the CPUs to interrupt now, as a bit mask.
    pub const fn take_to_interrupt(&mut self) -> u64 {
        core::mem::replace(&mut self.to_interrupt, 0)
    }

    /// Counts a task that is about to be in a queue, held as `held` (COUNTED).
    pub fn count_in(&mut self, task: &PbgTask<T>, held: Reservation) {
        task.policy_state().reserve(held);
        *self.count(held) += 1;
    }

    /// Changes how a task in a queue is held (COUNTED).
    pub fn hold(&mut self, task: &PbgTask<T>, held: Reservation) {
        *self.count(task.policy_state().reservation()) -= 1;
        self.count_in(task, held);
    }

    const fn count(&mut self, held: Reservation) -> &mut u32 {
        match held.only() {
            Some((cpu, _)) => &mut self.cpus[cpu].held,
            None => &mut self.free,
        }
    }

    /// Forgets a task that has left its queue.
    fn forget(&mut self, machine: &Machine, task: &PbgTask<T>) {
        *self.count(task.policy_state().reservation()) -= 1;
        task.policy_state().reserve(Reservation::NONE);
        for known in &mut self.cpus[..machine.cpus] {
            for of in [&mut known.left, &mut known.asked_for] {
                if ptr::eq(*of, task) {
                    *of = ptr::null();
                }
            }
        }
    }
}

/// Everything that the lock guards.
pub struct Locked<T, C, M> {
    pub engine: Engine<T, C, M>,
    cpus: [Cpu; MAX_CPUS],
    pub placement: Placement<T>,
}

// SAFETY: the engine may be sent. By PLACED and LEFT the addresses in the placement belong to tasks
// in the engine's queues.
unsafe impl<T: Send + Sync, C, M> Send for Locked<T, C, M> {}

impl<T, C, M> Locked<T, C, M> {
    pub const fn new() -> Self {
        Self {
            engine: Engine::new(),
            cpus: [const { Cpu::new() }; MAX_CPUS],
            placement: Placement::new(),
        }
    }
}

impl<T, C: Clock, M: ControlSource> Locked<T, C, M> {
    /// Brings the state of the calling CPU up to date.
    pub fn catch_up<S>(&mut self, here: Here<'_, T, S>) {
        self.engine.catch_up(&mut self.cpus[here.cpu], here.grant);
    }

    /// Lets the calling CPU join.
    pub fn join<S>(&mut self, here: Here<'_, T, S>) {
        self.placement.cpus[here.cpu].joined = true;
    }

    pub fn add<S: SmpStateSource>(&mut self, here: Here<'_, T, S>, task: Handle<T>) {
        let at = Arc::as_ptr(&task);
        self.placement.count_in(&task, Reservation::NONE);
        (self.engine).add(&mut self.cpus[here.cpu], here.grant, here, task);
        self.dispatch_to_cpu(here, at);
    }

    pub fn put<S: SmpStateSource>(&mut self, here: Here<'_, T, S>, prev: Handle<T>, preempt: bool) {
        let at = Arc::as_ptr(&prev);
        let Here { cpu, grant, .. } = here;
        if !ptr::eq((here.machine.current)(), at.cast()) {
            if grant.is_running(&prev) {
                grant.forget(); // it migrates, and a helper has the CPU
            }
            self.placement.count_in(&prev, Reservation::NONE);
            (self.engine).put(&mut self.cpus[cpu], grant, here, prev, EnqueueReason::Woken);
            return self.dispatch_to_cpu(here, at);
        }
        self.leave(here);
        let is_pinned = S::PREEMPTED_STAY && preempt;
        let held = match is_pinned {
            true => Reservation::pinned(cpu),
            false => Reservation::until_switched(cpu),
        };
        self.placement.count_in(&prev, held);
        let why = grant.enqueue_reason(&prev, preempt);
        (self.engine).put(&mut self.cpus[cpu], grant, here, prev, why);
        let known = &mut self.placement.cpus[cpu];
        known.returned = true;
        if !is_pinned {
            known.left = at;
        }
    }

    /// Requeues the running task and picks the next one in one call.
    pub fn switch<S: SmpStateSource>(
        &mut self,
        here: Here<'_, T, S>,
        prev: Handle<T>,
        preempt: bool,
    ) -> Option<Handle<T>> {
        self.put(here, prev, preempt);
        let next = self.pick(here);
        // LEFT: without a next task the pick that follows looks again, and the CPU has not left the
        // task by then.
        self.placement.cpus[here.cpu].returned = next.is_none();
        next
    }

    pub fn pick<S: SmpStateSource>(&mut self, here: Here<'_, T, S>) -> Option<Handle<T>> {
        let Here { machine, cpu, .. } = here;
        if !core::mem::replace(&mut self.placement.cpus[cpu].returned, false) {
            self.leave(here);
        }
        let next = (self.engine).pick(&mut self.cpus[cpu], here.grant, here);
        if let Some(task) = &next {
            self.placement.forget(machine, task);
        }
        let known = &mut self.placement.cpus[cpu];
        let was_idle = core::mem::replace(&mut known.idles, next.is_none());
        if was_idle {
            S::smp_state().was_interrupted(cpu); // an idle CPU is told of no tick
        }
        if was_idle != next.is_none() {
            S::smp_state().set_idle(cpu, !was_idle);
        }
        // SAFETY: LEFT.
        if let Some(left) = unsafe { known.left.as_ref() }
            && self.cpu_to_ask(machine, left, Some(cpu)).is_some()
        {
            self.placement.interrupt(cpu);
        }
        self.ask_for_left(here);
        self.note_answer(here);
        next
    }

    pub fn tick<S: SmpStateSource>(&mut self, here: Here<'_, T, S>, current: &Handle<T>) -> bool {
        self.leave(here);
        let cpu = &mut self.cpus[here.cpu];
        let tick = match S::smp_state().was_interrupted(here.cpu) {
            true => self.engine.interrupted(cpu, here.grant, here),
            false => self.engine.tick(cpu, here.grant, here, current),
        };
        let reschedules = tick == Tick::Reschedule;
        if !reschedules {
            self.note_answer(here); // or it does with its pick
        }
        reschedules
    }

    pub fn remove(&mut self, machine: &Machine, task: &Handle<T>) -> Option<Handle<T>> {
        let removed = self.engine.remove(task)?;
        self.placement.forget(machine, &removed);
        Some(removed)
    }

    /// Notes that the calling CPU has answered: it has looked, or picked (PLACED).
    fn note_answer<S: SmpStateSource>(&mut self, here: Here<'_, T, S>) {
        let known = &mut self.placement.cpus[here.cpu];
        known.asked = false;
        let asked_for = core::mem::replace(&mut known.asked_for, ptr::null());
        // SAFETY: by PLACED it is null or a task in a queue of the engine.
        if let Some(task) = unsafe { asked_for.as_ref() } {
            self.placement.hold(task, Reservation::NONE);
            self.dispatch_to_cpu(here, asked_for);
        }
    }

    /// Notes that the calling CPU has switched since it put a task back (LEFT).
    fn leave<S: SmpStateSource>(&mut self, here: Here<'_, T, S>) {
        let left = core::mem::replace(&mut self.placement.cpus[here.cpu].left, ptr::null());
        // SAFETY: LEFT.
        if let Some(task) = unsafe { left.as_ref() } {
            self.placement.hold(task, Reservation::NONE);
            self.dispatch_to_cpu(here, left);
        }
    }

    /// Interrupts the CPUs that hold a task which the calling CPU would have picked (LEFT).
    fn ask_for_left<S: SmpStateSource>(&mut self, here: Here<'_, T, S>) {
        let Here { machine, cpu, .. } = here;
        for other in (0..machine.cpus).filter(|&other| other != cpu) {
            // SAFETY: LEFT.
            if let Some(left) = unsafe { self.placement.cpus[other].left.as_ref() }
                && may_run(machine, left, cpu)
                && self.would_take(cpu, left)
            {
                self.placement.interrupt(other);
            }
        }
    }

    /// Returns true if `cpu` would take that task from a queue.
    fn would_take(&self, cpu: usize, task: &PbgTask<T>) -> bool {
        let comes_before = || self.engine.after(&self.cpus[cpu], task, C::now()).is_some();
        self.placement.cpus[cpu].idles || comes_before()
    }

    /// Asks a CPU that would take this ready task to look (PLACED).
    fn dispatch_to_cpu<S: SmpStateSource>(
        &mut self,
        here: Here<'_, T, S>,
        task: *const PbgTask<T>,
    ) {
        // SAFETY: it is in a queue of the engine.
        let task = unsafe { &*task };
        let Some(cpu) = self.cpu_to_ask(here.machine, task, None) else {
            return;
        };
        let known = &mut self.placement.cpus[cpu];
        known.asked = true;
        known.asked_for = task;
        let idles = known.idles;
        if idles {
            self.placement.hold(task, Reservation::reserved_for(cpu));
        }
        // An idle CPU that makes the call itself, in an interrupt, picks when that is over.
        if !(idles && cpu == here.cpu) {
            self.placement.interrupt(cpu);
        }
    }

    /// Returns the CPU to ask for this ready task. The CPU `held`, where it is held now, is not
    /// asked.
    fn cpu_to_ask(
        &self,
        machine: &Machine,
        task: &PbgTask<T>,
        held: Option<usize>,
    ) -> Option<usize> {
        let may_have = |cpu: usize| match held {
            Some(held) => cpu != held && may_run(machine, task, cpu),
            None => may_have(machine, task, cpu),
        };
        let asked = (0..machine.cpus).filter(|&cpu| {
            let known = &self.placement.cpus[cpu];
            known.joined && !known.asked && may_have(cpu)
        });
        let now = C::now();
        let mut last: Option<(PlanPosition, usize)> = None;
        for cpu in asked {
            if self.placement.cpus[cpu].idles {
                return Some(cpu);
            }
            if let Some(running) = self.engine.after(&self.cpus[cpu], task, now)
                && last.is_none_or(|(latest, _)| latest < running)
            {
                last = Some((running, cpu));
            }
        }
        last.map(|(_, cpu)| cpu)
    }
}
