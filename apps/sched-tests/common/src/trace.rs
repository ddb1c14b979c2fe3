//! When a task had its CPU and when it was blocked, for a chart of the run: `make run TRACE=y`.
//!
//! The meter tells a `Recorder` of each stay on the CPU. The feature `trace` decides
//! which one an image has: one that keeps the time in bins, or one that does nothing, so
//! that an image without a trace pays nothing for it.

use alloc::vec::Vec;

#[cfg(any(all(target_os = "none", feature = "trace"), test))]
mod bins;
#[cfg(all(target_os = "none", not(feature = "trace")))]
mod none;

#[cfg(all(target_os = "none", feature = "trace"))]
pub(crate) use bins::Bins as Recorder;
#[cfg(all(target_os = "none", not(feature = "trace")))]
pub(crate) use none::NoTrace as Recorder;

/// Whether this image keeps a trace.
#[cfg(target_os = "none")]
pub(crate) const IS_KEPT: bool = cfg!(feature = "trace");

/// How wide a bin is at first. A tick is ten of it.
#[cfg(target_os = "none")]
pub(crate) const BIN_NS: u64 = 1_000_000;

/// How much CPU time a task had in each bin of time since the start of its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// How wide a bin is. Of one phase, a task that ends early has narrower bins.
    pub bin_ns: u64,
    /// The time on the CPU in each, to the last that has any; their sum is the time
    /// on the CPU until the work was done, to the nanosecond.
    pub run_ns: Vec<u64>,
    /// The time in each in which it was blocked. What is in neither, from its submission to
    /// its end, it was ready and had no CPU.
    pub blocked_ns: Vec<u64>,
}
