//! The lines of a phase and their keys, in the order in which they are written.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{COUNTED, Kind, ResultLine, TickPhase};

/// The keys that every line of a phase begins with.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Context {
    /// The name of the application.
    pub app: String,
    /// The guest's architecture: `x86_64`, `riscv64` or `aarch64`. Other names mean that a host ran
    /// the program.
    pub arch: String,
    /// The number of CPUs. A guest has 1 to 8.
    pub smp: u32,
    /// The policy, as the image was built: `rr`, `pbg-coop`, `stock-cfs`.
    pub sched: String,
    /// The phase: `run`, or under PBG `measure` and `replay`. The app `cost` also has `idle`, and
    /// `wake` has `before` and `after`. In `connections` it names the experiment.
    pub phase: String,
}

/// One task in one phase.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct TaskLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The task's name, unique in its phase.
    pub task: String,
    /// The time at which it was about to be spawned. For a late arrival, the time at which it was
    /// due.
    pub submit_ns: u64,
    /// The time at which it first got a CPU, not before `submit_ns`.
    pub first_run_ns: u64,
    /// The time at which its work was done, not before `first_run_ns`.
    pub finish_ns: u64,
    /// The time from `submit_ns` to `finish_ns`.
    pub turnaround_ns: u64,
    /// The time for which it was on a CPU, at most `turnaround_ns`.
    pub run_ns: u64,
    /// The number of times that it got a CPU from another task, at least 1.
    pub dispatches: u64,
    /// The number of its yields.
    pub yields: u64,
    /// The number of groups of work that it finished, in an app that leaves that number to the
    /// policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub groups: Option<u64>,
    /// The part of `run_ns` within the window, if the app shares the CPU in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_in_window_ns: Option<u64>,
    /// Its computation came out wrong, or its figures cannot be true; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub wrong: bool,
}

/// One phase as a whole.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct RunLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The unit of time: `icount`, an instruction, or `real`.
    pub timing: String,
    /// The divisor of the workload's counts, at least 1.
    pub scale: u64,
    /// The number of tasks, which is that of the `SCHED-TASK` lines. 0 in `cost`, whose tasks carry no
    /// instrument.
    pub tasks: usize,
    /// The average turnaround of the tasks, rounded down.
    pub avg_turnaround_ns: u64,
    /// The longest turnaround.
    pub max_turnaround_ns: u64,
    /// From the start of the phase to the end of the last task's work.
    pub makespan_ns: u64,
    /// Switches with one of the tasks at either end, each counted once.
    pub context_switches: u64,
    /// The average turnaround that shortest remaining processing time first would reach if
    /// switching cost nothing, from the tasks' `run_ns`. On one CPU no order has a lower one;
    /// on several it is no bound.
    pub srpt_bound_ns: u64,
    /// Jain's fairness index, 1 / tasks to 1, to six decimals: of the times run within the
    /// window in an app that shares the CPU, else of the ends.
    pub jain: f64,
    /// The makespan without the loops, for each yield, to three decimals. Only in the app `yield`
    /// on one CPU under counted time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_yield: Option<f64>,
    /// The phase of the timer tick at which it started, under counted time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick_phase: Option<TickPhase>,
    /// The CPU time of the tasks of the workload until their work was done. This key and the
    /// next four are there together or not at all ([`Account`](crate::Account)); all are the
    /// sum over all CPUs, within the makespan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_run_ns: Option<u64>,
    /// The CPU time of main, which submits the tasks and waits for them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub main_run_ns: Option<u64>,
    /// The CPU time of the kernel's `gc`, which reclaims ended tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gc_run_ns: Option<u64>,
    /// The rest: what tasks need to begin and to end, and the kernel's other helpers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rest_run_ns: Option<u64>,
    /// The time in which a CPU had nothing to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_ns: Option<u64>,
    /// The program keeps handles of ended tasks on purpose; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub holds_handles: bool,
    /// There is a `SCHED-TRACE` line for each task; absent if not.
    #[serde(default, skip_serializing_if = "is_false")]
    pub traced: bool,
    /// True if all tasks computed and counted right and the figures can be true.
    pub pass: bool,
}

impl RunLine {
    /// Returns true if time is counted instructions.
    pub fn is_counted(&self) -> bool {
        self.timing == COUNTED
    }
}

