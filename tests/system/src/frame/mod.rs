//! Runs cases, side by side where they may, and tells what became of them.

mod case;
mod child;
mod context;
mod order;
mod report;
mod run;

pub use case::{Case, case};
pub use child::Children;
pub use context::{Call, Context, Output};
pub use run::{matching, run};
