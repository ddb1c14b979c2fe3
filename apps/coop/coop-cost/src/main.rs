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
//! | `left` | bytes of their memory that were not freed | the same |
//!
//! **Time.** Each of the first five runs twice, the second time with twice as many turns. The figure is the
//! difference divided by the additional turns, so it excludes what comes before the first turn and after the last.
//! Under counted time the unit is instructions, with the same number on every machine.
//!
//! **Memory.** The seeds of the coroutine work give a program 8 MiB of heap and 26 MiB of frames. Here all memory
//! beyond that is taken away, then connections are made until there is no memory for another. A connection is a
//! receiver with 120 bytes of state, a handler with 64 and a sender with 80. Then each serves one request, which
//! passes all three, and all end. The same is done with threads in the same memory afterwards.
//!
//! A line for each figure:
//!
//! ```text
//! SCHED-COOP {"app":"coop-cost","arch":"x86_64","smp":1,"sched":"stock-fifo","phase":"run","timing":"icount","scale":1,"figure":"switch","among":4,"unit":"instructions","coroutines":76.5,"threads":160.0,"ratio":0.478,"limit":0.55,"pass":true}
//! ```
//!
//! `CoopLine` in `sched-tests-results` documents its keys, `figures` the limits. `pass` of the `SCHED-RUN` line is
//! true if all figures keep theirs, and all coroutines, threads and requests came to their ends. `SCALE=n` divides
//! the turns by n.

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
