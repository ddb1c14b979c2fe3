//! Record once, then play the recording under every policy's real code, on 1 to 64 CPUs, in
//! virtual time.
//!
//! | module | its business |
//! |---|---|
//! | [`workload`] | what a program does |
//! | [`recorded`] | what it did in a recording |
//! | [`waits`] | who waits for whom |
//! | [`programs`] | the same as programs of the model |
//! | [`policies`] | every policy of the list and the registry's |
//! | [`costs`] | what a yield costs under each |
//! | [`play`] | a workload under a policy |
//! | [`trace`] | who had which CPU when, in a workload that was played |
//! | [`calibrate`] | a recording less what its own scheduler took |
//! | [`vary`] | the same program on another day |
//! | [`whatif`] | the same program in a changed world |
//! | [`bound`] | how low an average turnaround can be at all |
//! | [`time`] | nanoseconds, and the counts that policies read |
//!
//! A run is a function of its arguments: two runs on two machines give the same bytes.
#![forbid(unsafe_code)]

pub mod bound;
pub mod calibrate;
pub mod costs;
pub mod play;
pub mod policies;
pub mod programs;
pub mod recorded;
pub mod time;
pub mod trace;
pub mod vary;
pub mod waits;
pub mod whatif;
pub mod workload;
