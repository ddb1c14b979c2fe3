//! Tests of the layer call by call. These are cases that the model of `axtask` does not simulate,
//! or so seldom that no test of it would miss the rule. A put that must stay in line is one beside
//! which nothing is `watched`.

// This file is long because every rule has its tests here.

use core::cell::{Cell, RefCell};
use core::ptr;
use std::boxed::Box;
use std::string::{String, ToString};
use std::vec::Vec;

use sched_core::clock::VirtualClock;
use sched_policies::cfs::Cfs;
use sched_policies::fifo::Fifo;

use super::*;
use crate::{ThreadSmpState, ThreadSmpStatePinned, simulated_machine};

thread_local! {
    static CPU: Cell<usize> = const { Cell::new(0) };
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
    static DEPARTURES: Cell<u32> = const { Cell::new(0) };
    /// A step of another CPU, which is taken when the layer next asks where a task may run.
    static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
}

/// A task whose inner value is the bit mask of the CPUs that it may run on.
type Job = Task<u64, ()>;

fn task(mask: u64) -> Arc<Job> {
    Arc::new(Job::new(mask))
}

/// Makes the later layers of this thread those of a machine with `cpus` CPUs.
fn connect(cpus: usize) {
    ThreadSmpState::renew();
    connect_later(cpus);
}

/// Connects the layers that this thread has made since the state was renewed.
fn connect_later(cpus: usize) {
    CPU.set(0);
    CURRENT.set(ptr::null());
    SENT.take();
    let machine = Machine {
        this_cpu: || CPU.get(),
        current: || CURRENT.get(),
        interrupt: |cpu| SENT.with_borrow_mut(|sent| sent.push(cpu)),
        // SAFETY: the pointer is to the inner value of a `Job`, which is alive.
        may_run: |task, cpu| unsafe {
            if let Some(act) = MEANWHILE.take() {
                act();
            }
            *task.cast::<u64>() >> cpu & 1 != 0
        },
        ..simulated_machine(cpus)
    };
    // SAFETY: only the layers of one test share it, one for each CPU, and all have one type.
    unsafe { ThreadSmpState::smp_state().connect(machine) };
}

/// A CPU of a test, and the task that it runs.
struct Cpu<M = ThreadSmpState> {
    layer: WorkSharing<Fifo<u64>, M>,
    number: usize,
    runs: Option<Arc<Job>>,
}

impl<M: SmpStateSource> Cpu<M> {
    /// Returns a CPU that idles and has asked for work.
    fn idle(number: usize) -> Self {
        let mut cpu = Self {
            layer: WorkSharing::new(),
            number,
            runs: None,
        };
        assert!(cpu.pick().is_none());
        cpu
    }

    /// Returns CPU 0 after a tick. It runs a main that was not picked and may run on these CPUs.
    fn main(mask: u64) -> Self {
        let mut cpu = Self {
            layer: WorkSharing::new(),
            number: 0,
            runs: Some(task(mask)),
        };
        cpu.tick();
        cpu
    }

    /// Returns a CPU that runs a task that may run on these CPUs.
    fn running(number: usize, mask: u64) -> Self {
        let mut cpu = Self::idle(number);
        cpu.add(&[mask]);
        cpu.pick().expect("it was told of the task");
        cpu
    }

    /// Returns a CPU that runs a task that may run there only.
    fn busy(number: usize) -> Self {
        Self::running(number, 1 << number)
    }

    /// Makes this CPU the acting one.
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

    /// Picks, and asserts that it is this task.
    fn picks(&mut self, task: &Arc<Job>) {
        assert!(self.pick().is_some_and(|picked| Arc::ptr_eq(&picked, task)));
    }

    /// Takes a timer tick, or an IPI if one is pending.
    fn tick(&mut self) {
        self.acts();
        let current = self.runs.clone().expect("idle has no ticks");
        assert!(!self.layer.task_tick(&current), "FIFO preempts no task");
    }

    /// Puts the running task back without picking, as another CPU may act in between.
    fn put(&mut self, preempt: bool) {
        self.acts();
        let current = self.runs.clone().expect("idle does not give way");
        self.layer.put_prev_task(current, preempt);
    }

