use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use super::*;
use crate::task::Held;
use crate::{Control, PLAN_TICKS, PerThread};
use sched_core::clock::VirtualClock;
use sched_smp::{SharedPerThread, simulated_machine};

type Sched = Together<(), VirtualClock, PerThread, SharedPerThread>;
type Sharing = All<(), VirtualClock, PerThread, SharedPerThread>;

thread_local! {
    static ALL: Cell<*const Sharing> = const { Cell::new(ptr::null()) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The shared state of the CPUs, for one test.
struct Connected(&'static Sharing);

impl Connected {
    fn new(machine: Machine) -> Self {
        PerThread::renew();
        SharedPerThread::renew();
        // SAFETY: they are new, and no other code finds them.
        unsafe { Sched::connect(machine) };
        let (_, all) = Sched::all().unwrap();
        ALL.set(ptr::from_ref(all));
        Self(all)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // SAFETY: no scheduler uses it any more.
        unsafe { Sched::retire() };
        PerThread::retire();
    }
}

/// Releases the lock when the other CPUs have waited three times.
fn waits() {
    WAITS.set(WAITS.get() + 1);
    if WAITS.get() == 3 {
        // SAFETY: the test's, which has it locked and forgotten.
        unsafe { (*ALL.get()).locked.force_unlock() };
    }
}

#[test]
fn a_cpu_that_has_spun_for_long_lets_the_machine_wait() {
    let machine = Machine {
        wait: waits,
        ..simulated_machine(2)
    };
    let connected = Connected::new(machine);
    let all = connected.0;

    all.act(1, |_, _| ()); // it is free
    assert_eq!(WAITS.get(), 0);
    core::mem::forget(all.locked.lock());
    all.act(1, |_, _| ());
    assert_eq!(WAITS.get(), 3);
    assert!(!all.locked.is_locked());
}

/// COUNTED: a task that is held on one CPU is no reason for another to take the lock.
#[test]
fn a_task_held_on_another_cpu_is_not_counted() {
    let connected = Connected::new(simulated_machine(2));
    let all = connected.0;
    let task = Arc::new(PbgTask::new(()));
    let counts = || (all.free.load(Relaxed), all.own[1].held.load(Relaxed));
    all.act(1, |locked, _| locked.placement.counts(&task, Held::NOT));
    assert_eq!(counts(), (1, 0));
    for (held, counted) in [
        (Held::left(1), (0, 1)),
        (Held::awaited(0), (1, 0)),
        (Held::stays(1), (0, 1)),
        (Held::left(0), (0, 0)),
    ] {
        all.act(1, |locked, _| locked.placement.hold(&task, held));
        assert_eq!(counts(), counted, "{held:?}");
    }
}

#[test]
fn ipis_are_sent_once_and_without_the_lock() {
    let machine = Machine {
        interrupt: |cpu| {
            // SAFETY: the test's.
            assert!(!unsafe { &*ALL.get() }.locked.is_locked());
            SENT.with_borrow_mut(|sent| sent.push(cpu));
        },
        ..simulated_machine(64)
    };
    let connected = Connected::new(machine);
    let all = connected.0;
    all.act(1, |locked, _| {
        [63, 2, 0, 2].map(|cpu| locked.placement.interrupt(cpu))
    });
    assert_eq!(SENT.take(), [0, 2, 63]);
    all.act(1, |_, _| ());
    assert!(SENT.take().is_empty());
}

/// PLACED: the CPU that was asked for a task finds it.
#[test]
fn a_reserved_task_is_kept_from_other_cpus() {
    for (held, kept_from) in [
        (Held::NOT, [false, false]),
        (Held::awaited(0), [false, true]),
        (Held::awaited(1), [true, false]),
        (Held::left(1), [false, false]),
        (Held::stays(1), [false, false]),
    ] {
        assert_eq!(
            [0, 1].map(|cpu| held.is_awaited_but_by(cpu)),
            kept_from,
            "{held:?}"
        );
    }
}

/// Returns a machine of which only the first CPU makes calls.
fn one_of_two() -> Machine {
    Machine {
        this_cpu: || 0,
        current: ptr::null,
        interrupt: |_| (),
        may_run: |_, _| true,
        ..simulated_machine(2)
    }
}

/// Rule 5 is about yields, and a preempted task has made none.
#[test]
fn a_preempted_task_does_not_go_on_by_its_grant() {
    let connected = Connected::new(one_of_two());
    let own = &connected.0.own[0];
    let mut sched = Sched::new();
    sched.add_task(Arc::new(PbgTask::new(())));
    let task = sched.pick_next_task().unwrap();
    own.set_budget(2);
    let kept = || own.is_keeping();

    sched.put_prev_task(task, false);
    assert!(kept());
    let task = sched.pick_next_task().unwrap();
    assert_eq!((kept(), own.budget()), (false, 1));
    sched.put_prev_task(task, true);
    assert!(!kept());
    assert!(sched.pick_next_task().is_some());
}

/// A plan of one CPU is not that of all.
#[test]
#[should_panic(expected = "connected while one CPU follows a plan by itself")]
fn connect_panics_at_a_cpu_that_follows_a_plan() {
    PerThread::renew();
    SharedPerThread::renew();
    let control = PerThread::control();
    let mut sched = Sched::new();
    let task = || Arc::new(PbgTask::new(()));
    sched.add_task(task());
    let root = sched.pick_next_task().unwrap();
    control.measure_start().unwrap();
    sched.add_task(task());
    sched.put_prev_task(root, false);
    let child = sched.pick_next_task().unwrap();
    let _ = control.measure_end_by::<VirtualClock>().unwrap();
    let _ = control.start_pbg().unwrap();
    sched.add_task(task());
    sched.put_prev_task(child, false);

    // SAFETY: only this scheduler finds them.
    unsafe { Sched::connect(one_of_two()) };
    sched.pick_next_task();
}

thread_local! {
    static HERE: Cell<(usize, *const ())> = const { Cell::new((0, ptr::null())) };
}

/// Two CPUs that are connected. `main` runs on the first, whose `gc` was there before and has
/// blocked; the second idles.
struct TwoCpus {
    connected: Connected,
    scheds: [Sched; 2],
    current: [Option<Handle<()>>; 2],
}

impl TwoCpus {
    fn new() -> Self {
        let mut scheds = [Sched::new(), Sched::new()];
        SharedPerThread::renew();
        scheds[0].add_task(Arc::new(PbgTask::new(())));
        let connected = Connected::new(Machine {
            this_cpu: || HERE.get().0,
            current: || HERE.get().1,
            interrupt: |cpu| SENT.with_borrow_mut(|sent| sent.push(cpu)),
            may_run: |_, _| true,
            ..simulated_machine(2)
        });
        VirtualClock::set(0);
        let mut cpus = Self {
            connected,
            scheds,
            current: [Some(Arc::new(PbgTask::new(()))), None],
        };
        cpus.tick(0);
        cpus.pick(1);
        cpus.block(1);
        assert!(cpus.current[1].is_none());
        cpus
    }

    /// This CPU makes the next call, a moment later.
    fn here(&self, cpu: usize) {
        let current = self.current[cpu].as_ref();
        let current = current.map_or(ptr::null(), |task| Arc::as_ptr(task).cast());
        HERE.set((cpu, current));
        VirtualClock::advance(1);
    }

    fn control(&self, cpu: usize) -> &'static Control {
        self.here(cpu);
        PerThread::control()
    }

    fn spawn(&mut self, cpu: usize) -> Handle<()> {
        let task = Arc::new(PbgTask::new(()));
        self.here(cpu);
        self.scheds[cpu].add_task(task.clone());
        task
    }

    fn pick(&mut self, cpu: usize) {
        self.here(cpu);
        self.current[cpu] = self.scheds[cpu].pick_next_task();
    }

    fn yield_now(&mut self, cpu: usize) {
        self.here(cpu);
        let task = self.current[cpu].clone().unwrap();
        self.scheds[cpu].put_prev_task(task, false);
        self.pick(cpu);
    }

    fn preempt(&mut self, cpu: usize) {
        self.here(cpu);
        let task = self.current[cpu].clone().unwrap();
        self.scheds[cpu].put_prev_task(task, true);
        self.pick(cpu);
    }

    /// The running task blocks or exits.
    fn block(&mut self, cpu: usize) -> Handle<()> {
        let task = self.current[cpu].clone().unwrap();
        self.pick(cpu);
        task
    }

    fn wake(&mut self, cpu: usize, task: &Handle<()>) {
        self.here(cpu);
        self.scheds[cpu].put_prev_task(task.clone(), false);
    }

    /// A tick, or an interrupt if one was sent.
    fn tick(&mut self, cpu: usize) -> bool {
        self.here(cpu);
        let task = self.current[cpu].clone().unwrap();
        self.scheds[cpu].task_tick(&task)
    }

    fn runs(&self, cpu: usize, task: &Handle<()>) -> bool {
        let current = self.current[cpu].as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, task))
    }

    /// Measures two tasks that the second CPU runs for this long, one after the other, and follows
    /// that plan.
    fn plan(&mut self, runs: [u64; 2]) {
        self.control(0).measure_start().unwrap();
        runs.iter().for_each(|_| drop(self.spawn(0)));
        self.pick(1);
        for run in runs {
            VirtualClock::advance(run);
            self.block(1);
        }
        let measured = self.control(0).measure_end_by::<VirtualClock>();
        assert_eq!(measured, Ok(2));
        assert_eq!(self.control(0).start_pbg(), Ok(2));
        SENT.take();
    }
}

