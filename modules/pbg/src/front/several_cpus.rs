//! PBG on several CPUs: one plan and one ready set for all of them, under one lock.
//!
//! Each CPU's scheduler is a [`Together`]. Until it is
//! [connected](Together::connect) it is a scheduler by itself. From then on what it has is in what
//! all have in common, in which the rules of [PBG](crate) hold for all CPUs together:
//!
//!  1. Of the ready tasks those run that come first, each where it may run: a CPU that picks takes the
//!     first that it may have.
//!  2. PLACED: when a task becomes ready, one CPU at most is interrupted for it: one that idles, or
//!     else the one whose task comes last of all that come after it. Of a CPU that was
//!     interrupted and has not answered nobody knows what it will do, and it is not asked again. For one
//!     that idles a task outside the plan is kept, but for the root that goes first: who acts meanwhile
//!     takes another, if there is one. So no idle CPU chases tasks that yield faster than an interrupt
//!     comes; if that is lost, it comes at its tick.
//!  3. LEFT: a task that gives its CPU away is [held](crate::task::PbgState::held) there until that
//!     CPU's next call but the pick that follows, when it has surely been left. If somebody
//!     would take it, that call is asked for by an interrupt. On riscv64 one that was preempted is
//!     held until it runs (`STAYS` in [`balance`](sched_smp)).
//!  4. Turns (rules 7 and 9) are each CPU's own: each CPU gives the fallback queue one tick in
//!     [`PLAN_TICKS`](crate::PLAN_TICKS) + 1 while that has a task that it may have. A turn is not ended for a planned
//!     task, and the root goes on until the next tick, as it may be about to spawn.
//!  5. A tick of time is one that nobody interrupted for. All else is as on one CPU, and who acts is
//!     who makes the call, whichever queue it is to.
//!  6. A task that gives its CPU away takes the lock once: the put finds the task that runs next, too, and
//!     the pick that follows at once gives that.
//!
//! **Cost.** A call takes the lock. A task that becomes ready takes a look at each CPU; a pick is linear in the
//! tasks before it that may not run here.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::hint;
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use pbg_record::record::OUTSIDE;
use sched_core::base::BaseScheduler;
use sched_core::clock::Clock;
use sched_smp::{MAX_CPUS, Machine, OnSeveralCpus, SharedSource, SystemShared};
use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::one_cpu::PbgScheduler;
use super::placement::{Here, Locked};
use crate::control::ModeByte;
use crate::grant::Grant;
use crate::source::{ControlSource, SystemControl};
use crate::task::PbgTask;

type Handle<T> = Arc<PbgTask<T>>;

/// How often a CPU looks whether the lock is free before it lets the machine wait, which may take until a
/// tick: for longer, on hardware, than 64 CPUs hold it one after another, some 1 µs each.
const MAX_SPINS: u32 = 16_384;

/// The words that a CPU reads without the lock.
#[repr(C, align(64))]
struct Own<T> {
    /// Whoever puts a task back into the CPU's queue reads it: but only the running task is kept, and that
    /// one its own CPU puts back.
    grant: Grant<T, true>,
    /// COUNTED: how many tasks are ready, have no CPU, and are held on this one. Written under the lock.
    held: AtomicU32,
}

/// The words of a CPU that takes no part yet: no task goes on there, and none is kept. So a yield and its pick
/// need not ask whether it takes part.
static OF_NOBODY: Own<()> = Own::new();

impl<T> Deref for Own<T> {
    type Target = Grant<T, true>;
    #[inline(always)]
    fn deref(&self) -> &Grant<T, true> {
        &self.grant
    }
}

impl<T> Own<T> {
    const fn new() -> Self {
        Self {
            grant: Grant::new(),
            held: AtomicU32::new(0),
        }
    }

    const fn of_nobody() -> &'static Self {
        // SAFETY: of the same layout (`repr(C)`, and no `T` but behind a pointer, which stays null).
        unsafe { &*(&raw const OF_NOBODY).cast() }
    }

    /// Returns true if this task, which is put back, goes on by the plan (rule 5 of PBG), which then has one
    /// yield less for it.
    ///
    /// If it runs here, no other CPU puts it back: a wake waits until the CPU has been left, and so has
    /// picked; a migration is told to the CPU that is left ([`Locked::put`]).
    #[inline(always)]
    fn goes_on(&self, prev: &Handle<T>) -> bool {
        let budget = self.budget();
        let goes_on = budget > 0 && self.runs(prev);
        if goes_on {
            self.set_budget(budget - 1);
        }
        goes_on
    }
}

