//! [`DelegatedScheduler`]: the scheduler of one CPU.
//!
//! A task outside all enclaves has no link, and goes straight to the [round robin](crate::outside).
//! So does a pick, unless `attention` says otherwise. All else is out of line.
//!
//! HELD: on several CPUs the scheduler of the tasks outside shares them among CPUs. It has to see a put
//! of its running task and the pick after it together. So if a delegated task may run between the two,
//! that put waits for the pick. Until then, that scheduler believes that its task still runs.

use alloc::sync::Arc;
use core::marker::PhantomData;
use core::ptr;
use core::sync::atomic::{Ordering::*, fence};

use sched_core::base::BaseScheduler;
use sched_core::clock::{Clock, CpuCounter};
use sched_core::event::Adapter;
use sched_smp::{Machine, SmpStateSource, SmpVariant, WorkSharing};

use crate::decision::{Decision, NextTask};
use crate::enclave::{End, end, kick, tell};
use crate::host::AgentPolicy;
use crate::message::{Kind, Message};
use crate::outside::{Outside, OutsideScheduler};
use crate::ring::Words;
use crate::status::{State, Status};
use crate::table::{
    CpuWords, EnclaveWords, FAST, PLAIN, Pinned, QUIET, Slot, SystemTable, TableSource, WAKES,
    urgent,
};
use crate::task::{AGENT, DEPARTS, DelegatedTask, MARKS};

type Handle<T, M> = Arc<DelegatedTask<T, M>>;

/// The delegated scheduler of one CPU; `C` is where it reads the time, `M` where it finds its table.
pub type DelegatedScheduler<T, C = CpuCounter, M = SystemTable> =
    Delegated<T, C, M, Adapter<Outside<T, M>>>;

/// The same on one of several CPUs.
pub type SmpDelegatedScheduler<T, C = CpuCounter, M = SystemTable> =
    Delegated<T, C, M, WorkSharing<Outside<T, M>, <M as TableSource>::Smp>>;

/// The things that a pick looks at first.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Attention {
    /// The tasks outside. If there are none, the pick looks at all else.
    Outside = 0,
    /// Everything, since the last pick on this CPU of an enclave found no task.
    Idle = 1,
    /// Everything, since a delegated task, an agent or another CPU may have changed something.
    All = 2,
}

/// A scheduler around one for the tasks outside all enclaves.
// The field that a pick reads first is first. With this alignment the compiler also puts the scheduler first
// in the run queue of `axtask`.
#[repr(C, align(16))]
pub struct Delegated<T, C, M: TableSource, S> {
    /// The things that the next pick looks at first.
    attention: Attention,
    /// The machine has told which CPU this is.
    is_connected: bool,
    /// A task outside is next, if one is ready (rule 7).
    owes_outside: bool,
    /// The number of times in a row that the agent went before a decision (rule 6).
    agent_turns: u8,
    /// The CPU, or 0 until it is known.
    cpu: u8,
    /// The first pick or tick has found the CPU.
    is_known: bool,
    /// The link of the running delegated task or agent; null for any other. [`RETURNED`] once it was put
    /// back, until the next pick.
    current: *mut Slot,
    /// The time at which the running delegated task was picked.
    began: u64,
    /// The task of the agent, while it does not run.
    agent: Option<Handle<T, M>>,
    outside: S,
    /// HELD: the running task outside, which was put back, and whether it was preempted.
    held: Option<(Handle<T, M>, bool)>,
    /// The slot of the task whose stack this CPU may still use, or null.
    in_flight: *mut Slot,
    /// The task that ran here and has left its enclave, while this CPU may still use its stack.
    leaving: Option<Handle<T, M>>,
    /// The words of the CPU; null until it is known.
    own: *const CpuWords,
    types: PhantomData<fn() -> C>,
}

// SAFETY: the pointers lead to slots and words of the table, which are never freed and are shared by all CPUs.
unsafe impl<T: Send + Sync, C, M: TableSource, S: Send> Send for Delegated<T, C, M, S> {}

/// Stands for the link of the running task, which was put back since the last pick.
const RETURNED: *mut Slot = ptr::without_provenance_mut(DEPARTS);

/// The agent goes before waiting decisions at most this often in a row (rule 6).
const AGENT_TURNS: u8 = 2;
/// A pick asks the fast path at most this often. It stops before that if the first task that was
/// refused comes again.
const FAST_CHOICES: usize = 64;

impl<T, C, M: TableSource, S: OutsideScheduler<T, M>> Delegated<T, C, M, S> {
    /// Creates an empty scheduler.
    pub const fn new() -> Self {
        Self {
            attention: Attention::Outside,
            is_connected: false,
            owes_outside: false,
            agent_turns: 0,
            cpu: 0,
            is_known: false,
            current: ptr::null_mut(),
            began: 0,
            agent: None,
            outside: S::NEW,
            held: None,
            in_flight: ptr::null_mut(),
            leaving: None,
            own: ptr::null(),
            types: PhantomData,
        }
    }

    /// Returns the name that ArceOS prints at boot.
    pub const fn scheduler_name() -> &'static str {
        "DELEGATED"
    }
}

impl<T, C, M: TableSource, S: OutsideScheduler<T, M>> Default for Delegated<T, C, M, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, C, M: TableSource> SmpVariant for DelegatedScheduler<T, C, M> {
    type Smp = SmpDelegatedScheduler<T, C, M>;
}

/// Returns the machine, if there are several CPUs and they are connected.
fn machine<M: TableSource>() -> Option<&'static Machine> {
    M::smp_state().machine()
}

/// Returns true if this task runs on the calling CPU.
fn has_cpu<T, M: TableSource>(task: &Handle<T, M>) -> bool {
    let current = machine::<M>().map(|machine| (machine.current)());
    current == Some(Arc::as_ptr(task).cast())
}

/// Returns the slot of a link that is neither null nor marked as an agent's.
#[inline(always)]
fn slot_of(link: *mut Slot) -> &'static Slot {
    // SAFETY: such a link leads to a slot of the table, which is never freed.
    unsafe { &*link.map_addr(|at| at & !MARKS) }
}

