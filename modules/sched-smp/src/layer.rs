//! [`Balanced`]: a per-CPU scheduler that hands ready tasks to idle CPUs.

use alloc::sync::Arc;
use core::cell::Cell;
use core::marker::PhantomData;
use core::num::NonZeroUsize;
use core::ptr;

use super::shared::{Comes, Machine, Posted, SHARED, SharedSource, SystemShared};
use sched_core::base::BaseScheduler;
use sched_core::event::{Adapter, Policy, Return, Running, TaskRef, Tick, Tracks};
use sched_core::link::Link;
use sched_core::task::Task;

#[cfg(test)]
mod tests;

/// A scheduler that drives a policy on one of several CPUs by the rules of the [module](super). `M` names the state that
/// the CPUs share.
pub struct Balanced<P: Policy, M = SystemShared> {
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
    is_owed: bool,
    /// The request was made while a task ran here (rule 6), and no CPU was asked since none runs. It counts only while the
    /// request is outstanding.
    is_short: bool,
    /// GUEST: the address of the task that was posted here while another ran or waited, until it has run. It is only
    /// compared.
    guest: Option<NonZeroUsize>,
    /// The most ticks for which it remains a guest.
    guest_ticks: u32,
    /// The address of the running task, if its next put or the pick after that matters (WANTED, GUEST). `running` is
    /// ELSEWHERE then, so that the put takes the slow path. It is only compared.
    watched: Option<NonZeroUsize>,
    shared: PhantomData<fn() -> M>,
}

impl<P: Policy, M> Balanced<P, M> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self {
            policy: P::NEW,
            running: Running::ELSEWHERE,
            cpu: None,
            waiting: 0,
            is_idle: false,
            is_owed: false,
            is_short: false,
            guest: None,
            guest_ticks: 0,
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
pub trait OnSeveralCpus {
    /// The scheduler within the layer, on the system's machine.
    type Balanced;

    /// Connects the system's CPUs, which share the work from now on.
    ///
    /// # Safety
    /// As for [`Shared::connect`](super::Shared::connect) of [`SHARED`].
    unsafe fn connect(machine: Machine) {
        // SAFETY: the caller's promise.
        unsafe { SHARED.connect(machine) };
    }
}

impl<P: Policy> OnSeveralCpus for Adapter<P> {
    type Balanced = Balanced<P>;
}

impl<P: Policy, M> Default for Balanced<P, M> {
    fn default() -> Self {
        Self::new()
    }
}

/// The target of a task.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Goes {
    /// Another CPU, whatever it does (rule 7).
    Elsewhere(usize),
    /// Another CPU, which is hungry.
    To(usize),
    /// This CPU, which idles and has been told.
    HereToRun,
    /// This CPU.
    Here,
}

