//! The policy that this build has chosen, by Cargo feature.

#[cfg(all(feature = "sched_fifo", feature = "sched_rr"))]
compile_error!("features `sched_fifo` and `sched_rr` are both on: choose one policy per build");
#[cfg(all(feature = "sched_fifo", feature = "sched_pbg"))]
compile_error!("features `sched_fifo` and `sched_pbg` are both on: choose one policy per build");
#[cfg(all(feature = "sched_rr", feature = "sched_pbg"))]
compile_error!("features `sched_rr` and `sched_pbg` are both on: choose one policy per build");

pub use policy::*;

#[cfg(not(any(feature = "sched_rr", feature = "sched_pbg")))]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "fifo";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = false;
    /// The task wrapper.
    pub type Task<T> = crate::FifoTask<T>;
    /// The scheduler.
    pub type Scheduler<T> = crate::FifoScheduler<T>;
}

#[cfg(feature = "sched_rr")]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "rr";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = false;
    /// Timer ticks per time slice, as upstream's `axtask` has it: 50 ms at 100 Hz.
    pub const SLICE_TICKS: usize = 5;
    /// The task wrapper.
    pub type Task<T> = crate::RrTask<T, SLICE_TICKS>;
    /// The scheduler.
    pub type Scheduler<T> = crate::RrScheduler<T, SLICE_TICKS>;
}

#[cfg(feature = "sched_pbg")]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "pbg";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = true;
    /// The task wrapper.
    pub type Task<T> = crate::PbgTask<T>;
    /// The scheduler.
    pub type Scheduler<T> = crate::PbgScheduler<T>;
}
