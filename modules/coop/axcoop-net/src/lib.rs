//! TCP for ArceOS, as futures with owned buffers.
//!
//! ```ignore
//! let listener = TcpListener::bind(5555)?;
//! let (stream, peer) = listener.accept().await?;                 // a coroutine waits, or
//! let (stream, peer) = listener.accept().wait()?;                // a thread does
//! let (read, buffer) = stream.read(vec![0; 1024]).within(Duration::from_secs(5)).await;
//! ```
//!
//! Both have one source: the blocking call is [`Wait::wait`] on the future of the asynchronous one. With the feature
//! `embedded-io` a connection has the traits of [`embedded-io-async`](https://docs.rs/embedded-io-async), on which
//! libraries are built.
//!
//! # Overview
//!
//! ```text
//!  coroutine or thread                 the poller, one task             card and smoltcp
//!  -------------------                 --------------------             ----------------
//!  read: tries; nothing there yet
//!        waker into the connection
//!        bell  ----------------------> packets in, packets out  ------>
//!                                      if a socket has changed: looks
//!                                      at all with a waiter  -------->  readable? writable?
//!  woken <---------------------------  wakes, most urgent first
//!  tries again, and has it
//! ```
//!
//! # Why not `axnet`
//!
//! The card is ArceOS's (`axdriver`), and so are tasks, time and memory; the stack is smoltcp, as in `axnet`. But
//! `axnet` 0.3.0-preview.3, which is between the two, cannot be exposed to strangers, and cannot be mended from
//! outside:
//!
//! - A client that connects and resets before it is accepted makes it panic: `accept` unwraps an address that the reset
//!   takes away (`listen_table.rs`, line 153).
//! - `accept` takes the lock of the port and then that of the sockets. A poll that sees a new connection takes them in
//!   the opposite order, so two such tasks deadlock. `connect` does the same with the interface.
//! - A socket that is dropped loses what it had not sent yet.
//! - Each connection takes 128 KiB.
//!
//! An image has this or `axstd/net`, not both: there is one card. It cannot have `axstd/fs` either. For a disk ArceOS
//! probes the bus itself, and a second probe takes the disk away. On riscv64 and aarch64 the bus is mapped only with
//! `axstd/paging`.
//!
//! # Rules
//!
//! 1. **OWNER.** The card, the interface and all sockets are behind one lock (`stack.rs`), under which no code of a
//!    caller runs.
//! 2. **One at a time.** A connection has one reader and one writer, and a listener one accept. A second operation
//!    fails with `ResourceBusy`; otherwise the first one's wake would be lost.
//! 3. **Cancelling.** A dropped future drops its waker and its buffer; bytes that arrive are there for the next read.
//!    There is no pointer into a buffer between polls, whether or not the future's destructor runs. Bytes that a
//!    dropped write had handed over are sent.
//! 4. **No wake is lost.** A waiter registers first, then rings. The poller looks after each ring of a waiter, and
//!    after each packet that may have changed a connection. It looks at the state of *every* connection with a waiter,
//!    not at changes. So a change between the try and the registration is seen.
//! 5. **Order.** An operation has the priority of the coroutine that awaits it, or that of [`Operation::at`]. The most
//!    urgent of the waiters that are ready in a round is woken first. The poller has the priority of its most
//!    urgent waiter (`priority.rs`).
//! 6. **Sleep.** After [`ACTIVE`] without activity the poller sleeps between rounds, longer each time, up to
//!    [`Backoff::LONGEST`]; the first ring wakes it. Without a listener and a socket it sleeps until there is one: a
//!    socket without a waiter may have something to send. The card's interrupt, which ArceOS does not use, would do
//!    this better.
//! 7. **Closing.** A dropped stream is closed after what it had written. Its socket stays until the peer has all of
//!    it and has ended, too, for [`LINGER`] at most; then the peer is reset.
//!
//! # Requirements
//!
//! - **Memory.** [`RECEIVE_BUFFER`] and [`SEND_BUFFER`] for each connection, from its first packet on, some 900 bytes
//!   for its socket, and the future that waits. There are [`SOCKETS`] at most, of which a listener has [`BACKLOG`]
//!   that are not accepted; [`HEADROOM`] is left to the rest of the image (`sockets.rs`).
//! - **CPU time and latency** are in `docs/coop/io.md`, measured.

#![no_std]

#[cfg(any(test, target_os = "none"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;

pub use backoff::{ACTIVE, Backoff, Rest};

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
mod poller_wakeup;
#[cfg(any(test, target_os = "none"))]
mod ports;
#[cfg(any(test, target_os = "none"))]
mod priority;
#[cfg(any(test, target_os = "none"))]
mod sockets;
#[cfg(any(test, target_os = "none"))]
mod stack;
#[cfg(any(test, target_os = "none"))]
mod stream;
// The part that differs on the host, where there are only tests.
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
