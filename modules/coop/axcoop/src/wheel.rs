//! The timers in a hierarchical wheel (Varghese and Lauck, "Hashed and Hierarchical Timing Wheels", 1987, scheme 7).
//!
//! 1. Time is counted in granules, and the hand is at one of them. A timer is due once the hand has reached its
//!    granule, never before.
//! 2. There are 6 levels of 64 slots, for the 6 digits of a granule in base 64. A timer is in the level of the
//!    highest digit in which its time differs from the hand's, in the slot of that digit. The slots of the top level
//!    are reused in a circle. A timer beyond 63 of them is in the farthest one, and is looked at again when the hand
//!    is there, as often as needed.
//! 3. So all timers of a level are due before any of the levels above, and those of a lower slot before those of a
//!    higher one. The hand jumps from one occupied slot to the next, which two find-first-sets find. The timers of
//!    that slot are due, or move to a level below.
//! 4. Each call takes constant time: inserting, removing, asking for the next time, and a [step](Wheel::step). A
//!    timer takes at most one step for each level, and one more for each turn of the top level.
//! 5. The bit of a slot is set if and only if the slot is not empty, and the bit of a level if and only if one of its
//!    slots is not.
//!
//! Nothing is allocated: the links are in the [`Node`]s, which do not move while they are in the wheel. WHEEL: all of
//! a node is under the lock of its wheel.

use core::cell::Cell;
use core::marker::PhantomPinned;
use core::ptr;
use core::task::Waker;

const LEVELS: usize = 6;
const BITS: usize = 6;
const SLOTS: usize = 1 << BITS;
const TOP: usize = LEVELS - 1;

/// [`Node::slot`] of a node that has never been in a slot.
const OUT: u16 = u16::MAX;
/// [`Node::slot`] of a node whose time has come.
const DUE: u16 = OUT - 1;

/// A timer.
pub(crate) struct Node {
    next: Cell<*const Node>,
    prev: Cell<*const Node>,
    waker: Cell<Option<Waker>>,
    /// The time, in granules.
    at: Cell<u64>,
    /// Level times 64 and slot, or [`OUT`], or [`DUE`].
    slot: Cell<u16>,
    _pinned: PhantomPinned,
}

/// The timers of a domain.
pub(crate) struct Wheel {
    /// The hand, in granules (rule 1).
    hand: u64,
    waiting: usize,
    /// The levels that are not empty (rule 5).
    some_levels: u8,
    some_slots: [u64; LEVELS],
    /// The slot at the hand that has not been emptied yet, or [`OUT`].
    open: u16,
    /// A ring for each slot.
    heads: [[*const Node; SLOTS]; LEVELS],
}

// SAFETY: WHEEL: the holder of the lock may touch the nodes from any thread.
unsafe impl Send for Wheel {}

/// The result of a step.
#[must_use]
pub(crate) enum Step {
    /// A timer is due, and this waker must be woken.
    Due(Option<Waker>),
    /// A timer has moved to a level below.
    Moved,
    /// No timer is due: there is nothing to do until [`Wheel::next`].
    Nothing,
}

impl Node {
    pub(crate) const fn new() -> Self {
        Self {
            next: Cell::new(ptr::null()),
            prev: Cell::new(ptr::null()),
            waker: Cell::new(None),
            at: Cell::new(0),
            slot: Cell::new(OUT),
            _pinned: PhantomPinned,
        }
    }

    /// Returns true if it is in the wheel.
    pub(crate) fn is_in(&self) -> bool {
        self.slot.get() < DUE
    }

    /// Returns true if its time has come.
    pub(crate) fn is_due(&self) -> bool {
        self.slot.get() == DUE
    }

    /// Sets the waker, and returns the one before.
    pub(crate) fn wakes(&self, waker: Option<Waker>) -> Option<Waker> {
        self.waker.replace(waker)
    }

    /// Returns true if it has this waker, or an equal one.
    pub(crate) fn will_wake(&self, waker: &Waker) -> bool {
        let mine = self.waker.take();
        let will = mine.as_ref().is_some_and(|mine| mine.will_wake(waker));
        self.waker.set(mine);
        will
    }
}

impl Wheel {
    pub(crate) const fn new() -> Self {
        Self {
            hand: 0,
            waiting: 0,
            some_levels: 0,
            some_slots: [0; LEVELS],
            open: OUT,
            heads: [[ptr::null(); SLOTS]; LEVELS],
        }
    }

