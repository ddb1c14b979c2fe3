//! What make needs of profiles.
//!
//! `pbg-save CONSOLE FILE` takes the profile that a guest has printed out of its
//! console, checks it, and writes it to a file. Called by scripts/qemu-run.sh. Prints
//! `FILE, N tasks, M bytes`; or one line that says what is wrong, and exits with 1. The
//! file is replaced as a whole or not at all. What a measurement would not bring back is
//! kept as FILE.old, FILE.old.2 and so on: a profile in which somebody has set priorities
//! or deadlines, and whatever is no profile.
//!
//! `pbg-save --check FILE PROGRAM ARCH SCALE TIMING` prints nothing if FILE is a
//! profile of that program there; else one line that says what was expected, and exits
//! with 1. Called by make (scripts/kernel.mk), which knows the guest by these words.

use std::{
    error::Error,
    fs::{self, File},
    io::Read,
    num::NonZeroU8,
    path::{Path, PathBuf},
    process::ExitCode,
};

use axsched_ext::{
    pbg::stored::{
        self, Architecture, Expected, MAX_BYTES, Mismatch, Program, StoredProfile, Timing,
    },
    units::{Counts, TaskKey},
};
use pbg_save::{destination, with_end, write};

fn main() -> ExitCode {
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(Into::into).collect();
    let texts: Option<Vec<&str>> = arguments.iter().map(|word| word.to_str()).collect();
    let outcome = match (&arguments[..], texts.as_deref()) {
        ([_, file, ..], Some(["--check", _, guest @ ..])) => match Guest::of(guest) {
            Some(guest) => check(file, &guest).map(|()| None),
            None => return usage(),
        },
        ([console, file], _) => {
            save(console, file).map(|what| Some(format!("{}, {what}", file.display())))
        }
        _ => return usage(),
    };
    match outcome {
        Ok(what) => {
            what.into_iter().for_each(|what| println!("{what}"));
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("pbg-save: expected CONSOLE FILE, or --check FILE PROGRAM ARCH SCALE TIMING");
    ExitCode::from(2)
}

/// A guest, as make knows it.
struct Guest<'a> {
    app: &'a str,
    architecture: Architecture,
    scale: u64,
    timing: Timing,
}

impl<'a> Guest<'a> {
    fn of(words: &[&'a str]) -> Option<Self> {
        let [app, architecture, scale, timing] = *words else {
            return None;
        };
        Some(Self {
            app,
            architecture: (Architecture::ALL.into_iter())
                .find(|known| known.name() == architecture)?,
            scale: scale.parse().ok()?,
            timing: Timing::ALL
                .into_iter()
                .find(|known| known.name() == timing)?,
        })
    }
}

/// Whether `file` is a profile of use to the guest.
fn check(file: &Path, guest: &Guest) -> Result<(), Box<dyn Error>> {
    let Guest { app, scale, .. } = *guest;
    let mut bytes = Vec::new();
    // More than a profile has is none, however much it is.
    File::open(file)?
        .take(MAX_BYTES as u64 + 1)
        .read_to_end(&mut bytes)?;
    let profile = stored::decode(&bytes)?;
    let expected = Expected {
        architecture: guest.architecture,
        program_hash: Program::scaled(app, scale).hash,
        timing: guest.timing,
    };
    stored::check(&profile, &expected).map_err(|mismatch| match mismatch {
        Mismatch::Program { found, .. } if found.name.as_str() == app => {
            format!("expected a profile of `{app}` at SCALE={scale}, found one at another").into()
        }
        Mismatch::Program { found, .. } => format!(
            "expected a profile of `{app}`, found one of `{}`",
            found.name
        )
        .into(),
        other => other.into(),
    })
}

fn save(console: &Path, file: &Path) -> Result<String, Box<dyn Error>> {
    let at = |path: &Path, error| format!("{}: {error}", path.display());
    // Before it is read: a pipe would be waited for.
    let old = destination(file).map_err(|error| at(file, error))?;
    let text = fs::read(console).map_err(|error| at(console, error))?;
    let bytes = stored::read_frame(&text)?;
    let profile = stored::decode(&bytes)?;
    if let Some((why, bytes)) = loss(&old, &profile) {
        let kept = free(&old, &bytes);
        write(&kept, bytes).map_err(|error| at(&kept, error))?;
        eprintln!(
            "pbg-save: {} {why}; it is kept as {}",
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

/// What is in the old file that the new profile has not got, and why.
fn loss(old: &Path, new: &StoredProfile) -> Option<(&'static str, Vec<u8>)> {
    let bytes = fs::read(old).ok().filter(|bytes| !bytes.is_empty())?;
    match stored::decode(&bytes) {
        Err(_) => Some(("was no profile that can be read", bytes)),
        Ok(old) => {
            let edits = edits(&old);
            (!edits.is_empty() && edits != self::edits(new))
                .then_some(("had priorities or deadlines of its own", bytes))
        }
    }
}

/// What somebody has set, by task.
fn edits(profile: &StoredProfile) -> Vec<(TaskKey, Option<NonZeroU8>, Option<Counts>)> {
    let tasks = profile.tasks.iter();
    tasks
        .map(|task| (task.key, task.priority, task.deadline))
        .filter(|(_, priority, deadline)| priority.is_some() || deadline.is_some())
        .collect()
}

/// The first name for what was in `file` that is free, or has the same in it.
fn free(file: &Path, bytes: &[u8]) -> PathBuf {
    let ends = (1..).map(|n| match n {
        1 => ".old".to_owned(),
        n => format!(".old.{n}"),
    });
    let is_free = |path: &PathBuf| !path.exists() || fs::read(path).is_ok_and(|has| has == bytes);
    ends.map(|end| with_end(file, &end))
        .find(is_free)
        .expect("numbers do not end")
}
