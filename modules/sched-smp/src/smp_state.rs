//! The state that all queues share: requesting CPUs, requests and posts.

#[cfg(feature = "model")]
use alloc::boxed::Box;
use core::fmt;
use core::ptr;
/// No decision depends on a statistic, so loom need not explore it.
use core::sync::atomic::AtomicU64 as Statistic;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
#[cfg(not(all(test, loom)))]
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64};

use spin::Once;

/// The largest number of CPUs: the bits of a word.
pub const MAX_CPUS: usize = 64;

/// The machine, for the layer. Its functions are called in scheduler calls, with interrupts off and
/// a run queue's lock held. None of them may allocate, take a lock that is held while a scheduler
/// is called, or call a scheduler.
pub struct Machine {
    /// The number of CPUs, 1 to [`MAX_CPUS`].
    pub cpus: usize,
    /// Returns the calling CPU, from 0.
    pub this_cpu: fn() -> usize,
    /// Returns the current task of the calling CPU, idle or not: the address in its `Arc`.
    pub current: fn() -> *const (),
    /// Sends an IPI to this CPU, which may be the calling one. The handler does what a timer tick does, after which an idle
    /// task ([`SmpState::is_idle`]) picks again.
    pub interrupt: fn(usize),
    /// Tells that the calling CPU takes part from now on, and may be interrupted.
    pub join: fn(),
    /// Waits a moment. It is called each time that the calling CPU has waited for a lock for longer
    /// than one is held. If several CPUs share one of the host, it lets the others run, and returns
    /// by itself after a timer tick at the latest. No CPU wakes it, and a CPU that wants its run
    /// queue waits as long. Otherwise it is `core::hint::spin_loop`.
    pub wait: fn(),
    /// Returns true if a task may run on this CPU. The task is the one that the policy's task wraps.
    ///
    /// # Safety
    /// The pointer is to such a task, which is alive.
    pub may_run: unsafe fn(*const (), usize) -> bool,
}

/// The words of one CPU that the others write. They are aligned, so that no two CPUs share a cache line.
#[repr(align(64))]
#[cfg_attr(all(test, loom), derive(Default))]
struct Cpu {
    /// The number of waiting tasks in its queue, written under that queue's lock.
    waiting: AtomicU32,
    /// True if an IPI is pending.
    interrupted: AtomicBool,
    /// The number of IPIs that it was sent.
    interrupts: Statistic,
    /// True if its last pick found no task, written by that CPU.
    idles: AtomicBool,
    /// CPUs that have requested a task from this one (bit mask).
    asked_by: AtomicU64,
    /// CPUs not yet asked on behalf of this one (bit mask; rule 2).
    not_asked: AtomicU64,
    /// REQUEST: the task that answers its request. The lowest bits have the [`PostReason`].
    post: AtomicPtr<()>,
    /// The last task that was sent on to it (rule 7), with the same bits. Its link leads to the one
    /// before.
    sent: AtomicPtr<()>,
}

/// The state that the layers of a system share.
pub struct SmpState {
    machine: Once<Machine>,
    /// The requesting CPUs (bit mask).
    requesting: AtomicU64,
    /// The state of schedulers that share everything; null if there is none.
    common: AtomicPtr<()>,
    cpus: [Cpu; MAX_CPUS],
}

/// The reason why a task comes into a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostReason {
    /// It was blocked or migrated.
    Woken = 0,
    /// It has never been in a queue.
    New = 1,
    /// It waited in another queue.
    HandedOver = 2,
}

/// A task on its way to another CPU, as [`SmpState`] keeps it: the address that its `Arc` gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posted {
    pub task: *const (),
    pub reason: PostReason,
}

impl Posted {
    /// The bits of a task's address that are free.
    pub const TAG: usize = 3;

    /// Packs the handle into one word.
    fn tagged(self) -> *mut () {
        let tagged = self.task.map_addr(|at| at | self.reason as usize);
        tagged.cast_mut()
    }