    /// Enqueues new tasks that may run on these CPUs.
    fn add(&mut self, masks: &[u64]) -> Vec<Arc<Job>> {
        self.acts();
        let tasks: Vec<_> = masks.iter().map(|&mask| task(mask)).collect();
        let added = tasks.iter().cloned();
        added.for_each(|task| self.layer.add_task(task));
        tasks
    }

    /// Returns its line in the report of a stall.
    fn words(&self) -> String {
        let all = M::smp_state().to_string();
        let words = all
            .split("; ")
            .nth(self.number)
            .expect("there is such a CPU");
        words[words.find(": ").unwrap() + 2..].to_string()
    }

    fn is_requesting(&self) -> bool {
        self.words().contains("requesting")
    }
}

/// HANDOFF: `axtask` takes a queue's lock for a put and again for the pick. Another CPU may put a
/// task there in between, which the model does not simulate.
#[test]
fn task_picked_after_a_wake_between_put_and_pick_is_handed_over() {
    connect(2);
    let mut first: Cpu = Cpu::running(0, 0b11);
    let mut second: Cpu = Cpu::idle(1);
    let (anywhere, here) = (first.runs.clone().unwrap(), task(0b01));
    first.put(false);
    second.acts();
    first.layer.put_prev_task(here.clone(), false);
    first.picks(&anywhere);
    assert_eq!(SENT.take(), []);
    first.put(false);
    assert_eq!(SENT.take(), [0]);
    first.picks(&here);
    first.tick();
    assert_eq!(SENT.take(), [1]);
    second.picks(&anywhere);
    assert_eq!([first.words(), second.words()], ["0 waiting"; 2]);
}

/// Rule 7 prefers an idle CPU to a busy one that has no task waiting. It sends one IPI, and
/// withdraws the request of that CPU.
#[test]
fn rule_7_sends_to_an_idle_cpu_with_one_ipi() {
    connect(3);
    let _busy: Cpu = Cpu::running(0, 0b111);
    let mut sends: Cpu = Cpu::running(1, 0b111);
    let mut idle: Cpu = Cpu::idle(2);
    SENT.take();
    let woken = task(0b101);
    sends.acts();
    sends.layer.put_prev_task(woken.clone(), false);
    assert_eq!(SENT.take(), [2]);
    idle.picks(&woken);
    assert_eq!(SENT.take(), []);
    assert_eq!(idle.words(), "0 waiting");
}

/// Two tasks are sent to an idle CPU. While they are on the way, another CPU begins to idle, which
/// may run one of them. It finds no task waiting anywhere.
#[test]
fn rule_7_task_that_is_sent_and_cannot_run_at_once_is_announced() {
    connect(3);
    let mut sends: Cpu = Cpu::main(0b001);
    let mut busy: Cpu = Cpu::busy(2);
    let mut idle: Cpu = Cpu::idle(1);
    // The task that was sent last is taken first.
    let sent = sends.add(&[0b110, 0b010]);
    assert!(busy.pick().is_none(), "its task blocks");

    SENT.take();
    idle.picks(&sent[1]);
    // This CPU hands the other task over once that has been left.
    assert_eq!(SENT.take(), [1]);
    assert_eq!(idle.words(), "1 waiting, interrupted, asked by 0b100");
}

/// HANDOFF: main, which was not picked, gives its CPU to a pinned task, and another CPU idles.
#[test]
fn unpicked_task_that_gives_way_interrupts_its_cpu_to_be_handed_over() {
    for preempt in [false, true] {
        connect(2);
        let mut first: Cpu = Cpu::main(0b11);
        let _second: Cpu = Cpu::idle(1);
        first.add(&[0b01]);
        SENT.take();
        first.put(preempt);
        assert_eq!(SENT.take(), [0], "preempted: {preempt}");
        assert!(first.words().starts_with("2 waiting"), "{}", first.words());
    }
}

