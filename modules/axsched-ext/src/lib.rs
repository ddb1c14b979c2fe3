//! Pluggable schedulers for ArceOS, among them **PBG**, program-behaviour-guided
//! scheduling: the first run of a program is measured, later runs follow a plan
//! made from it.
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
//! One feature per build, `sched_` and the policy's module, as `sched_rr`; none means FIFO.
//! Every policy is compiled as a library type in any case (tests and
//! simulations use them side by side); the feature decides what [`selected`],
//! and with it the `axsched` shim under `axtask`, stands for.
#![cfg_attr(not(any(test, feature = "std")), no_std)]

extern crate alloc;

pub mod selected;
pub mod syscall;

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
