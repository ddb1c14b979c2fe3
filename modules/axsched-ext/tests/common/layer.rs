//! The layer that records any policy, on the model.

use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Promises, check};
use axsched_ext::model::{ModelTask, here};
use axsched_ext::pbg::Error;
use axsched_ext::recorded::{
    Here, Recorded, RecordedTask, RecordingPerThread, RecordingSource, Subject, WithSlot,
};

use super::on_add::OnAdd;

/// Declares a policy that the layer records, by its name, its task and its scheduler.
macro_rules! subject {
    ($subject:ident, $name:expr, $task:ty, $scheduler:ty) => {
        struct $subject;

        impl axsched_ext::recorded::Subject for $subject {
            const NAME: &'static str = $name;
            type Inner = axsched_ext::model::ModelTask;
            type Task = $task;
            type Scheduler = $scheduler;

            fn task(inner: $crate::common::layer::Inner) -> $task {
                <$task>::new(inner)
            }

            fn scheduler() -> $scheduler {
                <$scheduler>::default()
            }
        }
    };
}
pub(crate) use subject;

/// The inner task of a policy that the layer records.
pub type Inner = WithSlot<ModelTask>;

pub type Layer<S> = Recorded<S, VirtualClock, RecordingPerThread>;

/// Returns the acting CPU and its task as the machine knows them. There are none where the suite calls by hand.
pub fn machines_here<S: Subject<Inner = ModelTask> + 'static>() -> Here {
    match here() {
        // SAFETY: it is what the machine's current task is wrapped in, and that is alive.
        Some((cpu, task)) => Here::new(unsafe { &*task.cast::<RecordedTask<S>>() }, cpu),
        None => {
            // Leaked, as the caller may look at it later.
            let none = RecordedTask::<S>::new(ModelTask::new(0, "none"));
            Here::new(Box::leak(Box::new(none)), 0)
        }
    }
}

/// Returns a layer that begins to measure anew when each machine's first `gc` is in its queue.
fn measuring<S: Subject<Inner = ModelTask>>(
    cpu: usize,
) -> impl BaseScheduler<SchedItem = Arc<RecordedTask<S>>> {
    let mut begins = cpu == 0;
    OnAdd {
        scheduler: Layer::<S>::new(),
        on_add: move |_: &mut _, _: &_| {
            if std::mem::take(&mut begins) {
                // The same recording again: a table takes 2.5 MiB.
                let recording = RecordingPerThread::recording();
                match recording.measure_end_by::<VirtualClock>() {
                    Ok(_) | Err(Error::NotMeasuring) => recording.measure_start().unwrap(),
                    Err(error) => panic!("{error}"),
                }
            }
        },
    }
}

/// Asserts that a policy conforms while nothing is measured and while all is, and decides the same.
pub fn conforms_recorded<S: Subject<Inner = ModelTask> + 'static>(promises: &Promises) {
    let promises = Promises {
        on_time: VirtualClock::set,
        random_programs: 60,
        ..promises.clone()
    };
    let recording = RecordingPerThread::renew();
    let idle = check(&promises, |_| Layer::<S>::new(), RecordedTask::<S>::new).unwrap();
    // SAFETY: see there.
    unsafe { recording.connect(machines_here::<S>) };
    let measuring = check(&promises, measuring::<S>, RecordedTask::<S>::new).unwrap();
    assert_eq!(idle, measuring);
    assert!(idle.rules == 27 && idle.wake_spins > 0, "{idle:?}");
    assert!(recording.measure_end_by::<VirtualClock>().is_ok());
}
