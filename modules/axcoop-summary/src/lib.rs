//! Which domains have ready coroutines, and of which priorities: one word for all of them.
//!
//! A *domain* is one program's executor of coroutines, a *worker* a task that runs the coroutines
//! of one domain. An executor says here what it has ready, and a scheduler reads it; neither knows
//! the other. It is the *global priority bitmap* of COPS and SharedScheduler, which their kernel
//! makes anew at each timer tick by a scan of all programs. Here each push and each pop that
//! changes it keeps it up to date, so that one load tells whether anybody has something more
//! urgent.
//!
//! # The word
//!
//! Bit `8 × priority + domain` is set while that domain has a ready coroutine of that priority. So
//! the lowest bit that is set is of the most urgent priority of all, and all that is more urgent
//! than a priority are the bits below it.
//!
//! # What a reader may rely on
//!
//! LOOK AGAIN: who adds a coroutine pushes it first, then marks its priority, then looks whether a
//! worker sleeps that has to be woken. Who takes the last one of a priority clears it, and then looks
//! once more for what was pushed meanwhile: if there is something, marks it again. So whatever lies in
//! a queue is marked as soon as its waker is through, and what is marked and not there any more costs
//! a worker a look.
//!
//! All operations but [`Summary::any`] and [`Summary::bits`] are `SeqCst` read-modify-writes and loads,
//! so that of a CPU that adds a coroutine and one that goes to sleep for want of any at least one
//! sees the other.
//!
//! **Cost.** [`Summary::mark`] of a bit that is set is a load; every other operation is one atomic
//! instruction or one load, and a handful of others.

#![no_std]
#![forbid(unsafe_code)]

use core::fmt;

#[cfg(not(loom))]
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};
#[cfg(loom)]
use loom::sync::atomic::{
    AtomicU64,
    Ordering::{Relaxed, SeqCst},
};

/// How many priorities there are.
pub const PRIORITIES: usize = 8;
/// How many domains there can be.
pub const DOMAINS: usize = 8;

/// How urgent something is: 0 is the most urgent, 7 the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

/// A priority that there is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoSuchPriority(pub usize);

impl fmt::Display for NoSuchPriority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "priority {}: allowed is 0 to {}", self.0, PRIORITIES - 1)
    }
}

impl core::error::Error for NoSuchPriority {}

impl Priority {
    /// The most urgent one, 0.
    pub const FIRST: Self = Self(0);
    /// The least urgent one, 7.
    pub const LAST: Self = Self(PRIORITIES as u8 - 1);
    /// What has none of its own: 4.
    pub const DEFAULT: Self = Self(4);

    /// The priority of this number, 0 to 7; anything else does not compile in a constant, and
    /// panics elsewhere. [`try_from`](Self::try_from) is for numbers that come from outside.
    pub const fn new(priority: usize) -> Self {
        assert!(priority < PRIORITIES, "a priority is 0 to 7");
        Self(priority as u8)
    }

    /// Its number, 0 to 7.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl TryFrom<usize> for Priority {
    type Error = NoSuchPriority;

