//! The registry's [`ax_sched`] under its old name.

#![no_std]

pub use ax_sched::*;
