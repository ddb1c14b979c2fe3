//! The errors of merging.

use core::fmt;

use crate::{
    Architecture, EncodeError, Label, MAX_TASKS, PolicyName, Program, ProgramName, Timing,
};
use sched_core::units::TaskKey;

/// The reason why profiles do not merge. Profiles are counted from 0, in the order in which they
/// came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// No profile was given.
    Nothing,
    /// One of them breaks a rule by itself.
    Inconsistent {
        /// The number of the profile that breaks the rule.
        profile: usize,
        /// The rule that it breaks.
        error: EncodeError,
    },
    /// The profiles belong to different programs.
    Program {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The hash of the first one's program.
        expected: u64,
        /// The program of the one that differs.
        found: Program,
    },
    /// The profiles have the same program hash and different program names.
    Name {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The name in the one that differs; that in the first was expected.
        found: ProgramName,
    },
    /// They were measured on different architectures.
    Architecture {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The architecture in the first.
        expected: Architecture,
        /// The architecture in the one that differs.
        found: Architecture,
    },
    /// Their counts have different lengths.
    Frequency {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The frequency in the first, in Hz.
        expected: u64,
        /// The frequency in the one that differs, in Hz.
        found: u64,
    },
    /// They were measured on different numbers of CPUs.
    Cpus {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The number of CPUs in the first.
        expected: u16,
        /// The number of CPUs in the one that differs.
        found: u16,
    },
    /// Some were measured in real time and others in counted time.
    Timing {
        /// The number of the profile that differs from those before it.
        profile: usize,
        /// The timing of those before it.
        expected: Timing,
        /// The timing of the one that differs.
        found: Timing,
    },
    /// They were measured under different policies, so that waiting times and
    /// preemptions mean different things.
    Policy {
        /// The number of the profile that differs from the first.
        profile: usize,
        /// The policy in the first.
        expected: PolicyName,
        /// The policy in the one that differs.
        found: PolicyName,
    },
    /// The same key stands for tasks of different labels.
    Label {
        /// The number of the profile that has the second label.
        profile: usize,
        /// The key of both.
        key: TaskKey,
        /// The label in a profile before.
        expected: Label,
        /// The label in this one.
        found: Label,
    },
    /// Together they have more than [`MAX_TASKS`] tasks.
    TooManyTasks {
        /// The number of tasks that they have together.
        found: usize,
    },
    /// Together they have more than 2^32 − 1 runs, which cannot be counted.
    TooManyRuns,
    /// There is no memory for the merged profile.
    NoMemory,
}

impl MergeError {
    /// Returns the number of the profile that caused the error, if one did.
    pub const fn profile(&self) -> Option<usize> {
        match *self {
            Self::Inconsistent { profile, .. }
            | Self::Program { profile, .. }
            | Self::Name { profile, .. }
            | Self::Architecture { profile, .. }
            | Self::Frequency { profile, .. }
            | Self::Cpus { profile, .. }
            | Self::Timing { profile, .. }
            | Self::Policy { profile, .. }
            | Self::Label { profile, .. } => Some(profile),
            Self::Nothing | Self::TooManyTasks { .. } | Self::TooManyRuns | Self::NoMemory => None,
        }
    }
}

impl fmt::Display for MergeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("expected at least 1 profile, found none"),
            Self::Inconsistent { profile, error } => write!(f, "profile {profile}: {error}"),
            Self::Program {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the program with hash {expected:016x}, found `{}`, {:016x}",
                found.name, found.hash
            ),
            Self::Name { profile, found } => write!(
                f,
                "profile {profile}: expected the name of profile 0, found `{found}` for the same program"
            ),
            Self::Architecture {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the architecture {expected}, found {found}"
            ),
            Self::Frequency {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected counts of {expected} Hz, found {found} Hz"
            ),
            Self::Cpus {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected {expected} CPU(s), found {found}"
            ),
            Self::Timing {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected a run in {expected}, found one in {found}"
            ),
            Self::Policy {
                profile,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected a run under {expected}, found one under {found}"
            ),
            Self::Label {
                profile,
                key,
                expected,
                found,
            } => write!(
                f,
                "profile {profile}: expected the label `{expected}` for task {key}, found `{found}`"
            ),
            Self::TooManyTasks { found } => {
                write!(
                    f,
                    "expected at most {MAX_TASKS} tasks together, found {found}"
                )
            }
            Self::TooManyRuns => f.write_str("expected fewer than 2^32 runs together, found more"),
            Self::NoMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for MergeError {}
