//! The tasks that serve domains: where they park, what they store, and which of them is the calling one.
//!
//! 1. **One waker.** A worker is one call of `block_on` for its whole life, and parks by returning pending. So there
//!    is one waker, and a park allocates nothing and frees nothing before the first coroutine runs. An unpark uses
//!    that waker. An unpark between the worker's last look for work and its park is not lost: a flag of the slot
//!    holds it.
//! 2. **One wake.** One of several unparks of a parked worker wakes it. The others do nothing, because `axtask`
//!    formats a name in each wake.
//! 3. **One CPU.** The worker of a number runs on one CPU: number + domain, modulo the number of CPUs. The workers
//!    share the domain's queues, so migration would gain nothing, and three things forbid it. A timer is looked at on
//!    the CPU on which it was set. The calling worker is looked up among those of a CPU. And `axtask` enqueues a
//!    woken task on the CPUs of its mask in turn, so a worker could wait behind a busy one while its own CPU is idle.
//! 4. **Time.** A tick of its CPU wakes a worker that is parked until a time that has passed, a tick late at most.
//!    That allocates nothing and needs no other clock. On the CPU of worker 0, the tick first wakes the coroutines
//!    that are due. So `sched_coop` sees how urgent they are, whether their worker waits for the time or for a CPU.
//! 5. **Stalls.** A tick that finds a worker blocked elsewhere has found a coroutine that calls a blocking function
//!    of `axtask`. It is counted, and the worker logs it afterwards.
//!
//! In each tick of a CPU, rules 4 and 5 look once at each of its workers, and at each domain's next time.

use alloc::string::String;
use core::future::poll_fn;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::*,
};
use core::task::{Poll, Waker};

use axcoop::{DOMAINS, Domain, DomainId, MAX_WORKERS, Served, Server};
use axhal::percpu::{current_task_ptr, this_cpu_id};
use axtask::{AxTaskRef, TaskInner, TaskState};
use kspin::SpinNoIrq;

/// The type that `axtask`'s references point to.
type AxTask = <AxTaskRef as Deref>::Target;

/// The value of `until_ns` while the worker waits for no time.
const NEVER: u64 = u64::MAX;

/// The state of a worker, which the next worker of its number takes over.
struct Slot {
    /// The worker's task, from its first to its last moment as a worker. It lives while it is stored here.
    task: AtomicPtr<AxTask>,
    /// The pointer that the task has stored. Only the task itself touches it.
    here: AtomicPtr<()>,
    parking: SpinNoIrq<Parking>,
    /// True while the task is in the executor, or in code that a coroutine calls. A task that leaves does not clear
    /// it: the next one may have the slot already.
    is_busy: AtomicBool,
    /// The time until which it is parked, in ns since boot.
    until_ns: AtomicU64,
    /// The number of ticks that found it stalled, and the number of those that it has logged.
    stalled: AtomicU32,
    logged: AtomicU32,
}

struct Parking {
    state: State,
    /// Rule 1: the waker of the current task, from its first park on.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// It is parked, or about to park.
    Waits,
    /// It was unparked, and has not seen that yet.
    Told,
}

static SLOTS: [[Slot; MAX_WORKERS]; DOMAINS] =
    [const { [const { Slot::new() }; MAX_WORKERS] }; DOMAINS];
/// The domains that have ever had a worker (bit mask), and the number of slots that each has used.
static SERVED: AtomicU8 = AtomicU8::new(0);
static NUMBERS: [AtomicUsize; DOMAINS] = [const { AtomicUsize::new(0) }; DOMAINS];

const _: () = assert!(DOMAINS <= u8::BITS as usize);

impl Slot {
    const fn new() -> Self {
        Self {
            task: AtomicPtr::new(ptr::null_mut()),
            here: AtomicPtr::new(ptr::null_mut()),
            parking: SpinNoIrq::new(Parking {
                state: State::Runs,
                waker: None,
            }),
            is_busy: AtomicBool::new(false),
            until_ns: AtomicU64::new(NEVER),
            stalled: AtomicU32::new(0),
            logged: AtomicU32::new(0),
        }
    }

