//! The state that all CPUs share: a slot for each delegated task, the enclaves, and words for each CPU.
//!
//! SLOT: while a task is ready its slot owns a handle of it. The status word says which CPU may take
//! it. That CPU changes the word to `Running` by compare-and-swap, and then owns the handle. All other
//! changes of the word are made by the CPU whose run queue has the task, or by the last handle's
//! drop. So each change has one author, except that several CPUs may want a ready task.
//!
//! STALE: an agent that waits for its CPU may have been replaced, or its enclaves may have ended. So each change
//! of the CPU's agent sets [`urgent::AGENT`], and the next pick of an agent compares the two. On one CPU, other
//! picks and puts need not.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::*, fence,
};

use sched_smp::{MAX_CPUS, SMP_STATE, SmpState, SmpStateSource, SystemSmpState};
use spin::mutex::SpinMutex;

use crate::decision::NextTask;
use crate::handshake::{Bell, StatusWord};
use crate::host::AgentPolicy;
use crate::message::{Kind, Kinds, Message};
use crate::ring::{Decisions, Messages, Words};
use crate::status::{FLAG_BITS, INDEX_BITS, State, Status, TaskId};

/// The most tasks that are delegated at the same time.
pub const MAX_TASKS: usize = 1 << INDEX_BITS;
/// The most enclaves at the same time.
pub const MAX_ENCLAVES: usize = 8;

/// A delegated task. It has a cache line of its own.
#[repr(align(64))]
pub struct Slot {
    /// Packs the [`Status`].
    pub word: StatusWord,
    /// The task, as `Arc::into_raw` gave it, from its first put on. SLOT: a handle of it while it is ready.
    pub handle: AtomicPtr<()>,
    /// The time at which it became ready, in counts.
    pub since: AtomicU64,
    /// The time for which it has run, in counts.
    pub run: AtomicU64,
    /// Leads to its enclave.
    enclave: AtomicPtr<EnclaveWords>,
    /// Its index in the table, shifted to its place in the identity of a task.
    place: AtomicU32,
    /// The sequence number of the last message that the fast path was told.
    pub told_seq: AtomicU32,
    /// 1 more than the next slot in the list of dead tasks; 0 for none.
    pub next_dead: AtomicU32,
    /// The task has left the enclave, and is not dead.
    pub has_departed: AtomicBool,
}

impl Slot {
    const fn new() -> Self {
        Self {
            word: StatusWord::new(),
            handle: AtomicPtr::new(ptr::null_mut()),
            since: AtomicU64::new(0),
            run: AtomicU64::new(0),
            enclave: AtomicPtr::new(ptr::null_mut()),
            place: AtomicU32::new(0),
            told_seq: AtomicU32::new(0),
            next_dead: AtomicU32::new(0),
            has_departed: AtomicBool::new(false),
        }
    }

    /// Returns its enclave. The slot has been taken.
    #[inline(always)]
    pub fn enclave(&self) -> &'static EnclaveWords {
        // SAFETY: a slot is taken with its enclave, which is in the table and never freed.
        unsafe { &*self.enclave.load(Relaxed) }
    }

    /// Returns true if it belongs to this enclave.
    #[inline(always)]
    pub fn is_in(&self, enclave: &EnclaveWords) -> bool {
        ptr::eq(self.enclave.load(Relaxed), enclave)
    }

    /// Returns the identity of its task, whose status is known.
    #[inline(always)]
    pub fn task(&self, status: Status) -> TaskId {
        TaskId::at(self.place.load(Relaxed), status)
    }

    #[inline(always)]
    pub fn status(&self) -> Status {
        self.word.get()
    }

    /// Returns the last message about its task, which is gone.
    pub fn farewell(&self) -> Words {
        let kind = match self.has_departed.load(Relaxed) {
            true => Kind::DEPARTED,
            false => Kind::DEAD,
        };
        self.words(kind, self.status())
    }

    /// Returns a message about its task, which has this status.
    pub fn words(&self, kind: Kind, status: Status) -> Words {
        self.words_with(kind, status, status.state_bits(), self.run.load(Relaxed))
    }

    /// Returns a message about its task, with this run time. `state` is that of the status.
    #[inline(always)]
    pub fn words_with(&self, kind: Kind, status: Status, state: u8, run: u64) -> Words {
        Message::to_words(status, state, kind, self.place.load(Relaxed), run)
    }

    /// Returns its index in the table.
    fn index(&self) -> u32 {
        self.place.load(Relaxed) >> FLAG_BITS
    }
}

