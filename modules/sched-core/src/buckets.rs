//! A ready queue by key whose cost does not grow with the number of tasks.
//!
//! 64 buckets, each a list and one *width* of keys wide, stand in a ring that is a *window* on the
//! line of keys. One word tells which have a task. A yielder goes to the end of a bucket. A task
//! that is preempted or becomes ready goes to its place by key among the first few there. So among
//! few tasks the order is exact except for yields, and for tasks that EEVDF moves from one queue to
//! the other. (It is a circular queue of buckets found by a find-first-set, as in Eiffel; Saeed et
//! al., NSDI 2019. There a task beyond the window waits in coarser buckets and is moved over. Here
//! it waits in a tree, and no task is ever moved.)
//!
//! OCCUPIED: bit i of `occupied` is set exactly if bucket i has a task.
//!
//! WINDOW: a task in the ring has its key in the 64 widths from `start`, and stands in the
//! bucket of its key over the width, modulo 64.
//!
//! OUTSIDE: a task that came with a key outside the window, before or after it, is in an exact tree
//! ([`Ordered`]) until it is taken. A pop takes the first of the ring's first bucket, unless the
//! tree's first key is no later than that. So two tasks leave out of order only if their keys are
//! less than a width apart.
//!
//! The window lies around most keys, 16 buckets of it before `around`, and slides on
//! when a key falls outside of it. 48 buckets are 9 ticks or more when the ring opens, and 6
//! while it stays open: in the tree are the tasks of high nice values, from 5 to 10 on as the
//! width has it, whose turns are many ticks of vruntime long, and few of the rest.
//!
//! WIDTH: a power of two, more than an eighth of a tick and not more than a half, as
//! vruntime. While the tick's length is not known there is no ring. When the length has
//! changed, the ring takes nobody any more, and opens with the new width once it is empty,
//! which is when those in it have been picked: nobody is sorted anew.
//!
//! **Cost.** A put and a pop are a find-first-set and a list operation each; outside the
//! window O(log n), some 2 log2 n steps. Nothing allocates. Memory: 1 KiB a queue.

use alloc::sync::Arc;
#[cfg(feature = "std")]
use alloc::vec::Vec;

use crate::nice::{FRACTION_BITS, LONGEST_CHARGE};
use crate::ordered::{ByKey, Key, Keyed, KeyedTask, Ordered};
use crate::queue::Queue;
use crate::units::Counts;

/// How many buckets there are: one for each bit of a word.
const BUCKETS: u32 = u64::BITS;

/// How many of them lie before `around` when the window is set: two to three ticks or
/// more, as far as tasks are behind for the most part.
const BEHIND: u64 = 16;

/// How many tasks of its bucket a task is held against at most that takes its place by key.
const STEPS: usize = 8;

/// See the [module documentation](self).
pub struct Buckets<T, D> {
    /// OCCUPIED.
    occupied: u64,
    /// WINDOW. A multiple of the width.
    start: Key,
    /// How far the window goes on from there; 0 while the ring takes nobody.
    window: u64,
    /// log2 of the width.
    shift: u32,
    /// All bits of a key but those within a width.
    mask: u64,
    /// The bucket that begins at `start`.
    first: u32,
    /// What `shift` is to be, if the length of a tick is known.
    wanted: Option<u32>,
    buckets: [Queue<T, Keyed<D>>; BUCKETS as usize],
    outside: Ordered<T, D>,
}

impl<T, D> Buckets<T, D> {
    #[inline]
    const fn bucket(&self, key: Key) -> usize {
        (key.0 >> self.shift) as usize % BUCKETS as usize
    }

    /// How many buckets of the window are before the first that has a task.
    #[inline]
    const fn empty_buckets(&self) -> u32 {
        self.occupied.rotate_right(self.first).trailing_zeros()
    }

    /// The bucket after so many of the window.
    #[inline]
    const fn after(&self, buckets: u32) -> usize {
        (self.first + buckets) as usize % BUCKETS as usize
    }

    /// Where that begins.
    #[inline]
    const fn start_after(&self, buckets: u32) -> Key {
        self.start.later((buckets as u64) << self.shift)
    }

    /// Where the first bucket begins that has a task.
    const fn first_start(&self) -> Key {
        self.start_after(self.empty_buckets())
    }

    /// The first task of the ring.
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

    /// The bucket of a task that goes into the ring with this key.
    #[inline]
    fn enter(&mut self, task: &KeyedTask<T, D>, key: Key) -> &mut Queue<T, Keyed<D>> {
        task.set_key(key);
        let bucket = self.bucket(key);
        self.occupied |= 1 << bucket;
        &mut self.buckets[bucket]
    }

    /// Puts a task into the ring, by its key as far as that is no long way.
    fn place_in_ring(&mut self, task: Arc<KeyedTask<T, D>>, key: Key) {
        let bucket = self.enter(&task, key);
        bucket.push_before(task, STEPS, |other| key < other.key());
    }

    /// A key is not in the window as it lies: moves that, if it may be moved.
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

    /// Takes tasks in, from now on by this width.
    const fn open(&mut self, shift: u32) {
        self.shift = shift;
        self.mask = u64::MAX << shift;
        self.window = (BUCKETS as u64) << shift;
    }

    /// Whether the tree's first is before the ring's, or came before it with the same key.
    fn is_first_outside(&self, outside: Key) -> bool {
        self.first().is_none_or(|inside| outside <= inside.key())
    }

    /// Takes a task out where the tree's first may be before the ring's.
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
            self.open(self.shift); // whatever was wanted meanwhile
        } else {
            // In the middle of what is allowed, so that a tick may become 1.3 times as
            // long or as short before the width changes again.
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
        // In a later bucket the tree's first need not be looked at.
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
        // That task, whatever `wanted` says by now: the answer may have been given away for it.
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
    /// OCCUPIED, WINDOW, WIDTH.
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

    /// Where tasks are: in the ring, and outside the window.
    pub fn places(&self) -> (usize, usize) {
        let inside = self.buckets.iter().map(|bucket| bucket.tasks().len());
        (inside.sum(), self.outside.tasks().len())
    }
}

#[cfg(test)]
mod tests;
