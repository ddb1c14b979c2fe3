use alloc::{
    boxed::Box,
    string::String,
    sync::{Arc, Weak},
};
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};

use crate::AxCpuMask;

/// A task in its count of references.
pub type AxTaskRef = Arc<TaskInner>;
/// A reference that does not keep a task.
pub type WeakAxTaskRef = Weak<TaskInner>;

/// The hooks of a task, as `axtask` calls them.
#[extern_trait::extern_trait(
    /// The implementation of [`TaskExt`] that the program has.
    pub AxTaskExt
)]
pub trait TaskExt {
    /// Called when the task is switched in.
    fn on_enter(&self) {}
    /// Called when the task is switched out.
    fn on_leave(&self) {}
}

/// The number of a task, which is the one of its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskId(u64);

impl TaskId {
    /// Returns the number.
    pub const fn as_u64(self) -> u64 {
        self.0
    }
}

/// The state of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TaskState {
    /// It has the CPU.
    Running = 1,
    /// It could have the CPU.
    Ready,
    /// It waits for an event.
    Blocked,
    /// It will not run again.
    Exited,
}

const STATES: [TaskState; 4] = [
    TaskState::Running,
    TaskState::Ready,
    TaskState::Blocked,
    TaskState::Exited,
];

/// The record of a task.
pub struct TaskInner {
    id: AtomicU64,
    name: String,
    stack_bytes: usize,
    state: AtomicU8,
    entry: Option<Box<dyn FnOnce() + Send>>,
    ext: Option<AxTaskExt>,
}

// SAFETY: the meter behind `ext` consists of atomics, and the entry is taken before the task is shared.
unsafe impl Sync for TaskInner {}
// SAFETY: as above.
unsafe impl Send for TaskInner {}

impl TaskInner {
    /// Makes a task that will call `entry`.
    pub fn new(entry: impl FnOnce() + Send + 'static, name: String, stack_bytes: usize) -> Self {
        Self {
            entry: Some(Box::new(entry)),
            stack_bytes,
            ..Self::of_thread(0, name)
        }
    }

    /// Makes the record of a thread that exists.
    pub(crate) fn of_thread(id: u64, name: String) -> Self {
        Self {
            id: id.into(),
            name,
            stack_bytes: 0,
            state: AtomicU8::new(TaskState::Ready as u8),
            entry: None,
            ext: None,
        }
    }

    /// Returns the number of its thread.
    pub fn id(&self) -> TaskId {
        TaskId(self.id.load(Relaxed))
    }

    /// Returns a copy of its name.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// Returns what it does.
    pub fn state(&self) -> TaskState {
        STATES[usize::from(self.state.load(Relaxed)) - 1]
    }

    /// Returns its hooks, if it has any.
    pub fn task_ext(&self) -> Option<&AxTaskExt> {
        self.ext.as_ref()
    }

    /// Returns the place of its hooks.
    pub fn task_ext_mut(&mut self) -> &mut Option<AxTaskExt> {
        &mut self.ext
    }

    /// Returns the CPUs that it may run on.
    pub fn cpumask(&self) -> AxCpuMask {
        AxCpuMask
    }

    /// Changes nothing, because there is one CPU.
    pub fn set_cpumask(&self, _cpus: AxCpuMask) {}

    pub(crate) fn stack_bytes(&self) -> usize {
        self.stack_bytes
    }

    pub(crate) fn take_entry(&mut self) -> Box<dyn FnOnce() + Send> {
        self.entry.take().expect("a task is spawned once")
    }

    pub(crate) fn enter(&self, id: u64) {
        self.id.store(id, Relaxed);
        self.state.store(TaskState::Running as u8, Relaxed);
    }

    pub(crate) fn leave(&self, state: TaskState) {
        self.state.store(state as u8, Relaxed);
    }
}
