//! First in, first out, decided by a task of the program: an agent on CPU 0, for all CPUs.
//!
//! Eight tasks compute for 20 to 160 ms and yield after each millisecond. `SCALE=n` divides the work.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    delegated_common::need_guest("fifo");
}