/// Returns true if this task may run on the CPU.
fn may_run<T, S>(machine: &Machine, task: &Task<T, S>, cpu: usize) -> bool {
    let inner = ptr::from_ref(task.inner()).cast();
    // SAFETY: the promise of `connect`, and a reference.
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

impl<P: Policy, M: SharedSource> Balanced<P, M> {
    /// Chooses the target of a task by rules 4 and 7.
    fn goes(&mut self, task: &TaskRef<P>) -> Goes {
        let shared = M::shared();
        let (Some(machine), Some(own)) = (shared.machine(), self.cpu) else {
            return Goes::Here;
        };
        if !may_run(machine, task, own) {
            let allowed = (0..machine.cpus).filter(|&cpu| may_run(machine, task, cpu));
            let fewest = allowed.min_by_key(|&cpu| (!shared.idles(cpu), shared.waiting(cpu)));
            return fewest.map_or(Goes::Here, Goes::Elsewhere);
        }
        if self.is_idle && shared.claims(own) {
            self.is_owed = false;
            // If this CPU makes the call in an interrupt, its idle task picks afterwards.
            if (machine.this_cpu)() != own {
                shared.interrupt(machine, own);
            }
            return Goes::HereToRun;
        }
        let others = each(shared.hungry() & !(1 << own)).filter(|&cpu| shared.idles(cpu));
        let mut wanted = others.filter(|&cpu| may_run(machine, task, cpu));
        match wanted.find(|&cpu| shared.claims(cpu)) {
            Some(cpu) => Goes::To(cpu),
            None => Goes::Here,
        }
    }

    /// Makes a task ready here that is in no queue and on no CPU (rules 4 and 7).
    fn becomes_ready(&mut self, task: TaskRef<P>, comes: Comes) {
        let shared = M::shared();
        match (self.goes(&task), shared.machine()) {
            (Goes::To(cpu), Some(machine)) => {
                shared.post(machine, cpu, posted::<P>(task, comes));
            }
            (Goes::Elsewhere(cpu), Some(machine)) => {
                let posted = posted::<P>(task, comes);
                // SAFETY: its handle is in `posted`, so it is alive and in no queue. Its link is set
                // back before it comes to one, in `take_sent`.
                let link = unsafe { (*posted.task.cast::<Task<P::Inner, P::State>>()).link() };
                shared.send(machine, cpu, posted, |before| link.set(before.cast()));
            }
            (Goes::HereToRun, _) => self.take_in(task, comes),
            _ => self.comes_in(task, comes),
        }
    }

    /// Enqueues a task here; other CPUs may be hungry for it.
    fn comes_in(&mut self, task: TaskRef<P>, comes: Comes) {
        let inner: *const P::Inner = task.inner();
        self.take_in(task, comes);
        let (Some(machine), Some(own)) = (M::shared().machine(), self.cpu) else {
            return;
        };
        // SEEN.
        let others = each(M::shared().hungry() & !(1 << own));
        let mut others = others.filter(|&cpu| M::shared().idles(cpu));
        // SAFETY: the promise of `connect`; the task is in this queue, whose lock is held.
        let may_run = |&cpu: &usize| unsafe { (machine.may_run)(inner.cast(), cpu) };
        match others.find(may_run) {
            Some(hungry) => M::shared().ask(machine, own, hungry),
            None if M::shared().hungry() & !(1 << own) != 0 => self.watch(),
            None => {}
        }
    }

    /// Forces the slow path for the running task's next put, if it was picked, and the pick after that. That is for WANTED,
    /// where other CPUs are hungry and the tasks here may not run there, or for a waiting GUEST.
    fn watch(&mut self) {
        if self.running.is_somebody() {
            self.watched = NonZeroUsize::new(self.running.address().addr());
            self.running = Running::ELSEWHERE;
        } else if self.running.is_forgotten() {
            // This is between a put and its pick, for which `axtask` takes the lock once more.
            self.running = Running::ELSEWHERE;
            self.waiting += 1; // until that pick
        }
    }

    /// Handles a watched running task that gives way. WANTED: if it must stay, or no idle CPU may run it, the next task is
    /// watched. GUEST: the pick looks at the task that it finds.
    fn gives_way(&mut self, task: TaskRef<P>, preempt: bool) {
        self.watched = None;
        let is_wanted = self.looks_if_wanted(&task, preempt);
        let next_is_watched = self.guest.is_some() || !is_wanted && self.idle_others() != 0;
        // As if it had not been watched.
        self.running.picked_somebody(&task);
        self.put_prev_task(task, preempt);
        if next_is_watched {
            self.running = Running::ELSEWHERE;
            self.waiting += 1; // until that pick
        }
    }

    /// Interrupts this CPU as soon as the running task has left, if an idle CPU may run the task, which gives way (WANTED).
    /// Returns true if so.
    fn looks_if_wanted(&self, task: &TaskRef<P>, preempt: bool) -> bool {
        let shared = M::shared();
        let (Some(machine), Some(own)) = (shared.machine(), self.cpu) else {
            return false;
        };
        if M::PREEMPTED_STAY && preempt {
            return false;
        }
        let is_wanted = each(self.idle_others()).any(|cpu| may_run(machine, task, cpu));
        if is_wanted {
            shared.interrupt(machine, own);
        }
        is_wanted
    }

    /// Returns the other CPUs that idle and are hungry (bit mask).
    fn idle_others(&self) -> u64 {
        let shared = M::shared();
        let others = shared.hungry() & !self.cpu.map_or(0, |own| 1 << own);
        let idle = each(others).filter(|&cpu| shared.idles(cpu));
        idle.fold(0, |idle, cpu| idle | 1 << cpu)
    }

    /// Puts the running task back after a preemption.
    #[cold]
    #[inline(never)]
    fn is_preempted(&mut self, task: TaskRef<P>) {
        if M::PREEMPTED_STAY {
            task.set_stays(true);
        }
        self.running.forget();
        self.policy.returned(task, told::<P>(Return::Preempted));
    }

    /// Puts back a task that was not the last pick here. It was blocked or migrates, and is on no CPU. Or it runs without
    /// having been picked, as `main` at first and a migration helper, and is IN FLIGHT.
    #[cold]
    #[inline(never)]
    fn comes_back(&mut self, task: TaskRef<P>) {
        self.comes_from_elsewhere(task, false);
    }

    /// Puts back such a task, if the running task is preempted.
    #[cold]
    #[inline(never)]
    fn comes_back_preempted(&mut self, task: TaskRef<P>) {
        self.comes_from_elsewhere(task, true);
    }

    fn comes_from_elsewhere(&mut self, task: TaskRef<P>, preempt: bool) {
        let current = M::shared().machine().map(|machine| (machine.current)());
        let has_cpu = current == Some(Arc::as_ptr(&task).cast());
        if has_cpu && self.watched == address(&task) {
            return self.gives_way(task, preempt);
        }
        if M::PREEMPTED_STAY {
            task.set_stays(has_cpu && preempt);
        }
        if has_cpu {
            self.looks_if_wanted(&task, preempt);
            self.take_in(task, Comes::Woken);
        } else {
            self.becomes_ready(task, Comes::Woken);
        }
    }

    /// Puts a task into the policy's queue.
    fn take_in(&mut self, task: TaskRef<P>, comes: Comes) {
        match comes {
            Comes::New => self.policy.spawned(task),
            Comes::Woken => self.policy.returned(task, Return::Woken),
            Comes::HandedOver => self.policy.returned(task, Return::HandedOver),
        }
        self.count(self.waiting + 1);
    }

    fn count(&mut self, waiting: u32) {
        self.waiting = waiting;
        if let (Some(cpu), Some(_)) = (self.cpu, M::shared().machine()) {
            M::shared().set_waiting(cpu, waiting);
        }
    }

    /// Enqueues the task that was posted here.
    fn take_post(&mut self, cpu: usize) {
        if let Some(Posted { task, comes }) = M::shared().take_post(cpu) {
            self.is_owed = false;
            // SAFETY: taken once.
            let task = unsafe { handle::<P>(task) };
            if !self.is_idle || self.waiting > 0 {
                self.guest = address(&task);
                self.guest_ticks = GUEST_TICKS + GUEST_TICKS_EACH * self.waiting;
                self.watch();
            }
            self.take_in(task, comes);
        }
    }

    /// Enqueues the tasks that were sent here (rule 7), the last first.
    fn take_sent(&mut self, cpu: usize) {
        let mut sent = M::shared().take_sent(cpu);
        while let Some(Posted { task, comes }) = Posted::of_tagged(sent) {
            // SAFETY: taken once.
            let task = unsafe { handle::<P>(task) };
            // SAFETY: the task is in no queue, and its link is set back here.
            let link = unsafe { task.link() };
            sent = link.get().cast();
            link.set(Link::APART);
            // It has a task to run, and no request is outstanding but for a post on the way.
            if self.is_owed && M::shared().claims(cpu) {
                self.is_owed = false;
            }
            match self.is_idle && self.waiting == 0 {
                true => self.take_in(task, comes), // it runs next
                false => self.comes_in(task, comes),
            }
        }
    }

    /// Takes the posts and requests of other CPUs for this calling CPU. Returns true if they interrupted it.
    fn look(&mut self, cpu: usize) -> bool {
        if self.cpu.replace(cpu).is_none() {
            if let Some(machine) = M::shared().machine() {
                (machine.joins)();
            }
            self.count(self.waiting);
        }
        let was_interrupted = M::shared().was_interrupted(cpu);
        self.take_post(cpu);
        self.take_sent(cpu);
        was_interrupted
    }

    /// Answers all requests of CPUs that are still hungry (rule 2), and looks for other hungry CPUs (rule 5).
    fn serve(&mut self, machine: &Machine, own: usize) {
        let shared = M::shared();
        let hungry = match self.waiting {
            0 => shared.take_askers(own),
            _ => shared.take_askers(own) | shared.hungry(),
        };
        let hungry = hungry & shared.hungry() & !(1 << own);
        let idle = each(hungry).filter(|&cpu| shared.idles(cpu));
        let idle = idle.fold(0, |idle, cpu| idle | 1 << cpu);
        // Idle CPUs come first.
        for cpu in each(idle).chain(each(hungry & !idle)) {
            let is_idle = idle >> cpu & 1 != 0;
            if !is_idle && self.waiting <= shared.waiting(cpu) {
                continue;
            }
            let guest = self.guest.filter(|_| !is_idle);
            let may = |task: &Task<P::Inner, P::State>| {
                let is_guest =
                    guest.is_some() && guest == NonZeroUsize::new(ptr::from_ref(task).addr());
                let stays = M::PREEMPTED_STAY && task.stays();
                !is_guest && !stays && may_run(machine, task, cpu)
            };
            // HUNGRY: no task is dequeued before the request is this CPU's to answer.
            let is_refused = Cell::new(false);
            let claims = || {
                let claimed = shared.claims(cpu);
                is_refused.set(!claimed);
                claimed
            };
            match self.policy.give(&may, &claims) {
                Some(task) => {
                    if self.guest == address(&task) {
                        self.guest = None; // to one that idles
                    }
                    self.count(self.waiting - 1);
                    shared.post(machine, cpu, posted::<P>(task, Comes::HandedOver));
                }
                None if is_refused.get() => {} // another CPU was faster
                None => {
                    if is_idle && self.waiting > 0 {
                        self.watch();
                    }
                    shared.ask_next(machine, cpu);
                }
            }
        }
    }

    /// Handles a pick after a return that finds no task.
    #[cold]
    #[inline(never)]
    fn nobody_after_a_return(&mut self) -> Option<TaskRef<P>> {
        self.running = Running::ELSEWHERE;
        None
    }

    /// Picks without a return of the running task before, or after one of a watched task with a GUEST here.
    #[cold]
    #[inline(never)]
    fn pick_another(&mut self) -> Option<TaskRef<P>> {
        let was_watched = self.watched.take().is_some();
        if P::TRACKS == Tracks::Departures && (was_watched || self.running.is_somebody()) {
            self.policy.left();
        }
        self.running = Running::ELSEWHERE; // there is nobody to watch
        let shared = M::shared();
        let here = shared
            .machine()
            .map(|machine| (machine, (machine.this_cpu)()));
        if let Some((_, cpu)) = here {
            self.look(cpu);
        }
        let next = self.policy.dispatch();
        let was_idle = core::mem::replace(&mut self.is_idle, next.is_none());
        if let Some((_, cpu)) = here
            && was_idle != self.is_idle
        {
            shared.set_idles(cpu, self.is_idle);
        }
        if let Some(task) = &next {
            if self.guest == address(task) {
                self.guest = None;
            }
            self.running.picked(next.as_ref());
            self.count(self.waiting - 1);
            if self.guest.is_some() || self.waiting > 0 && self.idle_others() != 0 {
                self.watch();
            }
            // This CPU was told of the task. So it has withdrawn its request, or another task comes.
            debug_assert!(!was_idle || here.is_none_or(|(_, cpu)| shared.hungry() >> cpu & 1 == 0));
        } else if let Some((machine, cpu)) = here {
            self.starve(machine, cpu);
        }
        next
    }

    /// Asks for a task (rule 1). It asks once, as each CPU with waiting tasks looks for hungry CPUs at its ticks (rule 5).
    fn starve(&mut self, machine: &Machine, cpu: usize) {
        // A CPU that became hungry while it had a task to run has asked no CPU.
        let asks_now = core::mem::take(&mut self.is_short);
        if !core::mem::replace(&mut self.is_owed, true) {
            M::shared().becomes_hungry(cpu);
        } else if !asks_now {
            return;
        }
        M::shared().ask_anybody(machine, cpu);
    }

    /// Compares the queues at a tick that hits a task (rule 6).
    fn even_out(&mut self, machine: &Machine, cpu: usize) {
        let shared = M::shared();
        let others = (0..machine.cpus).filter(|&other| other != cpu);
        let most = others.map(|other| shared.waiting(other)).max().unwrap_or(0);
        let is_short = self.waiting < most && self.guest.is_none();
        if is_short && !self.is_owed {
            self.is_owed = true;
            self.is_short = true;
            shared.becomes_hungry(cpu);
        } else if !is_short && self.is_owed && shared.claims(cpu) {
            self.is_owed = false;
        }
    }

    /// Counts a guest's time at a tick that hits a task (GUEST).
    fn look_after_guest(&mut self) {
        self.guest_ticks = self.guest_ticks.saturating_sub(1);
        if self.guest_ticks == 0 {
            self.guest = None;
        }
    }
}

/// The most ticks for which a task is a GUEST: the first number, and the second for each task that waits when it comes.
/// Every policy but SJF and FIFO has run it by then.
const GUEST_TICKS: u32 = 128;
const GUEST_TICKS_EACH: u32 = 16;

/// Returns the address of a task, for comparisons.
fn address<T, S>(task: &Arc<Task<T, S>>) -> Option<NonZeroUsize> {
    NonZeroUsize::new(Arc::as_ptr(task).addr())
}

/// Returns the reason that the policy is told.
const fn told<P: Policy>(why: Return) -> Return {
    match P::TRACKS {
        Tracks::Nothing => Return::Woken,
        Tracks::Returns | Tracks::Departures => why,
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
fn posted<P: Policy>(task: TaskRef<P>, comes: Comes) -> Posted {
    const {
        assert!(
            align_of::<Task<P::Inner, P::State>>() > Posted::TAG,
            "the lowest bits are free"
        )
    };
    Posted {
        task: Arc::into_raw(task).cast(),
        comes,
    }
}

impl<P: Policy, M: SharedSource> BaseScheduler for Balanced<P, M> {
    type SchedItem = TaskRef<P>;

    fn init(&mut self) {}

    fn add_task(&mut self, task: Self::SchedItem) {
        self.becomes_ready(task, Comes::New);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        if self.running.is(task) || self.watched == address(task) {
            return None;
        }
        let removed = self.policy.remove(task)?;
        if self.guest == address(&removed) {
            self.guest = None;
        }
        self.count(self.waiting - 1);
        Some(removed)
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        // As in a put.
        if !self.running.is_forgotten() {
            return self.pick_another();
        }
        let Some(next) = self.policy.dispatch() else {
            return self.nobody_after_a_return();
        };
        self.running.picked_somebody(&next);
        Some(next)
    }

    #[inline(always)]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        // The code that a yield does not need is out of line and the last call. So few registers are saved, and the rest
        // is small enough for `axtask` to inline.
        if !self.running.is(&prev) {
            return match preempt {
                true => self.comes_back_preempted(prev),
                false => self.comes_back(prev),
            };
        }
        if preempt {
            return self.is_preempted(prev);
        }
        if M::PREEMPTED_STAY && prev.stays() {
            prev.set_stays(false);
        }
        self.running.forget();
        self.policy.returned(prev, told::<P>(Return::Yielded));
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        if let Some(machine) = M::shared().machine() {
            let cpu = (machine.this_cpu)();
            let was_interrupted = self.look(cpu);
            self.serve(machine, cpu);
            if was_interrupted {
                return false; // no time has passed
            }
            self.look_after_guest();
            self.even_out(machine, cpu);
        }
        self.policy.ticked(current) == Tick::Reschedule
    }

    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool {
        self.policy.set_priority(task, prio)
    }
}
