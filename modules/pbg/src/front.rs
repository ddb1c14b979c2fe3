//! The schedulers that `axtask` calls, around the [engine](super::engine).
//!
//! | module | scheduler |
//! |---|---|
//! | `one_cpu` | [`PbgScheduler`]: the engine in the queue of one CPU, without a lock |
//! | `several_cpus` | [`SmpPbgScheduler`]: one engine for all CPUs, under one lock |
//! | `placement` | the part under that lock: which CPU may run a ready task, and which is interrupted for it |

mod one_cpu;
mod placement;
mod several_cpus;

pub use one_cpu::PbgScheduler;
pub use several_cpus::SmpPbgScheduler;
