//! The result lines: what a guest prints for programs, and how they read it.
//!
//! A line is a tag, a blank and one JSON object. The guest writes it with
//! [`to_line`](ResultLine::to_line), tools read it with [`read`](ResultLine::read); both
//! from the same struct, so there is one list of keys. Units and ranges stand at the fields.
//!
//! | tag | struct | printed |
//! |---|---|---|
//! | `SCHED-TASK` | [`TaskLine`] | for each task in each phase |
//! | `SCHED-RUN` | [`RunLine`] | for each phase, after its tasks |
//! | `SCHED-TRACE` | [`TraceLine`] | for each task in each phase, with `TRACE=y` |
//! | `SCHED-EVENTS` | [`EventsLine`](events::EventsLine) | for each piece of the log of each CPU in each phase, with `TRACE=events` |
//! | `SCHED-PBG` | [`PbgLine`] | for each replay, and for each profile that was refused |
//! | `SCHED-COST` | [`CostLine`] | by the app `cost`, for each phase and number of tasks |
//! | `SCHED-WAKE` | [`WakeLine`] | by the app `wake`, for each phase and queue |
//! | `SCHED-COOP` | [`CoopLine`] | by the app `coop-cost`, for each figure |
//! | `SCHED-CONN` | [`ConnLine`] | by the app `connections`, for each run and, where it has several, each priority |
//!
//! ```
//! use sched_tests_results::{Kind, ResultLine, RunLine};
//!
//! let console = "booting\r\n".to_owned() + &RunLine::default().to_line() + "\r\n";
//! for line in console.lines() {
//!     if let Some((Kind::Run, json)) = Kind::split(line) {
//!         let run = RunLine::from_json(json)?;
//!         assert_eq!(run.context_switches, 0);
//!     }
//! }
//! # Ok::<_, sched_tests_results::ReadError>(())
//! ```
//!
//! [`table`] makes the table for people from the same lines.
//!
//! **The contract.**
//!
//! 1. A line is on one line of the console and begins there; it ends with LF or CR LF.
//! 2. Keys may be added, so a reader ignores those that it does not know.
//! 3. A key is never renamed, and none goes. A reader refuses a line that lacks one, and
//!    names all that are missing. Keys of an [`Option`] and of a `bool` that is false by
//!    default may be absent.
//! 4. All times are whole nanoseconds. Those that are points in time count from the start of
//!    their phase, just before its first task is submitted. Under counted time
//!    (`"timing":"icount"`) a nanosecond is an instruction.
//! 5. The version of this crate is that of the contract ([`VERSION`]): a key that is added
//!    makes a minor one.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod account;
mod conn;
pub mod events;
mod lines;
mod pbg;
mod read;
mod table;
mod tick_phase;

pub use account::{Account, NoAccount, TOLERANCE_PERCENT};
pub use conn::ConnLine;
pub use lines::{Context, CoopLine, CostLine, RunLine, TaskLine, TraceLine, WakeLine};
pub use pbg::{Divergence, Followed, PbgLine, Refused};
pub use read::{Kind, ReadError, ResultLine};
pub use table::{PhaseLines, table};
pub use tick_phase::TickPhase;

/// The version of the contract.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The value of `timing` where time is counted instructions.
pub const COUNTED: &str = "icount";
