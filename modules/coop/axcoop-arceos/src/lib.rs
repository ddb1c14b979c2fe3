//! Coroutines for ArceOS 0.3.0-preview.3: the executor [`axcoop`] on tasks of `axtask`.
//!
//! ```ignore
//! let domain = axcoop_arceos::domain("http")?;
//! let answer = domain.spawn(async { 6 * 7 }, Priority::DEFAULT);
//! assert_eq!(answer.join(), Ok(42)); // by a thread; a coroutine awaits it
//! ```
//!
//! [`domain`] opens a domain with a worker on each CPU; [`Options`] has further settings. Coroutines use the
//! functions of `axcoop`, which is re-exported. A thread waits for a coroutine with [`JoinHandle::join`], or for any
//! future with [`block_on`]. A thread without other work can serve a domain itself, with [`Domain::run_until`], which
//! saves a task and a stack:
//!
//! ```ignore
//! let domain = Options::new("http").workers(0).open()?;
//! let answer = domain.run_until(async { 6 * 7 }, Priority::DEFAULT)?;
//! ```
//!
//! A program needs ArceOS's features `alloc`, `multitask` and `irq`. With `axtask/preempt` coroutines are preempted
//! like threads. The crate works under every scheduler. Under `sched_coop` a worker has the priority of the most
//! urgent coroutine of its domain; the other schedulers treat it as a task.
//!
//! # A worker
//!
//! A worker is an ordinary task, named after its domain, as `http/0`, or the one that called `run_until`. It is
//! pinned to one CPU. The rules of [`worker`] say why, where it parks and how it is woken. On several CPUs connect
//! them with `axsched-arceos`; otherwise a worker that is woken from another CPU goes on at the next tick.
//!
//! **A blocking function of `axtask`** in a coroutine, as `sleep`, a `WaitQueue` or a blocking socket, blocks its
//! worker and all its coroutines until it returns. A tick that finds a worker so blocked counts it
//! ([`stalled_ticks`]), and the log reports each stall afterwards. [`block_on`] and [`JoinHandle::join`] panic in a
//! coroutine.
//!
//! **Time** is looked at in the ticks of a worker's CPU: a timer is up to a tick late, and never early.
//!
//! **Memory** comes from `axalloc`. [`Domain::try_spawn`] asks it, and returns an error if there is none, where the
//! global allocator would panic. `axtask` itself allocates in each wake of a task, also in an interrupt. So an image
//! without any free memory stops there, with or without coroutines.

#![no_std]
#![cfg(target_os = "none")]

extern crate alloc;

mod domains;
mod policy;
mod system;
pub mod worker;
mod worker_names;

pub use axcoop::*;
pub use domains::{OpenError, Options, domain};
pub use policy::announce_domain;
pub use system::block_on;
pub use worker::stalled_ticks;
pub use worker_names::name;
