use std::cell::Cell;
use std::ptr;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::balance::{SharedPerThread, simulated_machine};
use crate::clock::VirtualClock;
use crate::pbg::PerThread;

type Sharing = All<(), VirtualClock, PerThread, SharedPerThread>;

thread_local! {
    static ALL: Cell<*const Sharing> = const { Cell::new(ptr::null()) };
    static WAITS: Cell<u32> = const { Cell::new(0) };
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
    PerThread::renew();
    SharedPerThread::renew();
    let machine = Machine {
        wait: waits,
        ..simulated_machine(2)
    };
    // SAFETY: they are new, and nobody else finds them.
    unsafe { Together::<(), VirtualClock, PerThread, SharedPerThread>::connect(machine) };
    let (_, all) = Together::<(), VirtualClock, PerThread, SharedPerThread>::all().unwrap();
    ALL.set(ptr::from_ref(all));

    all.act(1, |_| ()); // nobody has it
    assert_eq!(WAITS.get(), 0);
    core::mem::forget(all.common.lock());
    all.act(1, |_| ());
    assert_eq!(WAITS.get(), 3);
    assert!(!all.common.is_locked());

    // SAFETY: nobody uses it any more.
    unsafe { Together::<(), VirtualClock, PerThread, SharedPerThread>::retire() };
    PerThread::retire();
}

/// COUNTED: a task that is held on one CPU is no reason for another to take the lock.
#[test]
fn who_is_held_elsewhere_is_not_counted() {
    PerThread::renew();
    SharedPerThread::renew();
    // SAFETY: they are new, and nobody else finds them.
    unsafe {
        Together::<(), VirtualClock, PerThread, SharedPerThread>::connect(simulated_machine(2));
    }
    let (_, all) = Together::<(), VirtualClock, PerThread, SharedPerThread>::all().unwrap();
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
    // SAFETY: nobody uses it any more.
    unsafe { Together::<(), VirtualClock, PerThread, SharedPerThread>::retire() };
    PerThread::retire();
}
