//! Runs cases, side by side where they may, and tells what became of them.
//!
//! Not libtest-mimic, whose cases neither count tests nor say what keeps them apart: one that
//! waits for another there takes the place of one that could run.

mod case;
mod context;
mod order;
mod report;
mod run;

pub use case::{Case, case};
pub use context::{Call, Context, Output};
pub use run::{matching, run};
