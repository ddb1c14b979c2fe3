//! Ready tasks in order of due times, but for a tolerance, at a cost that does not grow with
//! their number.
//!
//! A task comes in with a *wait*: how far off its due time is. By that it stands in one of
//! [`CLASSES`] classes, each of which is first come first served: one for all waits below
//! [`SHORTEST`], and above that two an octave. Out comes, of those who are first in their
//! class, the one that is due first; if several are, the one that came first.
//!
//! CLASS: who is in class c came there at a time t, and is due from t plus the shortest wait
//! of c to t plus its longest.
//!
//! **Tolerance.** Let a stand before b in a class. Then a came first, and is due before b, or
//! after it by less than the width of the class: the longest wait less the shortest. Who is
//! first in another class than that of b may come out before b only if it is due no later
//! than a. So **nobody comes out who is due later than another by the width of the other's
//! class**, which is at most half of the wait with which the other came, or [`SHORTEST`]
//! counts. (Times of one counter. What is put in by the counter of another CPU adds by how
//! much the two disagree.)
//!
//! OCCUPIED: a bit is set exactly if its class has a task.
//!
//! STEPS: to find the first is a step a class that has a task, at most [`CLASSES`]; all else
//! is one list operation. (Only `remove` searches; `axtask` never calls it.)

use alloc::sync::Arc;
use core::ptr;

use crate::ordered::Key;
use crate::queue::Queue;
use crate::steps;
use crate::task::Task;

/// How many classes there are: one for each bit of a word.
pub const CLASSES: usize = 64;
/// Waits below this, in counts, are not told apart: 26 µs at 10 MHz, 0.3 µs at 1 GHz.
pub const SHORTEST: u64 = 1 << 8;
/// The longest wait, in counts: that of the last class. 13.7 minutes at 1 GHz.
pub const LONGEST: u64 = (3 << 38) - 1;

/// A state with a due time, which stays what it is while the task stands in a class.
pub trait Due {
    /// Returns when the task is due, in counts of the clock that its waits are measured in.
    fn due(&self) -> Key;
}

/// One of the [`CLASSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(u32);

impl Class {
    /// That of no wait.
    pub const FIRST: Self = Self(0);

    /// That of a wait of up to [`LONGEST`].
    #[inline]
    pub const fn of(wait: u64) -> Self {
        if wait < SHORTEST {
            return Self::FIRST;
        }
        let octave = wait.ilog2();
        // 2 in the lower half of the octave, 3 in the upper.
        let half = (wait >> (octave - 1)) as u32;
        Self(2 * (octave - SHORTEST.ilog2()) + half - 1)
    }

    /// Returns the class as a number below [`CLASSES`], to be kept in an atomic.
    #[inline]
    pub const fn to_index(self) -> u32 {
        self.0
    }

    /// Returns the class with this number, which [`to_index`](Self::to_index) gave.
    #[inline]
    pub const fn from_index(index: u32) -> Self {
        Self(index)
    }

    /// The shortest wait of the class, and how much longer its waits may be.
    pub fn shortest_and_width(self) -> (u64, u64) {
        let Some(above) = self.0.checked_sub(1) else {
            return (0, SHORTEST);
        };
        let octave = SHORTEST << (above / 2);
        let half = u64::from(above % 2);
        (octave + half * octave / 2, octave / 2)
    }
}

/// Ready tasks by class. See the [module documentation](self).
pub struct Classes<T, S> {
    occupied: u64,
    queues: [Queue<T, S>; CLASSES],
}

impl<T, S: Due> Default for Classes<T, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, S: Due> Classes<T, S> {
    /// Creates an empty queue. It allocates nothing.
    pub const fn new() -> Self {
        Self {
            occupied: 0,
            queues: [const { Queue::new() }; CLASSES],
        }
    }

