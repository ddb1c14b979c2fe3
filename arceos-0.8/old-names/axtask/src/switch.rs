//! Which task runs, and the hooks of the meter.
//!
//! `axtask` calls the hook of the task that goes, then that of the one that comes, and both find the former as the
//! current one. `ax-task` calls the hooks of its extension in that order, too, but between them the current thread
//! changes, and a thread of the system has no extension. Its trace of switches names both threads before either
//! hook. So the trace sets the task that goes, and the hooks find that.
//!
//! There is one CPU, and all of this runs with interrupts off. So everything is `Relaxed`.

use alloc::{string::ToString, sync::Arc};
use core::{
    mem::ManuallyDrop,
    ops::Deref,
    ptr::{self, null_mut},
    sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering::Relaxed},
};

use ax_runtime::{
    diagnostics::{install_sched_switch_trace_hook, publish_sched_switch_trace_gate},
    task::runtime::switch::SchedSwitchRecord,
};
use ax_task::{
    sched::{FairMode, SchedulePolicy},
    thread::{SwitchReason, ThreadExtensionOps, ThreadHandle, ThreadId, current as thread},
};

use crate::task::{AxTaskRef, TaskExt, TaskInner, TaskState};

/// The hooks of a thread with a task. The data is a counted reference to the task.
pub(crate) static OPS: ThreadExtensionOps = ThreadExtensionOps {
    on_switch_in,
    on_switch_out,
    on_exit,
    on_deadline_overrun: on_exit,
    drop,
};

/// The task that ran last or, while a hook runs, the one that goes.
static LAST: AtomicPtr<TaskInner> = AtomicPtr::new(null_mut());
/// The number of its thread. The task itself may be gone.
static LAST_ID: AtomicU64 = AtomicU64::new(0);
/// True while a hook of the meter runs.
static IN_HOOK: AtomicBool = AtomicBool::new(false);

/// The tasks that stand for threads of the system: main, idle, and any other.
static MAIN: AtomicPtr<TaskInner> = AtomicPtr::new(null_mut());
static IDLE: AtomicPtr<TaskInner> = AtomicPtr::new(null_mut());
static OTHER: AtomicPtr<TaskInner> = AtomicPtr::new(null_mut());

/// The threads that exist when main begins are in the first slots, at most this number.
const FIRST_SLOTS: u32 = 16;

/// Begins to follow switches, and gives main the policy of this build, at the first call, which main makes.
pub(crate) fn start() {
    if !MAIN.load(Relaxed).is_null() {
        return;
    }
    let main = thread::current_thread_handle().expect("main is a thread");
    main.set_policy(axsched::policy())
        .expect("main may have any policy");
    let is_idle = |id: &ThreadId| {
        let policy = ThreadHandle::lookup(*id).map(|thread| thread.base_policy());
        matches!(
            policy,
            Ok(SchedulePolicy::Fair {
                mode: FairMode::Idle,
                ..
            })
        )
    };
    let idle = (0..FIRST_SLOTS)
        .map(|slot| ThreadId::from_parts(slot, main.id().generation()))
        .find(is_idle)
        .expect("there is an idle thread");
    for (place, id, name) in [
        (&MAIN, main.id().as_u64(), "main"),
        (&IDLE, idle.as_u64(), "idle"),
        (&OTHER, u64::MAX, "system"),
    ] {
        let task = TaskInner::of_thread(id, name.to_string());
        place.store(Arc::into_raw(Arc::new(task)).cast_mut(), Relaxed);
    }
    install_sched_switch_trace_hook(on_switch);
    publish_sched_switch_trace_gate(true);
}

/// Returns the task of the thread that has this number and none of our extensions.
fn of_system(id: u64) -> *mut TaskInner {
    for place in [&IDLE, &MAIN] {
        let task = place.load(Relaxed);
        // SAFETY: it was set by `start`, before switches are followed, and is never freed.
        if unsafe { &*task }.id().as_u64() == id {
            return task;
        }
    }
    OTHER.load(Relaxed)
}

/// Notes which task goes.
fn on_switch(switch: SchedSwitchRecord) -> Option<fn()> {
    if LAST_ID.load(Relaxed) != switch.previous_thread {
        LAST.store(of_system(switch.previous_thread), Relaxed);
        LAST_ID.store(switch.previous_thread, Relaxed);
    }
    None
}

fn in_hook(hook: impl FnOnce()) {
    IN_HOOK.store(true, Relaxed);
    hook();
    IN_HOOK.store(false, Relaxed);
}

unsafe fn on_switch_in(data: usize, id: ThreadId, _: SchedulePolicy, _: u64) {
    let task: *const TaskInner = ptr::with_exposed_provenance(data);
    // SAFETY: the extension holds a reference to it.
    let here = unsafe { &*task };
    here.enter(id.as_u64());
    if let Some(meter) = here.task_ext() {
        in_hook(|| meter.on_enter());
    }
    LAST.store(task.cast_mut(), Relaxed);
    LAST_ID.store(id.as_u64(), Relaxed);
}

unsafe fn on_switch_out(data: usize, _: ThreadId, reason: SwitchReason) {
    // SAFETY: the extension holds a reference to it.
    let task = unsafe { &*ptr::with_exposed_provenance::<TaskInner>(data) };
    task.leave(match reason {
        SwitchReason::Preempted | SwitchReason::Yield | SwitchReason::Migrated => TaskState::Ready,
        SwitchReason::Blocked => TaskState::Blocked,
        SwitchReason::Exited => TaskState::Exited,
    });
    if let Some(meter) = task.task_ext() {
        in_hook(|| meter.on_leave());
    }
}

unsafe fn on_exit(_: usize, _: ThreadId) {}

unsafe fn drop(data: usize) {
    // SAFETY: it is the reference that the extension was given.
    let task = unsafe { AxTaskRef::from_raw(ptr::with_exposed_provenance(data)) };
    core::mem::drop(task);
}

/// The current task.
pub struct CurrentTask(ManuallyDrop<AxTaskRef>);

impl CurrentTask {
    /// Returns a counted reference to it.
    #[expect(clippy::should_implement_trait, reason = "as axtask has it")]
    pub fn clone(&self) -> AxTaskRef {
        AxTaskRef::clone(&self.0)
    }
}

impl Deref for CurrentTask {
    type Target = TaskInner;

    fn deref(&self) -> &TaskInner {
        &self.0
    }
}

/// Returns the current task; in a hook of the meter, the one that goes.
pub fn current() -> CurrentTask {
    let task = if IN_HOOK.load(Relaxed) {
        LAST.load(Relaxed)
    } else {
        let id = thread::current_thread_id().map_or(0, ThreadId::as_u64);
        if LAST_ID.load(Relaxed) == id {
            LAST.load(Relaxed)
        } else {
            of_system(id)
        }
    };
    // SAFETY: it is a task of the system, which is never freed, or that of the current thread, or of the one that
    // is current until this switch is over. Each holds a reference.
    CurrentTask(ManuallyDrop::new(unsafe { AxTaskRef::from_raw(task) }))
}