/// What all CPUs have together.
struct All<T, C, M, S> {
    own: [Own<T>; MAX_CPUS],
    /// COUNTED: how many tasks are ready, have no CPU, and are held on none. Written under the lock.
    free: AtomicU32,
    /// How many commands have been taken, from 1. Written under the lock.
    epoch: AtomicU32,
    locked: SpinMutex<Locked<T, C, M>>,
    shared: PhantomData<S>,
}

impl<T, C: Clock, M: ControlSource, S: SharedSource> All<T, C, M, S> {
    const fn new() -> Self {
        Self {
            own: [const { Own::new() }; MAX_CPUS],
            free: AtomicU32::new(0),
            epoch: AtomicU32::new(1),
            locked: SpinMutex::new(Locked::new()),
            shared: PhantomData,
        }
    }

    #[inline]
    fn lock(&self) -> SpinMutexGuard<'_, Locked<T, C, M>> {
        match self.locked.try_lock() {
            Some(locked) => locked,
            None => self.wait_for_lock(),
        }
    }

    #[cold]
    fn wait_for_lock(&self) -> SpinMutexGuard<'_, Locked<T, C, M>> {
        let wait = Self::machine().wait;
        let mut spins = 0..MAX_SPINS;
        loop {
            if !self.locked.is_locked()
                && let Some(locked) = self.locked.try_lock()
            {
                return locked;
            }
            match spins.next() {
                Some(_) => hint::spin_loop(),
                None => wait(),
            }
        }
    }

    fn machine() -> &'static Machine {
        S::shared().machine().expect("all are connected")
    }

    /// Has this CPU do something that concerns others.
    fn act<R>(
        &self,
        cpu: usize,
        does: impl FnOnce(&mut Locked<T, C, M>, Here<'_, T, S>) -> R,
    ) -> R {
        let mut locked = self.lock();
        let own = &self.own[cpu];
        let here = Here::new(Self::machine(), cpu, own);
        locked.catch_up(here);
        let result = does(&mut locked, here);
        own.held.store(locked.placement.held(cpu), Relaxed);
        self.free.store(locked.placement.free(), Relaxed);
        let to_interrupt = locked.placement.take_to_interrupt();
        let epoch = locked.engine.epoch();
        if epoch != self.epoch.load(Relaxed) {
            self.epoch.store(epoch, Relaxed);
            // The tasks that other CPUs run are older than that.
            let others = M::control().running.iter().enumerate();
            others
                .filter(|&(other, _)| other != cpu)
                .for_each(|(_, running)| running.set(&OUTSIDE));
        }
        drop(locked);
        if to_interrupt != 0 {
            Self::interrupt(to_interrupt);
        }
        result
    }

    /// Without the lock: to interrupt another CPU may take this one from the machine, where several share one
    /// of a host, and all others would spin for it.
    #[inline(never)]
    fn interrupt(mut cpus: u64) {
        let machine = Self::machine();
        while cpus != 0 {
            S::shared().interrupt(machine, cpus.trailing_zeros() as usize);
            cpus &= cpus - 1;
        }
    }
}

/// The machine, and what all CPUs of it have together.
type Connected<T, C, M, S> = (&'static Machine, &'static All<T, C, M, S>);

/// How a CPU takes part.
struct Part<T: 'static, C: 'static, M: 'static, S: 'static> {
    machine: &'static Machine,
    all: &'static All<T, C, M, S>,
    cpu: usize,
    /// Of that CPU, in `all`.
    own: &'static Own<T>,
}

impl<T, C: Clock, M: ControlSource, S: SharedSource> Part<T, C, M, S> {
    fn new((machine, all): Connected<T, C, M, S>, cpu: usize) -> Self {
        let own = &all.own[cpu];
        Self {
            machine,
            all,
            cpu,
            own,
        }
    }