    fn try_from(priority: usize) -> Result<Self, NoSuchPriority> {
        match priority < PRIORITIES {
            true => Ok(Self(priority as u8)),
            false => Err(NoSuchPriority(priority)),
        }
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// Which domain: 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u8);

impl DomainId {
    /// The domain of this number, 0 to 7; anything else panics.
    pub const fn new(domain: usize) -> Self {
        assert!(domain < DOMAINS, "a domain is 0 to 7");
        Self(domain as u8)
    }

    /// Its number, 0 to 7.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Some bits of the word, made once by who asks often; see [`Summary::any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(u64);

impl Bits {
    /// No bit, which [`Summary::any`] never finds.
    pub const NONE: Self = Self(0);

    /// All of one domain.
    pub const fn own(domain: DomainId) -> Self {
        Self(column(domain))
    }

    /// What is more urgent than `priority` in `domain` itself.
    pub const fn own_above(domain: DomainId, priority: Priority) -> Self {
        Self(above(priority) & column(domain))
    }

    /// What is more urgent than `priority` in all other domains.
    pub const fn elsewhere_above(domain: DomainId, priority: Priority) -> Self {
        Self(above(priority) & !column(domain))
    }
}

/// The word; see the [crate documentation](crate).
#[derive(Debug)]
pub struct Summary(AtomicU64);

/// The system's, of which a scheduler knows.
#[cfg(not(loom))]
pub static SUMMARY: Summary = Summary::new();
#[cfg(loom)]
loom::lazy_static! {
    /// The system's, of which a scheduler knows.
    pub static ref SUMMARY: Summary = Summary::new();
}

#[inline]
const fn bit(domain: DomainId, priority: Priority) -> u64 {
    1 << (DOMAINS * priority.index() + domain.index())
}

/// All that is more urgent than `priority`, of whatever domain.
#[inline]
const fn above(priority: Priority) -> u64 {
    (1 << (DOMAINS * priority.index())) - 1
}

/// The bits of one domain, whatever their priority.
#[inline]
const fn column(domain: DomainId) -> u64 {
    0x0101_0101_0101_0101 << domain.index()
}

/// The priority of the lowest of these bits.
#[inline]
const fn first(bits: u64) -> Option<Priority> {
    match bits {
        0 => None,
        bits => Some(Priority((bits.trailing_zeros() as usize / DOMAINS) as u8)),
    }
}

impl Default for Summary {
    fn default() -> Self {
        Self::new()
    }
}

impl Summary {
    /// Nothing is ready.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Nothing is ready.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// `domain` has a ready coroutine of `priority`.
    #[inline]
    pub fn mark(&self, domain: DomainId, priority: Priority) {
        let bit = bit(domain, priority);
        if self.0.load(SeqCst) & bit == 0 {
            self.0.fetch_or(bit, SeqCst);
        }
    }

    /// `domain` has none of `priority` any more; who says so looks once more, and
    /// [marks](Self::mark) it again if one has come.
    #[inline]
    pub fn clear(&self, domain: DomainId, priority: Priority) {
        self.0.fetch_and(!bit(domain, priority), SeqCst);
    }

    /// Whether any of these is marked, as of some moment before: a relaxed load, for who asks again
    /// and again.
    #[inline]
    pub fn any(&self, of: Bits) -> bool {
        self.0.load(Relaxed) & of.0 != 0
    }

    /// There is nothing of these any more; who says so looks once more, as for [`clear`](Self::clear).
    #[inline]
    pub fn clear_all(&self, of: Bits) {
        self.0.fetch_and(!of.0, SeqCst);
    }

    /// Whether anything of `domain` with `priority` is marked.
    #[inline]
    pub fn is_marked(&self, domain: DomainId, priority: Priority) -> bool {
        self.0.load(SeqCst) & bit(domain, priority) != 0
    }

    /// The most urgent priority that is ready in `domain`.
    #[inline]
    pub fn of(&self, domain: DomainId) -> Option<Priority> {
        first(self.0.load(SeqCst) & column(domain))
    }

    /// The most urgent priority that is ready in any domain.
    #[inline]
    pub fn most_urgent(&self) -> Option<Priority> {
        first(self.0.load(SeqCst))
    }

    /// Whether another domain than `domain` has something more urgent than `priority`.
    #[inline]
    pub fn is_more_urgent_elsewhere(&self, domain: DomainId, priority: Priority) -> bool {
        self.0.load(SeqCst) & above(priority) & !column(domain) != 0
    }

    /// The word itself: for a scheduler, which looks at several domains at one moment. The load is
    /// relaxed: what was marked before a worker was woken is seen by who has taken the lock of the
    /// queue that the worker was put into; anything else is seen a moment later.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// The domains that have something of `priority` ready, bit by bit.
    #[inline]
    pub fn domains(&self, priority: Priority) -> u8 {
        (self.0.load(SeqCst) >> (DOMAINS * priority.index())) as u8
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    extern crate std;
    use super::*;
    use std::collections::BTreeSet;

    /// What the word says, against a set of pairs, for all pairs.
    #[test]
    fn the_word_is_a_set_of_pairs() {
        let summary = Summary::new();
        let mut model = BTreeSet::new();
        let mut seed = 1_u64;
        for _ in 0..10_000 {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let (d, p) = ((seed >> 33) as usize % 8, (seed >> 43) as usize % 8);
            let (domain, priority) = (DomainId::new(d), Priority::new(p));
            if seed >> 63 == 0 {
                summary.mark(domain, priority);
                model.insert((p, d));
            } else {
                summary.clear(domain, priority);
                model.remove(&(p, d));
            }
            let most = |of: &dyn Fn(usize) -> bool| {
                model
                    .iter()
                    .find(|&&(_, d)| of(d))
                    .map(|&(p, _)| Priority::new(p))
            };
            assert_eq!(summary.most_urgent(), most(&|_| true));
            assert_eq!(summary.of(domain), most(&|of| of == d));
            assert_eq!(summary.is_marked(domain, priority), model.contains(&(p, d)));
            let elsewhere = model.iter().any(|&(at, of)| at < p && of != d);
            assert_eq!(
                summary.is_more_urgent_elsewhere(domain, priority),
                elsewhere
            );
            assert_eq!(
                summary.any(Bits::elsewhere_above(domain, priority)),
                elsewhere
            );
            let above = model.iter().any(|&(at, of)| at < p && of == d);
            assert_eq!(summary.any(Bits::own_above(domain, priority)), above);
            assert_eq!(summary.any(Bits::own(domain)), summary.of(domain).is_some());
            assert!(!summary.any(Bits::NONE));
            if seed >> 50 & 15 == 0 {
                summary.clear_all(Bits::own_above(domain, priority));
                model.retain(|&(at, of)| at >= p || of != d);
            }
            let bits = model
                .iter()
                .fold(0, |bits, &(p, d)| bits | 1_u64 << (8 * p + d));
            assert_eq!(summary.bits(), bits);
            let mask = model
                .iter()
                .filter(|&&(at, _)| at == p)
                .fold(0, |m, &(_, d)| m | 1 << d);
            assert_eq!(summary.domains(priority), mask);
        }
    }

    #[test]
    fn a_priority_from_outside_is_0_to_7() {
        assert_eq!(Priority::try_from(7), Ok(Priority::LAST));
        let why = Priority::try_from(8).unwrap_err();
        assert_eq!(std::format!("{why}"), "priority 8: allowed is 0 to 7");
    }
}
