//! Priority inheritance: a coroutine that waits for another one donates its priority to it.
//!
//! 1. The effective priority of a coroutine is the more urgent one of its base priority and its donations.
//! 2. A donation lasts as long as its [`Donation`]. A join handle donates from when a more urgent coroutine awaits it
//!    until the handle is ready, dropped, or polled by a less urgent coroutine.
//! 3. A coroutine whose effective priority changes is moved to that level, if it is queued, and polled. In that poll
//!    it donates its new priority to what it waits for. So a donation passes along a chain, at one poll a link.
//! 4. CYCLE: coroutines that wait for each other in a cycle keep the most urgent priority that was ever donated to one
//!    of them. It stays after the donor has gone, because each donates it to the next. Such a cycle is a deadlock,
//!    which a timeout or a cancel ends. Every donation of the cycle ends with it.
//! 5. At most 253 donations of one priority to a coroutine count at a time; further ones are not counted.

use axcoop_summary::{PRIORITIES, Priority};

use crate::domain;
use crate::error::Stale;
use crate::task::block::{APART, Header};
use crate::task::id::CoroutineId;
use crate::task::named;
use crate::task::waker::{self, Ref};

/// A priority that is donated to a coroutine until the donation is dropped.
#[must_use = "a donation lasts until it is dropped"]
pub struct Donation {
    to: Ref,
    level: u8,
}

/// Donates a priority to a coroutine. Must not be called in an interrupt.
///
/// # Errors
/// [`Stale`] if the coroutine has ended.
pub fn donate(cid: CoroutineId, priority: Priority) -> Result<Donation, Stale> {
    let to = named::find(cid)?;
    let level = change(&to, APART, priority.index() as u8);
    Ok(Donation { to, level })
}

impl Donation {
    /// Changes the priority that is donated.
    pub fn set(&mut self, priority: Priority) {
        self.level = change(&self.to, self.level, priority.index() as u8);
    }

    /// Returns the priority that is donated, or none if the donation is not counted (rule 5).
    pub fn priority(&self) -> Option<Priority> {
        (self.level != APART).then(|| Priority::new(self.level.into()))
    }
}

impl Drop for Donation {
    fn drop(&mut self) {
        change(&self.to, self.level, APART);
    }
}

/// Donates level `to` instead of `from`, where [`APART`] is no donation. Returns the level that is donated now.
pub(crate) fn change(header: &Header, from: u8, to: u8) -> u8 {
    let (donated, must_move) = record_change(header, from, to);
    if must_move {
        waker::domain_of(header).request_move(header);
    }
    donated
}

/// Does what [`change`] does, for a caller with a lock that wakes nothing before it lets go. Also returns whether
/// [`Domain::request_move`](crate::Domain) must be called then.
#[must_use]
pub(crate) fn record_change(header: &Header, from: u8, to: u8) -> (u8, bool) {
    if from == to {
        return (from, false);
    }
    let mut donated = APART;
    let must_move = waker::domain_of(header).record_change(header, |header| {
        // SAFETY: the closure is called with the registry's lock (REGISTRY).
        unsafe {
            header.change(|donations| {
                if usize::from(to) < PRIORITIES && donations.add(to.into()) {
                    donated = to;
                }
                if usize::from(from) < PRIORITIES {
                    donations.remove(from.into());
                }
            })
        }
    });
    (donated, must_move)
}

/// Returns the level of the calling coroutine, which polls with a foreign waker, as a combinator does; or [`APART`]
/// outside a coroutine.
pub(crate) fn current_level() -> u8 {
    domain::current_header().map_or(APART, |header| header.effective() as u8)
}
