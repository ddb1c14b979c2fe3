//! Where the policy finds what its layers say.

use core::sync::atomic::AtomicU64;

use axcoop_summary::{SUMMARY, Summary};

/// Where a scheduler finds which coroutines are ready, and that somebody has lent something. A
/// type, not a reference: the system's are at fixed addresses, which saves a load in each call.
pub trait CoopSource {
    /// What the domains have ready.
    fn summary() -> &'static Summary;
    /// How often a priority was [lent](super::CoopState::lend) so far: changes with each.
    fn lendings() -> &'static AtomicU64;
}

/// The system's: [`axcoop_summary::SUMMARY`].
pub struct SystemCoop;

impl CoopSource for SystemCoop {
    #[inline(always)]
    fn summary() -> &'static Summary {
        &SUMMARY
    }

    #[inline(always)]
    fn lendings() -> &'static AtomicU64 {
        static LENDINGS: AtomicU64 = AtomicU64::new(0);
        &LENDINGS
    }
}

/// For tests: one for each thread, so that tests in parallel do not see each other.
#[cfg(feature = "std")]
pub struct CoopPerThread;

#[cfg(feature = "std")]
struct Shared {
    summary: Summary,
    lendings: AtomicU64,
}

#[cfg(feature = "std")]
std::thread_local! {
    static OF_THREAD: &'static Shared = Box::leak(Box::new(Shared {
        summary: Summary::new(),
        lendings: AtomicU64::new(0),
    }));
}

#[cfg(feature = "std")]
impl CoopPerThread {
    /// Nothing is ready in any domain.
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

    fn lendings() -> &'static AtomicU64 {
        &OF_THREAD.with(|shared| *shared).lendings
    }
}
