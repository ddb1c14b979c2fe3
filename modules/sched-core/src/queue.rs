//! A queue of ready tasks in order of arrival, linked through the tasks.
//!
//! The list is singly linked, because a scheduler takes from the front. A push and a pop are a
//! handful of instructions each, and none allocates. (ArceOS's own `linked_list_r4l` is doubly
//! linked and guards each link by a compare-and-swap. A yield under FIFO costs 25 instructions more
//! with it. See `docs/adr/0004-own-queue.md`.)
//!
//! CHAIN: from `head` the links lead through every task of the queue to `tail`, whose link is null.
//! Each of these tasks is in this queue only, and the queue owns one handle of it.
//!
//! APART: the link of a task that is in no queue is [`Link::APART`].

use alloc::boxed::Box;
use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ptr;

use crate::link::Link;
use crate::task::Task;

/// A first-in, first-out list of tasks.
#[repr(C)] // the same layout for every `T`: see `typed`
pub struct Queue<T, S> {
    /// Null if the queue is empty.
    head: *mut Task<T, S>,
    /// Null or stale if the queue is empty.
    tail: *mut Task<T, S>,
    owns: PhantomData<Arc<Task<T, S>>>,
}

// SAFETY: the pointers are owned handles, and an `Arc` of such a task may be sent.
unsafe impl<T: Send + Sync, S: Send + Sync> Send for Queue<T, S> {}

/// Panics because of APART. It has no argument, because passing one would cost instructions in the
/// code that is inlined around a yield.
#[cold]
#[inline(never)]
fn is_in_a_queue() -> ! {
    panic!("APART: the task is in a queue");
}

impl<T, S> Default for Queue<T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S> Queue<T, S> {
    /// Creates an empty queue. It allocates nothing.
    pub const fn new() -> Self {
        Self {
            head: ptr::null_mut(),
            tail: ptr::null_mut(),
            owns: PhantomData,
        }
    }

