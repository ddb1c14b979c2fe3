//! Pluggable schedulers for ArceOS.
#![cfg_attr(not(feature = "std"), no_std)]

extern crate alloc;

pub mod base;
#[cfg(feature = "std")]
pub mod model;
#[cfg(feature = "std")]
pub mod conformance;

pub use base::BaseScheduler;