/// HANDOFF and RETAINED: after the put of a watched task the next one is watched in two cases. A
/// retained task waits, or an idle CPU may have the next task and not this one.
#[test]
fn next_task_is_watched_if_an_idle_cpu_may_have_it_or_a_retained_task_waits() {
    for (what, mask, idles, expected) in [
        ("no CPU idles any more", 0b01, false, false),
        ("the idle CPU may have it", 0b11, true, false),
        ("the idle CPU may not have it", 0b01, true, true),
    ] {
        connect(2);
        let mut busy: Cpu = Cpu::running(0, mask);
        let mut idle: Cpu = Cpu::idle(1);
        busy.add(&[0b01]);
        assert!(busy.layer.watched.is_some());
        if !idles {
            idle.add(&[0b10]);
        }
        busy.put(false);
        assert_eq!(!busy.layer.running.is_forgotten(), expected, "{what}");
    }
    let (mut short, ..) = with_a_retained_task(2, 2);
    short.put(false);
    assert!(!short.layer.running.is_forgotten());
}

#[test]
fn retained_task_that_runs_may_migrate_again() {
    let (mut short, _long, retained) = with_a_retained_task(2, 2);
    short.put(false);
    short.picks(&retained);
    assert_eq!(short.layer.retained, None);
}

/// Returns a busy CPU with a retained task, the CPU that it came from, with `waiting` tasks
/// waiting, and that task.
fn with_a_retained_task(cpus: usize, waiting: usize) -> (Cpu, Cpu, Arc<Job>) {
    connect(cpus);
    let (mut short, mut long) = (Cpu::busy(0), Cpu::busy(1));
    let retained = long.add(&vec![0b111; waiting + 1]).remove(0);
    short.tick();
    assert!(short.is_requesting(), "rule 6");
    long.tick();
    short.tick();
    assert_eq!(short.words(), "1 waiting");
    assert_eq!(short.layer.retained, address(&retained));
    (short, long, retained)
}

/// RETAINED: each retained task has its own time, by the number of tasks that waited before it.
#[test]
fn retention_expires_after_its_own_ticks() {
    let (mut short, mut long, _) = with_a_retained_task(2, 2);
    for ticks in [128, 128 + 16] {
        for tick in 1..=ticks {
            assert!(!short.is_requesting(), "tick {tick} of {ticks}");
            short.tick();
        }
        assert!(short.is_requesting(), "after {ticks} ticks");
        long.add(&[0b11; 3]);
        long.tick();
        short.tick(); // takes the next retained task
    }
}

#[test]
fn retained_task_that_is_handed_to_an_idle_cpu_may_migrate_again() {
    let (mut short, _long, _) = with_a_retained_task(3, 2);
    let mut idle: Cpu = Cpu::idle(2);
    short.tick();
    assert!(idle.words().contains("has a post"), "{}", idle.words());
    // The CPU may request another task at once.
    assert!(short.is_requesting(), "{}", short.words());
    assert!(idle.pick().is_some());
}

/// RETAINED: an idle CPU is posted a task. Before it looks, another task comes to its queue and
/// runs first.
#[test]
fn task_that_does_not_run_at_once_is_retained_by_a_cpu_that_idled() {
    connect(2);
    let (mut idle, mut long): (Cpu, Cpu) = (Cpu::idle(0), Cpu::busy(1));
    let given = long.add(&[0b10, 0b10, 0b10]);
    CPU.set(1);
    let came = task(0b01);
    long.add(&[0b11]); // is posted to the idle CPU
    idle.layer.add_task(came.clone());
    idle.picks(&came);
    assert_eq!(idle.words(), "1 waiting");
    idle.tick(); // takes the IPI
    idle.tick();
    assert!(!idle.is_requesting(), "beside {} that wait", given.len());
}

#[test]
fn rule_6_idle_cpu_is_served_before_one_with_a_shorter_queue() {
    connect(3);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b111]);
    short.tick();
    let idle: Cpu = Cpu::idle(2);
    assert!(short.is_requesting() && idle.is_requesting());
    long.tick();
    assert!(idle.words().contains("has a post"), "{}", idle.words());
    assert_eq!(short.words(), "0 waiting, requesting");
}

#[test]
fn rule_6_task_is_not_handed_over_between_queues_of_equal_length() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    short.add(&[0b01]);
    assert_eq!(short.words(), "1 waiting, requesting");
    long.tick();
    assert_eq!(long.words(), "1 waiting");
    assert_eq!(short.words(), "1 waiting, requesting");
}