/// The words of one CPU.
#[repr(align(64))]
pub struct CpuWords {
    /// The CPU has called its scheduler.
    pub has_joined: AtomicBool,
    /// The enclave to which it belongs, or null.
    enclave: AtomicPtr<EnclaveWords>,
    /// STALE: the link of the task of the agent that is attached here. It is 0 if the agent serves no enclave.
    agent: AtomicUsize,
    /// The enclaves that this agent serves (bit mask).
    pub serves: AtomicU32,
    /// Tells that agent of messages.
    pub bell: Bell,
    /// Tells a pick what to look at first ([`urgent`]).
    pub urgent: AtomicU8,
    /// The decision of the agent on this CPU that goes before all others ([`NextTask`]).
    pub next: AtomicU32,
    /// An IPI of this crate is on its way.
    pub kicked: AtomicBool,
    /// Something waits for the next pick.
    pub attention: AtomicBool,
    pub decisions: Decisions,
}

impl CpuWords {
    const fn new() -> Self {
        Self {
            has_joined: AtomicBool::new(false),
            enclave: AtomicPtr::new(ptr::null_mut()),
            agent: AtomicUsize::new(0),
            serves: AtomicU32::new(0),
            bell: Bell::new(),
            urgent: AtomicU8::new(0),
            next: AtomicU32::new(NextTask::NONE.0),
            kicked: AtomicBool::new(false),
            attention: AtomicBool::new(false),
            decisions: Decisions::new(),
        }
    }
}

impl CpuWords {
    /// Returns the enclave to which it belongs.
    #[inline(always)]
    pub fn enclave(&self) -> Option<&'static EnclaveWords> {
        // SAFETY: it is null, or in the table and never freed.
        unsafe { self.enclave.load(Acquire).as_ref() }
    }

    /// Returns true if a task belongs to the enclave of this CPU.
    #[inline(always)]
    pub fn has(&self, slot: &Slot) -> bool {
        ptr::eq(self.enclave.load(Relaxed), slot.enclave.load(Relaxed))
    }

    /// Returns the link of the task of the agent that is attached here, or 0.
    #[inline(always)]
    pub fn agent(&self) -> usize {
        self.agent.load(Acquire)
    }

    /// Attaches an agent.
    pub fn attach(&self, link: usize) {
        self.agent.store(link, Release);
        self.urgent.fetch_or(urgent::AGENT, SeqCst); // STALE
    }

    /// Takes away the agent with this link, if it is attached.
    pub fn detach(&self, link: usize) {
        // It stays if another has been attached since.
        _ = (self.agent).compare_exchange(link, 0, AcqRel, Relaxed);
        self.urgent.fetch_or(urgent::AGENT, SeqCst); // STALE
    }

    /// Makes it a CPU of this enclave. Returns false if it belongs to one.
    pub fn join(&self, enclave: &'static EnclaveWords) -> bool {
        let enclave = ptr::from_ref(enclave).cast_mut();
        let none = ptr::null_mut();
        (self
            .enclave
            .compare_exchange(none, enclave, AcqRel, Relaxed))
        .is_ok()
    }

    /// Makes it a CPU of no enclave if it is one of this enclave.
    pub fn leave(&self, enclave: &EnclaveWords) {
        let enclave = ptr::from_ref(enclave).cast_mut();
        let none = ptr::null_mut();
        _ = (self.enclave).compare_exchange(enclave, none, AcqRel, Relaxed);
    }

    /// Ends what its agent does for an enclave.
    pub fn stop_serving(&self, enclave: &EnclaveWords) {
        let (mask, agent) = (enclave.mask(), self.agent.load(Acquire));
        if self.serves.fetch_and(!mask, AcqRel) == mask {
            self.detach(agent);
        }
    }
}

/// Reasons for a pick to look further.
pub mod urgent {
    /// A message that wakes waits for the agent.
    pub const WOKEN: u8 = 1;
    /// The agent is ready without a message: it was preempted or woken, or its decision was refused. Or the CPU's
    /// agent has changed (STALE).
    pub const AGENT: u8 = 2;
    /// An enclave has ended.
    pub const SWEEP: u8 = 4;
}

