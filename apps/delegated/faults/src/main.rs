//! Agents that end, hang, sleep, flood, starve, lie or are replaced. Is a task lost, or does one wait
//! longer than the limit?
//!
//! In each phase workers yield, sleep and compute under an agent with one fault, and a task outside
//! yields beside them. The phase passes if all workers have done all their rounds, and the enclave
//! has ended for the expected reason. With the watchdog the longest wait of a worker is bounded.
//!
//! A line for each phase says which task waited how long and what the agent did.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    delegated_common::need_guest("faults");
}
