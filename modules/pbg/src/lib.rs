//! PBG: program-behaviour-guided scheduling.
//!
//! A unikernel runs the same program again and again. The first run is measured, the measurement
//! becomes a plan, and later runs follow the plan: profile-guided optimisation, for the scheduler.
//! The idea, the three calls and the shortest-job-first order are from Qin Ruoyu's report on
//! scheduling in ArceOS (Tsinghua University, 2023), which followed Mira (Guo, He and Zhang, SOSP
//! 2023). There the measurement was constants in the test programs.
//!
//! **Which task is which**
//!
//!  1. The task that makes a starting call is the root. A task's key is its parent's key and its
//!     number among its parent's spawns, so it is the same on every run. A task with a label has
//!     the label as its key, whichever task of the program spawns it. Only descendants of the root
//!     have keys. The root itself, `gc`, helpers, tasks older than the call, and children without
//!     a label of a task without a key are outside. (A
//!     spawn from a timer callback counts as one of the task that was interrupted.)
//!
//! **Measuring**
//!
//!  2. Unless a plan is followed, the base policy runs: round robin with 5 ticks
//!     ([`rr`](sched_policies::rr), its rules). A measurement may run under FIFO instead
//!     ([`BasePolicy`]).
//!  3. The record of a task holds its time on the CPU, its time ready and its time blocked. It
//!     counts dispatches, yields, preemptions and blocks, and keeps their order
//!     ([`pbg_profile::Phases`]). A run interval begins when the task is dispatched and ends when
//!     it yields, is preempted, blocks or exits. The last interval of a record counts as ended by
//!     the exit. A burst is the time from block to block.
//!  4. At most [`MAX_TASKS`] tasks are recorded, each with at most [`RECORDED_PHASES`] phases.
//!     Later tasks run unrecorded, and more phases become coarser.
//!
//! **Following the plan**
//!
//!  5. Tasks run in the order of the [plan]: band by band, and within a band the ready task with
//!     the least before it. A task that never blocks counts with all its remaining time. A task
//!     that blocks much counts almost only up to its next block. The plan's weight sets the part
//!     between, and the replay subtracts what is done. A task keeps the CPU across its own yields,
//!     without a context switch. A task that becomes ready and has less before it takes over at the
//!     next yield or tick. A blocked task is not ready.
//!  6. A task whose key is not in the plan, or is taken already, runs from the fallback queue,
//!     round robin, whenever no planned task is ready.
//!  7. While tasks outside the plan and planned ones are both ready, the fallback queue gets a
//!     turn of a whole tick after every [`PLAN_TICKS`] ticks. A task that yields or blocks leaves
//!     the rest of the tick to the next of the queue, or to itself if it is alone. Three kinds of
//!     task spin while they wait, and have no claim to such a rest: `gc`, the root, and tasks that
//!     rule 8 has demoted for their yields. If no other task of the queue is ready, the turn is
//!     over. So all others together have at least one tick in `PLAN_TICKS` + 1 while one of them is
//!     ready. If n of them compute, each runs again within n × (`PLAN_TICKS` + 2) ticks. The
//!     second extra tick is for the root: a turn that follows it within a tick also has all of the
//!     next tick. A task that gives way
//!     within its tick counts in n for the part that it runs, and the sum is rounded down.
//!  8. A planned task has overrun while its time is above [`OVERRUN_FACTOR`] times its
//!     longest recorded time. It is demoted when [`OVERRUN_TICKS`] ticks or
//!     [`OVERRUN_HANDOVERS`] handovers of the CPU have found it so. Ticks and handovers add up:
//!     a tick counts as eight handovers. The exit of a task is a handover. On one CPU it is also
//!     demoted if it has yielded [`UNPLANNED_YIELD_ALLOWANCE`] times more than that factor
//!     allows. On several CPUs yields are not counted: another CPU runs the task that it waits
//!     for, and ArceOS's wait queues yield while another CPU changes them. From then on it runs
//!     from the fallback queue, and the rest of the plan stands. The wait of a planned task has
//!     three parts. Each task before it runs for at most twice its longest recorded time. Each
//!     also has the ticks or handovers that demote it. The fallback queue has its tenth.
//!  9. The root is outside the plan, but the program's next steps depend on it. When it wakes it
//!     goes first: at the next yield or tick, or when a running turn of rule 7 ends. It runs until
//!     it gives way or the next tick comes. It goes first once between two ticks that hit planned
//!     tasks, and the turns of the others do not wait for that.
//! 10. When more than two thirds of the plan's tasks have been demoted, the plan is dropped at the
//!     next tick. All ready tasks then go to the fallback queue, the one with the least before it
//!     first, behind those that are there already. Round robin runs from then on. Tasks outside the
//!     plan do not count, because they say nothing about the plan.
//! 11. If no task waits for another, shortest first never keeps more tasks waiting than any other
//!     order. (Schrage, A proof of the optimality of the shortest remaining processing time
//!     discipline, 1968.) A record shows some of the waits of tasks for others, so the turnaround
//!     decides. The lateness of the replay is how much later its tasks that have come are than in
//!     the measured run. The replay is behind when that exceeds 1/[`BEHIND_FRACTION`] of the
//!     measured turnaround of all tasks, plus a tick for each task of the plan. A tick is here the
//!     shortest time between two ticks, whichever CPUs they hit. The plan is dropped at the tick
//!     that finds this. All ready tasks go to the fallback queue, the late ones first, in order of
//!     arrival among any 64 in a row. The others follow, the one with the least before it first.
//!     Two corrections apply. A late task's lateness is reduced by [`OVERRUN_LATENESS_FACTOR`]
//!     times its own overrun. The bound grows, once for each task of the plan, by all overruns and
//!     the time of all unknown tasks. An overrun is the time that a task has used beyond its
//!     record. The plan stays if the call that started it asks for that ([`OnSlowReplay`]), or if
//!     the user has set priorities or deadlines. A plan that was measured on more CPUs than there
//!     are stays, too. After the last task's end the status tells whether the replay was slower,
//!     with nothing left out.
//!
//! **Cost.** Measuring adds one counter read and six memory accesses to a switch. During a replay,
//! a yield that keeps the CPU moves one pointer aside and back, and counts. Other picks are a
//! find-first-set over two words. A return to the ready set is a binary search in the task's band
//! and a walk past at most 64 tasks at the same rank. The counter is read only when the CPU may
//! change hands. Taking a command looks once at every ready task and at every rank of the plan. A
//! demotion looks at the tasks at that task's rank. A tick looks at 64 tasks. Pick, put and tick
//! allocate nothing; only the calls do.
//!
//! **Several CPUs.** These are the rules of one CPU. Several follow one plan if they are
//! connected, and the rules hold for them together: [`SmpPbgScheduler`] says how.
//!
//! **Limits.** Rules 7 to 11 need ticks and preemption (`axtask/preempt`). A block and an exit look
//! the same, so rule 11 counts a blocked task when it wakes, and until then as if it had ended. The
//! same holds on several CPUs for a task that runs on another CPU than the one with the tick
//! (`docs/adr/0016-behind-the-measured-run.md`).
//!
//! # Map
//!
//! Each file uses those above it and none below. The record is in `pbg_record`, and the profile in
//! `pbg_profile` ([`stored`]).
//!
//! | file | what it is |
//! |---|---|
//! | `status`, `counters` | the status; its counters |
//! | `task` | the state of PBG in a task |
//! | `caller` | the CPU that makes a call, and the ready tasks that it may run |
//! | [`plan`] | the order of tasks, from a profile; which of them wait for others |
//! | `ready_set` | the ready tasks that follow the plan |
//! | `replay` | following the plan |
//! | `control`, `source` | the calls, and the commands that they leave |
//! | `console` | a profile as text on the console |
//! | `grant` | the yields that need no engine and no lock |
//! | `engine` | every decision; the calling CPU is a parameter |
//! | `front` | the schedulers of one CPU, and of several CPUs under one lock |