    /// Whether this task, which is put back, goes on as no plan binds it and nobody waits whom this
    /// CPU might have; then it has a new slice, and is dispatched once more in a measurement.
    ///
    /// Somebody may be held on another CPU, as whenever there are more tasks than CPUs. That is no reason for
    /// all that yield to take the lock.
    fn is_alone(&self, prev: &Handle<T>) -> bool {
        let (own, all) = (self.own, self.all);
        let is_alone = own.budget() < 0
            && own.held.load(Relaxed) == 0
            && all.free.load(Relaxed) == 0
            && own.runs(prev)
            && prev.policy_state().epoch.load(Relaxed) == all.epoch.load(Relaxed)
            && M::control().mode() != ModeByte::COMMAND;
        if is_alone {
            prev.policy_state().slice.renew();
            if M::control().mode() == ModeByte::MEASURING {
                let now = C::now();
                let record = prev.policy_state().record.get();
                record.ends(now);
                record.begins(now);
            }
        }
        is_alone
    }

    /// A task is put back into this CPU's queue by whichever CPU calls.
    #[inline(never)]
    fn put(&self, prev: Handle<T>, preempt: bool) {
        if !preempt && self.is_alone(&prev) {
            return self.own.keep(prev);
        }
        let cpu = (self.machine.this_cpu)();
        // The running task of this CPU gives way: its pick follows at once (rule 6).
        let switches =
            cpu == self.cpu && ptr::eq((self.machine.current)(), Arc::as_ptr(&prev).cast());
        let next = (self.all).act(cpu, |locked, here| match switches {
            true => locked.switch(here, prev, preempt),
            false => {
                locked.put(here, prev, preempt);
                None
            }
        });
        if let Some(next) = next {
            self.own.keep(next);
        }
    }

    fn pick(&self) -> Option<Handle<T>> {
        (self.all).act(self.cpu, |locked, here| locked.pick(here))
    }

    /// Whether the CPU that calls is this one.
    fn is_here(&self) -> bool {
        (self.machine.this_cpu)() == self.cpu
    }
}

/// PBG's scheduler of one CPU of several: see the head of this file. `M` is where it finds its control, `S`
/// what all share.
pub struct Together<T, C, M = SystemControl, S = SystemShared>
where
    T: 'static,
    C: 'static,
    M: 'static,
    S: 'static,
{
    /// Of the CPU whose queue this is, as soon as that takes part: all that a yield looks at which goes on by
    /// the plan.
    here: &'static Own<T>,
    /// What it is by itself.
    own: PbgScheduler<T, C, M>,
    /// What it takes part in, and as which CPU, from its first pick or tick after the connection on.
    part: Option<Part<T, C, M, S>>,
}

impl<T, C, M, S> Together<T, C, M, S> {
    /// An empty scheduler.
    pub const fn new() -> Self {
        Self {
            here: Own::of_nobody(),
            own: PbgScheduler::new(),
            part: None,
        }
    }

    /// The name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        PbgScheduler::<T, C, M>::scheduler_name()
    }
}