/// The other queue has become as short meanwhile.
#[test]
fn rule_6_request_is_withdrawn_when_the_queue_is_no_longer_shorter() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    assert!(short.is_requesting());
    long.pick().expect("one waits"); // the running task blocks
    short.tick();
    assert!(!short.is_requesting());
}

#[test]
fn rule_2_next_cpu_is_asked_after_one_that_has_no_task_to_give() {
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
    idle.picks(&given[0]);
}

#[test]
fn rule_4_new_task_is_not_posted_to_a_cpu_that_only_has_a_shorter_queue() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b11]);
    short.tick();
    assert_eq!(short.words(), "0 waiting, requesting");
    long.add(&[0b11]);
    assert_eq!(long.words(), "2 waiting");
    assert_eq!(short.words(), "0 waiting, requesting");
}

/// A CPU that had a shorter queue and idles now asks once, and not at each pick.
#[test]
fn rule_1_cpu_with_a_shorter_queue_asks_once_when_it_begins_to_idle() {
    connect(2);
    let (mut short, mut long): (Cpu, Cpu) = (Cpu::busy(0), Cpu::busy(1));
    long.add(&[0b10, 0b10]);
    short.tick();
    assert!(short.is_requesting());
    SENT.take();
    assert!(short.pick().is_none());
    assert_eq!(SENT.take(), [1]);
    long.tick();
    assert_eq!(long.words(), "2 waiting", "no other CPU may have them");
    assert!(short.pick().is_none());
    assert_eq!(SENT.take(), []);
}

/// REQUEST: another CPU is faster while this one looks where its task may run.
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
    type Stays = Cpu<ThreadSmpStatePinned>;
    let mut home = Stays::busy(0);
    let anywhere = home.add(&[0b11]).remove(0);
    home.pick(); // the running task blocks
    let mut idle = Stays::idle(1);
    home.add(&[0b01]);
    SENT.take();
    home.put(true);
    assert!(home.pick().is_some());
    assert_eq!(SENT.take(), [], "no other CPU may have it");
    home.tick();
    assert!(home.words().starts_with("1 waiting"), "{}", home.words());
    home.put(false);
    home.picks(&anywhere);
    home.put(false);
    home.pick();
    home.tick();
    assert!(home.words().starts_with("0 waiting"), "{}", home.words());
    idle.picks(&anywhere);
}

/// A CPU that was idle before the CPUs were connected joins with its next pick, and is idle to the
/// others from then on.
#[test]
fn rule_4_cpu_that_was_idle_before_the_connection_is_posted_a_task() {
    ThreadSmpState::renew();
    let [mut busy, mut idle] = [0, 1].map(|number| Cpu::<ThreadSmpState> {
        layer: WorkSharing::new(),
        number,
        runs: None,
    });
    busy.add(&[0b11]);
    busy.pick().expect("it was added");
    assert!(idle.pick().is_none());
    connect_later(2);
    busy.tick();
    assert!(idle.pick().is_none(), "it joins");
    SENT.take();
    let posted = busy.add(&[0b11]);
    assert_eq!(SENT.take(), [1]);
    idle.picks(&posted[0]);
}

/// An idle CPU runs the task that is woken in its queue, so no other CPU is asked for it.
#[test]
fn rule_4_wake_in_an_idle_cpus_queue_is_announced_to_no_other_cpu() {
    connect(2);
    let mut first: Cpu = Cpu::idle(0);
    let second: Cpu = Cpu::idle(1);
    SENT.take();
    let woken = first.add(&[0b11]);
    assert_eq!(SENT.take(), [], "it picks when the interrupt is over");
    first.picks(&woken[0]);
    assert_eq!(second.words(), "0 waiting, idle, requesting");
}

/// The first wake is posted to the idle CPU. The second stays, and costs no IPI.
#[test]
fn rule_4_second_wake_beside_a_cpu_with_a_pending_post_costs_no_ipi() {
    connect(2);
    let mut busy: Cpu = Cpu::busy(0);
    let _idle: Cpu = Cpu::idle(1);
    SENT.take();
    busy.add(&[0b11, 0b11]);
    assert_eq!(SENT.take(), [1]);
    assert_eq!(busy.words(), "1 waiting");
}

