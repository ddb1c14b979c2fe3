//! The calls of PBG, for Rust and, with a `sys_` prefix, for C.
//!
//! ```text
//!   measure_start ──> the program runs ──> measure_end ──> start_pbg ──> the program runs again
//! ```
//!
//! The task that makes a starting call is the *root*: its descendants are the
//! program. A call takes effect at once for every task spawned after it. A call
//! that fails changes nothing.
//!
//! | call | needs | takes |
//! |---|---|---|
//! | [`measure_start`], [`measure_start_under`] | neither measuring nor replaying | 4 MiB the first time, kept ([`RECORD_BYTES`](crate::pbg::RECORD_BYTES) a task) |
//! | [`measure_end`] | measuring | 1,184 bytes a recorded task ([`STORED_BYTES`](crate::pbg::STORED_BYTES)), kept, and 16 more for the call |
//! | [`start_pbg`], [`start_pbg_with`] | a profile; neither measuring nor replaying | 184 bytes a planned task ([`ENTRY_BYTES`](crate::pbg::ENTRY_BYTES)) and 16 a step, kept, and the plan for the call |
//! | [`label_next`] | | nothing |
//! | [`print_profile`] | a profile | at most 1,184 bytes a task and the profile's bytes, for the call |
//!
//! | error | errno | when |
//! |---|---|---|
//! | [`Error::NotBuiltIn`] | −38 `ENOSYS` | the build has another policy; with the feature `recorded`, that is an error of `start_pbg` and `measure_start_under` only |
//! | [`Error::NotSupported`] | −95 `EOPNOTSUPP` | more than one CPU is scheduling under PBG, and they are not [connected](crate::pbg::SmpPbgScheduler::connect) |
//! | [`Error::NotConnected`] | −107 `ENOTCONN` | `measure_start` with the feature `recorded`: more than one CPU is scheduling, and [`connect`](crate::recorded::Recording::connect) was not called |
//! | [`Error::AlreadyMeasuring`] | −114 `EALREADY` | `measure_start` while measuring |
//! | [`Error::NotMeasuring`] | −22 `EINVAL` | `measure_end` without `measure_start` |
//! | [`Error::NoProfile`] | −61 `ENODATA` | `start_pbg` or `print_profile` before a measurement has ended |
//! | [`Error::Measuring`] | −16 `EBUSY` | `start_pbg` while measuring |
//! | [`Error::Replaying`] | −16 `EBUSY` | `measure_start` while replaying |
//! | [`Error::AlreadyReplaying`] | −114 `EALREADY` | `start_pbg` while replaying |
//! | [`Error::NoMemory`] | −12 `ENOMEM` | the record or the plan does not fit |
//! | [`Error::Contended`] | −11 `EAGAIN` | another task is inside one of these calls, or looks at the status; on several CPUs also: the call of another has not taken effect yet, which it does when that task spawns or gives way |
//! | [`Error::BadLabel`] | −84 `EILSEQ` | a label is empty, longer than 32 bytes, not UTF-8, or has control characters |
//!
//! End a measurement from the root, when the program's tasks have ended. The last run interval of
//! each counts as ended by its exit.
//!
//! A profile can be kept for the next boot. [`print_profile`] prints it on the console,
//! [`Control`](crate::pbg::Control)`::profile` returns it as data, and `load` takes one in place of
//! a measurement.
//!
//! There is one replay per boot, and it lasts until the system ends. After the last planned task has
//! ended, only the fallback policy is left, and the plan does not know tasks that are spawned later.
//! Several CPUs must be connected for these calls, because a queue does not see which task spawns
//! another.

pub use crate::pbg::Error;
use crate::pbg::{About, BasePolicy, CONTROL, OnSlowReplay, StoreError, console};
use crate::recorded::RECORDING;
use crate::selected::{HAS_PBG, IS_RECORDED};

const fn built_in() -> Result<(), Error> {
    if HAS_PBG {
        Ok(())
    } else {
        Err(Error::NotBuiltIn)
    }
}

/// Starts measuring: from now on the caller's descendants are recorded. They run under round robin
/// or, in a build with the feature `recorded`, under its policy.
///
/// # Errors
/// See the [table](self).
pub fn measure_start() -> Result<(), Error> {
    if IS_RECORDED {
        return RECORDING.measure_start();
    }
    measure_start_under(BasePolicy::RoundRobin)
}

