//! Promises of the delegated scheduler for tasks outside all enclaves: those of RR. Agents are tested
//! in the crate `delegated`.

pub use super::rr::{TURNS, promises};
