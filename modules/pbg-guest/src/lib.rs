//! PBG as a guest of `ax-task` 0.8, whose scheduler cannot be replaced. It records through the extension of each
//! thread, and replays by giving each thread the FIFO rank of its place in the plan.
//!
//! A program calls [`spawn`] in place of `ThreadBuilder::spawn`, and the calls of [`CONTROL`].
//!
//! **Which thread is which**
//!
//!  1. The thread that makes a starting call is the root, and keys are those of rule 1 of the crate `pbg`. Only a
//!     thread that was spawned by [`spawn`] can have a key.
//!
//! **Measuring**
//!
//!  2. The threads that the program spawns run under RR with the quantum of `ax-task`, or under FIFO, all of
//!     [one rank](BASE_RANK). The root has [the highest rank](ROOT_RANK) until the measurement ends.
//!  3. A run interval begins and ends at the hooks of the extension. They tell why it ended. No hook tells when a
//!     blocked thread becomes ready, or which thread woke it. So the time up to its next run interval counts as blocked,
//!     and its waker is unknown. A yield that keeps the CPU calls no hook, and is not counted.
//!
//! **Following the plan**
//!
//!  4. A planned thread gets, before it first runs, the FIFO rank of its place: 98 for the first, then down to 1.
//!     All later ones share rank 1, where a thread runs until it blocks or ends. A rank stays as it is, so a
//!     thread with less work left does not overtake.
//!  5. A thread that the plan does not know, or whose key is taken, keeps the policy of its builder. A fair one
//!     runs only while no planned thread is ready: `ax-task` keeps no part of the CPU for it.
//!  6. A watcher, a thread of the highest rank, looks each [`WATCH_NS`]. A thread that it finds
//!     [`OVERRUN_TICKS`](pbg::OVERRUN_TICKS) times beyond [`OVERRUN_FACTOR`](pbg::OVERRUN_FACTOR) times its
//!     longest recorded time becomes fair. The hooks must not do that, since they run inside the scheduler.
//!  7. If more than two thirds of the plan's threads have become fair by rule 6, the plan is dropped. All others
//!     of the plan become fair, too, and so do those that are spawned later. The watcher ends.
//!
//! **Limits.** There is one CPU: a starting call on several is refused. A replay that is slower than the measured
//! run is reported ([`Status::behind`](pbg::Status::behind)), but keeps its plan. Priorities and deadlines in a
//! profile count, because the plan has them.

#![cfg_attr(not(test), no_std)]

extern crate alloc;

#[cfg(target_os = "none")]
mod control;
#[cfg(any(target_os = "none", test))]
mod replay;
#[cfg(target_os = "none")]
mod thread;

#[cfg(target_os = "none")]
pub use control::{CONTROL, Control};
#[cfg(target_os = "none")]
pub use thread::{spawn, spawn_extended};

/// The FIFO rank of the root and of the watcher.
pub const ROOT_RANK: u8 = 99;

/// The rank of all threads that are measured.
pub const BASE_RANK: u8 = 1;

/// The time from one look of the watcher to the next: a tick.
pub const WATCH_NS: u64 = 10_000_000;
