//! Tests that reach inside the crate. They are not beside the code they test, because that code is built again
//! elsewhere with other atomics.

mod blocks;
mod domain;
mod donations;
mod fixture;
mod hook;
mod machine;
mod model;
mod polls;
mod state;
mod table;
mod waiters;
mod wheel;
mod workers;
