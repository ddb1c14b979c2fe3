//! A port on which connections come in.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use axerrno::{AxError, AxResult};
use axnet::TcpSocket;
use kspin::SpinNoIrq;

use crate::connection::Connection;
use crate::operation::{Operation, Terms, now};
use crate::poller;
use crate::stream::TcpStream;

/// A port on which connections come in. Whoever connects is accepted by the poller at once, and
/// waits here for [`accept`](Self::accept).
pub struct TcpListener(Arc<Listening>);

/// What the poller and the listener share.
pub(crate) struct Listening {
    /// There until `drop`.
    socket: Option<TcpSocket>,
    state: SpinNoIrq<State>,
    /// An accept is under way.
    taken: AtomicBool,
    closed: AtomicBool,
}

struct State {
    accepted: VecDeque<(Arc<Connection>, SocketAddr)>,
    failed: Option<AxError>,
    waiter: Option<(Waker, Terms)>,
}

impl TcpListener {
    /// Listens on an address of this machine; of 0.0.0.0, on all of them. At most 512 connections
    /// may be on their way in (`axnet`), with 128 KiB each.
    ///
    /// # Errors
    /// `AddrInUse`, if somebody listens there; `InvalidInput`.
    pub fn bind(local: SocketAddr) -> AxResult<Self> {
        let socket = TcpSocket::new();
        socket.set_nonblocking(true);
        socket.bind(local)?;
        socket.listen()?;
        let (accepted, failed, waiter) = (VecDeque::new(), None, None);
        let listening = Arc::new(Listening {
            socket: Some(socket),
            state: SpinNoIrq::new(State { accepted, failed, waiter }),
            taken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        poller::start();
        poller::listen(listening.clone());
        Ok(Self(listening))
    }

    /// The next connection, and who is at its other end.
    ///
    /// # Errors
    /// `TimedOut`; `ResourceBusy` if somebody else accepts; others of `axnet`.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn accept(&self) -> Accept {
        Accept { listening: self.0.clone(), terms: Terms::of_caller(), taken: false }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.0.closed.store(true, Release);
        poller::ring();
    }
}

impl Listening {
    /// One look of the poller, right after a poll of the interface: takes in whoever has come, and
    /// hands out who is to be woken. Says whether anybody has come; nothing if it is closed.
    pub fn look(&self, now: Duration, mut ready: impl FnMut(u8, Waker)) -> Option<bool> {
        if self.closed.load(Acquire) {
            return None;
        }
        let mut has_come = false;
        let socket = self.socket.as_ref().expect("it goes with the listener");
        loop {
            // Not under the lock: axnet's own locks block.
            let accepted = socket.accept().and_then(|socket| {
                let peer = socket.peer_addr()?;
                Ok((Connection::new(socket), peer))
            });
            match accepted {
                Ok(accepted) => {
                    has_come = true;
                    self.state.lock().accepted.push_back(accepted);
                }
                Err(AxError::WouldBlock) => break,
                Err(error) => {
                    self.state.lock().failed = Some(error);
                    break;
                }
            }
        }
        let mut state = self.state.lock();
        let late = state.waiter.as_ref().is_some_and(|(_, terms)| terms.until <= now);
        let waiter = if late || !state.accepted.is_empty() || state.failed.is_some() {
            state.waiter.take()
        } else {
            None
        };
        drop(state);
        if let Some((waker, terms)) = waiter {
            ready(terms.priority, waker);
        }
        Some(has_come)
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        if let Some(socket) = self.socket.take() {
            poller::close(socket);
        }
    }
}

/// [`TcpListener::accept`] under way.
pub struct Accept {
    listening: Arc<Listening>,
    terms: Terms,
    taken: bool,
}

impl Operation for Accept {
    fn terms(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl Future for Accept {
    type Output = AxResult<(TcpStream, SocketAddr)>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if !this.taken {
            if this.listening.taken.swap(true, Acquire) {
                return Poll::Ready(Err(AxError::ResourceBusy));
            }
            this.taken = true;
        }
        // Made before the lock is taken: it is anybody's code.
        let waker = context.waker().clone();
        let mut state = this.listening.state.lock();
        if let Some((connection, peer)) = state.accepted.pop_front() {
            return Poll::Ready(Ok((TcpStream(connection), peer)));
        }
        if let Some(error) = state.failed.take() {
            return Poll::Ready(Err(error));
        }
        if this.terms.until <= now() {
            return Poll::Ready(Err(AxError::TimedOut));
        }
        let old = state.waiter.replace((waker, this.terms));
        drop(state);
        drop(old);
        // The poller looks at each listener in each round: nothing to tell it, but that it need
        // not rest for long.
        poller::ring();
        Poll::Pending
    }
}

impl Drop for Accept {
    fn drop(&mut self) {
        if self.taken {
            let waiter = self.listening.state.lock().waiter.take();
            drop(waiter);
            self.listening.taken.store(false, Release);
        }
    }
}
