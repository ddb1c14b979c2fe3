//! An HTTP server with a thread per connection, made of the same parts as `apps/coop/http` with its coroutines. A
//! thread waits by blocking, so the path's priority has no effect here.
//!
//! ```sh
//! make serve A=http-threads FEATURES=sched_rr MEM=256M
//! curl http://127.0.0.1:5555/stats
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate axstd as std;

#[cfg(target_os = "none")]
mod guest;

#[cfg(not(target_os = "none"))]
fn main() {
    println!("A server for ArceOS: make serve A=http-threads");
}

#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
fn main() {
    guest::main();
}
