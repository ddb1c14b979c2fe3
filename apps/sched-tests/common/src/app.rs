//! The parts of an application: its tasks, and the context of a task while it runs.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::{cell::Cell, time::Duration};

use crate::{platform, results::Question};

/// An application: a name, what it asks, and how to make its tasks.
pub struct App {
    /// The name in result lines.
    pub name: &'static str,
    /// The question that it asks.
    pub question: Question,
    /// Makes the tasks of one phase from the scale. They are submitted in this
    /// order, those that arrive later after the others, by the time they are due.
    pub tasks: fn(scale: u64) -> Vec<Task>,
    /// True if main holds a handle of each task until all are done, as a program does that
    /// joins its threads in order. Else no handle of a task that has ended is kept.
    pub holds_handles: bool,
    /// The number of further tasks, which those spawn themselves and which have no row.
    pub spawned_beside: usize,
}

impl App {
    /// Makes an application that asks when each task is done ([`Question::Ends`]), and whose main
    /// holds no handles.
    pub const fn new(name: &'static str, tasks: fn(scale: u64) -> Vec<Task>) -> Self {
        Self {
            name,
            question: Question::Ends,
            tasks,
            holds_handles: false,
            spawned_beside: 0,
        }
    }
}

/// One task of a workload.
pub struct Task {
    pub(crate) name: String,
    /// The time of arrival, since the start of the phase. 0 is before any task may start.
    pub(crate) arrival_ns: u64,
    pub(crate) expected_yields: Option<u64>,
    pub(crate) is_saturated: bool,
    pub(crate) is_labelled: bool,
    pub(crate) body: Box<dyn FnOnce(&TaskCtx) -> bool + Send>,
}

impl Task {
    /// Makes a task. `body` returns true if its computation came out right.
    pub fn new(
        name: impl Into<String>,
        body: impl FnOnce(&TaskCtx) -> bool + Send + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            arrival_ns: 0,
            expected_yields: None,
            is_saturated: false,
            is_labelled: true,
            body: Box::new(body),
        }
    }

    /// Submits the task at this time after the start of the phase, and not with the others. Its
    /// turnaround counts from then on, even if it is spawned later.
    pub fn arriving_at(self, arrival_ns: u64) -> Self {
        Self { arrival_ns, ..self }
    }

    /// Gives the task no label, so that PBG knows it by its place among the spawns.
    pub fn unlabelled(self) -> Self {
        Self {
            is_labelled: false,
            ..self
        }
    }

    /// Expects the task to yield exactly this often.
    pub fn yielding(self, yields: u64) -> Self {
        Self {
            expected_yields: Some(yields),
            ..self
        }
    }

    /// Leaves the amount of work to the task. The number of groups that it finished becomes one of
    /// its figures.
    pub fn saturated(self) -> Self {
        Self {
            is_saturated: true,
            ..self
        }
    }
}

/// The context of a task while it runs.
pub struct TaskCtx {
    yields: Cell<u64>,
    groups: Cell<u64>,
    /// The end of the window, since boot.
    deadline_ns: Option<u64>,
}

impl TaskCtx {
    pub(crate) fn new(deadline_ns: Option<u64>) -> Self {
        Self {
            yields: Cell::default(),
            groups: Cell::default(),
            deadline_ns,
        }
    }

    /// Yields, and counts the yield.
    pub fn yield_now(&self) {
        self.yields.set(self.yields.get() + 1);
        platform::yield_now();
    }

    /// Returns the number of yields so far.
    pub fn yields(&self) -> u64 {
        self.yields.get()
    }

    /// Sleeps, like a task that waits for a device. It takes at least `duration`, and on a guest it
    /// lasts until a timer tick.
    pub fn wait_io(&self, duration: Duration) {
        platform::sleep(duration);
    }

    /// Counts a finished group of work.
    pub fn finish_group(&self) {
        self.groups.set(self.groups.get() + 1);
    }

    /// Returns the number of finished groups so far.
    pub fn groups(&self) -> u64 {
        self.groups.get()
    }

    /// Returns true while the window of the application's question is open, or if there is none.
    pub fn in_window(&self) -> bool {
        self.deadline_ns.is_none_or(|end| platform::now_ns() < end)
    }
}
