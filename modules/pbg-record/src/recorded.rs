//! A layer around any scheduler that records what the program's tasks do: [`pbg`](crate)'s
//! measurement, for whoever never uses PBG.
//!
//! A policy is chosen by what it does with a program, and to see that one needs a record made
//! under that policy. So this is no part of a policy: a [`Recorded`] has another scheduler
//! inside, of this library or not, hands every call on as it is, and writes down what it sees in
//! passing. The record and its rules are those of [`pbg`](crate), 1, 3 and 4; the profile
//! that is made of it names the policy.
//!
//! The calls are those of `axsched_ext::syscall`, `measure_start`, `measure_end` and
//! `label_next`. With them a [`Recording`] is told to begin and to end.
//!
//! **What it needs.** The task that a policy keeps wraps a [`WithSlot`] in place of `axtask`'s
//! own: there is kept which record is the task's, so that nothing has to be looked up. A
//! [`Subject`] says which policy it is.
//!
//! **Several CPUs.** Spawns and wakes come from other CPUs than the queue's, and who makes them is
//! not who runs on that queue. Whoever starts the system says how to find the task that runs
//! where a call comes from, and where that is ([`Recording::connect`]); without, a measurement is
//! refused if there is more than one queue. With one queue nothing need be said.
//!
//! **Cost.** A switch while measuring: one counter read and the six memory accesses of PBG's
//! measurement, and the slot's; while not measuring: two loads, two comparisons and
//! perhaps a store. In instructions: `docs/pbg.md`. Nothing allocates but the calls.
//!
//! **Limits.** [`MAX_CPUS`]. A task that is moved to another CPU counts as one that yielded, or,
//! if the CPU was taken from the helper that moves it, as one that blocked meanwhile. A call of a
//! scheduler that is under way on another CPU while a measurement ends and the next begins may
//! still write one figure into a record of that.
//!
//! # Map
//!
//! Each file knows those above it and none below.
//!
//! | file | what it is |
//! |---|---|
//! | `task` | where a task has its record, and the task that `axtask` sees |
//! | `recording` | the calls, and what all queues share |
//! | `source` | where a layer finds its recording |
//! | `layer` | the layer |

mod layer;
mod recording;
mod source;
mod task;

pub use crate::recorder::MAX_CPUS;
pub use layer::Recorded;
pub use recording::{Here, Recording};
#[cfg(feature = "std")]
pub use source::RecordingPerThread;
pub use source::{RECORDING, RecordingSource, SystemRecording};
pub use task::{RecordedTask, Slot, Subject, WithSlot};
