//! A TCP connection, and what may be done with it.

use alloc::sync::Arc;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use axerrno::{AxError, AxResult};
use axnet::TcpSocket;

use crate::connection::{Connection, Side};
use crate::operation::{Operation, Terms};
use crate::poller;

/// A TCP connection. It is closed when it and all its operations are dropped (rule 7).
pub struct TcpStream(pub(crate) Arc<Connection>);

impl TcpStream {
    /// Connects to a remote address, from a port of its own.
    ///
    /// # Errors
    /// `ConnectionRefused`; `TimedOut`; `NoMemory` and others of `axnet`.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn connect(remote: SocketAddr) -> Connect {
        poller::start();
        let connection = Connection::new(TcpSocket::new());
        Connect { terms: Terms::of_caller(), connection: Some(connection), remote, begun: false }
    }

    /// Who is at the other end.
    ///
    /// # Errors
    /// `NotConnected` after [`shutdown`](Self::shutdown).
    pub fn peer_addr(&self) -> AxResult<SocketAddr> {
        self.0.socket().peer_addr()
    }

    /// Reads some bytes into the buffer, at most its length, and gives it back; 0 at the end of what
    /// the peer sends, or for an empty buffer.
    ///
    /// # Errors
    /// `ConnectionRefused` or `ConnectionReset` if the connection is broken; `NotConnected` after
    /// [`shutdown`](Self::shutdown); `TimedOut`; `ResourceBusy` if somebody else reads.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn read<B: AsMut<[u8]> + Unpin>(&self, buffer: B) -> Read<B> {
        Read(Transfer::new(&self.0, Side::Reader, buffer))
    }

    /// Writes some bytes of the buffer, at least one, and gives it back.
    ///
    /// Written is what `axnet` has taken into its 64 KiB for this connection.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn write<B: AsRef<[u8]> + Unpin>(&self, buffer: B) -> Write<B> {
        Write(Transfer::new(&self.0, Side::Writer, buffer))
    }

    /// Writes all bytes of the buffer and gives it back; how many were written is not known if it
    /// fails.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn write_all<B: AsRef<[u8]> + Unpin>(&self, buffer: B) -> WriteAll<B> {
        WriteAll { transfer: Transfer::new(&self.0, Side::Writer, buffer), written: 0 }
    }

    /// Closes the connection in both directions, after what was written; who reads is told so.
    ///
    /// # Errors
    /// `ResourceBusy` if somebody writes.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn shutdown(&self) -> Shutdown {
        Shutdown { transfer: Transfer::new(&self.0, Side::Writer, ()), begun: false }
    }
}

/// An operation on one side of a connection, with what it has been given for the time.
struct Transfer<B> {
    connection: Arc<Connection>,
    side: Side,
    terms: Terms,
    /// Whether the side is ours.
    taken: bool,
    /// Given back when it is done.
    buffer: Option<B>,
}

impl<B> Transfer<B> {
    fn new(connection: &Arc<Connection>, side: Side, buffer: B) -> Self {
        let (connection, terms) = (connection.clone(), Terms::of_caller());
        Self { connection, side, terms, taken: false, buffer: Some(buffer) }
    }

    fn take(&mut self) -> AxResult {
        if !self.taken {
            self.connection.take(self.side)?;
            self.taken = true;
        }
        Ok(())
    }

    /// It is done: the side is free for the next one.
    fn done<T>(&mut self, result: T) -> Poll<(T, B)> {
        self.release();
        Poll::Ready((result, self.buffer.take().expect("polled after it was done")))
    }

    fn release(&mut self) {
        if core::mem::take(&mut self.taken) {
            self.connection.release(self.side);
        }
    }
}

impl<B> Drop for Transfer<B> {
    fn drop(&mut self) {
        self.release();
    }
}

/// [`TcpStream::read`] under way.
pub struct Read<B>(Transfer<B>);

impl<B> Operation for Read<B> {
    fn terms(&mut self) -> &mut Terms {
        &mut self.0.terms
    }
}

impl<B: AsMut<[u8]> + Unpin> Future for Read<B> {
    type Output = (AxResult<usize>, B);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut self.0;
        if let Err(error) = this.take() {
            return this.done(Err(error));
        }
        let buffer = this.buffer.as_mut().expect("polled after it was done").as_mut();
        let result = if buffer.is_empty() {
            Ok(0)
        } else {
            ready!(this.connection.poll(this.side, this.terms, context, |socket| socket.recv(buffer)))
        };
        // There is room for the peer to send more, which it is to be told.
        if matches!(result, Ok(1..)) {
            poller::ring();
        }
        this.done(result)
    }
}

/// [`TcpStream::write`] under way.
pub struct Write<B>(Transfer<B>);

impl<B> Operation for Write<B> {
    fn terms(&mut self) -> &mut Terms {
        &mut self.0.terms
    }
}

impl<B: AsRef<[u8]> + Unpin> Future for Write<B> {
    type Output = (AxResult<usize>, B);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let result = ready!(self.0.poll_write(0, context));
        self.0.done(result)
    }
}

impl<B: AsRef<[u8]>> Transfer<B> {
    /// Writes some of what is behind these bytes.
    fn poll_write(&mut self, written: usize, context: &Context<'_>) -> Poll<AxResult<usize>> {
        self.take()?;
        let bytes = &self.buffer.as_ref().expect("polled after it was done").as_ref()[written..];
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let tries = |socket: &TcpSocket| socket.send(bytes);
        let result = ready!(self.connection.poll(self.side, self.terms, context, tries));
        // It is in a buffer; the poller sends it.
        poller::ring();
        Poll::Ready(result)
    }
}

/// [`TcpStream::write_all`] under way.
pub struct WriteAll<B> {
    transfer: Transfer<B>,
    written: usize,
}

impl<B> Operation for WriteAll<B> {
    fn terms(&mut self) -> &mut Terms {
        &mut self.transfer.terms
    }
}

impl<B: AsRef<[u8]> + Unpin> Future for WriteAll<B> {
    type Output = (AxResult, B);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        loop {
            match ready!(this.transfer.poll_write(this.written, context)) {
                Ok(0) => return this.transfer.done(Ok(())),
                Ok(length) => this.written += length,
                Err(error) => return this.transfer.done(Err(error)),
            }
        }
    }
}

/// [`TcpStream::shutdown`] under way.
pub struct Shutdown {
    transfer: Transfer<()>,
    begun: bool,
}

impl Future for Shutdown {
    type Output = AxResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        this.transfer.take()?;
        let Transfer { connection, terms, .. } = &this.transfer;
        let result = ready!(connection.poll_shutdown(&mut this.begun, *terms, context));
        this.transfer.release();
        Poll::Ready(result)
    }
}

/// [`TcpStream::connect`] under way.
pub struct Connect {
    terms: Terms,
    /// Given away when it is connected.
    connection: Option<Arc<Connection>>,
    remote: SocketAddr,
    begun: bool,
}

impl Operation for Connect {
    fn terms(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl Future for Connect {
    type Output = AxResult<TcpStream>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        let connection = this.connection.as_ref().ok_or(AxError::BadState)?;
        let (remote, terms) = (this.remote, this.terms);
        ready!(connection.poll_connect(&mut this.begun, remote, terms, context))?;
        connection.release(Side::Writer);
        Poll::Ready(this.connection.take().map(TcpStream).ok_or(AxError::BadState))
    }
}

impl Drop for Connect {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.release(Side::Writer);
        }
    }
}
