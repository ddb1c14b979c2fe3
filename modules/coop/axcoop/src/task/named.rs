//! Operations on a coroutine by its name.

use axcoop_summary::Priority;

use crate::domain::{self, Domain};
use crate::error::Stale;
use crate::task::id::CoroutineId;
use crate::task::registry::Registry;
use crate::task::waker::{self, Ref};

/// Returns the coroutine of this name.
fn look_up(cid: CoroutineId) -> Result<(&'static Domain, Ref), Stale> {
    let domain = domain::maybe_open(cid.place.domain()).ok_or(Stale(cid))?;
    let found = domain
        .registry
        .with(domain.platform, |registry| registry.find(cid));
    let found = found.ok_or(Stale(cid))?;
    // SAFETY: it was counted for it.
    let header = unsafe { Ref::from_raw(found.header) };
    match found.is_meant {
        true => Ok((domain, header)),
        false => Err(Stale(cid)),
    }
}

/// Returns the coroutine of this name, for a [`Donation`](crate::Donation).
pub(crate) fn find(cid: CoroutineId) -> Result<Ref, Stale> {
    look_up(cid).map(|(_, header)| header)
}

/// Returns the calling coroutine, or none outside a coroutine. In an interrupt handler it is that of the worker that
/// was interrupted.
pub fn current() -> Option<CoroutineId> {
    let header = domain::current_header()?;
    let domain = waker::domain_of(header);
    let name = |registry: &mut Registry| registry.name_of(header);
    Some(domain.registry.with(domain.platform, name))
}

/// Returns the effective priority of the calling coroutine, for work done on its behalf.
pub fn current_priority() -> Option<Priority> {
    Some(Priority::new(domain::current_header()?.effective()))
}

/// Wakes a coroutine. May be called in an interrupt, from another CPU, and by the coroutine itself.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn wake(cid: CoroutineId) -> Result<(), Stale> {
    look_up(cid).map(|(_, header)| header.wake())
}

/// Ends a coroutine where it waits, or at its next await. Its worker drops the future, and its handle returns
/// [`Ended::Cancelled`](crate::Ended::Cancelled). If it ends by itself first, the cancel has no effect.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn cancel(cid: CoroutineId) -> Result<(), Stale> {
    look_up(cid).map(|(_, header)| header.cancel())
}

/// Sets the base priority of a coroutine. If it is queued, it becomes the last of its new level.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn set_priority(cid: CoroutineId, priority: Priority) -> Result<(), Stale> {
    let (domain, header) = look_up(cid)?;
    // SAFETY: the closure is called with the registry's lock (REGISTRY).
    domain.change_priority(&header, |header| unsafe { header.set_base(priority) });
    Ok(())
}

/// Returns the effective priority of a coroutine: its own, or that of a more urgent donation.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn priority(cid: CoroutineId) -> Result<Priority, Stale> {
    look_up(cid).map(|(_, header)| Priority::new(header.effective()))
}
