//! Why a call is refused, and how a call allocates without being able to abort.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use sched_core::room::with_room;

/// Why a call was refused. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// This build has another policy than PBG.
    NotBuiltIn,
    /// More than one CPU is scheduling, and they are not connected.
    NotSupported,
    /// More than one CPU is scheduling, and none was connected: the running task of each is unknown.
    NotConnected,
    /// Measuring has begun already.
    AlreadyMeasuring,
    /// No measurement is under way.
    NotMeasuring,
    /// No measurement has ended yet.
    NoProfile,
    /// A measurement is under way.
    Measuring,
    /// A replay is under way.
    Replaying,
    /// The replay has begun already.
    AlreadyReplaying,
    /// Out of memory.
    NoMemory,
    /// Another task is inside one of these calls.
    Contended,
    /// A label is empty, longer than 32 bytes, not UTF-8, or has control characters.
    BadLabel,
}

impl Error {
    /// The error as a negative Linux errno.
    pub const fn errno(self) -> i32 {
        match self {
            Self::NotBuiltIn => -38,
            Self::NotSupported => -95,
            Self::NotConnected => -107,
            Self::AlreadyMeasuring | Self::AlreadyReplaying => -114,
            Self::NotMeasuring => -22,
            Self::NoProfile => -61,
            Self::Measuring | Self::Replaying => -16,
            Self::NoMemory => -12,
            Self::Contended => -11,
            Self::BadLabel => -84,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotBuiltIn => {
                "this build has another policy than PBG: build with FEATURES=sched_pbg"
            }
            Self::NotSupported => "several CPUs, and PBG is not connected to them: call axsched_arceos::connect first, or run with SMP=1",
            Self::NotConnected => {
                "several CPUs, and the running task of each is unknown: call connect of axsched first"
            }
            Self::AlreadyMeasuring => "measuring has begun already: call measure_end first",
            Self::NotMeasuring => "no measurement is under way: call measure_start first",
            Self::NoProfile => "there is no profile: call measure_start and measure_end first",
            Self::Measuring => "a measurement is under way: call measure_end first",
            Self::Replaying => "a replay is under way, and lasts until the system ends",
            Self::AlreadyReplaying => "the replay has begun already",
            Self::NoMemory => "out of memory",
            Self::Contended => "another task is inside a PBG call: try again",
            Self::BadLabel => {
                "bad label: expected 1 to 32 bytes of UTF-8 without control characters"
            }
        })
    }
}

impl core::error::Error for Error {}

/// Returns an empty vector with room for `len` entries, or an error if there is no memory.
pub fn reserved<A>(len: usize) -> Result<Vec<A>, Error> {
    with_room(len).ok_or(Error::NoMemory)
}

/// Collects `items` into a boxed slice, or returns an error if there is no memory.
pub fn boxed<A>(items: impl ExactSizeIterator<Item = A>) -> Result<Box<[A]>, Error> {
    let mut vec = reserved(items.len())?;
    vec.extend(items);
    Ok(vec.into_boxed_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_vector_has_room() {
        assert!(reserved::<u64>(10).unwrap().capacity() >= 10);
    }
}
