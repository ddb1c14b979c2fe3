//! Coroutines with priorities that a scheduler can see.
//!
//! A [`Domain`] is one program's executor. It has ready queues of 8 priorities, 0 first, and workers, which are tasks
//! of the system. It marks its ready priorities in [`axcoop_summary`], so that a scheduler can give the CPU to the
//! program with the most urgent coroutine. [`Kernel`] is the interface to the system. The crate depends on no system;
//! with feature `std` it runs on the [`host`].
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
//! | module | contents |
//! |---|---|
//! | `state` | the state machine of a coroutine, drawn and numbered |
//! | `block`, `lent` | its memory: head, future, output, priority |
//! | `inbox`, `ready` | woken coroutines that are not queued yet; the ready queues |
//! | `table`, `spares`, `books`, `lock` | the coroutines of a domain, and their names: [`Cid`] |
//! | `waker`, `named`, `loan` | references to coroutines by a waker or a name, and priority inheritance |
//! | `worker`, `polling`, `turn` | the loop of a worker, and the queue token with which several share a domain |
//! | `run_until` | a thread that is its domain's worker while it waits |
//! | `budget` | the number of awaits of one poll that can be ready |
//! | `wheel`, `timers` | the timers, and which worker looks at the clock |
//! | `waiters`, `gate` | wait queues for a lock, room or messages |
//! | [`Domain`], `spawn`, [`JoinHandle`], [`Loan`], [`yield_now`] | the calls of a program |
//! | [`sleep`], [`timeout()`], [`interval()`], [`Mutex`], [`Semaphore`], [`channel`] | what a coroutine can await |
//! | [`Kernel`], [`Attendant`] | the interface to the system |
//! | [`host`] | feature `std`: the host as a system |
//!
//! # Guarantees
//!
//! - **Wakes.** No wake is lost, whether it comes from an interrupt, another CPU, another domain or the coroutine
//!   itself, before, during or after a poll. After the end it does nothing.
//! - **Futures** are polled and dropped only by workers of their domain. A waker may be dropped anywhere, also in an
//!   interrupt: at most it frees memory. The handle drops the output; if the handle is gone before, the worker does.
//! - **Yielding.** At most [`POLL_BUDGET`] awaits of one poll are ready, however many could be. Then more urgent
//!   coroutines run.
//! - **Panics.** With feature `std` a panic ends only its coroutine, and the handle returns [`Ended::Panicked`].
//!   Without it the system handles the panic, which under ArceOS ends the image.
//! - **Memory.** A coroutine is one allocation. Beside its future it takes 64 bytes, a slot of 16, and what the
//!   allocator adds. All of it is freed when the coroutine has ended and there is no reference to it.
//! - **A coroutine that is neither woken nor cancelled** stays for ever.
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
