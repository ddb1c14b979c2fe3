//! How long does it take from a wake until the woken task runs, while a CPU idles?
//!
//! Main, the waker, has a CPU and keeps it. It wakes one task, the sleeper, which is blocked in a
//! future. The sleeper notes the time and blocks again. All other CPUs idle. A latency is the time
//! from just before the wake to the sleeper's first instruction after it. `axtask` puts woken tasks
//! into the CPUs' queues in turn, so there are two kinds of wakes:
//!
//! | queue | the task was put into that of |
//! |---|---|
//! | `waker` | the waker's CPU, which is busy, while another one idles |
//! | `idle` | a CPU with nothing to do |
//!
//! | phase | what runs |
//! |---|---|
//! | `before` | the policy before its CPUs are connected, as under plain `axtask` |
//! | `after` | the same once they are connected and share the work: not with `FEATURES=unbalanced`, nor under stock policies |
//!
//! Both phases run in one boot. Between two wakes 1 to 11 ms pass, drawn at random. Otherwise each
//! wake would come at the same place between two timer ticks as the one before. The waker computes
//! meanwhile. If the sleeper has not run within a tick's 10 ms after a wake, the waker yields until
//! it has. So in `before`, a task in the waker's queue waits for a waker that is busy for a tick,
//! and for no longer. The first wakes do not count, because QEMU then translates code that it has
//! not run before.
//!
//! IPIs are those that the layer for several CPUs sends
//! (`axsched_ext::balance::SmpState::interrupts`). Each counts for the last wake before it.
//!
//! A line for each phase and queue:
//!
//! ```text
//! SCHED-WAKE {"app":"wake","arch":"x86_64","smp":2,"sched":"rr","phase":"after","timing":"real","scale":1,"queue":"waker","wakes":1000,"median_ns":60211,"p99_ns":94310,"worst_ns":201733,"bins":[0,0,0,0,0,0,712,287,1],"interrupts":1000,"most_interrupts":1}
//! ```
//!
//! The keys are documented at `WakeLine` in `sched-tests-results`. `pass` of a `SCHED-RUN` line is
//! true if there were wakes of both kinds, no wake sent more than one IPI, and none sent any before
//! the CPUs were connected. The latencies are not judged, because no bound holds on a busy host.
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
