//! A ready queue by key whose cost does not grow with the number of tasks.
//!
//! 64 buckets form a ring, which is a *window* on the line of keys. Each bucket is a list and spans
//! one *width* of keys. One word tells which buckets have a task. A yielder goes to the end of a
//! bucket. A task that is preempted or becomes ready goes to its place by key among the first few
//! tasks of its bucket. So among few tasks the order is exact, except for yields and for tasks that
//! EEVDF moves from one of its queues to the other. (It is a circular queue of buckets found by a
//! find-first-set, as in Eiffel; Saeed et al., NSDI 2019. There a task beyond the window waits in
//! coarser buckets and is moved later. Here it waits in a tree, and no task is ever moved.)
//!
//! OCCUPIED: bit i of `occupied` is set exactly if bucket i has a task.
//!
//! WINDOW: the key of a task in the ring lies within 64 widths from `start`. Its bucket is the key
//! over the width, modulo 64.
//!
//! OUTSIDE: a task that came with a key outside the window, before or after it, is in an exact tree
//! ([`Ordered`]) until it is taken. A pop takes the first task of the ring's first bucket, unless
//! the tree's first key is no later than that task's. So two tasks leave out of order only if their
//! keys are less than a width apart.
//!
//! The window covers most keys. It begins 16 buckets before `around`, and slides on when a key
//! falls outside. The other 48 buckets span at least 9 ticks when the ring opens, and at least 6
//! while it stays open. So few tasks are in the tree but those of high nice values, for which a
//! tick is many ticks of vruntime. They begin at nice 5 to 10, depending on the width.
//!
//! WIDTH: a power of two, more than an eighth of a tick and at most half of one, as vruntime. Until
//! the tick's length is known there is no ring. When the length has changed, the ring accepts no
//! more tasks. It opens with the new width once it is empty, which is when its tasks have been
//! picked. So no task is ever sorted again.
//!
//! **Cost.** A put and a pop are one find-first-set and one list operation each. Outside the window
//! they are O(log n), about 2 log2 n steps. Nothing allocates. Memory: 1 KiB for each queue.

use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;

use crate::nice::{FRACTION_BITS, LONGEST_CHARGE};
use crate::ordered::{ByKey, Key, Keyed, KeyedTask, Ordered};
use crate::queue::Queue;
use crate::units::Counts;

/// The number of buckets: one for each bit of a word.
const BUCKETS: u32 = u64::BITS;

/// The number of buckets before `around` when the window is set. They span at least two to three
/// ticks, which is how far behind most tasks are.
const BEHIND: u64 = 16;

/// The most tasks of its bucket that a task is compared with when it takes its place by key.
const STEPS: usize = 8;

/// A ready queue of buckets with a tree for the rest, as the [module documentation](self)
/// describes.
pub struct Buckets<T, D> {
    /// OCCUPIED: the buckets that have a task (bit mask).
    occupied: u64,
    /// WINDOW: the first key of the window, a multiple of the width.
    start: Key,
    /// The length of the window in keys from `start`; 0 while the ring accepts no task.
    window: u64,
    /// The width of a bucket, as its log2.
    shift: u32,
    /// A mask that clears the bits of a key within a width.
    mask: u64,
    /// The bucket that begins at `start`.
    first: u32,
    /// The value for `shift` once the ring is empty; `None` until the length of a tick is known.
    wanted: Option<u32>,
    buckets: [Queue<T, Keyed<D>>; BUCKETS as usize],
    outside: Ordered<T, D>,
}

impl<T, D> Buckets<T, D> {
    #[inline]
    const fn bucket(&self, key: Key) -> usize {
        (key.0 >> self.shift) as usize % BUCKETS as usize
    }

    /// Returns the number of empty buckets at the start of the window.
    #[inline]
    const fn empty_buckets(&self) -> u32 {
        self.occupied.rotate_right(self.first).trailing_zeros()
    }

    /// Returns the index of the bucket that `buckets` others of the window precede.
    #[inline]
    const fn after(&self, buckets: u32) -> usize {
        (self.first + buckets) as usize % BUCKETS as usize
    }

    /// Returns the key at which that bucket begins.
    #[inline]
    const fn start_after(&self, buckets: u32) -> Key {
        self.start.later((buckets as u64) << self.shift)
    }

    /// Returns the key at which the first bucket with a task begins.
    const fn first_start(&self) -> Key {
        self.start_after(self.empty_buckets())
    }

