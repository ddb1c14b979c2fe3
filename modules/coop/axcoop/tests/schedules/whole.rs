// The executor with the state machine of the library.

include!("executor.rs");

#[path = "../../src/state.rs"]
mod state;
