//! The limits of PBG as a guest, measured. There are more threads than ranks, a thread that the plan does not know, a
//! thread far beyond its record, and a program that has changed.
//!
//! It also shows how a program uses `pbg-guest` by itself. It panics if one of its findings is not what the rules of
//! that crate say.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;

/// Does nothing: the scheduler is only there on a machine.
#[cfg(not(target_os = "none"))]
fn main() {}
