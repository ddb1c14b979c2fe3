//! The machine of the model, for programs that simulate on the host.

use delegated::{DelegatedTask, SmpDelegatedScheduler, ThreadTable};
use sched_core::clock::VirtualClock;
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};
use sched_smp::{Machine, ThreadSmpState, simulated_machine};

/// The table of a simulation.
pub type Table = ThreadTable<ThreadSmpState>;

/// A task of a simulation.
pub type Task = DelegatedTask<ModelTask, Table>;

/// Runs a program under the delegated scheduler on several CPUs.
///
/// # Errors
/// The first fault that the model finds.
pub fn simulate(config: &Config, main: &Program) -> Result<Report, Box<Failure>> {
    <ThreadTable>::renew();
    let machine = Machine {
        this_cpu: || model::here().map_or(0, |(cpu, _)| cpu),
        ..simulated_machine(config.cpus)
    };
    // SAFETY: the state is new, and belongs to this thread. All schedulers that find it are made
    // below, one for each CPU, with one type of task, and none outlives the call.
    unsafe { ThreadSmpState::renew().connect(machine) };
    let made = |_| SmpDelegatedScheduler::<ModelTask, VirtualClock, Table>::new();
    let ended = model::run(config, main, made, Task::new);
    // SAFETY: the schedulers are gone.
    unsafe { ThreadSmpState::retire() };
    ended
}
