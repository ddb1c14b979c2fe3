//! A port on which connections come in.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, Ordering::*};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use axcoop::{Priority, within_budget};
use axerrno::{AxError, AxResult};
use kspin::SpinNoIrq;

use crate::connection::Connection;
use crate::operation::{Operation, Terms};
use crate::poller;
use crate::poller_wakeup;
use crate::ports::{self, Listens};
use crate::priority::Waiting;
use crate::stack::{Listen, Socket};
use crate::stream::TcpStream;
use crate::system::now;

/// A port on which connections come in. The poller accepts each connection at once, which then waits for
/// [`accept`](Self::accept).
pub struct TcpListener(Arc<Listening>);

/// The state that the poller and the listener share.
pub(crate) struct Listening {
    port: Listen,
    state: SpinNoIrq<State>,
    /// An accept is under way.
    taken: AtomicBool,
    closed: AtomicBool,
}

struct State {
    accepted: VecDeque<(Arc<Connection>, SocketAddr)>,
    waiter: Option<(Waker, Waiting, Duration)>,
}

impl TcpListener {
    /// Listens on a port of all addresses of this machine. Up to [`BACKLOG`](crate::BACKLOG) connections wait to be
    /// accepted.
    ///
    /// # Errors
    /// `AddrInUse` if there is a listener on the port, and `InvalidInput` for port 0. `NoSuchDevice` without a network:
    /// [`start`](crate::start) then returns the reason.
    pub fn bind(port: u16) -> AxResult<Self> {
        poller::start().map_err(|_| AxError::NoSuchDevice)?;
        let listening = Arc::new(Listening {
            port: Listen::new(port)?,
            state: SpinNoIrq::new(State {
                accepted: VecDeque::new(),
                waiter: None,
            }),
            taken: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        });
        ports::listen(listening.clone());
        Ok(Self(listening))
    }

    /// Returns the next connection, and the address of its peer.
    ///
    /// # Errors
    /// `TimedOut`, `ResourceBusy` if another accept is under way, or `BadState` once the listener is dropped.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn accept(&self) -> Accept {
        Accept {
            listening: self.0.clone(),
            terms: Terms::NONE,
            taken: false,
        }
    }
}

impl Drop for TcpListener {
    fn drop(&mut self) {
        self.0.closed.store(true, Release);
        self.0.port.close();
        // An accept has a reference to the port, too, and would wait for ever. It checks with the lock whether the port
        // is closed.
        let (accepted, waiter) = {
            let mut state = self.0.state.lock();
            (core::mem::take(&mut state.accepted), state.waiter.take())
        };
        drop(accepted);
        if let Some((waker, ..)) = waiter {
            waker.wake();
        }
        poller_wakeup::ring(Terms::NONE.priority());
    }
}

impl Listens for Listening {
    fn look(
        &self,
        now: Duration,
        fetched: &mut Vec<(Socket, SocketAddr)>,
        woken: &mut dyn FnMut(Priority, Waker),
    ) -> Option<bool> {
        if self.closed.load(Acquire) {
            return None;
        }
        self.port.fetch(fetched);
        let has_come = !fetched.is_empty();
        for (socket, peer) in fetched.drain(..) {
            let connection = Connection::new(socket);
            self.state.lock().accepted.push_back((connection, peer));
        }
        let mut state = self.state.lock();
        let is_late = state
            .waiter
            .as_ref()
            .is_some_and(|(.., until)| *until <= now);
        let waiter = if is_late || !state.accepted.is_empty() {
            state.waiter.take()
        } else {
            None
        };
        drop(state);
        if let Some((waker, waiting, _)) = waiter {
            woken(waiting.priority(), waker);
        }
        Some(has_come)
    }
}

/// The future of [`TcpListener::accept`].
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
        within_budget(context, |context| self.poll_accept(context))
    }
}

impl Accept {
    fn poll_accept(&mut self, context: &Context<'_>) -> Poll<<Self as Future>::Output> {
        let this = self;
        if !this.taken {
            if this.listening.taken.swap(true, Acquire) {
                return Poll::Ready(Err(AxError::ResourceBusy));
            }
            this.taken = true;
        }
        // Computed before the lock is taken: it is foreign code.
        let priority = this.terms.priority();
        let waiter = (
            context.waker().clone(),
            Waiting::at(priority),
            this.terms.until,
        );
        let mut state = this.listening.state.lock();
        if let Some((connection, peer)) = state.accepted.pop_front() {
            drop(state);
            this.listening.port.accepted();
            return Poll::Ready(Ok((TcpStream(connection), peer)));
        }
        if this.listening.closed.load(Acquire) {
            return Poll::Ready(Err(AxError::BadState));
        }
        if this.terms.until <= now() {
            return Poll::Ready(Err(AxError::TimedOut));
        }
        let old = state.waiter.replace(waiter);
        drop(state);
        drop(old);
        // The poller looks at each listener in each round, so it is enough that it does not sleep long.
        poller_wakeup::ring(priority);
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
