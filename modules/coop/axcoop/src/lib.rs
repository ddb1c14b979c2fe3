//! Coroutines with priorities that a scheduler can see.
//!
//! A [`Domain`] is one program's executor. It has ready queues of 8 priorities, 0 first, and workers, which are tasks
//! of the system. It marks its ready priorities in [`axcoop_summary`], so that a scheduler can give the CPU to the
//! program with the most urgent coroutine. [`Platform`] is the interface to the system. The crate depends on no system;
//! with feature `std` it runs on the [`host`].
//!
//! ```
//! use axcoop::{Domain, DomainId, Priority, SUMMARY, host::HOST, yield_now};
//!
//! static PROGRAM: Domain = Domain::new(DomainId::new(0), &SUMMARY, &HOST);
//!
//! PROGRAM.open()?;
//! PROGRAM.set_workers(2)?;
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
//! | `domain` | a program's executor, and how coroutines come to its queues |
//! | `state` | the state machine of a coroutine, drawn and numbered |
//! | **`task`** | **a coroutine** |
//! | `block`, `donations` | its memory: head, future, output, priority |
//! | `table`, `free_list`, `registry` | the coroutines of a domain, and their names: [`CoroutineId`] |
//! | `waker`, `named` | references to coroutines by a waker or a name |
//! | `spawn` | spawning one |
//! | **`run`** | **running coroutines** |
//! | `inbox`, `ready` | woken coroutines that are not queued yet; the ready queues |
//! | `worker`, `worker_state` | the loop of a worker, and its state |
//! | `queue` | the queue token, with the calls that need it as methods |
//! | `run_until` | a thread that is its domain's worker while it waits |
//! | `budget`, `yielding` | the limit of awaits that are ready in one poll; [`yield_now`] |
//! | `platform` | the interface to the system: [`Platform`], [`PollHook`] |
//! | **`time`** | **waiting for a time** |
//! | `wheel`, `timers` | the timers, and which worker looks at the clock |
//! | `sleep`, `timeout`, `interval` | [`sleep`], [`timeout()`], [`interval()`] |
//! | **`sync`** | **waiting for each other** |
//! | `waiters`, `resource` | wait queues for a lock, room or messages |
//! | `mutex`, `semaphore`, `channel` | [`Mutex`], [`Semaphore`], [`channel`] |
//! | `join`, `donation` | [`JoinHandle`], and priority inheritance: [`Donation`] |
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

mod atomics;
mod domain;
mod error;
#[cfg(feature = "std")]
pub mod host;
#[cfg(all(test, loom))]
mod interleavings;
mod lock;
mod run;
mod state;
mod sync;
mod task;
#[cfg(all(test, not(loom)))]
mod tests;
mod time;

#[cfg(not(loom))]
pub use axcoop_summary::SUMMARY;
pub use axcoop_summary::{DOMAINS, DomainId, NoSuchPriority, PRIORITIES, Priority, Summary};
pub use domain::{Domain, assert_may_block};
pub use error::{DomainError, Ended, SpawnError, Stale, WorkerError};
pub use run::budget::within_budget;
pub use run::platform::{MAX_WORKERS, NoWorker, Platform, PollHook};
pub use run::run_until::RunError;
pub use run::worker::{Served, Server, serve};
pub use run::yielding::{YieldNow, yield_now};
#[cfg(not(loom))]
pub use sync::channel;
pub use sync::donation::{Donation, donate};
pub use sync::join::JoinHandle;
#[cfg(not(loom))]
pub use sync::mutex::{Locking, Mutex, MutexGuard};
#[cfg(not(loom))]
pub use sync::semaphore::{Acquiring, Semaphore, SemaphorePermit};
pub use task::block::POLL_BUDGET;
pub use task::id::{CoroutineId, MAX_COROUTINES};
pub use task::named::{cancel, current, current_priority, priority, set_priority, wake};
pub use time::interval::{Interval, interval};
pub use time::sleep::{Sleep, now, sleep, sleep_until};
pub use time::timeout::{Elapsed, Timeout, timeout, timeout_at};
pub use time::timers::GRANULE_NANOS;
