//! The scheduler of several CPUs: one plan and one ready set for all, under one lock.
//!
//! Each CPU's queue is a [`SmpPbgScheduler`]. Before [`connect`](SmpPbgScheduler::connect) it is a
//! scheduler of its own. At its first pick or tick after that, its CPU *joins*: its tasks are from
//! then on in the common [engine](crate::engine). There the rules of [PBG](crate) hold for all CPUs
//! together. Further rules say which CPU runs a task:
//!
//!  1. The ready tasks that come first run, each where its affinity allows: a CPU that picks takes
//!     the first task that it may run.
//!  2. PLACED: when a task becomes ready, at most one CPU at a time is interrupted for it. An idle
//!     CPU is chosen first. If no CPU idles, the CPUs whose running task comes after the ready task
//!     are compared. The one whose running task comes last is interrupted. A CPU that runs a stage is
//!     not interrupted for another stage of its band ([plan](crate::plan), rule 10). A CPU that was
//!     interrupted and has not answered is not asked again, because its next pick is unknown. A
//!     task outside the plan is reserved for the idle CPU, unless it is the root that goes first.
//!     Other CPUs take another task if there is one. So no idle CPU chases tasks that yield faster
//!     than an IPI arrives. A lost IPI is recovered by the CPU's next tick.
//!  3. LEFT: a task that gives its CPU away is [held](crate::task::PbgState::reservation) there
//!     until the CPU has left the task's stack. The CPU's next tick, or its next put or pick after
//!     the switch, shows that. If another CPU would run the task, an IPI asks for that call. On
//!     riscv64 a preempted task is held until it runs (`STAYS` in [`sched_smp`]), even if its
//!     affinity has changed.
//!  4. Each CPU has its own turns (rules 7 and 9): it gives the fallback queue one tick in
//!     [`PLAN_TICKS`](crate::PLAN_TICKS) + 1 while that has a task that it may run. An IPI
//!     for a planned task does not end a turn. It does not stop the root either, because the root
//!     may be about to spawn. The root goes on until the next tick.
//!  5. A tick that answers an IPI is not counted as time, but one that an IPI causes a second time
//!     is. All else is as on one CPU. The acting
//!     CPU is the one that calls, whichever queue the call is for.
//!  6. A task that gives its CPU away takes the lock once: the put also picks the next task, and
//!     the pick that follows returns it.
//!
//! **Without the lock.** A yield within the [grant](crate::grant) goes on, as on one CPU. So does
//! a yield without a plan if no other task is ready that this CPU may run (COUNTED in
//! `placement`).
//!
//! **Cost.** Every other call takes the lock. A task that becomes ready costs a look at each CPU.
//! So do a pick and a put that gives the CPU away. A yield that hands over looks three times. The
//! lock is held for such looks, for a pick, or once for each plan for a walk over all ready tasks.
//! A pick is linear in the tasks before it that may not run on this CPU.

// This file is long because the lock, the words read without it, and the scheduler share private
// fields.

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
use sched_smp::{MAX_CPUS, Machine, SmpStateSource, SmpVariant, SystemSmpState};
use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::one_cpu::PbgScheduler;
use super::placement::{Here, Locked};
use crate::control::GlobalMode;
use crate::grant::Grant;
use crate::source::{ControlSource, SystemControl};
use crate::task::PbgTask;

type Handle<T> = Arc<PbgTask<T>>;

/// The number of looks at a lock that is not free before the CPU lets the machine wait, which may
/// take until a tick. The number assumes that a CPU holds the lock for about 1 µs, which was not
/// measured. Then 64 holds in a row end before the looks do.
const MAX_SPINS: u32 = 16_384;

/// The words of a CPU that are read without the lock.
#[repr(C, align(64))]
struct CpuGrant<T> {
    /// Other CPUs read it when they put a task into this CPU's queue. Only the running task is
    /// kept, and its own CPU puts that back.
    grant: Grant<T, true>,
    /// COUNTED: the number of ready tasks that are held on this CPU. Written under the lock.
    held: AtomicU32,
}

/// The words of a CPU that has not joined: no task goes on there, and none is kept. So a yield and
/// its pick need not ask whether the CPU has joined.
static NO_CPU: CpuGrant<()> = CpuGrant::new();

impl<T> Deref for CpuGrant<T> {
    type Target = Grant<T, true>;
    #[inline(always)]
    fn deref(&self) -> &Grant<T, true> {
        &self.grant
    }
}

