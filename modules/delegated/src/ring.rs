//! The two rings: messages from a CPU to an agent, and decisions from an agent to a CPU.
//!
//! ONE PRODUCER: only the CPU whose run queue's lock is held writes to its ring of messages.
//!
//! FREE: a CPU without a decision says so, and then looks again. An agent makes a decision, and then looks
//! if the CPU has said so. A `SeqCst` fence is between the two steps of each. So the CPU finds the decision,
//! or the agent interrupts it.
//!
//! A ring of decisions has one consumer, the CPU. It may have several producers for a moment, while
//! one agent replaces another. A producer publishes by one compare-and-swap of an entry, and all move
//! the tail. So a producer that stops in between holds up no other.
//!
//! **Source.** The ring of one producer is Lamport's ("Specifying concurrent program modules", 1983). The
//! producer looks at the head only if its last look does not suffice, as in MCRingBuffer (Lee, Bu and
//! Chandranmenon, "A lock-free, cache-efficient multi-core synchronization mechanism", 2009).

#[cfg(all(test, loom))]
use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};

#[cfg(not(all(test, loom)))]
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering::*, fence};

use alloc::boxed::Box;

/// The most messages that a ring holds.
pub const MAX_MESSAGES: usize = if cfg!(all(test, loom)) { 2 } else { 1024 };

/// The two words of a message.
pub type Words = [u64; 2];

/// The messages of one CPU to one enclave's agent.
#[cfg_attr(all(test, loom), derive(Default))]
pub struct Messages {
    /// The next message to read. The agent moves it.
    head: AtomicU32,
    /// The place for the next message. The CPU moves it.
    tail: AtomicU32,
    /// The place where there was no room when the CPU last looked at the head.
    limit: AtomicU32,
    /// The number of messages that fit.
    length: AtomicU32,
    /// [`MAX_MESSAGES`] entries, or null before the first use. They stay as long as the ring, since a
    /// CPU may write into them at any time.
    entries: AtomicPtr<[AtomicU64; 2]>,
}

impl Drop for Messages {
    fn drop(&mut self) {
        let entries = self.entries.load(Relaxed);
        if !entries.is_null() {
            let entries = core::ptr::slice_from_raw_parts_mut(entries, MAX_MESSAGES);
            // SAFETY: `set_length` has made a box of these. The ring is gone, so nothing uses them.
            drop(unsafe { Box::from_raw(entries) });
        }
    }
}

impl Messages {
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            limit: AtomicU32::new(0),
            length: AtomicU32::new(0),
            entries: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Makes the ring hold `length` messages, 1 to [`MAX_MESSAGES`]. No CPU uses the ring meanwhile.
    pub fn set_length(&self, length: usize) {
        if self.entries.load(Acquire).is_null() {
            let entries: Box<[[AtomicU64; 2]]> =
                (0..MAX_MESSAGES).map(|_| <_>::default()).collect();
            self.entries.store(Box::leak(entries).as_mut_ptr(), Release);
        }
        let tail = self.tail.load(Acquire);
        self.length.store(length as u32, Relaxed);
        self.limit.store(tail.wrapping_add(length as u32), Relaxed);
        self.head.store(tail, Release);
    }

    /// Appends a message. Returns false if there is no room. ONE PRODUCER.
    #[inline(never)]
    pub fn push(&self, words: Words) -> bool {
        let (head, length) = (self.head.load(Acquire), self.length.load(Relaxed));
        // An agent that was replaced may move the head back, so more may wait than fit.
        if self.tail.load(Relaxed).wrapping_sub(head) >= length {
            return false;
        }
        self.limit.store(head.wrapping_add(length), Relaxed);
        self.push_below_limit(words)
    }

    /// Appends a message unless the tail has come to the limit. It may return false although there is room.
    /// ONE PRODUCER.
    #[inline(always)]
    pub fn push_below_limit(&self, words: Words) -> bool {
        let tail = self.tail.load(Relaxed);
        if tail == self.limit.load(Relaxed) {
            return false;
        }
        // SAFETY: the length is 0 while there are no entries, and the index is below their number.
        let entry = unsafe { &*self.entries.load(Relaxed).add(tail as usize % MAX_MESSAGES) };
        entry[0].store(words[0], Relaxed);
        entry[1].store(words[1], Relaxed);
        self.tail.store(tail.wrapping_add(1), Release);
        true
    }

    /// Takes the oldest message. If two agents do so at the same time, because one replaces the other,
    /// both may get it, and it may come again.
    #[inline(always)]
    pub fn pop(&self) -> Option<Words> {
        let head = self.head.load(Relaxed);
        if head == self.tail.load(Acquire) {
            return None;
        }
        Some(self.take(head))
    }

