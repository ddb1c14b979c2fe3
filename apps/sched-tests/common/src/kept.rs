//! A profile that outlives the boot: its program, where it may come from, and where it goes.
//!
//! | way | comes from | goes to |
//! |---|---|---|
//! | console | | lines of text, which `make run` turns into a file |
//! | image | that file, built in ([`config::PROFILE`](crate::config::PROFILE)) | |
//! | disk | a file on a FAT disk | the same file (feature `disk`) |
//!
//! A profile in the image is the user's decision: if it is refused, no measurement takes its place.
//! A profile on the disk belongs to this program: if it is refused, or there is none, the program
//! measures and replaces it.

#[cfg_attr(all(feature = "disk", target_os = "none"), path = "kept/disk.rs")]
#[cfg_attr(
    not(all(feature = "disk", target_os = "none")),
    path = "kept/no_disk.rs"
)]
mod disk;

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use axsched_ext::{
    pbg::{
        About, CONTROL, LoadError,
        stored::{self, Mismatch, Program, StoredProfile, Timing},
    },
    syscall,
};

use crate::{
    config::{PROFILE, SCALE},
    platform::{self, print},
};

/// The place where a profile was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// It was not found but measured in this boot.
    Boot,
    /// It was built into the image.
    Image,
    /// It was in a file on the disk.
    Disk,
}

impl Origin {
    /// Returns the name in `SCHED-PBG` lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Image => "image",
            Self::Disk => "disk",
        }
    }

    /// Returns the words that follow "the profile" in a sentence.
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Boot => "of this boot",
            Self::Image => "in this image",
            Self::Disk => "on the disk",
        }
    }
}

/// The outcome of [`start`].
pub enum Found {
    /// There is no profile.
    Nothing,
    /// There is one; its plan is followed from now on.
    Started {
        /// The place where it was found.
        origin: Origin,
        /// The number of tasks in the plan.
        tasks: usize,
    },
    /// There is one, and it was refused.
    Refused {
        /// The place where it was found.
        origin: Origin,
        /// The reason for the refusal.
        why: String,
    },
}

/// Returns the description of this program and machine for the library.
pub fn about(app: &str) -> About {
    About {
        program: Program::scaled(app, SCALE),
        frequency_hz: platform::counter_hz(),
        cpus: u16::try_from(platform::cpus()).unwrap_or(u16::MAX),
        timing: match platform::TIMING {
            "icount" => Timing::Counted,
            _ => Timing::Real,
        },
    }
}

/// Follows the profile in the image, or else the one on the disk, if it is accepted.
pub fn start(about: &About) -> Found {
    if let Some(bytes) = PROFILE {
        return match start_with(bytes, about) {
            Ok(tasks) => Found::Started {
                origin: Origin::Image,
                tasks,
            },
            Err(why) => Found::Refused {
                origin: Origin::Image,
                why,
            },
        };
    }
    match disk::find(|bytes| start_with(bytes, about)) {
        None => Found::Nothing,
        Some(Ok(tasks)) => Found::Started {
            origin: Origin::Disk,
            tasks,
        },
        Some(Err(why)) => Found::Refused {
            origin: Origin::Disk,
            why,
        },
    }
}

fn start_with(bytes: &[u8], about: &About) -> Result<usize, String> {
    CONTROL
        .load(bytes, about)
        .map_err(|error| refusal(error, about))?;
    syscall::start_pbg().map_err(text)
}

/// Returns the reason why a profile was refused. If the names agree and the hashes do not, the
/// scale differs. The library's own message speaks of hashes only.
fn refusal(error: LoadError, about: &About) -> String {
    match error {
        LoadError::Mismatch(Mismatch::Program { found, .. }) => {
            let app = about.program.name;
            if found.name == app {
                format!("expected a profile of `{app}` at SCALE={SCALE}, found one at another")
            } else {
                format!(
                    "expected a profile of `{app}`, found one of `{}`",
                    found.name
                )
            }
        }
        error => text(error),
    }
}

/// Returns the present profile, measured or loaded, as bytes.
///
/// # Errors
/// Returns the reason why there is none.
pub fn measured(about: &About) -> Result<Vec<u8>, String> {
    CONTROL.profile_bytes(about).map_err(text)
}

/// Encodes a profile, if there is one.
///
/// # Errors
/// Returns the reason why there is none.
pub fn encoded(profile: Result<Option<StoredProfile>, syscall::Error>) -> Result<Vec<u8>, String> {
    match profile.map_err(text)? {
        Some(profile) => stored::encode(&profile).map_err(text),
        None => Err(text(syscall::Error::NoProfile)),
    }
}

/// Puts a profile on the disk in place of an older one. Returns `None` if there is no disk.
///
/// The power may fail at any moment. The next boot then finds the older profile, this one, or none.
pub fn save(bytes: &[u8]) -> Option<Result<(), String>> {
    disk::save(bytes)
}

/// Prints a profile as lines that a program can find in the console and check.
pub fn print_frame(bytes: &[u8]) {
    struct Console;
    impl fmt::Write for Console {
        fn write_str(&mut self, line: &str) -> fmt::Result {
            print!("{line}");
            Ok(())
        }
    }
    // Writing to the console cannot fail.
    let _ = stored::write_frame(bytes, &mut Console);
}

/// Returns an error in words.
pub fn text(error: impl fmt::Display) -> String {
    error.to_string()
}

#[cfg(test)]
mod tests {
    use axsched_ext::pbg::stored::ProgramName;

    use super::*;

    #[test]
    fn a_program_is_its_name_and_its_scale() {
        assert_eq!(
            about("realtime").program,
            Program::scaled("realtime", SCALE)
        );
    }

    #[test]
    fn a_refusal_says_whose_profile_it_is() {
        let about = about("realtime");
        let refused = |name| {
            let found = Program {
                name: ProgramName::new(name).unwrap(),
                hash: 1,
            };
            let expected = about.program.hash;
            let error = LoadError::Mismatch(Mismatch::Program { expected, found });
            refusal(error, &about)
        };
        assert_eq!(
            refused("realtime"),
            "expected a profile of `realtime` at SCALE=1, found one at another"
        );
        assert_eq!(
            refused("batch"),
            "expected a profile of `realtime`, found one of `batch`"
        );
    }

    #[test]
    fn a_machine_is_its_counter_its_cpus_and_its_time() {
        let about = about("realtime");
        assert_eq!(usize::from(about.cpus), platform::cpus());
        assert_eq!(about.frequency_hz, platform::counter_hz());
        // The clock of the host's threads is real time.
        assert_eq!(about.timing, Timing::Real);
    }
}
