// This file is long because every rule has its tests here, on one machine of two CPUs.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use super::super::placement::may_have;
use super::*;
use crate::caller::Caller;
use crate::task::Reservation;
use crate::{About, Control, PLAN_TICKS, PerThread};
use pbg_profile::samples::{child_of_root, of, phase};
use pbg_profile::{Ended, StoredProfile, StoredTask, Waker};
use sched_core::clock::VirtualClock;
use sched_smp::{ThreadSmpState, simulated_machine};

/// Returns the child of the root that hands data over to its child `other`.
fn stage(ordinal: u32, run: u64, other: u16) -> StoredTask {
    let mut task = child_of_root(ordinal, run);
    let mut block = phase(Ended::Block, 16, run, 1);
    block.woken_by = Waker::Task(other);
    task.phases.list = std::vec![block];
    task
}

/// A task, with the bit mask of the CPUs that it may run on.
type Job = PbgTask<u64>;
type Sched = SmpPbgScheduler<u64, VirtualClock, PerThread, ThreadSmpState>;
type Sharing = System<u64, VirtualClock, PerThread, ThreadSmpState>;

const ANYWHERE: u64 = u64::MAX;

fn job() -> Handle<u64> {
    Arc::new(Job::new(ANYWHERE))
}

fn may_run(task: *const (), cpu: usize) -> bool {
    // SAFETY: of one of the tasks above.
    unsafe { *task.cast::<u64>() >> cpu & 1 != 0 }
}

