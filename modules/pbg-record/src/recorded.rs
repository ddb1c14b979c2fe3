//! A layer around any scheduler that records the program's tasks. It makes PBG's measurement under
//! any policy.
//!
//! To choose a policy for a program, one needs a record that was made under that policy. So
//! recording is no part of a policy. A [`Recorded`] has another scheduler inside, of this library or
//! not. It passes every call on unchanged, and records what it sees. The record follows rules 1, 3
//! and 4 of PBG. The profile that is made of it names the policy.
//!
//! The calls are those of `axsched_ext::syscall`: `measure_start`, `measure_end` and `label_next`.
//! They tell a [`Recording`] to begin and to end.
//!
//! **Requirements.** The task of a policy wraps a [`WithSlot`] in place of `axtask`'s own task. The
//! slot refers to the record of the task, so no look-up is needed. A [`Subject`] describes the
//! policy.
//!
//! **Several CPUs.** Spawns and wakes also come from other CPUs than the queue's, so the running task
//! of the queue is not always the one that makes them. The code that starts the system passes a
//! function to [`Recording::connect`]. It returns the calling CPU and the task that runs there.
//! Without it, a measurement is refused if there is more than one queue. With one queue it is not
//! needed.
//!
//! **Cost.** While measuring, a switch takes one counter read, the six memory accesses of PBG's
//! measurement, and those of the slot. Otherwise it takes two loads, two comparisons and perhaps a
//! store. `docs/pbg.md` has the cost in instructions. Only the calls allocate.
//!
//! **Limits.** There are at most [`MAX_CPUS`] CPUs. A task that migrates counts as one that yielded.
//! If the helper that moves it was preempted, it counts as one that blocked meanwhile. A call of a
//! scheduler may be under way on another CPU while one measurement ends and the next begins. It may
//! still write one figure into a record of the new measurement.
//!
//! # Map
//!
//! Each file uses those above it and none below.
//!
//! | file | what it is |
//! |---|---|
//! | `task` | the slot of a task for its record, and the task that `axtask` sees |
//! | `recording` | the calls, and the state that all queues share |
//! | `source` | the place where a layer finds its recording |
//! | `layer` | the scheduler that passes calls on and records them |

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
