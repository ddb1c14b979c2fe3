//! PBG on several CPUs: one plan and one ready set for all of them, under one lock.
//!
//! Each CPU's scheduler is a [`Together`]. Until it is
//! [connected](Together::connect) it is a scheduler by itself. From then on what it has is in what
//! all have in common, in which the rules of [`pbg`](super) hold for all CPUs together:
//!
//!  1. Of the ready tasks those run that come first, each where it may run: a CPU that picks takes the
//!     first that it may have.
//!  2. PLACED: when a task becomes ready, one CPU at most is interrupted for it: one that idles, or
//!     else the one whose task comes last of all that come after it. Of a CPU that was
//!     interrupted and has not answered nobody knows what it will do, and it is not asked again. For one
//!     that idles a task outside the plan is kept, but for the root that goes first: who acts meanwhile
//!     takes another, if there is one. So no idle CPU chases tasks that yield faster than an interrupt
//!     comes; if that is lost, it comes at its tick.
//!  3. LEFT: a task that gives its CPU away is [held](super::task::PbgState::held) there until that
//!     CPU's next call but the pick that follows, when it has surely been left. If somebody
//!     would take it, that call is asked for by an interrupt. On riscv64 one that was preempted is
//!     held until it runs (`STAYS` in [`balance`](sched_smp)).
//!  4. Turns (rules 7 and 9) are each CPU's own: each CPU gives the fallback queue one tick in
//!     [`PLAN_TICKS`](super::PLAN_TICKS) + 1 while that has a task that it may have. A turn is not ended for a planned
//!     task, and the root goes on until the next tick, as it may be about to spawn.
//!  5. A tick of time is one that nobody interrupted for. All else is as on one CPU, and who acts is
//!     who makes the call, whichever queue it is to.
//!
//! **Cost.** A call takes the lock and, if another CPU had it last, exchanges a dozen words with what
//! is kept of that CPU. A task that becomes ready takes a look at each CPU; a pick is linear in the
//! tasks before it that may not run here.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::hint;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{AtomicI64, AtomicPtr, AtomicU32, Ordering::Relaxed};

use spin::mutex::{SpinMutex, SpinMutexGuard};

use super::control::{Control, ModeByte};
use super::cpus::Cpus;
use pbg_record::record::OUTSIDE;
use super::replay::{OnCpu, Place};
use super::scheduler::{NO_PLAN, PbgScheduler, Work};
use super::source::{ControlSource, SystemControl};
use super::task::{Held, PbgState, PbgTask, Role};
use sched_smp::{MAX_CPUS, Machine, OnSeveralCpus, SharedSource, SystemShared};
use sched_core::base::BaseScheduler;
use sched_core::clock::Clock;
use sched_core::event::{Running, Tick};
use sched_core::queue::Queue;
use sched_core::units::Counts;

type Handle<T> = Arc<PbgTask<T>>;

/// How often a CPU looks whether the lock is free before it lets the machine wait, which may take until a
/// tick: for longer, on hardware, than 64 CPUs hold it one after another, some 1 µs each.
const MAX_SPINS: u32 = 16_384;

/// All CPUs, as the common scheduler knows them.
pub struct AllCpus<M, S>(PhantomData<(M, S)>);

impl<M: ControlSource, S: SharedSource> Cpus for AllCpus<M, S> {
    const TOGETHER: bool = true;

    fn cpu() -> usize {
        S::shared()
            .machine()
            .map_or(0, |machine| (machine.this_cpu)())
    }

    fn may_have<T>(task: &PbgTask<T>) -> bool {
        S::shared()
            .machine()
            .is_none_or(|machine| may_have(machine, task, (machine.this_cpu)()))
    }

    fn is_awaited_elsewhere<T>(task: &PbgTask<T>) -> bool {
        let held = task.state().held();
        held != Held::NOT && held.is_awaited_but_by(Self::cpu())
    }
}

impl<M: ControlSource, S: SharedSource> ControlSource for AllCpus<M, S> {
    fn control() -> &'static Control {
        M::control()
    }
}

