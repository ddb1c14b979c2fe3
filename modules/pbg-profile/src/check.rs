//! The check that a profile fits this program and this machine.

use core::fmt;

use super::header::{Architecture, Header, Program, Timing};
use super::profile::StoredProfile;

/// The program and machine that a profile is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The machine's architecture.
    pub architecture: Architecture,
    /// The program's hash; see [`Program::hash`].
    pub program_hash: u64,
    /// The kind of time in which it runs. All fit [`Timing::Unknown`].
    pub timing: Timing,
}

/// The reason why a valid profile does not fit this program or machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It was measured on another architecture, whose counts mean something else.
    Architecture {
        /// The architecture of this machine.
        expected: Architecture,
        /// The architecture in the profile.
        found: Architecture,
    },
    /// It was measured with another program, or at another scale.
    Program {
        /// This program's hash.
        expected: u64,
        /// The program in the profile.
        found: Program,
    },
    /// It was measured in another kind of time, whose counts mean something else.
    Timing {
        /// The timing of this machine.
        expected: Timing,
        /// The timing in the profile.
        found: Timing,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { expected, found } => write!(
                f,
                "expected a profile of the program with hash {expected:016x}, found one of `{}`, {:016x}",
                found.name, found.hash
            ),
            Self::Architecture { expected, found } => {
                write!(f, "expected a profile of {expected}, found one of {found}")
            }
            Self::Timing { expected, found } => write!(
                f,
                "expected a profile measured in {expected}, found one in {found}"
            ),
        }
    }
}

impl core::error::Error for Mismatch {}

/// Checks that `profile` may be used for `expected`. The number of CPUs may differ, because tasks
/// need about as much time on more or fewer CPUs.
///
/// # Errors
/// Returns the first [`Mismatch`], in the order in which they are listed there.
pub fn check(profile: &StoredProfile, expected: &Expected) -> Result<(), Mismatch> {
    let Header {
        program,
        architecture,
        timing,
        ..
    } = profile.header;
    if architecture != expected.architecture {
        return Err(Mismatch::Architecture {
            expected: expected.architecture,
            found: architecture,
        });
    }
    if program.hash != expected.program_hash {
        return Err(Mismatch::Program {
            expected: expected.program_hash,
            found: program,
        });
    }
    if timing.merged(expected.timing).is_none() {
        return Err(Mismatch::Timing {
            expected: expected.timing,
            found: timing,
        });
    }
    Ok(())
}
