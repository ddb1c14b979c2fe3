//! Whether a profile is of this program on this machine.

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
    /// In which time it runs; all fit [`Timing::Unknown`].
    pub timing: Timing,
}

/// Why a good profile is of no use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// It was measured on another architecture, whose counts mean something else.
    Architecture {
        /// The architecture of this machine.
        expected: Architecture,
        /// The architecture in the profile.
        found: Architecture,
    },
    /// It is of another program, or of another version of it.
    Program {
        /// This program's hash.
        expected: u64,
        /// The profile's program.
        found: Program,
    },
    /// It was measured in another time, whose counts mean something else.
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

/// Whether `profile` may be used for `expected`, on however many CPUs it was measured: what tasks need
/// is much the same on more or fewer.
///
/// # Errors
/// The first [`Mismatch`], in the order in which they are listed there.
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
