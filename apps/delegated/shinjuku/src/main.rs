//! Short requests beside long ones, which are preempted after 30 microseconds.
//!
//! On a guest a few tasks compute for long, others for a short time, and a batch task takes what is left. A tick preempts
//! there. On the host the load of ghOSt's evaluation is simulated in virtual time, with an agent, on the fast path, and
//! under RR and CFS.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod guest;
#[cfg(not(target_os = "none"))]
mod load;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    #[cfg(target_os = "none")]
    guest::main();
    #[cfg(not(target_os = "none"))]
    load::main();
}
