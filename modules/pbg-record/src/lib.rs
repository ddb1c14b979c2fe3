//! Records what the tasks of a program do, under any scheduler of ArceOS.
//!
//! | module | what it is |
//! |---|---|
//! | [`recorder`] | the table of all recorded tasks, and which task each CPU runs |
//! | [`record`] | what one task did: its times, its phases, the tasks that it woke |
//! | [`cell`] | a label with one writer |
//! | [`described`] | what a measurement has to be told before it is a profile |
//! | [`error`] | why a call is refused |
//! | [`recorded`] | a layer around any policy that records as PBG does |
//!
//! A finished record becomes a [profile](pbg_profile). The rules are 1, 3 and 4 of the crate `pbg`.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod cell;
pub mod described;
pub mod error;
mod phase_list;
pub mod record;
pub mod recorded;
pub mod recorder;

pub use described::About;
pub use error::Error;
pub use phase_list::RECORDED_PHASES;
pub use record::{RECORD_BYTES, STORED_BYTES};
pub use recorder::WAKE_TICK_RATIO;
