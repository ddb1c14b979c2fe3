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
//! | [`measure_end`] | measuring | 600 bytes a recorded task ([`STORED_BYTES`](crate::pbg::STORED_BYTES)), kept, and 16 more for the call |
//! | [`start_pbg`], [`start_pbg_with`] | a profile; neither measuring nor replaying | 184 bytes a planned task ([`ENTRY_BYTES`](crate::pbg::ENTRY_BYTES)) and 16 a step, kept, and the plan for the call |
//! | [`label_next`] | | nothing |
//! | [`print_profile`] | a profile | 600 bytes a task and the profile's bytes, for the call |
//!
//! | error | errno | when |
//! |---|---|---|
//! | [`Error::NotBuiltIn`] | −38 `ENOSYS` | the build has another policy; with the feature `recorded`, that is an error of `start_pbg` and `measure_start_under` only |
//! | [`Error::NotSupported`] | −95 `EOPNOTSUPP` | more than one CPU is scheduling under PBG, and they are not [connected](crate::pbg::SmpPbgScheduler::connect) |
//! | [`Error::NotConnected`] | −107 `ENOTCONN` | `measure_start` with the feature `recorded`: more than one CPU is scheduling, and nobody has called [`connect`](crate::recorded::Recording::connect) |
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
//! End a measurement from the root, when the program's tasks have ended: the last
//! run interval of each counts as ended by its exit.
//!
//! A profile can be kept for the next boot: [`print_profile`] puts it on the console,
//! [`Control`](crate::pbg::Control)`::profile` gives it as data, and `load` takes one over in
//! place of a measurement.
//!
//! There is one replay per boot. It lasts until the system ends; when the last
//! planned task is gone, the fallback policy is all that is left of it, and tasks
//! spawned after that are unknown to the plan. Several CPUs have to be connected
//! for these calls: who spawned a task cannot be told from what a queue sees.

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

/// Starts measuring: from now on the caller's descendants are recorded, under round
/// robin, or, in a build with the feature `recorded`, under its policy.
///
/// # Errors
/// See the [table](self).
pub fn measure_start() -> Result<(), Error> {
    if IS_RECORDED {
        return RECORDING.measure_start();
    }
    measure_start_under(BasePolicy::RoundRobin)
}

/// The same under a base policy of choice, which only PBG has.
///
/// # Errors
/// See the [table](self).
pub fn measure_start_under(base: BasePolicy) -> Result<(), Error> {
    built_in()?;
    CONTROL.measure_start_under(base)
}

/// Ends measuring and makes a profile of it, in place of an earlier one.
/// Returns the number of tasks in it.
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

/// Makes a plan of the profile and follows it: from now on the caller's
/// descendants run in its order. Returns the number of tasks planned.
///
/// # Errors
/// See the [table](self).
pub fn start_pbg() -> Result<usize, Error> {
    start_pbg_with(OnSlowReplay::DropPlan)
}

/// The same, with a say in what becomes of a plan that turns out slower than the
/// measured run (rule 11 of [`pbg`]): [`start_pbg`] has it given up.
///
/// # Errors
/// See the [table](self).
pub fn start_pbg_with(on_slow_replay: OnSlowReplay) -> Result<usize, Error> {
    built_in()?;
    CONTROL.start_pbg_with(on_slow_replay)
}

/// Gives a name to the task that is spawned next: its key comes from that and not
/// from its place among the spawns, so the program may spawn in another order on
/// another run. No two tasks of a program may have the same label: they would be
/// left out of the profile.
///
/// The next spawn is the next of all. Where others may spawn between this call and
/// the caller's, keep preemption off around both.
///
/// # Errors
/// [`Error::NotBuiltIn`], [`Error::BadLabel`].
pub fn label_next(label: &str) -> Result<(), Error> {
    if IS_RECORDED {
        return RECORDING.label_next(label);
    }
    built_in()?;
    CONTROL.label_next(label)
}

/// Prints the present profile as lines of text, from which `make run` and `make profile` take it
/// ([`stored::read_frame`](crate::pbg::stored::read_frame)); `print` gets them one by one, each
/// with its end. What of `about` the profile was told before, if it was loaded, stays.
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
/// Call it when the program's work is over: a console is slow, and the time is the caller's.
///
/// # Errors
/// Those of the [table](self), and if `about` is of no machine.
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

    /// [`measure_start`](super::measure_start); 0 or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_measure_start() -> i32 {
        code(super::measure_start().map(|()| 0))
    }

    /// [`measure_end`](super::measure_end); the number of tasks or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_measure_end() -> i32 {
        code(super::measure_end())
    }

    /// [`start_pbg`](super::start_pbg); the number of tasks or a negative errno.
    #[unsafe(no_mangle)]
    pub extern "C" fn sys_start_pbg() -> i32 {
        code(super::start_pbg())
    }

    /// [`label_next`](super::label_next); 0 or a negative errno.
    ///
    /// # Safety
    /// `label` points to bytes that end with a zero.
    #[unsafe(no_mangle)]
    pub unsafe extern "C" fn sys_label_next(label: *const c_char) -> i32 {
        // SAFETY: the caller's promise is handed on.
        let label = unsafe { CStr::from_ptr(label) };
        let label = label.to_str().map_err(|_| Error::BadLabel);
        code(label.and_then(super::label_next).map(|()| 0))
    }
}

pub use c::{sys_label_next, sys_measure_end, sys_measure_start, sys_start_pbg};
