//! The part of `axtask` that the test programs use, over [`ax_task`] 0.8.
//!
//! A task here is a record beside a thread: its name, and the hooks of the program's meter, which the thread
//! extension calls. Threads of the system have no such record, so [`current`] finds three that stand for them.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

mod switch;
mod task;
mod timer;
mod wait_queue;

use core::time::Duration;

use ax_task::thread::{ThreadBuilder, ThreadExtension, current};

pub use switch::{CurrentTask, current};
pub use task::{AxTaskExt, AxTaskRef, TaskExt, TaskId, TaskInner, TaskState, WeakAxTaskRef};
pub use timer::{register_timer_callback, sleep};
pub use wait_queue::WaitQueue;

/// The CPUs that a task may run on. There is one CPU.
#[derive(Clone, Copy, Debug)]
pub struct AxCpuMask;

impl AxCpuMask {
    /// Returns the mask of this CPU.
    pub const fn one_shot(_cpu: usize) -> Self {
        Self
    }
}

/// Spawns a task, which runs under the policy of this build.
///
/// # Panics
/// Panics if `ax-task` refuses the thread, because the workload would not be complete.
pub fn spawn_task(mut task: TaskInner) -> AxTaskRef {
    let entry = task.take_entry();
    let builder = ThreadBuilder::new(task.name())
        .stack_size(task.stack_bytes())
        .policy(axsched::policy());
    let task = AxTaskRef::new(task);
    let data = AxTaskRef::into_raw(task.clone()).expose_provenance();
    // SAFETY: `data` is a counted reference, which the hooks read and the drop of the extension gives back.
    // The hooks are bounded and call no scheduler.
    let meter = unsafe { ThreadExtension::new(data, &switch::OPS) };
    let spawned = if axsched::NAME == "pbg" {
        pbg_guest::spawn_extended(builder, meter, entry)
    } else {
        builder.extension(meter).spawn(entry)
    };
    spawned.expect("the workload fits into memory").detach();
    task
}

/// Gives the CPU to another ready task, if the policy has one.
pub fn yield_now() {
    current::yield_current_cpu().expect("a task may yield");
}

/// Blocks the calling task until `deadline`, a wall time.
pub fn sleep_until(deadline: Duration) {
    sleep(deadline.saturating_sub(ax_hal::time::wall_time()));
}
