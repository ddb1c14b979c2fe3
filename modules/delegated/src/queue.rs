//! [`TaskQueue`]: ready tasks in a queue that never allocates after it was made.

use alloc::boxed::Box;
use core::fmt;

use crate::agent::of_each_task;
use crate::status::TaskId;
use crate::table::MAX_TASKS;

const CAPACITY: u32 = MAX_TASKS as u32;

/// A queue of ready tasks, first in, first out, for an [`AgentPolicy`](crate::AgentPolicy).
///
/// Each call but [`push_back`](Self::push_back) into a full queue takes constant time. None allocates, so a
/// policy with such a queue is fit for the fast path, which runs within the scheduler.
///
/// It holds [`MAX_TASKS`] tasks, and so all that are delegated at one time. A task stands in it several times
/// if it is added several times.
pub struct TaskQueue {
    /// The place for the next task, modulo 2^32.
    end: u32,
    /// The place where there is no room. The first task is [`MAX_TASKS`] before it.
    limit: u32,
    tasks: Box<[TaskId; MAX_TASKS]>,
}

impl TaskQueue {
    /// Creates an empty queue, which takes 8 KiB.
    ///
    /// # Panics
    /// If there is no memory.
    pub fn new() -> Self {
        let tasks = of_each_task(TaskId::from_bits(0));
        let (end, limit) = (0, CAPACITY);
        Self { end, limit, tasks }
    }

    /// Adds a task behind all others. If the queue is full, of several entries of one slot only the last
    /// remains: the others are of tasks that are dead or that have run since.
    #[inline]
    pub fn push_back(&mut self, task: TaskId) {
        if self.end == self.limit {
            return self.push_into_full(task);
        }
        self.push(task);
    }

    #[inline(always)]
    fn push(&mut self, task: TaskId) {
        self.tasks[self.end as usize % MAX_TASKS] = task;
        self.end = self.end.wrapping_add(1);
    }

    /// Takes the first task.
    #[inline]
    pub fn pop_front(&mut self) -> Option<TaskId> {
        if self.is_empty() {
            return None;
        }
        let task = self.tasks[self.limit as usize % MAX_TASKS];
        self.limit = self.limit.wrapping_add(1);
        Some(task)
    }

    /// Removes all tasks.
    pub const fn clear(&mut self) {
        self.limit = self.end.wrapping_add(CAPACITY);
    }

    /// Returns true if there is no task.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.end == self.limit.wrapping_sub(CAPACITY)
    }

    /// Returns the number of tasks.
    #[inline]
    pub const fn len(&self) -> usize {
        self.end.wrapping_sub(self.limit.wrapping_sub(CAPACITY)) as usize
    }

    /// Keeps the last entry of each slot, and of the task's slot none. So there is room for the task.
    #[cold]
    #[inline(never)]
    fn push_into_full(&mut self, task: TaskId) {
        let mut is_later = [0_u64; MAX_TASKS / 64];
        let mut meets = |task: TaskId| {
            let (word, bit) = (task.index() / 64, 1 << (task.index() % 64));
            let met = is_later[word] & bit != 0;
            is_later[word] |= bit;
            met
        };
        meets(task);
        // From the last to the first, each kept entry moves behind those that are kept already.
        let mut first = self.end;
        for n in 1..=CAPACITY {
            let task = self.tasks[self.end.wrapping_sub(n) as usize % MAX_TASKS];
            if !meets(task) {
                first = first.wrapping_sub(1);
                self.tasks[first as usize % MAX_TASKS] = task;
            }
        }
        self.limit = first.wrapping_add(CAPACITY);
        self.push(task);
    }
}

impl Default for TaskQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TaskQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let places = (0..self.len() as u32).map(|n| self.limit.wrapping_add(n));
        let tasks = places.map(|place| self.tasks[place as usize % MAX_TASKS]);
        f.debug_list().entries(tasks).finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    fn task(index: usize, generation: u32) -> TaskId {
        TaskId::from_bits(generation << 16 | (index as u32) << crate::status::FLAG_BITS)
    }

    #[derive(Clone, Debug)]
    enum Call {
        Push(usize, u32),
        Pop,
        Clear,
    }

    fn call() -> impl Strategy<Value = Call> {
        prop_oneof![
            40 => (0..MAX_TASKS, 0..3_u32).prop_map(|(index, generation)| Call::Push(index, generation)),
            20 => Just(Call::Pop),
            1 => Just(Call::Clear),
        ]
    }

    proptest! {
        #[test]
        fn queue_with_room_is_a_queue(calls in prop::collection::vec(call(), 1..200), start: u32) {
            let mut queue = TaskQueue::new();
            (queue.end, queue.limit) = (start, start.wrapping_add(CAPACITY));
            let mut model = VecDeque::new();
            for call in calls {
                match call {
                    Call::Push(index, generation) => {
                        queue.push_back(task(index, generation));
                        model.push_back(task(index, generation));
                    }
                    Call::Pop => prop_assert_eq!(queue.pop_front(), model.pop_front()),
                    Call::Clear => {
                        queue.clear();
                        model.clear();
                    }
                }
                prop_assert_eq!((queue.len(), queue.is_empty()), (model.len(), model.is_empty()));
                prop_assert_eq!(format!("{queue:?}"), format!("{model:?}"));
            }
        }

        /// Each slot's last entry is there, in the order of those entries.
        #[test]
        fn full_queue_forgets_what_has_a_later_entry(
            all in prop::collection::vec((0..MAX_TASKS, 0..3_u32), MAX_TASKS + 1),
            start: u32,
        ) {
            let mut queue = TaskQueue::new();
            (queue.end, queue.limit) = (start, start.wrapping_add(CAPACITY));
            all.iter().for_each(|&(index, generation)| queue.push_back(task(index, generation)));
            let is_last = |&(n, of): &(usize, &(usize, u32))| all[n + 1..].iter().all(|later| later.0 != of.0);
            let last: Vec<_> = all.iter().enumerate().filter(is_last).collect();
            let expected = last.into_iter().map(|(_, &(index, generation))| task(index, generation));
            let found: Vec<_> = core::iter::from_fn(|| queue.pop_front()).collect();
            prop_assert_eq!(found, Vec::from_iter(expected));
        }
    }

    #[test]
    fn queue_of_all_tasks_is_full_and_takes_each_again() {
        let mut queue = TaskQueue::new();
        (0..MAX_TASKS).for_each(|index| queue.push_back(task(index, 0)));
        (0..MAX_TASKS).for_each(|index| queue.push_back(task(index, 1)));
        let found: Vec<_> = core::iter::from_fn(|| queue.pop_front()).collect();
        assert_eq!(
            found,
            Vec::from_iter((0..MAX_TASKS).map(|index| task(index, 1)))
        );
    }
}
