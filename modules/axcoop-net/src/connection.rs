//! One TCP socket, and who waits for it.
//!
//! All of what two sides share is here: a word of flags, of which each has one writer at a time, and
//! a waker for each direction behind a lock that is held for a few instructions.

use alloc::sync::Arc;
use core::net::SocketAddr;
use core::sync::atomic::{AtomicU8, AtomicU64, Ordering::*};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use axerrno::{AxError, AxResult};
use axnet::TcpSocket;
use kspin::SpinNoIrq;

use crate::operation::{Terms, now};
use crate::poller;

/// One of the two directions in which somebody may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Reader,
    /// Also who connects, and who shuts down.
    Writer,
}

impl Side {
    /// Somebody waits: set by who does, cleared by whoever takes the waker.
    const fn waits(self) -> u8 {
        1 << self as u8
    }

    /// An operation is under way: set and cleared by its future.
    const fn taken(self) -> u8 {
        4 << self as u8
    }
}

/// The poller has it on its list, or will find it in its inbox.
const LISTED: u8 = 16;
/// The poller is to connect it, or to shut it down.
const CONNECT: u8 = 32;
const SHUTDOWN: u8 = 64;
/// It has been shut down. Not cleared.
const CLOSED: u8 = 128;

struct Waiter {
    waker: SpinNoIrq<Option<Waker>>,
    until_nanos: AtomicU64,
    priority: AtomicU8,
}

impl Waiter {
    const fn new() -> Self {
        Self {
            waker: SpinNoIrq::new(None),
            until_nanos: AtomicU64::new(u64::MAX),
            priority: AtomicU8::new(0),
        }
    }
}

pub(crate) struct Connection {
    /// There until `drop`.
    socket: Option<TcpSocket>,
    flags: AtomicU8,
    waiters: [Waiter; 2],
    /// Where to connect, and what has come of it.
    remote: SpinNoIrq<Option<SocketAddr>>,
    failed: SpinNoIrq<Option<AxError>>,
}

impl Connection {
    pub fn new(socket: TcpSocket) -> Arc<Self> {
        socket.set_nonblocking(true);
        Arc::new(Self {
            socket: Some(socket),
            flags: AtomicU8::new(0),
            waiters: [const { Waiter::new() }; 2],
            remote: SpinNoIrq::new(None),
            failed: SpinNoIrq::new(None),
        })
    }

    pub fn socket(&self) -> &TcpSocket {
        self.socket.as_ref().expect("it goes with the connection")
    }

    /// An operation begins, if none of this side is under way (rule 2).
    pub fn take(&self, side: Side) -> AxResult {
        if self.flags.fetch_or(side.taken(), Acquire) & side.taken() == 0 {
            Ok(())
        } else {
            Err(AxError::ResourceBusy)
        }
    }

    /// It ends, ready or dropped; its waker goes (rule 3).
    pub fn release(&self, side: Side) {
        let before = self.flags.fetch_and(!side.waits(), AcqRel);
        if before & side.waits() != 0 {
            // Dropped outside the lock: a waker's destructor is anybody's code.
            let waker = self.waiters[side as usize].waker.lock().take();
            drop(waker);
        }
        self.flags.fetch_and(!side.taken(), Release);
    }

    /// Tries, and, if it would block, has the caller woken when it would not, or is late.
    pub fn poll<T>(
        self: &Arc<Self>,
        side: Side,
        terms: Terms,
        context: &Context<'_>,
        tries: impl FnOnce(&TcpSocket) -> AxResult<T>,
    ) -> Poll<AxResult<T>> {
        match tries(self.socket()) {
            Err(AxError::WouldBlock) if terms.until <= now() => Poll::Ready(Err(AxError::TimedOut)),
            Err(AxError::WouldBlock) => {
                self.wait(side, terms, context, 0);
                Poll::Pending
            }
            done => Poll::Ready(done),
        }
    }

    /// Has the poller do something, and the caller woken when it is done.
    fn wait(self: &Arc<Self>, side: Side, terms: Terms, context: &Context<'_>, todo: u8) {
        let waiter = &self.waiters[side as usize];
        let nanos = u64::try_from(terms.until.as_nanos()).unwrap_or(u64::MAX);
        waiter.until_nanos.store(nanos, Relaxed);
        waiter.priority.store(terms.priority, Relaxed);
        let waker = context.waker().clone();
        let old = waiter.waker.lock().replace(waker);
        drop(old);
        // Release: the poller that sees the flag sees the waker. From here on it may be woken.
        let before = self.flags.fetch_or(side.waits() | LISTED | todo, AcqRel);
        if before & LISTED == 0 {
            poller::list(self.clone());
        } else if before & side.waits() == 0 || todo != 0 {
            poller::ring();
        }
    }

