//! The parts that the scheduler test applications share.
//!
//! - [`runner`]: runs an application and prints its results
//! - [`work`]: a loop of known cost whose result can be checked
//! - [`results`]: the result lines, the table for people, the SRPT bound
//! - [`trace`]: when a task had its CPU, if the image was built to keep that
//! - [`platform`]: ArceOS, or threads of the host for debugging, behind one API
//! - [`kept`]: a profile that outlives the boot, in the image, on a disk or on the console
//! - [`latencies`]: a summary of many latencies
//! - [`config`]: the decisions of the build
//!
//! An application is an [`App`] with [`Task`]s, and [`run`] is all that it needs to call.

#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod config;
pub mod kept;
pub mod latencies;
#[cfg_attr(target_os = "none", path = "platform/arceos.rs")]
#[cfg_attr(not(target_os = "none"), path = "platform/host.rs")]
pub mod platform;
pub mod results;
pub mod runner;
pub mod trace;
pub mod work;

mod app;
mod events;
#[cfg(target_os = "none")]
mod ledger;
mod measured;
#[cfg(target_os = "none")]
mod meter;
#[cfg(all(target_os = "none", feature = "events"))]
mod observer;
mod pbg;
mod recorded;
mod run_phase;
mod window;

pub use app::{App, Task, TaskCtx};
pub use runner::run;
