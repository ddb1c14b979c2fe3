//! Tests from inside. They are not beside what they test, as that is built again elsewhere with
//! other atomics.

mod executor;
mod lent;
mod machine;
mod model;
mod state;
mod table;
