//! The stored profile: the measurements of PBG as plain data that outlives the boot.
//!
//! This crate has the data, its binary form, its form as text for a console, and the merging of
//! several runs.
//!
//! | | |
//! |---|---|
//! | [`encode`], [`decode`] | to bytes and back; every byte is checked, no input panics |
//! | [`write_frame`], [`read_frame`] | the bytes as lines of text, for a serial console |
//! | [`merge`], [`Merger`] | several runs of a program to one profile |
//! | [`check`] | the check that a profile fits this program and this machine |
//!
//! The format is described byte by byte in `docs/profile-format.md`. This crate has no `unsafe`
//! code and reads no clock, and no scheduler calls it. A lack of memory is an error and never an
//! abort.
#![forbid(unsafe_code)]
#![cfg_attr(not(any(test, feature = "samples")), no_std)]

extern crate alloc;

mod check;
mod decode;
mod encode;
mod frame;
mod header;
mod merge;
mod phases;
mod profile;
mod rules;
#[cfg(any(test, feature = "samples"))]
pub mod samples;
mod task;
#[cfg(test)]
mod tests;
mod text;
mod waker;

pub use check::{Expected, Mismatch, check};
pub use decode::{DecodeError, MEMORY_PER_BYTE, decode};
pub use encode::{EncodeError, MAX_BYTES, encode};
pub use frame::{
    FRAME_BYTES_PER_LINE, FRAME_VERSION, FrameError, has_frame, read_frame, write_frame,
};
pub use header::{Architecture, Header, Kernel, Program, Start, Timing};
pub use merge::{MergeError, Merger, merge};
pub use phases::{Ended, PhaseOrder, Phases, StoredPhase};
pub use profile::{MAX_PHASES, MAX_TASKS, StoredOrder, StoredProfile, VERSION};
pub use rules::Rule;
pub use task::{Figure, Figures, Place, Spawned, StoredTask};
pub use text::{Label, PolicyName, ProgramName, Text, TextError};
pub use waker::{Waker, Wakes, Woken};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
