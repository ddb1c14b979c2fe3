//! Files of ArceOS as futures with owned buffers.
//!
//! ```ignore
//! let mut file = File::create("/DATA".into()).await?;       // a coroutine waits, or
//! let mut file = File::create("/DATA".into()).wait()?;      // a thread does it itself
//! let (written, buffer) = file.write_all(buffer).await;
//! file.close().await;
//! ```
//!
//! # Overview
//!
//! `axfs` blocks: it asks the disk and spins until it has answered. So a coroutine hands its operation, with its
//! buffer, to a task that only does operations, and awaits it as any coroutine. A thread does the same operation
//! itself. Both have one source: an operation is a function, which the pool calls for a future, and
//! [`Operation::wait`] for a thread.
//!
//! ```text
//!  coroutine                          the pool, one task of the domain `axcoop-fs`        axfs
//!  ---------                          --------------------------------------------        ----
//!  read: buffer, and the function --> ready, at the caller's priority
//!        awaits it, donates           the most urgent one is next  ------------------>  blocks
//!  woken <--------------------------  result and buffer
//!
//!  thread
//!  ------
//!  read(…).wait()  ---------------------------------------------------------------------> blocks
//! ```
//!
//! The pool is a [`Domain`](axcoop::Domain) with one worker, and each operation handed to it is a coroutine. So
//! `axcoop` provides order, priority inheritance and wakes, and `sched_coop` sees how urgent the pool is.
//!
//! # Rules
//!
//! 1. **Owned.** An operation owns its buffer until it returns it with the result. There is no other pointer into the
//!    buffer, whether or not the future's destructor runs.
//! 2. **Order.** The pool begins the most urgent operation first, and in order of arrival within a priority. The
//!    priority is that of the awaiting coroutine, or that of [`Operation::at`] if it is more urgent. A coroutine that
//!    becomes more urgent donates its priority to its operation. An operation under way is finished first: an
//!    urgent one waits for one other at most.
//! 3. **One at a time.** Operations exclude one another, including those of threads. `axfs` holds a spin lock, with
//!    preemption on, while it waits for the disk. A second task would spin as long, and for ever under strict
//!    priorities. So more tasks would gain nothing. A task that calls `axfs` or `std::fs` directly may spin like
//!    that.
//! 4. **Cancelling.** An operation whose future is dropped before it has begun is not done. The pool finishes one
//!    that has begun. In both cases the pool drops its buffer. The cursor moves only with the result: the next read
//!    gets what a cancelled one has read. The next write is where the cancelled one was, which may or may not have
//!    been done, but is not done afterwards.
//! 5. **Closing.** When [`File::close`] is done, all writes and the file's length are on the disk. The pool closes a
//!    dropped file some time later.
//!
//! # Requirements
//!
//! One of the eight domains, a task with a stack of 64 KiB, and a coroutine with its memory for each operation in the
//! pool. The image has `axstd/fs`, which makes ArceOS look for a disk at boot, and therefore not `axcoop-net`.

#![no_std]

#[cfg(any(test, target_os = "none"))]
extern crate alloc;
#[cfg(test)]
extern crate std;

#[cfg(any(test, target_os = "none"))]
mod file;
#[cfg(any(test, target_os = "none"))]
mod operation;
// The part that differs on the host, where there are only tests.
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
