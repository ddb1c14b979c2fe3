//! The layer that balances several CPUs, call by call: what the [model](axsched_ext::model) does not play, or
//! plays so seldom that no test of it would miss the rule.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::balance::{
    Balanced, Machine, SharedPerThread, SharedSource, SharedWherePreemptedStay, simulated_machine,
};
use axsched_ext::fifo::Fifo;
use axsched_ext::task::Task;

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    /// A step of another CPU, taken the next time that one asks where a task may run.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

type Layer = Balanced<Fifo<u64>, SharedPerThread>;

/// A task that may run on these CPUs, a bit each.
type Job = Task<u64, ()>;

fn task(mask: u64) -> Arc<Job> {
    Arc::new(Job::new(mask))
}

/// From now on the layers of this thread are of so many CPUs.
fn connect(cpus: usize) {
    CPU.set(0);
    CURRENT.set(ptr::null());
    SENT.take();
    let machine = Machine {
        this_cpu: || CPU.get(),
        current: || CURRENT.get(),
        interrupt: |cpu| SENT.with_borrow_mut(|sent| sent.push(cpu)),
        // SAFETY: it is one of the tasks above.
        may_run: |task, cpu| unsafe {
            if let Some(act) = MEANWHILE.take() {
                act();
            }
            *task.cast::<u64>() >> cpu & 1 != 0
        },
        ..simulated_machine(cpus)
    };
    // SAFETY: only the layers of one test share it, one for each CPU, and all are of one type.
    unsafe { SharedPerThread::renew().connect(machine) };
}

/// A layer of the first CPU, which a tick has hit while it ran main, who was not picked.
fn hit_by_a_tick(main: &Arc<Job>) -> Layer {
    let mut layer = Layer::new();
    CURRENT.set(Arc::as_ptr(main).cast());
    layer.task_tick(main);
    layer
}

/// WANTED. `axtask` takes a queue's lock for a put and once more for the pick, and another CPU may put a
/// task there in between, which the model does not play.
#[test]
fn who_is_picked_after_a_wake_that_came_between_put_and_pick_is_wanted_elsewhere() {
    connect(2);
    let (mut first, mut second) = (Layer::new(), Layer::new());
    let (anywhere, here) = (task(0b11), task(0b01));
    assert!(first.pick_next_task().is_none());
    first.add_task(anywhere.clone());
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &anywhere));
    CPU.set(1);
    assert!(second.pick_next_task().is_none());
    CPU.set(0);
    CURRENT.set(Arc::as_ptr(&anywhere).cast());
    first.put_prev_task(anywhere.clone(), false);
    CPU.set(1);
    CURRENT.set(ptr::null());
    first.put_prev_task(here.clone(), false);
    CPU.set(0);
    CURRENT.set(Arc::as_ptr(&anywhere).cast());
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &anywhere));
    assert_eq!(SENT.take(), []);
    first.put_prev_task(anywhere.clone(), false);
    assert_eq!(SENT.take(), [0]);
    assert!(Arc::ptr_eq(&first.pick_next_task().unwrap(), &here));
    CURRENT.set(Arc::as_ptr(&here).cast());
    assert!(!first.task_tick(&here));
    assert_eq!(SENT.take(), [1]);
    CPU.set(1);
    assert!(Arc::ptr_eq(&second.pick_next_task().unwrap(), &anywhere));
    let shared = SharedPerThread::shared().to_string();
    assert!(
        shared.starts_with("CPU 0: 0 waiting; CPU 1: 0 waiting"),
        "{shared}"
    );
}