    /// Gives the slot to the calling task. The previous task does not need it any more.
    fn begin(&self) {
        self.here.store(ptr::null_mut(), Relaxed);
        self.task
            .store(current_task_ptr::<AxTask>().cast_mut(), Relaxed);
        // The waker is dropped without the lock.
        let before = self.parking.lock().waker.take();
        drop(before);
    }

    /// Leaves the slot, unless the next task has it already.
    fn end(&self) {
        let me = current_task_ptr::<AxTask>().cast_mut();
        let left = self
            .task
            .compare_exchange(me, ptr::null_mut(), Relaxed, Relaxed);
        let waker = match left {
            Ok(_) => self.parking.lock().waker.take(),
            Err(_) => None,
        };
        drop(waker);
    }

    /// Returns ready if the worker was unparked.
    fn poll_parked(&self, waker: &Waker) -> Poll<()> {
        let mut parking = self.parking.lock();
        match parking.state {
            State::Told => {
                parking.state = State::Runs;
                Poll::Ready(())
            }
            State::Runs => {
                parking.state = State::Waits;
                parking.waker.get_or_insert_with(|| waker.clone());
                Poll::Pending
            }
            State::Waits => Poll::Pending,
        }
    }

    fn unpark(&self) {
        let waker = {
            let mut parking = self.parking.lock();
            match core::mem::replace(&mut parking.state, State::Told) {
                State::Waits => parking.waker.clone(),
                State::Runs | State::Told => None,
            }
        };
        // Not with the lock: a wake takes the lock of a run queue, and may spin until a task has left its CPU.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Handles a tick, in the timer's interrupt on its CPU.
    fn handle_tick(&self, now_ns: u64) {
        let task = self.task.load(Relaxed);
        if task.is_null() {
            return;
        }
        if self.until_ns.load(Relaxed) <= now_ns {
            self.until_ns.store(NEVER, Relaxed);
            self.unpark();
        }
        // SAFETY: the task lives until it has left the slot, which it does on this CPU (rule 3), and so not during
        // this interrupt.
        if self.is_busy.load(Relaxed) && unsafe { &*task }.state() == TaskState::Blocked {
            self.stalled.fetch_add(1, Relaxed);
        }
    }
}

fn slot(domain: DomainId, number: usize) -> &'static Slot {
    &SLOTS[domain.index()][number]
}

/// Returns the CPU of a worker (rule 3).
fn cpu_of(domain: DomainId, number: usize) -> usize {
    (domain.index() + number) % axhal::cpu_num()
}

/// Returns the slots of a CPU that were ever used (rule 3).
#[inline]
fn slots_of(cpu: usize) -> impl Iterator<Item = &'static Slot> {
    let (cpus, served) = (axhal::cpu_num(), SERVED.load(Relaxed));
    (0..DOMAINS)
        .filter(move |domain| served >> domain & 1 != 0)
        .flat_map(move |domain| {
            let first = (cpu + cpus - domain % cpus) % cpus;
            let used = NUMBERS[domain].load(Relaxed);
            (first..used)
                .step_by(cpus)
                .map(move |number| &SLOTS[domain][number])
        })
}

/// Returns the open domains whose worker 0 runs on this CPU (rule 4).
fn domains_of(cpu: usize) -> impl Iterator<Item = &'static Domain> {
    let served = SERVED.load(Relaxed);
    (0..DOMAINS)
        .filter(move |domain| served >> domain & 1 != 0)
        .map(DomainId::new)
        .filter(move |&domain| cpu_of(domain, 0) == cpu)
        .filter_map(Domain::of)
}

/// Returns the slot of the calling task, if it is a worker.
#[inline]
fn current() -> Option<&'static Slot> {
    let task = current_task_ptr::<AxTask>().cast_mut();
    // A worker stays on its CPU; a task that migrates is not found.
    slots_of(this_cpu_id()).find(|slot| slot.task.load(Relaxed) == task)
}

/// Returns the pointer that the calling worker has stored, or null in any other task.
#[inline]
pub fn here() -> *const () {
    current().map_or(ptr::null(), |slot| slot.here.load(Relaxed))
}

/// Stores a pointer for the calling worker. A worker that leaves may be preempted after its number is free again, and
/// the next worker may then take the slot. In that case nothing is stored.
pub fn set_here(here: *const ()) {
    match current() {
        Some(slot) => slot.here.store(here.cast_mut(), Relaxed),
        None => assert!(here.is_null(), "only a worker of ours remembers anything"),
    }
}

