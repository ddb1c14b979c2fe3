//! Connections that are served by coroutines and by threads.
//!
//! It is the experiment of the two reports that coroutines in this kit come from (COPS and SharedScheduler):
//! a server of three components a connection, of which each side, what performs a read and what asks for it,
//! is made of coroutines or of threads.
//!
//! # The server
//!
//! A **receiver** reads a request, a matrix of 15 × 15 numbers, a **handler** multiplies it by another one, a
//! **sender** writes the answer. The source of the three is the same, whatever they are made of: a thread blocks
//! by `axtask`'s `block_on` once for its life, so no wait of a thread costs more than `axtask` has it cost.
//!
//! | combination | a component is | a read that has to wait is |
//! |---|---|---|
//! | `kcuc` | a coroutine | a coroutine of the same executor |
//! | `kcuc-2` | a coroutine | a coroutine of another executor; each operation is one, also one that need not wait |
//! | `kcut` | a thread with a stack of 16 KiB | a coroutine |
//! | `ktut` | a thread | the thread itself, which tries and yields until the data is there |
//! | `ktuc` | a coroutine | one thread that tries for all, as `epoll` would |
//! | `uc` | a coroutine | nobody: the component waits at the socket itself |
//! | `ut` | a thread | nobody: likewise |
//!
//! The first five are the reports': `kcuc-2` to the letter, `kcuc` as a unikernel would have it, where kernel
//! and program are in one address space. The last two have no service at all.
//!
//! # The client
//!
//! It is in the guest, in interrupts of its own beside the timer tick, and takes CPU time, which is in the
//! account as `client_ns`. It is open loop: a request comes when it is due, and a latency is from then to the
//! answer, so that no wait is left out. All connections are there before the first request.
//!
//! | phase | requests |
//! |---|---|
//! | `paced` | each connection one in 100 ms, evenly spread, for 5 s: 1, 2, 4, 8, 16, 32, 64, 96 and 1,024 connections |
//! | `full` | the next one with each answer, for 1 s: what the CPU can do |
//! | `priorities-enough` | 64 connections of 8 priorities, one in 100 ms, each multiplied so often that this takes 0.75 of the CPU |
//! | `priorities-short` | the same in 50 ms, which would take 1.5 of it |
//! | `priorities-alone` | of those the urgent ones, for whom it is enough: priorities 0 to 4 |
//!
//! A CPU of 1,000 million instructions a second is hardly busy in `paced`, so all combinations answer all requests
//! there, and differ in latency; what they can do is what `full` says. Among the many multiplications of a request
//! in the last three the handler lets more urgent coroutines run.
//!
//! # What is printed
//!
//! A row for people and a line for programs, of each run and each priority in it:
//!
//! ```text
//! SCHED-CONN {"app":"connections","arch":"x86_64","smp":1,"sched":"fifo","phase":"full","timing":"icount","scale":1,"combination":"kcuc","connections":64,"interval_ns":0,"rounds":1,"window_ns":1000000000,"started":64,"sent":60864,"answered":60800,"late":64,...}
//! ```
//!
//! Its keys are documented at `ConnLine` in `sched-tests-results`. `ns/answer` in a row is the CPU time of components,
//! operations and the way from one to the next, without the client. A combination without memory for so many
//! connections says so and after how many of them that was; each thread is preceded by a question to the allocator.
//!
//! `pass` is whether every answer was right, every request was answered or counted as lost, the CPU time added
//! up to the window, and all memory was given back. Who is faster is not judged. `SCALE=n` makes the requests of a
//! connection and the second n times fewer and shorter, but for 2 requests and 0.1 s.
//!
//! ```sh
//! make connections                                    # under sched_fifo and sched_coop, with 48 MiB
//! make connections ARCH=riscv64 FEATURES=sched_rr SCALE=5
//! make connections SMP=4 FEATURES=sched_rr            # real time
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
