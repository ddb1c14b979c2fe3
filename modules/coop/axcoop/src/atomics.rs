//! The source of atomics and of cells under a protocol. `make interleavings` builds this file with loom's, and a test
//! with other schedules replaces the file.

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