    /// Takes each message that waits at the call, as [`pop`](Self::pop) does.
    #[inline(always)]
    pub fn pop_each(&self, mut take: impl FnMut(Words)) {
        let (mut head, tail) = (self.head.load(Relaxed), self.tail.load(Acquire));
        while head != tail {
            let words = self.take(head);
            head = head.wrapping_add(1);
            take(words);
        }
    }

    /// Takes the message at the head, which was written.
    #[inline(always)]
    fn take(&self, head: u32) -> Words {
        // SAFETY: a message was written, so there are entries, and the index is below their number.
        let entry = unsafe { &*self.entries.load(Relaxed).add(head as usize % MAX_MESSAGES) };
        let words = [entry[0].load(Relaxed), entry[1].load(Relaxed)];
        self.head.store(head.wrapping_add(1), Release);
        words
    }

    /// Returns the number of messages that wait.
    pub fn len(&self) -> usize {
        let head = self.head.load(Acquire);
        self.tail.load(Acquire).wrapping_sub(head) as usize
    }
}

/// The most decisions that wait for a CPU.
pub const MAX_DECISIONS: usize = if cfg!(all(test, loom)) { 2 } else { 64 };

/// The decisions for one CPU, which are odd numbers. An entry without one has an even number, that of the
/// round in which it can take the next. So a producer that was overtaken finds its round gone.
#[cfg_attr(all(test, loom), derive(Default))]
pub struct Decisions {
    /// The decision that comes next. The CPU moves it.
    head: AtomicU32,
    /// The place for the next decision, or one that has just been filled. Producers move it.
    tail: AtomicU32,
    /// The CPU found no decision at its last pick, and has run no task since.
    is_free: AtomicBool,
    entries: [AtomicU64; MAX_DECISIONS],
}

/// A decision that was withdrawn: an even number that stands for no round.
const WITHDRAWN: u64 = 1 << 32;

/// Returns the content of an entry that waits for the decision at this position: where its round began.
#[inline(always)]
const fn empty(position: u32) -> u64 {
    (position - position % MAX_DECISIONS as u32) as u64
}

impl Decisions {
    #[cfg(not(all(test, loom)))]
    pub const fn new() -> Self {
        Self {
            head: AtomicU32::new(0),
            tail: AtomicU32::new(0),
            is_free: AtomicBool::new(false),
            entries: [const { AtomicU64::new(empty(0)) }; MAX_DECISIONS],
        }
    }

    #[inline(always)]
    fn entry(&self, position: u32) -> &AtomicU64 {
        &self.entries[position as usize % MAX_DECISIONS]
    }

    /// Appends a decision. Returns its position, or `None` if there is no room.
    #[inline(always)]
    pub fn push(&self, decision: u64) -> Option<u32> {
        let tail = self.tail.load(Acquire);
        match self.fill(tail, decision) {
            true => Some(tail),
            false => self.push_slowly(decision),
        }
    }

    /// Fills the entry at this position with a decision, and moves the tail over it. Returns false if it was
    /// not empty.
    #[inline(always)]
    fn fill(&self, at: u32, decision: u64) -> bool {
        let entry = self.entry(at);
        let is_filled = (entry.compare_exchange(empty(at), decision, AcqRel, Relaxed)).is_ok();
        if is_filled {
            self.pass(at);
        }
        is_filled
    }

    /// Moves the tail over an entry that is filled, if no other producer has.
    #[inline(always)]
    fn pass(&self, at: u32) {
        _ = (self.tail).compare_exchange(at, at.wrapping_add(1), AcqRel, Relaxed);
    }

    /// Appends a decision after another producer was faster, or to a ring that may be full.
    #[cold]
    #[inline(never)]
    fn push_slowly(&self, decision: u64) -> Option<u32> {
        loop {
            let tail = self.tail.load(Acquire);
            // If there was room before the entry is tried, a decision in it is of this round. One of
            // the round before that the CPU takes meanwhile must not move the tail. An entry is empty
            // before the head moves, so one decision more than there is room for may wait.
            let waiting = tail.wrapping_sub(self.head.load(Acquire)) as i32;
            if waiting >= MAX_DECISIONS as i32 {
                return None;
            }
            if self.fill(tail, decision) {
                return Some(tail);
            }
            self.pass(tail); // the other producer has filled it
        }
    }

