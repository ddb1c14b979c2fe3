//! [`WorkSharing`]: a per-CPU scheduler that hands ready tasks to idle CPUs.

// This file is long because all rules share the private state of one queue.

use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::ptr;

use super::smp_state::{Machine, PostReason, Posted, SMP_STATE, SmpStateSource, SystemSmpState};
use sched_core::base::BaseScheduler;
use sched_core::event::{Adapter, EnqueueReason, EventLevel, Policy, Running, TaskRef, Tick};
use sched_core::link::Link;
use sched_core::task::Task;

#[cfg(test)]
mod tests;

/// A scheduler that drives a policy on one of several CPUs by the rules of the [module](super). `M` names the state that
/// the CPUs share.
pub struct WorkSharing<P: Policy, M = SystemSmpState> {
    policy: P,
    /// The running task; not tracked from a return to the next pick.
    running: Running,
    /// The CPU of this queue, known from the first pick or tick on.
    cpu: Option<usize>,
    /// The number of tasks in the queue, without a running one that has been put back.
    waiting: u32,
    /// True if the last pick found no task.
    is_idle: bool,
    /// A request for work is outstanding: neither answered nor withdrawn.
    request_pending: bool,
    /// True if the request was made while a task ran here (rule 6), and no CPU has been asked since
    /// none runs. It counts only while the request is outstanding.
    request_is_for_balance: bool,
    /// RETAINED: the address of the task that was posted here while another ran or waited, until it has run. It is only
    /// compared.
    retained: Option<NonZeroUsize>,
    /// The most ticks for which it remains retained.
    retained_ticks: u32,
    /// The address of the running task, if its next put or the pick after that matters (HANDOFF, RETAINED). `running` is
    /// UNTRACKED then, so that the put takes the slow path. It is only compared.
    watched: Option<NonZeroUsize>,
    shared: PhantomData<fn() -> M>,
}

impl<P: Policy, M> WorkSharing<P, M> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self {
            policy: P::NEW,
            running: Running::UNTRACKED,
            cpu: None,
            waiting: 0,
            is_idle: false,
            request_pending: false,
            request_is_for_balance: false,
            retained: None,
            retained_ticks: 0,
            watched: None,
            shared: PhantomData,
        }
    }

    /// Returns the name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        P::NAME
    }

    /// Returns the policy inside, for tests and statistics.
    pub const fn policy(&self) -> &P {
        &self.policy
    }
}

/// A scheduler of one CPU, and its form within the layer.
pub trait SmpVariant {
    /// The scheduler within the layer, on the system's machine.
    type Smp;

    /// Connects the system's CPUs, which share the work from now on.
    ///
    /// # Safety
    /// As for [`SmpState::connect`](super::SmpState::connect) of [`SMP_STATE`].
    unsafe fn connect(machine: Machine) {
        // SAFETY: the caller's promise.
        unsafe { SMP_STATE.connect(machine) };
    }
}

impl<P: Policy> SmpVariant for Adapter<P> {
    type Smp = WorkSharing<P>;
}

impl<P: Policy, M> Default for WorkSharing<P, M> {
    fn default() -> Self {
        Self::new()
    }
}

/// The target of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Target {
    /// Another CPU, whatever it does (rule 7).
    Cpu(usize),
    /// Another CPU, which requests a task.
    RequestingCpu(usize),
    /// This CPU, which idles and has been told.
    HereNext,
    /// This CPU, in whose queue the task waits.
    Here,
}

/// Returns true if this task may run on the CPU.
fn may_run<T, S>(machine: &Machine, task: &Task<T, S>, cpu: usize) -> bool {
    let inner = ptr::from_ref(task.inner()).cast();
    // SAFETY: the promise of `connect`, and the pointer is made from a reference.
    unsafe { (machine.may_run)(inner, cpu) }
}

/// Returns the numbers of the bits that are set, from the lowest.
fn each(mut bits: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        let first = (bits != 0).then(|| bits.trailing_zeros() as usize)?;
        bits &= bits - 1;
        Some(first)
    })
}

