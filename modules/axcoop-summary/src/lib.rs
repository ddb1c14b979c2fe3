//! One word that tells which domains have ready coroutines, and of which priorities.
//!
//! A *domain* is one program's executor of coroutines, and a *worker* is a task that runs the
//! coroutines of one domain. An executor marks in the word which priorities it has ready, and a
//! scheduler reads the word. Neither knows the other. It is the *global priority bitmap* of COPS
//! and SharedScheduler, whose kernel rebuilds it at each timer tick by a scan of all programs. Here
//! each push and each pop that changes it updates it. So one load tells whether any domain has more
//! urgent work.
//!
//! # The word
//!
//! Bit `8 × priority + domain` is set while that domain has a ready coroutine of that priority. So
//! the lowest set bit has the most urgent priority of all, and the bits below those of a priority
//! are the more urgent ones.
//!
//! # Guarantees for a reader
//!
//! LOOK AGAIN: a caller that adds a coroutine pushes it first, then marks its priority, then looks
//! whether a parked worker must be woken. A worker that takes the last coroutine of a priority
//! clears the mark, and then looks once more for a coroutine pushed meanwhile. If there is one, it
//! marks the priority again. So a queued coroutine is marked once its waker is through, and a stale
//! mark costs a worker only a look.
//!
//! All operations except [`Summary::any`] and [`Summary::bits`] are `SeqCst` read-modify-writes and
//! loads. If one CPU adds a coroutine while another goes to sleep because it found none, at least
//! one of them sees the other.
//!
//! **Cost.** [`Summary::mark`] of a bit that is set is a load. Every other operation is one atomic
//! instruction or one load, and a few plain instructions.

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

/// The number of priorities.
pub const PRIORITIES: usize = 8;
/// The number of domains.
pub const DOMAINS: usize = 8;

/// A priority: 0 is the most urgent, 7 the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

/// A number that is not a priority.
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
    /// The priority of a task or coroutine without one of its own: 4.
    pub const DEFAULT: Self = Self(4);

    /// Returns the priority of this number, 0 to 7. Any other number does not compile in a constant, and panics
    /// elsewhere. [`try_from`](Self::try_from) is for numbers from outside.
    pub const fn new(priority: usize) -> Self {
        assert!(priority < PRIORITIES, "a priority is 0 to 7");
        Self(priority as u8)
    }

    /// Returns the number of the priority, 0 to 7.
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

/// The number of a domain, 0 to 7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DomainId(u8);

impl DomainId {
    /// Returns the domain of this number, 0 to 7. Any other number panics.
    pub const fn new(domain: usize) -> Self {
        assert!(domain < DOMAINS, "a domain is 0 to 7");
        Self(domain as u8)
    }

    /// Returns the number of the domain, 0 to 7.
    #[inline]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Some bits of the word, computed once for frequent use with [`Summary::any`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bits(u64);

impl Bits {
    /// No bit, which [`Summary::any`] never finds.
    pub const NONE: Self = Self(0);

    /// Returns all bits of one domain.
    pub const fn own(domain: DomainId) -> Self {
        Self(column(domain))
    }

    /// Returns the bits of `domain` that are more urgent than `priority`.
    pub const fn own_above(domain: DomainId, priority: Priority) -> Self {
        Self(above(priority) & column(domain))
    }

    /// Returns the bits of all other domains that are more urgent than `priority`.
    pub const fn elsewhere_above(domain: DomainId, priority: Priority) -> Self {
        Self(above(priority) & !column(domain))
    }
}

/// The word, as the [crate documentation](crate) describes it.
#[derive(Debug)]
pub struct Summary(AtomicU64);

/// The summary of the system, which a scheduler reads.
#[cfg(not(loom))]
pub static SUMMARY: Summary = Summary::new();
#[cfg(loom)]
loom::lazy_static! {
    /// The summary of the system, which a scheduler reads.
    pub static ref SUMMARY: Summary = Summary::new();
}

#[inline]
const fn bit(domain: DomainId, priority: Priority) -> u64 {
    1 << (DOMAINS * priority.index() + domain.index())
}

/// Returns the bits of all domains that are more urgent than `priority`.
#[inline]
const fn above(priority: Priority) -> u64 {
    (1 << (DOMAINS * priority.index())) - 1
}

/// Returns all bits of one domain.
#[inline]
const fn column(domain: DomainId) -> u64 {
    0x0101_0101_0101_0101 << domain.index()
}

/// Returns the priority of the lowest of these bits.
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
    /// Returns a summary without marks.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Returns a summary without marks.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Marks that `domain` has a ready coroutine of `priority`.
    #[inline]
    pub fn mark(&self, domain: DomainId, priority: Priority) {
        let bit = bit(domain, priority);
        if self.0.load(SeqCst) & bit == 0 {
            self.0.fetch_or(bit, SeqCst);
        }
    }

    /// Clears the mark of `priority` in `domain`. The caller then looks once more, and [marks](Self::mark) it again
    /// if a coroutine has come.
    #[inline]
    pub fn clear(&self, domain: DomainId, priority: Priority) {
        self.0.fetch_and(!bit(domain, priority), SeqCst);
    }

    /// Returns true if any of these bits was set a moment ago: a relaxed load, for frequent use.
    #[inline]
    pub fn any(&self, of: Bits) -> bool {
        self.0.load(Relaxed) & of.0 != 0
    }

    /// Clears all these bits. The caller then looks once more, as for [`clear`](Self::clear).
    #[inline]
    pub fn clear_all(&self, of: Bits) {
        self.0.fetch_and(!of.0, SeqCst);
    }

    /// Returns true if `priority` is marked in `domain`.
    #[inline]
    pub fn is_marked(&self, domain: DomainId, priority: Priority) -> bool {
        self.0.load(SeqCst) & bit(domain, priority) != 0
    }

    /// Returns the most urgent marked priority of `domain`.
    #[inline]
    pub fn of(&self, domain: DomainId) -> Option<Priority> {
        first(self.0.load(SeqCst) & column(domain))
    }

    /// Returns the most urgent marked priority of any domain.
    #[inline]
    pub fn most_urgent(&self) -> Option<Priority> {
        first(self.0.load(SeqCst))
    }

    /// Returns true if a domain other than `domain` has marked something more urgent than `priority`.
    #[inline]
    pub fn is_more_urgent_elsewhere(&self, domain: DomainId, priority: Priority) -> bool {
        self.0.load(SeqCst) & above(priority) & !column(domain) != 0
    }

    /// Returns the word, for a scheduler that compares several domains at one moment. The load is relaxed. A mark
    /// made before a worker was woken is seen by a CPU that has taken the lock of the run queue that the worker was
    /// put into. Any other mark is seen a moment later.
    #[inline]
    pub fn bits(&self) -> u64 {
        self.0.load(Relaxed)
    }

    /// Returns the domains with a mark of `priority` (bit mask).
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

    /// Compares the word with a set of pairs.
    #[test]
    fn word_matches_a_set_of_pairs() {
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
    fn priority_above_7_is_refused() {
        assert_eq!(Priority::try_from(7), Ok(Priority::LAST));
        let why = Priority::try_from(8).unwrap_err();
        assert_eq!(std::format!("{why}"), "priority 8: allowed is 0 to 7");
    }
}
