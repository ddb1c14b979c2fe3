//! Tests for schedulers of ArceOS, on the host.
//!
//! | module | what it is |
//! |---|---|
//! | [`model`] | a machine of 1 to 64 CPUs that calls a scheduler as `axtask` does, in virtual time |
//! | [`conformance`] | what every scheduler must satisfy, in one call: [`conformance::check`] |
//! | [`mod@bench`] | one CPU that a test moves by hand, for the rules of a policy |
//!
//! A scheduler is whatever implements [`BaseScheduler`](sched_core::BaseScheduler).

extern crate alloc;

pub mod bench;
pub mod conformance;
pub mod model;