    /// Returns the number of timers.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Inserts a node that is in no wheel, for the granule `at`, at the time `now`. Returns false, without inserting
    /// it, if it is due already.
    ///
    /// # Safety
    /// The node is neither moved nor dropped until it is due or removed.
    #[must_use]
    pub(crate) unsafe fn insert(&mut self, node: &Node, at: u64, now: u64) -> bool {
        debug_assert!(!node.is_in());
        if self.waiting == 0 {
            // There is no timer in between, so the hand need not go there step by step.
            self.hand = self.hand.max(now);
        }
        if at <= self.hand {
            return false;
        }
        node.at.set(at);
        self.puts(node);
        self.waiting += 1;
        true
    }

    /// Removes a node that is in the wheel.
    pub(crate) fn remove(&mut self, node: &Node) {
        self.takes(node);
        node.slot.set(OUT);
        self.waiting -= 1;
    }

    /// Returns the time at which a timer is due or must be moved, or none without timers.
    pub(crate) fn next(&self) -> Option<u64> {
        if self.open != OUT {
            return Some(self.hand);
        }
        self.next_slot().map(|(at, _)| at)
    }

    /// Makes one step of those that are due at `now`.
    pub(crate) fn step(&mut self, now: u64) -> Step {
        if self.open == OUT {
            match self.next_slot() {
                Some((at, slot)) if at <= now => {
                    self.hand = at;
                    self.open = slot;
                }
                _ => {
                    self.hand = self.hand.max(now);
                    return Step::Nothing;
                }
            }
        }
        let (level, slot) = split(self.open);
        // SAFETY: rule 5 and `open`: the slot is not empty, and a node stays until it is removed.
        let node = unsafe { &*self.heads[level][slot] };
        self.takes(node);
        if node.at.get() <= self.hand {
            node.slot.set(DUE);
            self.waiting -= 1;
            return Step::Due(node.waker.take());
        }
        self.puts(node);
        Step::Moved
    }

    /// Returns the next occupied slot, and the time at which the hand reaches it (rule 3).
    fn next_slot(&self) -> Option<(u64, u16)> {
        let level = self.some_levels.trailing_zeros() as usize;
        let some = *self.some_slots.get(level)?;
        let shift = level * BITS;
        let at = if level < TOP {
            let above = self.hand >> (shift + BITS) << BITS;
            (above | u64::from(some.trailing_zeros())) << shift
        } else {
            let digit = self.hand >> shift;
            let ahead = some.rotate_right((digit % SLOTS as u64) as u32);
            (digit + u64::from(ahead.trailing_zeros())) << shift
        };
        Some((at, join(level, (at >> shift) as usize % SLOTS)))
    }

    /// Returns the place of a timer for a granule after the hand (rule 2).
    fn place(&self, at: u64) -> (usize, usize) {
        debug_assert!(at > self.hand);
        let top = self.hand >> (TOP * BITS);
        let ahead = (at >> (TOP * BITS)) - top;
        if ahead != 0 {
            let digit = top + ahead.min(SLOTS as u64 - 1);
            return (TOP, digit as usize % SLOTS);
        }
        let level = (at ^ self.hand).ilog2() as usize / BITS;
        (level, (at >> (level * BITS)) as usize % SLOTS)
    }

    /// Puts a node where it belongs, as the last.
    fn puts(&mut self, node: &Node) {
        let (level, slot) = self.place(node.at.get());
        debug_assert!(join(level, slot) != self.open, "{level} {slot}");
        node.slot.set(join(level, slot));
        let head = &mut self.heads[level][slot];
        // SAFETY: a node stays in its slot until it is removed.
        match unsafe { head.as_ref() } {
            None => {
                node.next.set(node);
                node.prev.set(node);
                *head = node;
                self.some_slots[level] |= 1 << slot;
                self.some_levels |= 1 << level;
            }
            Some(first) => {
                let last = first.prev.replace(node);
                node.next.set(first);
                node.prev.set(last);
                // SAFETY: as above.
                unsafe { &*last }.next.set(node);
            }
        }
    }

