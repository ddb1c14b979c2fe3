//! Where memory is short, a call answers `NoMemory` and changes nothing. Each
//! allocation of each call is refused once.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::pbg::stored::{Program, ProgramName, Timing};
use axsched_ext::pbg::{About, Control, Mode, PbgScheduler, PbgTask, PerThread};
use axsched_ext::syscall::Error;

thread_local! {
    /// Allocations that this thread may still make.
    static GRANTED: Cell<u32> = const { Cell::new(u32::MAX) };
}

/// The system's allocator, with nothing left after so many allocations.
struct Short;

// SAFETY: every call is handed on to `System` as it came, or refused.
unsafe impl GlobalAlloc for Short {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        match GRANTED.get() {
            0 => return std::ptr::null_mut(),
            u32::MAX => {}
            left => GRANTED.set(left - 1),
        }
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Short = Short;

fn about() -> About {
    About {
        program: Program {
            name: ProgramName::new("test").unwrap(),
            hash: 1,
        },
        frequency_hz: 1_000_000_000,
        cpus: 1,
        timing: Timing::Unknown,
    }
}

/// Makes the call with 0, 1, 2 ... allocations until it succeeds.
fn refused_until_granted<R>(control: &Control, call: impl Fn() -> Result<R, Error>) -> R {
    for granted in 0.. {
        let before = (control.status(), control.profile(&about()));
        GRANTED.set(granted);
        let result = call();
        GRANTED.set(u32::MAX);
        match result {
            Ok(result) => {
                assert!(
                    granted > 0,
                    "the call allocates nothing: what is tested here?"
                );
                return result;
            }
            Err(error) => assert_eq!(error, Error::NoMemory, "{granted} granted"),
        }
        assert_eq!((control.status(), control.profile(&about())), before);
    }
    unreachable!()
}

#[test]
fn every_allocation_of_every_call_may_fail() {
    let control = PerThread::renew();
    let mut scheduler: PbgScheduler<u32, VirtualClock, PerThread> = PbgScheduler::new();
    scheduler.add_task(Arc::new(PbgTask::new(0))); // gc
    refused_until_granted(control, || control.measure_start());
    for i in 0..100 {
        scheduler.add_task(Arc::new(PbgTask::new(i)));
    }
    for i in 0..=100 {
        drop(scheduler.pick_next_task().unwrap()); // each runs once, and exits
        VirtualClock::advance(i * 7919 % 100);
    }
    assert!(scheduler.pick_next_task().is_none());
    assert_eq!(
        refused_until_granted(control, || control.measure_end_by::<VirtualClock>()),
        100
    );
    let profile = refused_until_granted(control, || control.profile(&about())).unwrap();
    assert_eq!(profile.tasks.len(), 100);
    assert_eq!(refused_until_granted(control, || control.start_pbg()), 100);
    assert_eq!(control.status().unwrap().mode, Mode::Replaying);
}
