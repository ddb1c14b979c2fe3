//! Connections served by coroutines and by threads.
//!
//! This is the experiment of the two reports from which this kit's coroutines come (COPS and SharedScheduler). It is a
//! server with three components for each connection, which are coroutines or threads.
//!
//! # The server
//!
//! A **receiver** reads a request, a matrix of 15 × 15 numbers, a **handler** multiplies it by another one, and a
//! **sender** writes the answer. Coroutines and threads share the source of the three. A thread blocks with
//! `axtask`'s `block_on` once for its life, so its waits cost no more than `axtask` makes them cost.
//!
//! | combination | a component is | a read that has to wait |
//! |---|---|---|
//! | `kcuc` | a coroutine | is another coroutine of the same executor |
//! | `uc` | a coroutine | waits at the socket |
//! | `ut` | a thread with a stack of 16 KiB | waits at the socket |
//!
//! `kcuc` is the combination of the reports, in the form of a unikernel: kernel and program are in one address space.
//! The other two have no service. The reports' other combinations are in `docs/adr/0033-three-combinations.md`.
//!
//! # The client
//!
//! The client is in the guest, in interrupts of its own beside the timer tick. Its CPU time is in the account as
//! `client_ns`. It is open loop: a request comes when it is due, and a latency runs from then to the answer, so it
//! includes every wait. All connections are open before the first request.
//!
//! | phase | requests |
//! |---|---|
//! | `paced` | each connection one in 100 ms, evenly spread, for 5 s: 1, 2, 4, 8, 16, 32, 64, 96 and 1,024 connections |
//! | `full` | the next one with each answer, for 1 s: the capacity of the CPU |
//! | `priorities-enough` | 64 connections of 8 priorities, one in 100 ms, each multiplied so often that this takes 0.75 of the CPU |
//! | `priorities-short` | the same in 50 ms, which would take 1.5 times the CPU |
//! | `priorities-alone` | only the urgent ones of these, for which the CPU is enough: priorities 0 to 4 |
//!
//! A CPU of 1,000 million instructions a second is hardly busy in `paced`. So all combinations answer all requests
//! there, and differ in latency; `full` shows their capacity. In the last three, the handler lets more urgent
//! coroutines run between the many multiplications of a request.
//!
//! # Output
//!
//! A row for people and a line for programs, for each run and each priority in it:
//!
//! ```text
//! SCHED-CONN {"app":"connections","arch":"x86_64","smp":1,"sched":"fifo","phase":"full","timing":"icount","scale":1,"combination":"kcuc","connections":64,"interval_ns":0,"rounds":1,"window_ns":1000000000,"started":64,"sent":60864,"answered":60800,"late":64,...}
//! ```
//!
//! `ConnLine` in `sched-tests-results` documents its keys. `ns/answer` in a row is the CPU time of components,
//! operations and the way from one to the next, without the client. A combination without memory for all connections
//! prints the number that it had. Before each thread starts, the allocator is asked whether it has the memory.
//!
//! `pass` is true if every answer was right, every request was answered or counted as lost, the CPU time added up to
//! the window, and all memory was given back. Speed is not judged. `SCALE=n` divides the requests of a connection and
//! the second by n, down to 2 requests and 0.1 s.
//!
//! ```sh
//! make cost A=connections                             # under sched_fifo and sched_coop, with 48 MiB
//! make cost A=connections ARCH=riscv64 FEATURES=sched_rr SCALE=5
//! make cost A=connections SMP=4 FEATURES=sched_rr     # real time
//! ```

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
