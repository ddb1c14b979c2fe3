//! What all queues share: who is hungry, who has asked whom, and what is posted.

#[cfg(feature = "model")]
use alloc::boxed::Box;
use core::fmt;
use core::ptr;
/// Nobody decides by one, so it is nothing that loom need explore.
use core::sync::atomic::AtomicU64 as Statistic;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
#[cfg(not(all(test, loom)))]
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

use spin::Once;

/// As many CPUs as there are bits in a word.
pub const MAX_CPUS: usize = 64;

/// What the layer must know of the machine. Called in scheduler calls, with interrupts off and a
/// run queue's lock held: none of it may allocate, take a lock that is held while a scheduler is
/// called, or call a scheduler.
pub struct Machine {
    /// How many CPUs there are, 1 to [`MAX_CPUS`].
    pub cpus: usize,
    /// The CPU that calls, from 0.
    pub this_cpu: fn() -> usize,
    /// The task that runs on the CPU that calls, idle or not: where its `Arc` keeps what the
    /// scheduler was given.
    pub current: fn() -> *const (),
    /// Has this CPU, which may be the one that calls, look at its queue soon: an interrupt whose
    /// handler does what a timer tick does, after which an idle task ([`Shared::idles`]) picks again.
    pub interrupt: fn(usize),
    /// The CPU that calls takes part from now on: it may be interrupted.
    pub joins: fn(),
    /// What the CPU that calls does each time it has waited for a lock for longer than anybody holds
    /// one: lets the others run, if several share a CPU of a host, and comes back by itself, after a
    /// timer tick at the latest; nobody wakes it, and whoever wants its run queue waits as long.
    /// `core::hint::spin_loop` where none do.
    pub wait: fn(),
    /// Whether a task may run on this CPU; it is what the policy's task wraps.
    ///
    /// # Safety
    /// The pointer is to such a task, and alive.
    pub may_run: unsafe fn(*const (), usize) -> bool,
}

/// What the layer of one CPU is told by the others'. Aligned, so that no two of them share a line
/// of the cache.
#[repr(align(64))]
#[cfg_attr(all(test, loom), derive(Default))]
struct Cpu {
    /// How many tasks wait in its queue. Written by whoever has that queue's lock.
    waiting: AtomicU32,
    /// An interrupt is under way.
    interrupted: AtomicBool,
    /// How many it has been sent.
    interrupts: Statistic,
    /// Its last pick found nobody. Written by that CPU.
    idles: AtomicBool,
    /// Who wants a task of it, a bit each.
    asked_by: AtomicU64,
    /// Whom nobody has asked yet on this CPU's behalf, a bit each: rule 2.
    not_asked: AtomicU64,
    /// HUNGRY: the task that it was owed; the lowest bits say how it comes.
    post: AtomicPtr<()>,
    /// Rule 7: the last that was sent on to it, as above, whose link leads to the one before.
    sent: AtomicPtr<()>,
}

/// What the layers of a system share.
pub struct Shared {
    machine: Once<Machine>,
    /// The CPUs that idle and are owed nothing, a bit each.
    hungry: AtomicU64,
    /// What schedulers that have all in common have made for themselves; null is nothing.
    common: AtomicPtr<()>,
    cpus: [Cpu; MAX_CPUS],
}

/// The reason why a task comes into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comes {
    /// It was blocked or migrated.
    Woken = 0,
    /// It has never been in a queue.
    New = 1,
    /// It waited in another queue.
    HandedOver = 2,
}

/// A task under way to another CPU, as [`Shared`] keeps it: by the address that its `Arc` gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    pub task: *const (),
    pub comes: Comes,
}

impl Posted {
    /// The bits of a task's address that are free.
    pub const TAG: usize = 3;

    /// In one word.
    fn tagged(self) -> *mut () {
        let tagged = self.task.map_addr(|at| at | self.comes as usize);
        tagged.cast_mut()
    }