fn may_have<T>(machine: &Machine, task: &PbgTask<T>, cpu: usize) -> bool {
    match task.state().held().only() {
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

/// OWN: what only its CPU writes, in its own calls, and without the lock. Whoever puts a task back into its
/// queue reads it, too: but only who runs there is kept, and that one its own CPU puts back.
#[repr(C, align(64))]
struct Own<T> {
    /// As in [`PbgScheduler`].
    running: AtomicPtr<()>,
    budget: AtomicI64,
    /// The running task, between its yield and the pick that gives it the CPU back; or null.
    kept: AtomicPtr<PbgTask<T>>,
    /// COUNTED: how many tasks are ready, have no CPU, and are held on this one. Written under the lock.
    held: AtomicU32,
}

/// Of a CPU that takes no part yet: nobody goes on there, and nobody is kept. So a yield and its pick need not
/// ask whether it does.
static OF_NOBODY: Own<()> = Own::new();

impl<T> Own<T> {
    const fn new() -> Self {
        Self {
            running: AtomicPtr::new(ptr::null_mut()),
            budget: AtomicI64::new(NO_PLAN),
            kept: AtomicPtr::new(ptr::null_mut()),
            held: AtomicU32::new(0),
        }
    }

    const fn of_nobody() -> &'static Self {
        // SAFETY: of the same layout (`repr(C)`, and no `T` but behind a pointer, which stays null).
        unsafe { &*(&raw const OF_NOBODY).cast() }
    }

    /// Whether this task has this CPU. Then nobody else puts it back: a wake waits until the
    /// CPU has been left, and so has picked; a migration is told to the CPU that is left
    /// ([`Common::put`]).
    #[inline(always)]
    fn runs(&self, prev: &Handle<T>) -> bool {
        Running::at(self.running.load(Relaxed)).is(prev)
    }

    /// Whether this task, which is put back, goes on by the plan (rule 5 of PBG), which then has one
    /// yield less for it.
    #[inline(always)]
    fn goes_on(&self, prev: &Handle<T>) -> bool {
        let budget = self.budget.load(Relaxed);
        let goes_on = budget > 0 && self.runs(prev);
        if goes_on {
            self.budget.store(budget - 1, Relaxed);
        }
        goes_on
    }

    /// Its next pick gives this task.
    #[inline(always)]
    fn keep(&self, task: Handle<T>) {
        self.kept.store(Arc::into_raw(task).cast_mut(), Relaxed);
    }

    /// The task that was kept, if one was.
    #[inline(always)]
    fn take_kept(&self) -> Option<Handle<T>> {
        let kept = self.kept.load(Relaxed);
        if kept.is_null() {
            return None;
        }
        self.kept.store(ptr::null_mut(), Relaxed);
        // SAFETY: it is from `keep`, which gave a handle up for it.
        Some(unsafe { Arc::from_raw(kept.cast_const()) })
    }
}

/// What a replay keeps of a CPU that does not act.
struct Other {
    epoch: u32,
    replay: OnCpu,
}

/// What is known of each CPU, whether it acts or not.
struct Known<T> {
    /// It takes part.
    joined: bool,
    /// Its last pick found nobody.
    idles: bool,
    /// It was interrupted for somebody, and has not answered yet.
    asked: bool,
    /// PLACED: for whom, as long as that one is ready; null is nobody. In a queue, and so alive.
    asked_for: *const PbgTask<T>,
    /// Its next pick follows a return.
    returned: bool,
    /// LEFT: who is held here for that; null is nobody. In a queue, and so alive.
    left: *const PbgTask<T>,
    /// COUNTED.
    held: u32,
}

/// What all CPUs have together.
struct All<T, C, M, S> {
    own: [Own<T>; MAX_CPUS],
    /// COUNTED: how many tasks are ready, have no CPU, and are held on none. Written under the lock.
    free: AtomicU32,
    /// How many commands have been taken, from 1. Written under the lock.
    epoch: AtomicU32,
    common: SpinMutex<Common<T, C, M, S>>,
}

impl<T, C: Clock, M: ControlSource, S: SharedSource> All<T, C, M, S> {
    const fn new() -> Self {
        Self {
            own: [const { Own::new() }; MAX_CPUS],
            free: AtomicU32::new(0),
            epoch: AtomicU32::new(1),
            common: SpinMutex::new(Common {
                pbg: PbgScheduler::without_gc(),
                acting: 0,
                free: 0,
                to_interrupt: 0,
                others: [const {
                    Other {
                        epoch: 0,
                        replay: OnCpu::since(Counts::ZERO, Role::OUTSIDE),
                    }
                }; MAX_CPUS],
                known: [const {
                    Known {
                        joined: false,
                        idles: false,
                        asked: false,
                        asked_for: ptr::null(),
                        returned: false,
                        left: ptr::null(),
                        held: 0,
                    }
                }; MAX_CPUS],
            }),
        }
    }

    #[inline]
    fn lock(&self) -> SpinMutexGuard<'_, Common<T, C, M, S>> {
        match self.common.try_lock() {
            Some(common) => common,
            None => self.wait_for_lock(),
        }
    }

    #[cold]
    fn wait_for_lock(&self) -> SpinMutexGuard<'_, Common<T, C, M, S>> {
        let wait = Self::machine().wait;
        let mut spins = 0..MAX_SPINS;
        loop {
            if !self.common.is_locked()
                && let Some(common) = self.common.try_lock()
            {
                return common;
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
    fn act<R>(&self, cpu: usize, does: impl FnOnce(&mut Common<T, C, M, S>) -> R) -> R {
        let mut common = self.lock();
        S::locked();
        let own = &self.own[cpu];
        common.pbg.running = Running::at(own.running.load(Relaxed));
        common.pbg.budget = own.budget.load(Relaxed);
        common.act_on(cpu);
        let result = does(&mut common);
        debug_assert!(
            common.pbg.kept.is_empty(),
            "OWN: it is kept without the lock"
        );
        own.running
            .store(common.pbg.running.address().cast_mut(), Relaxed);
        own.budget.store(common.pbg.budget, Relaxed);
        own.held.store(common.known[cpu].held, Relaxed);
        self.free.store(common.free, Relaxed);
        let to_interrupt = core::mem::take(&mut common.to_interrupt);
        if common.pbg.epoch != self.epoch.load(Relaxed) {
            self.epoch.store(common.pbg.epoch, Relaxed);
            // Who has another CPU is older than that.
            let others = M::control().running.iter().enumerate();
            others
                .filter(|&(other, _)| other != cpu)
                .for_each(|(_, running)| running.set(&OUTSIDE));
        }
        drop(common);
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
        let is_alone = own.budget.load(Relaxed) < 0
            && own.held.load(Relaxed) == 0
            && all.free.load(Relaxed) == 0
            && own.runs(prev)
            && prev.state().epoch.load(Relaxed) == all.epoch.load(Relaxed)
            && M::control().mode() != ModeByte::COMMAND;
        if is_alone {
            prev.state().slice.renew();
            if M::control().mode() == ModeByte::MEASURING {
                let now = C::now();
                let record = prev.state().record.get();
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
        (self.all).act(cpu, |common| common.put(self.machine, cpu, prev, preempt));
    }

    fn pick(&self) -> Option<Handle<T>> {
        (self.all).act(self.cpu, |common| common.pick(self.machine, self.cpu))
    }

    /// Whether the CPU that calls is this one.
    fn is_here(&self) -> bool {
        (self.machine.this_cpu)() == self.cpu
    }
}

/// What is touched under the lock.
struct Common<T, C, M, S> {
    pbg: PbgScheduler<T, C, AllCpus<M, S>>,
    /// The CPU that acts, or did last.
    acting: usize,
    /// COUNTED.
    free: u32,
    /// The CPUs that are to be interrupted as soon as the lock is free, a bit for each.
    to_interrupt: u64,
    /// What is kept of the others. Of the one that acts it is stale.
    others: [Other; MAX_CPUS],
    known: [Known<T>; MAX_CPUS],
}

// SAFETY: as for `PbgScheduler`; LEFT: `left` is of a task in one of its queues.
unsafe impl<T: Send + Sync, C, M, S> Send for Common<T, C, M, S> {}

impl<T, C: Clock, M: ControlSource, S: SharedSource> Common<T, C, M, S> {
    /// This CPU acts from now on, whose [`Own`] is in `pbg`.
    fn act_on(&mut self, cpu: usize) {
        if self.acting == cpu {
            return;
        }
        let Self { pbg, others, .. } = self;
        let epoch = pbg.epoch;
        others[self.acting].epoch = epoch;
        let is_old = core::mem::replace(&mut others[cpu].epoch, epoch) != epoch;
        if is_old {
            // A command was taken since: its task is older than that, and returns as one who has
            // to be looked at.
            pbg.running.forget();
        }
        match &mut pbg.work {
            Work::Replay(replay) => {
                replay.exchange(&mut others[self.acting].replay);
                if is_old {
                    pbg.budget = 0; // no plan was followed, and now nothing is granted
                }
                replay.exchange(&mut others[cpu].replay);
                pbg.budget = replay.go_on(pbg.budget);
            }
            _ => pbg.budget = NO_PLAN,
        }
        self.acting = cpu;
    }

    /// This CPU takes part from now on, with the tasks in `queue`.
    fn join(&mut self, machine: &Machine, cpu: usize, queue: &mut Queue<T, PbgState>) {
        self.known[cpu].joined = true;
        while let Some(task) = queue.pop_front() {
            self.put(machine, cpu, task, false);
        }
        // Who has this CPU may be one of them: then the pick comes next that follows its return.
    }

    fn add(&mut self, machine: &Machine, task: Handle<T>) {
        let at = Arc::as_ptr(&task);
        self.counts(&task, Held::NOT);
        self.pbg.add_task(task);
        self.place(machine, at);
    }

    fn put(&mut self, machine: &Machine, cpu: usize, prev: Handle<T>, preempt: bool) {
        let at = Arc::as_ptr(&prev);
        if !ptr::eq((machine.current)(), at.cast()) {
            if self.pbg.running.is(&prev) {
                self.pbg.running.forget(); // it migrates, and a helper has the CPU
            }
            self.counts(&prev, Held::NOT);
            self.pbg.put_prev_task(prev, false);
            return self.place(machine, at);
        }
        self.leave(machine, cpu);
        let stays = S::PREEMPTED_STAY && preempt;
        let held = match stays {
            true => Held::stays(cpu),
            false => Held::left(cpu),
        };
        self.counts(&prev, held);
        self.pbg.put_prev_task(prev, preempt);
        let known = &mut self.known[cpu];
        known.returned = true;
        if !stays {
            known.left = at;
        }
    }

    fn pick(&mut self, machine: &Machine, cpu: usize) -> Option<Handle<T>> {
        if !take(&mut self.known[cpu].returned) {
            self.leave(machine, cpu);
        }
        let next = self.pbg.pick_next_task();
        if let Some(task) = &next {
            self.is_not_ready(machine, task);
        }
        let known = &mut self.known[cpu];
        let was_idle = core::mem::replace(&mut known.idles, next.is_none());
        if was_idle {
            S::shared().was_interrupted(cpu); // an idle CPU is told of no tick
        }
        if was_idle != next.is_none() {
            S::shared().set_idles(cpu, !was_idle);
        }
        // SAFETY: LEFT.
        if let Some(left) = unsafe { known.left.as_ref() }
            && self.wanted_by(machine, left, Some(cpu)).is_some()
        {
            self.interrupt(cpu);
        }
        self.ask_for_left(machine, cpu);
        self.has_answered(machine, cpu);
        next
    }

    fn tick(&mut self, machine: &Machine, cpu: usize, current: &Handle<T>) -> bool {
        self.leave(machine, cpu);
        let reschedules = match S::shared().was_interrupted(cpu) {
            true => {
                let mut tick = Tick::Continue;
                let now = C::now();
                (self.pbg).replay(|replay| tick = replay.interrupted::<AllCpus<M, S>>(now));
                tick == Tick::Reschedule
            }
            false => self.pbg.task_tick(current),
        };
        if !reschedules {
            self.has_answered(machine, cpu); // or it does with its pick
        }
        reschedules
    }

    /// COUNTED: this task is about to be in a queue, so held.
    fn counts(&mut self, task: &PbgTask<T>, held: Held) {
        task.state().hold(held);
        *self.count(held) += 1;
    }

    /// COUNTED: this task, which is in a queue, is held otherwise from now on.
    fn hold(&mut self, task: &PbgTask<T>, held: Held) {
        *self.count(task.state().held()) -= 1;
        self.counts(task, held);
    }

    fn count(&mut self, held: Held) -> &mut u32 {
        match held.only() {
            Some((cpu, _)) => &mut self.known[cpu].held,
            None => &mut self.free,
        }
    }

    /// This task is in no queue any more.
    fn is_not_ready(&mut self, machine: &Machine, task: &PbgTask<T>) {
        *self.count(task.state().held()) -= 1;
        task.state().hold(Held::NOT);
        for known in &mut self.known[..machine.cpus] {
            for of in [&mut known.left, &mut known.asked_for] {
                if ptr::eq(*of, task) {
                    *of = ptr::null();
                }
            }
        }
    }

    /// PLACED: this CPU has looked, or picked.
    fn has_answered(&mut self, machine: &Machine, cpu: usize) {
        let known = &mut self.known[cpu];
        known.asked = false;
        let asked_for = core::mem::replace(&mut known.asked_for, ptr::null());
        // SAFETY: in a queue of `pbg`, or it would be null.
        if let Some(task) = unsafe { asked_for.as_ref() } {
            self.hold(task, Held::NOT);
            self.place(machine, asked_for);
        }
    }

    fn remove(&mut self, machine: &Machine, task: &Handle<T>) -> Option<Handle<T>> {
        let removed = self.pbg.remove_task(task)?;
        self.is_not_ready(machine, &removed);
        Some(removed)
    }

    /// LEFT: this CPU, which acts, has switched since a task was put back.
    fn leave(&mut self, machine: &Machine, cpu: usize) {
        let left = core::mem::replace(&mut self.known[cpu].left, ptr::null());
        // SAFETY: LEFT.
        if let Some(task) = unsafe { left.as_ref() } {
            self.hold(task, Held::NOT);
            self.place(machine, left);
        }
    }

    /// LEFT: this CPU has picked, and would have taken one that is held elsewhere.
    fn ask_for_left(&mut self, machine: &Machine, cpu: usize) {
        for other in (0..machine.cpus).filter(|&other| other != cpu) {
            // SAFETY: LEFT.
            if let Some(left) = unsafe { self.known[other].left.as_ref() }
                && may_run(machine, left, cpu)
                && self.takes(cpu, left)
            {
                self.interrupt(other);
            }
        }
    }

    /// Whether this CPU, which acts, would take that task from a queue.
    fn takes(&self, cpu: usize, task: &PbgTask<T>) -> bool {
        self.known[cpu].idles || self.after(cpu, task, C::now()).is_some()
    }

    /// The place of who runs on this CPU, if that comes after this task, which is ready.
    fn after(&self, cpu: usize, task: &PbgTask<T>, now: Counts) -> Option<Place> {
        let Work::Replay(replay) = &self.pbg.work else {
            return None;
        };
        let place = replay.place_of_ready(task)?;
        let running = match cpu == self.acting {
            true => replay.place_here(now),
            false => replay.place_of_running(&self.others[cpu].replay, now),
        };
        running.filter(|&running| place < running)
    }

    /// PLACED: has somebody look who would take this task, which is ready.
    fn place(&mut self, machine: &Machine, task: *const PbgTask<T>) {
        // SAFETY: it is in a queue of `pbg`.
        let task = unsafe { &*task };
        let Some(cpu) = self.wanted_by(machine, task, None) else {
            return;
        };
        let known = &mut self.known[cpu];
        known.asked = true;
        known.asked_for = task;
        let idles = known.idles;
        if idles {
            self.hold(task, Held::awaited(cpu));
        }
        // Who idles and makes the call itself, in an interrupt, picks when that is over.
        if !(idles && cpu == self.acting) {
            self.interrupt(cpu);
        }
    }

    /// Has this CPU interrupted, once the lock is free.
    const fn interrupt(&mut self, cpu: usize) {
        self.to_interrupt |= 1 << cpu;
    }

    /// The CPU that would take this task, which is ready, and is to be asked; `held` is where it is
    /// held now, and not to be asked.
    fn wanted_by(
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
            let known = &self.known[cpu];
            known.joined && !known.asked && may_have(cpu)
        });
        let now = C::now();
        let mut last: Option<(Place, usize)> = None;
        for cpu in asked {
            if self.known[cpu].idles {
                return Some(cpu);
            }
            if let Some(running) = self.after(cpu, task, now)
                && last.is_none_or(|(latest, _)| latest < running)
            {
                last = Some((running, cpu));
            }
        }
        last.map(|(_, cpu)| cpu)
    }
}

fn take(flag: &mut bool) -> bool {
    core::mem::replace(flag, false)
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
        assert!(
            !matches!(self.own.work, Work::Replay(_)),
            "connected while one CPU follows a plan by itself, whose tasks would be lost"
        );
        let cpu = (machine.this_cpu)();
        let part = Part::new((machine, all), cpu);
        self.here = part.own;
        self.part = Some(part);
        (machine.joins)();
        all.act(cpu, |common| common.join(machine, cpu, &mut self.own.queue));
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
                all.act(cpu, |common| common.add(machine, task));
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
        let Some(&Part {
            machine, all, cpu, ..
        }) = self.part()
        else {
            return self.own.task_tick(current);
        };
        all.act(cpu, |common| common.tick(machine, cpu, current))
    }

    fn remove_task(&mut self, task: &Handle<T>) -> Option<Handle<T>> {
        if let Some(task) = self.own.remove_task(task) {
            return Some(task);
        }
        let (machine, all) = Self::all()?;
        all.act((machine.this_cpu)(), |common| common.remove(machine, task))
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