thread_local! {
    static ALL: Cell<*const Sharing> = const { Cell::new(ptr::null()) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static JOINED: Cell<u32> = const { Cell::new(0) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// The shared state of the CPUs, for one test.
struct Connected(&'static Sharing);

impl Connected {
    fn new(machine: Machine) -> Self {
        PerThread::renew();
        ThreadSmpState::renew();
        // SAFETY: they are new, and no other code finds them.
        unsafe { Sched::connect(machine) };
        let (_, all) = Sched::connected().unwrap();
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

    all.with_lock_as(1, |_, _| ()); // it is free
    assert_eq!(WAITS.get(), 0);
    core::mem::forget(all.locked.lock());
    all.with_lock_as(1, |_, _| ());
    assert_eq!(WAITS.get(), 3);
    assert!(!all.locked.is_locked());
}

/// COUNTED: a task that is held on one CPU is no reason for another to take the lock.
#[test]
fn a_task_held_on_another_cpu_is_not_counted() {
    let connected = Connected::new(simulated_machine(2));
    let all = connected.0;
    let task = job();
    let counts = || (all.free.load(Relaxed), all.grants[1].held.load(Relaxed));
    all.with_lock_as(1, |locked, _| {
        locked.placement.count_in(&task, Reservation::NONE)
    });
    assert_eq!(counts(), (1, 0));
    for (held, counted) in [
        (Reservation::until_switched(1), (0, 1)),
        (Reservation::reserved_for(0), (1, 0)),
        (Reservation::pinned(1), (0, 1)),
        (Reservation::until_switched(0), (0, 0)),
    ] {
        all.with_lock_as(1, |locked, _| locked.placement.hold(&task, held));
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
    all.with_lock_as(1, |locked, _| {
        [63, 2, 0, 2].map(|cpu| locked.placement.interrupt(cpu))
    });
    assert_eq!(SENT.take(), [0, 2, 63]);
    all.with_lock_as(1, |_, _| ());
    assert!(SENT.take().is_empty());
}

/// PLACED, LEFT and STAYS: how a ready task is held, and the CPUs of three that may run it and those
/// for which it is reserved elsewhere. Its affinity allows the first two.
#[test]
fn task_in_a_queue_is_for_the_cpus_that_its_hold_and_its_affinity_allow() {
    let machine = Machine {
        may_run,
        ..simulated_machine(3)
    };
    let task = Job::new(0b011);
    let grant = Grant::<u64, true>::new();
    let each = [0, 1, 2];
    for (held, may_run, reserved) in [
        (Reservation::NONE, [true, true, false], [false; 3]),
        (
            Reservation::reserved_for(0),
            [true, true, false],
            [false, true, true],
        ),
        (
            Reservation::reserved_for(1),
            [true, true, false],
            [true, false, true],
        ),
        (
            Reservation::until_switched(1),
            [false, true, false],
            [false; 3],
        ),
        (Reservation::until_switched(2), [false; 3], [false; 3]),
        (Reservation::pinned(2), [false, false, true], [false; 3]),
    ] {
        task.policy_state().reserve(held);
        let here = each.map(|cpu| Here::<_, ThreadSmpState>::new(&machine, cpu, &grant));
        assert_eq!(
            each.map(|cpu| may_have(&machine, &task, cpu)),
            may_run,
            "{held:?}"
        );
        assert_eq!(here.map(|here| here.may_have(&task)), may_run, "{held:?}");
        assert_eq!(
            here.map(|here| here.is_reserved_elsewhere(&task)),
            reserved,
            "{held:?}"
        );
        assert_eq!(here.map(Caller::number), each);
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
    let own = &connected.0.grants[0];
    let mut sched = Sched::new();
    sched.add_task(job());
    let task = sched.pick_next_task().unwrap();
    own.set_budget(2);
    let kept = || own.has_kept();

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
    ThreadSmpState::renew();
    let control = PerThread::control();
    let mut sched = Sched::new();
    sched.add_task(job());
    let root = sched.pick_next_task().unwrap();
    control.measure_start().unwrap();
    sched.add_task(job());
    sched.put_prev_task(root, false);
    let child = sched.pick_next_task().unwrap();
    let _ = control.measure_end_by::<VirtualClock>().unwrap();
    let _ = control.start_pbg().unwrap();
    sched.add_task(job());
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
    current: [Option<Handle<u64>>; 2],
}

impl TwoCpus {
    fn new() -> Self {
        let mut scheds = [Sched::new(), Sched::new()];
        ThreadSmpState::renew();
        JOINED.set(0);
        scheds[0].add_task(job());
        let connected = Connected::new(Machine {
            this_cpu: || HERE.get().0,
            current: || HERE.get().1,
            interrupt: |cpu| SENT.with_borrow_mut(|sent| sent.push(cpu)),
            join: || JOINED.set(JOINED.get() + 1),
            wait: waits,
            may_run,
            ..simulated_machine(2)
        });
        VirtualClock::set(0);
        let mut cpus = Self {
            connected,
            scheds,
            current: [Some(job()), None],
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

    fn spawn(&mut self, cpu: usize) -> Handle<u64> {
        self.spawn_for(cpu, ANYWHERE)
    }

    /// Spawns a task that may run on these CPUs.
    fn spawn_for(&mut self, cpu: usize, mask: u64) -> Handle<u64> {
        let task = Arc::new(Job::new(mask));
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

    /// The running task yields. Returns true if it goes on without the lock.
    fn yield_without_lock(&mut self, cpu: usize) -> bool {
        let lock = &self.connected.0.locked;
        core::mem::forget(lock.lock());
        WAITS.set(0);
        self.yield_now(cpu);
        let is_locked = lock.is_locked();
        if is_locked {
            // SAFETY: locked above, and forgotten.
            unsafe { lock.force_unlock() };
        }
        is_locked
    }

    fn preempt(&mut self, cpu: usize) {
        self.here(cpu);
        let task = self.current[cpu].clone().unwrap();
        self.scheds[cpu].put_prev_task(task, true);
        self.pick(cpu);
    }

    /// The running task blocks or exits.
    fn block(&mut self, cpu: usize) -> Handle<u64> {
        let task = self.current[cpu].clone().unwrap();
        self.pick(cpu);
        task
    }

    fn wake(&mut self, cpu: usize, task: &Handle<u64>) {
        self.here(cpu);
        self.scheds[cpu].put_prev_task(task.clone(), false);
    }

    /// A tick, or an interrupt if one was sent.
    fn tick(&mut self, cpu: usize) -> bool {
        self.here(cpu);
        let task = self.current[cpu].clone().unwrap();
        self.scheds[cpu].task_tick(&task)
    }

    fn is_running(&self, cpu: usize, task: &Handle<u64>) -> bool {
        let current = self.current[cpu].as_ref();
        current.is_some_and(|current| Arc::ptr_eq(current, task))
    }

    /// Returns CPUs that follow the plan of tasks with these run times, which are spawned again. The
    /// second CPU runs the first one.
    fn replaying<const N: usize>(runs: [u64; N]) -> (Self, [Handle<u64>; N]) {
        let mut cpus = Self::new();
        cpus.plan(&runs);
        let tasks = runs.map(|_| cpus.spawn(0));
        cpus.pick(1);
        assert!(cpus.is_running(1, &tasks[0]));
        (cpus, tasks)
    }

    /// Follows the plan of this profile.
    fn follow(&mut self, profile: &StoredProfile) {
        let about = About {
            program: profile.header.program,
            timing: profile.header.timing,
            frequency_hz: profile.header.frequency_hz,
            cpus: 2,
        };
        let bytes = pbg_profile::encode(profile).unwrap();
        let count = profile.tasks.len();
        assert_eq!(self.control(0).load(&bytes, &about), Ok(count));
        assert_eq!(self.control(0).start_pbg(), Ok(count));
    }

    /// Measures tasks that the second CPU runs for this long, one after the other, and follows that
    /// plan.
    fn plan(&mut self, runs: &[u64]) {
        self.control(0).measure_start().unwrap();
        runs.iter().for_each(|_| drop(self.spawn(0)));
        self.pick(1);
        for &run in runs {
            VirtualClock::advance(run);
            self.block(1);
        }
        let measured = self.control(0).measure_end_by::<VirtualClock>();
        assert_eq!(measured, Ok(runs.len()));
        assert_eq!(self.control(0).start_pbg(), Ok(runs.len()));
        SENT.take();
    }
}

/// Rule 5: an interrupt takes what the running task was granted, so that it also gives way if it
/// yields before it is preempted.
#[test]
fn interrupted_task_that_yields_gives_way() {
    let (mut cpus, [short, long]) = TwoCpus::replaying([10, 1_000]);
    cpus.block(1);
    assert!(cpus.is_running(1, &long));
    cpus.yield_now(1);
    let budget = cpus.connected.0.grants[1].budget();
    assert!(budget > 0 && cpus.is_running(1, &long), "{budget}");

    SENT.take();
    cpus.wake(0, &short);
    assert_eq!(SENT.take(), [1]);
    assert!(cpus.tick(1), "it asks for preemption");
    cpus.yield_now(1);
    assert!(cpus.is_running(1, &short));
}

/// PLACED: a CPU whose task comes first is not interrupted for one that comes after it.
#[test]
fn cpu_whose_task_comes_first_is_not_interrupted() {
    let mut cpus = TwoCpus::new();
    cpus.plan(&[10, 1_000]);
    let short = cpus.spawn(0);
    cpus.pick(1);
    assert!(cpus.is_running(1, &short));
    SENT.take();
    cpus.spawn(0);
    assert!(SENT.take().is_empty());
}

/// PLACED and rule 10 of the plan: a stage takes the CPU of one of its band at the tick, and that of
/// a later band at once. The bands of two streams are [0, 1] and [2, 3].
#[test]
fn stage_interrupts_no_stage_of_its_band() {
    for (running, woken, is_asked) in [(1, 0, false), (3, 2, false), (3, 0, true)] {
        let mut cpus = TwoCpus::new();
        let stages = [(10, 1), (20, 0), (1_000, 3), (2_000, 2)];
        let stages = (0..).zip(stages);
        let stages = stages.map(|(ordinal, (run, other))| stage(ordinal, run, other));
        cpus.follow(&of(stages.collect()));
        let tasks = [(); 4].map(|()| cpus.spawn(0));
        cpus.pick(1);
        while !cpus.is_running(1, &tasks[running]) {
            cpus.block(1);
        }
        SENT.take();
        cpus.wake(0, &tasks[woken]);
        assert_eq!(SENT.take(), [1][..usize::from(is_asked)]);
        assert!(cpus.tick(1), "{running} {woken}");
    }
}

/// A task that was recorded in the measurement before and is alone on its CPU does not go on
/// recording, as its record is another task's by then.
#[test]
fn task_of_an_earlier_measurement_is_not_recorded_in_the_next() {
    let mut cpus = TwoCpus::new();
    cpus.control(0).measure_start().unwrap();
    let older = cpus.spawn(0);
    cpus.pick(1);
    assert!(cpus.is_running(1, &older));
    assert_eq!(cpus.control(0).measure_end_by::<VirtualClock>(), Ok(1));
    let on_cpu = |cpu: usize| PerThread::control().running[cpu].get();
    assert!(!ptr::eq(on_cpu(1), &OUTSIDE));
    cpus.control(0).measure_start().unwrap();
    let newer = cpus.spawn(0);
    assert!(
        ptr::eq(on_cpu(1), &OUTSIDE),
        "nor does it wake or spawn a recorded task"
    );
    assert!(!ptr::eq(on_cpu(0), &OUTSIDE));
    cpus.block(0);
    assert!(cpus.is_running(0, &newer));
    for _ in 0..3 {
        cpus.yield_now(1);
        assert!(cpus.is_running(1, &older), "it is alone");
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
        assert!(cpus.is_running(1, task));
    }
    cpus.block(1);
    cpus.plan(&[10, 1_000]);
    let planned = cpus.spawn(0);
    cpus.pick(1);
    for (task, goes_on) in [(&outsider, true), (&gc, false)] {
        assert!(cpus.is_running(1, &planned));
        cpus.wake(0, task);
        for tick in 1..=PLAN_TICKS {
            assert_eq!(cpus.tick(1), tick == PLAN_TICKS, "{tick}");
        }
        cpus.preempt(1);
        assert!(cpus.is_running(1, task));
        cpus.yield_now(1);
        assert!(cpus.is_running(1, if goes_on { task } else { &planned }));
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
        assert!(cpus.is_running(1, task));
    }
    cpus.block(1);
    cpus.plan(&[10, 1_000]);
    let planned = cpus.spawn(0);
    cpus.pick(1);
    for task in [&has_turn, &held, &other, &gc] {
        cpus.wake(0, task);
    }
    for tick in 1..=PLAN_TICKS {
        assert_eq!(cpus.tick(1), tick == PLAN_TICKS, "{tick}");
    }
    cpus.preempt(1);
    assert!(cpus.is_running(1, &has_turn));
    cpus.block(0);
    assert!(cpus.is_running(0, &held));
    cpus.yield_now(0);
    assert!(
        cpus.is_running(0, &other),
        "so the CPU has not surely left the other"
    );
    cpus.block(1);
    assert!(cpus.is_running(1, &planned));
}

#[test]
fn name_is_that_of_one_cpu_and_no_priority_is_set() {
    assert_eq!(Sched::scheduler_name(), "PBG");
    assert_eq!(PbgScheduler::<u64, VirtualClock>::scheduler_name(), "PBG");
    assert!(!Sched::new().set_priority(&job(), 0));
}

/// A CPU joins once, with the tasks that are in its queue by then.
#[test]
fn cpu_joins_once_and_brings_its_tasks_along() {
    ThreadSmpState::renew();
    let mut sched = Sched::new();
    let [gc, woken] = [(); 2].map(|()| job());
    sched.add_task(gc.clone());
    sched.put_prev_task(woken.clone(), false);
    let _connected = Connected::new(Machine {
        join: || JOINED.set(JOINED.get() + 1),
        ..one_of_two()
    });
    for task in [&gc, &woken] {
        let next = sched.pick_next_task();
        assert!(next.is_some_and(|next| Arc::ptr_eq(&next, task)));
    }
    assert_eq!(JOINED.get(), 1);
}

/// The CPUs are asked by what is published, so that it is told at each change.
#[test]
fn cpu_is_published_as_idle_from_the_pick_that_finds_no_task_to_the_next_that_does() {
    let mut cpus = TwoCpus::new();
    let idle = || [0, 1].map(|cpu| ThreadSmpState::smp_state().is_idle(cpu));
    assert_eq!(idle(), [false, true]);
    cpus.pick(1);
    assert_eq!(idle(), [false, true]);
    cpus.spawn(0);
    cpus.pick(1);
    assert_eq!(idle(), [false, false]);
    cpus.yield_now(1);
    assert_eq!(idle(), [false, false]);
    cpus.block(1);
    assert_eq!(idle(), [false, true]);
}

/// A yield goes on without the lock if no other task is ready that the CPU may run and no call
/// waits. Each row is what happens before the yield.
#[test]
fn yield_without_a_plan_takes_the_lock_only_if_it_has_to() {
    type Before = fn(&mut TwoCpus);
    let rows: [(&str, Before, bool); 6] = [
        ("alone", |_| (), true),
        ("a task is ready", |cpus| drop(cpus.spawn(0)), false),
        (
            "one is held on this CPU",
            |cpus| {
                cpus.spawn(0);
                cpus.yield_now(1);
            },
            false,
        ),
        (
            "one is held on another CPU",
            |cpus| {
                cpus.spawn_for(0, 0b01);
                cpus.yield_now(0);
            },
            true,
        ),
        (
            "a call waits",
            |cpus| cpus.control(0).measure_start().unwrap(),
            false,
        ),
        (
            "it is older than the measurement",
            |cpus| {
                cpus.control(0).measure_start().unwrap();
                cpus.yield_now(0);
            },
            false,
        ),
    ];
    for (before, does, is_free) in rows {
        let mut cpus = TwoCpus::new();
        cpus.spawn(0);
        cpus.pick(1);
        does(&mut cpus);
        assert_eq!(cpus.yield_without_lock(1), is_free, "{before}");
    }
}

/// Rule 5: a task that has used its grant is looked at, even if it is alone.
#[test]
fn yield_beyond_the_plan_takes_the_lock() {
    let mut cpus = TwoCpus::new();
    cpus.plan(&[10, 1_000]);
    let short = cpus.spawn(0);
    cpus.pick(1);
    assert!(cpus.is_running(1, &short));
    cpus.connected.0.grants[1].set_budget(1);
    assert!(cpus.yield_without_lock(1));
    assert!(!cpus.yield_without_lock(1));
}

/// A task that is alone is dispatched once more by each yield.
#[test]
fn yields_of_a_task_that_is_alone_are_measured() {
    let mut cpus = TwoCpus::new();
    cpus.control(0).measure_start().unwrap();
    cpus.spawn(0);
    cpus.pick(1);
    for _ in 0..3 {
        assert!(cpus.yield_without_lock(1));
    }
    cpus.block(1);
    assert_eq!(cpus.control(0).measure_end_by::<VirtualClock>(), Ok(1));
    let plan = cpus.control(0).plan().unwrap().unwrap();
    assert_eq!(plan.tasks()[0].yields, 3);
}

/// Rule 6: the put of a switch picks, too.
#[test]
fn task_that_gives_way_takes_the_lock_once() {
    let mut cpus = TwoCpus::new();
    let first = cpus.spawn(0);
    cpus.pick(1);
    let next = cpus.spawn(0);
    cpus.here(1);
    cpus.scheds[1].put_prev_task(first, false);
    assert!(cpus.connected.0.grants[1].is_kept(&next));
}

/// LEFT: no CPU is interrupted to hand over a task that only it may run.
#[test]
fn pinned_task_that_gives_way_costs_no_ipi_beside_an_idle_cpu() {
    for (mask, sent) in [(0b10, &[][..]), (0b11, &[1])] {
        let mut cpus = TwoCpus::new();
        let first = cpus.spawn_for(1, mask);
        cpus.pick(1);
        cpus.spawn_for(1, 0b10);
        cpus.block(0);
        assert!(cpus.is_running(1, &first) && cpus.current[0].is_none());
        SENT.take();
        cpus.yield_now(1);
        assert_eq!(SENT.take(), sent, "{mask:#b}");
    }
}

/// PLACED: the CPU whose task comes last is interrupted, whichever it is.
#[test]
fn cpu_whose_task_comes_last_is_interrupted() {
    for last in [0, 1] {
        let (mut cpus, [short, mid, long]) = TwoCpus::replaying([10, 500, 1_000]);
        cpus.block(1 - last);
        cpus.block(last);
        assert!(
            cpus.is_running(1 - last, &mid) && cpus.is_running(last, &long),
            "{last}"
        );
        SENT.take();
        cpus.wake(0, &short);
        assert_eq!(SENT.take(), [last]);
    }
}

/// PLACED: a tick that does not preempt is an answer, too.
#[test]
fn cpu_that_was_asked_in_vain_is_asked_again() {
    let (mut cpus, [short, long]) = TwoCpus::replaying([10, 1_000]);
    cpus.block(1);
    assert!(cpus.is_running(1, &long));
    let main = cpus.current[0].clone().unwrap();
    SENT.take();
    cpus.wake(0, &short);
    assert_eq!(SENT.take(), [1]);
    cpus.block(0);
    assert!(cpus.is_running(0, &short), "it was faster");
    assert!(!cpus.tick(1));
    cpus.block(0);
    cpus.wake(0, &main);
    cpus.pick(0);
    assert!(cpus.is_running(0, &main));
    SENT.take();
    cpus.wake(0, &short);
    assert_eq!(SENT.take(), [1]);
}

/// LEFT: a CPU that runs an earlier task does not ask for one that another CPU holds.
#[test]
fn later_task_that_another_cpu_holds_is_not_asked_for() {
    let (mut cpus, [short, mid, long]) = TwoCpus::replaying([10, 500, 1_000]);
    cpus.block(1);
    let main = cpus.block(0);
    assert!(cpus.is_running(1, &mid) && cpus.is_running(0, &long));
    cpus.wake(0, &short);
    assert!(cpus.tick(0));
    cpus.preempt(0);
    assert!(cpus.is_running(0, &short));
    cpus.wake(0, &main);
    SENT.take();
    cpus.block(1);
    assert!(cpus.is_running(1, &main));
    assert_eq!(SENT.take(), []);
}
