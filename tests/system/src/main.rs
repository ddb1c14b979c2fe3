//! All tests: the library on the host, make's own manners, and the apps on QEMU.
//!
//! `system-tests [--list] [--jobs N] [WORD]` runs the cases whose name contains the word, several
//! at a time, prints a line for each and `N passed, N failed` at the end, and fails if one did.
//! What they printed is kept in `target/test/`. Called by make (`make test`), which puts into
//! the environment: `CARGO`, `RUSTC` and `WHERE` (the host's).

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
    let options = Options::read(env::args().skip(1))?;
    if options.is_help {
        print!("{OPTIONS}");
        return Ok(ExitCode::SUCCESS);
    }
    let word = &options.word;
    let project = Project::new()?;
    let cases = matching(cases::all(&project)?, word);
    let mut out = io::stdout();
    if options.is_list {
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
    let totals = run(&cases, &project, &children, options.jobs, logs, &mut out)?;
    if children.stopped() {
        bail!("stopped by a signal; {totals} before");
    }
    if cases.is_empty() {
        eprintln!("T={word}: no check has that in its name; make test LAB=--list lists them");
    }
    writeln!(out, "{totals}")?;
    Ok(if totals.is_good() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Prints what [`Options`] reads.
const OPTIONS: &str = "\
test: --list    print the names of the tests
test: --jobs N  N at a time (default: one for each CPU)
";

/// The command line.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    is_help: bool,
    is_list: bool,
    jobs: usize,
    /// The cases whose names contain it run; all, if it is empty.
    word: String,
}

impl Options {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// An option is unknown, or its value is none.
    fn read(arguments: impl IntoIterator<Item = String>) -> Result<Self> {
        let mut options = Self {
            is_help: false,
            is_list: false,
            jobs: thread::available_parallelism()?.get(),
            word: String::new(),
        };
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--help" | "-h" => options.is_help = true,
                "--list" => options.is_list = true,
                "--jobs" => {
                    let jobs = arguments.next().unwrap_or_default();
                    options.jobs = match jobs.parse() {
                        Ok(jobs) if jobs > 0 => jobs,
                        _ => bail!("--jobs {jobs}: allowed is a whole number from 1 on"),
                    };
                }
                option if option.starts_with('-') => {
                    bail!("LAB={option}: allowed are --list, --jobs N and --help")
                }
                _ => options.word = argument,
            }
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(words: &str) -> Result<Options> {
        Options::read(words.split(' ').map(str::to_owned))
    }

    #[test]
    fn options_and_a_word_may_be_given_together() {
        let options = read("--jobs 3 --list make:").unwrap();
        assert!(options.is_list && !options.is_help);
        assert_eq!((options.jobs, options.word.as_str()), (3, "make:"));
    }

    #[test]
    fn wrong_options_are_refused_with_what_is_allowed() {
        for words in ["--jobs 0", "--jobs two", "--jobs", "--lst", "-x make:"] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.contains("allowed"), "{words}: {error}");
        }
    }
}
