//! Sleeping until a time.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use crate::domain::{self, Domain};
use crate::run::budget;
use crate::time::timers::IsFirst;
use crate::time::wheel::Node;

/// Waits for at least this long, and for at most [`GRANULE_NANOS`](crate::GRANULE_NANOS) longer. The time that the
/// worker is busy comes on top.
///
/// Works in any coroutine of any domain. Elsewhere, as in [`Platform::block_on`](crate::Platform::block_on), the
/// workers of the domain that was opened last look at the timer: that domain must stay open.
///
/// **Cost.** No allocation; a short time under a lock at the beginning and at the end, the same for any number of
/// timers. Must not be called in an interrupt.
///
/// # Panics
/// If no domain is open: there is no clock.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(after(now(), duration))
}

/// Waits until a time in [`now`]'s nanoseconds, which may have passed; otherwise like [`sleep`].
pub fn sleep_until(nanos: u64) -> Sleep {
    Sleep {
        nanos,
        domain: Cell::new(None),
        node: Node::new(),
    }
}

/// Returns the time in nanoseconds since some fixed moment: [`Platform::now`](crate::Platform::now).
///
/// # Panics
/// If no domain is open: there is no clock.
pub fn now() -> u64 {
    domain().platform().now()
}

/// Returns this time plus a duration, or the last time if that overflows.
pub(crate) fn after(nanos: u64, duration: Duration) -> u64 {
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_add(duration)
}

/// Returns the domain whose timers are used.
fn domain() -> &'static Domain {
    domain::of_current()
        .or_else(domain::last_opened)
        .expect("the time: no domain is open")
}

/// The future of [`sleep`] and [`sleep_until`]. Dropping it ends the wait. If it is polled after it was ready, it is
/// ready again.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    nanos: u64,
    /// The domain whose timers have the node. Owned by the caller that polls.
    domain: Cell<Option<&'static Domain>>,
    node: Node,
}

// SAFETY: a node in a wheel is touched under the wheel's lock (WHEEL in `wheel`). Before that only the owner touches
// it, which polls or drops the future, one call at a time. Only the owner touches `domain`.
unsafe impl Send for Sleep {}
// SAFETY: a shared reference can only read the deadline.
unsafe impl Sync for Sleep {}

impl Sleep {
    /// Returns the end of the sleep, in [`now`]'s nanoseconds.
    pub fn deadline(&self) -> u64 {
        self.nanos
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.poll_without_budget(context.waker()));
        budget::spend(context.waker())
    }
}

impl Sleep {
    /// Does what [`poll`](Future::poll) does, without regard to the budget.
    pub(crate) fn poll_without_budget(self: Pin<&mut Self>, waker: &Waker) -> Poll<()> {
        // The wheel has pointers to the node: from here on there are shared references only.
        let this = self.into_ref().get_ref();
        let domain = this.domain.get().unwrap_or_else(domain);
        this.domain.set(Some(domain));
        // SAFETY: `domain` does not change once it is set. The future is pinned, and `drop` takes the node out.
        let (poll, IsFirst(is_first)) =
            unsafe { (domain.timers).poll_until(domain.platform, &this.node, this.nanos, waker) };
        if is_first {
            domain.unpark_one();
        }
        poll
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(domain) = self.domain.get() {
            domain.timers.remove(domain.platform, &self.node);
        }
    }
}

impl core::fmt::Debug for Sleep {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Sleep")
            .field("nanos", &self.nanos)
            .finish_non_exhaustive()
    }
}
