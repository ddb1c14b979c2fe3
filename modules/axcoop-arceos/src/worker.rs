//! The tasks that serve domains: where they wait, what they remember, and which of them is here.
//!
//! 1. **One waker.** A worker is one call of `block_on` from its first moment to its last, and waits by not
//!    being ready: so there is one waker, for its life, and no wait allocates anything or has anything to give
//!    back before the first coroutine runs. Who unparks a worker makes no other: it has that one. And an unpark
//!    between the worker's last look for work and its wait is not lost: the place says so.
//! 2. **One wake.** Of all that unpark a worker which waits one wakes it. The others do nothing, as
//!    `axtask` formats a name in each wake.
//! 3. **One CPU.** The worker of a number runs on one CPU: number + domain, modulo the number of CPUs.
//!    The domain's queues are what its workers share, so a worker that moves would share nothing
//!    more, and three things need it to stay. A timer is looked at on the CPU that it was set on; who
//!    a task is, is looked up among those of a CPU; and `axtask` puts a task that it wakes into the
//!    queues of all CPUs where it may run in turn, so that a worker could be behind a busy one while its own
//!    idles.
//! 4. **Time.** A tick of its CPU wakes a worker that waits until a time that has come: after it, by
//!    a tick at most. That allocates nothing, and no other clock is needed. Before, on the CPU of
//!    worker 0, the tick wakes the coroutines that are due: so `sched_coop` sees how urgent they are,
//!    whether their worker waits for the time or for a CPU.
//! 5. **Stalls.** A tick that finds a worker blocked which does not wait here has found a coroutine
//!    that calls a blocking function of `axtask`. It is counted, and the worker says so when
//!    it is through.
//!
//! Rules 4 and 5 are one look at each worker of the CPU, and at each domain's next time, in each of its
//! ticks.

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

/// What `axtask`'s references are of.
type AxTask = <AxTaskRef as Deref>::Target;

/// Nothing to wait for.
const NEVER: u64 = u64::MAX;

/// A worker's place, which the next one of its number takes over.
struct Slot {
    /// The task, from its first moment as a worker to its last; it lives as long.
    task: AtomicPtr<AxTask>,
    /// What it has remembered. Only ever touched by the task itself.
    here: AtomicPtr<()>,
    parking: SpinNoIrq<Parking>,
    /// Whether it is in the executor, or anything that a coroutine calls. A task that leaves lets it be: the
    /// next one may have the place already.
    is_busy: AtomicBool,
    /// Until when it waits, in ns since boot.
    until_ns: AtomicU64,
    /// How many ticks found it stalled, and how many of them it has told of.
    stalled: AtomicU32,
    told: AtomicU32,
}

struct Parking {
    state: State,
    /// Rule 1. Of the task that has the place now, from its first wait on.
    waker: Option<Waker>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Runs,
    /// It waits, or is about to.
    Waits,
    /// It was told not to, and has not seen it yet.
    Told,
}

static SLOTS: [[Slot; MAX_WORKERS]; DOMAINS] =
    [const { [const { Slot::new() }; MAX_WORKERS] }; DOMAINS];
/// The domains that have ever had a worker, bit by bit, and how many numbers of each were used.
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
            told: AtomicU32::new(0),
        }
    }

    /// A task takes it; the one before has nothing to do any more.
    fn begins(&self) {
        self.here.store(ptr::null_mut(), Relaxed);
        self.task
            .store(current_task_ptr::<AxTask>().cast_mut(), Relaxed);
        // Dropped without the lock.
        let before = self.parking.lock().waker.take();
        drop(before);
    }

    /// The task leaves it, unless the next one has it already.
    fn ends(&self) {
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

    /// Ready when it was told to go on.
    fn waits(&self, waker: &Waker) -> Poll<()> {
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
        // Not with the lock: this takes that of a run queue, and may spin until a task has left its CPU.
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// In the timer's interrupt, on its CPU.
    fn ticks(&self, now_ns: u64) {
        let task = self.task.load(Relaxed);
        if task.is_null() {
            return;
        }
        if self.until_ns.load(Relaxed) <= now_ns {
            self.until_ns.store(NEVER, Relaxed);
            self.unpark();
        }
        // SAFETY: it lives until it has left the place, which it does on this CPU (rule 3), and so
        // not during this interrupt.
        if self.is_busy.load(Relaxed) && unsafe { &*task }.state() == TaskState::Blocked {
            self.stalled.fetch_add(1, Relaxed);
        }
    }
}

fn slot(domain: DomainId, number: usize) -> &'static Slot {
    &SLOTS[domain.index()][number]
}

/// Rule 3.
fn cpu_of(domain: DomainId, number: usize) -> usize {
    (domain.index() + number) % axhal::cpu_num()
}

/// Rule 3: the places of a CPU that were ever used.
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

/// Rule 4: the open domains whose worker 0 is of this CPU.
fn domains_of(cpu: usize) -> impl Iterator<Item = &'static Domain> {
    let served = SERVED.load(Relaxed);
    (0..DOMAINS)
        .filter(move |domain| served >> domain & 1 != 0)
        .map(DomainId::new)
        .filter(move |&domain| cpu_of(domain, 0) == cpu)
        .filter_map(Domain::of)
}

