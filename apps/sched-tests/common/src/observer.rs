//! Whoever becomes ready goes through the scheduler: a layer around it (`axsched::observe`) tells
//! the log of [`events`](crate::events).

use core::any::Any;

use axhal::time::current_ticks;
use axsched::Ready;
use axtask::TaskInner;

use crate::{
    events::{self, What},
    meter::Hook,
};

/// From now on.
pub fn start() {
    axsched::observe(becomes_ready);
}

/// The scheduler is about to get a task.
fn becomes_ready(task: &dyn Any, how: Ready) {
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
