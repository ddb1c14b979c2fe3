//! Tasks that do everything a task may do, at random from a seed, under a watch that finds each
//! wait that is too long.
//!
//! Main keeps 16 to 48 tasks alive, which it spawns or which they spawn themselves. The steps of a task
//! follow from the seed and from its place in the tree of spawns (`task`). It computes, yields, sleeps,
//! waits until another wakes it or for its children, takes a lock, spawns, changes its priority and its
//! affinity, and ends. With the same seed the same tasks take the same steps. Their times depend on the
//! scheduler, and in real time they differ from boot to boot.
//!
//! Time is cut into rounds, of 5 s or 400 tasks of main's at most, after which main waits for all to
//! end and counts. Under PBG a third of the time is measured, round by round. Then the last of these rounds
//! is replayed under its plan. The remaining rounds are unknown to the plan.
//!
//! | checked | where |
//! |---|---|
//! | a task that is ready gets a CPU within the bound | `watch` |
//! | a sleep, and a wait that has a limit, ends within the bound after it | `watch` |
//! | a task that has a CPU makes a step within the bound | `watch` |
//! | a task that has ended is reclaimed within the bound | `watch` |
//! | no task has two CPUs | `record` |
//! | a task runs where its affinity allows, when a step begins | `task` |
//! | no two tasks are between taking and releasing a lock | `lock` |
//! | each task that was spawned ends, once | `rounds` |
//!
//! A finding goes to the console, with the length of each wait, the task of each CPU and the scheduler's
//! state. Then the guest panics.
//!
//! **Not a finding.** `axtask` loses a wake now and then, with stock schedulers too. Each wait has a limit
//! after which it looks again, and the summary counts the lost wakes. A sleep may end
//! early, after a change of CPU. Priorities are between −5 and 5: with the extremes of CFS a
//! task's turn may rightly be minutes away.
//!
//! It ends with one line:
//!
//! ```text
//! SCHED-SOAK {"sched":"rr","arch":"x86_64","smp":4,"seed":7,"seconds":60,"rounds":12,"spawned":4711,...}
//! ```

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg_attr(target_os = "none", path = "guest/mod.rs")]
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