/// Rule 5: an interrupt takes what the running task was granted, so that it also gives way if it
/// yields before it is preempted.
#[test]
fn interrupted_task_that_yields_gives_way() {
    let mut cpus = TwoCpus::new();
    cpus.plan([10, 1_000]);
    let [short, long] = [(); 2].map(|()| cpus.spawn(0));
    cpus.pick(1);
    assert!(cpus.runs(1, &short));
    cpus.block(1);
    assert!(cpus.runs(1, &long));
    cpus.yield_now(1);
    let budget = cpus.connected.0.own[1].budget();
    assert!(budget > 0 && cpus.runs(1, &long), "{budget}");

    SENT.take();
    cpus.wake(0, &short);
    assert_eq!(SENT.take(), [1]);
    assert!(cpus.tick(1), "it asks for preemption");
    cpus.yield_now(1);
    assert!(cpus.runs(1, &short));
}

/// PLACED: a CPU whose task comes first is not interrupted for one that comes after it.
#[test]
fn cpu_whose_task_comes_first_is_not_interrupted() {
    let mut cpus = TwoCpus::new();
    cpus.plan([10, 1_000]);
    let short = cpus.spawn(0);
    cpus.pick(1);
    assert!(cpus.runs(1, &short));
    SENT.take();
    cpus.spawn(0);
    assert!(SENT.take().is_empty());
}

