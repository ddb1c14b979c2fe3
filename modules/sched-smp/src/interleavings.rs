//! Tests that explore every order in which several CPUs can take the lock-free steps on
//! [`SmpState`]. They also explore every value that a CPU can read by its memory orders. [loom]
//! runs a scenario again and again until no other execution is left.
//!
//! The code is that of every build; with `--cfg loom` its atomics are loom's. The first scenarios
//! call `SmpState` as the layer does. The last ones call the layer itself, with the order of its
//! own code (setting a bit before looking).
//!
//! ONE ORDER: loom knows this much of `SeqCst`. No such load reads a store of this kind that
//! another has replaced in the order in which loom runs the threads. A word's first value is no
//! store (tokio-rs/loom#180). So where SEEN counts, the scenario first stores the words that SEEN
//! is about. If all accesses are `SeqCst`, as in the scenarios named after SEEN, that is what the
//! language promises. Beside weaker accesses it is more. In the other scenarios of `SmpState` no
//! word is stored before, and loom has less than the language promises.
//!
//! Not covered are:
//!
//! - more than three CPUs at once;
//! - in the layer's scenarios, which need SEEN, the cases for which ONE ORDER is too strong;
//! - a lost change of `not_asked`, which is stored in one place and changed in another (loom orders
//!   the two in more ways than there are);
//! - a load that takes effect after a later store of its CPU, which loom does not have;
//! - [`spin::Once`], which is written before all else.
//!
//! An interrupt comes at any time, and makes the earlier writes of its sender visible.

// This file is long because all scenarios share one machine of two or three CPUs.

use alloc::sync::Arc;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::AtomicUsize;

use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering::AcqRel, Ordering::Relaxed};
use loom::sync::{Mutex, MutexGuard};
use loom::thread;

use super::layer::WorkSharing;
use super::smp_state::{Machine, PostReason, Posted, SMP_STATE, SmpState};
use sched_core::base::BaseScheduler;
use sched_policies::fifo::{Fifo, FifoTask};

const CPUS: usize = 3;

loom::lazy_static! {
    /// The interrupts that are pending, for each CPU.
    static ref LINES: [AtomicBool; CPUS] = Default::default();
    /// The run queues, under their locks.
    static ref QUEUES: [Mutex<Queue>; CPUS] = Default::default();
}
loom::thread_local! {
    /// The CPU that a thread simulates.
    static THIS_CPU: Cell<usize> = Cell::new(0);
}

/// A run queue.
type Queue = WorkSharing<Fifo<Job>>;

/// The inner task.
struct Job {
    number: u32,
    /// The CPUs that it may run on (bit mask).
    may_run: u64,
    /// Its number, once it has been made. A CPU to which the task was handed over correctly sees
    /// it.
    memory: AtomicU32,
    /// The task that was sent before it.
    link: AtomicPtr<()>,
}

/// Runs a scenario in every order that there is, and prints the test's name and the number of
/// executions.
fn explore<F: Fn() + Send + Sync + 'static>(scenario: F) {
    // The name of the closure's type is `…::test::{{closure}}`.
    let name = core::any::type_name::<F>().rsplit("::").nth(1);
    let name = name.expect("a closure in a test");
    let executions = Arc::new(AtomicUsize::new(0));
    let counted = executions.clone();
    loom::model::Builder::new().check(move || {
        counted.fetch_add(1, Relaxed);
        scenario();
    });
    let executions = executions.load(Relaxed);
    println!("interleavings: {name}: {executions} executions");
}

fn machine() -> Machine {
    Machine {
        cpus: CPUS,
        this_cpu: || THIS_CPU.with(Cell::get),
        current: ptr::null,
        interrupt: |cpu| {
            LINES[cpu].swap(true, AcqRel);
        },
        join: || {},
        wait: core::hint::spin_loop,
        may_run: |job, cpu| {
            // SAFETY: `Machine` promises that the pointer is to such a task, and that it is alive.
            let job = unsafe { &*job.cast::<Job>() };
            job.may_run >> cpu & 1 != 0
        },
    }
}

/// Returns the state that the CPUs of this execution share, with each word stored once (ONE ORDER).
fn in_one_order() -> &'static SmpState {
    for cpu in 0..CPUS {
        SMP_STATE.set_waiting(cpu, 0);
    }
    SMP_STATE.request_task(0);
    SMP_STATE.take_request(0);
    &SMP_STATE
}