impl<T> CpuGrant<T> {
    const fn new() -> Self {
        Self {
            grant: Grant::new(),
            held: AtomicU32::new(0),
        }
    }

    const fn of_no_cpu() -> &'static Self {
        // SAFETY: the layout is the same, because the type is `repr(C)` and has a `T` only behind a
        // pointer, which stays null.
        unsafe { &*(&raw const NO_CPU).cast() }
    }

    /// Returns true if this task, which is put back, goes on by the plan (rule 5 of PBG). The plan
    /// then has one yield less for it.
    ///
    /// If it runs here, no other CPU puts it back. A wake waits until the CPU has left the task,
    /// and so has picked. A migration tells the CPU that the task leaves ([`Locked::put`]).
    #[inline(always)]
    fn spend_yield(&self, prev: &Handle<T>) -> bool {
        let budget = self.budget();
        let goes_on = budget > 0 && self.is_running(prev);
        if goes_on {
            self.set_budget(budget - 1);
        }
        goes_on
    }
}

/// The state that all CPUs share.
struct System<T, C, M, S> {
    grants: [CpuGrant<T>; MAX_CPUS],
    /// COUNTED: the number of ready tasks that are held on no CPU. Written under the lock.
    free: AtomicU32,
    /// The number of commands taken, from 1. Written under the lock.
    epoch: AtomicU32,
    locked: SpinMutex<Locked<T, C, M>>,
    shared: PhantomData<S>,
}

