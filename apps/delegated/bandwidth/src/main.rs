//! A group of tasks that may use 60 % of the CPUs, beside one task that is free.
//!
//! On a guest, `pass` says that the group did not end sooner than its budget allows. On the host 40 tasks on four
//! CPUs are simulated in virtual time, and the table has their share of any ten periods.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;
#[cfg(not(target_os = "none"))]
mod shares;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    shares::main();
}