    /// Returns the first task of the ring.
    fn first(&self) -> Option<&KeyedTask<T, D>> {
        self.buckets[self.after(self.empty_buckets())].first()
    }

    /// Takes the first task of a bucket that has one.
    #[inline]
    fn take(&mut self, bucket: usize) -> Arc<KeyedTask<T, D>> {
        let task = self.buckets[bucket].pop_known(); // OCCUPIED
        if self.buckets[bucket].is_empty() {
            self.occupied &= !(1 << bucket);
        }
        task
    }

    /// Sets the key of a task that goes into the ring, and returns its bucket.
    #[inline]
    fn enter(&mut self, task: &KeyedTask<T, D>, key: Key) -> &mut Queue<T, Keyed<D>> {
        task.set_key(key);
        let bucket = self.bucket(key);
        self.occupied |= 1 << bucket;
        &mut self.buckets[bucket]
    }

    /// Puts a task into the ring at its place by key, after a walk of at most [`STEPS`] tasks.
    fn place_in_ring(&mut self, task: Arc<KeyedTask<T, D>>, key: Key) {
        let bucket = self.enter(&task, key);
        bucket.push_before(task, STEPS, |other| key < other.key());
    }

    /// Inserts a task whose key is outside the window. First moves the window, if that is allowed.
    #[cold]
    #[inline(never)]
    fn insert_beyond(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key) {
        if self.window == 0 {
            match self.wanted {
                Some(shift) if self.occupied == 0 => self.open(shift),
                _ => return self.outside.insert(task, key, around),
            }
        }
        let before = (BEHIND << self.shift).wrapping_neg();
        let mut start = self.floor(around).later(before);
        if self.occupied == 0 {
            self.set_start(start);
        } else {
            start = start.min(self.first_start());
            if start > self.start {
                self.set_start(start);
            }
        }
        if self.is_in_window(key) {
            self.place_in_ring(task, key);
        } else {
            self.outside.insert(task, key, around);
        }
    }

    #[inline]
    const fn is_in_window(&self, key: Key) -> bool {
        key.0.wrapping_sub(self.start.0) < self.window
    }

    const fn set_start(&mut self, start: Key) {
        self.start = start;
        self.first = self.bucket(start) as u32;
    }

    /// Opens the ring to tasks with this width.
    const fn open(&mut self, shift: u32) {
        self.shift = shift;
        self.mask = u64::MAX << shift;
        self.window = (BUCKETS as u64) << shift;
    }

    /// Returns true if the tree's first task is before the ring's, or has the same key and came
    /// before.
    fn is_first_outside(&self, outside: Key) -> bool {
        self.first().is_none_or(|inside| outside <= inside.key())
    }

    /// Takes the first task when the tree's may be before the ring's.
    #[cold]
    #[inline(never)]
    fn pop_either(&mut self) -> Option<Arc<KeyedTask<T, D>>> {
        match self.outside.first_key() {
            Some(outside) if self.is_first_outside(outside) => self.outside.pop(),
            _ if self.occupied == 0 => None,
            _ => Some(self.take(self.after(self.empty_buckets()))),
        }
    }
}

impl<T, D> ByKey<T, D> for Buckets<T, D> {
    const NEW: Self = Self {
        occupied: 0,
        start: Key(0),
        window: 0,
        shift: 0,
        mask: u64::MAX,
        first: 0,
        wanted: None,
        buckets: [const { Queue::new() }; BUCKETS as usize],
        outside: Ordered::NEW,
    };

    fn fit(&mut self, tick: Counts) {
        if tick == Counts::ZERO {
            return;
        }
        let tick = tick.0.min(LONGEST_CHARGE.0) << FRACTION_BITS;
        let width = 1 << self.shift;
        if tick / 8 < width && width <= tick / 2 {
            self.wanted = Some(self.shift);
            self.open(self.shift); // a width that was wanted meanwhile is dropped
        } else {
            // The middle of the allowed range: a tick may become 1.3 times as long or as short
            // before the width changes again.
            self.wanted = Some((tick / 8 * 3).ilog2());
            self.window = 0;
        }
    }

    #[inline]
    fn floor(&self, key: Key) -> Key {
        Key(key.0 & self.mask)
    }

    #[inline]
    fn is_empty(&self) -> bool {
        self.occupied == 0 && self.outside.is_empty()
    }

    #[inline]
    fn insert(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key) {
        if self.is_in_window(key) {
            self.enter(&task, key).push_back(task);
        } else {
            self.insert_beyond(task, key, around);
        }
    }