    /// Unpacks such a word; null is no task.
    pub fn of_tagged(tagged: *mut ()) -> Option<Self> {
        let task = tagged.cast_const().map_addr(|at| at & !Self::TAG);
        let reason = match tagged.addr() & Self::TAG {
            0 => PostReason::Woken,
            1 => PostReason::New,
            _ => PostReason::HandedOver,
        };
        (!task.is_null()).then_some(Self { task, reason })
    }
}

impl SmpState {
    /// Creates the state of CPUs that are not connected.
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            machine: Once::new(),
            requesting: AtomicU64::new(0),
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

    /// Creates the state of CPUs that are not connected, with loom's atomics, which are no constants.
    #[cfg(all(test, loom))]
    pub fn new() -> Self {
        Self {
            machine: Once::new(),
            requesting: AtomicU64::new(0),
            common: AtomicPtr::default(),
            cpus: core::array::from_fn(|_| Cpu::default()),
        }
    }

    /// Connects the layers to this machine, on which they share the work from now on. Only the first call counts.
    ///
    /// # Panics
    /// If there are no CPUs, or more than [`MAX_CPUS`].
    ///
    /// # Safety
    /// - All layers that share this have one type of task, which is the one that
    ///   [`may_run`](Machine::may_run) takes.
    /// - No two of them belong to the same CPU.
    /// - Whenever a layer picks or is told of a tick, [`this_cpu`](Machine::this_cpu) returns the
    ///   CPU of its queue.
    pub unsafe fn connect(&self, machine: Machine) {
        assert!(
            (1..=MAX_CPUS).contains(&machine.cpus),
            "{} CPUs: expected 1 to {MAX_CPUS}",
            machine.cpus
        );
        self.machine.call_once(|| machine);
    }

    /// Returns true if this calling CPU runs its idle task. A scheduler is not told of that task's ticks.
    pub fn is_idle(&self, cpu: usize) -> bool {
        self.cpus[cpu].idles.load(SeqCst)
    }

    /// Returns the state that [`set_common`](Self::set_common) has set.
    pub fn common(&self) -> *const () {
        self.common.load(Acquire)
    }

    /// Sets the state of schedulers that share everything.
    pub fn set_common(&self, common: *mut ()) {
        self.common.store(common, Release);
    }

    /// Publishes whether this CPU idles (SEEN).
    pub fn set_idle(&self, cpu: usize, idles: bool) {
        self.cpus[cpu].idles.store(idles, SeqCst);
    }

    /// Returns the machine, if there is another CPU to share work with.
    #[inline]
    pub fn machine(&self) -> Option<&Machine> {
        self.machine.get().filter(|machine| machine.cpus > 1)
    }

    /// Makes this CPU request a task (rule 1, SEEN).
    pub fn request_task(&self, cpu: usize) {
        self.requesting.fetch_or(1 << cpu, SeqCst);
    }

    /// Returns the requesting CPUs (bit mask; SEEN).
    pub fn requesting(&self) -> u64 {
        self.requesting.load(SeqCst)
    }

    /// Takes the request of this CPU. Returns true if there was one; then the caller owes it a task, or is that CPU
    /// (REQUEST).
    pub fn take_request(&self, cpu: usize) -> bool {
        let bit = 1 << cpu;
        self.requesting.fetch_and(!bit, SeqCst) & bit != 0
    }

    /// Publishes the number of waiting tasks in this CPU's queue (SEEN).
    pub fn set_waiting(&self, cpu: usize, tasks: u32) {
        self.cpus[cpu].waiting.store(tasks, SeqCst);
    }

    /// Returns the number of waiting tasks in this CPU's queue.
    pub fn waiting(&self, cpu: usize) -> u32 {
        self.cpus[cpu].waiting.load(SeqCst)
    }