    /// Of such a word; null is nobody.
    pub fn of_tagged(tagged: *mut ()) -> Option<Self> {
        let task = tagged.cast_const().map_addr(|at| at & !Self::TAG);
        let comes = match tagged.addr() & Self::TAG {
            0 => Comes::Woken,
            1 => Comes::New,
            _ => Comes::HandedOver,
        };
        (!task.is_null()).then_some(Self { task, comes })
    }
}

impl Shared {
    /// Nobody is connected.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            machine: Once::new(),
            hungry: AtomicU64::new(0),
            common: AtomicPtr::new(ptr::null_mut()),
            cpus: [const {
                Cpu {
                    waiting: AtomicU32::new(0),
                    interrupted: AtomicBool::new(false),
                    interrupts: Statistic::new(0),
                    idles: AtomicBool::new(false),
                    asked_by: AtomicU64::new(0),
                    not_asked: AtomicU64::new(0),
                    post: AtomicPtr::new(ptr::null_mut()),
                    sent: AtomicPtr::new(ptr::null_mut()),
                }
            }; MAX_CPUS],
        }
    }

    /// The same, of atomics that are no constants.
    #[cfg(all(test, loom))]
    pub fn new() -> Self {
        Self {
            machine: Once::new(),
            hungry: AtomicU64::new(0),
            common: AtomicPtr::default(),
            cpus: core::array::from_fn(|_| Cpu::default()),
        }
    }

    /// From now on the layers balance, on this machine. The first call counts.
    ///
    /// # Panics
    /// If there are no CPUs, or more than [`MAX_CPUS`].
    ///
    /// # Safety
    /// All layers that share this are of one type of task, which is what
    /// [`may_run`](Machine::may_run) takes; no two of them are of one CPU; and
    /// [`this_cpu`](Machine::this_cpu) is the CPU whose queue it is, whenever a layer picks or
    /// is told of a tick.
    pub unsafe fn connect(&self, machine: Machine) {
        assert!(
            (1..=MAX_CPUS).contains(&machine.cpus),
            "{} CPUs: expected 1 to {MAX_CPUS}",
            machine.cpus
        );
        self.machine.call_once(|| machine);
    }

    /// Whether this CPU, which calls, runs its idle task, of whose ticks a scheduler is not told.
    pub fn idles(&self, cpu: usize) -> bool {
        self.cpus[cpu].idles.load(SeqCst)
    }

    /// What [`set_common`](Self::set_common) was told.
    pub fn common(&self) -> *const () {
        self.common.load(Acquire)
    }

    /// Schedulers that have all in common have this.
    pub fn set_common(&self, common: *mut ()) {
        self.common.store(common, Release);
    }

    /// SEEN.
    pub fn set_idles(&self, cpu: usize, idles: bool) {
        self.cpus[cpu].idles.store(idles, SeqCst);
    }

    /// The machine, if there is somebody to share work with.
    #[inline]
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.get().filter(|machine| machine.cpus > 1)
    }

    /// Rule 1. SEEN.
    pub fn becomes_hungry(&self, cpu: usize) {
        self.hungry.fetch_or(1 << cpu, SeqCst);
    }

    /// The hungry CPUs, a bit each. SEEN.
    pub fn hungry(&self) -> u64 {
        self.hungry.load(SeqCst)
    }

    /// HUNGRY: whether this CPU was hungry; it no longer is, and whoever has asked owes it a task,
    /// or is that CPU.
    pub fn claims(&self, cpu: usize) -> bool {
        let bit = 1 << cpu;
        self.hungry.fetch_and(!bit, SeqCst) & bit != 0
    }

    /// SEEN.
    pub fn set_waiting(&self, cpu: usize, tasks: u32) {
        self.cpus[cpu].waiting.store(tasks, SeqCst);
    }

    /// How many tasks wait in this CPU's queue.
    pub fn waiting(&self, cpu: usize) -> u32 {
        self.cpus[cpu].waiting.load(SeqCst)
    }

    /// HUNGRY: pays what a CPU is owed, and interrupts it.
    ///
    /// # Panics
    /// If something is posted there already.
    pub fn post(&self, machine: &Machine, cpu: usize, posted: Posted) {
        let before = self.cpus[cpu].post.swap(posted.tagged(), AcqRel);
        assert!(before.is_null(), "HUNGRY: CPU {cpu} was owed one task");
        self.interrupt(machine, cpu);
    }

    /// Takes what is posted to this CPU, whose call it is.
    pub fn take_post(&self, cpu: usize) -> Option<Posted> {
        let post = &self.cpus[cpu].post;
        if post.load(Relaxed).is_null() {
            return None;
        }
        Posted::of_tagged(post.swap(ptr::null_mut(), Acquire))
    }

    /// Rule 7: sends a task to a CPU, whatever is on the way to it, and interrupts it. `links` is told
    /// what the task's link has to lead to, once or more often.
    pub fn send(&self, machine: &Machine, cpu: usize, posted: Posted, links: impl Fn(*mut ())) {
        let sent = &self.cpus[cpu].sent;
        let mut before = sent.load(Relaxed);
        loop {
            links(before);
            match sent.compare_exchange_weak(before, posted.tagged(), Release, Relaxed) {
                Ok(_) => return self.interrupt(machine, cpu),
                Err(found) => before = found,
            }
        }
    }

    /// The last that was sent to this CPU, whose call it is: the first of a chain that is its own
    /// from now on. Null is nobody.
    pub fn take_sent(&self, cpu: usize) -> *mut () {
        let sent = &self.cpus[cpu].sent;
        match sent.load(Relaxed).is_null() {
            true => ptr::null_mut(),
            false => sent.swap(ptr::null_mut(), Acquire),
        }
    }

    /// One interrupt, if none is under way.
    pub fn interrupt(&self, machine: &Machine, cpu: usize) {
        if !self.cpus[cpu].interrupted.swap(true, AcqRel) {
            self.cpus[cpu].interrupts.fetch_add(1, Relaxed);
            (machine.interrupt)(cpu);
        }
    }

    /// How many interrupts this CPU has been sent since the layers balance, by whichever CPU, itself
    /// included: a statistic, exact when nobody sends one meanwhile. One that was not sent, as
    /// another was under way, is not among them; one that is lost is. Costs an addition for each
    /// interrupt, and nothing elsewhere.
    ///
    /// # Panics
    /// If `cpu` is not below [`MAX_CPUS`].
    pub fn interrupts(&self, cpu: usize) -> u64 {
        self.cpus[cpu].interrupts.load(Relaxed)
    }

    /// Whether somebody has interrupted this CPU, whose call it is. What they wanted is looked for
    /// afterwards: who comes later interrupts again.
    pub fn was_interrupted(&self, cpu: usize) -> bool {
        let interrupted = &self.cpus[cpu].interrupted;
        interrupted.load(Relaxed) && interrupted.swap(false, AcqRel)
    }

    /// Rule 1: asks, on behalf of a hungry CPU, the one with most tasks waiting.
    pub fn ask_anybody(&self, machine: &Machine, hungry: usize) {
        let others = u64::MAX >> (MAX_CPUS - machine.cpus) & !(1 << hungry);
        self.cpus[hungry].not_asked.store(others, Relaxed);
        self.ask_next(machine, hungry);
    }

    /// Rule 2: asks the one with most tasks waiting of those that nobody has asked, if any has.
    pub fn ask_next(&self, machine: &Machine, hungry: usize) {
        let not_asked = self.cpus[hungry].not_asked.load(Relaxed);
        let waiting = |cpu: &usize| self.cpus[*cpu].waiting.load(SeqCst);
        let candidates = (0..machine.cpus).filter(|cpu| not_asked >> cpu & 1 != 0);
        let Some(cpu) = candidates
            .max_by_key(waiting)
            .filter(|cpu| waiting(cpu) > 0)
        else {
            return;
        };
        self.cpus[hungry].not_asked.fetch_and(!(1 << cpu), Relaxed);
        self.ask(machine, cpu, hungry);
    }

    /// Asks this CPU, on behalf of that one.
    pub fn ask(&self, machine: &Machine, cpu: usize, hungry: usize) {
        self.cpus[cpu].asked_by.fetch_or(1 << hungry, AcqRel);
        self.interrupt(machine, cpu);
    }

    /// Who has asked this CPU since this was last called, a bit each.
    pub fn take_askers(&self, cpu: usize) -> u64 {
        let asked_by = &self.cpus[cpu].asked_by;
        match asked_by.load(Relaxed) {
            0 => 0,
            _ => asked_by.swap(0, AcqRel),
        }
    }
}

