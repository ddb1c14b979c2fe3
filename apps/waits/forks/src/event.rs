//! An event that tasks wait for, and tasks that work between two events.

use alloc::{string::String, sync::Arc};
use core::sync::atomic::{AtomicUsize, Ordering::*};

use sched_tests_common::{Task, platform::WaitQueue, work};

/// Something that happens once, after a number of tasks have done their part.
pub struct Event {
    missing: AtomicUsize,
    waiting: WaitQueue,
}

impl Event {
    /// Makes an event to which this many tasks contribute.
    pub fn of(tasks: usize) -> Arc<Self> {
        Arc::new(Self {
            missing: AtomicUsize::new(tasks),
            waiting: WaitQueue::new(),
        })
    }

    /// Does the part of one task.
    fn count(&self) {
        if self.missing.fetch_sub(1, AcqRel) == 1 {
            self.waiting.wake_all();
        }
    }

    /// Waits until all tasks have done their part.
    fn wait(&self) {
        self.waiting.wait_until(|| self.missing.load(Acquire) == 0);
    }
}

/// Returns a task that waits for one event, runs the loop of [`work`], and contributes to another
/// event. It never yields.
pub fn between(
    before: Option<&Arc<Event>>,
    name: String,
    rounds: u64,
    after: Option<&Arc<Event>>,
) -> Task {
    let (before, after) = (before.cloned(), after.cloned());
    let body = move |_: &_| {
        before.iter().for_each(|event| event.wait());
        let right = work::spin(1, rounds) == work::jump(1, rounds);
        after.iter().for_each(|event| event.count());
        right
    };
    Task::new(name, body).yielding(0)
}
