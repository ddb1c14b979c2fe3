//! PBG on the simulated machine of the model.

use sched_core::clock::VirtualClock;
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};
#[cfg(feature = "preempted_stay")]
use sched_smp::ThreadSmpStatePinned;
use sched_smp::{SmpStateSource, ThreadSmpState, simulated_machine as machine};

use super::{PbgTask, PerThread, SmpPbgScheduler};

/// Calls [`model::run`] with PBG on several CPUs. They follow one plan, under the control of this
/// thread ([`PerThread`]).
///
/// # Errors
/// Returns the first [`Violation`](model::Violation) found.
pub fn run_together(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    match config.preempted_stay {
        #[cfg(feature = "preempted_stay")]
        true => together::<ThreadSmpStatePinned>(config, main),
        _ => together::<ThreadSmpState>(config, main),
    }
}

fn together<S: SmpStateSource + 'static>(
    config: &Config,
    main: &Program,
) -> Result<Report, Box<Failure>> {
    type Pbg<S> = SmpPbgScheduler<ModelTask, VirtualClock, PerThread, S>;
    ThreadSmpState::renew();
    // SAFETY: the state is new and belongs to this thread. All schedulers that find it are made below,
    // and none of them outlives the call. No other code uses this thread's control while this runs.
    unsafe { Pbg::<S>::connect(machine(config.cpus)) };
    let ended = model::run(config, main, |_| Pbg::<S>::new(), PbgTask::new);
    // SAFETY: the schedulers are gone, and no other code has a reference.
    unsafe {
        Pbg::<S>::retire();
        ThreadSmpState::retire();
    }
    ended
}