impl<T, C: Clock, M: TableSource, S: OutsideScheduler<T, M>> Delegated<T, C, M, S> {
    /// Returns the calling CPU, in a pick or a tick. CPUs that are not connected do not know their
    /// number. Then the first that calls is CPU 0, and the others delegate nothing.
    #[inline(always)]
    fn here(&mut self) -> Option<usize> {
        match self.is_known && (self.is_connected || !S::SEVERAL) {
            true => Some(self.cpu()),
            false => self.find_here(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_here(&mut self) -> Option<usize> {
        let table = M::table();
        if let Some(machine) = machine::<M>().filter(|_| S::SEVERAL) {
            self.cpu = (machine.this_cpu)() as u8;
            (self.is_known, self.is_connected) = (true, true);
        } else {
            let own = ptr::from_ref(self).addr();
            let first = table.first.compare_exchange(0, own, Relaxed, Relaxed);
            let is_first = first.map_or_else(|first| first == own, |_| true);
            self.is_known = is_first;
        }
        if !self.is_known {
            return None;
        }
        let cpu = self.cpu();
        self.own = &raw const table.cpus[cpu];
        table.cpus[cpu].has_joined.store(true, Release);
        Some(cpu)
    }

    /// Returns this CPU, which is known.
    #[inline(always)]
    fn cpu(&self) -> usize {
        match S::SEVERAL {
            true => usize::from(self.cpu) % sched_smp::MAX_CPUS,
            false => 0,
        }
    }

    #[inline(always)]
    fn words(&self) -> &'static CpuWords {
        &M::table().cpus[self.cpu()]
    }

    /// Returns the words of this CPU, which is known. A pointer that is read is cheaper than the address of the
    /// table, which aarch64 and riscv64 build each time.
    #[inline(always)]
    fn own_words(&self) -> &'static CpuWords {
        debug_assert!(!self.own.is_null(), "a pick or a tick came before");
        // SAFETY: it is not null once the CPU is known, and the words are in the table.
        unsafe { &*self.own }
    }

    /// Sends a message about a task that has this status, and wakes the agent if it must.
    #[inline(never)]
    fn post(
        &self,
        enclave: &'static EnclaveWords,
        kind: Kind,
        slot: &Slot,
        status: Status,
        run: u64,
    ) {
        let route = enclave.route.load(Acquire);
        if route & kind.bit() == 0 {
            return; // not sent, or the enclave has ended
        }
        if route & FAST != 0 {
            return self.post_fast(enclave, kind, slot, status, run);
        }
        let wakes = route >> WAKES & kind.bit() != 0;
        let message = slot.words_with(kind, status, status.state_bits(), run);
        self.push(enclave, message);
        if S::SEVERAL || wakes {
            return tell::<M>(enclave, wakes);
        }
        self.words().bell.ring_here();
    }

    /// Writes a message into the ring of this CPU.
    #[inline(always)]
    fn push(&self, enclave: &EnclaveWords, message: Words) {
        let ring = &enclave.messages[self.cpu()];
        if !ring.push_below_limit(message) && !ring.push(message) {
            enclave.rediscover();
        }
    }

    /// Calls the policy on the fast path.
    #[inline(always)]
    fn with_fast<R>(
        enclave: &'static EnclaveWords,
        call: impl FnOnce(&mut dyn AgentPolicy) -> R,
    ) -> Option<R> {
        if S::SEVERAL {
            return enclave
                .fast
                .lock()
                .as_deref_mut()
                .map(|policy| call(policy));
        }
        Self::fast(enclave).map(call)
    }

    /// Returns the policy on the fast path, on the only CPU.
    #[inline(always)]
    fn fast<'a>(enclave: &'static EnclaveWords) -> Option<&'a mut dyn AgentPolicy> {
        debug_assert!(!S::SEVERAL, "others may use it");
        // SAFETY: on one CPU, scheduler calls do not interrupt each other. A task that replaces the
        // policy first takes this path out of the route.
        let policy = unsafe { &mut *enclave.fast.as_mut_ptr() };
        policy.as_deref_mut().map(|policy| policy as _)
    }

    /// Tells the policy on the fast path, on the only CPU.
    #[inline(always)]
    fn tell_fast(enclave: &'static EnclaveWords, message: Words) {
        if let Some(policy) = Self::fast(enclave) {
            policy.told(Message::from_words(message));
        }
    }

    /// Tells the policy on the fast path, and interrupts a CPU that may run the task.
    #[inline(never)]
    fn post_fast(
        &self,
        enclave: &'static EnclaveWords,
        kind: Kind,
        slot: &Slot,
        status: Status,
        run: u64,
    ) {
        let message = slot.words_with(kind, status, status.state_bits(), run);
        if !S::SEVERAL {
            return Self::tell_fast(enclave, message);
        }
        let seq = status.seq();
        Self::with_fast(enclave, |policy| {
            if slot.told_seq.swap(seq, Relaxed) != seq || kind == Kind::TICK {
                policy.told(Message::from_words(message));
            }
        });
        if kind.is_ready() && kind != Kind::AFFINITY {
            self.kick_free(enclave);
        }
    }

    /// Makes one CPU that runs none of the enclave's tasks look at its words: an idle one if there is any.
    /// The calling CPU is the last choice. If this is its queue, its next pick looks.
    fn kick_free(&self, enclave: &'static EnclaveWords) {
        fence(SeqCst); // a CPU that becomes free sees the task, or is seen
        let this_cpu = machine::<M>().map_or(0, |machine| (machine.this_cpu)());
        let is_free = |cpu: &usize| {
            let words = &M::table().cpus[*cpu];
            // One that is kicked already looks for a task of its own.
            words.decisions.is_free() && !words.kicked.load(Relaxed)
        };
        let looks = |cpu: &usize| *cpu == this_cpu && *cpu == self.cpu();
        let place = |cpu: &usize| match *cpu == this_cpu {
            true => 2,
            false => u8::from(!M::smp_state().is_idle(*cpu)),
        };
        let free = enclave.each_cpu().filter(|cpu| is_free(cpu) && !looks(cpu));
        if let Some(cpu) = free.min_by_key(place) {
            kick::<M>(cpu);
        }
    }

    /// Ends the flight of the task that this CPU put back before its last pick. It is called only by
    /// this CPU: in a pick, in a tick, or when its running task comes back. Another CPU that puts a
    /// task into this queue proves nothing.
    #[inline(always)]
    fn settle(&mut self) {
        if S::SEVERAL && (!self.in_flight.is_null() || self.leaving.is_some()) {
            self.settle_slow();
        }
    }

    #[inline(never)]
    fn settle_slow(&mut self) {
        if let Some(task) = self.leaving.take() {
            self.outside.add_task(task);
        }
        let link = core::mem::replace(&mut self.in_flight, ptr::null_mut());
        if link.is_null() {
            return;
        }
        let slot = slot_of(link);
        let status = slot.status();
        if status.state() != State::InFlight || status.cpu() != self.cpu() {
            return; // this CPU has picked it again
        }
        let landed = status.with(State::Ready, status.cpu());
        slot.word.set(landed);
        if !slot.enclave().is_active() {
            self.release_ready(slot, landed);
        }
        self.kick_waiters(slot);
    }

    /// Interrupts the CPUs that wait for the end of a flight, which has ended.
    #[inline(always)]
    fn kick_waiters(&self, slot: &Slot) {
        let mut cpus = slot.word.take_waiters();
        while cpus != 0 {
            kick::<M>(cpus.trailing_zeros() as usize);
            cpus &= cpus - 1;
        }
    }

    /// Makes a ready task of an enclave that has ended a task outside, if no other CPU does. The caller has
    /// read `status` before it looked at the enclave. If another task has the slot by now, the word has
    /// another generation, and nothing changes.
    fn release_ready(&mut self, slot: &'static Slot, status: Status) {
        if status.state() == State::Ready
            && slot.word.change(status, status.with(State::Joining, 0))
        {
            // SAFETY: SLOT. This call has changed the word, so the handle is its own.
            let task: Handle<T, M> = unsafe { Arc::from_raw(slot.handle.load(Relaxed).cast()) };
            M::table().free_slot(slot);
            self.put_outside(task, false, false);
        }
    }

    /// Puts a task into the queue of those outside that was in an enclave. `has_run` says that this CPU
    /// still uses its stack.
    fn put_outside(&mut self, task: Handle<T, M>, preempt: bool, has_run: bool) {
        task.policy_state().set_link(ptr::null_mut());
        let stays = M::Smp::PREEMPTED_STAY && preempt;
        match has_run {
            false => self.outside.add_task(task),
            true if !S::SEVERAL || stays => self.outside.put_prev_task(task, preempt),
            true => {
                self.settle();
                self.leaving = Some(task);
                self.current = RETURNED;
                self.own = self.words(); // before the first pick it is not known
                self.attention = Attention::All;
            }
        }
    }

    /// Puts back a task outside on one of several CPUs, while a delegated task or an agent runs or may
    /// run next (HELD).
    #[inline(never)]
    fn put_plain(&mut self, task: Handle<T, M>, preempt: bool) {
        let stays = M::Smp::PREEMPTED_STAY && preempt;
        match has_cpu::<T, M>(&task) {
            false => {
                // It was blocked. The scheduler outside may still take it for its running task.
                task.policy_state().slice().renew();
                self.outside.add_task(task);
            }
            true if stays || self.held.is_some() => self.outside.put_prev_task(task, preempt),
            true => self.held = Some((task, preempt)),
        }
    }

    /// Returns true if a task outside waits here.
    #[inline(always)]
    fn outside_waits(&self) -> bool {
        self.outside.policy().has_ready() || S::SEVERAL && self.held.is_some()
    }

    /// Tells the other CPUs if this one runs no task. The scheduler of the tasks outside knows only of
    /// those.
    #[inline(always)]
    fn publish_idle(&self, is_idle: bool) {
        if self.is_connected {
            M::smp_state().set_idle(self.cpu(), is_idle);
        }
    }

    #[inline(always)]
    fn sweep_if_asked(&mut self, words: &CpuWords) {
        if words.urgent.load(Relaxed) & urgent::SWEEP != 0 {
            words.urgent.fetch_and(!urgent::SWEEP, AcqRel);
            self.sweep();
        }
    }

    /// Makes all ready tasks of ended enclaves tasks outside. One that has to stay here remains, and
    /// runs next ([`pick_orphan`](Self::pick_orphan)).
    #[cold]
    #[inline(never)]
    fn sweep(&mut self) {
        for slot in M::table().used_slots() {
            let status = slot.status();
            if status.is_ready() && !slot.enclave().is_active() {
                self.release_ready(slot, status);
            }
        }
        if M::Smp::PREEMPTED_STAY && self.orphan().is_some() {
            self.words().urgent.fetch_or(urgent::SWEEP, Relaxed);
        }
    }

    /// Returns a task of an ended enclave that has to stay here.
    fn orphan(&self) -> Option<&'static Slot> {
        M::table().used_slots().iter().find(|slot| {
            let status = slot.status();
            let stays_here = status.state() == State::Stays && status.cpu() == self.cpu();
            stays_here && !slot.enclave().is_active()
        })
    }

    /// Picks a task of an ended enclave that has to stay here. The scheduler of the tasks outside takes
    /// it from its next put on.
    #[cold]
    #[inline(never)]
    fn pick_orphan(&mut self) -> Option<Handle<T, M>> {
        let slot = self.orphan()?;
        // SAFETY: SLOT. Only this CPU takes a task that has to stay here.
        let task: Handle<T, M> = unsafe { Arc::from_raw(slot.handle.load(Relaxed).cast()) };
        task.policy_state().set_link(ptr::null_mut());
        task.policy_state().slice().renew();
        M::table().free_slot(slot);
        self.attention = Attention::All;
        Some(task)
    }

    /// Puts back a task that has a link.
    #[inline(never)]
    fn put_linked(&mut self, task: Handle<T, M>, preempt: bool) {
        let link = task.policy_state().link();
        let is_rare = preempt && (!S::SEVERAL || link.addr() & MARKS != 0);
        if is_rare || !ptr::eq(link, self.current) {
            return self.put_rare(task, preempt);
        }
        if S::SEVERAL && link.addr() & MARKS == 0 && !self.is_running_here(slot_of(link).status()) {
            return self.put_rare(task, preempt);
        }
        self.settle(); // the running task comes back, so this CPU calls
        self.current = RETURNED;
        if link.addr() & MARKS != 0 {
            if S::SEVERAL && self.words().agent() != link.addr() {
                return self.put_rare(task, preempt);
            }
            debug_assert!(self.agent.is_none(), "the agent that waits runs");
            // SAFETY: it was none, so nothing is dropped.
            return unsafe { ptr::write(&raw mut self.agent, Some(task)) };
        }
        let slot = slot_of(link);
        let enclave = slot.enclave();
        let route = enclave.route.load(Acquire);
        if S::SEVERAL || route & PLAIN == 0 {
            if !S::SEVERAL && route & (FAST | QUIET) == FAST | QUIET {
                let (status, run) = self.make_ready(slot, task, State::Ready);
                let message = slot.words_with(Kind::YIELDED, status, State::Ready as u8, run);
                return Self::tell_fast(enclave, message);
            }
            return self.put_returned(task, preempt);
        }
        let (status, run) = self.make_ready(slot, task, State::Ready);
        let message = slot.words_with(Kind::YIELDED, status, State::Ready as u8, run);
        if !enclave.messages[0].push_below_limit(message) {
            return self.push_here(enclave, message[0], message[1]);
        }
        self.words().bell.ring_here();
    }

    /// Returns true if a task that is put back ran on this CPU until now. `current` may also be a task that has
    /// left this CPU since its last pick, by a helper, and that another CPU puts back into this queue.
    #[inline(always)]
    fn is_running_here(&self, status: Status) -> bool {
        status.state() == State::Running && status.cpu() == self.cpu()
    }

    /// Writes a message into the ring, and tells that it waits. The CPU is the agent's, and the only one.
    // The words of the message fit into registers, and an array does not.
    #[inline(never)]
    fn push_here(&self, enclave: &EnclaveWords, event: u64, run: u64) {
        self.push(enclave, [event, run]);
        self.words().bell.ring_here();
    }

    /// Makes the task that ran here until now ready. Returns its new status and its run time.
    #[inline(always)]
    fn make_ready(&mut self, slot: &Slot, task: Handle<T, M>, state: State) -> (Status, u64) {
        let now = C::now().0;
        let run = (slot.run.load(Relaxed)).wrapping_add(now.wrapping_sub(self.began));
        slot.run.store(run, Relaxed);
        let status = slot.status().returned(state);
        // SLOT: the slot has the address since the task came first.
        debug_assert!(ptr::eq(
            slot.handle.load(Relaxed),
            Arc::as_ptr(&task).cast()
        ));
        core::mem::forget(task);
        slot.since.store(now, Relaxed);
        slot.word.set(status);
        (status, run)
    }

    /// Puts back the task of an enclave that ran here until now.
    #[inline(never)]
    fn put_returned(&mut self, task: Handle<T, M>, preempt: bool) {
        let link = task.policy_state().link();
        let slot = slot_of(link);
        let enclave = slot.enclave();
        let stays = S::SEVERAL && M::Smp::PREEMPTED_STAY && preempt;
        if !enclave.is_active() && (!S::SEVERAL || stays) {
            M::table().free_slot(slot);
            return self.put_outside(task, preempt, true);
        } // otherwise it is in flight first
        let state = match preempt {
            _ if !S::SEVERAL => State::Ready,
            true if M::Smp::PREEMPTED_STAY => State::Stays,
            _ => State::InFlight,
        };
        let (status, run) = self.make_ready(slot, task, state);
        if S::SEVERAL && state == State::InFlight {
            self.in_flight = link;
        }
        let kind = match preempt {
            true => Kind::PREEMPTED,
            false => Kind::YIELDED,
        };
        self.post(enclave, kind, slot, status, run);
        self.note_end(enclave);
    }

    /// Looks for the tasks of an enclave that ended while a task was put back.
    fn note_end(&self, enclave: &EnclaveWords) {
        fence(SeqCst);
        if !enclave.is_active() {
            self.words().urgent.fetch_or(urgent::SWEEP, Relaxed);
        }
    }

    /// Puts back a task that has a link and is not the running one of an enclave.
    #[inline(never)]
    fn put_rare(&mut self, task: Handle<T, M>, preempt: bool) {
        let link = task.policy_state().link();
        if link.addr() & AGENT != 0 {
            return self.put_agent(task, preempt);
        }
        if !self.is_known {
            return self.outside.put_prev_task(task, preempt); // no CPU of an enclave
        }
        let slot = slot_of(link);
        let enclave = slot.enclave();
        if ptr::eq(self.current, ptr::from_ref(slot))
            && (!S::SEVERAL || self.is_running_here(slot.status()))
        {
            self.settle();
            self.current = RETURNED;
            if link.addr() & DEPARTS == 0 {
                return self.put_returned(task, preempt);
            }
        }
        let status = slot.status();
        let has_run = match S::SEVERAL {
            true => has_cpu::<T, M>(&task),
            false => matches!(status.state(), State::Joining | State::Running),
        };
        if !enclave.is_active() {
            M::table().free_slot(slot);
            return self.put_outside(task, preempt, has_run);
        }
        if link.addr() & DEPARTS != 0 {
            self.depart(slot);
            return self.put_outside(task, preempt, has_run);
        }
        let cpus = enclave.cpus.load(Relaxed);
        if S::SEVERAL && M::Smp::PREEMPTED_STAY && preempt && cpus >> self.cpu() & 1 == 0 {
            // It has to stay on a CPU outside the enclave, and joins later.
            return self.outside.put_prev_task(task, preempt);
        }
        let (kind, state) = match status.state() {
            State::Joining if S::SEVERAL && has_run => {
                // It ran as a task outside, and is in flight until the next call after the pick.
                self.settle();
                self.current = RETURNED;
                self.owes_outside = true;
                let stays = preempt && M::Smp::PREEMPTED_STAY;
                (
                    Kind::NEW,
                    if stays { State::Stays } else { State::InFlight },
                )
            }
            State::Joining => (Kind::NEW, State::Ready),
            _ => (Kind::WOKEN, State::Ready),
        };
        let status = status.next(state, self.cpu());
        slot.handle
            .store(Arc::into_raw(task).cast_mut().cast(), Relaxed);
        slot.since.store(C::now().0, Relaxed);
        slot.word.set(status);
        if S::SEVERAL && state == State::InFlight {
            self.in_flight = link;
        }
        self.attention = Attention::All;
        self.post(enclave, kind, slot, status, slot.run.load(Relaxed));
        self.note_end(enclave);
    }

    /// Puts back an agent.
    fn put_agent(&mut self, task: Handle<T, M>, preempt: bool) {
        let link = task.policy_state().link();
        // An agent that yielded has been forgotten as the running task. RETURNED also stands for another
        // task that was put back. Then another CPU wakes the agent before this one picks.
        let is_own = S::SEVERAL && has_cpu(&task);
        let has_yielded = ptr::eq(self.current, RETURNED) && !preempt && is_own;
        let is_preempted = ptr::eq(link, self.current);
        if is_preempted {
            self.settle();
            self.current = RETURNED;
        }
        if self.words().agent() != link.addr() || !self.is_known {
            if preempt {
                task.policy_state().demote();
            }
            let has_run = match S::SEVERAL {
                true => has_cpu::<T, M>(&task),
                false => is_preempted,
            };
            return self.put_outside(task, preempt, has_run);
        }
        if !has_yielded {
            self.words().urgent.fetch_or(urgent::AGENT, Relaxed);
        }
        self.attention = Attention::All;
        if let Some(replaced) = self.agent.replace(task) {
            self.put_outside(replaced, false, false); // its enclaves have ended, or it was replaced
        }
    }

    /// Handles the running task, which has left without being put back. Returns true if it was one
    /// outside, or if there was none.
    #[inline(never)]
    fn note_departure(&mut self) -> bool {
        let current = core::mem::replace(&mut self.current, ptr::null_mut());
        if current.is_null() {
            return true;
        }
        if current.addr() & AGENT != 0 {
            return false;
        }
        let slot = slot_of(current);
        let status = slot.status();
        if self.is_running_here(status) {
            let run = slot.run.load(Relaxed) + C::now().0.wrapping_sub(self.began);
            slot.run.store(run, Relaxed);
            let status = status.next(State::Blocked, status.cpu());
            slot.word.set(status);
            self.post(slot.enclave(), Kind::BLOCKED, slot, status, run);
        } // otherwise it has migrated
        false
    }

    /// Picks while there is something to look at.
    #[inline(never)]
    fn pick_slow(&mut self) -> Option<Handle<T, M>> {
        if !ptr::eq(self.current, RETURNED) {
            return self.pick_rare();
        }
        let words = self.own_words(); // a delegated task or an agent ran here
        if words.urgent.load(Relaxed) | u8::from(self.outside_waits()) != 0 {
            return self.pick_rare();
        }
        let next = NextTask(words.next.load(Relaxed));
        if let Some(task) = next.task() {
            let slot = &M::table().slots[task.index()];
            let status = slot.status();
            if !S::SEVERAL && next.is_ready_alone(status) && words.has(slot) {
                words.next.store(NextTask::NONE.0, Relaxed);
                slot.word.set(status.run_again());
                return Some(self.begin(slot, words));
            }
            return self.pick_next_slow(words);
        }
        if let Some(position) = words.decisions.first_position() {
            if S::SEVERAL {
                if let Some(decision) = words.decisions.first() {
                    return match self.pick_decision(words, decision) {
                        None => self.pick_outside(words),
                        task => task,
                    };
                }
            } else if let Some(decision) = words.decisions.get_alone(position) {
                let slot = &M::table().slots[Decision(decision).task().index()];
                let status = slot.status();
                if Decision(decision).allows_alone(status) && words.has(slot) {
                    words.decisions.take_alone(position);
                    slot.word.set(status.run_again());
                    return Some(self.begin(slot, words));
                }
            }
        } else if words.bell.has_rung() {
            return self.pick_told(words);
        } else if !S::SEVERAL
            && let Some(enclave) = words.enclave()
            && enclave.route.load(Relaxed) & FAST != 0
        {
            return self.pick_fast(enclave);
        }
        self.pick_last(words)
    }

    /// Picks the agent, for which a message waits.
    #[inline(always)]
    fn pick_told(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        if S::SEVERAL {
            return match self.pick_agent(words, 0) {
                None => self.pick_last(words),
                agent => agent,
            };
        }
        let Some(agent) = self.agent.take() else {
            if words.agent() == 0 {
                words.bell.silence_here(); // the message was for one that has ended
            }
            return self.pick_last(words);
        };
        words.bell.silence_here();
        self.current = agent.policy_state().link();
        Some(agent)
    }

    /// Picks the task that the fast path chooses.
    #[inline(never)]
    fn pick_fast(&mut self, enclave: &'static EnclaveWords) -> Option<Handle<T, M>> {
        let words = self.words();
        if !enclave.has_rare.load(Relaxed)
            && let Some(Some(task)) = Self::with_fast(enclave, |policy| policy.choose(0))
        {
            let slot = &M::table().slots[task.index()];
            let status = slot.status();
            if status.is_ready_alone(task) && words.has(slot) {
                slot.word.set(status.run_again());
                return Some(self.begin(slot, words));
            }
        }
        self.pick_last(words)
    }

    /// Picks if neither is next: a decision of the agent here, nor the agent.
    #[inline(never)]
    fn pick_last(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        match self.pick_delegated(words) {
            None => self.pick_outside(words),
            task => task,
        }
    }

    /// Picks the task of the decision of the agent here. If that is refused, the agent runs again.
    #[inline(never)]
    fn pick_next_slow(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        let next = NextTask(words.next.swap(NextTask::NONE.0, Relaxed));
        let Some(task) = next.task() else {
            return self.pick_last(words);
        };
        let decision = Decision::any(task);
        let slot = &M::table().slots[task.index()];
        loop {
            let status = slot.status();
            if S::SEVERAL && status.state() == State::InFlight && status.cpu() != self.cpu() {
                if !slot.word.await_landing(self.cpu(), status) {
                    continue;
                }
                words.next.store(NextTask::of(task).0, Relaxed);
                kick::<M>(status.cpu()); // its next scheduler call ends the flight
                return self.pick_outside(words);
            }
            if decision.allows(status) && words.has(slot) && self.claim(slot, status) {
                if !S::SEVERAL || self.may_run_here(slot, status) {
                    return Some(self.begin(slot, words));
                }
                self.refuse_cpu(slot, status);
            }
            words.urgent.fetch_or(urgent::AGENT, Relaxed);
            return self.pick_last(words);
        }
    }

    /// Picks after any other event than the return of a delegated task or an agent.
    // As it is cold, a pick of a task outside does not jump over the call.
    #[cold]
    #[inline(never)]
    fn pick_rare(&mut self) -> Option<Handle<T, M>> {
        let has_returned = ptr::eq(self.current, RETURNED);
        if has_returned {
            self.current = ptr::null_mut();
        }
        if self.here().is_none() {
            return self.outside.pick_next_task();
        }
        let words = self.own_words();
        let mut was_outside = false;
        if !has_returned {
            self.settle();
            was_outside = self.note_departure();
        }
        words.attention.store(false, Relaxed);
        words.kicked.swap(false, AcqRel);
        self.sweep_if_asked(words);
        if self.agent.is_none() && words.urgent.load(Relaxed) & urgent::AGENT != 0 {
            // None waits that could be STALE. One that is woken or preempted sets the bit again.
            words.urgent.fetch_and(!urgent::AGENT, AcqRel);
        }
        if M::Smp::PREEMPTED_STAY
            && words.urgent.load(Relaxed) & urgent::SWEEP != 0
            && let Some(task) = self.pick_orphan()
        {
            return Some(task);
        }
        if self.owes_outside && self.outside_waits() {
            self.owes_outside = false;
            self.attention = Attention::All; // HELD: a delegated task may run next
            return self.take_outside();
        }
        match self.pick_delegated(words) {
            None => self.pick_outside(words),
            task => {
                self.attention = Attention::All;
                if !S::SEVERAL && was_outside {
                    self.forget_outside();
                }
                task
            }
        }
    }

    /// Picks on a CPU that had no task. A task that another CPU has sent comes first.
    #[inline(never)]
    fn pick_idle(&mut self) -> Option<Handle<T, M>> {
        if M::smp_state().was_interrupted(self.cpu())
            && let Some(task) = self.pick_outside(self.own_words())
        {
            return Some(task);
        }
        self.pick_rare()
    }

    /// Picks a task outside, or none.
    #[inline(never)]
    fn pick_outside(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        self.current = ptr::null_mut();
        let is_flying = S::SEVERAL && (!self.in_flight.is_null() || self.leaving.is_some());
        self.attention = match is_flying {
            true => Attention::All,
            false => Attention::Outside,
        };
        let task = match self.take_outside() {
            None if self.watch(words) => self.outside.pick_next_task(),
            task => task,
        };
        if S::SEVERAL && !is_flying && task.is_none() && words.enclave().is_some() {
            self.attention = Attention::Idle;
        }
        task
    }

    /// Takes a task outside. Its scheduler first gets the task that is HELD.
    fn take_outside(&mut self) -> Option<Handle<T, M>> {
        if let Some((task, preempt)) = self.held.take() {
            self.outside.put_prev_task(task, preempt);
        }
        self.outside.pick_next_task()
    }

    /// Tells the scheduler of the tasks outside that its running task has left, if it has.
    fn forget_outside(&mut self) {
        if let Some(first) = self.outside.pick_next_task() {
            self.outside.put_prev_task(first, true); // it stays the first
        }
    }

    /// Picks the agent or the task of a decision.
    fn pick_delegated(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        self.owes_outside = true;
        let agent_is_ready = words.urgent.load(Relaxed) != 0 && self.agent.is_some();
        let next = NextTask(words.next.load(Relaxed)).task();
        let first = match next {
            None => words.decisions.first(),
            Some(next) => Some(Decision::any(next).0),
        };
        let Some(decision) = first else {
            if agent_is_ready || words.bell.has_rung() && self.agent.is_some() {
                return self.pick_agent(words, words.urgent.load(Relaxed));
            }
            return self.find_no_decision(words);
        };
        if agent_is_ready && self.agent_turns < AGENT_TURNS {
            let is_told = words.urgent.load(Relaxed) & urgent::WOKEN != 0;
            if Decision(decision).has(Decision::UNLESS_TOLD) && is_told {
                self.recall(words, Decision(decision));
            }
            self.agent_turns += 1;
            let agent = self.pick_agent(words, words.urgent.load(Relaxed));
            if agent.is_some() {
                return agent;
            } // it has been replaced
        }
        match next {
            None => self.pick_decision(words, decision),
            Some(_) => self.pick_next_slow(words),
        }
    }

    /// Picks the agent. `urgent` are the reasons that were found.
    #[inline(always)]
    fn pick_agent(&mut self, words: &'static CpuWords, urgent: u8) -> Option<Handle<T, M>> {
        let agent = self.agent.take()?;
        self.attention = Attention::All;
        if urgent & urgent::AGENT != 0 {
            // It goes on where it was preempted. It may have read its messages before that, so it is
            // still told.
            words.urgent.fetch_and(!urgent::AGENT, AcqRel);
        } else {
            match S::SEVERAL {
                true => words.bell.silence(),
                false => words.bell.silence_here(),
            }
            if urgent != 0 {
                words.urgent.fetch_and(!urgent::WOKEN, AcqRel);
            }
        }
        if S::SEVERAL {
            words.bell.end_wait();
        }
        let link = agent.policy_state().link();
        if words.agent() != link.addr() {
            let has_run = S::SEVERAL && has_cpu(&agent);
            self.put_outside(agent, false, has_run);
            return None;
        }
        self.current = link;
        Some(agent)
    }

    /// Picks the task of the next decision that can be followed. `decision` is the first one.
    #[inline(never)]
    fn pick_decision(
        &mut self,
        words: &'static CpuWords,
        mut decision: u64,
    ) -> Option<Handle<T, M>> {
        let cpu = self.cpu();
        loop {
            let slot = &M::table().slots[Decision(decision).task().index()];
            let status = slot.status();
            if S::SEVERAL && status.state() == State::InFlight && status.cpu() != cpu {
                if !slot.word.await_landing(cpu, status) {
                    continue;
                }
                kick::<M>(status.cpu()); // its next scheduler call ends the flight
                return None;
            }
            if words.decisions.take(decision)
                && Decision(decision).allows(status)
                && (!S::SEVERAL || words.has(slot))
                && self.claim(slot, status)
            {
                if !S::SEVERAL || self.may_run_here(slot, status) {
                    return Some(self.begin(slot, words));
                }
                self.refuse_cpu(slot, status);
            }
            // It was withdrawn or is refused.
            match words.decisions.first() {
                Some(next) => decision = next,
                None => {
                    self.tell_refusal(words);
                    return self.find_no_decision(words);
                }
            }
        }
    }

    /// Lets the agent decide again, because its last decision for this CPU was refused. A refusal
    /// need not cause a message: the agent may have decided twice on the same task.
    #[cold]
    #[inline(never)]
    fn tell_refusal(&self, words: &CpuWords) {
        if let Some(enclave) = words.enclave() {
            tell::<M>(enclave, false);
        }
    }

    /// Makes a ready task run here. Returns false if another CPU was faster.
    #[inline(always)]
    fn claim(&self, slot: &Slot, status: Status) -> bool {
        let running = status.with(State::Running, self.cpu());
        if S::SEVERAL {
            return slot.word.change(status, running);
        }
        slot.word.set(running);
        true
    }

    /// Handles a pick that has no decision: asks the fast path, or lets the agent know.
    #[inline(never)]
    fn find_no_decision(&mut self, words: &'static CpuWords) -> Option<Handle<T, M>> {
        if let Some(enclave) = words.enclave() {
            if enclave.route.load(Acquire) & FAST != 0 {
                if S::SEVERAL {
                    words.decisions.become_free();
                }
                if let Some(task) = self.choose_fast(enclave, words) {
                    return Some(task);
                }
            } else if S::SEVERAL && words.decisions.become_free() {
                tell::<M>(
                    enclave,
                    enclave.agent_cpu.load(Relaxed) != self.cpu() as u32,
                );
                if let Some(decision) = words.decisions.first() {
                    return self.pick_decision(words, decision);
                }
            }
        }
        let link = self.agent.as_ref()?.policy_state().link();
        let has_rung = match S::SEVERAL {
            true => words.bell.wait(),
            false => words.bell.has_rung(),
        };
        match has_rung || words.agent() != link.addr() {
            true => self.pick_agent(words, words.urgent.load(Relaxed)),
            false => None,
        }
    }

    /// Picks the task that the policy on the fast path chooses.
    #[inline(always)]
    fn choose_fast(
        &mut self,
        enclave: &'static EnclaveWords,
        words: &'static CpuWords,
    ) -> Option<Handle<T, M>> {
        if enclave.has_rare.load(Relaxed) {
            self.tell_fast_all(enclave);
        }
        let cpu = self.cpu();
        let mut refused = None;
        for _ in 0..FAST_CHOICES {
            let task = Self::with_fast(enclave, |policy| policy.choose(cpu))??;
            let is_again = refused == Some(task);
            let slot = &M::table().slots[task.index()];
            let status = slot.status();
            let is_it = status.is_of(task) && status.is_ready();
            if !is_it || !slot.is_in(enclave) {
                continue;
            }
            if S::SEVERAL && status.state() == State::InFlight && status.cpu() != cpu {
                slot.word.await_landing(cpu, status);
                self.give_back_fast(enclave, slot, Kind::RECALLED);
                kick::<M>(status.cpu());
            } else if !self.claim(slot, status) {
                self.give_back_fast(enclave, slot, Kind::RECALLED);
            } else if S::SEVERAL && !self.may_run_here(slot, status) {
                self.refuse_cpu(slot, status);
            } else {
                self.attention = Attention::All;
                return Some(self.begin(slot, words));
            }
            if is_again {
                return None; // all others that it chooses have been refused as well
            }
            refused.get_or_insert(task);
        }
        None
    }

    /// Tells the policy on the fast path that a task which it chose is still ready.
    #[cold]
    #[inline(never)]
    fn give_back_fast(&self, enclave: &'static EnclaveWords, slot: &Slot, kind: Kind) {
        let status = slot.status();
        Self::with_fast(enclave, |policy| {
            if status.is_ready() {
                policy.told(Message::from_words(slot.words(kind, status)));
            }
        });
    }

    /// Tells the policy on the fast path of the tasks that are gone and, if it is new, of those that
    /// are ready.
    #[cold]
    #[inline(never)]
    fn tell_fast_all(&self, enclave: &'static EnclaveWords) {
        let table = M::table();
        enclave.has_rare.swap(false, AcqRel);
        let dead = enclave.dead.swap(0, AcqRel);
        let is_new = enclave.lost.swap(false, AcqRel);
        Self::with_fast(enclave, |policy| {
            let mut next = dead;
            while let Some(index) = (next as usize).checked_sub(1) {
                let slot = &table.slots[index];
                next = slot.next_dead.load(Relaxed);
                policy.told(Message::from_words(slot.farewell()));
            }
            if !is_new {
                return;
            }
            policy.told(Message::from_words(Message::rediscover(self.cpu())));
            for slot in table.used_slots() {
                let status = slot.status();
                if status.is_ready() && slot.is_in(enclave) {
                    slot.told_seq.store(status.seq(), Relaxed);
                    policy.told(Message::from_words(slot.words(Kind::FOUND, status)));
                }
            }
        });
        table.free_gone(dead);
    }

    /// Begins to run a task, whose word says so already.
    #[inline(always)]
    fn begin(&mut self, slot: &'static Slot, words: &'static CpuWords) -> Handle<T, M> {
        self.began = C::now().0;
        // SAFETY: SLOT. This call has changed the word, so the handle is its own.
        let handle: Handle<T, M> = unsafe { Arc::from_raw(slot.handle.load(Relaxed).cast()) };
        self.current = ptr::from_ref(slot).cast_mut();
        self.agent_turns = 0;
        handle.policy_state().slice().renew();
        if S::SEVERAL {
            words.decisions.end_wait();
            self.attention = Attention::All;
            self.kick_waiters(slot);
        }
        handle
    }

    /// Returns true if a task may run here. This CPU has changed its word from `before`. A preempted
    /// task that has to stay runs where it was preempted, whatever its affinity has become.
    fn may_run_here(&self, slot: &Slot, before: Status) -> bool {
        match before.state() {
            State::Stays => before.cpu() == self.cpu(),
            _ => self.may_run_on(slot, self.cpu()),
        }
    }

    /// Returns true if the affinity of a task includes a CPU. The word is this CPU's, as above.
    fn may_run_on(&self, slot: &Slot, cpu: usize) -> bool {
        let Some(machine) = machine::<M>() else {
            return true;
        };
        let task: *const DelegatedTask<T, M> = slot.handle.load(Relaxed).cast_const().cast();
        // SAFETY: by SLOT the caller, which has changed the word, owns the handle. So the task is
        // alive. The rest is the promise of `connect`.
        unsafe { (machine.may_run)(ptr::from_ref((*task).inner()).cast(), cpu) }
    }

    /// Refuses the decision to run a task here, whose word this CPU has changed from `before`. If it
    /// may run on no CPU of the enclave, it leaves the enclave.
    #[cold]
    #[inline(never)]
    fn refuse_cpu(&mut self, slot: &'static Slot, before: Status) {
        let enclave = slot.enclave();
        let allowed = match before.state() {
            State::Stays => Some(before.cpu()),
            _ => enclave.each_cpu().find(|&cpu| self.may_run_on(slot, cpu)),
        };
        if let Some(cpu) = allowed {
            self.give_back(slot, before, Kind::AFFINITY);
            // An agent chooses another CPU. The fast path is asked by each CPU for itself.
            if enclave.route.load(Acquire) & FAST != 0 {
                kick::<M>(cpu);
            }
            return;
        }
        // SAFETY: SLOT, as above.
        let task: Handle<T, M> = unsafe { Arc::from_raw(slot.handle.load(Relaxed).cast()) };
        self.depart(slot);
        let has_run = S::SEVERAL && ptr::eq(self.in_flight, slot);
        if has_run {
            self.in_flight = ptr::null_mut();
        }
        self.put_outside(task, false, has_run);
    }

    /// Notes that a task has left its enclave, and tells the agent.
    fn depart(&mut self, slot: &'static Slot) {
        let enclave = slot.enclave();
        let status = slot.status();
        slot.has_departed.store(true, Relaxed);
        slot.word.set(status.next(State::Gone, status.cpu()));
        self.kick_waiters(slot); // of a task that was in flight
        M::table().bury(slot);
        tell::<M>(enclave, false);
        self.attention = Attention::All;
    }

    /// Makes a task ready again whose decision was refused, after its word was changed from
    /// `before`.
    #[cold]
    #[inline(never)]
    fn give_back(&mut self, slot: &Slot, before: Status, kind: Kind) {
        // An agent learns from it which CPU has refused. A task that has to stay keeps its CPU.
        let cpu = match before.state() {
            State::Ready => self.cpu(),
            _ => before.cpu(),
        };
        let status = before.next(before.state(), cpu);
        slot.word.set(status);
        self.post(slot.enclave(), kind, slot, status, slot.run.load(Relaxed));
    }

    /// Refuses the first decision, because the agent has been told something new.
    fn recall(&mut self, words: &CpuWords, decision: Decision) {
        let slot = &M::table().slots[decision.task().index()];
        let status = slot.status();
        let is_elsewhere = status.state() == State::InFlight && status.cpu() != self.cpu();
        if S::SEVERAL && is_elsewhere || !words.decisions.take(decision.0) {
            return;
        }
        if decision.allows(status) && self.claim(slot, status) {
            self.give_back(slot, status, Kind::RECALLED);
        }
    }

    /// Ends the enclaves whose watchdog has found a task that waited too long (rule 9). Returns true
    /// if it ended one.
    #[cold]
    #[inline(never)]
    fn watch(&mut self, words: &CpuWords) -> bool {
        let now = C::now().0;
        let table = M::table();
        let mut has_ended = false;
        for enclave in &table.enclaves {
            let is_own = words.enclave().is_some_and(|own| ptr::eq(own, enclave));
            let is_watched = is_own || words.serves.load(Relaxed) & enclave.mask() != 0;
            let limit = enclave.limit.load(Relaxed);
            if !enclave.is_active() || !is_watched || limit == 0 {
                continue;
            }
            let mut longest = (limit, None);
            for slot in table.used_slots() {
                let status = slot.status();
                if status.is_ready() && slot.is_in(enclave) {
                    // It may have become ready after the clock was read.
                    let waited = now.saturating_sub(slot.since.load(Relaxed));
                    // Meanwhile it may have run, or have gone.
                    if waited > longest.0 && slot.status() == status {
                        longest = (waited, Some((slot, status)));
                    }
                }
            }
            let (waited, Some((slot, status))) = longest else {
                continue;
            };
            // While the task is ready, the words are this enclave's.
            let _pinned = Pinned::new(enclave);
            if slot.status() == status {
                let task = slot.task(status);
                let silence = now.saturating_sub(self.began);
                end::<M>(enclave, End::Watchdog, task, [waited, silence]);
                has_ended = true;
            }
        }
        if has_ended {
            self.sweep();
        }
        has_ended
    }

    /// Returns true if a policy on the fast path preempts the task that runs here.
    fn is_preempted_fast(&self, enclave: &'static EnclaveWords) -> bool {
        let is_fast = enclave.route.load(Acquire) & FAST != 0;
        let cpu = self.cpu();
        is_fast && Self::with_fast(enclave, |policy| policy.is_preempted(cpu)) == Some(true)
    }

    /// Tells the scheduler of the tasks outside of a tick. Returns true if the slice of the running task is
    /// over. An IPI of this crate is no tick. That scheduler is told of it only if one of its own has come
    /// as well, since a machine may deliver two as one.
    #[inline(always)]
    fn tick_outside(&mut self, current: &Handle<T, M>, was_kicked: bool) -> bool {
        if was_kicked && !M::smp_state().was_interrupted(self.cpu()) {
            return false;
        }
        self.outside.policy().ignore_tick(was_kicked);
        let slice_is_over = self.outside.task_tick(current);
        self.outside.policy().ignore_tick(false);
        slice_is_over
    }

    /// Handles a tick that hits the agent or a task of an enclave. Returns true if it is preempted.
    #[cold]
    #[inline(never)]
    fn tick_linked(&mut self, words: &CpuWords, slice_is_over: bool, was_kicked: bool) -> bool {
        let others_wait = self.outside_waits();
        if self.current.addr() & AGENT != 0 {
            return others_wait && !was_kicked;
        }
        let slot = slot_of(self.current);
        if !was_kicked {
            let run = slot.run.load(Relaxed) + C::now().0.wrapping_sub(self.began);
            self.post(slot.enclave(), Kind::TICK, slot, slot.status(), run);
            if self.is_preempted_fast(slot.enclave()) {
                return true;
            }
        }
        let must_decide = self.agent.is_some() && words.urgent.load(Relaxed) != 0;
        let decision = words.decisions.first().map(Decision);
        let is_preempted = decision.is_some_and(|next| next.has(Decision::PREEMPTS));
        must_decide || is_preempted || slice_is_over && others_wait
    }
}