/// Starts measuring under a base policy of choice, which only PBG has.
///
/// # Errors
/// See the [table](self).
pub fn measure_start_under(base: BasePolicy) -> Result<(), Error> {
    built_in()?;
    CONTROL.measure_start_under(base)
}

/// Ends measuring and makes a profile, which replaces an earlier one. Returns the number of tasks
/// in it.
///
/// # Errors
/// See the [table](self).
pub fn measure_end() -> Result<usize, Error> {
    if IS_RECORDED {
        return RECORDING.measure_end();
    }
    built_in()?;
    CONTROL.measure_end()
}

/// Makes a plan from the profile and follows it: from now on the caller's descendants run in its
/// order. Returns the number of tasks planned.
///
/// # Errors
/// See the [table](self).
pub fn start_pbg() -> Result<usize, Error> {
    start_pbg_with(OnSlowReplay::DropPlan)
}

/// Starts PBG with a choice for a replay that is slower than the measured run (rule 11 of [`pbg`]).
/// [`start_pbg`] drops the plan.
///
/// # Errors
/// See the [table](self).
pub fn start_pbg_with(on_slow_replay: OnSlowReplay) -> Result<usize, Error> {
    built_in()?;
    CONTROL.start_pbg_with(on_slow_replay)
}

/// Gives a label to the task that is spawned next. Its key then comes from the label and not from
/// its place among the spawns, so another run may spawn in another order. Tasks of a program with
/// the same label are left out of the profile.
///
/// The label goes to the next spawn of any task. If other tasks may spawn between this call and the
/// caller's spawn, keep preemption off around both.
///
/// # Errors
/// Returns [`Error::NotBuiltIn`] or [`Error::BadLabel`].
pub fn label_next(label: &str) -> Result<(), Error> {
    if IS_RECORDED {
        return RECORDING.label_next(label);
    }
    built_in()?;
    CONTROL.label_next(label)
}

/// Prints the present profile as lines of text, from which `make run` and `make profile` take it
/// ([`stored::read_frame`](crate::pbg::stored::read_frame)). `print` gets the lines one by one, each
/// with its end. `about` goes into the header of a measurement. A loaded profile keeps its own header,
/// unless its frequency is unknown.
///
/// ```
/// use axsched_ext::{pbg::About, syscall};
///
/// let about = About::program("hello", 1_000_000_000); // its name, and the counter's frequency
/// if let Err(why) = syscall::print_profile(&about, |line| print!("{line}")) {
///     println!("no profile: {why}");
/// }
/// ```
///
/// Call it when the program's work is over, because a console is slow and the caller waits for it.
///
/// # Errors
/// Returns an error of the [table](self), or an error if no machine can be as `about` says.
pub fn print_profile(about: &About, print: impl FnMut(&str)) -> Result<(), StoreError> {
    if IS_RECORDED {
        return console::print_profile(RECORDING.profile(about)?, print);
    }
    built_in()?;
    CONTROL.print_profile(about, print)
}

/// The C ABI; declared in `include/axsched_ext.h`.
mod c {
    use core::ffi::{CStr, c_char};

    use super::Error;

    fn code(result: Result<usize, Error>) -> i32 {
        // A count of tasks is at most `MAX_TASKS`, far below i32::MAX.
        result.map_or_else(Error::errno, |tasks| tasks as i32)
    }

    /// Calls [`measure_start`](super::measure_start), and returns 0 or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_measure_start() -> i32 {
        code(super::measure_start().map(|()| 0))
    }

    /// Calls [`measure_end`](super::measure_end), and returns the number of tasks or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_measure_end() -> i32 {
        code(super::measure_end())
    }

    /// Calls [`start_pbg`](super::start_pbg), and returns the number of tasks or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_start_pbg() -> i32 {
        code(super::start_pbg())
    }

    /// Calls [`label_next`](super::label_next), and returns 0 or a negative errno.
    ///
    /// # Safety
    /// `label` must point to bytes that end with a zero.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn sys_label_next(label: *const c_char) -> i32 {
        // SAFETY: the caller's promise is handed on.
        let label = unsafe { CStr::from_ptr(label) };
        let label = label.to_str().map_err(|_| Error::BadLabel);
        code(label.and_then(super::label_next).map(|()| 0))
    }
}

pub use c::{sys_label_next, sys_measure_end, sys_measure_start, sys_start_pbg};
