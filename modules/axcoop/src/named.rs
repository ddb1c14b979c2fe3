//! What is done with a coroutine by its name.

use axcoop_summary::Priority;

use crate::books::Books;
use crate::cid::Cid;
use crate::domain::{self, Domain};
use crate::error::Stale;
use crate::waker::{self, Ref};

/// The coroutine of this name.
fn found(cid: Cid) -> Result<(&'static Domain, Ref), Stale> {
    let domain = domain::maybe_open(cid.place.domain()).ok_or(Stale(cid))?;
    let found = domain.books.with(domain.kernel, |books| books.finds(cid));
    let found = found.ok_or(Stale(cid))?;
    // SAFETY: it was counted for it.
    let header = unsafe { Ref::from_raw(found.header) };
    match found.is_meant {
        true => Ok((domain, header)),
        false => Err(Stale(cid)),
    }
}

/// As for [`Loan`](crate::Loan).
pub(crate) fn find(cid: Cid) -> Result<Ref, Stale> {
    found(cid).map(|(_, header)| header)
}

/// The coroutine that calls; none if it is no coroutine. An interrupt handler gets that of the
/// worker that it has interrupted.
pub fn current() -> Option<Cid> {
    let header = domain::current_header()?;
    let domain = waker::domain_of(header);
    let name = |books: &mut Books| books.names(header);
    Some(domain.books.with(domain.kernel, name))
}

/// The priority of the coroutine that calls, with what is lent to it: what is done on its behalf
/// has this priority.
pub fn current_priority() -> Option<Priority> {
    Some(Priority::new(domain::current_header()?.effective()))
}

/// Wakes a coroutine: also from an interrupt, from another CPU, or from itself.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn wake(cid: Cid) -> Result<(), Stale> {
    found(cid).map(|(_, header)| header.wake())
}

/// Has a coroutine end where it waits, or at its next await: its future is dropped by its worker,
/// and its handle says so. If it ends by itself meanwhile, that counts.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn cancel(cid: Cid) -> Result<(), Stale> {
    found(cid).map(|(_, header)| header.cancel())
}

/// Gives a coroutine another priority of its own. If it is queued, it becomes the last of its new
/// level.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn set_priority(cid: Cid, priority: Priority) -> Result<(), Stale> {
    let (domain, header) = found(cid)?;
    // SAFETY: BOOKS: called with the lock.
    domain.changes(&header, |header| unsafe { header.set_base(priority) });
    Ok(())
}

/// The priority of a coroutine: its own, or what is lent to it if that is more urgent.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn priority(cid: Cid) -> Result<Priority, Stale> {
    found(cid).map(|(_, header)| Priority::new(header.effective()))
}
