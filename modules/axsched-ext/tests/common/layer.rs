//! The layer that records, around any policy, on the model.

use std::sync::Arc;

use axsched_ext::BaseScheduler;
use axsched_ext::clock::VirtualClock;
use axsched_ext::conformance::{Promises, check};
use axsched_ext::model::{ModelTask, here};
use axsched_ext::pbg::Error;
use axsched_ext::recorded::{
    Here, Recorded, RecordedTask, RecordingPerThread, RecordingSource, Subject,
};

use super::on_add::OnAdd;

pub type Layer<S> = Recorded<S, VirtualClock, RecordingPerThread>;

/// What the machine knows of who acts. Where the suite calls by hand, there is none.
pub fn machines_here<S: Subject<Inner = ModelTask> + 'static>() -> Here {
    match here() {
        // SAFETY: it is what the machine's current task is wrapped in, and that is alive.
        Some((cpu, task)) => Here::new(unsafe { &*task.cast::<RecordedTask<S>>() }, cpu),
        None => {
            // For good: whoever asks may look at it later.
            let nobody = Box::leak(Box::new(RecordedTask::<S>::new(ModelTask::new(
                0, "nobody",
            ))));
            Here::new(nobody, 0)
        }
    }
}

/// The layer, which begins to measure anew when each machine's first `gc` is in its queue.
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

/// The suite of the policy itself, while nothing is measured and while all is.
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
    // It has decided the same.
    assert_eq!(idle, measuring);
    assert!(idle.rules == 27 && idle.wake_spins > 0, "{idle:?}");
    assert!(recording.measure_end_by::<VirtualClock>().is_ok());
}