/// Runs two closures in two threads, of which this is one.
fn both<A, B: 'static>(a: impl FnOnce() -> A, b: impl FnOnce() -> B + 'static) -> (A, B) {
    let b = thread::spawn(b);
    (a(), b.join().expect("a CPU does not panic"))
}

/// Returns the reason for which the task of this number is posted.
fn post_reason_of(number: u32) -> PostReason {
    [PostReason::Woken, PostReason::New, PostReason::HandedOver][number as usize % 3]
}

/// Returns a handle as the layer posts it.
fn posted(number: u32) -> Posted {
    let job = Box::new(Job::new(number, u64::MAX));
    Posted {
        task: Box::into_raw(job).cast(),
        reason: post_reason_of(number),
    }
}

/// Takes the task of a handle, and returns its number.
fn taken(posted: Posted) -> u32 {
    // SAFETY: `posted` made the handle, and the task is never freed.
    let job = unsafe { &*posted.task.cast::<Job>() };
    assert_eq!(posted.reason, post_reason_of(job.number));
    job.seen()
}

impl Job {
    fn new(number: u32, may_run: u64) -> Self {
        let memory = AtomicU32::new(u32::MAX);
        memory.store(number, Relaxed);
        Self {
            number,
            may_run,
            memory,
            link: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Checks that this CPU sees the whole task, and returns its number.
    fn seen(&self) -> u32 {
        assert_eq!(self.memory.load(Relaxed), self.number, "half a task");
        self.number
    }
}

#[test]
fn seen_task_that_comes_while_another_cpu_requests() {
    explore(|| {
        let smp = in_one_order();
        let (sees, ()) = both(
            || {
                smp.set_waiting(0, 1);
                smp.requesting() == 1 << 1
            },
            || {
                smp.request_task(1);
                smp.ask_any(&machine(), 1);
            },
        );
        assert!(sees || smp.take_askers(0) == 1 << 1, "neither sees");
    });
}

#[test]
fn seen_tasks_come_to_two_cpus_while_a_third_requests_a_task() {
    explore(|| {
        let smp = in_one_order();
        let set_waiting = |cpu| {
            move || {
                smp.set_waiting(cpu, 1);
                smp.requesting() == 1 << 1
            }
        };
        let other = thread::spawn(set_waiting(2));
        let (sees, ()) = both(set_waiting(0), || {
            smp.request_task(1);
            smp.ask_any(&machine(), 1);
        });
        let both_see = sees & other.join().expect("a CPU does not panic");
        let asked = smp.take_askers(0) | smp.take_askers(2);
        assert!(both_see || asked == 1 << 1, "neither sees");
    });
}

/// Makes CPU 2 request a task again and again, and returns the tasks that it was posted.
fn take_posts(smp: &SmpState, times: u32) -> Vec<u32> {
    let mut tasks = Vec::new();
    for _ in 0..times {
        if let Some(task) = smp.take_post(2) {
            tasks.push(taken(task));
            smp.request_task(2);
        }
    }
    tasks
}

/// Posts a task to CPU 2 if it has an open request, and returns the task's number.
fn answer_request(smp: &SmpState, number: u32) -> Option<u32> {
    smp.take_request(2).then(|| {
        smp.post(&machine(), 2, posted(number));
        number
    })
}

#[test]
fn request_that_two_cpus_answer_with_one_task() {
    explore(|| {
        let smp = &*SMP_STATE;
        smp.request_task(2);
        let (one, other) = both(|| answer_request(smp, 1), || answer_request(smp, 2));
        assert!(one.is_some() != other.is_some(), "{one:?}, {other:?}");
        assert_eq!(smp.take_post(2).map(taken), one.or(other));
        assert_eq!(smp.take_post(2), None);
    });
}

#[test]
fn request_that_two_cpus_answer_while_a_third_takes() {
    explore(|| {
        let smp = &*SMP_STATE;
        smp.request_task(2);
        let giver = thread::spawn(|| [answer_request(smp, 1), answer_request(smp, 2)]);
        let (early, last) = both(|| take_posts(smp, 2), || answer_request(smp, 3));
        let of_first = giver.join().expect("a CPU does not panic");
        let mut given: Vec<_> = of_first.into_iter().chain([last]).flatten().collect();
        let mut tasks = early;
        tasks.extend(take_posts(smp, 2));
        given.sort_unstable();
        tasks.sort_unstable();
        assert_eq!(tasks, given);
    });
}

#[test]
fn request_that_is_withdrawn() {
    explore(|| {
        let smp = &*SMP_STATE;
        smp.request_task(2);
        let giver = thread::spawn(|| answer_request(smp, 1));
        let (is_withdrawn, other) = both(|| smp.take_request(2), || answer_request(smp, 2));
        let one = giver.join().expect("a CPU does not panic");
        let owed = one.or(other);
        let winners = [is_withdrawn, one.is_some(), other.is_some()];
        assert_eq!(winners.into_iter().filter(|wins| *wins).count(), 1);
        assert_eq!(smp.take_post(2).map(taken), owed);
    });
}

/// The requests and posts that CPU 0 has found, in the order in which the layer looks.
#[derive(Default)]
struct Found {
    askers: Vec<u64>,
    tasks: Vec<u32>,
}

impl Found {
    /// Looks for requests and posts, as at a tick.
    fn look(&mut self, smp: &SmpState) {
        smp.was_interrupted(0);
        self.tasks.extend(smp.take_post(0).map(taken));
        match smp.take_askers(0) {
            0 => {}
            askers => self.askers.push(askers),
        }
    }

    /// Takes an IPI if one is pending, and returns true if so.
    fn take_ipi(&mut self, smp: &SmpState) -> bool {
        let is_pending = LINES[0].swap(false, AcqRel);
        if is_pending {
            self.look(smp);
        }
        is_pending
    }
}

/// Interrupts CPU 0, which may tick once, while two others leave something for it. At the end it takes the IPIs that are
/// still pending.
fn interrupt_beside_senders(ticks: bool, other: fn(&SmpState) -> Option<u32>) {
    let smp = &*SMP_STATE;
    smp.request_task(2);
    let asker = thread::spawn(|| smp.ask(&machine(), 0, 1));
    let (mut found, number) = both(
        || {
            let mut found = Found::default();
            if ticks {
                found.look(smp);
            }
            found.take_ipi(smp);
            found
        },
        move || other(smp),
    );
    asker.join().expect("a CPU does not panic");
    while found.take_ipi(smp) {}
    let askers: u64 = found.askers.iter().sum();
    let expected = if number.is_some() {
        1 << 1
    } else {
        1 << 1 | 1 << 2
    };
    assert_eq!(askers, expected, "a request is lost, or comes twice");
    assert_eq!(found.tasks, Vec::from_iter(number), "a post is overlooked");
    assert!(!smp.was_interrupted(0), "the next sender will send no IPI");
}

fn ask_for_cpu_2(smp: &SmpState) -> Option<u32> {
    smp.ask(&machine(), 0, 2);
    None
}

fn post_to_cpu_0(smp: &SmpState) -> Option<u32> {
    smp.post(&machine(), 0, posted(3));
    Some(3)
}

#[test]
fn level_interrupts_with_requests() {
    explore(|| interrupt_beside_senders(false, ask_for_cpu_2));
}

#[test]
fn level_interrupts_with_a_request_and_a_post() {
    explore(|| interrupt_beside_senders(false, post_to_cpu_0));
}

#[test]
fn level_interrupts_with_a_request_a_post_and_ticks() {
    explore(|| interrupt_beside_senders(true, post_to_cpu_0));
}

#[test]
fn requests_none_is_lost() {
    explore(|| {
        let smp = &*SMP_STATE;
        let one = thread::spawn(|| smp.ask(&machine(), 0, 1));
        let (mut askers, ()) = both(
            || vec![smp.take_askers(0), smp.take_askers(0)],
            || smp.ask(&machine(), 0, 2),
        );
        one.join().expect("a CPU does not panic");
        askers.push(smp.take_askers(0));
        assert_eq!(askers.iter().sum::<u64>(), 1 << 1 | 1 << 2);
    });
}

/// Passes on the request of CPU 0 if this CPU was asked: it has no task that may run there.
fn pass_on_request(smp: &SmpState, cpu: usize) -> bool {
    let asked = smp.take_askers(cpu) & smp.requesting() != 0;
    if asked {
        smp.ask_next(&machine(), 0);
    }
    asked
}

#[test]
fn requests_are_passed_on() {
    explore(|| {
        let smp = &*SMP_STATE;
        smp.set_waiting(1, 2);
        smp.set_waiting(2, 1);
        let request = || {
            smp.request_task(0);
            smp.ask_any(&machine(), 0);
        };
        let (mut asked, two) = both(
            || {
                request();
                [false, pass_on_request(smp, 1), false]
            },
            || {
                // Rule 5: a CPU with waiting tasks looks for requests at its tick.
                if smp.requesting() == 1 {
                    smp.ask_next(&machine(), 0);
                }
                pass_on_request(smp, 2)
            },
        );
        asked[2] |= two;
        // From here on only IPIs are left.
        while let Some(cpu) = (1..CPUS).find(|&cpu| LINES[cpu].swap(false, AcqRel)) {
            smp.was_interrupted(cpu);
            asked[cpu] |= pass_on_request(smp, cpu);
        }
        assert_eq!(asked, [false, true, true], "a CPU was left out");
    });
}

#[test]
fn requests_are_passed_on_in_their_round() {
    explore(|| {
        let smp = &*SMP_STATE;
        smp.set_waiting(1, 2);
        smp.set_waiting(2, 1);
        smp.request_task(0);
        smp.ask_any(&machine(), 0);
        let (_, ()) = both(
            || pass_on_request(smp, 1),
            || {
                assert!(smp.take_request(0));
                smp.request_task(0);
                smp.ask_any(&machine(), 0);
            },
        );
        let mut asked = [false; CPUS];
        while let Some(cpu) = (1..CPUS).find(|&cpu| LINES[cpu].swap(false, AcqRel)) {
            smp.was_interrupted(cpu);
            asked[cpu] |= pass_on_request(smp, cpu);
        }
        assert!(asked[2], "a CPU was left out");
    });
}

/// Returns a handle as the layer sends it, and its link.
fn sent(number: u32) -> (Posted, &'static AtomicPtr<()>) {
    let posted = posted(number);
    // SAFETY: `posted` made the handle, and the task is never freed.
    let job = unsafe { &*posted.task.cast::<Job>() };
    (posted, &job.link)
}

/// Takes all tasks that were sent to CPU 2.
fn take_all_sent(smp: &SmpState) -> Vec<u32> {
    let mut tasks = Vec::new();
    let mut sent = smp.take_sent(2);
    while let Some(posted) = Posted::of_tagged(sent) {
        // SAFETY: `posted` made the handle, and the task is never freed.
        sent = unsafe { &*posted.task.cast::<Job>() }.link.load(Relaxed);
        tasks.push(taken(posted));
    }
    tasks
}

#[test]
fn sent_two_senders_and_a_taker() {
    explore(|| {
        let send = |number| {
            let (posted, link) = sent(number);
            SMP_STATE.send(&machine(), 2, posted, |before| link.store(before, Relaxed));
        };
        let sender = thread::spawn(move || [1, 2].map(send));
        let (mut tasks, ()) = both(|| take_all_sent(&SMP_STATE), move || send(3));
        sender.join().expect("a CPU does not panic");
        assert!(LINES[2].load(Relaxed), "no IPI is sent");
        tasks.extend(take_all_sent(&SMP_STATE));
        tasks.sort_unstable();
        assert_eq!(tasks, [1, 2, 3]);
    });
}

/// A CPU with the layer, and the task that it runs.
struct Layer {
    cpu: usize,
    current: Option<Arc<FifoTask<Job>>>,
}

/// Puts a new task into this CPU's queue.
fn enqueue_new(cpu: usize, number: u32, may_run: u64) {
    let task = Arc::new(FifoTask::new(Job::new(number, may_run)));
    queue(cpu).add_task(task);
}

fn queue(cpu: usize) -> MutexGuard<'static, Queue> {
    QUEUES[cpu].lock().expect("no CPU panics")
}

impl Layer {
    /// Returns a CPU that has found no task, simulated by this thread.
    fn idle(cpu: usize) -> Self {
        let mut layer = Self { cpu, current: None };
        layer.pick();
        layer
    }