/// The place of an agent's number above its link.
pub const NUMBER: u32 = 48;

/// Stands for no CPU.
pub const NO_CPU: u32 = u32::MAX;

/// An enclave that is not used, or one that is.
pub mod phase {
    pub const UNUSED: u32 = 0;
    /// It is being set up.
    pub const BEGUN: u32 = 1;
    pub const ACTIVE: u32 = 2;
    /// Its tasks go back to round robin.
    pub const ENDED: u32 = 3;
}

/// The state of an enclave.
pub struct EnclaveWords {
    pub phase: AtomicU32,
    /// The kinds that are sent, and above them the kinds that wake, with [`PLAIN`], [`FAST`] and [`QUIET`]. It is 0
    /// unless the enclave is active.
    pub route: AtomicU64,
    /// Its place in the table.
    pub number: AtomicU32,
    /// Messages were lost, or a task is gone. Each change is a swap while the enclave is active. So the agent
    /// that clears it sees all that was written before.
    pub has_rare: AtomicBool,
    /// Counts the enclaves that were made of this one.
    pub generation: AtomicU32,
    /// Its CPUs (bit mask).
    pub cpus: AtomicU64,
    /// Counts the tasks that have a slot of it, and the calls that pin it.
    pub members: AtomicU32,
    /// The CPU of its agent, or [`NO_CPU`].
    pub agent_cpu: AtomicU32,
    /// The link of the agent's task, and its number from bit [`NUMBER`] on. The number tells agents apart that
    /// are one task. It is 0 for none, and if the enclave is not active.
    pub agent: AtomicUsize,
    /// Counts the agents that it had, over all enclaves with these words.
    pub attached: AtomicU32,
    /// The longest wait that the watchdog allows, in counts; 0 if it is off.
    pub limit: AtomicU64,
    /// A message was lost, the agent is new, or the one before was dropped: it has to find the ready tasks.
    pub lost: AtomicBool,
    /// 1 more than the slot of the task that died last; 0 for none.
    pub dead: AtomicU32,
    /// The reason of its end, and the task that waited.
    pub ended_by: AtomicU32,
    pub ended_task: AtomicU32,
    pub ended_wait: AtomicU64,
    pub ended_unread: AtomicU32,
    pub ended_silence: AtomicU64,
    pub had_agent: AtomicBool,
    /// The policy on the fast path. On one CPU, scheduler calls do not lock it. So it is replaced only
    /// while the route excludes it.
    pub fast: SpinMutex<Option<Box<dyn AgentPolicy + Send>>>,
    pub messages: [Messages; MAX_CPUS],
}

impl EnclaveWords {
    const fn new() -> Self {
        Self {
            phase: AtomicU32::new(phase::UNUSED),
            route: AtomicU64::new(0),
            number: AtomicU32::new(0),
            has_rare: AtomicBool::new(false),
            generation: AtomicU32::new(0),
            cpus: AtomicU64::new(0),
            members: AtomicU32::new(0),
            agent_cpu: AtomicU32::new(NO_CPU),
            agent: AtomicUsize::new(0),
            attached: AtomicU32::new(0),
            limit: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            dead: AtomicU32::new(0),
            ended_by: AtomicU32::new(0),
            ended_task: AtomicU32::new(0),
            ended_wait: AtomicU64::new(0),
            ended_unread: AtomicU32::new(0),
            ended_silence: AtomicU64::new(0),
            had_agent: AtomicBool::new(false),
            fast: SpinMutex::new(None),
            messages: [const { Messages::new() }; MAX_CPUS],
        }
    }

    #[inline(always)]
    pub fn is_active(&self) -> bool {
        self.phase.load(Acquire) == phase::ACTIVE
    }

    /// Makes the agent, or the policy on the fast path, find all ready tasks.
    #[cold]
    #[inline(never)]
    pub fn rediscover(&self) {
        self.lost.store(true, Release);
        self.has_rare.swap(true, AcqRel);
    }

    /// Returns true if the task with this link is the agent.
    pub fn has_agent(&self, link: usize) -> bool {
        link != 0 && self.agent.load(Acquire) & ((1 << NUMBER) - 1) == link
    }

