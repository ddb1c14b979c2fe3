//! What do coroutines cost beside threads of the same build?
//!
//! | figure | coroutines | threads |
//! |---|---|---|
//! | `switch` | from one `yield_now` to the next coroutine, among 2 to 100,000 in one domain | the same of 4 threads |
//! | `spread` | the most expensive of these from 4 on over the cheapest | |
//! | `spawn` | to spawn an empty one and await it, in a coroutine | to spawn and join one |
//! | `batch` | the same, 250 at once | the same |
//! | `wake` | a wake to another one and one back, each of which waits in between | the same with two `WaitQueue`s |
//! | `memory` | what one takes beside its future, the most of 16 sizes of futures, with what the allocator adds | |
//! | `connections` | how many connections of three coroutines fit into 34 MiB | of three threads with stacks of 16 KiB |
//! | `left` | what their memory has not given back | the same |
//!
//! **Time.** Each of the first five runs twice, the second time with twice as many turns; the
//! figure is the difference by the turns that the second has more, so that what comes before the first
//! turn and after the last falls out. Under counted time it is instructions, to the same number on
//! every machine.
//!
//! **Memory.** The seeds of the coroutine work give a program 8 MiB of heap and 26 MiB of frames.
//! Here all memory but as much is taken away, then connections are made until there is no memory for
//! another. One is a receiver with 120 bytes of state, a handler with 64 and a sender with 80. Then
//! each serves one request, which has to go through all three, and all end. What comes to that
//! for threads is done in the same memory afterwards.
//!
//! A line for each figure:
//!
//! ```text
//! SCHED-COOP {"app":"coop-cost","arch":"x86_64","smp":1,"sched":"stock-fifo","phase":"run","timing":"icount","scale":1,"figure":"switch","among":4,"unit":"instructions","coroutines":76.5,"threads":160.0,"ratio":0.478,"limit":0.55,"pass":true}
//! ```
//!
//! Its keys are documented at `CoopLine` in `sched-tests-results`, the limits at [`figures`]. `pass` of the
//! `SCHED-RUN` line is whether all figures keep theirs, and all coroutines, threads and requests
//! came to their ends. `SCALE=n` makes the turns n times fewer.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(any(target_os = "none", test))]
extern crate alloc;

#[cfg(any(target_os = "none", test))]
mod figures;
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;
#[cfg(target_os = "none")]
mod memory;
#[cfg(target_os = "none")]
mod turns;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
