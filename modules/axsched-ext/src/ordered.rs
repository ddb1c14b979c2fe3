//! A ready queue in order of a key, for policies that compare tasks.
//!
//! A red-black tree linked through the tasks (`intrusive-collections`): insert
//! and pop cost O(log n) and never allocate. Tasks with equal keys leave in the
//! order in which they came.

use alloc::sync::Arc;
use core::cmp::Ordering as Order;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use intrusive_collections::{KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use crate::task::{InitialState, Task};

/// A point on an endless line of time, virtual or real: compared by the sign of
/// the difference, so that it may wrap. Right as long as all keys in one queue
/// lie within 2^63 of each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key(pub u64);

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Self) -> Order {
        (self.0.wrapping_sub(other.0) as i64).cmp(&0)
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}

impl Key {
    /// How far this key is after `earlier`; negative if it is before.
    #[inline]
    pub const fn after(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// The key `by` later.
    #[inline]
    pub const fn later(self, by: u64) -> Self {
        Self(self.0.wrapping_add(by))
    }
}

/// A policy's state `D` of a task that can stand in an `Ordered` queue.
/// Relaxed: see LOCK in [`task`](crate::task).
pub struct Keyed<D> {
    link: RBTreeAtomicLink,
    key: AtomicU64,
    data: D,
}

impl<D> Keyed<D> {
    /// The key, as last set.
    #[inline]
    pub(crate) fn key(&self) -> Key {
        Key(self.key.load(Relaxed))
    }

    /// Sets the key. KEY: never while the task stands in a queue.
    #[inline]
    pub(crate) fn set_key(&self, key: Key) {
        debug_assert!(!self.link.is_linked(), "KEY: the task stands in a queue");
        self.key.store(key.0, Relaxed);
    }

    /// Whether the task stands in a queue.
    pub(crate) fn is_queued(&self) -> bool {
        self.link.is_linked()
    }

    /// What the policy keeps of the task beside its key.
    #[inline]
    pub(crate) const fn data(&self) -> &D {
        &self.data
    }
}

impl<D: InitialState> InitialState for Keyed<D> {
    const INITIAL: Self = Self {
        link: RBTreeAtomicLink::new(),
        key: AtomicU64::new(0),
        data: D::INITIAL,
    };
}

/// A task that can stand in an `Ordered` queue.
pub type KeyedTask<T, D> = Task<T, Keyed<D>>;

intrusive_adapter!(Links<T, D> = Arc<KeyedTask<T, D>>: KeyedTask<T, D> { state.link => RBTreeAtomicLink });

impl<'a, T, D> KeyAdapter<'a> for Links<T, D> {
    type Key = Key;
    #[inline]
    fn get_key(&self, task: &'a KeyedTask<T, D>) -> Key {
        task.state().key()
    }
}

/// A queue of tasks in the order of their keys.
pub(crate) struct Ordered<T, D> {
    tree: RBTree<Links<T, D>>,
    /// FIRST: the smallest key in the tree. Policies ask for it several times a
    /// pick, and each time it would be a walk down the tree.
    first: Option<Key>,
}

impl<T, D> Ordered<T, D> {
    pub(crate) const fn new() -> Self {
        Self {
            tree: RBTree::new(Links::NEW),
            first: None,
        }
    }

    #[inline]
    pub(crate) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Puts a task in, by its key.
    ///
    /// # Panics
    /// If it stands in a queue already.
    #[inline]
    pub(crate) fn insert(&mut self, task: Arc<KeyedTask<T, D>>) {
        let key = task.state().key();
        if self.first.is_none_or(|first| key < first) {
            self.first = Some(key);
        }
        self.tree.insert(task);
    }

    /// The smallest key.
    #[inline]
    pub(crate) const fn first_key(&self) -> Option<Key> {
        self.first
    }

    #[cfg(test)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &KeyedTask<T, D>> {
        self.tree.iter()
    }

    /// Takes the task with the smallest key.
    #[inline]
    pub(crate) fn pop_first(&mut self) -> Option<Arc<KeyedTask<T, D>>> {
        let mut cursor = self.tree.front_mut();
        let task = cursor.remove();
        self.first = cursor.get().map(|task| task.state().key());
        task
    }

    /// Takes `task` out if it is there. Linear: `axtask` never removes a task,
    /// and a search is sound for a task that stands in another queue.
    pub(crate) fn remove(&mut self, task: &Arc<KeyedTask<T, D>>) -> Option<Arc<KeyedTask<T, D>>> {
        let mut cursor = self.tree.front_mut();
        while let Some(entry) = cursor.get() {
            if core::ptr::eq(entry, Arc::as_ptr(task)) {
                let task = cursor.remove();
                self.first = self.tree.front().get().map(|task| task.state().key());
                return task;
            }
            cursor.move_next();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(id: usize, key: u64) -> Arc<KeyedTask<usize, ()>> {
        let task = Arc::new(KeyedTask::new(id));
        task.state().set_key(Key(key));
        task
    }

    proptest! {
        /// Beside a vector that is sorted stably; keys around a wrap of the line.
        #[test]
        fn an_ordered_queue_is_a_stably_sorted_list(ops in prop::collection::vec((0..3u8, 0..20u64), 0..200)) {
            let (mut queue, mut model) = (Ordered::new(), Vec::<(usize, u64)>::new());
            let mut handles = Vec::new();
            for (id, (op, key)) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 => {
                        let new = task(id, key.wrapping_sub(10));
                        handles.push(new.clone());
                        queue.insert(new);
                        let at = model.partition_point(|&(_, k)| k <= key);
                        model.insert(at, (id, key));
                    }
                    _ if key < 10 => {
                        let expected = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(queue.pop_first().map(|t| *t.inner()), expected);
                    }
                    _ => if let Some(handle) = handles.get(id / 2) {
                        let at = model.iter().position(|&(i, _)| i == *handle.inner());
                        prop_assert_eq!(queue.remove(handle).is_some(), at.is_some());
                        at.map(|at| model.remove(at));
                    }
                }
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                prop_assert_eq!(queue.first_key(), model.first().map(|&(_, k)| Key(k.wrapping_sub(10))));
            }
        }
    }
}