    /// Puts a task in that is due in a wait of this class.
    ///
    /// # Panics
    /// If it stands in a queue already.
    #[inline]
    pub fn push(&mut self, task: Arc<Task<T, S>>, class: Class) {
        let index = class.0 as usize % CLASSES;
        let queue = &mut self.queues[index];
        if queue.is_empty() {
            self.occupied |= 1 << index;
        }
        queue.push_back(task);
    }

    /// Returns the class whose first task is due first, and its due time.
    #[inline]
    fn first(&self) -> Option<(usize, Key)> {
        let mut rest = self.occupied;
        let mut found: Option<(usize, Key)> = None;
        while rest != 0 {
            steps::count(1);
            let index = rest.trailing_zeros() as usize % CLASSES;
            rest &= rest - 1;
            let due = self.queues[index].first()?.policy_state().due();
            // Of two that are due at the same time the one with the longer wait came first.
            if found.is_none_or(|(_, earliest)| due <= earliest) {
                found = Some((index, due));
            }
        }
        found
    }

    /// When the task is due that [`pop`](Self::pop) takes.
    pub fn first_due(&self) -> Option<Key> {
        self.first().map(|(_, due)| due)
    }

    /// Takes a task out: of the first of each class, the one that is due first.
    #[inline]
    pub fn pop(&mut self) -> Option<Arc<Task<T, S>>> {
        let (index, _) = self.first()?;
        let queue = &mut self.queues[index];
        let task = queue.pop_front();
        if queue.is_empty() {
            self.occupied ^= 1 << index;
        }
        task
    }

    /// Takes `task` out if it is there. Linear: `axtask` never removes a task, and a
    /// search is sound for a task that stands in another queue.
    pub fn remove(&mut self, task: &Arc<Task<T, S>>) -> Option<Arc<Task<T, S>>> {
        self.remove_first(|other| ptr::eq(other, Arc::as_ptr(task)), || true)
    }

    /// Takes out what [`pop`](Self::pop) would, were there only the tasks that are `wanted`, if
    /// `agrees` says so once it is found. Linear in the others.
    pub fn remove_first(
        &mut self,
        wanted: impl Fn(&Task<T, S>) -> bool,
        agrees: impl FnOnce() -> bool,
    ) -> Option<Arc<Task<T, S>>> {
        let first = |(index, queue): (usize, &Queue<T, S>)| {
            let task = queue.find(&wanted)?;
            Some((index, task.policy_state().due(), ptr::from_ref(task)))
        };
        // As in `first`, of two that are due at the same time the later.
        let firsts = self.queues.iter().enumerate().filter_map(first);
        let first = firsts.reduce(|a, b| if b.1 <= a.1 { b } else { a });
        let (index, _, found) = first.filter(|_| agrees())?;
        let queue = &mut self.queues[index];
        // That task, whatever `wanted` says by now: the answer may have been given away for it.
        let task = queue.remove_first(|task| ptr::eq(task, found));
        if queue.is_empty() {
            self.occupied ^= 1 << index;
        }
        task
    }

    /// OCCUPIED; what follows from CLASS for those who stand in the same class; how many
    /// tasks there are.
    #[cfg(feature = "std")]
    pub fn assert_valid(&self) -> usize {
        let mut tasks = 0;
        for (index, queue) in self.queues.iter().enumerate() {
            let is_occupied = self.occupied >> index & 1 == 1;
            assert_eq!(is_occupied, !queue.is_empty(), "OCCUPIED: class {index}");
            let (_, width) = Class(index as u32).shortest_and_width();
            let mut latest: Option<Key> = None;
            queue.iter().for_each(|task| {
                let due = task.policy_state().due();
                let behind = latest.map_or(0, |latest| latest.after(due));
                assert!(behind < width as i64, "CLASS: {behind} in class {index}");
                latest = Some(latest.map_or(due, |latest| latest.max(due)));
                tasks += 1;
            });
        }
        tasks
    }
}

#[cfg(test)]
mod tests;
