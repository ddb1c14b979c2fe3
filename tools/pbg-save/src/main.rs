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
    collections::BTreeMap,
    error::Error,
    fs::{self, File},
    io::Read,
    num::{NonZero, NonZeroU8},
    path::{Path, PathBuf},
    process::ExitCode,
    thread,
};

use axsched_ext::{
    pbg::{
        OVERRUN_FACTOR, UNPLANNED_YIELD_ALLOWANCE,
        stored::{
            self, Architecture, Ended, Expected, MAX_BYTES, Mismatch, Program, StoredProfile,
            StoredTask, Timing, Waker,
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

/// In real time a host that runs other work lengthens the CPU time of a task. This adds at most the turnaround
/// over this number, and a few time slices of the host.
const HOST_SHARE: u64 = 4;
const HOST_SLICES_NS: u64 = 20_000_000;

/// The work of a task in a phase, as the console tells it.
struct Work {
    cpus: u64,
    run_ns: u64,
    turnaround_ns: u64,
    yields: u64,
    dispatches: u64,
}

impl Work {
    fn of(line: &str) -> Option<Self> {
        Some(Self {
            cpus: number(line, "smp")?,
            run_ns: number(line, "run_ns")?,
            turnaround_ns: number(line, "turnaround_ns")?,
            yields: number(line, "yields")?,
            dispatches: number(line, "dispatches")?,
        })
    }
}

/// A task in the measured run and in its replay.
struct Runs<'a> {
    measured: &'a Work,
    replayed: &'a Work,
    /// The mean time of a sleep, in counts, if the task sleeps.
    sleep: Option<u64>,
}

impl Runs<'_> {
    /// Returns true if the replay took more than twice the CPU time (rule 8 of PBG), or more than twice the
    /// yields and [`UNPLANNED_YIELD_ALLOWANCE`]. In real time the CPU time is also more than the host
    /// explains. If n CPUs share a core, it may take n times as long.
    fn did_more(&self, timing: Timing) -> bool {
        let Self {
            measured, replayed, ..
        } = self;
        let twice = |amount: u64| amount.saturating_mul(OVERRUN_FACTOR);
        let mut run = twice(measured.run_ns);
        if timing == Timing::Real {
            let cores = thread::available_parallelism().map_or(1, NonZero::get) as u64;
            let taken = replayed.turnaround_ns / HOST_SHARE + HOST_SLICES_NS;
            run = run.saturating_mul(replayed.cpus.div_ceil(cores));
            run = run.max(measured.run_ns.saturating_add(taken));
        }
        let yields = twice(measured.yields).saturating_add(UNPLANNED_YIELD_ALLOWANCE);
        replayed.run_ns > run || replayed.yields > yields
    }

    /// Returns true if those of `all` that sleep as long as this task slept more often in their replay. The
    /// sum of their dispatches is higher by a tenth, which is the simulator's limit, and by one for each. A
    /// task may also be dispatched after a preemption or a move, so the sum tells more than one task.
    fn slept_more_often(&self, all: &[Option<Self>]) -> bool {
        let Some(own) = self.sleep else {
            return false;
        };
        let is_alike = |sleep: u64| sleep.abs_diff(own) <= sleep.max(own) / 4;
        let (mut measured, mut replayed) = (0_u64, 0_u64);
        for other in all.iter().flatten() {
            if other.sleep.is_some_and(is_alike) {
                measured = measured.saturating_add(other.measured.dispatches.saturating_add(1));
                replayed = replayed.saturating_add(other.replayed.dispatches);
            }
        }
        replayed > measured.saturating_add(measured / 10)
    }
}

/// Returns the mean time of a sleep, in counts, if the task sleeps. At least three run intervals in each run
/// end in a wait for the timer, and three quarters of all but the last. A task that was hit by the timer's
/// interrupt may be noted as the waker.
fn sleep(task: &StoredTask) -> Option<u64> {
    let (mut timers, mut others, mut slept) = (0, 0_u64, 0);
    for phase in &task.phases.list {
        match (phase.ended, phase.woken_by) {
            (Ended::Exit, _) => {}
            (Ended::Block, Waker::Timer) => {
                timers = phase.intervals.saturating_add(timers);
                slept = phase.blocked.0.saturating_add(slept);
            }
            _ => others = phase.intervals.saturating_add(others),
        }
    }
    let sleeps = timers >= 3 * u64::from(task.runs) && timers / 3 >= others;
    sleeps.then(|| slept / timers)
}

/// Marks the tasks of a profile that did much more in their replay, in the same console, than in the
/// measured run. Returns the number of tasks marked.
fn mark_varying(profile: &mut StoredProfile, console: &str) -> usize {
    let lines = (console.lines()).filter(|line| line.starts_with("SCHED-TASK {"));
    let (mut measured, mut replayed) = (BTreeMap::new(), BTreeMap::new());
    for line in lines {
        let (Some(task), Some(work)) = (text(line, "task"), Work::of(line)) else {
            continue;
        };
        match text(line, "phase") {
            Some("measure") => drop(measured.insert(task, work)),
            Some("replay") => drop(replayed.insert(task, work)),
            _ => {}
        }
    }
    let runs = |task: &StoredTask| {
        let label = task.label.as_ref()?.as_str();
        Some(Runs {
            measured: measured.get(label)?,
            replayed: replayed.get(label)?,
            sleep: sleep(task),
        })
    };
    let all: Vec<Option<Runs>> = profile.tasks.iter().map(runs).collect();
    let timing = profile.header.timing;
    let varies = |runs: &Runs| runs.did_more(timing) || runs.slept_more_often(&all);
    let of_tasks = profile.tasks.iter_mut().zip(&all);
    let marked = of_tasks.filter(|(_, runs)| runs.as_ref().is_some_and(varies));
    marked.map(|(task, _)| task.varies = true).count()
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