    /// Returns a CPU that runs a task that is pinned to it.
    fn busy(cpu: usize, number: u32) -> Self {
        enqueue_new(cpu, number, 1 << cpu);
        Self::idle(cpu)
    }

    /// Makes this thread simulate the CPU from now on.
    fn here(&self) {
        THIS_CPU.with(|this| this.set(self.cpu));
    }

    fn pick(&mut self) {
        self.here();
        self.current = queue(self.cpu).pick_next_task();
    }

    /// Takes a timer tick or an IPI.
    fn tick(&mut self) {
        self.here();
        match &self.current {
            Some(task) => {
                queue(self.cpu).task_tick(task);
            }
            None => self.pick(),
        }
    }

    /// Takes an IPI if one is pending, and returns true if so.
    fn take_ipi(&mut self) -> bool {
        let is_pending = LINES[self.cpu].swap(false, AcqRel);
        if is_pending {
            self.tick();
        }
        is_pending
    }
}

/// Delivers all pending IPIs. Asserts that every CPU runs a task then, and that each of the `tasks`
/// tasks is in one place.
fn assert_none_idles(mut layers: Vec<Layer>, tasks: u32) {
    while layers.iter_mut().any(Layer::take_ipi) {}
    let mut numbers = Vec::new();
    for layer in &mut layers {
        assert!(layer.current.is_some(), "CPU {} idles", layer.cpu);
        while let Some(task) = layer.current.take() {
            numbers.push(task.inner().seen());
            layer.pick();
        }
    }
    numbers.sort_unstable();
    assert_eq!(numbers, Vec::from_iter(0..tasks));
}

/// Connects the layers to the machine.
fn connect_layers() {
    // SAFETY: all layers are those of `QUEUES`, with tasks that are `Job`s. Each is called by the
    // thread that simulates its CPU.
    unsafe { in_one_order().connect(machine()) };
}

#[test]
fn layer_a_task_comes_while_another_cpu_requests_a_task() {
    explore(|| {
        connect_layers();
        let mut busy = Layer::busy(0, 0);
        let (_, idle) = both(
            || {
                enqueue_new(0, 1, u64::MAX);
                busy.take_ipi()
            },
            || {
                let mut idle = Layer::idle(1);
                idle.take_ipi();
                idle
            },
        );
        assert_none_idles(vec![busy, idle], 2);
    });
}

#[test]
fn layer_tasks_come_to_an_idle_cpu_and_to_a_busy_one() {
    explore(|| {
        connect_layers();
        let mut idle = Layer::idle(1);
        let mut other = Layer::idle(2);
        let mut busy = Layer::busy(0, 0);
        let interrupted = thread::spawn(move || {
            idle.take_ipi();
            idle
        });
        let (_, other) = both(
            || {
                enqueue_new(0, 1, u64::MAX);
                busy.take_ipi()
            },
            || {
                other.here();
                enqueue_new(1, 2, u64::MAX);
                other.take_ipi();
                other
            },
        );
        let idle = interrupted.join().expect("a CPU does not panic");
        assert_none_idles(vec![busy, idle, other], 3);
    });
}

#[test]
fn layer_two_that_have_tasks_tick_while_a_third_requests_a_task() {
    explore(|| {
        connect_layers();
        let mut one = Layer::busy(0, 0);
        enqueue_new(0, 1, u64::MAX);
        let mut other = Layer::busy(1, 2);
        enqueue_new(1, 3, u64::MAX);
        let other = thread::spawn(move || {
            other.tick();
            other
        });
        let (_, idle) = both(
            || {
                one.tick();
            },
            || Layer::idle(2),
        );
        let other = other.join().expect("a CPU does not panic");
        assert_none_idles(vec![one, other, idle], 4);
    });
}

#[test]
fn layer_a_request_is_passed_on() {
    explore(|| {
        connect_layers();
        let mut one = Layer::busy(0, 0);
        enqueue_new(0, 1, 1 << 0);
        enqueue_new(0, 2, 1 << 0);
        let other = Layer::busy(1, 3);
        enqueue_new(1, 4, u64::MAX);
        let ((), idle) = both(
            || {
                one.take_ipi();
                one.take_ipi();
            },
            || Layer::idle(2),
        );
        assert_none_idles(vec![one, other, idle], 5);
    });
}

#[test]
fn layer_two_request_tasks_and_one_has_tasks() {
    explore(|| {
        connect_layers();
        let mut busy = Layer::busy(0, 0);
        enqueue_new(0, 1, u64::MAX);
        enqueue_new(0, 2, u64::MAX);
        let idle = Layer::idle(2);
        let (_, other) = both(|| busy.take_ipi(), || Layer::idle(1));
        assert_none_idles(vec![busy, other, idle], 3);
    });
}

#[test]
fn layer_a_task_is_posted_beside_an_interrupt_under_way() {
    explore(|| {
        connect_layers();
        let mut idle = Layer::idle(1);
        // A request that was made while CPU 1 had tasks.
        SMP_STATE.ask(&machine(), 1, 2);
        let mut busy = Layer::busy(0, 0);
        let (_, idle) = both(
            || {
                enqueue_new(0, 1, u64::MAX);
                busy.take_ipi()
            },
            || {
                idle.take_ipi();
                idle
            },
        );
        assert_none_idles(vec![busy, idle], 2);
    });
}
