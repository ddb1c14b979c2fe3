//! The schedulers on the machine that the model simulates.

use sched_core::clock::VirtualClock;
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};
use sched_smp::{Machine, ThreadSmpState, simulated_machine};

use crate::scheduler::{DelegatedScheduler, SmpDelegatedScheduler};
use crate::table::{TableSource, ThreadTable};
use crate::task::DelegatedTask;

/// Runs [`model::run`] with the delegated scheduler on one CPU or on several, and with a new table.
/// `M` is a [`ThreadTable`].
///
/// # Errors
/// The first [`Violation`](model::Violation) found.
pub fn simulate<M: TableSource>(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    <ThreadTable>::renew();
    if config.cpus == 1 {
        let made = |_| DelegatedScheduler::<ModelTask, VirtualClock, M>::new();
        return model::run(config, main, made, DelegatedTask::new);
    }
    // SAFETY: the state is new, and belongs to this thread. All schedulers that find it are made
    // below, one for each CPU, with one type of task, and none outlives the call.
    unsafe { ThreadSmpState::renew().connect(machine(config.cpus)) };
    let made = |_| SmpDelegatedScheduler::<ModelTask, VirtualClock, M>::new();
    let ended = model::run(config, main, made, DelegatedTask::new);
    // SAFETY: the schedulers are gone.
    unsafe { ThreadSmpState::retire() };
    ended
}

/// Returns the machine of the model, which may be called when it is gone as well: the tasks of a run
/// that failed die later.
fn machine(cpus: usize) -> Machine {
    Machine {
        this_cpu: || model::here().map_or(0, |(cpu, _)| cpu),
        interrupt: |cpu| {
            if model::here().is_some() {
                model::interrupt(cpu);
            }
        },
        ..simulated_machine(cpus)
    }
}