impl Default for Shared {
    fn default() -> Self {
        Self::new()
    }
}

/// For a report of what went wrong: of each CPU how many wait in its queue, and its words, in one
/// line. Read one by one while the CPUs go on, so they need not have been so together.
impl fmt::Display for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(machine) = self.machine() else {
            return f.write_str("not connected");
        };
        let hungry = self.hungry();
        for (cpu, words) in self.cpus.iter().enumerate().take(machine.cpus) {
            let waiting = words.waiting.load(SeqCst);
            let separator = if cpu == 0 { "" } else { "; " };
            write!(f, "{separator}CPU {cpu}: {waiting} waiting")?;
            for (is_so, word) in [
                (words.idles.load(SeqCst), "idles"),
                (hungry >> cpu & 1 != 0, "hungry"),
                (words.interrupted.load(Relaxed), "interrupted"),
                (!words.post.load(Relaxed).is_null(), "has a post"),
                (!words.sent.load(Relaxed).is_null(), "was sent somebody"),
            ] {
                if is_so {
                    write!(f, ", {word}")?;
                }
            }
            let asked_by = words.asked_by.load(Relaxed);
            if asked_by != 0 {
                write!(f, ", asked by {asked_by:#b}")?;
            }
        }
        Ok(())
    }
}

/// What the system's layers share.
#[cfg(not(all(test, loom)))]
pub static SHARED: Shared = Shared::new();
#[cfg(all(test, loom))]
loom::lazy_static! {
    /// The same, new in each execution.
    pub static ref SHARED: Shared = Shared::new();
}

