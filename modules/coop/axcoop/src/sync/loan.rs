//! Priority inheritance: a coroutine that waits for another one lends it its priority.
//!
//! 1. The effective priority of a coroutine is the more urgent one of its base priority and its loans.
//! 2. A loan lasts as long as its [`Loan`]. A join handle lends from when a more urgent coroutine awaits it until the
//!    handle is ready, dropped, or polled by a less urgent coroutine.
//! 3. A coroutine whose effective priority changes is moved to that level, if it is queued, and polled. In that poll
//!    it lends its new priority to what it waits for. So a loan passes along a chain, at one poll a link.
//! 4. CYCLE: coroutines that wait for each other in a cycle keep the most urgent priority that was ever lent to one of
//!    them. It stays after the lender has gone, because each lends it to the next. Such a cycle is a deadlock, which a
//!    timeout or a cancel ends. Every loan of the cycle ends with it.
//! 5. At most 253 loans of one priority to a coroutine count at a time; further ones are not counted.

use axcoop_summary::{PRIORITIES, Priority};

use crate::domain;
use crate::error::Stale;
use crate::task::block::{APART, Header};
use crate::task::id::CoroutineId;
use crate::task::named;
use crate::task::waker::{self, Ref};

/// A priority that is lent to a coroutine until the loan is dropped.
#[must_use = "a loan lasts until it is dropped"]
pub struct Loan {
    to: Ref,
    level: u8,
}

/// Lends a priority to a coroutine. Must not be called in an interrupt.
///
/// # Errors
/// [`Stale`] if the coroutine has ended.
pub fn lend(cid: CoroutineId, priority: Priority) -> Result<Loan, Stale> {
    let to = named::find(cid)?;
    let level = changes(&to, APART, priority.index() as u8);
    Ok(Loan { to, level })
}

impl Loan {
    /// Changes the priority that is lent.
    pub fn set(&mut self, priority: Priority) {
        self.level = changes(&self.to, self.level, priority.index() as u8);
    }

    /// Returns the priority that is lent, or none if the loan is not counted (rule 5).
    pub fn priority(&self) -> Option<Priority> {
        (self.level != APART).then(|| Priority::new(self.level.into()))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        changes(&self.to, self.level, APART);
    }
}

/// Lends level `to` instead of `from`, where [`APART`] is no loan. Returns the level that is lent now.
pub(crate) fn changes(header: &Header, from: u8, to: u8) -> u8 {
    let (lent, moves) = record_change(header, from, to);
    if moves {
        waker::domain_of(header).moves(header);
    }
    lent
}

/// Does what [`changes`] does, for a caller with a lock that wakes nothing before it lets go. Also returns whether
/// [`Domain::moves`](crate::Domain) must be called then.
#[must_use]
pub(crate) fn record_change(header: &Header, from: u8, to: u8) -> (u8, bool) {
    if from == to {
        return (from, false);
    }
    let mut lent = APART;
    let moves = waker::domain_of(header).record_change(header, |header| {
        // SAFETY: the closure is called with the registry's lock (REGISTRY).
        unsafe {
            header.change(|of| {
                if usize::from(to) < PRIORITIES && of.lend(to.into()) {
                    lent = to;
                }
                if usize::from(from) < PRIORITIES {
                    of.returns(from.into());
                }
            })
        }
    });
    (lent, moves)
}

/// Returns the level of the calling coroutine, which polls with a foreign waker, as a combinator does; or [`APART`]
/// outside a coroutine.
pub(crate) fn of_who_calls() -> u8 {
    domain::current_header().map_or(APART, |header| header.effective() as u8)
}
