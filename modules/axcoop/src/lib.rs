//! Coroutines with priorities that a scheduler can see.
//!
//! A [`Domain`] is one program's executor: its ready coroutines in 8 priorities, 0 first, and the
//! workers that run them, tasks of the system underneath. What it has ready it says in
//! [`axcoop_summary`], so a scheduler can give the CPU to the program whose most urgent coroutine is
//! the most urgent of all. What it needs of the system is the [`Kernel`]; the crate itself depends on
//! none, and with feature `std` runs on the [`host`].
//!
//! ```
//! use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST, yield_now};
//!
//! static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
//!
//! PROGRAM.open()?;
//! PROGRAM.alloc_cpu(2)?;
//! let sum = PROGRAM.spawn(
//!     async {
//!         let other = PROGRAM.spawn(async { 1 + 1 }, Priority::FIRST);
//!         yield_now().await;
//!         other.await.map(|two| two + 1)
//!     },
//!     Priority::DEFAULT,
//! );
//! assert_eq!(sum.join()?, Ok(3));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Map
//!
//! | module | what it is |
//! |---|---|
//! | `state` | the states of a coroutine, drawn and numbered |
//! | `block`, `lent` | what it is in memory: head, future, output, priority |
//! | `inbox`, `ready` | what was woken and is to be queued; the queues |
//! | `table`, `spares`, `books`, `lock` | which coroutines there are: [`Cid`] |
//! | `waker`, `named`, `loan` | references to coroutines, by a waker or a name, and what is done by them |
//! | `worker`, `polling`, `turn` | what a worker does, and how several share a domain |
//! | `run_until` | a thread that is its domain's worker as long as it waits |
//! | `budget` | how many awaits of one poll can be ready at once |
//! | `wheel`, `timers` | who waits for a time, and who looks at the clock |
//! | `waiters`, `gate` | who waits for a lock, room, a message: in which order, and how it gets it |
//! | [`Domain`], `spawn`, [`JoinHandle`], [`Loan`], [`yield_now`] | what a program calls |
//! | [`sleep`], [`timeout()`], [`interval()`], [`Mutex`], [`Semaphore`], [`channel`] | what a coroutine waits with |
//! | [`Kernel`], [`Attendant`] | what it stands on |
//! | [`host`] | feature `std`: the host as a system |
//!
//! # What is promised
//!
//! - **Wakes.** None is lost, whether it comes from an interrupt, another CPU, another domain, or
//!   from the coroutine itself, before, during or after a poll; after the end it does nothing.
//! - **Futures** are polled and dropped by workers of their domain only. A waker may be dropped
//!   anywhere, also in an interrupt: at most that frees memory. An output is dropped by who has the
//!   handle; if that is gone before, by the worker.
//! - **Giving way.** At most [`POLL_BUDGET`] awaits of one poll are ready, however many could be: then more
//!   urgent coroutines have their turn.
//! - **Panics.** With feature `std` a coroutine that panics ends alone, and its handle says
//!   [`Ended::Panicked`]. Without it a panic is the system's, and under ArceOS ends the image.
//! - **Memory.** One allocation a coroutine; beside its future it takes 64 bytes, a slot of 16, and
//!   what the allocator adds. All of it is given back when it has ended and nobody refers to it any
//!   more.
//! - **A coroutine that nobody wakes** and nobody cancels stays for ever.
#![cfg_attr(not(any(test, feature = "std")), no_std)]
#![deny(unsafe_op_in_unsafe_fn)]

extern crate alloc;

mod block;
mod books;
mod budget;
#[cfg(not(loom))]
pub mod channel;
mod cid;
mod domain;
mod error;
#[cfg(not(loom))]
mod gate;
#[cfg(feature = "std")]
pub mod host;
mod inbox;
#[cfg(all(test, loom))]
mod interleavings;
mod interval;
mod join;
mod kernel;
mod lent;
mod loan;
mod lock;
#[cfg(not(loom))]
mod mutex;
mod named;
mod panics;
mod polling;
mod ready;
mod run_until;
#[cfg(not(loom))]
mod semaphore;
mod sleep;
mod spares;
mod spawn;
mod state;
mod sync;
mod table;
#[cfg(all(test, not(loom)))]
mod tests;
mod timeout;
mod timers;
mod turn;
#[cfg(not(loom))]
mod waiters;
mod waker;
mod wheel;
mod worker;
mod yielding;

#[cfg(not(loom))]
pub use axcoop_summary::SUMMARY;
pub use axcoop_summary::{DOMAINS, DomainId, NoSuchPriority, PRIORITIES, Priority, Summary};
pub use block::POLL_BUDGET;
pub use budget::within_budget;
pub use cid::{Cid, MAX_COROUTINES};
pub use domain::{Domain, assert_may_block};
pub use error::{CpuError, DomainError, Ended, SpawnError, Stale};
pub use interval::{Interval, interval};
pub use join::JoinHandle;
pub use kernel::{Attendant, Kernel, MAX_WORKERS, NoWorker};
pub use loan::{Loan, lend};
#[cfg(not(loom))]
pub use mutex::{Locking, Mutex, MutexGuard};
pub use named::{cancel, current, current_priority, priority, set_priority, wake};
pub use run_until::RunError;
#[cfg(not(loom))]
pub use semaphore::{Acquiring, Semaphore, SemaphorePermit};
pub use sleep::{Sleep, now, sleep, sleep_until};
pub use timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use timers::GRANULE_NANOS;
pub use worker::{Served, Server, serve};
pub use yielding::{YieldNow, yield_now};
