//! When a task had its CPU and when it was blocked, for a chart of the run: `make run TRACE=y`.
//!
//! The meter reports each stay on the CPU to a `Recorder`. The feature `trace` decides which one an
//! image has. One keeps the time in bins. The other does nothing, so an image without a trace pays
//! nothing.

use alloc::vec::Vec;

#[cfg(any(all(target_os = "none", feature = "trace"), test))]
mod bins;
#[cfg(all(target_os = "none", not(feature = "trace")))]
mod none;

#[cfg(all(target_os = "none", feature = "trace"))]
pub(crate) use bins::Bins as Recorder;
#[cfg(all(target_os = "none", not(feature = "trace")))]
pub(crate) use none::NoTrace as Recorder;

/// True if this image keeps a trace.
#[cfg(target_os = "none")]
pub(crate) const IS_KEPT: bool = cfg!(feature = "trace");

/// The first width of a bin, in nanoseconds: a tenth of a tick.
#[cfg(target_os = "none")]
pub(crate) const BIN_NS: u64 = 1_000_000;

/// The CPU time and the blocked time of a task in each bin of time since the start of its phase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The width of a bin. A task that ends early may have narrower bins than others of its phase.
    pub bin_ns: u64,
    /// The time on the CPU in each bin, up to the last that has any. The sum is the time on the CPU
    /// until the work was done, to the nanosecond.
    pub run_ns: Vec<u64>,
    /// The blocked time in each bin. In the time that is in neither list, from its submission to
    /// its end, the task was ready and had no CPU.
    pub blocked_ns: Vec<u64>,
}
