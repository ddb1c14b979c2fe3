//! Profiles, for make.
//!
//! `pbg-save CONSOLE FILE` takes the profile that a guest has printed out of its console, checks
//! it, and writes it to a file. Called by scripts/qemu-run.sh. Prints `FILE, N tasks, M bytes`, or
//! one line that says what is wrong, and exits with 1. The file is replaced as a whole or not at
//! all. An old file that a measurement would not bring back is kept as FILE.old, FILE.old.2 and so
//! on. That is a profile with priorities or deadlines that a user has set, or any other file. If
//! the console also has the tasks of a replay, tasks that did much more in it are marked as
//! varying.
//!
//! `pbg-save --check FILE PROGRAM ARCH SCALE TIMING [SMP]` prints nothing if FILE is a profile of that
//! program there. Else it prints one line that says what was expected, and exits with 1. Called by
//! make (scripts/kernel.mk), which knows the guest by these words. With SMP it also says if the
//! file's order was found for another number of CPUs, which is used all the same.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs::{self, File},
    io::Read,
    num::NonZeroU8,
    path::{Path, PathBuf},
    process::ExitCode,
};

use axsched_ext::{
    pbg::{
        OVERRUN_FACTOR, UNPLANNED_YIELD_ALLOWANCE,
        stored::{
            self, Architecture, Expected, MAX_BYTES, Mismatch, Program, StoredProfile, Timing,
        },
    },
    units::{Counts, TaskKey},
};
use pbg_save::{destination, write};

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
    eprintln!("pbg-save: expected CONSOLE FILE, or --check FILE PROGRAM ARCH SCALE TIMING [SMP]");
    ExitCode::from(2)
}

/// A guest, as make knows it.
struct Guest<'a> {
    app: &'a str,
    architecture: Architecture,
    scale: u64,
    timing: Timing,
    cpus: Option<u16>,
}

impl<'a> Guest<'a> {
    fn of(words: &[&'a str]) -> Option<Self> {
        let [app, architecture, scale, timing, ref cpus @ ..] = *words else {
            return None;
        };
        let cpus = match cpus {
            [] => None,
            [cpus] => Some(cpus.parse().ok()?),
            _ => return None,
        };
        Some(Self {
            app,
            architecture: *(Architecture::ALL.iter()).find(|known| known.name() == architecture)?,
            scale: scale.parse().ok()?,
            timing: *(Timing::ALL.iter()).find(|known| known.name() == timing)?,
            cpus,
        })
    }
}

/// Checks that `file` is a profile that the guest can use.
fn check(file: &Path, guest: &Guest) -> Result<(), Box<dyn Error>> {
    let Guest { app, scale, .. } = *guest;
    let mut bytes = Vec::new();
    // A file that is longer than the longest profile is none.
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
        other => Box::<dyn Error>::from(other),
    })?;
    let found_for = profile.order.as_ref().map(|order| order.cpus);
    if let (Some(found_for), Some(cpus)) = (found_for, guest.cpus)
        && found_for != cpus
    {
        eprintln!(
            "PROFILE={}: its order was found for SMP={found_for} and is used with SMP={cpus}; \
             `make plan A={app} CPUS={cpus}` looks for one",
            file.display()
        );
    }
    Ok(())
}

fn save(console: &Path, file: &Path) -> Result<String, Box<dyn Error>> {
    let at = |path: &Path, error| format!("{}: {error}", path.display());
    // Before it is read, as reading a pipe would wait.
    let old = destination(file).map_err(|error| at(file, error))?;
    let text = fs::read(console).map_err(|error| at(console, error))?;
    let mut profile = stored::decode(&stored::read_frame(&text)?)?;
    let varying = mark_varying(&mut profile, &String::from_utf8_lossy(&text));
    let bytes = stored::encode(&profile)?;
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
    let of_these = match varying {
        0 => String::new(),
        _ => format!(" ({varying} of which varied with the order)"),
    };
    let tasks = profile.tasks.len();
    Ok(format!("{tasks} tasks{of_these}, {} bytes", bytes.len()))
}

/// In real time a host may take a task's CPU away for its turnaround divided by this number.
const TAKEN_BY_HOST: u64 = 8;

/// Marks the tasks of a profile whose replay, in the same console, used more than twice the
/// recorded time or yields (rule 8 of PBG). In real time a task also has the time in which the host
/// runs others, so it has to use more than that. Returns the number of tasks marked.
fn mark_varying(profile: &mut StoredProfile, console: &str) -> usize {
    let lines = console
        .lines()
        .filter(|line| line.starts_with("SCHED-TASK {"));
    let mut measured: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    let mut varying = BTreeSet::new();
    for line in lines {
        let numbers = (number(line, "run_ns"), number(line, "yields"));
        let (Some(task), (Some(run), Some(yields))) = (text(line, "task"), numbers) else {
            continue;
        };
        match text(line, "phase") {
            Some("measure") => drop(measured.insert(task, [run, yields])),
            Some("replay") if let Some([run_before, yields_before]) = measured.get(task) => {
                let most = yields_before.saturating_mul(OVERRUN_FACTOR);
                let taken = match profile.header.timing {
                    Timing::Real => number(line, "turnaround_ns").unwrap_or(0) / TAKEN_BY_HOST,
                    _ => 0,
                };
                let run_more = run.saturating_sub(*run_before);
                let is_more = run_more > run_before.saturating_mul(OVERRUN_FACTOR - 1).max(taken)
                    || yields > most.saturating_add(UNPLANNED_YIELD_ALLOWANCE);
                if is_more {
                    varying.insert(task);
                }
            }
            _ => {}
        }
    }
    let tasks = profile.tasks.iter_mut();
    let marked = tasks.filter(|task| {
        task.label
            .is_some_and(|label| varying.contains(label.as_str()))
    });
    marked.map(|task| task.varies = true).count()
}

/// Returns what stands behind a key in a line of JSON without blanks.
fn value<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("\"{key}\":"))?;
    Some(rest)
}

fn text<'a>(line: &'a str, key: &str) -> Option<&'a str> {
    value(line, key)?.strip_prefix('"')?.split('"').next()
}

fn number(line: &str, key: &str) -> Option<u64> {
    let rest = value(line, key)?;
    let end = rest
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(rest.len());
    rest[..end].parse().ok()
}

/// Returns the bytes of the old file if the new profile lacks something of it, and why.
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

/// Returns the tasks' priorities and deadlines that a user has set.
fn edits(profile: &StoredProfile) -> Vec<(TaskKey, Option<NonZeroU8>, Option<Counts>)> {
    let tasks = profile.tasks.iter();
    tasks
        .map(|task| (task.key, task.priority, task.deadline))
        .filter(|(_, priority, deadline)| priority.is_some() || deadline.is_some())
        .collect()
}

/// Returns the first name for the old `file` that is free, or whose file has the same bytes.
fn free(file: &Path, bytes: &[u8]) -> PathBuf {
    let mut names = (1..).map(|n| {
        let mut name = file.as_os_str().to_owned();
        name.push(".old");
        if n > 1 {
            name.push(format!(".{n}"));
        }
        PathBuf::from(name)
    });
    let is_free = |path: &PathBuf| !path.exists() || fs::read(path).is_ok_and(|has| has == bytes);
    names.find(is_free).expect("numbers do not end")
}
