//! Sockets of ArceOS (`axnet` 0.3.0-preview.3, unmodified) as futures with owned buffers.
//!
//! ```ignore
//! let listener = TcpListener::bind("0.0.0.0:5555".parse().unwrap())?;
//! let (stream, peer) = listener.accept().await?;                 // a coroutine waits, or
//! let (stream, peer) = listener.accept().wait()?;                // a thread does
//! let (read, buffer) = stream.read(vec![0; 1024]).within(Duration::from_secs(5)).await;
//! ```
//!
//! There is one source for both: the blocking call is [`Wait::wait`] on the future of the
//! asynchronous one.
//!
//! # Who does what
//!
//! ```text
//!  coroutine or thread                 the poller, one task                 axnet
//!  -------------------                 --------------------                 -----
//!  read: tries; nothing there yet
//!        waker into the connection
//!        bell  ----------------------> polls the interface  --------------> packets in and out
//!                                      looks at each connection that
//!                                      somebody waits for   --------------> readable? writable?
//!  woken <---------------------------  wakes, most urgent first
//!  tries again, and has it
//! ```
//!
//! `axnet` tells nobody when a socket becomes ready: its own blocking calls poll the interface and
//! yield, each by itself, for as long as they wait. Here one task does so for all of them.
//!
//! # Rules
//!
//! 1. **OWNER.** Only the poller calls what takes two of `axnet`'s locks: it polls, accepts, connects,
//!    shuts down and drops sockets. `axnet` takes these locks in different orders, `accept` the
//!    listening port's and then the sockets', a poll that sees a new connection the other way round,
//!    and two tasks that do both at once hang. So nobody else in the image may use `axnet`'s
//!    TCP sockets, nor `axstd::net`'s, which are these.
//! 2. **One at a time.** A connection has one reader and one writer, a listener one who accepts; the
//!    second one is told `ResourceBusy`, rather than that the first one's wake is lost.
//! 3. **Cancelling.** A future that is dropped takes its waker and its buffer with it; whatever arrives
//!    is there for the next read. Nobody holds a pointer into a buffer between polls, whether or not
//!    the future's destructor runs. What a dropped write had handed over is sent.
//! 4. **No wake is lost.** Who waits first says for what, then rings; the poller looks at *every*
//!    connection waited for in each round, at its state and not at changes, and it makes a round after
//!    each ring. So what comes between trying and saying so is seen in the next round.
//! 5. **Order.** Of those who are ready in one round the most urgent is woken first: at the priority
//!    of [`Operation::at`], or that which [`set_caller_priority`] knows of the caller.
//! 6. **Rest.** After [`ACTIVE`] without anything to do the poller sleeps between rounds, longer each
//!    time, up to [`Backoff::LONGEST`]; the first ring wakes it. Without a listener and a connection
//!    waited for it sleeps until there is one.
//! 7. **Closing.** A stream that is dropped is closed after what it had written; its socket stays for
//!    [`LINGER`], or until [`LINGERING`] others have come after it, so that this arrives. Who must be
//!    sure that it has arrived lets the peer close first.
//!
//! # What it takes
//!
//! - **Memory.** `axnet` gives each TCP socket two buffers of 64 KiB, from the first packet of the
//!   connection on. Here it is 200 bytes and the future that waits.
//! - **Processor and latency** are in `docs/coop.md`, measured.
//!
//! # What falls short, and is `axnet`'s
//!
//! - A connection that is established **and reset** between two rounds makes `axnet` panic
//!   (`listen_table.rs`: `accept` unwraps an address that a reset takes away). The poller accepts
//!   after each round whatever is there, so both have to come with the same batch of packets.
//! - There is no half-close: [`TcpStream::shutdown`] ends both directions.

#![no_std]

#[cfg(any(test, target_os = "none"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

mod backoff;

pub use backoff::{ACTIVE, Backoff, Rest};

#[cfg(target_os = "none")]
mod connection;
#[cfg(target_os = "none")]
mod listener;
#[cfg(target_os = "none")]
mod operation;
#[cfg(target_os = "none")]
mod poller;
#[cfg(target_os = "none")]
mod stream;

#[cfg(target_os = "none")]
mod arceos {
    pub use crate::listener::{Accept, TcpListener};
    pub use crate::operation::{Operation, Wait, set_caller_priority};
    pub use crate::poller::{LINGER, LINGERING, Statistics, statistics};
    pub use crate::stream::{Connect, Read, Shutdown, TcpStream, Write, WriteAll};
    pub use axerrno::{AxError as Error, AxResult as Result};
}
#[cfg(target_os = "none")]
pub use arceos::*;