    fn place(&mut self, task: Arc<KeyedTask<T, D>>, key: Key, around: Key) {
        if self.is_in_window(key) {
            self.place_in_ring(task, key);
        } else {
            self.insert_beyond(task, key, around);
        }
    }

    fn first_key(&self) -> Option<Key> {
        let outside = self.outside.first_key();
        let inside = (self.occupied != 0).then(|| self.first_start());
        match (outside, inside) {
            (Some(outside), Some(inside)) => Some(outside.min(inside)),
            _ => outside.or(inside),
        }
    }

    fn next_key(&self) -> Option<Key> {
        match self.outside.first_key() {
            Some(outside) if self.is_first_outside(outside) => Some(outside),
            _ if self.occupied == 0 => None,
            _ => self.first().map(KeyedTask::key),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Arc<KeyedTask<T, D>>> {
        if self.occupied == 0 {
            return match self.outside.is_empty() {
                true => None,
                false => self.pop_either(),
            };
        }
        let empty = self.empty_buckets();
        // Before a later bucket, the tree's first task cannot be first.
        if let Some(outside) = self.outside.first_key()
            && outside < self.start_after(empty + 1)
        {
            return self.pop_either();
        }
        Some(self.take(self.after(empty)))
    }

    fn remove(&mut self, task: &Arc<KeyedTask<T, D>>) -> Option<Arc<KeyedTask<T, D>>> {
        let bucket = self.bucket(task.key()); // KEY: where it would be
        let removed = self.buckets[bucket].remove(task);
        if removed.is_some() && self.buckets[bucket].is_empty() {
            self.occupied &= !(1 << bucket);
        }
        removed.or_else(|| self.outside.remove(task))
    }

    fn remove_first(
        &mut self,
        wanted: &dyn Fn(&KeyedTask<T, D>) -> bool,
        agrees: &dyn Fn() -> bool,
    ) -> Option<Arc<KeyedTask<T, D>>> {
        let buckets = (0..BUCKETS).map(|i| self.after(i));
        let mut occupied = buckets.filter(|bucket| self.occupied >> bucket & 1 != 0);
        let inside = occupied.find_map(|bucket| {
            let task = self.buckets[bucket].find(wanted)?;
            Some((bucket, task.key(), core::ptr::from_ref(task)))
        });
        let outside = self.outside.find(wanted).map(KeyedTask::key);
        let is_first = |key: Key| outside.is_none_or(|outside| key < outside);
        let Some((bucket, _, found)) = inside.filter(|&(_, key, _)| is_first(key)) else {
            return self.outside.remove_first(wanted, agrees);
        };
        if !agrees() {
            return None;
        }
        // Takes the task found even if it is no longer `wanted`: `agrees` may have promised it
        // away.
        let removed = self.buckets[bucket].remove_first(|task| core::ptr::eq(task, found));
        if self.buckets[bucket].is_empty() {
            self.occupied &= !(1 << bucket);
        }
        removed
    }

    #[cfg(feature = "std")]
    fn tasks(&self) -> Vec<&KeyedTask<T, D>> {
        let inside = self.buckets.iter().flat_map(Queue::tasks);
        self.outside.tasks().into_iter().chain(inside).collect()
    }
}

#[cfg(test)]
impl<T, D> Buckets<T, D> {
    /// Checks OCCUPIED, WINDOW and WIDTH.
    pub fn assert_valid(&self) {
        for (i, bucket) in self.buckets.iter().enumerate() {
            assert_eq!(self.occupied >> i & 1 != 0, !bucket.is_empty(), "OCCUPIED");
            for task in bucket.tasks() {
                let key = task.key();
                assert_eq!(self.bucket(key), i, "WINDOW");
                let ahead = key.after(self.start) as u64;
                assert!(ahead >> self.shift < u64::from(BUCKETS), "WINDOW: {ahead}");
            }
        }
        assert_eq!(self.floor(self.start), self.start, "WINDOW");
        assert_eq!(self.bucket(self.start), self.first as usize, "WINDOW");
        assert!([0, u64::from(BUCKETS) << self.shift].contains(&self.window));
    }

    /// Returns the number of tasks in the ring, and outside the window.
    pub fn places(&self) -> (usize, usize) {
        let inside = self.buckets.iter().map(|bucket| bucket.tasks().len());
        (inside.sum(), self.outside.tasks().len())
    }
}

#[cfg(test)]
mod tests;
