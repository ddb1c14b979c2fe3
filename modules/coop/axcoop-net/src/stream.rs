//! A TCP connection and its operations.

use alloc::sync::Arc;
use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::task::{Context, Poll, ready};

use axcoop::within_budget;

use crate::connection::{Connection, Side};
use crate::operation::{Operation, Terms};
use crate::poller;
use crate::poller_wakeup;
use crate::stack::Socket;
use axerrno::{AxError, AxResult};

/// A TCP connection. It is closed when it and all its operations are dropped (rule 7).
pub struct TcpStream(pub(crate) Arc<Connection>);

impl TcpStream {
    /// Connects to a remote address, from a port of its own.
    ///
    /// # Errors
    /// - `ConnectionRefused` or `TimedOut`.
    /// - `AddrInUse` if all own ports are used.
    /// - `TooManyOpenFiles` if there are [`SOCKETS`](crate::SOCKETS) already.
    /// - `NoMemory` if there is none for it beside [`HEADROOM`](crate::HEADROOM).
    /// - `Unsupported` if the address is not IPv4.
    /// - `NoSuchDevice` without a network: [`start`](crate::start) then returns the reason.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn connect(remote: SocketAddr) -> Connect {
        Connect {
            terms: Terms::NONE,
            connection: None,
            remote,
        }
    }

    /// Returns the address of the peer, or none once the connection is broken.
    pub fn peer_addr(&self) -> Option<SocketAddr> {
        self.0.socket().peer()
    }

    /// Reads bytes into the buffer, at most its length, and returns both. The number is 0 at the end of the peer's
    /// stream, or for an empty buffer.
    ///
    /// # Errors
    /// `ConnectionReset` if the connection is broken, `TimedOut`, or `ResourceBusy` if another read is under way.
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn read<B: AsMut<[u8]> + Unpin>(&self, buffer: B) -> Read<B> {
        Read(Transfer::new(&self.0, Side::Reader, buffer))
    }

    /// Writes bytes of the buffer, at least one, and returns both.
    ///
    /// A byte is written when it is in the [`SEND_BUFFER`](crate::SEND_BUFFER) of this connection.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn write<B: AsRef<[u8]> + Unpin>(&self, buffer: B) -> Write<B> {
        Write(Transfer::new(&self.0, Side::Writer, buffer))
    }

    /// Writes all bytes of the buffer and returns it. If it fails, the number of written bytes is not known.
    ///
    /// # Errors
    /// Those of [`read`](Self::read).
    #[must_use = "nothing happens until it is awaited, or waited for"]
    pub fn write_all<B: AsRef<[u8]> + Unpin>(&self, buffer: B) -> WriteAll<B> {
        WriteAll {
            transfer: Transfer::new(&self.0, Side::Writer, buffer),
            written: 0,
        }
    }

    /// Ends our stream; the peer is told after the bytes already written. Its stream can still be read.
    pub fn shutdown(&self) {
        self.0.socket().close();
        // A pending write must be told, and the peer.
        poller_wakeup::look_again(Terms::NONE.priority());
    }
}

/// An operation on one side of a connection, with its buffer.
struct Transfer<B> {
    connection: Arc<Connection>,
    side: Side,
    terms: Terms,
    /// True if the operation has taken the side.
    taken: bool,
    /// The caller's buffer, which is returned at the end.
    buffer: Option<B>,
}

impl<B> Transfer<B> {
    fn new(connection: &Arc<Connection>, side: Side, buffer: B) -> Self {
        let (connection, terms) = (connection.clone(), Terms::NONE);
        Self {
            connection,
            side,
            terms,
            taken: false,
            buffer: Some(buffer),
        }
    }

    fn take(&mut self) -> AxResult {
        if !self.taken {
            self.connection.take(self.side)?;
            self.taken = true;
        }
        Ok(())
    }

