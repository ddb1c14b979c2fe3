//! What each call of a scheduler costs, on the host: the scenes in which calls are counted, and
//! the schedulers that play them, ours and the registry's.
//!
//! | module | its business |
//! |---|---|
//! | [`machine`] | one CPU: a scheduler, the task that has the CPU, time, ticks |
//! | [`scene`] | the operations, and a scene for each |
//! | [`measured`] | the calls that Callgrind counts, and nothing else |
//! | [`clock`] | time, as a scene makes it pass |
//! | [`schedulers`] | the list of schedulers |
//! | [`stock`] | the registry's, under our trait |
//! | [`memory`] | what a task and a queue take |
//!
//! `benches/callgrind.rs` has Callgrind run `sched-bench SCHEDULER OPERATION TASKS`, a process for
//! each. `sched-memory` prints sizes; its allocator counts, so it is a program of its own.

pub mod clock;
pub mod machine;
pub mod measured;
pub mod memory;
pub mod scene;
pub mod schedulers;
pub mod stock;

/// How many tasks there are, the running one among them.
pub const TASKS: [usize; 3] = [4, 256, 4_096];
