//! Profile-guided scheduling by an agent. The first round runs first in, first out, and is measured. The second round
//! follows a plan made from it: the task with the least work runs first.
//!
//! Eight tasks compute for 20 to 160 ms and yield after each millisecond. The longest is spawned first. `SCALE=n` divides the
//! work.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg(target_os = "none")]
mod guest;
#[cfg(target_os = "none")]
mod policy;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    delegated_common::need_guest("planned");
}