    /// Answers the request of a CPU, and interrupts it (REQUEST).
    ///
    /// # Panics
    /// If something is posted there already.
    pub fn post(&self, machine: &Machine, cpu: usize, posted: Posted) {
        let before = self.cpus[cpu].post.swap(posted.tagged(), AcqRel);
        assert!(before.is_null(), "REQUEST: CPU {cpu} was owed one task");
        self.interrupt(machine, cpu);
    }

    /// Takes the task that is posted to this calling CPU.
    pub fn take_post(&self, cpu: usize) -> Option<Posted> {
        let post = &self.cpus[cpu].post;
        if post.load(Relaxed).is_null() {
            return None;
        }
        Posted::of_tagged(post.swap(ptr::null_mut(), Acquire))
    }

    /// Sends a task to a CPU, whatever is on the way to it, and interrupts it (rule 7). Calls
    /// `links` with the target of the task's link, once or more often.
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

    /// Takes the tasks that were sent to this calling CPU. Returns the last one, which is the first
    /// of a chain, or null.
    pub fn take_sent(&self, cpu: usize) -> *mut () {
        let sent = &self.cpus[cpu].sent;
        match sent.load(Relaxed).is_null() {
            true => ptr::null_mut(),
            false => sent.swap(ptr::null_mut(), Acquire),
        }
    }

    /// Sends an IPI, if none is pending.
    pub fn interrupt(&self, machine: &Machine, cpu: usize) {
        if !self.cpus[cpu].interrupted.swap(true, AcqRel) {
            self.cpus[cpu].interrupts.fetch_add(1, Relaxed);
            (machine.interrupt)(cpu);
        }
    }

    /// Returns the number of IPIs that this CPU was sent by any CPU, itself included, since the
    /// layers were connected. It is exact if none is sent meanwhile. A lost IPI counts. One that
    /// was not sent, because another was pending, does not. The count costs an addition for each
    /// IPI.
    ///
    /// # Panics
    /// If `cpu` is not below [`MAX_CPUS`].
    pub fn interrupts(&self, cpu: usize) -> u64 {
        self.cpus[cpu].interrupts.load(Relaxed)
    }

    /// Returns true if this calling CPU was interrupted. The caller looks for requests and posts
    /// afterwards: later ones interrupt it again.
    pub fn was_interrupted(&self, cpu: usize) -> bool {
        let interrupted = &self.cpus[cpu].interrupted;
        interrupted.load(Relaxed) && interrupted.swap(false, AcqRel)
    }

    /// Asks the CPU with the most waiting tasks on behalf of a requesting one (rule 1).
    pub fn ask_any(&self, machine: &Machine, requester: usize) {
        let others = u64::MAX >> (MAX_CPUS - machine.cpus) & !(1 << requester);
        self.cpus[requester].not_asked.store(others, Relaxed);
        self.ask_next(machine, requester);
    }

    /// Asks the CPU with the most waiting tasks among those that were not asked, if any has tasks (rule 2).
    pub fn ask_next(&self, machine: &Machine, requester: usize) {
        let not_asked = self.cpus[requester].not_asked.load(Relaxed);
        let waiting = |cpu: &usize| self.cpus[*cpu].waiting.load(SeqCst);
        let candidates = (0..machine.cpus).filter(|cpu| not_asked >> cpu & 1 != 0);
        let Some(cpu) = candidates
            .max_by_key(waiting)
            .filter(|cpu| waiting(cpu) > 0)
        else {
            return;
        };
        self.cpus[requester]
            .not_asked
            .fetch_and(!(1 << cpu), Relaxed);
        self.ask(machine, cpu, requester);
    }

    /// Asks a CPU on behalf of another one.
    pub fn ask(&self, machine: &Machine, cpu: usize, requester: usize) {
        self.cpus[cpu].asked_by.fetch_or(1 << requester, AcqRel);
        self.interrupt(machine, cpu);
    }

    /// Takes the CPUs that have asked this one since the last call (bit mask).
    pub fn take_askers(&self, cpu: usize) -> u64 {
        let asked_by = &self.cpus[cpu].asked_by;
        match asked_by.load(Relaxed) {
            0 => 0,
            _ => asked_by.swap(0, AcqRel),
        }
    }
}

