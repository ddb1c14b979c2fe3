//! What does a decision cost that a task makes, beside a plain yield?
//!
//! Tasks yield in turn, and the instructions of a yield are counted. A round with twice as many
//! yields takes longer than a round. The difference is divided by the yields that it has more.
//!
//! | phase | what decides |
//! |---|---|
//! | `plain` | the round robin; no task is delegated |
//! | `parked` | the same, while an agent waits on this CPU |
//! | `agent` | an agent, after each yield |
//! | `plan10`, `plan32` | an agent, 10 or 32 decisions at a time |
//! | `fast` | the same policy within the scheduler |
//!
//! With `SMP=2` the program measures decisions for another CPU instead. On x86_64 with
//! `QEMU_ARGS='-icount shift=0,sleep=off'` the counts are instructions. The waits are for real time, on a
//! quiet host.
//!
//! Under any other policy only `plain` runs, which is what the others are compared with.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod guest;
#[cfg(target_os = "none")]
mod latency;
#[cfg(target_os = "none")]
mod remote;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    delegated_common::need_guest("cycle");
}
