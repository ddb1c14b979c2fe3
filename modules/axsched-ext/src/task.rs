//! The task wrapper: what a policy remembers of a task, beside the task itself.
//!
//! `axtask` stores every task as `Arc<Task<TaskInner, …>>` and never looks at
//! the policy's part. The links are inside, so queueing a task allocates nothing.
//!
//! **LOCK** (cited by every policy): a policy's per-task state is read and
//! written only inside scheduler calls, and those are ordered by the run
//! queue's spin lock, or, when a task changes queues, by the release and
//! acquire of two such locks. So its atomics are all `Relaxed` and are updated
//! by load and store, without read-modify-write: they exist because the wrapper
//! is shared through `Arc`, not because two CPUs race.

use alloc::sync::Arc;
use core::ops::Deref;

use linked_list_r4l::{GetLinks, Links, List};

/// The state of a task that a policy has not seen yet.
pub trait Fresh {
    /// That state. A constant, because `axtask` may build tasks in `const` context.
    const FRESH: Self;
}

impl Fresh for () {
    const FRESH: Self = ();
}

/// A task `T` together with a policy's state `S` of it.
pub struct Task<T, S> {
    inner: T,
    pub(crate) state: S,
    links: Links<Self>,
}

impl<T, S: Fresh> Task<T, S> {
    /// Wraps a task.
    pub const fn new(inner: T) -> Self {
        Self {
            inner,
            state: S::FRESH,
            links: Links::new(),
        }
    }
}

impl<T, S> Task<T, S> {
    /// The wrapped task.
    pub const fn inner(&self) -> &T {
        &self.inner
    }

    pub(crate) const fn state(&self) -> &S {
        &self.state
    }
}

impl<T, S> Deref for Task<T, S> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        &self.inner
    }
}

impl<T, S> GetLinks for Task<T, S> {
    type EntryType = Self;
    #[inline]
    fn get_links(task: &Self) -> &Links<Self> {
        &task.links
    }
}

/// A queue of ready tasks, linked through the tasks. Push and pop cost a
/// constant number of instructions and never allocate.
///
/// `List::push_*` drops an item that is linked already. That cannot happen
/// here: `axtask` hands a task in only after moving it to the ready state, and
/// a ready task is in exactly one queue.
pub(crate) type Queue<T, S> = List<Arc<Task<T, S>>>;

/// Takes `task` out of `queue` if it is there. Linear: `axtask` never removes a
/// task, and a search, unlike `List::remove`, is sound for a task that is
/// linked in some other queue.
pub(crate) fn remove<T, S>(
    queue: &mut Queue<T, S>,
    task: &Arc<Task<T, S>>,
) -> Option<Arc<Task<T, S>>> {
    let mut cursor = queue.cursor_front_mut();
    while let Some(entry) = cursor.current() {
        if core::ptr::eq(entry, Arc::as_ptr(task)) {
            return cursor.remove_current();
        }
        cursor.move_next();
    }
    None
}