impl<T, C, M, S> Default for Together<T, C, M, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, C, M, S> Together<T, C, M, S>
where
    T: 'static,
    C: Clock + 'static,
    M: ControlSource + 'static,
    S: SharedSource + 'static,
{
    /// From now on the schedulers of this type follow one plan, on this machine. Takes 9 KiB, for good.
    ///
    /// # Safety
    /// Those of [`Shared::connect`](sched_smp::Shared::connect); all schedulers that find this
    /// control and share this are of this type.
    ///
    /// # Panics
    /// At the next pick or tick of a scheduler that follows a plan by itself.
    pub unsafe fn connect(machine: Machine) {
        let all = Box::new(All::<T, C, M, S>::new());
        M::control().connect(machine.cpus, machine.current);
        S::shared().set_common(Box::into_raw(all).cast());
        // SAFETY: the caller's promise.
        unsafe { S::shared().connect(machine) };
    }

    /// Lets go of what all have together.
    ///
    /// # Safety
    /// No scheduler of this type is used any more.
    #[cfg(feature = "model")]
    pub(crate) unsafe fn retire() {
        if let Some((_, all)) = Self::all() {
            S::shared().set_common(ptr::null_mut());
            // SAFETY: `connect` made it of a box, and nobody holds it.
            drop(unsafe { Box::from_raw(ptr::from_ref(all).cast_mut()) });
        }
    }

    /// What all have together, once they are connected.
    #[inline]
    fn all() -> Option<Connected<T, C, M, S>> {
        let machine = S::shared().machine()?;
        // SAFETY: null, or from `connect` of this type, by its promise, and for good.
        let all = unsafe { S::shared().common().cast::<All<T, C, M, S>>().as_ref() }?;
        Some((machine, all))
    }

    /// Takes part, if it does not yet and can; at a call of the CPU whose queue this is.
    fn part(&mut self) -> Option<&Part<T, C, M, S>> {
        if self.part.is_none() && S::shared().machine().is_some() {
            self.join();
        }
        self.part.as_ref()
    }

    #[cold]
    #[inline(never)]
    fn join(&mut self) {
        let Some((machine, all)) = Self::all() else {
            return;
        };
        let cpu = (machine.this_cpu)();
        let part = Part::new((machine, all), cpu);
        self.here = part.own;
        self.part = Some(part);
        (machine.joins)();
        all.act(cpu, |locked, here| {
            locked.joins(here);
            while let Some(task) = self.own.pop() {
                locked.put(here, task, false);
            }
            // The task that has this CPU may be one of them: then the pick comes next that follows its return.
        });
    }

    /// A put that does not go on by the plan. Out of line, as is the pick, so that `axtask` inlines what it
    /// calls at each yield; and what this leads to is out of line once more, so that it is a jump.
    #[inline(never)]
    fn put_otherwise(&mut self, prev: Handle<T>, preempt: bool) {
        match &self.part {
            Some(part) => part.put(prev, preempt),
            None => self.put_to_own(prev, preempt),
        }
    }

    /// Whoever is put here is taken over when this joins.
    #[inline(never)]
    fn put_to_own(&mut self, prev: Handle<T>, preempt: bool) {
        self.own.put_prev_task(prev, preempt);
    }

    /// Apart from [`pick_as_part`](Self::pick_as_part), or a pick of a CPU by itself saves 11 instructions' worth of
    /// registers that joining needs.
    #[inline(never)]
    fn pick_otherwise(&mut self) -> Option<Handle<T>> {
        match S::shared().machine() {
            Some(_) => self.pick_as_part(),
            None => self.own.pick_next_task(),
        }
    }

    #[inline(never)]
    fn pick_as_part(&mut self) -> Option<Handle<T>> {
        match self.part() {
            Some(part) => part.pick(),
            None => self.own.pick_next_task(),
        }
    }
}

impl<T, C, M, S> BaseScheduler for Together<T, C, M, S>
where
    T: 'static,
    C: Clock + 'static,
    M: ControlSource + 'static,
    S: SharedSource + 'static,
{
    type SchedItem = Handle<T>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Handle<T>) {
        match Self::all() {
            None => self.own.add_task(task),
            Some((machine, all)) => {
                self.own.mark_gc(&task);
                let cpu = (machine.this_cpu)();
                all.act(cpu, |locked, here| locked.add(here, task));
            }
        }
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Handle<T>, preempt: bool) {
        debug_assert!(
            !self.here.runs(&prev) || self.part.as_ref().is_some_and(Part::is_here),
            "OWN: another CPU calls"
        );
        if preempt || !self.here.goes_on(&prev) {
            return self.put_otherwise(prev, preempt);
        }
        self.here.keep(prev);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Handle<T>> {
        self.here.take_kept().or_else(|| self.pick_otherwise())
    }

    fn task_tick(&mut self, current: &Handle<T>) -> bool {
        let Some(&Part { all, cpu, .. }) = self.part() else {
            return self.own.task_tick(current);
        };
        all.act(cpu, |locked, here| locked.tick(here, current))
    }

    fn remove_task(&mut self, task: &Handle<T>) -> Option<Handle<T>> {
        if let Some(task) = self.own.remove_task(task) {
            return Some(task);
        }
        let (machine, all) = Self::all()?;
        all.act((machine.this_cpu)(), |locked, _| {
            locked.remove(machine, task)
        })
    }

    fn set_priority(&mut self, _: &Handle<T>, _: isize) -> bool {
        false
    }
}

impl<T: 'static, C: Clock + 'static> OnSeveralCpus for PbgScheduler<T, C> {
    type Balanced = Together<T, C>;

    unsafe fn connect(machine: Machine) {
        // SAFETY: the caller's promise.
        unsafe { Together::<T, C>::connect(machine) };
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;
