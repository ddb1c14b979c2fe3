//! Helpers for programs with agents: an enclave with the defaults, an agent's task, the calling task, and
//! classes of tasks. On the host there is the machine of the model instead.

#![cfg_attr(target_os = "none", no_std)]

mod class;
#[cfg(target_os = "none")]
mod guest;
#[cfg(not(target_os = "none"))]
mod simulated;

pub use class::{Class, Classes, Running};
#[cfg(target_os = "none")]
pub use guest::*;
#[cfg(not(target_os = "none"))]
pub use simulated::*;

/// Prints how to run a program on a guest, and fails: threads of the host do not run under our
/// schedulers.
#[cfg(not(target_os = "none"))]
pub fn need_guest(app: &str) {
    println!("{app} needs a guest: make run A=apps/delegated/{app} FEATURES=sched_delegated");
    sched_tests_common::platform::finish(false);
}
