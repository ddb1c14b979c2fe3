//! Running coroutines: the queues, the workers that poll what is in them, and the system below.

pub(crate) mod budget;
pub(crate) mod inbox;
pub(crate) mod platform;
pub(crate) mod queue;
pub(crate) mod ready;
pub(crate) mod run_until;
pub(crate) mod worker_state;

pub(crate) mod worker;
pub(crate) mod yielding;
