//! A queue of ready tasks in order of due time within a tolerance, at a cost that does not grow
//! with their number.
//!
//! A task comes with a *wait*: the time until it is due. The wait selects one of [`CLASSES`]
//! classes, each of which is first come, first served. One class is for all waits below
//! [`SHORTEST`]; above that there are two an octave. A pop compares the first tasks of all classes,
//! and takes the one that is due first. If several are due at once, it takes the one that came
//! first.
//!
//! CLASS: a task in class c came at some time t. It is due from t plus the shortest wait of c to t
//! plus the longest.
//!
//! **Tolerance.** Let a stand before b in a class. Then a came first. It is due before b, or later
//! by less than the width of the class (its longest wait less its shortest). The first task of
//! another class is popped before b only if it is due no later than the first task of b's class. So
//! **no popped task is due later than a task that remains by the width of that task's class**. The
//! width is at most half of the wait with which the task came, or [`SHORTEST`] counts. (This holds
//! for times of one counter. If the counter of another CPU gave the time, add the difference
//! between the two.)
//!
//! OCCUPIED: a bit is set exactly if its class has a task.
//!
//! STEPS: finding the first task takes one step for each class that has a task, at most
//! [`CLASSES`]. All else is one list operation. (Only `remove` searches; `axtask` never calls it.)

use alloc::sync::Arc;
use core::ptr;

use crate::ordered::Key;
use crate::queue::Queue;
use crate::steps;
use crate::task::Task;

/// The number of classes: one for each bit of a word.
pub const CLASSES: usize = 64;
/// Waits below this, in counts, are not distinguished: 26 µs at 10 MHz, 0.3 µs at 1 GHz.
pub const SHORTEST: u64 = 1 << 8;
/// The longest wait of the last class, in counts: 13.7 minutes at 1 GHz.
pub const LONGEST: u64 = (3 << 38) - 1;

/// A state with a due time, which does not change while the task is in a class.
pub trait Due {
    /// Returns when the task is due, in counts of the clock that its waits are measured in.
    fn due(&self) -> Key;
}

/// The number of one of the [`CLASSES`], which is a range of waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Class(u32);

impl Class {
    /// The class of the shortest waits, from zero on.
    pub const FIRST: Self = Self(0);

    /// Returns the class of a wait of up to [`LONGEST`].
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

    /// Returns the shortest wait of the class, and the width: how many waits the class has from
    /// there.
    pub fn shortest_and_width(self) -> (u64, u64) {
        let Some(above) = self.0.checked_sub(1) else {
            return (0, SHORTEST);
        };
        let octave = SHORTEST << (above / 2);
        let half = u64::from(above % 2);
        (octave + half * octave / 2, octave / 2)
    }
}

/// Ready tasks by class, as the [module documentation](self) describes.
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

    /// Adds a task that is due after a wait of this class.
    ///
    /// # Panics
    /// If the task is in a queue already.
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
            // If two tasks are due at the same time, the one with the longer wait came first, so it
            // wins.
            if found.is_none_or(|(_, earliest)| due <= earliest) {
                found = Some((index, due));
            }
        }
        found
    }

    /// Returns the due time of the task that [`pop`](Self::pop) takes.
    pub fn first_due(&self) -> Option<Key> {
        self.first().map(|(_, due)| due)
    }

    /// Takes the task that is due first among the first tasks of all classes.
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

    /// Takes `task` out if it is there. Linear: `axtask` never removes a task. A search is sound
    /// for a task that is in another queue, too.
    pub fn remove(&mut self, task: &Arc<Task<T, S>>) -> Option<Arc<Task<T, S>>> {
        self.remove_first(|other| ptr::eq(other, Arc::as_ptr(task)), || true)
    }

    /// Takes the task that [`pop`](Self::pop) would take if only the `wanted` tasks were there.
    /// Calls `agrees` once that task is found, and takes it only on true. Linear in the other
    /// tasks.
    pub fn remove_first(
        &mut self,
        wanted: impl Fn(&Task<T, S>) -> bool,
        agrees: impl FnOnce() -> bool,
    ) -> Option<Arc<Task<T, S>>> {
        let first = |(index, queue): (usize, &Queue<T, S>)| {
            let task = queue.find(&wanted)?;
            Some((index, task.policy_state().due(), ptr::from_ref(task)))
        };
        // If two tasks are due at the same time, the later class wins, as in `first`.
        let firsts = self.queues.iter().enumerate().filter_map(first);
        let first = firsts.reduce(|a, b| if b.1 <= a.1 { b } else { a });
        let (index, _, found) = first.filter(|_| agrees())?;
        let queue = &mut self.queues[index];
        // Takes the task found even if it is no longer `wanted`: `agrees` may have promised it
        // away.
        let task = queue.remove_first(|task| ptr::eq(task, found));
        if queue.is_empty() {
            self.occupied ^= 1 << index;
        }
        task
    }

    /// Checks OCCUPIED, and within each class what follows from CLASS. Returns the number of tasks.
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
