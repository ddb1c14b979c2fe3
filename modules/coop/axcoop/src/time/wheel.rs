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
//! 5. The bit of a slot is set if and only if the slot is not empty. The bit of a level is set if and only if one of
//!    its slots is not empty.
//!
//! Nothing is allocated: the links are in the [`Node`]s, which do not move while they are in the wheel. WHEEL: all of
//! a node is under the lock of its wheel.

use core::cell::Cell;
use core::marker::PhantomPinned;
use core::ptr;
use core::task::Waker;

pub(crate) const LEVELS: usize = 6;
const BITS: usize = 6;
const SLOTS: usize = 1 << BITS;
const TOP: usize = LEVELS - 1;

/// [`Node::slot`] of a node that has never been in a slot.
const OUT: u16 = u16::MAX;
/// [`Node::slot`] of a node whose time has come.
const DUE: u16 = OUT - 1;

/// A timer's place in the wheel, which is a part of the future that sleeps.
pub(crate) struct Node {
    next: Cell<*const Node>,
    prev: Cell<*const Node>,
    waker: Cell<Option<Waker>>,
    /// The time, in granules.
    at: Cell<u64>,
    /// The level times 64 plus the slot, or [`OUT`], or [`DUE`].
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

// SAFETY: the holder of the lock may touch the nodes from any thread (WHEEL).
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
    pub(crate) fn replace_waker(&self, waker: Option<Waker>) -> Option<Waker> {
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
        self.link(node);
        self.waiting += 1;
        true
    }

    /// Removes a node that is in the wheel.
    pub(crate) fn remove(&mut self, node: &Node) {
        self.unlink(node);
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
        // SAFETY: the open slot is not empty (rule 5), and a node stays until it is removed.
        let node = unsafe { &*self.heads[level][slot] };
        self.unlink(node);
        if node.at.get() <= self.hand {
            node.slot.set(DUE);
            self.waiting -= 1;
            return Step::Due(node.waker.take());
        }
        self.link(node);
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
    fn link(&mut self, node: &Node) {
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
    fn unlink(&mut self, node: &Node) {
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
impl Wheel {
    /// Asserts rules 2, 3 and 5 for all timers.
    pub(crate) fn assert_valid(&self) {
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
        assert!(self.open == OUT || !self.heads[split(self.open).0][split(self.open).1].is_null());
    }

    /// Returns the hand, in granules.
    pub(crate) fn hand(&self) -> u64 {
        self.hand
    }
}
