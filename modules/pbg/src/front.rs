//! The schedulers that `axtask` calls, around the [engine](super::engine).

mod one_cpu;
mod placement;
mod several_cpus;

pub use one_cpu::PbgScheduler;
pub use several_cpus::Together;
