//! Checks, on the guest, of the parts that the scheduler tests rely on. A build has one case,
//! chosen by `make run A=selftest T=case`.
//!
//! | case | what it checks |
//! |---|---|
//! | `clock` | a second of the guest's clock is a second |
//! | `meter` | what the measuring itself costs |
//! | `tasks` | no sleeping, joining, waiting or late task is lost |
//! | `calls` | the PBG calls in every wrong order: the right errno, no effect |
//! | `share-0`, `-1`, `-3`, `-9`, `-30` | unplanned tasks get their share of a CPU that follows a plan, beside that many tasks that yield |
//! | `yielders` | a job gets done beside a task that yields all the time and a `gc` that spins |
//! | `awaits` | a coroutine whose awaits are all ready at once gives way |
//! | `handle` | main holds a handle of an ended task: the phase is refused |
//! | `changed-…` | a program that has changed since it was measured pays little for its old plan |
//! | `poll-…` | a program that polls: PBG says so where its replay is behind the measured run |
//! | `rewrite` | a profile that is replaced on the disk (`BLK=y`) again and again, to be killed |
//! | `panic`, `hang`, `fail` | nothing: they end as they are called |
//!
//! Each case prints a `SCHED-RUN` line as application `selftest-<case>`. `panic` and `hang` do so
//! before they go wrong, because a run that does not come to its end has failed, whatever it
//! printed.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
extern crate alloc;

#[cfg_attr(target_os = "none", path = "guest/mod.rs")]
#[cfg_attr(not(target_os = "none"), path = "host.rs")]
mod cases;

#[cfg_attr(target_os = "none", unsafe(no_mangle))]
fn main() {
    cases::main();
}