    /// Returns its CPUs, from the lowest on.
    pub fn each_cpu(&self) -> impl Iterator<Item = usize> + use<> {
        let cpus = self.cpus.load(Relaxed);
        (0..MAX_CPUS).filter(move |cpu| cpus >> cpu & 1 != 0)
    }

    /// Returns its bit among the enclaves.
    pub fn mask(&self) -> u32 {
        1 << self.number.load(Relaxed)
    }
}

/// Pins the words of an enclave, as it counts as a member. No new enclave takes the words meanwhile, even
/// if this one ends.
pub struct Pinned(pub &'static EnclaveWords);

impl Pinned {
    pub fn new(words: &'static EnclaveWords) -> Self {
        words.members.fetch_add(1, SeqCst);
        fence(SeqCst);
        Self(words)
    }
}

impl Deref for Pinned {
    type Target = EnclaveWords;

    fn deref(&self) -> &EnclaveWords {
        self.0
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.members.fetch_sub(1, AcqRel);
    }
}

/// A yield is sent to an agent, and does not wake it.
pub const PLAIN: u64 = 1 << 63;
/// A policy decides on the fast path.
pub const FAST: u64 = 1 << 62;
/// A yield is sent, and does not wake.
pub const QUIET: u64 = 1 << 61;
/// The enclave is active.
const ACTIVE: u64 = 1 << 60;
/// The place of the kinds that wake.
pub const WAKES: u32 = 32;

/// Returns the route of an active enclave without a fast path.
pub const fn route(sends: Kinds, wakes: Kinds) -> u64 {
    let is_quiet = sends.has(Kind::YIELDED) && !wakes.has(Kind::YIELDED);
    let quiet = if is_quiet { PLAIN | QUIET } else { 0 };
    ACTIVE | quiet | (wakes.0 as u64 & 0xffff) << WAKES | sends.0 as u64 & 0xffff
}

/// Returns a route with or without a fast path. That of an enclave which has ended stays 0.
pub const fn rerouted(route: u64, is_fast: bool) -> u64 {
    let others = route & !(PLAIN | FAST);
    match is_fast {
        _ if route & ACTIVE == 0 => route,
        true => others | FAST,
        false if route & QUIET != 0 => others | PLAIN,
        false => others,
    }
}

/// Everything that is shared.
pub struct Table {
    pub slots: [Slot; MAX_TASKS],
    pub cpus: [CpuWords; MAX_CPUS],
    pub enclaves: [EnclaveWords; MAX_ENCLAVES],
    /// One more than the highest slot that was ever used.
    pub used: AtomicU32,
    /// The slot at which the search for a free one begins.
    free: AtomicU32,
    /// Counts the agents that were attached.
    pub agents: AtomicUsize,
    /// The address of the scheduler that is CPU 0 while the CPUs are not connected.
    pub first: AtomicUsize,
}

impl Table {
    pub const fn new() -> Self {
        Self {
            slots: [const { Slot::new() }; MAX_TASKS],
            cpus: [const { CpuWords::new() }; MAX_CPUS],
            enclaves: [const { EnclaveWords::new() }; MAX_ENCLAVES],
            used: AtomicU32::new(0),
            free: AtomicU32::new(0),
            agents: AtomicUsize::new(0),
            first: AtomicUsize::new(0),
        }
    }

    /// Takes a free slot for a task of this enclave. It has the state `Joining`.
    pub fn take_slot(&self, enclave: &'static EnclaveWords) -> Option<&Slot> {
        let first = self.free.load(Relaxed) as usize;
        for index in (first..MAX_TASKS).chain(0..first) {
            let slot = &self.slots[index];
            let before = slot.status();
            if before.state() != State::Free {
                continue;
            }
            let generation = before.generation().wrapping_add(1);
            let enclave = ptr::from_ref(enclave).cast_mut();
            if slot
                .word
                .change(before, Status::new(generation, State::Joining, 0, 0))
            {
                slot.enclave.store(enclave, Release);
                slot.place.store((index as u32) << FLAG_BITS, Relaxed);
                slot.run.store(0, Relaxed);
                slot.word.forget_waiters();
                slot.told_seq.store(0, Relaxed);
                slot.has_departed.store(false, Relaxed);
                self.free
                    .store((index as u32 + 1) % MAX_TASKS as u32, Relaxed);
                self.used.fetch_max(index as u32 + 1, AcqRel);
                return Some(slot);
            }
        }
        None
    }

    /// Returns the slots that may have a task.
    pub fn used_slots(&self) -> &[Slot] {
        &self.slots[..self.used.load(Acquire) as usize]
    }

    /// Frees a slot. Its task is gone, or belongs to no enclave any more.
    pub fn free_slot(&self, slot: &Slot) {
        let enclave = slot.enclave();
        slot.word
            .set(Status::new(slot.status().generation(), State::Free, 0, 0));
        self.free.store(slot.index(), Relaxed);
        enclave.members.fetch_sub(1, AcqRel);
    }

    /// Frees the slots of tasks that are gone. `first` is 1 more than the first, or 0.
    pub fn free_gone(&self, mut first: u32) {
        while let Some(index) = (first as usize).checked_sub(1) {
            let slot = &self.slots[index];
            first = slot.next_dead.load(Relaxed);
            self.free_slot(slot);
        }
    }

    /// Adds a task that is gone to the list of its enclave. If that has ended, its slot is
    /// freed at once.
    pub fn bury(&self, slot: &Slot) {
        // The slot counts as a member only until another CPU has taken it from the list.
        let enclave = Pinned::new(slot.enclave());
        let mut first = enclave.dead.load(Relaxed);
        loop {
            slot.next_dead.store(first, Relaxed);
            let link = slot.index() + 1;
            match enclave
                .dead
                .compare_exchange_weak(first, link, Release, Relaxed)
            {
                Ok(_) => break,
                Err(found) => first = found,
            }
        }
        enclave.has_rare.swap(true, AcqRel);
        fence(SeqCst); // the end sees the task, or is seen
        if !enclave.is_active() {
            self.free_gone(enclave.dead.swap(0, AcqRel));
        }
    }
}

/// The table of the system.
pub static TABLE: Table = Table::new();

/// The source from which a scheduler has its table. It is a type and not a reference, because the
/// system's table is at a fixed address.
pub trait TableSource: 'static {
    /// The source of the state for several CPUs.
    type Smp: SmpStateSource;

    /// Returns the table.
    fn table() -> &'static Table;

    /// Returns the state for several CPUs.
    fn smp_state() -> &'static SmpState {
        Self::Smp::smp_state()
    }
}

