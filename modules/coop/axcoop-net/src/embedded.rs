//! The traits of `embedded-io-async` for connections: libraries built on them run on axcoop.
//!
//! A read or write that is dropped before it is ready has read or written nothing (rule 3 of the crate). `flush` does
//! nothing: what is written is on its way.

use core::fmt;
use core::time::Duration;

use axerrno::AxError;
use embedded_io_async::{Error, ErrorKind, ErrorType, Read, Write};

use crate::operation::{Operation, Terms};
use crate::stream::TcpStream;
use crate::system::now;

/// An error of a connection, for the traits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IoError(pub AxError);

impl fmt::Display for IoError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.0)
    }
}

impl core::error::Error for IoError {}

impl Error for IoError {
    fn kind(&self) -> ErrorKind {
        match self.0 {
            AxError::ConnectionReset => ErrorKind::ConnectionReset,
            AxError::TimedOut => ErrorKind::TimedOut,
            // `ResourceBusy`: another task is using the connection.
            _ => ErrorKind::Other,
        }
    }
}

/// A connection whose reads and writes have a deadline.
pub struct TimedStream {
    stream: TcpStream,
    terms: Terms,
}

impl TimedStream {
    /// Returns the connection with a deadline that never comes.
    pub const fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            terms: Terms::NONE,
        }
    }

    /// Makes reads and writes fail with `TimedOut` from this time on. The delay is that of [`Operation::within`].
    pub fn within(&mut self, time: Duration) {
        self.terms.until = now().checked_add(time).unwrap_or(Duration::MAX);
    }

    /// Returns the connection itself.
    pub const fn stream(&self) -> &TcpStream {
        &self.stream
    }
}

async fn read(stream: &TcpStream, terms: Terms, buffer: &mut [u8]) -> Result<usize, IoError> {
    let mut read = stream.read(buffer);
    *read.terms() = terms;
    read.await.0.map_err(IoError)
}

async fn write(stream: &TcpStream, terms: Terms, bytes: &[u8]) -> Result<usize, IoError> {
    let mut write = stream.write(bytes);
    *write.terms() = terms;
    write.await.0.map_err(IoError)
}

impl ErrorType for TcpStream {
    type Error = IoError;
}

impl Read for TcpStream {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        read(self, Terms::NONE, buffer).await
    }
}

impl Write for TcpStream {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, IoError> {
        write(self, Terms::NONE, bytes).await
    }

    async fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

/// References implement the traits, too, so that one can read while another one writes.
impl ErrorType for &TcpStream {
    type Error = IoError;
}

impl Read for &TcpStream {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        read(self, Terms::NONE, buffer).await
    }
}

impl Write for &TcpStream {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, IoError> {
        write(self, Terms::NONE, bytes).await
    }

    async fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}

impl ErrorType for TimedStream {
    type Error = IoError;
}

impl Read for TimedStream {
    async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, IoError> {
        read(&self.stream, self.terms, buffer).await
    }
}

impl Write for TimedStream {
    async fn write(&mut self, bytes: &[u8]) -> Result<usize, IoError> {
        write(&self.stream, self.terms, bytes).await
    }

    async fn flush(&mut self) -> Result<(), IoError> {
        Ok(())
    }
}
