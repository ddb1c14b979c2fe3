//! Files of ArceOS as futures with owned buffers.
//!
//! ```ignore
//! let mut file = File::create("/DATA".into()).await?;       // a coroutine waits, or
//! let mut file = File::create("/DATA".into()).wait()?;      // a thread does it itself
//! let (written, buffer) = file.write_all(buffer).await;
//! file.close().await;
//! ```
//!
//! # Who does what
//!
//! `axfs` blocks: it asks the disk and looks until it has answered. So a coroutine hands its operation over,
//! with its buffer, to a task whose only work that is, and waits for it as for any coroutine; a thread does
//! the same operation itself. There is one source for both: the operation is a function, and
//! [`Operation::wait`] calls it where the future has it called.
//!
//! ```text
//!  coroutine                          the pool, one task of the domain `axcoop-fs`        axfs
//!  ---------                          --------------------------------------------        ----
//!  read: buffer, and the function --> ready, at the caller's priority
//!        waits for it, lends            the most urgent one is next  ------------------>  blocks
//!  woken <--------------------------  result and buffer
//!
//!  thread
//!  ------
//!  read(…).wait()  ---------------------------------------------------------------------> blocks
//! ```
//!
//! The pool is a [`Domain`](axcoop::Domain) of one worker, and an operation that is handed over a coroutine of it. So the order,
//! the loans and the wakes are `axcoop`'s, and `sched_coop` sees how urgent the pool is.
//!
//! # Rules
//!
//! 1. **Owned.** An operation has its buffer from the call until it gives it back with the result. Nobody else has a
//!    pointer into it, whether or not the future's destructor runs.
//! 2. **Order.** Of those that are handed over the most urgent is begun first, and of one priority who came
//!    first: at the priority of the coroutine that awaits it, or that of [`Operation::at`] if that is
//!    more urgent. Who becomes more urgent while it waits lends that to its operation. An operation
//!    that has begun is ended first: an urgent one waits for one other at most.
//! 3. **One at a time.** Operations exclude one another, those of threads included: `axfs` has a spinning
//!    lock about the disk and holds it, with preemption on, while it waits for that. Who came to it
//!    from a second task would spin for as long, under strict priorities for ever. So more tasks would do nothing more.
//!    Whoever calls `axfs` or `std::fs` beside this may spin so.
//! 4. **Cancelling.** An operation whose future is dropped before it has begun is not done; one that has
//!    begun is finished by the pool. Its buffer is dropped there in both cases. A cursor moves with the
//!    result only: what a cancelled read has read is there for the next one, and the next write is
//!    where the cancelled one was, which may have been done or not, but is not done afterwards.
//! 5. **Closing.** What was written is on the disk, with the file's length, when [`File::close`] is done. A file
//!    that is dropped is closed by the pool, some time later.
//!
//! # What it takes
//!
//! A domain of the eight, a task with a stack of 64 KiB, and for each operation that is handed over a coroutine, with the
//! memory for it. An image has `axstd/fs`, which makes ArceOS look for a disk at boot, and so no `axcoop-net`.

#![no_std]

#[cfg(any(test, target_os = "none"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(any(test, target_os = "none"))]
mod file;
#[cfg(any(test, target_os = "none"))]
mod operation;
// What differs on the host, where there are tests only.
#[cfg(target_os = "none")]
mod system;
#[cfg(all(test, not(target_os = "none")))]
#[path = "tests/system.rs"]
mod system;
#[cfg(all(test, not(target_os = "none")))]
mod tests;

#[cfg(any(test, target_os = "none"))]
mod files {
    pub use crate::file::{File, Transfer, remove};
    pub use crate::operation::Operation;
    pub use axerrno::{AxError as Error, AxResult as Result};
}
#[cfg(any(test, target_os = "none"))]
pub use files::*;
#[cfg(target_os = "none")]
pub use system::{NoPool, start};
