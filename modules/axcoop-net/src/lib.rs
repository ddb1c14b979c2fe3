//! TCP for ArceOS, as futures with owned buffers.
//!
//! ```ignore
//! let listener = TcpListener::bind(5555)?;
//! let (stream, peer) = listener.accept().await?;                 // a coroutine waits, or
//! let (stream, peer) = listener.accept().wait()?;                // a thread does
//! let (read, buffer) = stream.read(vec![0; 1024]).within(Duration::from_secs(5)).await;
//! ```
//!
//! There is one source for both: the blocking call is [`Wait::wait`] on the future of the
//! asynchronous one. With the feature `embedded-io` a connection has the traits of
//! [`embedded-io-async`](https://docs.rs/embedded-io-async), on which libraries are built.
//!
//! # Who does what
//!
//! ```text
//!  coroutine or thread                 the poller, one task             card and smoltcp
//!  -------------------                 --------------------             ----------------
//!  read: tries; nothing there yet
//!        waker into the connection
//!        bell  ----------------------> packets in, packets out  ------>
//!                                      if a socket has changed: looks
//!                                      at all that are waited for  -->  readable? writable?
//!  woken <---------------------------  wakes, most urgent first
//!  tries again, and has it
//! ```
//!
//! # Why not `axnet`
//!
//! The card is ArceOS's (`axdriver`), and so are tasks, time and memory; the stack is smoltcp, as in
//! `axnet`. But `axnet` 0.3.0-preview.3 between the two cannot be left to strangers, and cannot be mended
//! from outside:
//!
//! - a client that connects and resets before it is accepted makes it panic (`listen_table.rs`, line
//!   153: `accept` unwraps an address that the reset takes away);
//! - `accept` takes the lock of the port and then that of the sockets, a poll that sees a new
//!   connection takes them the other way round, and two tasks that do so at once hang; `connect` does
//!   the same with the interface;
//! - a socket that is dropped loses what it had not sent yet;
//! - 128 KiB for each connection.
//!
//! An image has this or `axstd/net`, not both: there is one card. Nor has it `axstd/fs`: for a disk ArceOS
//! looks through the bus itself, and to look once more takes the disk away. On riscv64 and aarch64 the
//! bus is mapped only with `axstd/paging`.
//!
//! # Rules
//!
//! 1. **OWNER.** The card, the interface and all sockets are behind one lock (`stack.rs`), under which
//!    nothing of a caller's runs.
//! 2. **One at a time.** A connection has one reader and one writer, a listener one who accepts; the
//!    second one is told `ResourceBusy`, rather than that the first one's wake is lost.
//! 3. **Cancelling.** A future that is dropped takes its waker and its buffer with it; whatever arrives
//!    is there for the next read. Nobody holds a pointer into a buffer between polls, whether or not
//!    the future's destructor runs. What a dropped write had handed over is sent.
//! 4. **No wake is lost.** Who waits first says for what, then rings; the poller looks at *every*
//!    connection waited for, at its state and not at changes, after each ring of one who waits and after
//!    each packet that may have changed one. So what comes between trying and saying so is seen.
//! 5. **Order.** An operation has the priority of the coroutine that awaits it, or that of
//!    [`Operation::at`]. Of those who are ready in one round the most urgent is woken first, and the poller
//!    is as urgent as the most urgent operation that waits (`urgency.rs`).
//! 6. **Rest.** After [`ACTIVE`] without anything to do the poller sleeps between rounds, longer each
//!    time, up to [`Backoff::LONGEST`]; the first ring wakes it. Without a listener and a socket it sleeps until
//!    there is one: a socket that nobody waits for may have something to send. The card's interrupt, which ArceOS does not use, would
//!    do this better.
//! 7. **Closing.** A stream that is dropped is closed after what it had written: its socket stays
//!    until the peer has all of it and has ended, too, for [`LINGER`] at most; then the peer is reset.
//!
//! # What it takes
//!
//! - **Memory.** [`RECEIVE_BUFFER`] and [`SEND_BUFFER`] for each connection, from its first packet on,
//!   some 900 bytes for its socket, and the future that waits. There are [`SOCKETS`] at most, of which a listener
//!   has [`BACKLOG`] that nobody has accepted; [`HEADROOM`] is left to everybody else (`sockets.rs`).
//! - **Processor and latency** are in `docs/coop/io.md`, measured.

#![no_std]

#[cfg(any(test, target_os = "none"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;

pub use backoff::{ACTIVE, Backoff, Rest};

#[cfg(any(test, target_os = "none"))]
mod bell;
#[cfg(any(test, target_os = "none"))]
mod connection;
#[cfg(all(feature = "embedded-io", any(test, target_os = "none")))]
mod embedded;
#[cfg(any(test, target_os = "none"))]
mod ephemeral;
#[cfg(any(test, target_os = "none"))]
mod listener;
#[cfg(any(test, target_os = "none"))]
mod operation;
#[cfg(any(test, target_os = "none"))]
mod poller;
#[cfg(any(test, target_os = "none"))]
mod ports;
#[cfg(any(test, target_os = "none"))]
mod sockets;
#[cfg(any(test, target_os = "none"))]
mod stack;
#[cfg(any(test, target_os = "none"))]
mod stream;
#[cfg(any(test, target_os = "none"))]
mod urgency;
// What differs on the host, where there are tests only.
#[cfg(target_os = "none")]
mod system;
#[cfg(all(test, not(target_os = "none")))]
#[path = "tests/system.rs"]
mod system;
#[cfg(all(test, not(target_os = "none")))]
mod tests;
#[cfg(target_os = "none")]
mod wire;
#[cfg(all(test, not(target_os = "none")))]
#[path = "tests/wire.rs"]
mod wire;

#[cfg(any(test, target_os = "none"))]
mod network {
    #[cfg(feature = "embedded-io")]
    pub use crate::embedded::{IoError, TimedStream};
    pub use crate::listener::{Accept, TcpListener};
    pub use crate::operation::{Operation, Wait};
    pub use crate::poller::{Statistics, start, statistics};
    pub use crate::sockets::{HEADROOM, RECEIVE_BUFFER, SEND_BUFFER, SOCKETS};
    pub use crate::stack::{BACKLOG, HANDSHAKE, LINGER, LINGERING};
    pub use crate::stream::{Connect, Read, TcpStream, Write, WriteAll};
    pub use crate::wire::NoNetwork;
    pub use axerrno::{AxError as Error, AxResult as Result};
}
#[cfg(any(test, target_os = "none"))]
pub use network::*;
