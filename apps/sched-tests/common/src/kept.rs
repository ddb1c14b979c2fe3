//! A profile beyond the boot: whose it is, where it may come from, where it goes.
//!
//! | way | comes from | goes to |
//! |---|---|---|
//! | console | | lines of text, which `make run` makes a file of |
//! | image | that file, built in ([`config::PROFILE`](crate::config::PROFILE)) | |
//! | disk | a file on a FAT disk | the same file (feature `disk`) |
//!
//! A profile in the image is the user's decision: if it is refused, no measurement
//! takes its place. One on the disk is this program's own: if it is refused, or there
//! is none, the program measures and replaces it.

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

/// Where a profile was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it was measured in this boot.
    Boot,
    /// In the image.
    Image,
    /// On the disk.
    Disk,
}

impl Origin {
    /// The name in `SCHED-PBG` lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Boot => "boot",
            Self::Image => "image",
            Self::Disk => "disk",
        }
    }

    /// For a sentence that begins with "the profile".
    pub const fn phrase(self) -> &'static str {
        match self {
            Self::Boot => "of this boot",
            Self::Image => "in this image",
            Self::Disk => "on the disk",
        }
    }
}

/// What [`start`] has found.
pub enum Found {
    /// There is no profile.
    Nothing,
    /// There is one; its plan is followed from now on.
    Started {
        /// Where it was found.
        origin: Origin,
        /// How many tasks are planned.
        tasks: usize,
    },
    /// There is one that is of no use.
    Refused {
        /// Where it was found.
        origin: Origin,
        /// Why it was refused.
        why: String,
    },
}

/// What the library is told of this program and machine.
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

/// Follows the profile in the image or else on the disk, if there is a good one.
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

/// Why a profile is of no use. Where the names agree and the hashes do not, it is the scale
/// that differs; the library's own words are of hashes.
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

/// The present profile, measured or loaded, as bytes.
///
/// # Errors
/// Why there is none.
pub fn measured(about: &About) -> Result<Vec<u8>, String> {
    CONTROL.profile_bytes(about).map_err(text)
}

/// A profile as bytes, if there is one.
///
/// # Errors
/// Why there is none.
pub fn encoded(profile: Result<Option<StoredProfile>, syscall::Error>) -> Result<Vec<u8>, String> {
    match profile.map_err(text)? {
        Some(profile) => stored::encode(&profile).map_err(text),
        None => Err(text(syscall::Error::NoProfile)),
    }
}

/// Puts a profile on the disk, in place of an older one. `None` if there is no disk.
///
/// The power may fail at any moment: then the next boot finds the older one, this one, or
/// none.
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
    // The console takes everything.
    let _ = stored::write_frame(bytes, &mut Console);
}

/// An error in words.
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
        // Threads of the host.
        assert_eq!(about.timing, Timing::Real);
    }
}