    /// Ends the operation: the side is free for the next one.
    fn done<T>(&mut self, result: T) -> Poll<(T, B)> {
        self.release();
        Poll::Ready((
            result,
            self.buffer.take().expect("polled after it was done"),
        ))
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

/// The future of [`TcpStream::read`].
pub struct Read<B>(Transfer<B>);

impl<B> Operation for Read<B> {
    fn terms(&mut self) -> &mut Terms {
        &mut self.0.terms
    }
}

impl<B: AsMut<[u8]> + Unpin> Future for Read<B> {
    type Output = (AxResult<usize>, B);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        within_budget(context, |context| self.0.poll_read(context))
    }
}

impl<B: AsMut<[u8]> + Unpin> Transfer<B> {
    /// Reads some bytes.
    fn poll_read(&mut self, context: &Context<'_>) -> Poll<(AxResult<usize>, B)> {
        let this = self;
        if let Err(error) = this.take() {
            return this.done(Err(error));
        }
        let buffer = this
            .buffer
            .as_mut()
            .expect("polled after it was done")
            .as_mut();
        let result = if buffer.is_empty() {
            Ok(0)
        } else {
            ready!(
                this.connection
                    .poll(this.side, this.terms, context, |socket| socket
                        .receive(buffer))
            )
        };
        // The peer may send more now, and must be told so.
        if matches!(result, Ok(1..)) {
            poller_wakeup::ring(this.terms.priority());
        }
        this.done(result)
    }
}

/// The future of [`TcpStream::write`].
pub struct Write<B>(Transfer<B>);

impl<B> Operation for Write<B> {
    fn terms(&mut self) -> &mut Terms {
        &mut self.0.terms
    }
}

impl<B: AsRef<[u8]> + Unpin> Future for Write<B> {
    type Output = (AxResult<usize>, B);

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        within_budget(context, |context| {
            let result = ready!(self.0.poll_write(0, context));
            self.0.done(result)
        })
    }
}

impl<B: AsRef<[u8]>> Transfer<B> {
    /// Writes some of the bytes after the first `written`.
    fn poll_write(&mut self, written: usize, context: &Context<'_>) -> Poll<AxResult<usize>> {
        self.take()?;
        let bytes = &self
            .buffer
            .as_ref()
            .expect("polled after it was done")
            .as_ref()[written..];
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let tries = |socket: &Socket| socket.send(bytes);
        let result = ready!(self.connection.poll(self.side, self.terms, context, tries));
        // The bytes are in a buffer; the poller sends them.
        poller_wakeup::ring(self.terms.priority());
        Poll::Ready(result)
    }
}

/// The future of [`TcpStream::write_all`].
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
            let written = this.written;
            let polled = within_budget(context, |context| {
                this.transfer.poll_write(written, context)
            });
            match ready!(polled) {
                Ok(0) => return this.transfer.done(Ok(())),
                Ok(length) => this.written += length,
                Err(error) => return this.transfer.done(Err(error)),
            }
        }
    }
}

/// The future of [`TcpStream::connect`].
pub struct Connect {
    terms: Terms,
    /// Present from the first poll to the last.
    connection: Option<Arc<Connection>>,
    remote: SocketAddr,
}

impl Operation for Connect {
    fn terms(&mut self) -> &mut Terms {
        &mut self.terms
    }
}

impl Future for Connect {
    type Output = AxResult<TcpStream>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        within_budget(context, |context| self.poll_connect(context))
    }
}

impl Connect {
    fn poll_connect(&mut self, context: &Context<'_>) -> Poll<AxResult<TcpStream>> {
        let this = self;
        if this.connection.is_none() {
            poller::start().map_err(|_| AxError::NoSuchDevice)?;
            this.connection = Some(Connection::new(Socket::connect(this.remote)?));
            poller_wakeup::ring(this.terms.priority());
        }
        let connection = this.connection.as_ref().expect("it has just been made");
        let tries = |socket: &Socket| match socket.is_connected() {
            Ok(true) => Ok(()),
            Ok(false) => Err(AxError::WouldBlock),
            Err(error) => Err(error),
        };
        ready!(connection.poll(Side::Writer, this.terms, context, tries))?;
        Poll::Ready(
            this.connection
                .take()
                .map(TcpStream)
                .ok_or(AxError::BadState),
        )
    }
}

impl Drop for Connect {
    fn drop(&mut self) {
        if let Some(connection) = &self.connection {
            connection.release(Side::Writer);
        }
    }
}
