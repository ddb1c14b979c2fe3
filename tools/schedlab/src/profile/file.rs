//! Files with a profile in them.

use std::{
    fs::File,
    io::{self, Read},
    path::Path,
};

use anyhow::{Context, Error, Result, anyhow, bail};
use axsched_ext::pbg::stored::{self, DecodeError, MAX_BYTES, StoredProfile};

use crate::{output::count, store::write};

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

/// Reads a file. The outer error says that it cannot be read, the inner one that it is no profile.
pub fn examine(path: &Path) -> Result<Result<Source>> {
    let file = load(path)?;
    let source = |bytes: &[u8], is_console| -> Result<Source, DecodeError> {
        Ok(Source {
            profile: stored::decode(bytes)?,
            bytes: bytes.len(),
            is_console,
        })
    };
    // In this order: a name in a profile may look like the beginning of one in a log.
    Ok(match source(&file, false) {
        Err(DecodeError::NotAProfile { .. }) if stored::has_frame(&file) => {
            let framed = stored::read_frame(&file).map_err(Error::from);
            framed.and_then(|framed| Ok(source(&framed, true)?))
        }
        source => source.map_err(Error::from),
    })
}

/// Reads a file, and refuses one that is far too large or has no end.
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

/// Writes a profile. Returns its size in bytes.
pub fn save(path: &Path, profile: &StoredProfile) -> Result<usize> {
    let bytes = stored::encode(profile).with_context(|| path.display().to_string())?;
    debug_assert!(bytes.len() <= MAX_BYTES);
    write(path, &bytes)?;
    Ok(bytes.len())
}

/// Returns the title of a profile, as `realtime (0123456789abcdef) on x86_64, 1 CPU, in counted time, under rr; 3 runs, 5 tasks`.
pub fn title(profile: &StoredProfile) -> String {
    let header = &profile.header;
    let mut title = format!(
        "{} ({:016x}) on {}, {}, in {}, under {}; {}, {}",
        header.program.name,
        header.program.hash,
        header.architecture,
        count(header.cpus.into(), "CPU"),
        header.timing,
        header.policy,
        count(header.runs as usize, "run"),
        count(profile.tasks.len(), "task"),
    );
    if header.unrecorded > 0 {
        title += &format!(" and {} unrecorded", header.unrecorded);
    }
    title
}
