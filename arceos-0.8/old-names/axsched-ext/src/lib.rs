//! The calls of [`pbg_guest`] under the names of the kit's facade, as far as the test programs use them.

#![no_std]
#![cfg(target_os = "none")]

pub use ::pbg::recorded;
pub use sched_core::units;

/// Recording, the profile and the plan.
pub mod pbg {
    pub use ::pbg::*;
    pub use pbg_guest::CONTROL;
}

/// The calls of PBG, for Rust.
pub mod syscall {
    use pbg::BasePolicy;
    pub use pbg::Error;
    use pbg_guest::CONTROL;

    /// Starts measuring under round robin.
    ///
    /// # Errors
    /// Returns what [`pbg_guest::Control::measure_start_under`] returns.
    pub fn measure_start() -> Result<(), Error> {
        measure_start_under(BasePolicy::RoundRobin)
    }

    /// Starts measuring under a base policy of choice.
    ///
    /// # Errors
    /// Returns what [`pbg_guest::Control::measure_start_under`] returns.
    pub fn measure_start_under(base: BasePolicy) -> Result<(), Error> {
        CONTROL.measure_start_under(base)
    }

    /// Ends measuring, and returns the number of recorded tasks.
    ///
    /// # Errors
    /// Returns what [`pbg_guest::Control::measure_end`] returns.
    pub fn measure_end() -> Result<usize, Error> {
        CONTROL.measure_end()
    }

    /// Starts to follow the plan, and returns its number of tasks.
    ///
    /// # Errors
    /// Returns what [`pbg_guest::Control::start_pbg`] returns.
    pub fn start_pbg() -> Result<usize, Error> {
        CONTROL.start_pbg()
    }

    /// Gives a label to the thread that is spawned next.
    ///
    /// # Errors
    /// Returns what [`pbg_guest::Control::label_next`] returns.
    pub fn label_next(label: &str) -> Result<(), Error> {
        CONTROL.label_next(label)
    }
}
