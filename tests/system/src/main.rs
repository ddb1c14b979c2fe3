//! All tests: the library on the host, make's own manners, and the apps on QEMU.
//!
//! `system-tests [--list] [WORD]` runs the cases whose name contains the word, several at a
//! time, prints a line for each and `N passed, N failed` at the end, and fails if one did.
//! What they printed is kept in `target/test/`. Called by make (`make test`), which puts into
//! the environment: `CARGO`, `RUSTC` and `WHERE` (the host's), and `JOBS`.

mod cases;
mod frame;
mod perfetto;
mod project;
mod results;

use std::{
    env, fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use frame::{matching, run};
use process_groups::Children;
use project::Project;

const LOGS: &str = "target/test";

/// For QEMU's runner to end in good order, which allows QEMU one second itself; and for the
/// lab, which allows its own children four.
const GRACE: Duration = Duration::from_secs(8);

fn main() -> ExitCode {
    match tests() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("test: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn tests() -> Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let (is_list, word) = match &arguments[..] {
        [] => (false, ""),
        [list] if list == "--list" => (true, ""),
        [word] => (false, word.as_str()),
        [list, word] if list == "--list" => (true, word.as_str()),
        _ => bail!("expected [--list] [WORD]"),
    };
    let project = Project::new()?;
    let cases = matching(cases::all(&project)?, word);
    let mut out = io::stdout();
    if is_list {
        for case in &cases {
            writeln!(out, "{}", case.name)?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let logs = Path::new(LOGS);
    if logs.exists() {
        fs::remove_dir_all(logs).context(LOGS)?;
    }
    let children = Children::new(GRACE);
    children.catch_signals()?;
    children.watch();
    let totals = run(&cases, &project, &children, jobs()?, logs, &mut out)?;
    if children.stopped() {
        bail!("stopped by a signal; {totals} before");
    }
    if cases.is_empty() {
        eprintln!("T={word}: no check has that in its name; make test-list lists them");
    }
    writeln!(out, "{totals}")?;
    Ok(if totals.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// How many cases run at a time: one for each CPU, if make was not told.
fn jobs() -> Result<usize> {
    match env::var("JOBS") {
        Ok(jobs) if !jobs.is_empty() => jobs.parse().context("JOBS"),
        _ => Ok(thread::available_parallelism()?.get()),
    }
}
