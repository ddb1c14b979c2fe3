//! Where atomics and what is shared under a protocol come from: this file is loom's where
//! `make interleavings` builds it, and a test that plays with other schedules puts its own in its
//! place.

#[cfg(not(loom))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
};
#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
};