#![cfg_attr(not(any(test, feature = "model")), no_std)]

extern crate alloc;

mod caller;
pub mod console;
mod control;
mod counters;
mod engine;
mod front;
mod grant;
pub mod plan;
mod ready_set;
mod replay;
#[cfg(feature = "model")]
mod simulated;
mod source;
mod status;
mod task;
#[cfg(test)]
mod tests;

pub use console::StoreError;
pub use control::{BasePolicy, Control, LoadError, fitting_profile};
pub use front::{PbgScheduler, SmpPbgScheduler};
pub use pbg_profile as stored;
pub use pbg_profile::MAX_TASKS;
pub use pbg_record::{
    About, Error, RECORD_BYTES, RECORDED_PHASES, STORED_BYTES, WAKE_TICK_RATIO, recorded,
};
pub use plan::{BLOCKS_IN_FULL, Late, Plan, PlannedTask, Step, TIE_FRACTION, Weight};
pub use replay::{
    ENTRY_BYTES, OVERRUN_FACTOR, OVERRUN_HANDOVERS, OVERRUN_LATENESS_FACTOR, OVERRUN_TICKS,
    OnSlowReplay, PLAN_TICKS, UNPLANNED_YIELD_ALLOWANCE,
};
#[cfg(feature = "model")]
pub use simulated::run_together;
#[cfg(feature = "model")]
pub use source::PerThread;
pub use source::{CONTROL, ControlSource, SystemControl};
pub use status::{BEHIND_FRACTION, Cause, Divergence, Mode, Status};
pub use task::{PbgState, PbgTask, SLICE_TICKS};