    /// Returns true if no task is in the queue.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.head.is_null()
    }

    /// Turns empty queues of one type of tasks into queues of another.
    ///
    /// # Panics
    /// If one is not empty.
    pub fn typed<U>(queues: Box<[Queue<U, S>]>) -> Box<[Self]> {
        assert!(
            queues.iter().all(Queue::is_empty),
            "only empty queues have no type"
        );
        // SAFETY: by `repr(C)` both types are two thin pointers and nothing else. The head of an
        // empty queue is null, and CHAIN says nothing more of it.
        unsafe { Box::from_raw(Box::into_raw(queues) as *mut [Self]) }
    }

    /// Checks APART, and returns the handle's pointer and the task's link.
    ///
    /// # Panics
    /// If the task is in a queue already.
    #[inline]
    fn enter<'a>(task: Arc<Task<T, S>>) -> (*mut Task<T, S>, &'a Link<Task<T, S>>) {
        let raw = Arc::into_raw(task).cast_mut();
        // SAFETY: the handle that was just given up keeps the task alive. The caller, a queue, owns
        // it from now on.
        let link = unsafe { &(*raw).link };
        if !link.is_apart() {
            is_in_a_queue();
        }
        (raw, link)
    }

    /// Puts a task last.
    ///
    /// # Panics
    /// If it is in a queue already.
    #[inline]
    pub fn push_back(&mut self, task: Arc<Task<T, S>>) {
        let (raw, link) = Self::enter(task);
        link.set(ptr::null_mut());
        if self.head.is_null() {
            self.head = raw;
        } else {
            // SAFETY: by CHAIN the tail is a task of this queue, hence alive.
            unsafe { &(*self.tail).link }.set(raw);
        }
        self.tail = raw;
    }

    /// Puts a task first.
    ///
    /// # Panics
    /// If it is in a queue already.
    #[inline]
    pub fn push_front(&mut self, task: Arc<Task<T, S>>) {
        let (raw, link) = Self::enter(task);
        link.set(self.head);
        if self.head.is_null() {
            self.tail = raw;
        }
        self.head = raw;
    }

    /// Puts a task before the first task for which `before` returns true, or last. The search ends
    /// after `most` tasks, and the task takes the place reached.
    ///
    /// # Panics
    /// If it is in a queue already.
    pub fn push_before(
        &mut self,
        task: Arc<Task<T, S>>,
        most: usize,
        mut before: impl FnMut(&Task<T, S>) -> bool,
    ) {
        // SAFETY: by CHAIN the tail of a queue that is not empty is alive.
        if self.head.is_null() || !before(unsafe { &*self.tail }) {
            return self.push_back(task); // in a sorted queue `before` is false for all others, too
        }
        let mut last: *mut Task<T, S> = ptr::null_mut();
        let mut at = self.head;
        for _ in 0..most {
            // SAFETY: by CHAIN `at` is a task of this queue, hence alive. The walk ends at the tail
            // at the latest, for which `before` was true.
            let next = unsafe { &*at };
            if before(next) {
                break;
            }
            last = at;
            at = next.link.get();
        }
        if last.is_null() {
            return self.push_front(task);
        }
        let (raw, link) = Self::enter(task);
        link.set(at);
        // SAFETY: by CHAIN `last` is a task of this queue, hence alive.
        unsafe { &*last }.link.set(raw);
    }

    /// Returns the first task, which stays in the queue.
    #[inline]
    pub fn first(&self) -> Option<&Task<T, S>> {
        // SAFETY: by CHAIN the head of a queue that is not empty is alive.
        (!self.head.is_null()).then(|| unsafe { &*self.head })
    }

    /// Takes the first task of a queue that is known to have one.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn pop_known(&mut self) -> Arc<Task<T, S>> {
        self.pop_front().expect("the queue has a task")
    }

    /// Takes the first task.
    #[inline]
    pub fn pop_front(&mut self) -> Option<Arc<Task<T, S>>> {
        if self.head.is_null() {
            return None;
        }
        let raw = self.head;
        // SAFETY: by CHAIN the head is a task of this queue, hence alive.
        let link = unsafe { &(*raw).link };
        self.head = link.get();
        link.set(Link::APART);
        // SAFETY: by CHAIN this queue owned a handle, which goes to the caller.
        Some(unsafe { Arc::from_raw(raw) })
    }

    /// Appends all tasks of another queue, in their order.
    pub fn append(&mut self, other: &mut Self) {
        if other.head.is_null() {
            return;
        }
        if self.head.is_null() {
            self.head = other.head;
        } else {
            // SAFETY: by CHAIN the tail is a task of this queue, hence alive.
            unsafe { &(*self.tail).link }.set(other.head);
        }
        self.tail = other.tail;
        other.head = ptr::null_mut();
    }

    /// Returns all tasks, from first to last.
    pub fn iter(&self) -> impl Iterator<Item = &Task<T, S>> {
        // SAFETY: by CHAIN a task of this queue, hence alive, or null.
        let at = |at: *mut Task<T, S>| unsafe { at.as_ref() };
        core::iter::successors(at(self.head), move |task| at(task.link.get()))
    }

    /// Returns the first task that is `wanted`. Linear in the tasks before it.
    pub fn find(&self, wanted: impl Fn(&Task<T, S>) -> bool) -> Option<&Task<T, S>> {
        self.iter().find(|task| wanted(task))
    }

    /// Takes `task` out if it is here. Linear: `axtask` never removes a task. A search is sound for
    /// a task that is in another queue, too.
    pub fn remove(&mut self, task: &Arc<Task<T, S>>) -> Option<Arc<Task<T, S>>> {
        self.remove_first(|other| ptr::eq(other, Arc::as_ptr(task)))
    }

    /// Takes out the first task that is `wanted`. Linear in the tasks before it.
    pub fn remove_first(
        &mut self,
        wanted: impl Fn(&Task<T, S>) -> bool,
    ) -> Option<Arc<Task<T, S>>> {
        let mut before: *mut Task<T, S> = ptr::null_mut();
        let mut at = self.head;
        while !at.is_null() {
            // SAFETY: by CHAIN `at` is a task of this queue, hence alive.
            let task = unsafe { &*at };
            let link = &task.link;
            let next = link.get();
            if wanted(task) {
                if before.is_null() {
                    self.head = next;
                } else {
                    // SAFETY: so is `before`.
                    unsafe { &(*before).link }.set(next);
                }
                if next.is_null() {
                    self.tail = before;
                }
                link.set(Link::APART);
                // SAFETY: by CHAIN this queue owned a handle, which goes to the caller.
                return Some(unsafe { Arc::from_raw(at) });
            }
            before = at;
            at = next;
        }
        None
    }

    /// Returns the tasks from first to last.
    #[cfg(feature = "std")]
    pub fn tasks(&self) -> Vec<&Task<T, S>> {
        self.iter().collect()
    }

    /// Checks CHAIN, and returns the number of tasks.
    #[cfg(test)]
    fn assert_valid(&self) -> usize {
        let (mut n, mut last, mut at) = (0, ptr::null_mut::<Task<T, S>>(), self.head);
        while !at.is_null() {
            assert_ne!(at, Link::APART, "CHAIN");
            n += 1;
            last = at;
            // SAFETY: by CHAIN `at` is a task of this queue, hence alive.
            at = unsafe { &*at }.link.get();
        }
        assert!(n == 0 || last == self.tail, "CHAIN: the tail is the last");
        n
    }
}

impl<T, S> Drop for Queue<T, S> {
    fn drop(&mut self) {
        while self.pop_front().is_some() {}
    }
}

