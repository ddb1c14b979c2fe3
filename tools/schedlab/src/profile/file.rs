//! Files with a profile in them.

use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, Result, anyhow, bail};
use axsched_ext::pbg::stored::{self, DecodeError, FrameError, MAX_BYTES, StoredProfile};

use crate::store::write;

/// The most bytes that are read of a console log with a profile in it; a profile has far
/// fewer.
const MAX_FILE: u64 = 64 << 20;

/// A profile, and what it was read from.
pub struct Source {
    pub profile: StoredProfile,
    /// The size of the profile itself, without the console around it.
    pub bytes: usize,
    pub is_console: bool,
}

/// Why a file is no profile.
#[derive(Debug)]
pub enum Bad {
    Bytes(DecodeError),
    Console(FrameError),
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(error) => error.fmt(f),
            Self::Console(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Bad {}

/// A file that cannot be read is an error; what it says may be bad.
pub fn examine(path: &Path) -> Result<Result<Source, Bad>> {
    let file = load(path)?;
    let source = |bytes: &[u8], is_console| {
        Ok(Source {
            profile: stored::decode(bytes).map_err(Bad::Bytes)?,
            bytes: bytes.len(),
            is_console,
        })
    };
    // In this order: a name in a profile may look like the beginning of one in a log.
    Ok(match source(&file, false) {
        Err(Bad::Bytes(DecodeError::NotAProfile { .. })) if stored::has_frame(&file) => {
            let framed = stored::read_frame(&file).map_err(Bad::Console);
            framed.and_then(|framed| source(&framed, true))
        }
        source => source,
    })
}

/// A file that is not far too large, nor without an end.
fn load(path: &Path) -> Result<Vec<u8>> {
    let read = || {
        let file = File::open(path)?;
        let size = file.metadata()?.len();
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        Ok::<_, io::Error>((bytes, size))
    };
    let (bytes, size) = read().with_context(|| path.display().to_string())?;
    let found = bytes.len() as u64;
    if found > MAX_FILE {
        bail!(
            "{}: expected at most {MAX_FILE} bytes ({} MiB), found {}",
            path.display(),
            MAX_FILE >> 20,
            found.max(size)
        );
    }
    Ok(bytes)
}

pub fn read(path: &Path) -> Result<Source> {
    examine(path)?.map_err(|bad| anyhow!("{}: {bad}", path.display()))
}

/// Returns its size in bytes.
pub fn save(path: &Path, profile: &StoredProfile) -> Result<usize> {
    let bytes = stored::encode(profile).with_context(|| path.display().to_string())?;
    debug_assert!(bytes.len() <= MAX_BYTES);
    write(path, &bytes)?;
    Ok(bytes.len())
}

/// `realtime (0123456789abcdef) on x86_64, 1 CPU, in counted time, under rr; 3 runs, 5 tasks`.
pub fn title(profile: &StoredProfile) -> String {
    let header = &profile.header;
    let several = |n: u64, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut title = format!(
        "{} ({:016x}) on {}, {}, in {}, under {}; {}, {}",
        header.program.name,
        header.program.hash,
        header.architecture,
        several(header.cpus.into(), "CPU"),
        header.timing,
        header.policy,
        several(header.runs.into(), "run"),
        several(profile.tasks.len() as u64, "task"),
    );
    if header.unrecorded > 0 {
        title += &format!(" and {} unrecorded", header.unrecorded);
    }
    title
}
