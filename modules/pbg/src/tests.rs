//! PBG rule by rule, on one queue, with a clock moved by hand.

mod behind;
mod calls;
pub(super) mod cpu;
mod demotion;
mod dropping;
mod fallback;
mod measuring;
mod order;
mod program;
mod root;
