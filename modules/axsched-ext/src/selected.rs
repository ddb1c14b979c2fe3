//! The policy that this build has chosen, by Cargo feature.

macro_rules! refuse_both {
    ($($a:literal and $b:literal;)*) => {$(
        #[cfg(all(feature = $a, feature = $b))]
        compile_error!(concat!(
            "features `", $a, "` and `", $b, "` are both on: choose one policy per build"
        ));
    )*};
}

refuse_both! {
    "sched_fifo" and "sched_rr";
    "sched_fifo" and "sched_cfs";
    "sched_fifo" and "sched_sjf";
    "sched_fifo" and "sched_mlfq";
    "sched_fifo" and "sched_pbg";
    "sched_rr" and "sched_cfs";
    "sched_rr" and "sched_sjf";
    "sched_rr" and "sched_mlfq";
    "sched_rr" and "sched_pbg";
    "sched_cfs" and "sched_sjf";
    "sched_cfs" and "sched_mlfq";
    "sched_cfs" and "sched_pbg";
    "sched_sjf" and "sched_mlfq";
    "sched_sjf" and "sched_pbg";
    "sched_mlfq" and "sched_pbg";
}

pub use policy::*;

#[cfg(not(any(
    feature = "sched_rr",
    feature = "sched_cfs",
    feature = "sched_sjf",
    feature = "sched_mlfq",
    feature = "sched_pbg"
)))]
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

#[cfg(feature = "sched_cfs")]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "cfs";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = false;
    /// The task wrapper.
    pub type Task<T> = crate::CfsTask<T>;
    /// The scheduler.
    pub type Scheduler<T> = crate::CfsScheduler<T>;
}

#[cfg(feature = "sched_sjf")]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "sjf";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = false;
    /// The task wrapper.
    pub type Task<T> = crate::SjfTask<T>;
    /// The scheduler.
    pub type Scheduler<T> = crate::SjfScheduler<T>;
}

#[cfg(feature = "sched_mlfq")]
mod policy {
    /// The policy's short name, as in the result lines.
    pub const NAME: &str = "mlfq";
    /// Whether the PBG calls do anything in this build.
    pub const HAS_PBG: bool = false;
    /// The task wrapper.
    pub type Task<T> = crate::MlfqTask<T>;
    /// The scheduler.
    pub type Scheduler<T> = crate::MlfqScheduler<T>;
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
