//! Ready queues in order of a key, for policies that compare tasks: their trait, [`ByKey`], and the
//! exact queue, [`Ordered`].
//!
//! [`Ordered`] is a red-black tree linked through the tasks (`intrusive-collections`). Insert and
//! pop cost O(log n) and never allocate. Tasks with equal keys leave in order of arrival.

use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::cmp::Ordering as Order;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use intrusive_collections::{KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use crate::steps;
use crate::task::{InitialState, Task};
use crate::units::Counts;

/// A point on an endless line of time, virtual or real. Two keys are compared by the sign of their
/// difference, so keys may wrap. That is right if all keys of a queue lie within 2^63 of each
/// other.
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
    /// Returns how far this key is after `earlier`, negative if it is before.
    #[inline]
    pub const fn after(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64
    }

    /// Returns the key that is later by `by`.
    #[inline]
    pub const fn later(self, by: u64) -> Self {
        Self(self.0.wrapping_add(by))
    }
}

/// A policy's state `D` of a task that can be in a [`ByKey`] queue.
/// Relaxed: see LOCK in [`task`](crate::task).
pub struct Keyed<D> {
    link: RBTreeAtomicLink,
    key: AtomicU64,
    data: D,
}

impl<D> Keyed<D> {
    /// Returns the policy's own data of the task, beside the key.
    #[inline]
    pub const fn data(&self) -> &D {
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

/// A task that can be in a [`ByKey`] queue.
pub type KeyedTask<T, D> = Task<T, Keyed<D>>;

impl<T, D> KeyedTask<T, D> {
    /// Returns the key as last set.
    #[inline]
    pub fn key(&self) -> Key {
        Key(self.state.key.load(Relaxed))
    }

    /// Sets the key. KEY: the key never changes while the task is in a queue.
    #[inline]
    pub fn set_key(&self, key: Key) {
        debug_assert!(!self.is_queued(), "KEY: the task stands in a queue");
        self.state.key.store(key.0, Relaxed);
    }

    /// Returns true if the task is in a queue.
    pub fn is_queued(&self) -> bool {
        self.state.link.is_linked() || !self.link.is_apart()
    }
}

/// A ready queue by key. A queue may let tasks leave out of order if their keys are close together,
/// which means between two neighbouring *floors*. Each queue defines its floors.
pub trait ByKey<T, D> {
    /// An empty queue, whose floors are not set by a tick yet.
    const NEW: Self;

    /// Fits the floors to the length of a timer tick.
    fn fit(&mut self, tick: Counts);

    /// Returns the last floor that is not after `key`.
    fn floor(&self, key: Key) -> Key;

    /// Returns true if the queue is empty.
    fn is_empty(&self) -> bool;

    /// Inserts a task by this key. Most keys of the queue are near `around`.
    ///
    /// # Panics
    /// If the task is in a queue already.
    fn insert(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key);

    /// Inserts a task that does not yield. A few more instructions do not matter there, so the
    /// place is nearer to the exact order than that of [`insert`](Self::insert).
    #[inline]
    fn place(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key)
    where
        Self: Sized,
    {
        self.insert(task, key, around);
    }

    /// Returns a key such that no key is before it and the first key is before the next floor.
    fn first_key(&self) -> Option<Key>;

    /// Returns the key of the task that [`pop`](Self::pop) takes.
    fn next_key(&self) -> Option<Key>;

    /// Takes a task whose key is the first or has the same floor as the first.
    fn pop(&mut self) -> Option<Arc<KeyedTask<T, D>>>;

    /// Takes `task` out if it is there. Linear: `axtask` never removes a task. A search is sound
    /// for a task that is in another queue, too.
    fn remove(&mut self, task: &Arc<KeyedTask<T, D>>) -> Option<Arc<KeyedTask<T, D>>>;

    /// Takes the task that [`pop`](Self::pop) would take if only the `wanted` tasks were there,
    /// except that tasks of one floor may be in another order. Calls `agrees` once that task is
    /// found, and takes it only on true. Linear in the other tasks.
    fn remove_first(
        &mut self,
        wanted: &dyn Fn(&KeyedTask<T, D>) -> bool,
        agrees: &dyn Fn() -> bool,
    ) -> Option<Arc<KeyedTask<T, D>>>;

    /// Returns all tasks of the queue, in any order.
    #[cfg(feature = "std")]
    fn tasks(&self) -> Vec<&KeyedTask<T, D>>;
}

intrusive_adapter!(Links<T, D> = Arc<KeyedTask<T, D>>: KeyedTask<T, D> { state.link => RBTreeAtomicLink });

impl<'a, T, D> KeyAdapter<'a> for Links<T, D> {
    type Key = Key;
    #[inline]
    fn get_key(&self, task: &'a KeyedTask<T, D>) -> Key {
        steps::count(1);
        task.key()
    }
}

/// A queue of tasks in the exact order of their keys. Each key is a floor.
pub struct Ordered<T, D> {
    tree: RBTree<Links<T, D>>,
    /// FIRST: the smallest key in the tree. Policies ask for it several times a pick, and each time
    /// would be a walk down the tree.
    first: Option<Key>,
}

impl<T, D> Ordered<T, D> {
    /// Returns the first task that is `wanted`. Linear in the tasks before it.
    pub fn find(&self, wanted: impl Fn(&KeyedTask<T, D>) -> bool) -> Option<&KeyedTask<T, D>> {
        self.tree.iter().find(|task| wanted(task))
    }
}

impl<T, D> ByKey<T, D> for Ordered<T, D> {
    const NEW: Self = Self {
        tree: RBTree::new(Links::NEW),
        first: None,
    };

    #[inline]
    fn fit(&mut self, _: Counts) {}

    #[inline]
    fn floor(&self, key: Key) -> Key {
        key
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    fn insert(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, _: Key) {
        task.set_key(key);
        if self.first.is_none_or(|first| key < first) {
            self.first = Some(key);
        }
        self.tree.insert(task);
    }

    #[inline]
    fn first_key(&self) -> Option<Key> {
        self.first
    }

    #[inline]
    fn next_key(&self) -> Option<Key> {
        self.first
    }

    #[inline]
    fn pop(&mut self) -> Option<Arc<KeyedTask<T, D>>> {
        steps::count(steps::DEPTH);
        let mut cursor = self.tree.front_mut();
        let task = cursor.remove();
        self.first = cursor.get().map(KeyedTask::key);
        task
    }

    fn remove(&mut self, task: &Arc<KeyedTask<T, D>>) -> Option<Arc<KeyedTask<T, D>>> {
        self.remove_first(&|other| core::ptr::eq(other, Arc::as_ptr(task)), &|| true)
    }

    fn remove_first(
        &mut self,
        wanted: &dyn Fn(&KeyedTask<T, D>) -> bool,
        agrees: &dyn Fn() -> bool,
    ) -> Option<Arc<KeyedTask<T, D>>> {
        let mut cursor = self.tree.front_mut();
        while let Some(entry) = cursor.get() {
            steps::count(1);
            if wanted(entry) && agrees() {
                let task = cursor.remove();
                self.first = self.tree.front().get().map(KeyedTask::key);
                return task;
            }
            cursor.move_next();
        }
        None
    }

    #[cfg(feature = "std")]
    fn tasks(&self) -> Vec<&KeyedTask<T, D>> {
        self.tree.iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn task(id: usize, key: u64) -> Arc<KeyedTask<usize, ()>> {
        let task = Arc::new(KeyedTask::new(id));
        task.set_key(Key(key));
        task
    }

    proptest! {
        /// Compares the queue with a vector that is sorted stably, with keys around a wrap of the
        /// line.
        #[test]
        fn an_ordered_queue_is_a_stably_sorted_list(ops in prop::collection::vec((0..3u8, 0..20u64), 0..200)) {
            let (mut queue, mut model) = (Ordered::NEW, Vec::<(usize, u64)>::new());
            let mut handles = Vec::new();
            for (id, (op, key)) in ops.into_iter().enumerate() {
                match op {
                    0 | 1 => {
                        let new = task(id, key.wrapping_sub(10));
                        handles.push(new.clone());
                        queue.insert(new.clone(), new.key(), Key(0));
                        let at = model.partition_point(|&(_, k)| k <= key);
                        model.insert(at, (id, key));
                    }
                    _ if key < 10 => {
                        let expected = (!model.is_empty()).then(|| model.remove(0).0);
                        prop_assert_eq!(queue.pop().map(|t| *t.inner()), expected);
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
