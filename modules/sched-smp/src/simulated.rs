//! The layer on the machine that the model plays.

use super::layer::WorkSharing;
#[cfg(feature = "preempted_stay")]
use super::smp_state::ThreadSmpStatePinned;
use super::smp_state::{Machine, SmpStateSource, ThreadSmpState};
use sched_core::event::Policy;
use sched_core::task::{InitialState, Task};
use sched_model::model::{self, Config, Failure, ModelTask, Program, Report};

/// [`model::run`] with a policy within the layer, whose tasks may go from queue to queue
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
    // SAFETY: it is new, and of this thread; all layers that find it are made below, one for each
    // CPU and of one type, and none of them outlives the call. `here` is the CPU that acts.
    unsafe { ThreadSmpState::renew().connect(machine(config.cpus)) };
    let made = |_| WorkSharing::<P, S>::new();
    let ended = model::run(config, main, made, Task::<ModelTask, P::State>::new);
    // SAFETY: the layers are gone, and no other code has a reference to it.
    unsafe { ThreadSmpState::retire() };
    ended
}

/// The machine of the model, for tasks that wrap a [`ModelTask`].
pub fn machine(cpus: usize) -> Machine {
    Machine {
        cpus,
        this_cpu: || here().0,
        current: || here().1,
        interrupt: model::interrupt,
        join: || {},
        wait: core::hint::spin_loop,
        may_run: |task, cpu| {
            // SAFETY: such a task, and alive, as `Machine` promises.
            model::may_run(unsafe { &*task.cast::<ModelTask>() }, cpu)
        },
    }
}

fn here() -> (usize, *const ()) {
    model::here().expect("a machine of the model runs")
}
