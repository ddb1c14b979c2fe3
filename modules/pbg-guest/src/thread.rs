//! Spawning a thread of the program, and the hooks of its extension.

use alloc::boxed::Box;
use core::{
    ptr,
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
};

use ax_task::{
    sched::SchedulePolicy,
    thread::{
        SwitchReason, TaskError, ThreadBuilder, ThreadExtension, ThreadExtensionOps, ThreadHandle,
        ThreadId, current,
    },
};
use pbg_profile::Waker;
use pbg_record::record::{OUTSIDE, Record};
use sched_core::{
    clock::{Clock, CpuCounter},
    units::TaskKey,
};
use spin::Once;

use crate::{
    control::{CONTROL, fifo},
    replay::{Entry, Replay},
};

/// A thread of the program.
struct Member {
    key: Option<TaskKey>,
    children: AtomicU64,
    /// Its record in the measurement that was under way at its spawn.
    record: Option<&'static Record>,
    /// Its place in the plan. Set between the making of the thread and its first run.
    entry: Once<&'static Entry>,
    is_blocked: AtomicBool,
    /// The extension that the builder had.
    inner: Option<ThreadExtension>,
}

static OPS: ThreadExtensionOps = ThreadExtensionOps {
    on_switch_in,
    on_switch_out,
    on_exit,
    on_deadline_overrun,
    drop,
};

/// Spawns a thread that PBG knows.
///
/// # Errors
/// Returns the error of [`ThreadBuilder::spawn`].
pub fn spawn(
    builder: ThreadBuilder,
    entry: impl FnOnce() + Send + 'static,
) -> Result<ThreadHandle, TaskError> {
    spawn_member(builder, None, entry)
}

/// Spawns a thread that PBG knows and that has an extension of its own. Its hooks are called before those of PBG.
///
/// # Errors
/// Returns the error of [`ThreadBuilder::spawn`].
pub fn spawn_extended(
    builder: ThreadBuilder,
    extension: ThreadExtension,
    entry: impl FnOnce() + Send + 'static,
) -> Result<ThreadHandle, TaskError> {
    spawn_member(builder, Some(extension), entry)
}

fn spawn_member(
    builder: ThreadBuilder,
    inner: Option<ThreadExtension>,
    entry: impl FnOnce() + Send + 'static,
) -> Result<ThreadHandle, TaskError> {
    let label = CONTROL.take_label();
    let now = CpuCounter::now();
    let lease = current::current_thread_extension()?;
    let parent = lease.as_ref().and_then(|lease| {
        // SAFETY: the table of hooks is ours, so the data is a member, which the lease keeps.
        ptr::eq(lease.ops(), &OPS).then(|| unsafe { member(lease.data()) })
    });
    let is_root = CONTROL.is_root(current::current_thread_id()?);
    let by_place = || match parent {
        _ if is_root => Some(CONTROL.roots_next_key()),
        None => None,
        Some(parent) => {
            let ordinal = parent.children.fetch_add(1, Relaxed) as u32;
            parent.key.map(|key| key.child(ordinal))
        }
    };
    let is_kin = is_root || parent.is_some_and(|parent| parent.key.is_some());
    let key = by_place();
    let key = match &label {
        Some(label) if is_kin => Some(TaskKey::labelled(label.as_str())),
        _ => key,
    };
    let record = CONTROL.measuring().map(|recorder| {
        let of_parent = match parent {
            _ if is_root => recorder.root(),
            Some(parent) => parent.record.unwrap_or(&OUTSIDE),
            None => &OUTSIDE,
        };
        recorder.spawned(0, of_parent, label.as_ref(), now)
    });
    let record = record.filter(|record| !ptr::eq(*record, &OUTSIDE));
    let data = Box::into_raw(Box::new(Member {
        key,
        children: AtomicU64::new(0),
        record,
        entry: Once::new(),
        is_blocked: AtomicBool::new(false),
        inner,
    }));
    // SAFETY: `data` is an owned member, which the hook `drop` frees. The switch hooks write atomics.
    let extension = unsafe { ThreadExtension::new(data.expose_provenance(), &OPS) };
    let mut builder = builder.extension(extension);
    if record.is_some() {
        builder = builder.policy(CONTROL.base_policy());
    }
    let prepared = builder.prepare(entry)?;
    let replay = CONTROL.replaying().filter(|replay| !is_dropped(replay));
    if let (Some(replay), Some(key)) = (replay, key) {
        let handle = prepared.thread_handle();
        if let Some(place) = replay.spawned(key, handle.id().as_u64(), now) {
            // SAFETY: the extension of the prepared thread keeps the member.
            unsafe { member(data.addr()) }.entry.call_once(|| place);
            handle.set_policy(fifo(place.rank))?;
        }
    }
    prepared.publish()
}