impl Default for SmpState {
    fn default() -> Self {
        Self::new()
    }
}

/// Formats one line for a report of a fault: for each CPU the number of waiting tasks in its queue,
/// and its words. The words are read one by one while the CPUs go on, so they may never have had
/// these values at the same time.
impl fmt::Display for SmpState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(machine) = self.machine() else {
            return f.write_str("not connected");
        };
        let requesting = self.requesting();
        for (cpu, words) in self.cpus.iter().enumerate().take(machine.cpus) {
            let waiting = words.waiting.load(SeqCst);
            let separator = if cpu == 0 { "" } else { "; " };
            write!(f, "{separator}CPU {cpu}: {waiting} waiting")?;
            for (is_so, word) in [
                (words.idles.load(SeqCst), "idle"),
                (requesting >> cpu & 1 != 0, "requesting"),
                (words.interrupted.load(Relaxed), "interrupted"),
                (!words.post.load(Relaxed).is_null(), "has a post"),
                (!words.sent.load(Relaxed).is_null(), "was sent tasks"),
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

/// The state that the system's layers share.
#[cfg(not(all(test, loom)))]
pub static SMP_STATE: SmpState = SmpState::new();
#[cfg(all(test, loom))]
loom::lazy_static! {
    /// The state that the system's layers share, new in each execution.
    pub static ref SMP_STATE: SmpState = SmpState::new();
}

/// Names the state that a layer shares with the others. It is a type and not a reference, because
/// the system's state is at a fixed address.
pub trait SmpStateSource {
    /// STAYS: a preempted task has to run next on the same CPU. On riscv64 the per-CPU base is in a
    /// register that a trap saves, and restores when the task goes on.
    const PREEMPTED_STAY: bool = cfg!(target_arch = "riscv64");

    /// Returns the shared state.
    fn smp_state() -> &'static SmpState;
}

/// The source of the system's layers: [`SMP_STATE`].
pub struct SystemSmpState;

impl SmpStateSource for SystemSmpState {
    #[inline(always)]
    fn smp_state() -> &'static SmpState {
        &SMP_STATE
    }
}

/// The source of tests. Each thread has a state, which can be renewed.
#[cfg(feature = "model")]
pub struct ThreadSmpState;

#[cfg(feature = "model")]
std::thread_local! {
    static OF_THREAD: core::cell::Cell<Option<&'static SmpState>> = const { core::cell::Cell::new(None) };
}

#[cfg(feature = "model")]
impl ThreadSmpState {
    /// Makes a new state for this thread and leaks it.
    pub fn renew() -> &'static SmpState {
        let smp = Box::leak(Box::default());
        OF_THREAD.set(Some(smp));
        smp
    }

    /// Frees the state of this thread, since many runs would otherwise leak one each.
    ///
    /// # Safety
    /// No reference from [`renew`](Self::renew) or [`smp_state`](SmpStateSource::smp_state) is used afterwards.
    pub unsafe fn retire() {
        if let Some(smp) = OF_THREAD.take() {
            // SAFETY: `renew` made it of a box, and the caller promises that no reference is left.
            drop(unsafe { Box::from_raw(ptr::from_ref(smp).cast_mut()) });
        }
    }
}

#[cfg(feature = "model")]
impl SmpStateSource for ThreadSmpState {
    const PREEMPTED_STAY: bool = false;

    fn smp_state() -> &'static SmpState {
        OF_THREAD.get().unwrap_or_else(Self::renew)
    }
}

/// The source of tests on a machine like riscv64.
#[cfg(all(feature = "model", feature = "preempted_stay"))]
pub struct ThreadSmpStatePinned;

#[cfg(all(feature = "model", feature = "preempted_stay"))]
impl SmpStateSource for ThreadSmpStatePinned {
    const PREEMPTED_STAY: bool = true;

    fn smp_state() -> &'static SmpState {
        ThreadSmpState::smp_state()
    }
}