impl<T, C: Clock, M: ControlSource, S: SmpStateSource> System<T, C, M, S> {
    const fn new() -> Self {
        Self {
            grants: [const { CpuGrant::new() }; MAX_CPUS],
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
        S::smp_state().machine().expect("all are connected")
    }

    /// Calls `does` under the lock with `cpu` as the calling CPU, and then sends the IPIs that it
    /// requested.
    fn with_lock_as<R>(
        &self,
        cpu: usize,
        does: impl FnOnce(&mut Locked<T, C, M>, Here<'_, T, S>) -> R,
    ) -> R {
        let mut locked = self.lock();
        let grant = &self.grants[cpu];
        let here = Here::new(Self::machine(), cpu, grant);
        locked.catch_up(here);
        let result = does(&mut locked, here);
        grant.held.store(locked.placement.held(cpu), Relaxed);
        self.free.store(locked.placement.free(), Relaxed);
        let to_interrupt = locked.placement.take_to_interrupt();
        let epoch = locked.engine.epoch();
        if epoch != self.epoch.load(Relaxed) {
            self.epoch.store(epoch, Relaxed);
            // The running tasks of the other CPUs are older than the command.
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

    /// Sends IPIs without the lock. If several CPUs share one of a host, sending an IPI may suspend
    /// this CPU, and all others would spin for the lock.
    #[inline(never)]
    fn interrupt(mut cpus: u64) {
        let machine = Self::machine();
        while cpus != 0 {
            S::smp_state().interrupt(machine, cpus.trailing_zeros() as usize);
            cpus &= cpus - 1;
        }
    }
}

/// The machine, and the state that all its CPUs share.
type Connected<T, C, M, S> = (&'static Machine, &'static System<T, C, M, S>);

/// A CPU that has joined.
struct Member<T: 'static, C: 'static, M: 'static, S: 'static> {
    machine: &'static Machine,
    system: &'static System<T, C, M, S>,
    cpu: usize,
    /// The words of that CPU in `system`.
    grant: &'static CpuGrant<T>,
}

impl<T, C: Clock, M: ControlSource, S: SmpStateSource> Member<T, C, M, S> {
    fn new((machine, system): Connected<T, C, M, S>, cpu: usize) -> Self {
        let grant = &system.grants[cpu];
        Self {
            machine,
            system,
            cpu,
            grant,
        }
    }

    /// Returns true if this task, which is put back, goes on without a plan because this CPU may
    /// run no other ready task. It then has a new slice, and counts one more dispatch in a
    /// measurement.
    ///
    /// Tasks that are held on other CPUs do not count. Such tasks exist whenever there are more
    /// tasks than CPUs, and if they counted, every yield would take the lock.
    fn is_alone(&self, prev: &Handle<T>) -> bool {
        let (grant, system) = (self.grant, self.system);
        let is_alone = grant.budget() < 0
            && grant.held.load(Relaxed) == 0
            && system.free.load(Relaxed) == 0
            && grant.is_running(prev)
            && prev.policy_state().epoch.load(Relaxed) == system.epoch.load(Relaxed)
            && M::control().global_mode() != GlobalMode::COMMAND;
        if is_alone {
            prev.policy_state().slice.renew();
            if M::control().global_mode() == GlobalMode::MEASURING {
                let now = C::now();
                let record = prev.policy_state().record.get();
                record.end_interval(now);
                record.begin_interval(now);
            }
        }
        is_alone
    }

    /// Puts a task back into this CPU's queue. Any CPU may call.
    #[inline(never)]
    fn put(&self, prev: Handle<T>, preempt: bool) {
        if !preempt && self.is_alone(&prev) {
            return self.grant.keep(prev);
        }
        let cpu = (self.machine.this_cpu)();
        // The running task of this CPU gives way, and its pick follows at once (rule 6).
        let switches =
            cpu == self.cpu && ptr::eq((self.machine.current)(), Arc::as_ptr(&prev).cast());
        let next = (self.system).with_lock_as(cpu, |locked, here| match switches {
            true => locked.switch(here, prev, preempt),
            false => {
                locked.put(here, prev, preempt);
                None
            }
        });
        if let Some(next) = next {
            self.grant.keep(next);
        }
    }

    fn pick(&self) -> Option<Handle<T>> {
        (self.system).with_lock_as(self.cpu, |locked, here| locked.pick(here))
    }

    /// Returns true if the calling CPU is this one.
    fn is_here(&self) -> bool {
        (self.machine.this_cpu)() == self.cpu
    }
}

/// PBG's scheduler of one of several CPUs. `M` is where it finds its control, `S` where it finds
/// the shared state.
pub struct SmpPbgScheduler<T, C, M = SystemControl, S = SystemSmpState>
where
    T: 'static,
    C: 'static,
    M: 'static,
    S: 'static,
{
    /// The words of the CPU that owns this queue, once it has joined. A yield that goes on by the
    /// plan reads no other state.
    here: &'static CpuGrant<T>,
    /// The scheduler before it joins.
    single: PbgScheduler<T, C, M>,
    /// Its membership, from its first pick or tick after the connection on.
    member: Option<Member<T, C, M, S>>,
}

impl<T, C, M, S> SmpPbgScheduler<T, C, M, S> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self {
            here: CpuGrant::of_no_cpu(),
            single: PbgScheduler::new(),
            member: None,
        }
    }

    /// Returns the name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        PbgScheduler::<T, C, M>::scheduler_name()
    }
}

impl<T, C, M, S> Default for SmpPbgScheduler<T, C, M, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, C, M, S> SmpPbgScheduler<T, C, M, S>
where
    T: 'static,
    C: Clock + 'static,
    M: ControlSource + 'static,
    S: SmpStateSource + 'static,
{
    /// Connects the schedulers of this type, which from now on follow one plan on this machine.
    /// Takes 9 KiB that are never freed.
    ///
    /// # Safety
    /// The conditions of [`SmpState::connect`](sched_smp::SmpState::connect) must hold. All
    /// schedulers that use this control and this shared state must have this type.
    ///
    /// # Panics
    /// The next pick or tick of a scheduler that follows a plan by itself panics.
    pub unsafe fn connect(machine: Machine) {
        let system = Box::new(System::<T, C, M, S>::new());
        M::control().connect(machine.cpus, machine.current);
        S::smp_state().set_common(Box::into_raw(system).cast());
        // SAFETY: the caller's promise.
        unsafe { S::smp_state().connect(machine) };
    }

    /// Frees the shared state.
    ///
    /// # Safety
    /// No scheduler of this type may be used any more.
    #[cfg(feature = "model")]
    pub(crate) unsafe fn retire() {
        if let Some((_, system)) = Self::connected() {
            S::smp_state().set_common(ptr::null_mut());
            // SAFETY: `connect` made it from a box, and no scheduler uses it.
            drop(unsafe { Box::from_raw(ptr::from_ref(system).cast_mut()) });
        }
    }

    /// Returns the machine and the shared state, once `connect` was called.
    #[inline]
    fn connected() -> Option<Connected<T, C, M, S>> {
        let machine = S::smp_state().machine()?;
        // SAFETY: the pointer is null, or `connect` of this type has stored it, and it stays valid.
        let system = unsafe {
            S::smp_state()
                .common()
                .cast::<System<T, C, M, S>>()
                .as_ref()
        }?;
        Some((machine, system))
    }

    /// Returns the membership of this CPU, which joins if it can and has not. Only the CPU that
    /// owns the queue calls this.
    fn member_or_join(&mut self) -> Option<&Member<T, C, M, S>> {
        if self.member.is_none() && S::smp_state().machine().is_some() {
            self.join();
        }
        self.member.as_ref()
    }

    #[cold]
    #[inline(never)]
    fn join(&mut self) {
        let Some((machine, system)) = Self::connected() else {
            return;
        };
        let cpu = (machine.this_cpu)();
        let member = Member::new((machine, system), cpu);
        self.here = member.grant;
        self.member = Some(member);
        (machine.join)();
        system.with_lock_as(cpu, |locked, here| {
            locked.join(here);
            while let Some(task) = self.single.pop() {
                locked.put(here, task, false);
            }
            // The running task may be one of them: then the next pick follows its return.
        });
    }

    /// Handles a put of a task that does not go on by the plan.
    ///
    /// It is out of line, as is the pick, so that `axtask` inlines the rest of each yield. Its
    /// callees are out of line, too, so that it is a jump.
    #[inline(never)]
    fn put_otherwise(&mut self, prev: Handle<T>, preempt: bool) {
        match &self.member {
            Some(member) => member.put(prev, preempt),
            None => self.put_to_single(prev, preempt),
        }
    }

    /// Puts a task into the queue of a CPU that has not joined. The CPU brings the task along when
    /// it joins.
    #[inline(never)]
    fn put_to_single(&mut self, prev: Handle<T>, preempt: bool) {
        self.single.put_prev_task(prev, preempt);
    }

    /// Picks for a CPU that may not have joined. This is apart from
    /// [`pick_as_member`](Self::pick_as_member), because together each pick would take 11
    /// instructions to save registers that only joining needs.
    #[inline(never)]
    fn pick_otherwise(&mut self) -> Option<Handle<T>> {
        match S::smp_state().machine() {
            Some(_) => self.pick_as_member(),
            None => self.single.pick_next_task(),
        }
    }

    #[inline(never)]
    fn pick_as_member(&mut self) -> Option<Handle<T>> {
        match self.member_or_join() {
            Some(member) => member.pick(),
            None => self.single.pick_next_task(),
        }
    }
}

impl<T, C, M, S> BaseScheduler for SmpPbgScheduler<T, C, M, S>
where
    T: 'static,
    C: Clock + 'static,
    M: ControlSource + 'static,
    S: SmpStateSource + 'static,
{
    type SchedItem = Handle<T>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Handle<T>) {
        match Self::connected() {
            None => self.single.add_task(task),
            Some((machine, system)) => {
                self.single.mark_gc(&task);
                let cpu = (machine.this_cpu)();
                system.with_lock_as(cpu, |locked, here| locked.add(here, task));
            }
        }
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Handle<T>, preempt: bool) {
        debug_assert!(
            !self.here.is_running(&prev) || self.member.as_ref().is_some_and(Member::is_here),
            "OWN: another CPU calls"
        );
        if preempt || !self.here.spend_yield(&prev) {
            return self.put_otherwise(prev, preempt);
        }
        self.here.keep(prev);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Handle<T>> {
        self.here.take_kept().or_else(|| self.pick_otherwise())
    }

    fn task_tick(&mut self, current: &Handle<T>) -> bool {
        let Some(&Member { system, cpu, .. }) = self.member_or_join() else {
            return self.single.task_tick(current);
        };
        system.with_lock_as(cpu, |locked, here| locked.tick(here, current))
    }

    fn remove_task(&mut self, task: &Handle<T>) -> Option<Handle<T>> {
        if let Some(task) = self.single.remove_task(task) {
            return Some(task);
        }
        let (machine, system) = Self::connected()?;
        system.with_lock_as((machine.this_cpu)(), |locked, _| {
            locked.remove(machine, task)
        })
    }

    fn set_priority(&mut self, _: &Handle<T>, _: isize) -> bool {
        false
    }
}

impl<T: 'static, C: Clock + 'static> SmpVariant for PbgScheduler<T, C> {
    type Smp = SmpPbgScheduler<T, C>;

    unsafe fn connect(machine: Machine) {
        // SAFETY: the caller's promise.
        unsafe { SmpPbgScheduler::<T, C>::connect(machine) };
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod walk;
