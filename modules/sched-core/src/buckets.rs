//! A ready queue by key whose cost does not grow with the number of tasks.
//!
//! 64 buckets, each a list and one *width* of keys wide, stand in a ring that is a *window*
//! on the line of keys; one word tells which have somebody. Who yields goes to the end of a
//! bucket, who is preempted or comes to its place by key among the first few there, so that
//! among few tasks order is exact but for yields, and for those whom EEVDF moves from one
//! queue to the other. (A circular queue of buckets found by a find-first-set, as in Eiffel;
//! Saeed et al., NSDI 2019. There who is beyond the window waits in coarser buckets and is
//! moved over; here in a tree, and nobody is ever moved.)
//!
//! OCCUPIED: bit i of `occupied` is set exactly if bucket i has a task.
//!
//! WINDOW: a task in the ring has its key in the 64 widths from `start`, and stands in the
//! bucket of its key over the width, modulo 64.
//!
//! OUTSIDE: whoever came with a key outside the window, before or after it, is in an exact
//! tree ([`Ordered`]) until it is taken. A pop takes the first of the ring's first bucket,
//! unless the tree's first key is no later than that. So two tasks leave out of order only if
//! their keys are less than a width apart.
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
mod tests {
    use super::*;
    use crate::steps;
    use proptest::prelude::*;

    type Entry = Arc<KeyedTask<usize, ()>>;

    fn insert(queue: &mut Buckets<usize, ()>, id: usize, key: u64, around: u64) {
        queue.insert(Arc::new(KeyedTask::new(id)), Key(key), Key(around));
    }

    /// A tick, and a quarter of it as vruntime, which is its width.
    const TICK: Counts = Counts(1 << 10);
    const WIDTH: u64 = 1 << (10 - 2 + FRACTION_BITS);

    fn fitted() -> Buckets<usize, ()> {
        let mut queue = Buckets::NEW;
        queue.fit(TICK);
        queue
    }

    #[derive(Clone, Debug)]
    enum Step {
        /// So far from `around`, in eighths of a width.
        Insert(i64),
        Pop,
        Remove(usize),
        /// `around` moves on by so much, in eighths of a width.
        Move(u64),
        /// In eighths of a tick.
        Fit(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            6 => (-40..400_i64).prop_map(Step::Insert),
            1 => (-10_000..10_000_i64).prop_map(Step::Insert),
            5 => Just(Step::Pop),
            1 => (0..300_usize).prop_map(Step::Remove),
            1 => (0..600_u64).prop_map(Step::Move),
            1 => (1..64_u64).prop_map(Step::Fit),
        ]
    }

