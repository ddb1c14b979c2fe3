//! How long does it take from a wake until the woken task runs, while a CPU idles?
//!
//! Main, the waker, has a CPU and keeps it. It wakes one task, the sleeper, which waits blocked in
//! a queue, notes the time, and blocks again; all other CPUs idle. A latency is the time from just
//! before the wake to the sleeper's first instruction after it. `axtask` puts woken tasks into the
//! CPUs' queues in turn, so there are two kinds of wakes:
//!
//! | queue | the task was put into that of |
//! |---|---|
//! | `waker` | the waker's CPU, which is busy, while another one idles |
//! | `idle` | a CPU with nothing to do |
//!
//! | phase | what runs |
//! |---|---|
//! | `before` | the policy before its CPUs are connected: as `axtask` has it |
//! | `after` | the same when they are, and share the work: not with `FEATURES=unbalanced`, nor under stock policies |
//!
//! Both phases are of one boot. Between two wakes pass 1 to 11 ms, drawn at random, as else a
//! wake came at the same place between two timer ticks as the one before. Meanwhile the waker
//! computes; if the sleeper has not run for a tick's 10 ms after a wake, it yields until it has.
//! So before, a task in the waker's queue waits for what a waker lets it wait that is busy for a
//! tick, and for no longer. Some wakes at the beginning are not counted: QEMU translates then what it
//! has not run before.
//!
//! Interrupts between CPUs are those that the layer for several CPUs sends
//! (`axsched_ext::balance::SmpState::interrupts`), each counted to the last wake before it.
//!
//! A line for each phase and queue:
//!
//! ```text
//! SCHED-WAKE {"app":"wake","arch":"x86_64","smp":2,"sched":"rr","phase":"after","timing":"real","scale":1,"queue":"waker","wakes":1000,"median_ns":60211,"p99_ns":94310,"worst_ns":201733,"bins":[0,0,0,0,0,0,712,287,1],"interrupts":1000,"most_interrupts":1}
//! ```
//!
//! Its keys are documented at `WakeLine` in `sched-tests-results`. `pass` of a `SCHED-RUN` line is
//! whether there were wakes of both kinds, none of them sent more than one interrupt, and none
//! any before the CPUs were connected. How long they took is not judged: on a busy host no bound holds.
//! `SCALE=n` makes the wakes n times fewer.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(any(target_os = "none", test))]
extern crate alloc;

#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;
#[cfg(any(target_os = "none", test))]
mod histogram;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