/// The source of the system's schedulers.
pub struct SystemTable;

impl TableSource for SystemTable {
    type Smp = SystemSmpState;

    #[inline(always)]
    fn table() -> &'static Table {
        &TABLE
    }

    #[inline(always)]
    fn smp_state() -> &'static SmpState {
        &SMP_STATE
    }
}

/// The source of tests. Each thread has a table, which can be renewed.
#[cfg(any(test, feature = "model"))]
pub struct ThreadTable<S = sched_smp::ThreadSmpState>(core::marker::PhantomData<S>);

#[cfg(any(test, feature = "model"))]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<*mut Table> = const { core::cell::Cell::new(ptr::null_mut()) };
}

#[cfg(any(test, feature = "model"))]
impl<S> ThreadTable<S> {
    /// Makes a new table for this thread. The one before stays in memory, about half a megabyte, unless
    /// it was [retired](Self::retire).
    pub fn renew() -> &'static Table {
        let table = Box::into_raw(Box::new(Table::new()));
        OF_THREAD.set(table);
        // SAFETY: it is a box that only `retire` frees.
        unsafe { &*table }
    }

    /// Frees the table of this thread.
    ///
    /// # Safety
    /// All tasks, schedulers and agents that have used it are gone.
    pub unsafe fn retire() {
        let table = OF_THREAD.replace(ptr::null_mut());
        if !table.is_null() {
            // SAFETY: `renew` made it, and nothing uses it any more.
            drop(unsafe { Box::from_raw(table) });
        }
    }
}

#[cfg(any(test, feature = "model"))]
impl<S: SmpStateSource + 'static> TableSource for ThreadTable<S> {
    type Smp = S;

    fn table() -> &'static Table {
        // SAFETY: it is null, or a box that only `retire` frees.
        unsafe { OF_THREAD.get().as_ref() }.unwrap_or_else(Self::renew)
    }
}
