//! Waiting for a time.

use core::cell::Cell;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker, ready};
use core::time::Duration;

use crate::budget;
use crate::domain::{self, Domain};
use crate::timers::IsFirst;
use crate::wheel::Node;

/// Waits for this long from now: at least, and at most by
/// [`GRANULE_NANOS`](crate::GRANULE_NANOS) longer, beside what the worker does meanwhile.
///
/// Works in any coroutine of any domain. Elsewhere, as in [`Kernel::block_on`](crate::Kernel::block_on),
/// it is the workers of the domain that was opened last that see to it: that has to stay open.
///
/// **Cost.** No allocation; a short time under a lock when it begins and when it ends, the same
/// however many wait. Not in an interrupt.
///
/// # Panics
/// If no domain is open: there is no clock.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(after(now(), duration))
}

/// As [`sleep`], until a time in [`now`]'s nanoseconds; it may have passed.
pub fn sleep_until(nanos: u64) -> Sleep {
    Sleep {
        nanos,
        domain: Cell::new(None),
        node: Node::new(),
    }
}

/// The time, in nanoseconds since some moment: [`Kernel::now`](crate::Kernel::now).
///
/// # Panics
/// If no domain is open: there is no clock.
pub fn now() -> u64 {
    domain().kernel().now()
}

/// So much later; at the end of time if it would be after that.
pub(crate) fn after(nanos: u64, duration: Duration) -> u64 {
    let duration = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    nanos.saturating_add(duration)
}

/// Whose timers are used.
fn domain() -> &'static Domain {
    domain::of_current()
        .or_else(domain::last_opened)
        .expect("the time: no domain is open")
}

/// The future of [`sleep`] and [`sleep_until`]. Dropping it is all that it takes to stop waiting. If it
/// is polled after it was ready, it is ready.
#[must_use = "a future does nothing unless it is awaited"]
pub struct Sleep {
    nanos: u64,
    /// Whose timers have the node; of who polls.
    domain: Cell<Option<&'static Domain>>,
    node: Node,
}

// SAFETY: WHEEL in `wheel`: the node is touched under the lock of the wheel, once it is in one; before, and
// `domain` always, by who polls or drops the future, which is one at a time.
unsafe impl Send for Sleep {}
// SAFETY: what there is to be done with a reference is reading the deadline.
unsafe impl Sync for Sleep {}

impl Sleep {
    /// Until when, in [`now`]'s nanoseconds.
    pub fn deadline(&self) -> u64 {
        self.nanos
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        ready!(self.comes(context.waker()));
        budget::spend(context.waker())
    }
}

impl Sleep {
    /// As [`poll`](Future::poll), whatever is left of the budget.
    pub(crate) fn comes(self: Pin<&mut Self>, waker: &Waker) -> Poll<()> {
        // Others have pointers to the node: from here on there are shared references only.
        let this = self.into_ref().get_ref();
        let domain = this.domain.get().unwrap_or_else(domain);
        this.domain.set(Some(domain));
        // SAFETY: it is always the same domain; the future is pinned, and `drop` takes the node out.
        let (poll, IsFirst(is_first)) =
            unsafe { (domain.timers).waits_until(domain.kernel, &this.node, this.nanos, waker) };
        if is_first {
            domain.unparks_one();
        }
        poll
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(domain) = self.domain.get() {
            domain.timers.forgets(domain.kernel, &self.node);
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
