//! Where memory is short, a call answers `NoMemory` and changes nothing. Each
//! allocation of each call is refused once.

#[path = "common/memory.rs"]
mod memory;

use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::pbg::stored::{Program, ProgramName, Timing};
use axsched_ext::pbg::{About, Control, Mode, PbgScheduler, PbgTask, PerThread};
use axsched_ext::syscall::Error;

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

/// Refused, a call leaves mode and record as they are.
fn refused_until_granted<R>(control: &Control, call: impl Fn() -> Result<R, Error>) -> R {
    let state = || (control.status(), control.profile(&about()));
    memory::refused_until_granted(Error::NoMemory, state, call)
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
