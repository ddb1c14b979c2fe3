//! Priority inheritance: who waits for a coroutine lends it its priority.
//!
//! 1. A coroutine has a base priority; its effective one is the most urgent of that and of what is
//!    lent to it.
//! 2. A loan lasts as long as the [`Loan`]. The handle of a coroutine has one from when a more urgent
//!    coroutine awaits it until it is ready, polled by a less urgent one, or dropped.
//! 3. One whose effective priority changes is moved to that level, if it is queued, and polled: so
//!    what it waits for itself is lent the new one, link by link along a chain, at a poll a link.
//! 4. CYCLE: coroutines that wait for each other in a circle keep the most urgent priority that was ever lent to
//!    one of them, also when the lender has gone, as each of them lends it to the next. Such a circle is a deadlock,
//!    which a timeout or a cancel ends. With it every loan of the circle ends, and each has what others lend it.
//! 5. At most 253 loans of one priority to a coroutine count at a time; more are not counted.

use axcoop_summary::{PRIORITIES, Priority};

use crate::block::{APART, Header};
use crate::cid::Cid;
use crate::domain;
use crate::error::Stale;
use crate::named;
use crate::waker::{self, Ref};

/// A priority that is lent to a coroutine until this is dropped.
#[must_use = "a loan lasts until it is dropped"]
pub struct Loan {
    to: Ref,
    level: u8,
}

/// Lends a coroutine a priority: not in an interrupt.
///
/// # Errors
/// [`Stale`] if it has ended.
pub fn lend(cid: Cid, priority: Priority) -> Result<Loan, Stale> {
    let to = named::find(cid)?;
    let level = changes(&to, APART, priority.index() as u8);
    Ok(Loan { to, level })
}

impl Loan {
    /// Lends another priority instead.
    pub fn set(&mut self, priority: Priority) {
        self.level = changes(&self.to, self.level, priority.index() as u8);
    }

    /// The priority that is lent; none if it is not counted (rule 5).
    pub fn priority(&self) -> Option<Priority> {
        (self.level != APART).then(|| Priority::new(self.level.into()))
    }
}

impl Drop for Loan {
    fn drop(&mut self) {
        changes(&self.to, self.level, APART);
    }
}

/// Lends this level instead of that; [`APART`] is nothing. Returns what is lent now.
pub(crate) fn changes(header: &Header, from: u8, to: u8) -> u8 {
    let (lent, moves) = notes_change(header, from, to);
    if moves {
        waker::domain_of(header).moves(header);
    }
    lent
}

/// As [`changes`], for who has a lock and wakes nobody before letting it go: says as well whether
/// [`Domain::moves`](crate::Domain) is to be called then.
#[must_use]
pub(crate) fn notes_change(header: &Header, from: u8, to: u8) -> (u8, bool) {
    if from == to {
        return (from, false);
    }
    let mut lent = APART;
    let moves = waker::domain_of(header).notes_change(header, |header| {
        // SAFETY: BOOKS: called with the lock.
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

/// The level of the coroutine that calls, and polls with somebody's own waker, as a combinator does;
/// [`APART`] if it is none.
pub(crate) fn of_who_calls() -> u8 {
    domain::current_header().map_or(APART, |header| header.effective() as u8)
}
