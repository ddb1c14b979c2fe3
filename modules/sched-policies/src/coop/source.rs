//! The shared words that layers write and the policy reads.

use core::sync::atomic::AtomicU64;

use axcoop_summary::{SUMMARY, Summary};

/// The shared words that a scheduler reads: the ready coroutines, and the number of donations. It
/// is a type, not a reference. The system's words are at fixed addresses, which saves a load in
/// each call.
pub trait CoopSource {
    /// Returns the summary of the ready coroutines of all domains.
    fn summary() -> &'static Summary;
    /// Returns the number of times that a priority was [donated](super::CoopState::donate). It
    /// changes with each.
    fn donations() -> &'static AtomicU64;
}

/// The system's source: [`axcoop_summary::SUMMARY`].
pub struct SystemCoop;

impl CoopSource for SystemCoop {
    #[inline(always)]
    fn summary() -> &'static Summary {
        &SUMMARY
    }

    #[inline(always)]
    fn donations() -> &'static AtomicU64 {
        static DONATIONS: AtomicU64 = AtomicU64::new(0);
        &DONATIONS
    }
}

/// The source of tests. Each thread has its own words, so that tests in parallel do not see each
/// other.
#[cfg(feature = "std")]
pub struct CoopPerThread;

#[cfg(feature = "std")]
struct Shared {
    summary: Summary,
    donations: AtomicU64,
}

#[cfg(feature = "std")]
std::thread_local! {
    static OF_THREAD: &'static Shared = Box::leak(Box::new(Shared {
        summary: Summary::new(),
        donations: AtomicU64::new(0),
    }));
}

#[cfg(feature = "std")]
impl CoopPerThread {
    /// Clears all marks, so that nothing is ready in any domain.
    pub fn clear() {
        use axcoop_summary::{DOMAINS, DomainId, PRIORITIES, Priority};
        let all = (0..DOMAINS).flat_map(|d| (0..PRIORITIES).map(move |p| (d, p)));
        all.for_each(|(d, p)| Self::summary().clear(DomainId::new(d), Priority::new(p)));
    }
}

#[cfg(feature = "std")]
impl CoopSource for CoopPerThread {
    fn summary() -> &'static Summary {
        &OF_THREAD.with(|shared| *shared).summary
    }

    fn donations() -> &'static AtomicU64 {
        &OF_THREAD.with(|shared| *shared).donations
    }
}
