//! Waiting for each other: join handles, donations of a priority, locks, semaphores and channels.

#[cfg(not(loom))]
pub mod channel;
pub(crate) mod donation;
pub(crate) mod join;
#[cfg(not(loom))]
pub(crate) mod mutex;
#[cfg(not(loom))]
pub(crate) mod resource;
#[cfg(not(loom))]
pub(crate) mod semaphore;
#[cfg(not(loom))]
pub(crate) mod waiters;
