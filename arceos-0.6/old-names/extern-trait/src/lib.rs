//! `extern-trait` 0.5, which `ax-task` has, for those that ask for 0.4.

#![no_std]

pub use extern_trait::*;
