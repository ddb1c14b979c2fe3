//! Each switch of a task, for a trace of the run: `make run TRACE=events`.
//!
//! The [meter](crate::meter) reports each stay on the CPU that ends, and the
//! [ledger](crate::ledger) each piece of time without a metered task. The scheduler's observer
//! (`axsched::observe`) reports each task that becomes ready. The reports are packed into one log
//! per CPU ([`sched_tests_results::events`]), which is printed when all phases are over.
//!
//! `events` is a value of `TRACE` beside the bins of [`trace`](crate::trace), because it costs
//! more. A log takes megabytes of memory and of console output, and a switch costs more than with
//! bins.
//!
//! The feature `events` decides whether an image has logs or calls that do nothing. An image
//! without logs pays nothing.

#[cfg(any(all(target_os = "none", feature = "events"), test))]
mod log;

#[cfg(all(target_os = "none", feature = "events"))]
mod kept;
#[cfg(all(target_os = "none", feature = "events"))]
pub(crate) use kept::*;

#[cfg(not(all(target_os = "none", feature = "events")))]
mod none;
#[cfg(not(all(target_os = "none", feature = "events")))]
pub(crate) use none::*;
