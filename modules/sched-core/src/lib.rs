//! The parts of a scheduler for ArceOS.
//!
//! A policy implements [`event::Policy`]; [`event::Adapter`] makes a [`BaseScheduler`] of it, which
//! `axtask` drives. This crate decides nothing: policies do.
//!
//! # Map
//!
//! | module | what it is |
//! |---|---|
//! | [`base`] | [`BaseScheduler`], and the contract as `axtask` really uses it |
//! | [`event`] | [`Policy`](event::Policy), and the adapter that turns the trait's calls into typed events |
//! | [`task`] | the task wrapper, with a policy's state of the task |
//! | [`queue`], [`link`] | a FIFO queue whose links are in the tasks |
//! | [`ordered`], [`buckets`], [`classes`] | queues by key: a tree, buckets of keys, a list for each class |
//! | [`nice`], [`virtual_time`] | for policies that share by weight: nice values, and a queue's virtual time |
//! | [`run_interval`], [`clock`], [`units`] | the CPU time of a task, the counter that measures it, and its unit |
//! | [`room`] | allocation that may fail |
//! | [`steps`] | feature `steps`: counts the steps of a call in tests |
//!
//! The crate is `no_std`, and nothing in it allocates inside a scheduler call.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod base;
pub mod buckets;
pub mod classes;
pub mod clock;
pub mod event;
pub mod link;
pub mod nice;
pub mod ordered;
pub mod queue;
pub mod room;
pub mod run_interval;
pub mod steps;
pub mod task;
pub mod units;
pub mod virtual_time;

pub use base::BaseScheduler;

/// Compiles and runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
