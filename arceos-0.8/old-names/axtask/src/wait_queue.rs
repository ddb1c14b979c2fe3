use core::{cell::RefCell, time::Duration};

/// [`ax_task::sync::WaitQueue`], whose conditions may change what they hold.
#[derive(Default)]
pub struct WaitQueue(ax_task::sync::WaitQueue);

impl WaitQueue {
    /// Makes an empty queue.
    pub const fn new() -> Self {
        Self(ax_task::sync::WaitQueue::new())
    }

    /// Blocks the calling task until another wakes it.
    pub fn wait(&self) {
        self.0.wait();
    }

    /// Blocks the calling task until `condition` holds. Returns at once if it holds already.
    pub fn wait_until(&self, condition: impl FnMut() -> bool) {
        let condition = RefCell::new(condition);
        self.0.wait_until(|| condition.borrow_mut()());
    }

    /// Blocks the calling task until `condition` holds, for at most `duration`. Returns true if it
    /// did not hold in time.
    pub fn wait_timeout_until(
        &self,
        duration: Duration, // from now
        condition: impl FnMut() -> bool,
    ) -> bool {
        let condition = RefCell::new(condition);
        self.0
            .wait_timeout_until(duration, || condition.borrow_mut()())
    }

    /// Wakes one task, and returns true if one waited. A task of a higher rank preempts the caller.
    pub fn notify_one(&self, _resched: bool) -> bool {
        self.0.notify_one()
    }

    /// Wakes all tasks. A task of a higher rank preempts the caller.
    pub fn notify_all(&self, _resched: bool) {
        self.0.notify_all();
    }
}
