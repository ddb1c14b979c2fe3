//! The cost of each call of a scheduler, on the host: the scenes in which calls are counted, and the
//! schedulers that play them, ours and the registry's.
//!
//! | module | contents |
//! |---|---|
//! | [`machine`] | one CPU: a scheduler, the task that has the CPU, time, ticks |
//! | [`scene`] | the operations, and a scene for each |
//! | [`measured`] | the calls that Callgrind counts, and nothing else |
//! | [`clock`] | the time of a scene |
//! | [`schedulers`] | the list of schedulers |
//! | [`stock`] | the registry's, under our trait |
//! | [`memory`] | the sizes of a task and a queue |
//!
//! `benches/callgrind.rs` runs `sched-bench SCHEDULER OPERATION TASKS TIMES` under Callgrind, a
//! process for each. `sched-memory` prints sizes; its allocator counts, so it is a program of its
//! own.

pub mod clock;
pub mod machine;
pub mod measured;
pub mod memory;
pub mod scene;
pub mod schedulers;
pub mod stock;

/// Numbers of tasks, the running one among them.
pub const TASKS: [usize; 3] = [4, 256, 4_096];
