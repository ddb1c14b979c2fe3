//! Each switch of a task, for a trace of the run: `make run TRACE=events`.
//!
//! The [meter](crate::meter) tells of each stay on the CPU that ends, the
//! [ledger](crate::ledger) of each piece of time without a metered task, and the scheduler's
//! observer (`axsched::observe`) of each task that becomes ready. What they tell is packed into a
//! log for each CPU ([`sched_tests_results::events`]), and printed when all phases are over.
//!
//! A value of `TRACE` of its own, beside the bins of [`trace`](crate::trace): a log takes
//! megabytes, of memory and of the console, and a switch costs more than with bins.
//!
//! The feature `events` decides whether an image has logs or calls that do nothing, so that an
//! image without them pays nothing.

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
