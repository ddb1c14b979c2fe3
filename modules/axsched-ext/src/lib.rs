//! Pluggable schedulers for ArceOS. One of them is **PBG**, program-behaviour-guided scheduling: the
//! first run of a program is measured, and later runs follow a plan made from it.
//!
//! # Map
//!
//! | module | what it is |
//! |---|---|
//! | [`base`] | [`BaseScheduler`], and the contract as `axtask` really uses it |
//! | [`event`] | what turns the trait's calls into typed events |
//! | [`fifo`], [`rr`], and the others of the [list](selected) | one policy per file: numbered rules, state, code, tests |
//! | [`pbg`] | recording, the profile, the plan, and following it |
//! | [`recorded`] | a layer around any policy that records as PBG does |
//! | [`balance`] | a layer around any policy that keeps several CPUs busy |
//! | [`syscall`] | start measuring, end measuring, start PBG: for Rust and C |
//! | [`selected`] | the list of policies, and the one that this build has chosen |
//! | [`task`], [`ordered`], [`buckets`], [`classes`] | the task wrapper, and the queues by key that it can stand in |
//! | [`nice`], `virtual_time` | for policies that share by weight: nice values, and a queue's virtual time |
//! | [`run_interval`], [`clock`], [`units`] | how long a task had the CPU, by which counter, in which unit |
//! | `model`, `conformance` | feature `std`: `axtask` on the host, and what every scheduler must satisfy |
//!
//! # Choosing a policy
//!
//! A build has at most one policy feature, named `sched_` and the policy's module, such as
//! `sched_rr`. Without one the policy is FIFO. Every policy is a library type in any build, because
//! tests and simulations use them side by side. The feature decides which policy [`selected`] names,
//! and so which one the `axsched` shim under `axtask` uses.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod selected;
pub mod syscall;

pub use delegated::{self, DelegatedScheduler, DelegatedTask};
pub use pbg::{self, PbgScheduler, PbgTask, recorded};
pub use sched_core::{
    BaseScheduler, base, buckets, classes, clock, event, link, nice, ordered, queue, run_interval,
    task, units, virtual_time,
};
#[cfg(feature = "std")]
pub use sched_model::{conformance, model};
pub use sched_policies::{
    CfsScheduler, CfsTask, CoopScheduler, CoopTask, EevdfScheduler, EevdfTask, FifoScheduler,
    FifoTask, MlfqScheduler, MlfqTask, RrScheduler, RrTask, SjfScheduler, SjfTask, cfs, coop,
    eevdf, fifo, mlfq, rr, sjf,
};

/// Several CPUs: a layer around any policy.
pub mod balance {
    #[cfg(feature = "std")]
    pub use pbg::run_together;
    pub use sched_smp::*;
}