/// The put of the running task stays in line after a wake beside no requesting CPU, and after the
/// wake of a task that a requesting CPU may have.
#[test]
fn put_is_watched_only_beside_a_requesting_cpu_that_may_have_no_task() {
    for (own, idles, wakes, expected) in [
        (0, false, &[0b01][..], false),
        (1, false, &[0b10], false),
        (0, true, &[0b11], false), // goes to the idle CPU
        (0, true, &[0b01], true),
        (1, true, &[0b10], true),
    ] {
        connect(2);
        let mut busy: Cpu = Cpu::busy(own);
        let mut other: Cpu = Cpu::busy(1 - own);
        if idles {
            assert!(other.pick().is_none(), "its task blocks");
        }
        busy.add(wakes);
        let is_watched = busy.layer.watched.is_some();
        assert_eq!(is_watched, expected, "CPU {own}, idle: {idles}, {wakes:?}");
    }
}

/// A task that is picked beside waiting ones is watched as well.
#[test]
fn picked_task_is_watched_only_if_another_waits_beside_a_requesting_cpu() {
    for (waiting, idles, expected) in [
        (&[][..], false, false),
        (&[], true, false),
        (&[0b01], false, false),
        (&[0b01], true, true),
    ] {
        connect(2);
        let mut busy: Cpu = Cpu::busy(0);
        let mut other: Cpu = Cpu::busy(1);
        if idles {
            assert!(other.pick().is_none(), "its task blocks");
        }
        busy.add(&[0b01]);
        busy.add(waiting);
        busy.pick().expect("one waits"); // the running task blocks
        assert_eq!(
            busy.layer.watched.is_some(),
            expected,
            "idle: {idles}, {waiting:?}"
        );
    }
}

/// HANDOFF: the idle CPU is owed a task already, so the put of the running task sends no IPI.
#[test]
fn put_beside_a_cpu_with_a_pending_post_costs_no_ipi() {
    connect(2);
    let mut main: Cpu = Cpu::main(0b11);
    let _idle: Cpu = Cpu::idle(1);
    main.add(&[0b11]);
    SENT.take();
    main.put(false);
    assert_eq!(SENT.take(), []);
}

/// A request that only pinned tasks could answer makes the next put watched. A request that finds
/// none waiting does not.
#[test]
fn tick_that_serves_an_idle_cpu_watches_only_if_tasks_wait() {
    for (waiting, expected) in [(&[][..], false), (&[0b01], true)] {
        connect(2);
        let mut busy: Cpu = Cpu::busy(0);
        busy.add(waiting);
        let idle: Cpu = Cpu::idle(1);
        busy.layer.watched = None;
        let smp = ThreadSmpState::smp_state();
        smp.ask(smp.machine().unwrap(), 0, 1);
        busy.tick();
        assert_eq!(busy.layer.watched.is_some(), expected, "{waiting:?}");
        assert!(idle.is_requesting());
    }
}

/// RETAINED: the retained task stays, and another task is handed to the CPU with a shorter queue.
#[test]
fn cpu_with_a_retained_task_gives_another_task() {
    let (mut short, _long, _) = with_a_retained_task(3, 2);
    let other = short.add(&[0b111]).remove(0);
    let mut third: Cpu = Cpu::busy(2);
    third.tick();
    assert!(third.is_requesting());
    short.tick();
    third.tick();
    assert_eq!(third.layer.retained, address(&other));
}

/// STAYS: main, which was not picked, gives way by itself, so an idle CPU may have it.
#[test]
fn unpicked_task_that_gives_way_is_handed_over_where_preempted_tasks_stay() {
    connect(2);
    type Stays = Cpu<ThreadSmpStatePinned>;
    let mut home = Stays::main(0b11);
    let main = home.runs.clone().unwrap();
    home.add(&[0b01]);
    let mut idle = Stays::idle(1);
    home.put(false);
    home.pick();
    home.tick();
    idle.picks(&main);
}

