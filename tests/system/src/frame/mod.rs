//! Runs cases, several at a time where they may, and reports each.
//!
//! This is not libtest-mimic, whose cases neither count tests nor declare what keeps them apart. A
//! case that waits for another there takes the place of one that could run.

mod case;
mod context;
mod order;
mod report;
mod run;

pub use case::{Case, case};
pub use context::{Call, Context, Output};
pub use run::run;
