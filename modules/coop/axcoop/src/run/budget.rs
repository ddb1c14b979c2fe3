//! The budget of a poll: a coroutine whose awaits are all ready at once yields all the same.
//!
//! 1. A poll of a coroutine begins with a budget of [`POLL_BUDGET`]. Every future of this crate, of `axcoop-net` and
//!    of `axcoop-fs` takes one from it when it is ready, also with an error.
//! 2. A future that finds the budget spent only wakes the coroutine and returns [`Poll::Pending`]. So the poll ends,
//!    and the worker picks the most urgent coroutine.
//! 3. CLOCK: the same future makes the domain look at its timers. So a sleeping coroutine, or a
//!    [`timeout`](crate::time::timeout()) around that future, is late by one budget at most beside the granule.
//! 4. A thread has no budget: the system preempts it.
//!
//! The idea is that of tokio's `coop`. The budget is in the head of the coroutine and not in its worker, because the
//! waker leads to the head without a call of the system.

use core::task::{Context, Poll, Waker};

use crate::domain;
use crate::task::block::Header;
use crate::task::waker;

/// Polls a future within the budget of the calling coroutine. It is for futures of other crates that may be ready at
/// once again and again.
///
/// Returns [`Poll::Pending`] without calling `poll` if the budget is spent, after waking the waker. Takes one from
/// the budget if `poll` is ready.
///
/// **Cost.** A few instructions with the waker of the coroutine. With another waker, as a combinator has, the system
/// is asked which coroutine calls.
///
/// ```
/// # use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST};
/// use core::{future::poll_fn, task::Poll};
/// use axcoop::{POLL_BUDGET, within_budget};
///
/// # static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
/// # PROGRAM.open()?;
/// # PROGRAM.set_workers(1)?;
/// let polls = PROGRAM.spawn(
///     async {
///         let mut polls = 0;
///         for _ in 0..100 {
///             poll_fn(|context| {
///                 polls += 1;
///                 within_budget(context, |_| Poll::Ready(()))
///             })
///             .await;
///         }
///         polls
///     },
///     Priority::DEFAULT,
/// );
/// // It yielded once, after 64.
/// assert_eq!((polls.join()?, POLL_BUDGET), (101, 64));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[inline]
pub fn within_budget<T>(
    context: &mut Context<'_>,
    poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
) -> Poll<T> {
    let header = coroutine(context.waker());
    if header.is_some_and(|header| header.budget() == 0) {
        give_way(context.waker());
        return Poll::Pending;
    }
    let polled = poll(context);
    if polled.is_ready()
        && let Some(header) = header
    {
        // A future inside it may have taken the last one.
        let _ = header.spend();
    }
    polled
}

/// Takes one from the budget, for a future that is ready and may be ready again later. If the budget is spent, the
/// future is pending (rule 2).
#[inline]
pub(crate) fn spend(waker: &Waker) -> Poll<()> {
    match waker::of_waker(waker) {
        Some(header) if header.spend() => Poll::Ready(()),
        header => spend_slowly(waker, header),
    }
}

/// Returns true if the budget is not spent, or if the caller has none.
#[inline]
pub(crate) fn is_left(waker: &Waker) -> bool {
    coroutine(waker).is_none_or(|header| header.budget() != 0)
}

/// Spends with a waker that is not the coroutine's own, or when nothing is left.
#[cold]
#[inline(never)]
fn spend_slowly(waker: &Waker, header: Option<&Header>) -> Poll<()> {
    let header = header.or_else(domain::current_header);
    if header.is_none_or(Header::spend) {
        return Poll::Ready(());
    }
    give_way(waker);
    Poll::Pending
}

/// Returns the coroutine whose budget counts: that of the waker, which most likely is the caller.
#[inline]
fn coroutine(waker: &Waker) -> Option<&Header> {
    match waker::of_waker(waker) {
        None => caller(),
        header => header,
    }
}

/// Returns the calling coroutine, which polls with a waker that is not its own.
#[cold]
#[inline(never)]
fn caller<'a>() -> Option<&'a Header> {
    domain::current_header()
}

/// Ends the poll (rules 2 and 3).
#[cold]
#[inline(never)]
fn give_way(waker: &Waker) {
    waker::wake_self(waker);
    if let Some(domain) = domain::of_current() {
        domain.check_clock();
    }
}