    /// Appends a decision for each of these while there is room. Returns how many. The tail moves once, and
    /// [`is_empty`](Self::is_empty) and [`len`](Self::len) count them from then on.
    #[inline(always)]
    pub fn push_all<T: Copy>(&self, all: &[T], decision: impl Fn(T) -> u64) -> usize {
        let begin = self.tail.load(Acquire);
        let mut tail = begin;
        for &one in all {
            let entry = self.entry(tail);
            let found = entry.compare_exchange(empty(tail), decision(one), AcqRel, Relaxed);
            if found.is_err() {
                break;
            }
            tail = tail.wrapping_add(1);
        }
        // All entries up to there are filled. Another producer may have moved the tail over some.
        if (self.tail.compare_exchange(begin, tail, AcqRel, Acquire)).is_err() {
            let is_behind = |at: u32| (tail.wrapping_sub(at) as i32 > 0).then_some(tail);
            let _ = self.tail.fetch_update(AcqRel, Acquire, is_behind);
        }
        let added = tail.wrapping_sub(begin) as usize;
        // The ring is full, unless the CPU has taken some meanwhile, or another producer is at work.
        let one_by_one = |one: &&T| self.push(decision(**one)).is_some();
        added + all[added..].iter().take_while(one_by_one).count()
    }

    /// Withdraws a decision. Returns false if the CPU has taken it.
    pub fn withdraw(&self, position: u32, decision: u64) -> bool {
        let entry = self.entry(position);
        (entry.compare_exchange(decision, WITHDRAWN, AcqRel, Relaxed)).is_ok()
    }

    /// Returns the first decision, which stays. Only the CPU calls it.
    #[inline(always)]
    pub fn first(&self) -> Option<u64> {
        loop {
            match self.entry(self.head.load(Relaxed)).load(Acquire) {
                odd if odd & 1 != 0 => return Some(odd),
                WITHDRAWN => drop(self.take(WITHDRAWN)),
                _ => return None,
            }
        }
    }

    /// Returns the position of the first decision, for the CPU.
    #[inline(always)]
    pub fn first_position(&self) -> Option<u32> {
        let head = self.head.load(Relaxed);
        (head != self.tail.load(Relaxed)).then_some(head)
    }

    /// Returns the decision at this position unless it was withdrawn, where no other CPU makes or withdraws
    /// one.
    #[inline(always)]
    pub fn get_alone(&self, position: u32) -> Option<u64> {
        let decision = self.entry(position).load(Relaxed);
        (decision & 1 != 0).then_some(decision)
    }

    /// Takes the first decision, which [`first`](Self::first) returned. Returns false if it was
    /// withdrawn. Only the CPU calls it.
    #[inline(always)]
    pub fn take(&self, decision: u64) -> bool {
        let head = self.head.load(Relaxed);
        let next = empty(head.wrapping_add(MAX_DECISIONS as u32));
        let taken = (self.entry(head)).compare_exchange(decision, next, AcqRel, Relaxed);
        if taken.is_ok() {
            self.head.store(head.wrapping_add(1), Release);
        }
        taken.is_ok()
    }

    /// Notes that the CPU has found no decision. Returns false if it was free before. After true it
    /// looks again (FREE).
    pub fn become_free(&self) -> bool {
        let was_free = self.is_free.load(Relaxed);
        self.is_free.store(true, Relaxed);
        fence(SeqCst);
        !was_free
    }

    /// Notes that the CPU runs a task.
    #[inline(always)]
    pub fn end_wait(&self) {
        self.is_free.store(false, Relaxed);
    }

    /// Returns true if the CPU is free.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        self.is_free.load(Relaxed)
    }

    /// Returns true if the CPU may have to be interrupted, after a decision was made (FREE).
    #[inline(always)]
    pub fn are_awaited(&self) -> bool {
        fence(SeqCst);
        self.is_free()
    }

    /// Takes the first decision, from this position, where no other CPU makes or withdraws one.
    #[inline(always)]
    pub fn take_alone(&self, head: u32) {
        let next = empty(head.wrapping_add(MAX_DECISIONS as u32));
        self.entry(head).store(next, Relaxed);
        self.head.store(head.wrapping_add(1), Relaxed);
    }

    /// Returns true if no decision waits, for the CPU.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first_position().is_none()
    }

    /// Returns true if no decision waits that was not withdrawn.
    #[inline(always)]
    pub fn has_none(&self) -> bool {
        self.is_empty() || self.are_all_withdrawn()
    }

    #[cold]
    fn are_all_withdrawn(&self) -> bool {
        let head = self.head.load(Acquire);
        let mut waiting = (0..self.len() as u32).map(|n| self.entry(head.wrapping_add(n)));
        waiting.all(|entry| entry.load(Acquire) == WITHDRAWN)
    }

    /// Returns the number of decisions that wait, withdrawn ones included, and one that is being made.
    #[inline(always)]
    pub fn len(&self) -> usize {
        let tail = self.tail.load(Acquire);
        (tail.wrapping_sub(self.head.load(Acquire)) as i32).max(0) as usize
    }
}