    /// Takes a node out of its slot.
    fn takes(&mut self, node: &Node) {
        let at = node.slot.get();
        debug_assert!(node.is_in());
        let (level, slot) = split(at);
        let (next, prev) = (node.next.get(), node.prev.get());
        if !ptr::eq(next, node) {
            // SAFETY: as above.
            unsafe {
                (*next).prev.set(prev);
                (*prev).next.set(next);
            }
            if ptr::eq(self.heads[level][slot], node) {
                self.heads[level][slot] = next;
            }
            return;
        }
        self.heads[level][slot] = ptr::null();
        self.some_slots[level] &= !(1 << slot);
        if self.some_slots[level] == 0 {
            self.some_levels &= !(1 << level);
        }
        if self.open == at {
            self.open = OUT;
        }
    }
}

fn join(level: usize, slot: usize) -> u16 {
    (level * SLOTS + slot) as u16
}

fn split(slot: u16) -> (usize, usize) {
    let slot = usize::from(slot);
    (slot / SLOTS % LEVELS, slot % SLOTS)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::collections::BTreeMap;
    use std::pin::Pin;

    use super::*;

    impl Wheel {
        /// Asserts rules 2, 3 and 5 for all timers.
        fn assert_valid(&self) {
            let mut waiting = 0;
            for level in 0..LEVELS {
                let some = self.some_slots[level];
                assert_eq!(some != 0, self.some_levels >> level & 1 != 0, "rule 5");
                for slot in 0..SLOTS {
                    let head = self.heads[level][slot];
                    assert_eq!(!head.is_null(), some >> slot & 1 != 0, "rule 5");
                    let mut at = head;
                    // SAFETY: as above.
                    while let Some(node) = unsafe { at.as_ref() } {
                        assert_eq!(node.slot.get(), join(level, slot));
                        if self.open != join(level, slot) {
                            let time = node.at.get();
                            assert!(time > self.hand, "rule 1");
                            // A timer that was beyond the top level may be here earlier.
                            let digit = self.hand >> (TOP * BITS);
                            let ahead = (slot as u64).wrapping_sub(digit) % SLOTS as u64;
                            let is_before = level == TOP && digit + ahead < time >> (TOP * BITS);
                            assert!(is_before || self.place(time) == (level, slot), "rule 2");
                        }
                        waiting += 1;
                        // SAFETY: as above.
                        assert!(ptr::eq(unsafe { &*node.next.get() }.prev.get(), node));
                        at = node.next.get();
                        if ptr::eq(at, head) {
                            break;
                        }
                    }
                }
            }
            assert_eq!(waiting, self.waiting);
            assert!(
                self.open == OUT || !self.heads[split(self.open).0][split(self.open).1].is_null()
            );
        }
    }

    /// Numbers that are the same in each run (xorshift64).
    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn below(&mut self, n: u64) -> u64 {
            self.next() % n
        }

        /// Returns a number of up to this many bits, each size as often as another.
        fn up_to_bits(&mut self, bits: u64) -> u64 {
            let bits = self.below(bits + 1);
            self.next() & ((1 << bits) - 1)
        }
    }

    fn nodes(n: usize) -> Pin<Box<[Node]>> {
        Box::into_pin((0..n).map(|_| Node::new()).collect())
    }

    /// Makes all steps, and returns their number and that of the due timers.
    fn steps(wheel: &mut Wheel, now: u64) -> (usize, usize) {
        let (mut all, mut due) = (0, 0);
        loop {
            match wheel.step(now) {
                Step::Due(_) => due += 1,
                Step::Moved => {}
                Step::Nothing => return (all, due),
            }
            all += 1;
        }
    }

    /// Compares with a map, 100,000 times: inserts, removes and waits, with near and far times, some beyond the last
    /// slot of the top level.
    #[test]
    fn rules_1_2_3_the_wheel_does_what_a_map_does() {
        for seed in 1..=4_u64 {
            let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
            let all = nodes(500);
            let mut wheel = Wheel::new();
            let mut model: BTreeMap<(u64, usize), ()> = BTreeMap::new();
            let mut times: Vec<Option<u64>> = vec![None; all.len()];
            let mut now = random.up_to_bits(43);
            for turn in 0..25_000 {
                let n = random.below(all.len() as u64) as usize;
                match (random.below(8), times[n]) {
                    (0..5, None) => {
                        let at = now.saturating_sub(2) + random.up_to_bits(41);
                        // SAFETY: the nodes outlive the wheel.
                        let is_in = unsafe { wheel.insert(&all[n], at, now) };
                        assert_eq!(is_in, at > now.max(wheel.hand));
                        if is_in {
                            times[n] = Some(at);
                            model.insert((at, n), ());
                        }
                    }
                    (0..5, Some(at)) => {
                        wheel.remove(&all[n]);
                        times[n] = None;
                        model.remove(&(at, n));
                    }
                    (kind, _) => {
                        // Sometimes to the very time of a timer, or just before.
                        let to = match (kind, model.keys().next()) {
                            (5, Some(&(at, _))) => at,
                            (6, Some(&(at, _))) => at - 1,
                            _ => now + random.up_to_bits(if turn % 50 == 0 { 40 } else { 14 }),
                        };
                        now = now.max(to);
                        // One step at a time, as under a lock.
                        loop {
                            match wheel.step(now) {
                                Step::Nothing => break,
                                _ => wheel.assert_valid_now_and_then(&mut random),
                            }
                        }
                        while let Some((&(at, n), ())) = model.first_key_value() {
                            if at > now {
                                break;
                            }
                            model.pop_first();
                            assert!(all[n].is_due(), "late: {at}, it is {now}");
                            all[n].slot.set(OUT);
                            times[n] = None;
                        }
                        for &(at, n) in model.keys() {
                            assert!(all[n].is_in(), "early: {at}, it is {now}");
                        }
                    }
                }
                assert_eq!(wheel.waiting(), model.len());
                match (wheel.next(), model.keys().next()) {
                    (Some(next), Some(&(at, _))) => assert!(next <= at && next > wheel.hand),
                    (None, None) => {}
                    (next, model) => panic!("{next:?} {model:?}"),
                }
                if turn % 16 == 0 {
                    wheel.assert_valid();
                }
            }
        }
    }

    impl Wheel {
        fn assert_valid_now_and_then(&self, random: &mut Random) {
            if random.below(256) == 0 {
                self.assert_valid();
            }
        }
    }

    #[test]
    fn rule_4_a_hundred_thousand_take_a_few_steps_each() {
        const N: usize = 100_000;
        let all = nodes(N);
        let mut wheel = Wheel::new();
        let mut random = Random(11);
        for node in &all[..] {
            let at = 1 + random.up_to_bits(36);
            // SAFETY: the nodes outlive the wheel.
            assert!(unsafe { wheel.insert(node, at, 0) });
        }
        let mut calls = 0;
        let mut now = 0;
        let mut due = 0;
        while let Some(next) = wheel.next() {
            assert!(next > now);
            now = next;
            let (steps, of_them_due) = steps(&mut wheel, now);
            assert!(steps > 0, "the wheel wants to be looked at for nothing");
            calls += steps;
            due += of_them_due;
        }
        assert_eq!(due, N);
        assert!(calls <= N * LEVELS, "{calls}");
    }

    #[test]
    fn rule_2_the_farthest_time_is_waited_for_turn_by_turn() {
        let all = nodes(1);
        let mut wheel = Wheel::new();
        let at = (u64::MAX >> 20) + 1;
        // SAFETY: the nodes outlive the wheel.
        assert!(unsafe { wheel.insert(&all[0], at, 5) });
        let mut turns = 0;
        while let Some(next) = wheel.next() {
            let (_, due) = steps(&mut wheel, next);
            assert_eq!(due != 0, next >= at);
            turns += 1;
        }
        assert!(all[0].is_due());
        // 2^44 granules, 63 slots of 2^30 at a time, and the digits below.
        assert!(turns <= (1 << 14) / 63 + 1 + LEVELS, "{turns}");
    }

    #[test]
    fn rule_3_who_is_removed_while_his_slot_is_open_is_gone() {
        let all = nodes(3);
        let mut wheel = Wheel::new();
        for node in &all[..] {
            // SAFETY: the nodes outlive the wheel.
            assert!(unsafe { wheel.insert(node, 100, 0) });
        }
        assert!(matches!(wheel.step(64), Step::Moved));
        wheel.remove(&all[1]);
        wheel.assert_valid();
        assert_eq!(wheel.next(), Some(64), "one is still to be moved");
        wheel.remove(&all[2]);
        wheel.assert_valid();
        assert_eq!(wheel.next(), Some(100));
        assert!(matches!(wheel.step(99), Step::Nothing));
        assert!(matches!(wheel.step(100), Step::Due(None)));
        assert!(all[0].is_due());
        assert_eq!(wheel.next(), None);
    }
}