/// When one task had its CPU and when it was blocked in one phase.
///
/// Bin `i` of both lists is the time from `i` × `bin_ns` to (`i` + 1) × `bin_ns` after the
/// start of the phase. A list ends with the last bin that is not 0.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct TraceLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The task's name.
    pub task: String,
    /// The width of a bin, at least 1. It may differ from task to task.
    pub bin_ns: u64,
    /// The time on a CPU in each bin; the sum is the task's `run_ns`.
    pub run_ns: Vec<u64>,
    /// The time in each bin in which the task was blocked. In the time that is in neither list, from
    /// its submission to its end, it was ready and had no CPU.
    pub blocked_ns: Vec<u64>,
}

/// The cost of one yield among tasks that do nothing else. One of the two figures is there, to one
/// decimal.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CostLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The unit of time: `icount`, an instruction, or `real`.
    pub timing: String,
    /// The divisor of the number of yields, at least 1.
    pub scale: u64,
    /// The number of tasks that yield.
    pub tasks: usize,
    /// The cost where time is counted instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions_per_yield: Option<f64>,
    /// The cost in real time; on several CPUs the time that passes, whichever of them yields.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns_per_yield: Option<f64>,
}

/// How long it takes from a wake until the woken task runs, while a CPU idles. Nearest rank.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct WakeLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The unit of time: `icount`, an instruction, or `real`.
    pub timing: String,
    /// The divisor of the number of wakes, at least 1.
    pub scale: u64,
    /// The queue that the task was put into: `waker`, that of the CPU that woke it, or `idle`, that
    /// of a CPU with nothing to do.
    pub queue: String,
    /// The number of wakes.
    pub wakes: usize,
    /// The median of the times.
    pub median_ns: u64,
    /// The 99th percentile.
    pub p99_ns: u64,
    /// The longest time.
    pub worst_ns: u64,
    /// The number of wakes by their time. The first number counts those below a microsecond, number `i`
    /// those from 2^(`i` − 1) microseconds to below 2^`i`. The list ends with the last that is not 0.
    pub bins: Vec<u64>,
    /// The IPIs that were sent after these wakes, each until the next wake.
    pub interrupts: u64,
    /// The most IPIs after one wake.
    pub most_interrupts: u64,
}

/// The cost of coroutines, and that of threads of the same build if they have one.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct CoopLine {
    /// The phase that the line is of.
    #[serde(flatten)]
    pub context: Context,
    /// The unit of time: `icount`, an instruction, or `real`.
    pub timing: String,
    /// The divisor of the counts, at least 1.
    pub scale: u64,
    /// The name of the figure:
    ///
    /// | name | figure |
    /// |---|---|
    /// | `switch` | from one `yield_now` to the next |
    /// | `spread` | the most expensive switch over the cheapest |
    /// | `spawn` | spawning one and awaiting or joining it |
    /// | `batch` | spawning and awaiting or joining 250 at once |
    /// | `wake` | a wake to another one and a wake back |
    /// | `memory` | the memory of one beside its future, the most of all sizes of futures |
    /// | `connections` | the connections that fit, with three each |
    /// | `left` | the memory that was not given back |
    pub figure: String,
    /// The number of coroutines that there are.
    pub among: usize,
    /// The unit of `coroutines` and `threads`: `instructions`, `ns`, `bytes`, `connections` or `ratio`.
    pub unit: String,
    /// The figure of coroutines, to two decimals.
    pub coroutines: f64,
    /// The figure of threads, to two decimals, if they have one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<f64>,
    /// `coroutines` / `threads`, to three decimals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ratio: Option<f64>,
    /// The highest `ratio` that passes, or the lowest in `connections`. Without a `ratio` it limits
    /// `coroutines`. Absent where nothing is promised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<f64>,
    /// True if the figure is within the limit.
    pub pass: bool,
}

impl ResultLine for TaskLine {
    const KIND: Kind = Kind::Task;
}

impl ResultLine for RunLine {
    const KIND: Kind = Kind::Run;
}

impl ResultLine for TraceLine {
    const KIND: Kind = Kind::Trace;
}

impl ResultLine for CostLine {
    const KIND: Kind = Kind::Cost;
}

impl ResultLine for WakeLine {
    const KIND: Kind = Kind::Wake;
}

impl ResultLine for CoopLine {
    const KIND: Kind = Kind::Coop;
}

pub(crate) fn is_false(value: &bool) -> bool {
    !value
}