impl<P: Policy, M: SmpStateSource> WorkSharing<P, M> {
    /// Chooses the target of a task by rules 4 and 7.
    fn choose_target(&mut self, task: &TaskRef<P>) -> Target {
        let smp = M::smp_state();
        let (Some(machine), Some(own)) = (smp.machine(), self.cpu) else {
            return Target::Here;
        };
        if !may_run(machine, task, own) {
            let allowed = (0..machine.cpus).filter(|&cpu| may_run(machine, task, cpu));
            let fewest = allowed.min_by_key(|&cpu| (!smp.is_idle(cpu), smp.waiting(cpu)));
            return fewest.map_or(Target::Here, Target::Cpu);
        }
        if self.is_idle && smp.take_request(own) {
            self.request_pending = false;
            // If this call comes from an interrupt on this CPU, its idle task picks afterwards.
            if (machine.this_cpu)() != own {
                smp.interrupt(machine, own);
            }
            return Target::HereNext;
        }
        let others = each(smp.requesting() & !(1 << own)).filter(|&cpu| smp.is_idle(cpu));
        let mut wanted = others.filter(|&cpu| may_run(machine, task, cpu));
        match wanted.find(|&cpu| smp.take_request(cpu)) {
            Some(cpu) => Target::RequestingCpu(cpu),
            None => Target::Here,
        }
    }

    /// Makes a task ready here that is in no queue and on no CPU (rules 4 and 7).
    fn make_ready(&mut self, task: TaskRef<P>, reason: PostReason) {
        let smp = M::smp_state();
        match (self.choose_target(&task), smp.machine()) {
            (Target::RequestingCpu(cpu), Some(machine)) => {
                smp.post(machine, cpu, posted::<P>(task, reason));
            }
            (Target::Cpu(cpu), Some(machine)) => {
                let posted = posted::<P>(task, reason);
                // SAFETY: its handle is in `posted`, so it is alive and in no queue. `take_sent`
                // sets the link back before the task comes to a queue.
                let link = unsafe { (*posted.task.cast::<Task<P::Inner, P::State>>()).link() };
                smp.send(machine, cpu, posted, |before| link.set(before.cast()));
            }
            (Target::HereNext, _) => self.enqueue(task, reason),
            _ => self.enqueue_and_offer(task, reason),
        }
    }

    /// Enqueues a task here, and interrupts this CPU if a requesting CPU may run it.
    fn enqueue_and_offer(&mut self, task: TaskRef<P>, reason: PostReason) {
        let inner: *const P::Inner = task.inner();
        self.enqueue(task, reason);
        let (Some(machine), Some(own)) = (M::smp_state().machine(), self.cpu) else {
            return;
        };
        // SEEN: the bits are read after the task was counted in `enqueue`.
        let others = each(M::smp_state().requesting() & !(1 << own));
        let mut others = others.filter(|&cpu| M::smp_state().is_idle(cpu));
        // SAFETY: the promise of `connect`. The task is alive, since it is in this queue, whose
        // lock is held.
        let may_run = |&cpu: &usize| unsafe { (machine.may_run)(inner.cast(), cpu) };
        match others.find(may_run) {
            Some(requester) => M::smp_state().ask(machine, own, requester),
            None if M::smp_state().requesting() & !(1 << own) != 0 => self.watch(),
            None => {}
        }
    }

    /// Forces the slow path for the running task's next put, if it was picked, and the pick after that. That is for HANDOFF,
    /// where other CPUs request a task that they may not find here, or for a waiting RETAINED task.
    fn watch(&mut self) {
        if self.running.is_tracked() {
            self.watched = NonZeroUsize::new(self.running.address().addr());
            self.running = Running::UNTRACKED;
        } else if self.running.is_forgotten() {
            // This is between a put and its pick, for which `axtask` takes the lock once more.
            self.running = Running::UNTRACKED;
            self.waiting += 1; // until that pick
        }
    }

    /// Handles a watched running task that gives way. HANDOFF: if it must stay, or no idle CPU may run it, the next task is
    /// watched. RETAINED: the pick looks at the task that it finds.
    fn put_watched(&mut self, task: TaskRef<P>, preempt: bool) {
        self.watched = None;
        let needs_handoff = self.request_handoff(&task, preempt);
        let next_is_watched = self.retained.is_some() || !needs_handoff && self.idle_others() != 0;
        // The task is tracked again, as if it had not been watched.
        self.running.set_task(&task);
        self.put_prev_task(task, preempt);
        if next_is_watched {
            self.running = Running::UNTRACKED;
            self.waiting += 1; // until that pick
        }
    }

    /// Interrupts this CPU if an idle CPU may run the task, which gives way (HANDOFF). The IPI
    /// comes as soon as the task has been left. Returns true if it did.
    fn request_handoff(&self, task: &TaskRef<P>, preempt: bool) -> bool {
        let smp = M::smp_state();
        let (Some(machine), Some(own)) = (smp.machine(), self.cpu) else {
            return false;
        };
        if M::PREEMPTED_STAY && preempt {
            return false;
        }
        let needs_handoff = each(self.idle_others()).any(|cpu| may_run(machine, task, cpu));
        if needs_handoff {
            smp.interrupt(machine, own);
        }
        needs_handoff
    }