impl<T, C: Clock, M: TableSource, S: OutsideScheduler<T, M>> BaseScheduler
    for Delegated<T, C, M, S>
{
    type SchedItem = Handle<T, M>;

    fn init(&mut self) {}

    #[inline]
    fn add_task(&mut self, task: Self::SchedItem) {
        self.outside.add_task(task);
    }

    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem> {
        match &self.held {
            Some((held, _)) if Arc::ptr_eq(held, task) => Some(self.held.take()?.0),
            _ => self.outside.remove_task(task),
        }
    }

    #[inline]
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool) {
        if !prev.policy_state().link().is_null() {
            return self.put_linked(prev, preempt);
        }
        if S::SEVERAL && self.attention == Attention::All {
            return self.put_plain(prev, preempt);
        }
        self.outside.put_prev_task(prev, preempt);
    }

    #[inline]
    fn pick_next_task(&mut self) -> Option<Self::SchedItem> {
        if self.attention == Attention::Outside
            && let Some(task) = self.outside.pick_next_task()
        {
            return Some(task);
        }
        let task = match self.attention {
            Attention::Outside => self.pick_rare(),
            Attention::Idle if S::SEVERAL => self.pick_idle(),
            Attention::Idle | Attention::All => self.pick_slow(),
        };
        if S::SEVERAL {
            self.publish_idle(task.is_none());
        }
        task
    }

    fn task_tick(&mut self, current: &Self::SchedItem) -> bool {
        if self.here().is_none() {
            return self.outside.task_tick(current);
        }
        let words = self.own_words();
        let was_kicked = words.kicked.load(Relaxed) && words.kicked.swap(false, AcqRel);
        self.settle();
        if was_kicked || words.attention.load(Relaxed) {
            words.attention.store(false, Relaxed);
            self.attention = Attention::All;
        }
        let slice_is_over = self.tick_outside(current, was_kicked);
        self.sweep_if_asked(words);
        if !was_kicked {
            self.watch(words);
        }
        debug_assert!(
            !ptr::eq(self.current, RETURNED),
            "a pick comes before a tick"
        );
        match self.current.is_null() {
            true => slice_is_over,
            false => self.tick_linked(words, slice_is_over, was_kicked),
        }
    }

    fn set_priority(&mut self, _: &Self::SchedItem, _: isize) -> bool {
        false
    }
}

#[cfg(test)]
mod tests;