/// STAYS: a woken task was not preempted, so an idle CPU may have it.
#[test]
fn woken_task_is_handed_over_where_preempted_tasks_stay() {
    connect(2);
    type Stays = Cpu<ThreadSmpStatePinned>;
    let mut home = Stays::busy(0);
    let mut other = Stays::busy(1);
    let woken = task(0b11);
    home.acts();
    home.layer.put_prev_task(woken.clone(), false);
    assert!(other.pick().is_none(), "its task blocks");
    home.tick();
    other.picks(&woken);
}

#[test]
fn removed_task_is_gone_and_a_running_one_is_not_removed() {
    connect(2);
    let mut cpu: Cpu = Cpu::busy(0);
    let tasks = cpu.add(&[0b01, 0b01]);
    let running = cpu.runs.clone().unwrap();
    assert!(cpu.layer.remove_task(&running).is_none());
    let removed = cpu.layer.remove_task(&tasks[0]);
    assert!(removed.is_some_and(|removed| Arc::ptr_eq(&removed, &tasks[0])));
    assert!(cpu.layer.remove_task(&tasks[0]).is_none());
    assert_eq!(cpu.words(), "1 waiting");
    cpu.picks(&tasks[1]);
    // A running task whose put is watched is not removed, either.
    let _idle: Cpu = Cpu::idle(1);
    cpu.add(&[0b01]);
    assert!(cpu.layer.watched.is_some());
    assert!(cpu.layer.remove_task(&tasks[1]).is_none());
}

#[test]
fn removed_task_is_no_longer_retained() {
    let (mut short, _long, retained) = with_a_retained_task(2, 3);
    let pinned = short.add(&[0b01]).remove(0);
    assert!(short.layer.remove_task(&pinned).is_some());
    assert_eq!(short.layer.retained, address(&retained));
    assert!(short.layer.remove_task(&retained).is_some());
    assert_eq!(short.layer.retained, None);
}

#[test]
fn name_and_priority_come_from_the_policy() {
    type Layer = WorkSharing<Cfs<u64, VirtualClock>, ThreadSmpState>;
    let mut layer = Layer::new();
    assert_eq!(Layer::scheduler_name(), "CFS");
    connect(2);
    let task = Arc::new(Task::new(0b11));
    assert!(layer.set_priority(&task, 19));
    assert!(!layer.set_priority(&task, 20));
}

/// FIFO that counts the departures that it is told of.
struct Counting<const TRACKS: bool>(Fifo<u64>);

impl<const TRACKS: bool> Policy for Counting<TRACKS> {
    type Inner = u64;
    type State = ();
    const NAME: &'static str = "counting";
    const EVENTS: EventLevel = match TRACKS {
        true => EventLevel::Departures,
        false => EventLevel::Reasons,
    };
    const NEW: Self = Self(Fifo::NEW);

    fn spawned(&mut self, task: Arc<Job>) {
        self.0.spawned(task);
    }
    fn enqueue(&mut self, task: Arc<Job>, why: EnqueueReason) {
        self.0.enqueue(task, why);
    }
    fn current_left(&mut self) {
        DEPARTURES.set(DEPARTURES.get() + 1);
    }
    fn dispatch(&mut self) -> Option<Arc<Job>> {
        self.0.dispatch()
    }
    fn remove(&mut self, task: &Arc<Job>) -> Option<Arc<Job>> {
        self.0.remove(task)
    }
}

/// Returns the number of departures that the policy is told of at each of four picks. A task
/// blocks, none runs, another begins to run, and blocks while it is watched.
fn departures<const TRACKS: bool>() -> [u32; 4] {
    connect(2);
    let mut layer = WorkSharing::<Counting<TRACKS>, ThreadSmpState>::new();
    let mut picks = |adds: bool, watched: bool| {
        if adds {
            layer.add_task(task(0b11));
        }
        if watched {
            layer.watch();
        }
        layer.pick_next_task();
        DEPARTURES.take()
    };
    assert_eq!(picks(true, false), 0);
    [(false, false), (false, false), (true, false), (false, true)]
        .map(|(adds, watched)| picks(adds, watched))
}

#[test]
fn policy_is_told_once_of_each_departure_if_it_tracks_them() {
    assert_eq!(departures::<true>(), [1, 0, 0, 1]);
    assert_eq!(departures::<false>(), [0; 4]);
}
