//! Waiting for each other: join handles, loans of a priority, locks, semaphores and channels.

#[cfg(not(loom))]
pub mod channel;
pub(crate) mod join;
pub(crate) mod loan;
#[cfg(not(loom))]
pub(crate) mod mutex;
#[cfg(not(loom))]
pub(crate) mod resource;
#[cfg(not(loom))]
pub(crate) mod semaphore;
#[cfg(not(loom))]
pub(crate) mod waiters;