    /// The poller connects it; ready with what has come of that.
    pub fn poll_connect(
        self: &Arc<Self>,
        begun: &mut bool,
        remote: SocketAddr,
        terms: Terms,
        context: &Context<'_>,
    ) -> Poll<AxResult> {
        if !core::mem::replace(begun, true) {
            *self.remote.lock() = Some(remote);
            self.wait(Side::Writer, terms, context, CONNECT);
            return Poll::Pending;
        }
        if let Some(error) = self.failed.lock().take() {
            return Poll::Ready(Err(error));
        }
        if self.socket().peer_addr().is_ok() {
            return Poll::Ready(Ok(()));
        }
        if terms.until <= now() {
            return Poll::Ready(Err(AxError::TimedOut));
        }
        self.wait(Side::Writer, terms, context, 0);
        Poll::Pending
    }

    /// The poller shuts it down; ready when that is done.
    pub fn poll_shutdown(
        self: &Arc<Self>,
        begun: &mut bool,
        terms: Terms,
        context: &Context<'_>,
    ) -> Poll<AxResult> {
        if *begun && self.flags.load(Acquire) & SHUTDOWN == 0 {
            return Poll::Ready(Ok(()));
        }
        let todo = if core::mem::replace(begun, true) { 0 } else { SHUTDOWN };
        self.wait(Side::Writer, terms, context, todo);
        Poll::Pending
    }

    /// One look of the poller. Hands out who is to be woken; false if nobody waits any more, and it
    /// is off the list.
    pub fn look(&self, now: Duration, mut ready: impl FnMut(u8, Waker)) -> bool {
        let flags = self.flags.load(Acquire);
        if flags & CONNECT != 0 {
            self.flags.fetch_and(!CONNECT, AcqRel);
            let remote = self.remote.lock().take();
            let begun = remote.map_or(Err(AxError::BadState), |to| self.socket().connect(to));
            if let Err(error) = begun
                && error != AxError::WouldBlock
            {
                *self.failed.lock() = Some(error);
                self.wake(Side::Writer, &mut ready);
            }
        }
        if flags & SHUTDOWN != 0 {
            // What was read or written meanwhile fails, and its future is to see that.
            let _ = self.socket().shutdown();
            self.flags.fetch_or(CLOSED, AcqRel);
            self.flags.fetch_and(!SHUTDOWN, AcqRel);
            self.wake(Side::Reader, &mut ready);
            self.wake(Side::Writer, &mut ready);
        }
        let waits = Side::Reader.waits() | Side::Writer.waits();
        if flags & waits == 0 {
            // Whoever comes from here on finds it off the list, and lists it again.
            let off = |flags: u8| {
                let busy = flags & (waits | CONNECT | SHUTDOWN) != 0;
                (!busy).then_some(flags & !LISTED)
            };
            return self.flags.fetch_update(AcqRel, Acquire, off).is_err();
        }
        let state = self.socket().poll();
        // Who connects is told `writable` when it has failed, too, and after that nothing is: it
        // looks for itself. An error is for the operation to meet.
        let (readable, writable) =
            state.map_or((true, true), |state| (state.readable, state.writable));
        // Of a socket that is closed axnet says "not readable, not writable" for ever.
        let dead = flags & CLOSED != 0;
        for (side, is_ready) in [(Side::Reader, readable), (Side::Writer, writable)] {
            if flags & side.waits() == 0 {
                continue;
            }
            let until = self.waiters[side as usize].until_nanos.load(Relaxed);
            if is_ready || dead || until <= now.as_nanos() as u64 {
                self.wake(side, &mut ready);
            }
        }
        true
    }

    fn wake(&self, side: Side, ready: &mut impl FnMut(u8, Waker)) {
        // Acquire: the waker that was stored before the flag was set.
        if self.flags.fetch_and(!side.waits(), AcqRel) & side.waits() == 0 {
            return;
        }
        let waiter = &self.waiters[side as usize];
        let waker = waiter.waker.lock().take();
        if let Some(waker) = waker {
            ready(waiter.priority.load(Relaxed), waker);
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            poller::close(socket);
        }
    }
}
