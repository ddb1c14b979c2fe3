//! Waiting for a time.

pub(crate) mod interval;
pub(crate) mod sleep;
pub(crate) mod timeout;
pub(crate) mod timers;
pub(crate) mod wheel;
