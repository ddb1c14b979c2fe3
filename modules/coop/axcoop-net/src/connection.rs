//! One TCP socket, and its waiters.
//!
//! The poller and the waiters share a word of flags, and a waker for each direction. A flag has one writer at a time. A
//! waker is behind a lock that is held for a few instructions.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use axcoop::Priority;
use axerrno::{AxError, AxResult};
use kspin::SpinNoIrq;

use crate::operation::Terms;
use crate::poller_wakeup;
use crate::priority::Waiting;
use crate::stack::Socket;
use crate::system::now;

/// One of the two directions of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Reader,
    /// Also used to connect.
    Writer,
}

impl Side {
    pub const BOTH: [Self; 2] = [Self::Reader, Self::Writer];

    /// Returns the flag that there is a waiter. The waiter sets it, and the task that takes the waker clears it.
    const fn waiting_flag(self) -> u8 {
        1 << self as u8
    }

    /// Returns the flag that an operation is under way. Its future sets and clears it.
    const fn taken_flag(self) -> u8 {
        4 << self as u8
    }
}

const WAITING_FLAGS: u8 = Side::Reader.waiting_flag() | Side::Writer.waiting_flag();
/// The connection is on the poller's list, or about to be.
const LISTED: u8 = 16;

/// The connections that are not on the poller's list yet.
static NEWLY_LISTED: SpinNoIrq<Vec<Arc<Connection>>> = SpinNoIrq::new(Vec::new());

/// Adds the connections with new waiters to the poller's list. Called by the poller.
pub(crate) fn append_newly_listed(listed: &mut Vec<Arc<Connection>>) {
    listed.append(&mut NEWLY_LISTED.lock());
}

struct Waiter {
    /// The waker, and its count among the waiters.
    waker: SpinNoIrq<Option<(Waker, Waiting)>>,
    until_nanos: AtomicU64,
}

pub(crate) struct Connection {
    socket: Socket,
    flags: AtomicU8,
    waiters: [Waiter; 2],
}

impl Connection {
    pub fn new(socket: Socket) -> Arc<Self> {
        let waiter = || Waiter {
            waker: SpinNoIrq::new(None),
            until_nanos: AtomicU64::new(u64::MAX),
        };
        let (flags, waiters) = (AtomicU8::new(0), [waiter(), waiter()]);
        Arc::new(Self {
            socket,
            flags,
            waiters,
        })
    }

    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Begins an operation, unless one of this side is under way (rule 2).
    pub fn take(&self, side: Side) -> AxResult {
        if self.flags.fetch_or(side.taken_flag(), Acquire) & side.taken_flag() == 0 {
            Ok(())
        } else {
            Err(AxError::ResourceBusy)
        }
    }

    /// Ends an operation that is ready or dropped; its waker is dropped (rule 3).
    pub fn release(&self, side: Side) {
        drop(self.take_waker(side));
        self.flags.fetch_and(!side.taken_flag(), Release);
    }

    /// Tries an operation on the socket. If it would block, the caller is woken once it would not block any more, or
    /// once its time is over.
    pub fn poll<T>(
        self: &Arc<Self>,
        side: Side,
        terms: Terms,
        context: &Context<'_>,
        tries: impl FnOnce(&Socket) -> AxResult<T>,
    ) -> Poll<AxResult<T>> {
        match tries(&self.socket) {
            Err(AxError::WouldBlock) if terms.until <= now() => Poll::Ready(Err(AxError::TimedOut)),
            Err(AxError::WouldBlock) => {
                self.wait(side, terms, context);
                Poll::Pending
            }
            done => Poll::Ready(done),
        }
    }

    fn wait(self: &Arc<Self>, side: Side, terms: Terms, context: &Context<'_>) {
        let waiter = &self.waiters[side as usize];
        let nanos = u64::try_from(terms.until.as_nanos()).unwrap_or(u64::MAX);
        waiter.until_nanos.store(nanos, Relaxed);
        let priority = terms.priority();
        // Cloned and dropped outside the lock: both may be foreign code.
        let waits = (context.waker().clone(), Waiting::at(priority));
        let old = waiter.waker.lock().replace(waits);
        let is_other = old.is_some_and(|(_, old)| old.priority() != priority);
        // Release: a poller that sees the flag sees the waker. From here on the waiter may be woken.
        let before = self.flags.fetch_or(side.waiting_flag() | LISTED, AcqRel);
        if before & LISTED == 0 {
            NEWLY_LISTED.lock().push(self.clone());
            poller_wakeup::look_again(priority);
        } else if before & side.waiting_flag() == 0 || is_other {
            poller_wakeup::look_again(priority);
        }
    }

    /// Returns true if there is a waiter. If not, the connection is off the poller's list: the next waiter lists it
    /// again.
    pub fn is_waited_for(&self) -> bool {
        let off = |flags: u8| (flags & WAITING_FLAGS == 0).then_some(flags & !LISTED);
        self.flags.fetch_update(AcqRel, Acquire, off).is_err()
    }

    /// Hands out the wakers of the sides that are ready or late.
    pub fn wake(&self, ready: [bool; 2], now: Duration, mut woken: impl FnMut(Priority, Waker)) {
        for (side, is_ready) in Side::BOTH.into_iter().zip(ready) {
            let waiter = &self.waiters[side as usize];
            let is_late = || u128::from(waiter.until_nanos.load(Relaxed)) <= now.as_nanos();
            if (is_ready || is_late())
                && let Some((waker, waiting)) = self.take_waker(side)
            {
                woken(waiting.priority(), waker);
            }
        }
    }

    fn take_waker(&self, side: Side) -> Option<(Waker, Waiting)> {
        // Acquire: a poller that sees the flag sees the waker that was stored before.
        if self.flags.fetch_and(!side.waiting_flag(), AcqRel) & side.waiting_flag() == 0 {
            return None;
        }
        self.waiters[side as usize].waker.lock().take()
    }
}
