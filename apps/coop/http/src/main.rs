//! An HTTP server with a coroutine per connection, whose priority is that of the requested path: `/p/0` is the most
//! urgent, `/p/7` the least, and all other paths have 4. `apps/coop/http-threads` does the same with threads, from
//! the same parts (`apps/coop/http-common`).
//!
//! ```sh
//! make serve A=http FEATURES=sched_coop
//! curl http://127.0.0.1:5555/p/0
//! curl http://127.0.0.1:5555/stats
//! curl -X POST http://127.0.0.1:5555/quit
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate axstd as std;

#[cfg(target_os = "none")]
mod guest;

#[cfg(not(target_os = "none"))]
fn main() {
    println!("A server for ArceOS: make serve A=http");
}

#[cfg(target_os = "none")]
#[unsafe(no_mangle)]
fn main() {
    guest::main();
}
