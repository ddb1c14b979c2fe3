//! What does one `yield_now()` cost, by the number of tasks that do nothing else?
//!
//! For each of 1, 4, 64, 256, 1,024 and 4,096 tasks there are two rounds. In the first all of
//! them yield m/2 times and meet, in the second m times more than that:
//!
//! cost = (time of the second round − time of the first) / (tasks × m)
//!
//! The time of a round is that in which some task is between its first yield and its last. If a
//! yield switches, this time includes waking the others and letting them wait again. That costs the
//! same in both rounds and falls out of the difference. If tasks yield one after the other, as
//! under a plan, it is not included. The cost is then that of the way through `axtask` and the
//! policy, two or three instructions of the loop, and a share of the timer ticks. There is no work
//! in between, and no instrument: the tasks are plain ones of `axtask`.
//!
//! The tasks wait between rounds and are not spawned for each, because PBG records at most 4,096
//! tasks. So one measurement holds every size, the whole table is in use at the last, and one
//! replay follows.
//!
//! Each round of a size has its own tasks, and only at the last size all tasks yield in both
//! rounds. If a task does more than PBG records one by one, the plan knows only an average. A round
//! of m/2 yields is below that average and one of 3m/2 above it, so the task would give way in the
//! middle.
//!
//! | phase | policy | what runs |
//! |---|---|---|
//! | `run` | any but PBG | the policy |
//! | `idle` | PBG | its base policy, before anything is measured |
//! | | any, with `make record` | the policy, before anything is measured |
//! | `measure` | PBG | the base policy, while it is recorded |
//! | | any, with `make record` | the policy, while it is recorded |
//! | `replay` | PBG | the plan |
//!
//! In a replay a task that yields keeps the CPU. The figure is then that of a yield without a
//! context switch, as for one task alone.
//!
//! Besides the `SCHED-RUN` line of each phase there is a line for each figure:
//!
//! ```text
//! SCHED-COST {"app":"cost","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","timing":"icount","scale":1,"tasks":4,"instructions_per_yield":1.5}
//! ```
//!
//! The keys are documented at `CostLine` in `sched-tests-results`. `pass` is true if all yields
//! happened, all tasks ended and were reclaimed and, in the replay, all followed the plan.
//! `SCALE=n` makes the yields n times fewer.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