/// Rule 7: to one that idles, though it comes after one that is busy and has nobody waiting; with one
/// interrupt; and what it is owed it takes back.
#[test]
fn rule_7_sends_to_one_that_idles_with_one_interrupt() {
    connect(3);
    let [mut busy, mut sends, mut idle] = [Layer::new(), Layer::new(), Layer::new()];
    let runs = |layer: &mut Layer, cpu, task: &Arc<Job>| {
        CPU.set(cpu);
        assert!(layer.pick_next_task().is_none());
        layer.add_task(task.clone());
        assert!(Arc::ptr_eq(&layer.pick_next_task().unwrap(), task));
    };
    let (other, another, woken) = (task(0b111), task(0b111), task(0b101));
    runs(&mut busy, 0, &other);
    runs(&mut sends, 1, &another);
    CPU.set(2);
    assert!(idle.pick_next_task().is_none());
    SENT.take();
    CPU.set(1);
    CURRENT.set(Arc::as_ptr(&another).cast());
    sends.put_prev_task(woken.clone(), false);
    assert_eq!(SENT.take(), [2]);
    CPU.set(2);
    CURRENT.set(ptr::null());
    assert!(Arc::ptr_eq(&idle.pick_next_task().unwrap(), &woken));
    assert_eq!(SENT.take(), []);
    let shared = SharedPerThread::shared().to_string();
    assert!(shared.ends_with("CPU 2: 0 waiting"), "{shared}");
}

/// Rule 7. Two are sent to a CPU that idles. While they are on the way another begins to idle, which may
/// have one of them, and finds nobody waiting anywhere.
#[test]
fn rule_7_who_is_sent_and_cannot_run_at_once_is_told_of() {
    connect(3);
    let main = task(0b001);
    let mut sends = hit_by_a_tick(&main);
    let [mut idle, mut busy] = [Layer::new(), Layer::new()];
    CPU.set(2);
    busy.add_task(task(0b100));
    assert!(busy.pick_next_task().is_some());
    CPU.set(1);
    assert!(idle.pick_next_task().is_none());
    CPU.set(0);
    sends.add_task(task(0b110));
    sends.add_task(task(0b010)); // the last comes first
    CPU.set(2);
    assert!(busy.pick_next_task().is_none(), "who had it blocks");

    SENT.take();
    CPU.set(1);
    assert_eq!(
        idle.pick_next_task().as_deref().map(|task| **task),
        Some(0b010)
    );
    // To hand the other one over as soon as it has been left.
    assert_eq!(SENT.take(), [1]);
    let shared = SharedPerThread::shared().to_string();
    assert!(
        shared.contains("CPU 1: 1 waiting, interrupted, asked by 0b100"),
        "{shared}"
    );
}

/// WANTED. Main has the CPU without having been picked, gives it to one that may run there only, and another
/// CPU idles.
#[test]
fn who_was_not_picked_and_gives_way_is_handed_over_as_soon_as_it_has_been_left() {
    connect(2);
    let main = task(0b11);
    let (mut first, mut second) = (hit_by_a_tick(&main), Layer::new());
    CPU.set(1);
    assert!(second.pick_next_task().is_none());
    CPU.set(0);
    first.add_task(task(0b01));
    SENT.take();
    first.put_prev_task(main, false);
    assert_eq!(SENT.take(), [0]);
}

/// One CPU of a test, and the task that it runs.
struct Cpu<M = SharedPerThread> {
    layer: Balanced<Fifo<u64>, M>,
    number: usize,
    runs: Option<Arc<Job>>,
}

impl<M: SharedSource> Cpu<M> {
    /// A CPU that idles and is hungry.
    fn idle(number: usize) -> Self {
        let mut cpu = Self {
            layer: Balanced::new(),
            number,
            runs: None,
        };
        assert!(cpu.pick().is_none());
        cpu
    }

    /// A CPU that runs a task of its own.
    fn busy(number: usize) -> Self {
        let mut cpu = Self::idle(number);
        cpu.layer.add_task(task(1 << number));
        cpu.pick().expect("it was told of the task");
        cpu
    }

    /// Makes this CPU the one that acts.
    fn acts(&self) {
        CPU.set(self.number);
        let current = self.runs.as_ref();
        CURRENT.set(current.map_or(ptr::null(), |task| Arc::as_ptr(task).cast()));
    }

    fn pick(&mut self) -> Option<Arc<Job>> {
        self.acts();
        self.runs = self.layer.pick_next_task();
        self.runs.clone()
    }

    /// A timer tick, or an interrupt if one is under way.
    fn tick(&mut self) {
        self.acts();
        let current = self.runs.clone().expect("idle has no ticks");
        self.layer.task_tick(&current);
    }

