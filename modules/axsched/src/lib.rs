#![no_std]
pub use axsched_upstream::*;
