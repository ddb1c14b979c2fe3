//! [`BaseScheduler`]: upstream's trait, to the letter, with the contract as `axtask` really uses
//! it.
//!
//! The signature is that of `axsched` 0.3. The text is ours, because the upstream documentation
//! leaves out much that a policy has to know. Everything below was read from `axtask`
//! 0.3.0-preview.3.
//!
//! **Callers and locks.** There is one scheduler per CPU, inside that CPU's run queue. Every call
//! is made with that run queue's spin lock held and with interrupts and preemption off, so `&mut
//! self` is exclusive. All calls but [`add_task`](BaseScheduler::add_task) and
//! [`put_prev_task`](BaseScheduler::put_prev_task) come from the CPU that owns the queue. Those two
//! may come from any CPU.
//!
//! **Meaning of a call.** It is not always what its name says:
//!
//! | what happened | what the scheduler sees |
//! |---|---|
//! | spawn | `add_task` |
//! | yield | `put_prev_task(current, false)`, `pick_next_task` |
//! | preemption | `put_prev_task(current, true)`, `pick_next_task` |
//! | wake-up | `put_prev_task(other, resched)`; `other` is not running |
//! | migration | `put_prev_task(task, false)` on the target queue |
//! | block, exit | `pick_next_task` with no put before it |
//! | nothing ready | `pick_next_task` returns `None`, the idle task runs |
//! | timer tick | `task_tick(current)`, never for the idle task |
//!
//! [`event`](crate::event) turns this into typed events for every policy but PBG, which uses it
//! only to know the running task. `main` and migration helpers become current without ever being
//! picked. The first `add_task` on every queue is the `gc` task. In this version of `axtask` every
//! waker passes `resched` as false.

/// A scheduler that `axtask` can drive.
///
/// Only ready tasks are inside it: a running, blocked or exited task is not.
pub trait BaseScheduler {
    /// An owning handle of a task: usually an `Arc` of the policy's task type.
    type SchedItem;

    /// Prepares the scheduler. `axtask` never calls it, so it must not be needed.
    fn init(&mut self);

    /// Adds a new task. The call may come from another CPU.
    fn add_task(&mut self, task: Self::SchedItem);

    /// Removes a ready task and returns it, or `None` if it was not ready here.
    ///
    /// Upstream calls the absent case undefined behaviour; here it is an answer.
    /// `axtask` never calls it.
    fn remove_task(&mut self, task: &Self::SchedItem) -> Option<Self::SchedItem>;

    /// Removes and returns the task to run next, or `None` if no task is ready.
    fn pick_next_task(&mut self) -> Option<Self::SchedItem>;

    /// Enqueues a task that yielded, was preempted, woke up or migrated.
    ///
    /// `preempt` is true when the running task was preempted, and also when a
    /// waker asks for rescheduling; see the table in the [module](self).
    fn put_prev_task(&mut self, prev: Self::SchedItem, preempt: bool);

    /// Handles a timer tick while `current` runs. Returns true to ask for rescheduling, which
    /// `axtask` grants only when built with its `preempt` feature.
    fn task_tick(&mut self, current: &Self::SchedItem) -> bool;

    /// Sets a task's priority. Returns false if the policy has no priorities or not this one.
    fn set_priority(&mut self, task: &Self::SchedItem, prio: isize) -> bool;
}
