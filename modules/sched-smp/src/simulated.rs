//! The layer on the machine that the model simulates.

use super::layer::WorkSharing;
#[cfg(feature = "preempted_stay")]
use super::smp_state::ThreadSmpStatePinned;
use super::smp_state::{Machine, SmpStateSource, ThreadSmpState};
use sched_core::event::Policy;
use sched_core::task::{InitialState, Task};
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};

/// Runs [`model::run`] with a policy within the layer, whose tasks may go from queue to queue
/// ([`Config::stealing`]).
///
/// # Errors
/// The first [`Violation`](model::Violation) found.
pub fn run_balanced<P>(config: &Config, main: &Program) -> Result<Report, Box<Failure>>
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
{
    match config.preempted_stay {
        #[cfg(feature = "preempted_stay")]
        true => balanced::<P, ThreadSmpStatePinned>(config, main),
        _ => balanced::<P, ThreadSmpState>(config, main),
    }
}

fn balanced<P, S>(config: &Config, main: &Program) -> Result<Report, Box<Failure>>
where
    P: Policy<Inner = ModelTask>,
    P::State: InitialState,
    S: SmpStateSource,
{
    // SAFETY: the state is new, and belongs to this thread. All layers that find it are made below,
    // one for each CPU, with one type of task, and none outlives the call. `here` returns the
    // acting CPU.
    unsafe { ThreadSmpState::renew().connect(machine(config.cpus)) };
    let made = |_| WorkSharing::<P, S>::new();
    let ended = model::run(config, main, made, Task::<ModelTask, P::State>::new);
    // SAFETY: the layers are gone, and no other code has a reference to the state.
    unsafe { ThreadSmpState::retire() };
    ended
}

/// Returns the machine of the model, for tasks that wrap a [`ModelTask`].
pub fn machine(cpus: usize) -> Machine {
    Machine {
        cpus,
        this_cpu: || here().0,
        current: || here().1,
        interrupt: model::interrupt,
        join: || {},
        wait: core::hint::spin_loop,
        may_run: |task, cpu| {
            // SAFETY: `Machine` promises that the pointer is to such a task, and that it is alive.
            model::may_run(unsafe { &*task.cast::<ModelTask>() }, cpu)
        },
    }
}

fn here() -> (usize, *const ()) {
    model::here().expect("a machine of the model runs")
}
