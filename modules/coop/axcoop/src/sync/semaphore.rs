//! A counting semaphore whose permits an interrupt may release.
//!
//! 1. An acquisition waits until there are enough permits, in the order of [`waiters`](crate::sync::waiters): the most
//!    urgent first, and in order of arrival within a priority. The first waiter is not overtaken by one that is no
//!    more urgent and wants fewer permits.
//! 2. A permit returns when it is dropped. [`Semaphore::release`] adds permits, and a
//!    [forgotten](SemaphorePermit::forget) one does not return. So a semaphore can count events that an interrupt
//!    signals and a coroutine awaits.
//! 3. An acquisition that is dropped before it is ready takes no permits, even if they have been granted.
//!
//! A permit has no owner, so there is no priority inheritance. Where an urgent coroutine waits for the only permit of
//! a less urgent one, use a [`Mutex`](crate::Mutex).

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::domain;
use crate::lock::Lock;
use crate::sync::resource::{Later, Resource, Side, Wait, change, locked};
use crate::sync::waiters::{self, Tickets};

/// A counting semaphore.
///
/// ```
/// # use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST};
/// use axcoop::Semaphore;
///
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// /// Counts the frames that have arrived.
/// static CAME: Semaphore = Semaphore::new(0);
///
/// # PROGRAM.open()?;
/// # PROGRAM.set_workers(1)?;
/// let two = PROGRAM.spawn(async { CAME.acquire_many(2).await.forget() }, Priority::FIRST);
/// // An interrupt handler may call this.
/// CAME.release(1);
/// CAME.release(1);
/// two.join()?;
/// assert_eq!(CAME.available(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Semaphore(Lock<Permits>);

/// A state that consists of permits.
struct Permits(Tickets);

impl Resource for Permits {
    fn settle(&mut self) -> Later {
        let mut later = Later::default();
        later.wakes[0] = self.0.grant_first().and_then(|node| node.waker.take());
        later
    }
}

impl Side for Permits {
    type Resource = Self;

    fn tickets(permits: &mut Self) -> &mut Tickets {
        &mut permits.0
    }
}

impl Semaphore {
    /// Makes a semaphore with this many permits.
    #[cfg(not(loom))]
    pub const fn new(permits: usize) -> Self {
        Self(Lock::new(Permits(Tickets::new(permits))))
    }

    /// Waits for a permit.
    ///
    /// **Cost.** No allocation; a short time under a lock, the same for any number of waiters. Must not be called in
    /// an interrupt.
    pub fn acquire(&self) -> Acquiring<'_> {
        self.acquire_many(1)
    }

    /// Waits until it can take this many permits at once. If there are never as many, it waits for ever.
    pub fn acquire_many(&self, permits: usize) -> Acquiring<'_> {
        Acquiring {
            semaphore: self,
            permits,
            wait: Wait::new(&self.0, permits),
        }
    }

    /// Takes a permit if there is one and no waiter is as urgent or more. May be called in an interrupt once a domain
    /// has been opened.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// Takes this many permits at once, under the conditions of [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_many(&self, permits: usize) -> Option<SemaphorePermit<'_>> {
        let level = waiters::level_of(domain::current_header());
        let taken = change(&self.0, |of| of.0.take(permits, level));
        // Not made before the permits are taken: its drop would return them.
        taken.is_ok().then(|| SemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// Blocks the calling thread until it has a permit.
    ///
    /// # Panics
    /// In a coroutine, which would block its worker. Also if no domain is open.
    pub fn acquire_blocking(&self) -> SemaphorePermit<'_> {
        domain::assert_may_block("acquire_blocking", "`acquire`");
        domain::block_on(self.acquire())
    }

    /// Adds this many permits. May be called in an interrupt once a domain has been opened.
    ///
    /// # Panics
    /// If there were more than `usize::MAX` free ones; none is added then.
    pub fn release(&self, permits: usize) {
        let has_room = change(&self.0, |of| {
            let has_room = of.0.has_room_for(permits);
            if has_room {
                of.0.give(permits);
            }
            has_room
        });
        assert!(has_room, "a semaphore has at most `usize::MAX` permits");
    }

    /// Returns the number of permits that are neither taken nor granted.
    pub fn available(&self) -> usize {
        locked(&self.0, |of| of.0.free())
    }
}

impl fmt::Debug for Semaphore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Semaphore")
            .field("available", &self.available())
            .finish_non_exhaustive()
    }
}

pin_project! {
    /// The future of [`Semaphore::acquire`].
    #[must_use = "a future does nothing unless it is awaited"]
    pub struct Acquiring<'a> {
        semaphore: &'a Semaphore,
        permits: usize,
        #[pin]
        wait: Wait<'a, Permits>,
    }
}

impl<'a> Future for Acquiring<'a> {
    type Output = SemaphorePermit<'a>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let has = this.wait.poll(context, |_| ());
        has.map(|has| {
            has.expect("a semaphore is never closed");
            SemaphorePermit {
                semaphore: this.semaphore,
                permits: *this.permits,
            }
        })
    }
}

/// One or several permits, which return when this is dropped.
#[derive(Debug)]
#[must_use = "the permits are given back when it is dropped"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl SemaphorePermit<'_> {
    /// Returns the number of permits.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// Drops the permits without returning them.
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl Drop for SemaphorePermit<'_> {
    fn drop(&mut self) {
        if self.permits != 0 {
            self.semaphore.release(self.permits);
        }
    }
}