fn is_dropped(replay: &Replay) -> bool {
    replay.is_dropped.load(Relaxed)
}

/// # Safety
/// `data` must be that of an extension with [`OPS`] that exists.
unsafe fn member<'a>(data: usize) -> &'a Member {
    // SAFETY: the caller's promise.
    unsafe { &*ptr::with_exposed_provenance(data) }
}

unsafe fn on_switch_in(data: usize, id: ThreadId, policy: SchedulePolicy, charged_ns: u64) {
    // SAFETY: `ax-task` calls this with the data of an extension that exists.
    let member = unsafe { member(data) };
    if let Some(inner) = &member.inner {
        // SAFETY: as above, for the inner one.
        unsafe { (inner.ops().on_switch_in)(inner.data(), id, policy, charged_ns) };
    }
    if let Some(record) = member.record.filter(|_| CONTROL.measuring().is_some()) {
        let now = CpuCounter::now();
        if member.is_blocked.load(Relaxed) {
            member.is_blocked.store(false, Relaxed);
            if record.woken(now) {
                record.woken_by(Waker::Unknown);
            }
        }
        record.begin_interval(now);
    }
    if let Some(entry) = member.entry.get() {
        entry.enter(CpuCounter::now());
    }
}

unsafe fn on_switch_out(data: usize, id: ThreadId, reason: SwitchReason) {
    // SAFETY: as in `on_switch_in`.
    let member = unsafe { member(data) };
    if let Some(inner) = &member.inner {
        // SAFETY: as above, for the inner one.
        unsafe { (inner.ops().on_switch_out)(inner.data(), id, reason) };
    }
    if let Some((record, recorder)) = member.record.zip(CONTROL.measuring()) {
        let now = CpuCounter::now();
        match reason {
            SwitchReason::Preempted => recorder.preempted(0, record, now),
            SwitchReason::Blocked => member.is_blocked.store(true, Relaxed),
            SwitchReason::Yield | SwitchReason::Exited | SwitchReason::Migrated => {}
        }
        record.end_interval(now);
    }
    if let Some(entry) = member.entry.get() {
        entry.leave(CpuCounter::now(), reason == SwitchReason::Exited);
    }
}

unsafe fn on_exit(data: usize, id: ThreadId) {
    // SAFETY: as in `on_switch_in`.
    if let Some(inner) = unsafe { &member(data).inner } {
        // SAFETY: as above, for the inner one.
        unsafe { (inner.ops().on_exit)(inner.data(), id) };
    }
}

unsafe fn on_deadline_overrun(data: usize, id: ThreadId) {
    // SAFETY: as in `on_switch_in`.
    if let Some(inner) = unsafe { &member(data).inner } {
        // SAFETY: as above, for the inner one.
        unsafe { (inner.ops().on_deadline_overrun)(inner.data(), id) };
    }
}

unsafe fn drop(data: usize) {
    // SAFETY: `ax-task` gives the data back, once.
    core::mem::drop(unsafe { Box::<Member>::from_raw(ptr::with_exposed_provenance_mut(data)) });
}