/// Wakes the worker, or makes its next park return at once.
pub fn unpark(domain: DomainId, number: usize) {
    slot(domain, number).unpark();
}

/// Returns the number of ticks that found workers of this domain stalled (rule 5).
pub fn stalled_ticks(domain: DomainId) -> u64 {
    let used = NUMBERS[domain.index()].load(Relaxed);
    SLOTS[domain.index()][..used]
        .iter()
        .map(|slot| u64::from(slot.stalled.load(Relaxed)))
        .sum()
}

/// Makes a task that will be the worker of this number.
pub fn task(id: DomainId, number: usize, stack_bytes: usize) -> TaskInner {
    include_slots(id, number);
    let name = match crate::worker_names::name(id) {
        "" => String::new(),
        domain => alloc::format!("{domain}/{number}"),
    };
    let task = TaskInner::new(move || serve(id, number), name, stack_bytes);
    task.set_cpumask(axtask::AxCpuMask::one_shot(cpu_of(id, number)));
    task
}

/// Runs the worker of this number on the calling task, until fewer workers are requested. Meanwhile the task is pinned
/// to that worker's CPU (rule 3). Under `sched_coop` it is as urgent as the domain.
pub fn serve_here(id: DomainId, number: usize) {
    include_slots(id, number);
    let previous_mask = axtask::current().cpumask();
    let is_set = axtask::set_current_affinity(axtask::AxCpuMask::one_shot(cpu_of(id, number)));
    assert!(is_set, "a worker has a CPU");
    serve(id, number);
    crate::policy::withdraw_domain();
    axtask::set_current_affinity(previous_mask);
}

/// Includes the slots of the domain up to this number in the ticks.
fn include_slots(domain: DomainId, number: usize) {
    NUMBERS[domain.index()].fetch_max(number + 1, Relaxed);
    SERVED.fetch_or(1 << domain.index(), Relaxed);
}

/// Serves the domain on the calling task until it leaves.
fn serve(domain: DomainId, number: usize) {
    let slot = slot(domain, number);
    watch_ticks();
    crate::policy::announce_domain(domain);
    slot.begin();
    let mut server = Server::new(domain, number);
    let mut is_parked = false;
    axtask::future::block_on(poll_fn(|context| {
        loop {
            // Returns at once if it was unparked since its last park.
            if is_parked && slot.poll_parked(context.waker()).is_pending() {
                return Poll::Pending;
            }
            slot.until_ns.store(NEVER, Relaxed);
            slot.is_busy.store(true, Relaxed);
            let Served::Waits { until } = server.run() else {
                return Poll::Ready(());
            };
            is_parked = true;
            slot.prepare_park(domain, number, until);
        }
    }));
    slot.end();
}

impl Slot {
    /// Prepares to park.
    fn prepare_park(&self, domain: DomainId, number: usize, until_ns: Option<u64>) {
        self.is_busy.store(false, Relaxed);
        self.log_stalls(domain, number);
        self.until_ns.store(until_ns.unwrap_or(NEVER), Relaxed);
    }

    /// Logs new stalls (rule 5).
    fn log_stalls(&self, domain: DomainId, number: usize) {
        let stalled = self.stalled.load(Relaxed);
        let logged = self.logged.swap(stalled, Relaxed);
        if stalled != logged {
            log::warn!(
                "worker {number} of domain {}: a coroutine called a blocking function, and all others \
                 of this worker waited for {} ticks; use the asynchronous one",
                crate::worker_names::name(domain),
                stalled.wrapping_sub(logged),
            );
        }
    }
}

/// Makes each tick of this CPU look at its workers. Called on that CPU.
fn watch_ticks() {
    static WATCHED: AtomicU64 = AtomicU64::new(0);
    let cpu = this_cpu_id();
    if WATCHED.fetch_or(1 << cpu, Relaxed) >> cpu & 1 == 0 {
        axtask::register_timer_callback(move |_| {
            let now_ns = axhal::time::monotonic_time_nanos();
            domains_of(cpu).for_each(Domain::clock_ticked);
            slots_of(cpu).for_each(|slot| slot.handle_tick(now_ns));
        });
    }
}