/// A task that was recorded in the measurement before and is alone on its CPU does not go on
/// recording, as its record is another task's by then.
#[test]
fn task_of_an_earlier_measurement_is_not_recorded_in_the_next() {
    let mut cpus = TwoCpus::new();
    cpus.control(0).measure_start().unwrap();
    let older = cpus.spawn(0);
    cpus.pick(1);
    assert!(cpus.runs(1, &older));
    assert_eq!(cpus.control(0).measure_end_by::<VirtualClock>(), Ok(1));
    cpus.control(0).measure_start().unwrap();
    let newer = cpus.spawn(0);
    cpus.block(0);
    assert!(cpus.runs(0, &newer));
    for _ in 0..3 {
        cpus.yield_now(1);
        assert!(cpus.runs(1, &older), "it is alone");
    }
    VirtualClock::advance(100);
    assert_eq!(cpus.control(0).measure_end_by::<VirtualClock>(), Ok(1));
    let plan = cpus.control(0).plan().unwrap().unwrap();
    assert_eq!(plan.tasks()[0].yields, 0, "it has not yielded");
}

/// Rule 7: a CPU's `gc` is its queue's first task, wherever that was added. The first task that all
/// CPUs have together may be any, and has the rest of its turn.
#[test]
fn gc_of_any_cpu_leaves_the_rest_of_its_turn_to_the_plan() {
    let mut cpus = TwoCpus::new();
    let [outsider, gc] = [0, 1].map(|cpu| cpus.spawn(cpu));
    for task in [&outsider, &gc] {
        cpus.pick(1);
        assert!(cpus.runs(1, task));
    }
    cpus.block(1);
    cpus.plan([10, 1_000]);
    let planned = cpus.spawn(0);
    cpus.pick(1);
    for (task, goes_on) in [(&outsider, true), (&gc, false)] {
        assert!(cpus.runs(1, &planned));
        cpus.wake(0, task);
        for tick in 1..=PLAN_TICKS {
            assert_eq!(cpus.tick(1), tick == PLAN_TICKS, "{tick}");
        }
        cpus.preempt(1);
        assert!(cpus.runs(1, task));
        cpus.yield_now(1);
        assert!(cpus.runs(1, if goes_on { task } else { &planned }));
        if goes_on {
            cpus.block(1);
        }
    }
}

/// Rule 7: the rest of a turn is for tasks of the fallback queue that this CPU may have. One that is
/// still held on another CPU does not keep the turn for a task without a claim.
#[test]
fn turn_ends_if_the_only_task_with_a_claim_is_held_on_another_cpu() {
    let mut cpus = TwoCpus::new();
    let [has_turn, held, other] = [(); 3].map(|()| cpus.spawn(0));
    let gc = cpus.spawn(1);
    for task in [&has_turn, &held, &other, &gc] {
        cpus.pick(1);
        assert!(cpus.runs(1, task));
    }
    cpus.block(1);
    cpus.plan([10, 1_000]);
    let planned = cpus.spawn(0);
    cpus.pick(1);
    for task in [&has_turn, &held, &other, &gc] {
        cpus.wake(0, task);
    }
    for tick in 1..=PLAN_TICKS {
        assert_eq!(cpus.tick(1), tick == PLAN_TICKS, "{tick}");
    }
    cpus.preempt(1);
    assert!(cpus.runs(1, &has_turn));
    cpus.block(0);
    assert!(cpus.runs(0, &held));
    cpus.yield_now(0);
    assert!(
        cpus.runs(0, &other),
        "so the CPU has not surely left the other"
    );
    cpus.block(1);
    assert!(cpus.runs(1, &planned));
}
