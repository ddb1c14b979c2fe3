//! First in, first out, decided by an agent on each CPU for that CPU. No agent waits for another.
//!
//! The tasks are those of `apps/delegated/fifo`, given to the CPUs in turn.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    delegated_common::need_guest("fifo-per-cpu");
}
