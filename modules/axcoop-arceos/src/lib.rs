//! Coroutines for ArceOS 0.3.0-preview.3: the executor [`axcoop`] on tasks of `axtask`.
//!
//! ```ignore
//! let domain = axcoop_arceos::domain("http")?;
//! let answer = domain.spawn(async { 6 * 7 }, Priority::DEFAULT);
//! assert_eq!(answer.join(), Ok(42)); // by a thread; a coroutine awaits it
//! ```
//!
//! [`domain`] opens a domain with a worker on each CPU; [`Options`] has what else can be said. All
//! that a coroutine may do is of `axcoop`, which is re-exported; a thread waits for one by
//! [`JoinHandle::join`], or for any future by [`block_on`]. A thread that has nothing else to do serves a domain
//! itself, by [`Domain::run_until`], which saves a task and a stack:
//!
//! ```ignore
//! let domain = Options::new("http").workers(0).open()?;
//! let answer = domain.run_until(async { 6 * 7 }, Priority::DEFAULT)?;
//! ```
//!
//! A program needs ArceOS's features `alloc`, `multitask` and `irq`, and nothing else; with `axtask/preempt` coroutines are preempted as
//! threads are. It works under every scheduler. Under `sched_coop` a worker comes as early as the most
//! urgent coroutine of its domain; the others do not know what a worker is.
//!
//! # A worker
//!
//! It is an ordinary task, named as its domain, as `http/0`, or the one that called `run_until`; it
//! stays on one CPU. [`worker`]'s numbered rules say why, where it waits and how it is woken. On several CPUs connect them by
//! `axsched-arceos`, or a worker that waits on another CPU than the one that wakes it goes on at the
//! next tick.
//!
//! **A blocking function of `axtask`** in a coroutine, as `sleep`, a `WaitQueue` or a blocking socket,
//! stops all coroutines of its worker until it returns. A tick that finds a worker so counts it
//! ([`stalled_ticks`]), and the log says so afterwards, once each time. [`block_on`] and
//! [`JoinHandle::join`] panic in a coroutine.
//!
//! **Time** is looked at in the ticks of a worker's CPU: a timer is up to a tick late, and never
//! early.
//!
//! **Memory** is `axalloc`'s. [`Domain::try_spawn`] asks it, and is told if there is none; the
//! global allocator would panic. `axtask` itself allocates in each wake of a task, in an interrupt,
//! too: an image without any free memory at all stops there, with or without coroutines.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

mod domains;
mod policy;
mod said;
mod system;
pub mod worker;

pub use axcoop::*;
pub use domains::{OpenError, Options, domain};
pub use policy::serves;
pub use said::name;
pub use system::block_on;
pub use worker::stalled_ticks;