    /// Returns the idle CPUs among the other requesting ones (bit mask).
    fn idle_others(&self) -> u64 {
        let smp = M::smp_state();
        let others = smp.requesting() & !self.cpu.map_or(0, |own| 1 << own);
        let idle = each(others).filter(|&cpu| smp.is_idle(cpu));
        idle.fold(0, |idle, cpu| idle | 1 << cpu)
    }

    /// Puts the running task back after a preemption.
    #[cold]
    #[inline(never)]
    fn put_preempted(&mut self, task: TaskRef<P>) {
        if M::PREEMPTED_STAY {
            task.set_stays(true);
        }
        self.running.forget();
        self.policy
            .enqueue(task, tracked::<P>(EnqueueReason::Preempted));
    }

    /// Puts back a task that was not the last pick here. Either it was blocked or migrates, and is
    /// on no CPU. Or it runs without having been picked, as `main` at first and a migration helper,
    /// and is IN FLIGHT.
    #[cold]
    #[inline(never)]
    fn put_unpicked(&mut self, task: TaskRef<P>) {
        self.put_by_origin(task, false);
    }

    /// Puts back a task that was not the last pick here, if the running task is preempted.
    #[cold]
    #[inline(never)]
    fn put_unpicked_preempted(&mut self, task: TaskRef<P>) {
        self.put_by_origin(task, true);
    }

    fn put_by_origin(&mut self, task: TaskRef<P>, preempt: bool) {
        let current = M::smp_state().machine().map(|machine| (machine.current)());
        let has_cpu = current == Some(Arc::as_ptr(&task).cast());
        if has_cpu && self.watched == address(&task) {
            return self.put_watched(task, preempt);
        }
        if M::PREEMPTED_STAY {
            task.set_stays(has_cpu && preempt);
        }
        if has_cpu {
            self.request_handoff(&task, preempt);
            self.enqueue(task, PostReason::Woken);
        } else {
            self.make_ready(task, PostReason::Woken);
        }
    }

    /// Puts a task into the policy's queue.
    fn enqueue(&mut self, task: TaskRef<P>, reason: PostReason) {
        match reason {
            PostReason::New => self.policy.spawned(task),
            PostReason::Woken => self.policy.enqueue(task, EnqueueReason::Woken),
            PostReason::HandedOver => self.policy.enqueue(task, EnqueueReason::HandedOver),
        }
        self.count(self.waiting + 1);
    }

    fn count(&mut self, waiting: u32) {
        self.waiting = waiting;
        if let (Some(cpu), Some(_)) = (self.cpu, M::smp_state().machine()) {
            M::smp_state().set_waiting(cpu, waiting);
        }
    }

    /// Enqueues the task that was posted here.
    fn take_post(&mut self, cpu: usize) {
        if let Some(Posted { task, reason }) = M::smp_state().take_post(cpu) {
            self.request_pending = false;
            // SAFETY: a post is taken once.
            let task = unsafe { handle::<P>(task) };
            if !self.is_idle || self.waiting > 0 {
                self.retained = address(&task);
                self.retained_ticks = RETAINED_TICKS + RETAINED_TICKS_EACH * self.waiting;
                self.watch();
            }
            self.enqueue(task, reason);
        }
    }

    /// Enqueues the tasks that were sent here (rule 7), the last first.
    fn take_sent(&mut self, cpu: usize) {
        let mut sent = M::smp_state().take_sent(cpu);
        while let Some(Posted { task, reason }) = Posted::of_tagged(sent) {
            // SAFETY: a sent task is taken once.
            let task = unsafe { handle::<P>(task) };
            // SAFETY: the task is in no queue, and its link is set back here.
            let link = unsafe { task.link() };
            sent = link.get().cast();
            link.set(Link::APART);
            // It has a task to run now, so it withdraws its request, unless a post is on the way.
            if self.request_pending && M::smp_state().take_request(cpu) {
                self.request_pending = false;
            }
            match self.is_idle && self.waiting == 0 {
                true => self.enqueue(task, reason), // it runs next
                false => self.enqueue_and_offer(task, reason),
            }
        }
    }