/// The place of the task that calls, if it is a worker.
#[inline]
fn current() -> Option<&'static Slot> {
    let task = current_task_ptr::<AxTask>().cast_mut();
    // A worker stays on its CPU; a task that does not is found nowhere.
    slots_of(this_cpu_id()).find(|slot| slot.task.load(Relaxed) == task)
}

/// What the calling task has remembered, if it is a worker; null for any other.
#[inline]
pub fn here() -> *const () {
    current().map_or(ptr::null(), |slot| slot.here.load(Relaxed))
}

/// Has the calling task, which is a worker, remember this. One that leaves may have been preempted after its
/// number was free again, and the next one have taken the place: then it remembers nothing already.
pub fn set_here(here: *const ()) {
    match current() {
        Some(slot) => slot.here.store(here.cast_mut(), Relaxed),
        None => assert!(here.is_null(), "only a worker of ours remembers anything"),
    }
}

/// Wakes the worker, or has it not wait the next time.
pub fn unpark(domain: DomainId, number: usize) {
    slot(domain, number).unpark();
}

/// How many ticks of their CPUs found workers of this domain stalled (rule 5).
pub fn stalled_ticks(domain: DomainId) -> u64 {
    let used = NUMBERS[domain.index()].load(Relaxed);
    SLOTS[domain.index()][..used]
        .iter()
        .map(|slot| u64::from(slot.stalled.load(Relaxed)))
        .sum()
}

/// A task that will be the worker of this number.
pub fn task(id: DomainId, number: usize, stack_bytes: usize) -> TaskInner {
    uses(id, number);
    let name = match crate::said::name(id) {
        "" => String::new(),
        domain => alloc::format!("{domain}/{number}"),
    };
    let task = TaskInner::new(move || serve(id, number), name, stack_bytes);
    task.set_cpumask(axtask::AxCpuMask::one_shot(cpu_of(id, number)));
    task
}

/// Has the calling task be the worker of this number until there shall be fewer. As long it is on the CPU
/// of that number (rule 3), and under `sched_coop` as urgent as the domain.
pub fn serve_here(id: DomainId, number: usize) {
    uses(id, number);
    let where_it_may_run = axtask::current().cpumask();
    let goes = axtask::set_current_affinity(axtask::AxCpuMask::one_shot(cpu_of(id, number)));
    assert!(goes, "a worker has a CPU");
    serve(id, number);
    crate::policy::serves_none();
    axtask::set_current_affinity(where_it_may_run);
}

/// From now on the places of the domain up to this number are looked at.
fn uses(domain: DomainId, number: usize) {
    NUMBERS[domain.index()].fetch_max(number + 1, Relaxed);
    SERVED.fetch_or(1 << domain.index(), Relaxed);
}

/// What a worker does from its first moment to its last.
fn serve(domain: DomainId, number: usize) {
    let slot = slot(domain, number);
    watch_ticks();
    crate::policy::serves(domain);
    slot.begins();
    let mut server = Server::new(domain, number);
    let mut waits = false;
    axtask::future::block_on(poll_fn(|context| {
        loop {
            // Not at all if it was unparked since it waited last.
            if waits && slot.waits(context.waker()).is_pending() {
                return Poll::Pending;
            }
            slot.until_ns.store(NEVER, Relaxed);
            slot.is_busy.store(true, Relaxed);
            let Served::Waits { until } = server.run() else {
                return Poll::Ready(());
            };
            waits = true;
            slot.will_wait(domain, number, until);
        }
    }));
    slot.ends();
}

impl Slot {
    /// It has nothing to do.
    fn will_wait(&self, domain: DomainId, number: usize, until_ns: Option<u64>) {
        self.is_busy.store(false, Relaxed);
        self.tells(domain, number);
        self.until_ns.store(until_ns.unwrap_or(NEVER), Relaxed);
    }

    /// Rule 5.
    fn tells(&self, domain: DomainId, number: usize) {
        let stalled = self.stalled.load(Relaxed);
        let told = self.told.swap(stalled, Relaxed);
        if stalled != told {
            log::warn!(
                "worker {number} of domain {}: a coroutine called a blocking function, and all others \
                 of this worker waited for {} ticks; use the asynchronous one",
                crate::said::name(domain),
                stalled.wrapping_sub(told),
            );
        }
    }
}

/// Has each tick of this CPU look at the workers here. Called on it.
fn watch_ticks() {
    static WATCHED: AtomicU64 = AtomicU64::new(0);
    let cpu = this_cpu_id();
    if WATCHED.fetch_or(1 << cpu, Relaxed) >> cpu & 1 == 0 {
        axtask::register_timer_callback(move |_| {
            let now_ns = axhal::time::monotonic_time_nanos();
            domains_of(cpu).for_each(Domain::clock_ticked);
            slots_of(cpu).for_each(|slot| slot.ticks(now_ns));
        });
    }
}
