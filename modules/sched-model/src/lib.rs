//! A test kit for schedulers of ArceOS, on the host.
//!
//! | module | what it is |
//! |---|---|
//! | [`model`] | a machine of 1 to 64 CPUs that calls a scheduler as `axtask` does, in virtual time |
//! | [`conformance`] | the rules that every scheduler must satisfy, in one call: [`conformance::check`] |
//! | [`mod@bench`] | one CPU that a test moves by hand, for the rules of a policy |
//!
//! A scheduler is any type that implements [`BaseScheduler`](sched_core::BaseScheduler).

extern crate alloc;

pub mod bench;
pub mod conformance;
pub mod model;
