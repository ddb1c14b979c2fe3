//! The output of a profile on the console, for a program that stores nothing itself. `make run`, or
//! any log of the console, keeps it.

use alloc::vec::Vec;
use core::fmt;

use super::control::Control;
use pbg_profile::{EncodeError, StoredProfile, encode, write_frame};
use pbg_record::described::About;
use pbg_record::error::Error;

/// The reason why a profile has no bytes. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// The call returned an error.
    Call(Error),
    /// The profile cannot be encoded with the metadata of the caller.
    Encode(EncodeError),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Call(error) => error.fmt(f),
            Self::Encode(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for StoreError {}

impl From<Error> for StoreError {
    fn from(error: Error) -> Self {
        Self::Call(error)
    }
}

impl Control {
    /// Returns the present [profile](Control::profile) as [bytes](encode).
    ///
    /// # Errors
    /// Returns [`Error::NoProfile`], [`Error::Contended`] or [`Error::NoMemory`] as a
    /// [`StoreError::Call`]. Returns [`StoreError::Encode`] if no machine can be as `about` says, such
    /// as one without a CPU.
    pub fn profile_bytes(&self, about: &About) -> Result<Vec<u8>, StoreError> {
        bytes(self.profile(about)?)
    }

    /// Prints the present profile as lines of text; see `axsched_ext::syscall::print_profile`.
    ///
    /// # Errors
    /// Returns the errors of [`profile_bytes`](Self::profile_bytes).
    pub fn print_profile(&self, about: &About, print: impl FnMut(&str)) -> Result<(), StoreError> {
        print_profile(self.profile(about)?, print)
    }
}

/// Encodes a profile, if there is one.
fn bytes(profile: Option<StoredProfile>) -> Result<Vec<u8>, StoreError> {
    encode(&profile.ok_or(Error::NoProfile)?).map_err(StoreError::Encode)
}

/// Prints a profile of any measurement, if there is one.
///
/// # Errors
/// Returns [`Error::NoProfile`] if there is none, and the error of [`encode`] if it breaks a rule.
pub fn print_profile(
    profile: Option<StoredProfile>,
    print: impl FnMut(&str),
) -> Result<(), StoreError> {
    // Writing to the console cannot fail.
    let _ = write_frame(&bytes(profile)?, &mut Console(print));
    Ok(())
}

struct Console<F>(F);

impl<F: FnMut(&str)> fmt::Write for Console<F> {
    fn write_str(&mut self, line: &str) -> fmt::Result {
        self.0(line);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::string::String;
    use std::vec;

    use super::*;
    use crate::tests::cpu::{Cpu, measured};
    use pbg_profile::{FRAME_BYTES_PER_LINE, Program, decode, read_frame};

    #[test]
    fn printed_lines_decode_to_the_profile() {
        let cpu = measured(&[("a", 100), ("b", 200)]);
        let about = About::program("of a user", 1_000_000_000);
        let mut console = String::from("the program's own words\n");
        let mut pieces = vec![];
        let print = |text: &str| {
            console.push_str(text);
            pieces.push(String::from(text));
        };
        assert_eq!(cpu.control.print_profile(&about, print), Ok(()));
        let bytes = read_frame(console.as_bytes()).unwrap();
        assert_eq!(Ok(&bytes), cpu.control.profile_bytes(&about).as_ref());
        let profile = decode(&bytes).unwrap();
        assert_eq!(profile.tasks, cpu.profile().tasks);
        assert_eq!(profile.header.program, Program::scaled("of a user", 1));
        assert_eq!(profile.header.frequency_hz, 1_000_000_000);
        // Each piece is a whole line, so other output comes between lines and not into them.
        assert_eq!(pieces.len(), 2 + bytes.len().div_ceil(FRAME_BYTES_PER_LINE));
        let is_line = |text: &String| {
            text.starts_with("PBG-PROFILE") && text.find('\n') == Some(text.len() - 1)
        };
        assert!(pieces.iter().all(is_line), "{pieces:?}");
    }

    #[test]
    fn without_a_profile_nothing_is_printed() {
        let cpu = Cpu::boot();
        let about = About::program("test", 1);
        let printed = cpu.control.print_profile(&about, |text| panic!("{text}"));
        assert_eq!(printed, Err(Error::NoProfile.into()));
    }

    #[test]
    fn a_machine_without_a_cpu_is_refused() {
        let cpu = measured(&[("a", 100)]);
        let about = About {
            cpus: 0,
            ..About::program("test", 1)
        };
        let refused = cpu.control.print_profile(&about, |text| panic!("{text}"));
        let refused = refused.unwrap_err();
        assert!(matches!(
            refused,
            StoreError::Encode(EncodeError::Inconsistent { .. })
        ));
        assert!(
            std::format!("{refused}").starts_with("header: expected "),
            "{refused}"
        );
    }
}
