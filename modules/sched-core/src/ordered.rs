//! Ready queues in order of a key, for policies that compare tasks: what they have in
//! common, [`ByKey`], and the exact one, [`Ordered`].
//!
//! That is a red-black tree linked through the tasks (`intrusive-collections`): insert
//! and pop cost O(log n) and never allocate. Tasks with equal keys leave in the
//! order in which they came.

use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::cmp::Ordering as Order;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use intrusive_collections::{KeyAdapter, RBTree, RBTreeAtomicLink, intrusive_adapter};

use crate::steps;
use crate::task::{InitialState, Task};
use crate::units::Counts;

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

/// A policy's state `D` of a task that can stand in a [`ByKey`] queue.
/// Relaxed: see LOCK in [`task`](crate::task).
pub struct Keyed<D> {
    link: RBTreeAtomicLink,
    key: AtomicU64,
    data: D,
}

impl<D> Keyed<D> {
    /// What the policy keeps of the task beside its key.
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

/// A task that can stand in a [`ByKey`] queue.
pub type KeyedTask<T, D> = Task<T, Keyed<D>>;

impl<T, D> KeyedTask<T, D> {
    /// The key, as last set.
    #[inline]
    pub fn key(&self) -> Key {
        Key(self.state.key.load(Relaxed))
    }

    /// Sets the key. KEY: never while the task stands in a queue.
    #[inline]
    pub fn set_key(&self, key: Key) {
        debug_assert!(!self.is_queued(), "KEY: the task stands in a queue");
        self.state.key.store(key.0, Relaxed);
    }

    /// Whether the task stands in a queue.
    pub fn is_queued(&self) -> bool {
        self.state.link.is_linked() || !self.link.is_apart()
    }
}

/// A ready queue by key. One may let tasks out of order that are close together: those
/// between two neighbouring *floors*. It says what the floors are.
pub trait ByKey<T, D> {
    /// No task.
    const NEW: Self;

    /// The timer tick is so long, and by that are floors chosen.
    fn fit(&mut self, tick: Counts);

    /// The last floor that is not after `key`.
    fn floor(&self, key: Key) -> Key;

    /// Returns true if the queue is empty.
    fn is_empty(&self) -> bool;

    /// Puts a task in, by this key. `around` is where keys are for the most part.
    ///
    /// # Panics
    /// If it stands in a queue already.
    fn insert(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key);

    /// The same for a task that does not yield, where a few instructions do not matter: it
    /// comes nearer to the exact order.
    #[inline]
    fn place(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key)
    where
        Self: Sized,
    {
        self.insert(task, key, around);
    }

    /// No key is before this, and the first is before the next floor.
    fn first_key(&self) -> Option<Key>;

    /// The key of the task that [`pop`](Self::pop) takes.
    fn next_key(&self) -> Option<Key>;

    /// Takes a task out whose key has the same floor as the first, or is the first.
    fn pop(&mut self) -> Option<Arc<KeyedTask<T, D>>>;

    /// Takes `task` out if it is there. Linear: `axtask` never removes a task,
    /// and a search is sound for a task that stands in another queue.
    fn remove(&mut self, task: &Arc<KeyedTask<T, D>>) -> Option<Arc<KeyedTask<T, D>>>;

    /// Takes out what [`pop`](Self::pop) would, were there only the tasks that are `wanted`, but
    /// that those of the same floor may be in another order, if `agrees` says so once it is found.
    /// Linear in the others.
    fn remove_first(
        &mut self,
        wanted: &dyn Fn(&KeyedTask<T, D>) -> bool,
        agrees: &dyn Fn() -> bool,
    ) -> Option<Arc<KeyedTask<T, D>>>;

    /// All that are there, in any order.
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

/// A queue of tasks in the exact order of their keys: each is a floor of its own.
pub struct Ordered<T, D> {
    tree: RBTree<Links<T, D>>,
    /// FIRST: the smallest key in the tree. Policies ask for it several times a
    /// pick, and each time it would be a walk down the tree.
    first: Option<Key>,
}

impl<T, D> Ordered<T, D> {
    /// The first task that is `wanted`. Linear in those before it.
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
        /// Beside a vector that is sorted stably; keys around a wrap of the line.
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
