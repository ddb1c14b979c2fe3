//! So many at a time, or so many events.
//!
//! 1. There are so many permits. Who acquires some waits until there are enough, in the order of
//!    [`waiters`](crate::waiters): the most urgent first, and of one priority who came first; who is first
//!    and wants many is not overtaken by others, as urgent or less, that want few.
//! 2. A permit is given back when it is dropped. [`Semaphore::release`] adds some, and a permit that is
//!    [forgotten](SemaphorePermit::forget) is taken away: so a semaphore counts events that an interrupt
//!    signals and a coroutine awaits.
//! 3. Who acquires and is dropped before it has its permits, or has been granted them, takes none.
//!
//! Nobody owns a permit, so nobody is lent anything: where an urgent coroutine waits for a less urgent one to
//! give back the only permit, use a [`Mutex`](crate::Mutex).

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::domain;
use crate::gate::{Gate, Later, Side, Wait, change, locked};
use crate::lock::Lock;
use crate::waiters::{self, Tickets};

/// So many permits.
///
/// ```
/// # use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST};
/// use axcoop::Semaphore;
///
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// /// Counts the frames that have come.
/// static CAME: Semaphore = Semaphore::new(0);
///
/// # PROGRAM.open()?;
/// # PROGRAM.alloc_cpu(1)?;
/// let two = PROGRAM.spawn(async { CAME.acquire_many(2).await.forget() }, Priority::FIRST);
/// // An interrupt handler may call this.
/// CAME.release(1);
/// CAME.release(1);
/// two.join()?;
/// assert_eq!(CAME.available(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Semaphore(Lock<Permits>);

/// A state that is nothing but tickets.
struct Permits(Tickets);

impl Gate for Permits {
    fn settle(&mut self) -> Later {
        let mut later = Later::default();
        later.wakes[0] = self.0.grants().and_then(|node| node.waker.take());
        later
    }
}

impl Side for Permits {
    type Gate = Self;

    fn tickets(permits: &mut Self) -> &mut Tickets {
        &mut permits.0
    }
}

impl Semaphore {
    /// With so many permits.
    #[cfg(not(loom))]
    pub const fn new(permits: usize) -> Self {
        Self(Lock::new(Permits(Tickets::new(permits))))
    }

    /// Waits for a permit.
    ///
    /// **Cost.** No allocation; a short time under a lock, the same however many wait. Not in an interrupt.
    pub fn acquire(&self) -> Acquiring<'_> {
        self.acquire_many(1)
    }

    /// Waits for so many at once: for ever if there are never as many.
    pub fn acquire_many(&self, permits: usize) -> Acquiring<'_> {
        Acquiring {
            semaphore: self,
            permits,
            wait: Wait::new(&self.0, permits),
        }
    }

    /// A permit, if there is one, and nobody as urgent or more waits. Also in an interrupt, from when a
    /// domain is opened on.
    pub fn try_acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.try_acquire_many(1)
    }

    /// So many at once, as [`try_acquire`](Self::try_acquire).
    pub fn try_acquire_many(&self, permits: usize) -> Option<SemaphorePermit<'_>> {
        let level = waiters::level_of(domain::current_header());
        let taken = change(&self.0, |of| of.0.take(permits, level));
        // Not made before it is known that there is one: it would be given back.
        taken.is_ok().then(|| SemaphorePermit {
            semaphore: self,
            permits,
        })
    }

    /// As [`acquire`](Self::acquire), for a thread, which waits.
    ///
    /// # Panics
    /// In a coroutine, which would stop all others of its worker; and if no domain is open.
    pub fn acquire_blocking(&self) -> SemaphorePermit<'_> {
        domain::assert_may_block("acquire_blocking", "`acquire`");
        domain::block_on(self.acquire())
    }

    /// Adds so many. Also in an interrupt, from when a domain is opened on.
    ///
    /// # Panics
    /// If there were more than `usize::MAX` that nobody has; none is added then.
    pub fn release(&self, permits: usize) {
        let fits = change(&self.0, |of| {
            let fits = of.0.fits(permits);
            if fits {
                of.0.give(permits);
            }
            fits
        });
        assert!(fits, "a semaphore has at most `usize::MAX` permits");
    }

    /// How many there are that nobody has, nor has been granted.
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

/// One or several permits, given back when this is dropped.
#[derive(Debug)]
#[must_use = "the permits are given back when it is dropped"]
pub struct SemaphorePermit<'a> {
    semaphore: &'a Semaphore,
    permits: usize,
}

impl SemaphorePermit<'_> {
    /// How many.
    pub fn permits(&self) -> usize {
        self.permits
    }

    /// They are not given back.
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