    /// Takes the posts and requests of other CPUs for this calling CPU. Returns true if they interrupted it.
    fn receive(&mut self, cpu: usize) -> bool {
        if self.cpu.replace(cpu).is_none() {
            if let Some(machine) = M::smp_state().machine() {
                (machine.join)();
                // It may have been idle before there was anything to publish.
                M::smp_state().set_idle(cpu, self.is_idle);
            }
            self.count(self.waiting);
        }
        let was_interrupted = M::smp_state().was_interrupted(cpu);
        self.take_post(cpu);
        self.take_sent(cpu);
        was_interrupted
    }

    /// Answers all requests that are still open (rule 2), and looks for other requesting CPUs (rule 5).
    fn serve(&mut self, machine: &Machine, own: usize) {
        let smp = M::smp_state();
        let requesting = match self.waiting {
            0 => smp.take_askers(own),
            _ => smp.take_askers(own) | smp.requesting(),
        };
        let requesting = requesting & smp.requesting() & !(1 << own);
        let idle = each(requesting).filter(|&cpu| smp.is_idle(cpu));
        let idle = idle.fold(0, |idle, cpu| idle | 1 << cpu);
        // Idle CPUs come first.
        for cpu in each(idle).chain(each(requesting & !idle)) {
            let is_idle = idle >> cpu & 1 != 0;
            if !is_idle && self.waiting <= smp.waiting(cpu) {
                continue;
            }
            let retained = self.retained.filter(|_| !is_idle);
            let may = |task: &Task<P::Inner, P::State>| {
                let is_retained =
                    retained.is_some() && retained == NonZeroUsize::new(ptr::from_ref(task).addr());
                let stays = M::PREEMPTED_STAY && task.stays();
                !is_retained && !stays && may_run(machine, task, cpu)
            };
            // REQUEST: no task is dequeued before the request is this CPU's to answer.
            let is_refused = Cell::new(false);
            let take_request = || {
                let claimed = smp.take_request(cpu);
                is_refused.set(!claimed);
                claimed
            };
            match self.policy.migrate_out(&may, &take_request) {
                Some(task) => {
                    if self.retained == address(&task) {
                        self.retained = None; // it goes to an idle CPU
                    }
                    self.count(self.waiting - 1);
                    smp.post(machine, cpu, posted::<P>(task, PostReason::HandedOver));
                }
                None if is_refused.get() => {} // another CPU was faster
                None => {
                    if is_idle && self.waiting > 0 {
                        self.watch();
                    }
                    smp.ask_next(machine, cpu);
                }
            }
        }
    }

    /// Handles a pick after a return that finds no task.
    #[cold]
    #[inline(never)]
    fn find_none_after_put(&mut self) -> Option<TaskRef<P>> {
        self.running = Running::UNTRACKED;
        None
    }

    /// Picks if the running task was not put back, or after a put of a watched task beside a
    /// RETAINED one.
    #[cold]
    #[inline(never)]
    fn pick_slow(&mut self) -> Option<TaskRef<P>> {
        let was_watched = self.watched.take().is_some();
        if P::EVENTS == EventLevel::Departures && (was_watched || self.running.is_tracked()) {
            self.policy.current_left();
        }
        self.running = Running::UNTRACKED; // no task is watched
        let smp = M::smp_state();
        let here = smp.machine().map(|machine| (machine, (machine.this_cpu)()));
        if let Some((_, cpu)) = here {
            self.receive(cpu);
        }
        let next = self.policy.dispatch();
        let was_idle = core::mem::replace(&mut self.is_idle, next.is_none());
        if let Some((_, cpu)) = here
            && was_idle != self.is_idle
        {
            smp.set_idle(cpu, self.is_idle);
        }
        if let Some(task) = &next {
            if self.retained == address(task) {
                self.retained = None;
            }
            self.running.picked(next.as_ref());
            self.count(self.waiting - 1);
            if self.retained.is_some() || self.waiting > 0 && self.idle_others() != 0 {
                self.watch();
            }
            // This CPU was told of the task. So it has withdrawn its request, or another task
            // comes.
            debug_assert!(
                !was_idle || here.is_none_or(|(_, cpu)| smp.requesting() >> cpu & 1 == 0)
            );
        } else if let Some((machine, cpu)) = here {
            self.request_work(machine, cpu);
        }
        next
    }

