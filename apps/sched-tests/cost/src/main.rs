//! What does one `yield_now()` cost, by the number of tasks that do nothing else?
//!
//! A group of tasks grows to 1, 4, 256 and 4,096. At each size all of them yield m
//! times, meet, yield 2m times, and meet again:
//!
//! cost = (time of the second round − time of the first) / (tasks × m)
//!
//! Waking the group and meeting again costs the same in both rounds and falls out
//! of the difference. What is left is the way through `axtask` and the policy, the
//! two or three instructions of the loop, and a share of the timer ticks. There is
//! no work in between, and no instrument: the tasks are plain ones of `axtask`.
//!
//! The tasks wait for one another instead of being spawned for each round, because
//! PBG records 4,096 tasks at most: so one measurement holds every size, the whole
//! table is in use at the last, and one replay follows.
//!
//! | phase | policy | what runs |
//! |---|---|---|
//! | `run` | any but PBG | the policy |
//! | `idle` | PBG | its base policy, before anything is measured |
//! | `measure` | PBG | the base policy, while it is recorded |
//! | `replay` | PBG | the plan |
//!
//! In a replay a task that yields keeps the CPU: the figure is then that of a yield
//! without a context switch, as for one task alone.
//!
//! Besides the `SCHED-RUN` line of each phase there is a line for each figure:
//!
//! ```text
//! SCHED-COST {"app":"cost","arch":"x86_64","smp":1,"sched":"pbg","phase":"replay","timing":"icount","scale":1,"tasks":4,"instructions_per_yield":1.5}
//! ```
//!
//! Its keys are documented at `CostLine` in `sched-tests-results`. `pass` is whether all
//! yields happened, all tasks ended and were reclaimed and, in the replay, all followed the
//! plan. `SCALE=n` makes the yields n times fewer.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod guest;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    guest::main();
}
