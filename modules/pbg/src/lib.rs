//! PBG: program-behaviour-guided scheduling.
//!
//! A unikernel runs the same program again and again. The first run is
//! measured, the measurement becomes a plan, later runs follow the plan:
//! profile-guided optimisation, for the scheduler. The idea, the three calls
//! and the shortest-job-first order are from Qin Ruoyu's report on scheduling
//! in ArceOS (Tsinghua University, 2023), which took its cue from Mira (Guo, He
//! and Zhang, SOSP 2023); there the measurement was constants in the test programs.
//!
//! **Who is who**
//!  1. The task that makes a starting call is the root. A task's key is its
//!     parent's key and its place among its parent's spawns, so it is the same
//!     on every run; or, if it was given a label, that, whichever of the program's
//!     tasks spawned it. Only the root's descendants have keys; the root itself,
//!     `gc`, helpers, and tasks older than the call are outside. (A spawn from a
//!     timer callback counts as one of the task that was interrupted.)
//!
//! **Measuring**
//!  2. Before, while, and unless a plan is followed, the base policy runs: round
//!     robin with 5 ticks ([`rr`](sched_policies::rr), its rules). A measurement may be made under
//!     FIFO instead ([`BasePolicy`]).
//!  3. Of each task its time on the CPU, its time ready and its time blocked are
//!     recorded; how often it was dispatched, yielded, was preempted and blocked;
//!     and in which order ([`pbg_profile::Phases`]). A run interval begins when the task is
//!     dispatched and ends when it yields, is preempted, blocks or exits; the last
//!     one of a record counts as ended by the exit. From block to block is a burst.
//!  4. At most [`MAX_TASKS`] tasks are recorded, each with at most [`RECORDED_PHASES`]
//!     phases; later tasks run, unrecorded, and more phases become coarser.
//!
//! **Following the plan**
//!  5. Tasks run in the order of the [plan]: band by band, and within a band the
//!     ready task first that has the least before it: all that remains of it, or, the
//!     more it is blocked, only up to its next block; the plan knows how much that is,
//!     and the replay what is done already. A task keeps the CPU across its own yields,
//!     without a context switch, and one that becomes ready and has less before it takes over
//!     at the next yield or tick. A blocked task is simply not ready.
//!  6. A task whose key is not in the plan, or is taken already, runs from the
//!     fallback queue, round robin, whenever no planned task is ready.
//!  7. While tasks outside the plan and planned ones are both ready, the fallback queue
//!     gets a turn of a whole tick after every [`PLAN_TICKS`] ticks. A task that yields or
//!     blocks leaves the rest of the tick to the next of the queue, or to itself if it is
//!     alone. `gc`, the root and tasks that rule 8 has demoted for their yields spin while
//!     they wait, and have no claim to a rest: if no other task of the queue is ready, the
//!     turn is over. So all others together have at least one tick in `PLAN_TICKS` + 1 while
//!     one of them is ready. One of n that compute runs again within n × (`PLAN_TICKS` + 2)
//!     ticks, since a turn that begins in the middle of a tick has all of the next. A task
//!     that gives way within its tick counts in n for the part that it runs, and the sum is
//!     rounded down.
//!  8. A planned task found beyond [`OVERRUN_FACTOR`] times the most time that was
//!     recorded of it, by [`OVERRUN_TICKS`] ticks, or at [`OVERRUN_HANDOVERS`]
//!     handovers of the CPU (its exit is one; a tick counts for eight of them),
//!     or that has yielded [`FREE_YIELDS`] times more than that factor allows,
//!     is demoted: it runs from the fallback queue from then on, and the rest of
//!     the plan stands. So a planned task waits for its predecessors' planned
//!     time twice, and for each for that many ticks or handovers; and for the
//!     tenth of rule 7.
//!  9. The root is outside the plan, but the program's next steps depend on it: when
//!     it wakes it goes first, at the next yield or tick, or when the turn of
//!     rule 7 ends that somebody has, until it gives way or the next tick comes;
//!     once between two ticks that hit planned tasks, and the turns of the others
//!     do not wait for that.
//! 10. When more than two thirds of the plan's tasks have been demoted, the plan is dropped
//!     at the next tick: all that are ready go to the fallback queue, by rank, and round
//!     robin runs. Tasks outside the plan, however many and however long they run,
//!     say nothing about what is in it.
//! 11. Shortest first keeps at no time more tasks waiting than another order (Schrage, A
//!     proof of the optimality of the shortest remaining processing time discipline, 1968),
//!     unless one waits for another, which a record does not say. So it is told by the
//!     turnaround: when the tasks that have come are later than when they were measured, by
//!     more than 1/[`BEHIND_BEYOND`] of all measured turnaround together and a tick for each
//!     task of the plan, the replay is behind, and the plan is dropped at that tick: all that
//!     are ready go to the fallback queue, first those that are late, as they came, and
//!     then the others, by rank. Not counted are [`LATE_BY_ITSELF`] times what a late task
//!     has used beyond its record, and, for each task of the plan, what all have used beyond
//!     their record and unknown tasks at all. The plan stays if the call that started it says
//!     so ([`Behind`]), or if the user has set priorities or deadlines. After the last
//!     task's end the status tells, with nothing left out, whether the replay was slower.
//!
//! **Cost.** Measuring adds to a switch one counter read and six memory accesses.
//! Following the plan, a yield that keeps the CPU moves one pointer aside and back and
//! counts; other picks are a find-first-set over two words, and a return to the ready set is
//! a binary search in the task's band and, among those who stand at the same place, a walk
//! past 64 at most. The counter is read only when the CPU may change hands. Once, when
//! a command is taken, every ready task is looked at, and every place of the plan; once,
//! when a task is demoted, those who stand where it stands. A tick looks at 64 tasks.
//! Nothing allocates in pick, put or tick: the calls do.
//!
//! **Several CPUs.** These are the rules of one CPU. Several follow one plan if they are connected, and
//! the rules hold for them together: [`Together`] says how.
//!
//! **Limits.** Ticks and preemption
//! (`axtask/preempt`) are needed for rules 7 to 11. A block and an exit look the same, so rule
//! 11 counts who is blocked when it wakes, and until then as if it had ended
//! (`docs/adr/0016-behind-the-measured-run.md`).
//!
//! # Map
//!
//! Each file knows those above it and none below.
//!
//! | file | what it is |
//! |---|---|
//! | `error`, `status`, `counters` | why a call is refused; what PBG says of itself; what it counts |
//! | [`stored`] | the profile, as data and as bytes |
//! | `cell`, `phase_list`, `record`, `recorder` | numbers with one writer; what a task did, and the table of that |
//! | `described` | what a measurement has to be told before it is a profile |
//! | `task` | what a task carries with it |
//! | `caller` | the CPU that makes a call, and which ready tasks it may have |
//! | [`plan`] | the order of tasks that is made of a profile |
//! | `ready_set` | who is ready by the plan |
//! | `replay` | following the plan |
//! | `control`, `source` | the calls, and how the scheduler learns of them |
//! | `console` | a profile's way out |
//! | `grant` | what a CPU may do without the lock |
//! | `engine` | all that is decided; the CPU that calls is a parameter |
//! | `front` | the schedulers of one CPU, and of several under one lock |

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
pub use control::{BasePolicy, Control, LoadError};
pub use front::{PbgScheduler, Together};
pub use pbg_profile as stored;
pub use pbg_profile::MAX_TASKS;
pub use pbg_record::{About, CLOSE, Error, RECORD_BYTES, RECORDED_PHASES, STORED_BYTES, recorded};
pub use plan::{BLOCKS_IN_FULL, EQUAL_WITHIN, Late, Plan, PlannedTask, Step, Weight};
pub use replay::{
    Behind, ENTRY_BYTES, FREE_YIELDS, LATE_BY_ITSELF, OVERRUN_FACTOR, OVERRUN_HANDOVERS,
    OVERRUN_TICKS, PLAN_TICKS,
};
#[cfg(feature = "model")]
pub use simulated::run_together;
#[cfg(feature = "model")]
pub use source::PerThread;
pub use source::{CONTROL, ControlSource, SystemControl};
pub use status::{BEHIND_BEYOND, Cause, Divergence, Mode, Status};
pub use task::{PbgState, PbgTask, SLICE_TICKS};
