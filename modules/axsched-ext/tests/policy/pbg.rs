//! Promises of PBG without a plan: those of RR, which it runs then. With one, see `model.rs`.

pub use super::rr::{TURNS, promises};
