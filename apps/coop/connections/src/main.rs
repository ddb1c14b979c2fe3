//! Connections that are served by coroutines and by threads.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg_attr(target_os = "none", path = "guest/mod.rs")]
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;
#[cfg(any(target_os = "none", test))]
mod message;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