    /// Whatever runs gives way.
    fn put(&mut self, preempt: bool) -> Option<Arc<Job>> {
        self.acts();
        let current = self.runs.take().expect("idle does not give way");
        self.layer.put_prev_task(current, preempt);
        self.pick()
    }

    /// New tasks come to its queue that may run on these CPUs.
    fn add(&mut self, masks: &[u64]) -> Vec<Arc<Job>> {
        self.acts();
        let tasks: Vec<_> = masks.iter().map(|&mask| task(mask)).collect();
        tasks
            .iter()
            .for_each(|task| self.layer.add_task(task.clone()));
        tasks
    }

    /// Returns the line that the report of a stall has of it.
    fn words(&self) -> String {
        let all = M::shared().to_string();
        let words = all
            .split("; ")
            .nth(self.number)
            .expect("there is such a CPU");
        words[words.find(": ").unwrap() + 2..].to_string()
    }

    fn is_hungry(&self) -> bool {
        self.words().contains("hungry")
    }
}

fn is_same(task: Option<&Arc<Job>>, other: &Arc<Job>) -> bool {
    task.is_some_and(|task| Arc::ptr_eq(task, other))
}

/// A CPU that is busy, one with so many tasks waiting, and a guest from there on the first.
fn with_a_guest(cpus: usize, waiting: usize) -> (Cpu, Cpu) {
    connect(cpus);
    let (mut short, mut long) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&vec![0b111; waiting + 1]);
    short.tick();
    assert!(short.is_hungry(), "rule 6");
    long.tick();
    short.tick();
    assert_eq!(short.words(), "1 waiting");
    (short, long)
}

/// GUEST. Each guest has its own time, by how many waited before it.
#[test]
fn guest_expires_after_its_own_ticks() {
    let (mut short, mut long) = with_a_guest(2, 2);
    for ticks in [128, 128 + 16] {
        for tick in 1..=ticks {
            assert!(!short.is_hungry(), "tick {tick} of {ticks}");
            short.tick();
        }
        assert!(short.is_hungry(), "after {ticks} ticks");
        long.add(&[0b11; 3]);
        long.tick();
        short.tick(); // takes the next guest in
    }
}

/// GUEST.
#[test]
fn guest_that_is_handed_to_an_idle_cpu_is_a_guest_no_more() {
    let (mut short, _long) = with_a_guest(3, 2);
    let mut idle: Cpu = Cpu::idle(2);
    short.tick();
    assert!(idle.words().contains("has a post"), "{}", idle.words());
    // It may have another one at once.
    assert!(short.is_hungry(), "{}", short.words());
    assert!(idle.pick().is_some());
}

/// GUEST. An idle CPU is posted a task, and before it looks another task comes to its queue and runs
/// first.
#[test]
fn task_that_does_not_run_at_once_is_a_guest_of_a_cpu_that_idled() {
    connect(2);
    let (mut idle, mut long): (Cpu, Cpu) = (Cpu::idle(0), Cpu::busy(1));
    let given = long.add(&[0b10, 0b10, 0b10]);
    CPU.set(1);
    let came = task(0b01);
    long.add(&[0b11]); // goes to the idle one
    idle.layer.add_task(came.clone());
    assert!(is_same(idle.pick().as_ref(), &came));
    assert_eq!(idle.words(), "1 waiting");
    idle.tick(); // the interrupt
    idle.tick();
    assert!(!idle.is_hungry(), "beside {} that wait", given.len());
}

/// Rule 6.
#[test]
fn idle_cpu_is_served_before_one_with_a_shorter_queue() {
    connect(3);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b111]);
    short.tick();
    let idle: Cpu = Cpu::idle(2);
    assert!(short.is_hungry() && idle.is_hungry());
    long.tick();
    assert!(idle.words().contains("has a post"), "{}", idle.words());
    assert_eq!(short.words(), "0 waiting, hungry");
}

/// Rule 6.
#[test]
fn task_is_not_handed_over_between_queues_of_equal_length() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    short.add(&[0b01]);
    assert_eq!(short.words(), "1 waiting, hungry");
    long.tick();
    assert_eq!(long.words(), "1 waiting");
    assert_eq!(short.words(), "1 waiting, hungry");
}

