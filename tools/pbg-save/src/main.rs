//! Takes the profile that a guest has printed out of its console, checks it, and
//! writes it to a file: `pbg-save CONSOLE FILE`. Called by scripts/qemu-run.sh.
//!
//! Prints `FILE, N tasks, M bytes`; or one line that says what is wrong, and exits
//! with 1. The file is replaced as a whole or not at all; one that the user has
//! edited is kept as FILE.edited.

use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use axsched_ext::pbg::stored::{self, StoredProfile, StoredTask};
use pbg_save::{destination, with_end, write};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let [console, file] = &arguments[..] else {
        eprintln!("pbg-save: expected CONSOLE FILE");
        return ExitCode::from(2);
    };
    match save(console, file) {
        Ok(what) => {
            println!("{}, {what}", file.display());
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn save(console: &Path, file: &Path) -> Result<String, Box<dyn Error>> {
    let at = |path: &Path, error| format!("{}: {error}", path.display());
    // Before it is read: a pipe would be waited for.
    let old = destination(file).map_err(|error| at(file, error))?;
    let text = fs::read(console).map_err(|error| at(console, error))?;
    let bytes = stored::read_frame(&text)?;
    let profile = stored::decode(&bytes)?;
    if let Some(edited) = edited(&old)
        && !is_edited(&profile)
    {
        let kept = with_end(&old, ".edited");
        write(&kept, edited).map_err(|error| at(&kept, error))?;
        eprintln!(
            "pbg-save: {} has priorities or latest times, the new profile has none; the old one is kept as {}",
            file.display(),
            kept.display()
        );
    }
    write(file, &bytes).map_err(|error| at(file, error))?;
    Ok(format!(
        "{} tasks, {} bytes",
        profile.tasks.len(),
        bytes.len()
    ))
}

/// A profile in which the user has set something, which no measurement brings back.
fn edited(file: &Path) -> Option<Vec<u8>> {
    let bytes = fs::read(file).ok()?;
    is_edited(&stored::decode(&bytes).ok()?).then_some(bytes)
}

fn is_edited(profile: &StoredProfile) -> bool {
    let set = |task: &StoredTask| task.priority.is_some() || task.latest.is_some();
    profile.tasks.iter().any(set)
}