/// Where a layer finds what it shares with the others. A type, not a reference: the system's is
/// at a fixed address.
pub trait SharedSource {
    /// STAYS: a task that was preempted has to run where it was next. On riscv64, as the per-CPU
    /// base is a register there that a trap saves, and gives back when the task goes on.
    const PREEMPTED_STAY: bool = cfg!(target_arch = "riscv64");

    /// That.
    fn shared() -> &'static Shared;
}

/// The source of the system's layers: [`SHARED`].
pub struct SystemShared;

impl SharedSource for SystemShared {
    #[inline(always)]
    fn shared() -> &'static Shared {
        &SHARED
    }
}

/// For tests: one a thread, which can be renewed.
#[cfg(feature = "model")]
pub struct SharedPerThread;

#[cfg(feature = "model")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static Shared>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "model")]
impl SharedPerThread {
    /// A new one for this thread, for good.
    pub fn renew() -> &'static Shared {
        let shared = Box::leak(Box::default());
        OF_THREAD.set(Some(shared));
        shared
    }

    /// Takes away this thread's, which so many runs would otherwise leave behind.
    ///
    /// # Safety
    /// Nobody holds what [`renew`](Self::renew) or [`shared`](SharedSource::shared) gave.
    pub unsafe fn retire() {
        if let Some(shared) = OF_THREAD.take() {
            // SAFETY: `renew` made it of a box, and nobody holds it.
            drop(unsafe { Box::from_raw(ptr::from_ref(shared).cast_mut()) });
        }
    }
}

#[cfg(feature = "model")]
impl SharedSource for SharedPerThread {
    const PREEMPTED_STAY: bool = false;

    fn shared() -> &'static Shared {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}

/// The same on a machine as riscv64.
#[cfg(all(feature = "model", feature = "preempted_stay"))]
pub struct SharedWherePreemptedStay;

#[cfg(all(feature = "model", feature = "preempted_stay"))]
impl SharedSource for SharedWherePreemptedStay {
    const PREEMPTED_STAY: bool = true;

    fn shared() -> &'static Shared {
        SharedPerThread::shared()
    }
}
