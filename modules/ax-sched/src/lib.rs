//! The selected policy under every name that `ax-task` 0.5 and 0.6 may ask for.
//!
//! `[patch.crates-io]` puts this package in place of the registry's `ax-sched` 0.5, and an
//! unmodified `ax-task` runs on it. It has all features and names of [`axsched`], the stand-in for
//! the line of ArceOS before, because the trait is the same.

#![no_std]
#![forbid(unsafe_code)]

pub use axsched::*;