    proptest! {
        /// Beside a vector in order of arrival; keys around a wrap of the line.
        #[test]
        fn two_leave_out_of_order_only_if_they_are_less_than_a_width_apart(
            steps in prop::collection::vec(step(), 0..400)
        ) {
            let (mut queue, mut model) = (fitted(), Vec::<Entry>::new());
            let mut around = Key(0).later((1000 * WIDTH).wrapping_neg());
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Insert(at) => {
                        let key = around.later((at * (WIDTH / 8) as i64) as u64);
                        let task = Arc::new(KeyedTask::new(id));
                        model.push(task.clone());
                        queue.insert(task, key, around);
                    }
                    Step::Pop => {
                        let first = model.iter().map(|task| task.key()).min();
                        let (next, floor) = (queue.next_key(), queue.first_key());
                        let width = 1 << queue.shift;
                        let popped = queue.pop();
                        prop_assert_eq!(popped.is_some(), first.is_some());
                        prop_assert_eq!(popped.as_ref().map(|task| task.key()), next);
                        if let (Some(popped), Some(first), Some(floor)) = (popped, first, floor) {
                            prop_assert!((0..width).contains(&popped.key().after(first)));
                            prop_assert!((0..width).contains(&first.after(floor)));
                            let at = model.iter().position(|task| Arc::ptr_eq(task, &popped));
                            model.remove(at.expect("it was there"));
                        }
                    }
                    Step::Remove(which) => {
                        if let Some(task) = model.get(which).cloned() {
                            prop_assert!(queue.remove(&task).is_some());
                            prop_assert!(queue.remove(&task).is_none());
                            model.remove(which);
                        }
                    }
                    Step::Move(by) => around = around.later(by * (WIDTH / 8)),
                    Step::Fit(tick) => queue.fit(Counts(TICK.0 / 8 * tick)),
                }
                queue.assert_valid();
                prop_assert_eq!(queue.is_empty(), model.is_empty());
                let (inside, outside) = queue.places();
                prop_assert_eq!(inside + outside, model.len());
            }
        }
    }

    #[test]
    fn a_bucket_is_first_come_first_served() {
        let mut queue = fitted();
        let keys = [WIDTH - 1, WIDTH, 3, WIDTH + 7, 3, 0];
        for (id, key) in keys.into_iter().enumerate() {
            insert(&mut queue, id, key, 0);
        }
        let order: Vec<_> = core::iter::from_fn(|| queue.pop()).collect();
        let order: Vec<_> = order.iter().map(|task| *task.inner()).collect();
        assert_eq!(order, [0, 2, 4, 5, 1, 3]);
    }

    #[test]
    fn the_window_slides_on_and_the_rest_waits_in_the_tree() {
        let mut queue = fitted();
        let far = 47 * WIDTH;
        for (key, around, places) in [
            (0, 0, (1, 0)),
            (far, 0, (2, 0)),
            (far + WIDTH, 0, (2, 1)), // beyond its end
            (17 * WIDTH, 0, (3, 1)),
            (far + WIDTH, WIDTH, (4, 1)), // it slides by a bucket
            (far + 17 * WIDTH, 17 * WIDTH, (4, 2)), // not past the first, which is at 0
            (WIDTH.wrapping_neg(), 0, (4, 3)), // it never goes back
        ] {
            insert(&mut queue, 0, key, around);
            queue.assert_valid();
            assert_eq!(queue.places(), places, "{}", key as i64 / WIDTH as i64);
        }
    }

    /// An affinity may change while a task is given away.
    #[test]
    fn found_task_is_taken_even_if_it_is_no_longer_wanted() {
        for keys in [[5 * WIDTH, 7 * WIDTH], [400 * WIDTH, 5 * WIDTH]] {
            let mut queue = fitted();
            for (id, key) in keys.into_iter().enumerate() {
                insert(&mut queue, id, key, 0);
            }
            let is_given = core::cell::Cell::new(false);
            let is_first = |task: &KeyedTask<usize, ()>| !is_given.get() && *task.inner() == 0;
            let agrees = || !is_given.replace(true);
            let found = queue.remove_first(&is_first, &agrees).unwrap();
            assert_eq!(*found.inner(), 0);
            queue.assert_valid();
        }
    }

    #[test]
    fn the_first_that_is_wanted_may_be_outside_the_window() {
        let mut queue = fitted();
        let keys = [
            5 * WIDTH,
            (40 * WIDTH).wrapping_neg(),
            200 * WIDTH,
            7 * WIDTH,
        ];
        for (id, key) in keys.into_iter().enumerate() {
            insert(&mut queue, id, key, 0);
        }
        assert_eq!(queue.places(), (2, 2));
        for wanted in 0..4 {
            let is_wanted = |task: &KeyedTask<usize, ()>| *task.inner() == wanted;
            assert!(queue.remove_first(&is_wanted, &|| false).is_none());
        }
        assert_eq!(queue.places(), (2, 2), "nobody agrees");
        let order: Vec<_> = core::iter::from_fn(|| queue.remove_first(&|_| true, &|| true))
            .map(|task| *task.inner())
            .collect();
        assert_eq!(order, [1, 0, 3, 2]);
    }

    #[test]
    fn a_width_fits_the_tick_and_changes_when_the_ring_is_empty() {
        let mut queue = Buckets::NEW;
        insert(&mut queue, 0, 5, 0);
        assert_eq!(queue.places(), (0, 1), "no tick is known");
        queue.fit(TICK);
        insert(&mut queue, 1, 6, 0);
        assert_eq!((queue.places(), 1 << queue.shift), ((1, 1), WIDTH));
        queue.fit(Counts(TICK.0 * 4 / 3));
        insert(&mut queue, 2, 7, 0);
        assert_eq!(
            queue.places(),
            (2, 1),
            "a quarter or three sixteenths, it is all one"
        );
        queue.fit(Counts(TICK.0 * 16));
        insert(&mut queue, 3, 8, 0);
        assert_eq!(queue.places(), (2, 2), "closed");
        let order: Vec<_> = (0..3)
            .filter_map(|_| queue.pop())
            .map(|task| *task.inner())
            .collect();
        assert_eq!(order, [0, 1, 2], "by key, and 8 waits in the tree");
        insert(&mut queue, 4, 9, 0);
        assert_eq!((queue.places(), 1 << queue.shift), ((1, 1), 16 * WIDTH));
        for tick in 1..100_000 {
            let mut queue = Buckets::<usize, ()>::NEW;
            queue.fit(Counts(tick));
            insert(&mut queue, 0, 0, 0);
            let (width, tick) = (1_u64 << queue.shift, tick << FRACTION_BITS);
            assert!(tick < 8 * width && 2 * width <= tick, "{tick}: {width}");
            assert_eq!(queue.places(), (1, 0));
        }
    }

    /// Of 4,096 tasks, wherever they are: a walk down the tree and a bucket. (Only `remove`
    /// takes more, by contract, and `axtask` never removes a task.)
    #[test]
    fn no_call_takes_more_steps_than_a_walk_down_the_tree() {
        const FAR: u64 = 1 << 40;
        type At = fn(u64) -> (u64, u64);
        let arrangements: [(&str, usize, At); 6] = [
            ("all in one bucket", 4096, |_| (5, 0)),
            ("each in another bucket", 4096, |i| (i % 40 * WIDTH, 0)),
            ("all far ahead", 0, |i| (FAR + i * WIDTH, 0)),
            ("all far behind", 0, |i| (FAR.wrapping_neg() - i, 0)),
            ("all of one key, far ahead", 0, |_| (FAR, 0)),
            // It slides as far as the first, who stays, and the rest are beyond its end.
            ("a window that slides", 64, |i| (i * WIDTH, i * WIDTH)),
        ];
        for (name, inside, at) in arrangements {
            let (mut queue, mut most) = (fitted(), 0);
            let put = |queue: &mut Buckets<_, _>, i: u64| {
                let (key, around) = at(i);
                let task = Arc::new(KeyedTask::new(0));
                steps::of(|| queue.insert(task, Key(key), Key(around)))
            };
            for i in 0..4096 {
                most = put(&mut queue, i).max(most);
            }
            queue.assert_valid();
            assert_eq!(queue.places(), (inside, 4096 - inside), "{name}");
            // The width is to change while the queue is full.
            most = steps::of(|| queue.fit(Counts(TICK.0 * 16))).max(most);
            most = put(&mut queue, 0).max(most);
            while !queue.is_empty() {
                let looks = steps::of(|| (queue.first_key(), queue.next_key()));
                assert_eq!(looks, 0, "{name}");
                most = steps::of(|| queue.pop()).max(most);
            }
            assert!(most <= steps::DEPTH + 1, "{name}: {most}");
            assert!(inside == 4096 || most > 10, "{name}: only {most}");
        }
        let mut queue = fitted();
        let tasks = [(); 4096].map(|()| Arc::new(KeyedTask::new(0)));
        for task in &tasks {
            queue.insert(task.clone(), Key(5), Key(0));
        }
        let linear = steps::of(|| queue.remove(&tasks[4095]));
        assert!(linear >= 4095, "the contract of `remove`: {linear}");
    }
}
