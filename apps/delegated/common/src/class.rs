//! [`Class`]: a set of tasks that a program and its policy share. [`Classes`]: two queues of ready
//! tasks.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use delegated::{Kind, MAX_TASKS, Message, TaskId, TaskQueue};

/// A set of tasks.
pub struct Class([AtomicU64; MAX_TASKS / 64]);

impl Class {
    /// Creates an empty set.
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; MAX_TASKS / 64])
    }

    /// Adds a task, before it joins its enclave.
    pub fn add(&self, task: TaskId) {
        self.0[task.index() / 64].fetch_or(1 << (task.index() % 64), Relaxed);
    }

    /// Removes a task, which has left its enclave.
    pub fn remove(&self, task: TaskId) {
        self.0[task.index() / 64].fetch_and(!(1 << (task.index() % 64)), Relaxed);
    }

    /// Returns true if a task is in the set.
    pub fn has(&self, task: TaskId) -> bool {
        self.0[task.index() / 64].load(Relaxed) >> (task.index() % 64) & 1 != 0
    }
}

impl Default for Class {
    fn default() -> Self {
        Self::new()
    }
}

/// The most CPUs.
const MAX_CPUS: usize = 64;

/// A task that a CPU was told to run, and a time at which it ran.
#[derive(Clone, Copy)]
pub struct Running {
    /// Names the task.
    pub task: TaskId,
    /// The time at which it was chosen, or a later one.
    pub since: u64,
}

/// The tasks of an enclave in two classes: the ready ones, first in, first out, and those that run.
pub struct Classes {
    class: &'static Class,
    /// The ready tasks of the class.
    pub members: TaskQueue,
    /// The ready tasks that are not in the class.
    pub others: TaskQueue,
    /// The tasks that were chosen, by their CPU.
    pub running: [Option<Running>; MAX_CPUS],
}

impl Classes {
    /// Creates empty queues. Nothing is allocated after that.
    pub fn new(class: &'static Class) -> Self {
        Self {
            class,
            members: TaskQueue::new(),
            others: TaskQueue::new(),
            running: [None; MAX_CPUS],
        }
    }

    /// Returns true if a task belongs to the class.
    pub fn is_member(&self, task: TaskId) -> bool {
        self.class.has(task)
    }

    /// Notes what happened.
    pub fn told(&mut self, message: Message) {
        let task = message.task();
        match message.kind() {
            Kind::TICK => return,
            Kind::REDISCOVER => {
                self.members.clear();
                self.others.clear();
                self.running = [None; MAX_CPUS];
            }
            _ => self.stop(task),
        }
        match message.kind() {
            Kind::DEPARTED | Kind::DEAD => self.class.remove(task),
            kind if !kind.is_ready() => {}
            _ if self.class.has(task) => self.members.push_back(task),
            _ => self.others.push_back(task),
        }
    }

    /// Forgets a task that ran.
    fn stop(&mut self, task: TaskId) {
        for running in &mut self.running {
            if running.is_some_and(|running| running.task == task) {
                *running = None;
            }
        }
    }
}
