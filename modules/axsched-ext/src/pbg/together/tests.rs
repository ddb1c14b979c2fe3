use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;
use std::vec::Vec;

use super::*;
use crate::balance::{SharedPerThread, simulated_machine};
use crate::clock::VirtualClock;
use crate::pbg::PerThread;

type Sched = Together<(), VirtualClock, PerThread, SharedPerThread>;
type Sharing = All<(), VirtualClock, PerThread, SharedPerThread>;

thread_local! {
    static ALL: Cell<*const Sharing> = const { Cell::new(ptr::null()) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
    static SENT: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

/// What all CPUs of this machine have together, for one test.
struct Connected(&'static Sharing);

impl Connected {
    fn new(machine: Machine) -> Self {
        PerThread::renew();
        SharedPerThread::renew();
        // SAFETY: they are new, and nobody else finds them.
        unsafe { Sched::connect(machine) };
        let (_, all) = Sched::all().unwrap();
        ALL.set(ptr::from_ref(all));
        Self(all)
    }
}

impl Drop for Connected {
    fn drop(&mut self) {
        // SAFETY: nobody uses it any more.
        unsafe { Sched::retire() };
        PerThread::retire();
    }
}

/// Who has the lock goes on when the others have waited three times.
fn waits() {
    WAITS.set(WAITS.get() + 1);
    if WAITS.get() == 3 {
        // SAFETY: the test's, which has it locked and forgotten.
        unsafe { (*ALL.get()).common.force_unlock() };
    }
}

#[test]
fn who_has_spun_for_long_lets_the_machine_wait() {
    let machine = Machine {
        wait: waits,
        ..simulated_machine(2)
    };
    let connected = Connected::new(machine);
    let all = connected.0;

    all.act(1, |_| ()); // nobody has it
    assert_eq!(WAITS.get(), 0);
    core::mem::forget(all.common.lock());
    all.act(1, |_| ());
    assert_eq!(WAITS.get(), 3);
    assert!(!all.common.is_locked());
}

/// COUNTED: a task that is held on one CPU is no reason for another to take the lock.
#[test]
fn who_is_held_elsewhere_is_not_counted() {
    let connected = Connected::new(simulated_machine(2));
    let all = connected.0;
    let task = Arc::new(PbgTask::new(()));
    let counts = || (all.free.load(Relaxed), all.own[1].held.load(Relaxed));
    all.act(1, |common| common.counts(&task, Held::NOT));
    assert_eq!(counts(), (1, 0));
    for (held, counted) in [
        (Held::left(1), (0, 1)),
        (Held::awaited(0), (1, 0)),
        (Held::stays(1), (0, 1)),
        (Held::left(0), (0, 0)),
    ] {
        all.act(1, |common| common.hold(&task, held));
        assert_eq!(counts(), counted, "{held:?}");
    }
}

/// Each CPU that is to be interrupted is, once, and without the lock.
#[test]
fn all_are_interrupted_once_the_lock_is_free() {
    let machine = Machine {
        interrupt: |cpu| {
            // SAFETY: the test's.
            assert!(!unsafe { &*ALL.get() }.common.is_locked());
            SENT.with_borrow_mut(|sent| sent.push(cpu));
        },
        ..simulated_machine(64)
    };
    let connected = Connected::new(machine);
    let all = connected.0;
    all.act(1, |common| [63, 2, 0, 2].map(|cpu| common.interrupt(cpu)));
    assert_eq!(SENT.take(), [0, 2, 63]);
    all.act(1, |_| ());
    assert!(SENT.take().is_empty());
}

/// PLACED: whoever comes for a task does not pass it over.
#[test]
fn who_is_awaited_is_kept_from_the_others() {
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

/// A machine of which the first CPU is seen only.
fn one_of_two() -> Machine {
    Machine {
        this_cpu: || 0,
        current: ptr::null,
        interrupt: |_| (),
        may_run: |_, _| true,
        ..simulated_machine(2)
    }
}

/// Rule 5 is about yields: who is preempted goes back, and has made none.
#[test]
fn who_is_preempted_does_not_just_go_on() {
    let connected = Connected::new(one_of_two());
    let own = &connected.0.own[0];
    let mut sched = Sched::new();
    sched.add_task(Arc::new(PbgTask::new(())));
    let task = sched.pick_next_task().unwrap();
    own.budget.store(2, Relaxed);
    let kept = || !own.kept.load(Relaxed).is_null();

    sched.put_prev_task(task, false);
    assert!(kept());
    let task = sched.pick_next_task().unwrap();
    assert_eq!((kept(), own.budget.load(Relaxed)), (false, 1));
    sched.put_prev_task(task, true);
    assert_eq!((kept(), own.budget.load(Relaxed)), (false, 1));
    assert!(sched.pick_next_task().is_some());
}

/// What one CPU follows by itself is not what all follow.
#[test]
#[should_panic(expected = "connected while one CPU follows a plan by itself")]
fn nobody_connects_a_cpu_that_follows_a_plan() {
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