    /// Asks for a task (rule 1). It asks once, as each CPU with waiting tasks looks for requesting CPUs at its ticks (rule 5).
    fn request_work(&mut self, machine: &Machine, cpu: usize) {
        // A CPU that requested a task while it had a task to run has asked no CPU.
        let asks_now = core::mem::take(&mut self.request_is_for_balance);
        if !core::mem::replace(&mut self.request_pending, true) {
            M::smp_state().request_task(cpu);
        } else if !asks_now {
            return;
        }
        M::smp_state().ask_any(machine, cpu);
    }

    /// Compares the queues at a tick that hits a task (rule 6).
    fn balance_length(&mut self, machine: &Machine, cpu: usize) {
        let smp = M::smp_state();
        let others = (0..machine.cpus).filter(|&other| other != cpu);
        let most = others.map(|other| smp.waiting(other)).max().unwrap_or(0);
        let is_short = self.waiting < most && self.retained.is_none();
        if is_short && !self.request_pending {
            self.request_pending = true;
            self.request_is_for_balance = true;
            smp.request_task(cpu);
        } else if !is_short && self.request_pending && smp.take_request(cpu) {
            self.request_pending = false;
        }
    }

    /// Counts the time of a retained task at a tick that hits a task (RETAINED).
    fn expire_retained(&mut self) {
        self.retained_ticks = self.retained_ticks.saturating_sub(1);
        if self.retained_ticks == 0 {
            self.retained = None;
        }
    }
}

/// The most ticks for which a task is retained (RETAINED). The second number is added for each task
/// that waits when it comes. Every policy but SJF and FIFO has run it by then.
const RETAINED_TICKS: u32 = 128;
const RETAINED_TICKS_EACH: u32 = 16;

/// Returns the address of a task, for comparisons.
fn address<T, S>(task: &Arc<Task<T, S>>) -> Option<NonZeroUsize> {
    NonZeroUsize::new(Arc::as_ptr(task).addr())
}

/// Returns the reason that the policy is told.
const fn tracked<P: Policy>(why: EnqueueReason) -> EnqueueReason {
    match P::EVENTS {
        EventLevel::None => EnqueueReason::Woken,
        EventLevel::Reasons | EventLevel::Departures => why,
    }
}

/// Takes the task of a posted handle.
///
/// # Safety
/// The handle was made by [`posted`] from a task of this type (the promise of `connect`), and is not used again.
unsafe fn handle<P: Policy>(task: *const ()) -> TaskRef<P> {
    // SAFETY: the caller's promise.
    unsafe { Arc::from_raw(task.cast::<Task<P::Inner, P::State>>()) }
}

/// Makes a handle that goes to another CPU.
fn posted<P: Policy>(task: TaskRef<P>, reason: PostReason) -> Posted {
    const {
        assert!(
            align_of::<Task<P::Inner, P::State>>() > Posted::TAG,
            "the lowest bits are free"
        )
    };
    Posted {
        task: Arc::into_raw(task).cast(),
        reason,
    }
}

impl<P: Policy, M: SmpStateSource> BaseScheduler for WorkSharing<P, M> {
    type SchedItem = TaskRef<P>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Self::SchedItem) {
        self.make_ready(task, PostReason::New);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        if self.running.is(task) || self.watched == address(task) {
            return None;
        }
        let removed = self.policy.remove(task)?;
        if self.retained == address(&removed) {
            self.retained = None;
        }
        self.count(self.waiting - 1);
        Some(removed)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        // The slow path is out of line, as in a put.
        if !self.running.is_forgotten() {
            return self.pick_slow();
        }
        let Some(next) = self.policy.dispatch() else {
            return self.find_none_after_put();
        };
        self.running.set_task(&next);
        Some(next)
    }

    #[inline(always)]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // The code that a yield does not need is out of line, and is the last call. So few
        // registers are saved, and the rest is small enough for `axtask` to inline.
        if !self.running.is(&prev) {
            return match preempt {
                true => self.put_unpicked_preempted(prev),
                false => self.put_unpicked(prev),
            };
        }
        if preempt {
            return self.put_preempted(prev);
        }
        if M::PREEMPTED_STAY && prev.stays() {
            prev.set_stays(false);
        }
        self.running.forget();
        self.policy
            .enqueue(prev, tracked::<P>(EnqueueReason::Yielded));
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        if let Some(machine) = M::smp_state().machine() {
            let cpu = (machine.this_cpu)();
            let was_interrupted = self.receive(cpu);
            self.serve(machine, cpu);
            if was_interrupted {
                return false; // no time has passed
            }
            self.expire_retained();
            self.balance_length(machine, cpu);
        }
        self.policy.ticked(current) == Tick::Reschedule
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.policy.set_priority(task, prio)
    }
}