/// Rule 6. The other queue has become as short meanwhile.
#[test]
fn request_of_a_cpu_that_is_short_no_more_is_taken_back() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    assert!(short.is_hungry());
    long.pick().expect("one waits"); // the other blocks
    short.tick();
    assert!(!short.is_hungry());
}

/// Rule 2.
#[test]
fn next_cpu_is_asked_after_one_that_has_no_task_to_give() {
    connect(3);
    let (mut pinned, mut other): (Cpu, Cpu) = (Cpu::busy(1), Cpu::busy(2));
    pinned.add(&[0b010, 0b010]);
    let given = other.add(&[0b111]);
    SENT.take();
    let mut idle: Cpu = Cpu::idle(0);
    assert_eq!(SENT.take(), [1], "it has most that wait");
    pinned.tick();
    assert_eq!(SENT.take(), [2]);
    other.tick();
    assert!(is_same(idle.pick().as_ref(), &given[0]));
}

/// Rule 4.
#[test]
fn new_task_is_not_posted_to_a_cpu_that_is_only_short() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    assert_eq!(short.words(), "0 waiting, hungry");
    long.add(&[0b11]);
    assert_eq!(long.words(), "2 waiting");
    assert_eq!(short.words(), "0 waiting, hungry");
}

/// Rule 1. A CPU that was short and idles now asks once, and not at each pick.
#[test]
fn cpu_that_was_short_asks_once_when_it_begins_to_idle() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b10, 0b10]);
    short.tick();
    assert!(short.is_hungry());
    SENT.take();
    assert!(short.pick().is_none());
    assert_eq!(SENT.take(), [1]);
    long.tick();
    assert_eq!(long.words(), "2 waiting", "no other CPU may have them");
    assert!(short.pick().is_none());
    assert_eq!(SENT.take(), []);
}

/// HUNGRY. Another CPU is faster while this one looks where its task may run.
#[test]
fn task_keeps_its_place_if_another_cpu_has_answered_the_request() {
    connect(3);
    let (mut idle, mut slow): (Cpu, Cpu) = (Cpu::idle(0), Cpu::busy(1));
    let mut fast: Cpu = Cpu::busy(2);
    fast.add(&[0b100]); // no other CPU may have it
    let tasks: Vec<_> = [0b010, 0b111, 0b111].map(task).into();
    idle.layer.add_task(task(0b001));
    idle.pick().expect("it was told");
    slow.acts();
    for task in &tasks {
        slow.layer.add_task(task.clone());
    }
    SENT.take();
    assert!(idle.pick().is_none());
    assert_eq!(SENT.take(), [1], "it has most that wait");
    MEANWHILE.set(Some(Box::new(move || {
        fast.add(&[0b111]);
        CPU.set(1);
    })));
    slow.tick();
    assert!(idle.words().contains("has a post"), "{}", idle.words());
    assert_eq!(SENT.take(), [0], "and no other is asked");
    assert_eq!(slow.words(), "3 waiting");
    let order = [(); 3].map(|()| slow.pick().expect("it is here"));
    let is_kept = order.iter().zip(&tasks).all(|(a, b)| Arc::ptr_eq(a, b));
    assert!(is_kept, "they stand as they stood");
}

/// STAYS: the rule of riscv64.
#[test]
fn preempted_task_is_handed_over_only_after_it_has_given_way_by_itself() {
    connect(2);
    type Stays = Cpu<SharedWherePreemptedStay>;
    let mut home = Stays::busy(0);
    let anywhere = home.add(&[0b11]).remove(0);
    home.pick(); // the other blocks
    let mut idle = Stays::idle(1);
    home.add(&[0b01]);
    SENT.take();
    assert!(home.put(true).is_some());
    assert_eq!(SENT.take(), [], "no other CPU may have it");
    home.tick();
    assert!(home.words().starts_with("1 waiting"), "{}", home.words());
    assert!(is_same(home.put(false).as_ref(), &anywhere));
    home.put(false);
    home.tick();
    assert!(home.words().starts_with("0 waiting"), "{}", home.words());
    assert!(is_same(idle.pick().as_ref(), &anywhere));
}
