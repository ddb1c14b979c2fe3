//! Scheduling policies for ArceOS. Each file has one policy: numbered rules, state, code.
//! The tests are at its end or, if they are long, in `<policy>/tests.rs`.
//!
//! | module | policy | source |
//! |---|---|---|
//! | [`fifo`] | first in, first out | |
//! | [`rr`] | round robin, slices of 5 ticks | |
//! | [`cfs`] | shares by weight, the least virtual runtime first | Linux 2.6.23 |
//! | [`eevdf`] | shares by weight, the earliest eligible virtual deadline first | Stoica and Abdel-Wahab, 1995 |
//! | [`sjf`] | the shortest expected burst first | |
//! | [`mlfq`] | feedback queues by CPU time used | Corbató et al., 1962 |
//! | [`coop`] | the task with the most urgent ready coroutine first | |
//!
//! Each module gives a scheduler and its task type. PBG, which follows a plan, is the crate `pbg`, and
//! delegated scheduling is the crate `delegated`.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod cfs;
pub mod coop;
pub mod eevdf;
#[cfg(test)]
mod fair;
pub mod fifo;
pub mod mlfq;
pub mod rr;
pub mod sjf;

pub use cfs::{CfsScheduler, CfsTask};
pub use coop::{CoopScheduler, CoopTask};
pub use eevdf::{EevdfScheduler, EevdfTask};
pub use fifo::{FifoScheduler, FifoTask};
pub use mlfq::{MlfqScheduler, MlfqTask};
pub use rr::{RrScheduler, RrTask};
pub use sjf::{SjfScheduler, SjfTask};

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