/// A place for one task, which owns a handle. Writing to it drops nothing: a write to an `Option`
/// checks each time whether there is a handle to drop.
pub struct Slot<T, S> {
    /// Null, or from `Arc::into_raw`.
    task: *const Task<T, S>,
    owns: PhantomData<Arc<Task<T, S>>>,
}

// SAFETY: as for `Queue`.
unsafe impl<T: Send + Sync, S: Send + Sync> Send for Slot<T, S> {}

impl<T, S> Slot<T, S> {
    /// A slot without a task.
    pub const EMPTY: Self = Self {
        task: ptr::null(),
        owns: PhantomData,
    };

    /// Puts a task into the slot.
    ///
    /// # Panics
    /// If there is one already.
    #[inline(always)]
    pub fn put(&mut self, task: Arc<Task<T, S>>) {
        assert!(self.task.is_null(), "the slot is taken");
        self.task = Arc::into_raw(task);
    }

    /// Takes the task out, if there is one.
    #[inline(always)]
    pub fn take(&mut self) -> Option<Arc<Task<T, S>>> {
        if self.task.is_null() {
            return None;
        }
        let task = core::mem::replace(&mut self.task, ptr::null());
        // SAFETY: it came from `Arc::into_raw` in `put`, and the handle that it owned
        // goes to the caller.
        Some(unsafe { Arc::from_raw(task) })
    }

    /// Returns true if no task is in the slot.
    pub const fn is_empty(&self) -> bool {
        self.task.is_null()
    }

    /// Returns the task in the slot, if there is one.
    #[inline]
    pub const fn get(&self) -> Option<&Task<T, S>> {
        // SAFETY: null, or kept alive by the handle that the slot owns.
        unsafe { self.task.as_ref() }
    }

    /// Returns true if this very task is in the slot.
    pub fn holds(&self, task: &Arc<Task<T, S>>) -> bool {
        ptr::eq(self.task, Arc::as_ptr(task))
    }
}

impl<T, S> Drop for Slot<T, S> {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    type Entry = Arc<Task<usize, ()>>;

    proptest! {
        /// Compares two queues with two lists, and the reference counts of the tasks with their
        /// number of handles.
        #[test]
        fn a_queue_is_a_list(ops in prop::collection::vec((0..6u8, 0..2usize, 0..8usize), 0..300)) {
            let tasks: Vec<Entry> = (0..8).map(|i| Arc::new(Task::new(i))).collect();
            let mut queues = [Queue::new(), Queue::new()];
            let mut lists = [VecDeque::new(), VecDeque::new()];
            for (op, q, i) in ops {
                let is_in = lists.iter().any(|list: &VecDeque<usize>| list.contains(&i));
                match op {
                    0 | 1 if is_in => {}
                    0 => {
                        queues[q].push_back(tasks[i].clone());
                        lists[q].push_back(i);
                    }
                    1 => {
                        queues[q].push_front(tasks[i].clone());
                        lists[q].push_front(i);
                    }
                    2 | 3 => {
                        let found = queues[q].pop_front().map(|task| *task.inner());
                        prop_assert_eq!(found, lists[q].pop_front());
                    }
                    4 => {
                        let [a, b] = &mut queues;
                        let (to, from) = if q == 0 { (a, b) } else { (b, a) };
                        to.append(from);
                        let mut moved = core::mem::take(&mut lists[1 - q]);
                        lists[q].append(&mut moved);
                    }
                    _ => {
                        let found = queues[q].remove(&tasks[i]).map(|task| *task.inner());
                        let place = lists[q].iter().position(|&other| other == i);
                        prop_assert_eq!(found, place.and_then(|place| lists[q].remove(place)));
                    }
                }
                for (queue, list) in queues.iter().zip(&lists) {
                    prop_assert_eq!(queue.assert_valid(), list.len());
                    prop_assert_eq!(queue.is_empty(), list.is_empty());
                }
                for (i, task) in tasks.iter().enumerate() {
                    let is_in = lists.iter().any(|list| list.contains(&i));
                    prop_assert_eq!(Arc::strong_count(task), 1 + usize::from(is_in));
                }
            }
            drop(queues);
            prop_assert!(tasks.iter().all(|task| Arc::strong_count(task) == 1));
        }
    }

    #[test]
    fn a_dropped_slot_releases_its_task() {
        let task = Arc::new(Task::<usize, ()>::new(1));
        let mut slot = Slot::EMPTY;
        slot.put(task.clone());
        assert_eq!(Arc::strong_count(&task), 2);
        drop(slot);
        assert_eq!(Arc::strong_count(&task), 1);
    }

    #[test]
    #[should_panic(expected = "APART")]
    fn a_task_is_in_one_queue_at_a_time() {
        let task = Arc::new(Task::<usize, ()>::new(1));
        let (mut a, mut b) = (Queue::new(), Queue::new());
        a.push_back(task.clone());
        b.push_back(task);
    }
}
