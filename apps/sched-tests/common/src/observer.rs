//! The observer of tasks that become ready. All of them go through the scheduler, so a layer around
//! it (`axsched::observe`) reports them to the log of [`events`](crate::events).

use core::any::Any;

use axhal::time::current_ticks;
use axsched::Ready;
use axtask::TaskInner;

use crate::{
    events::{self, What},
    meter::Hook,
};

/// Starts to observe the scheduler.
pub fn start() {
    axsched::observe(log_ready);
}

/// Logs a task that the scheduler is about to enqueue.
fn log_ready(task: &dyn Any, how: Ready) {
    let Some(task) = task.downcast_ref::<TaskInner>() else {
        return;
    };
    let Some(hook) = task.task_ext() else {
        return;
    };
    let is_current = axtask::current().id() == task.id();
    match how {
        Ready::PutBack if is_current => events::put_back(What::Yielded),
        Ready::PutBackPreempted if is_current => events::put_back(What::Preempted),
        _ => events::woken(hook.downcast_ref::<Hook>().0.number(), current_ticks()),
    }
}
