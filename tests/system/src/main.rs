//! Runs all tests: the library on the host, make itself, and the apps on QEMU.
//!
//! `system-tests [--list] [--jobs N] [WORD]` runs the cases whose name contains the word, several
//! at a time. It prints a line for each and `N passed, N failed` at the end, and fails if one
//! failed. Logs are kept in `target/test/`. `make test` calls it, with the host's `CARGO`, `RUSTC`
//! and `WHERE` in the environment.

mod cases;
mod frame;
mod perfetto;
mod project;
mod results;

use std::{
    env, fs,
    io::{self, Write},
    num::NonZero,
    path::Path,
    process::ExitCode,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use process_groups::Children;
use project::Project;

const LOGS: &str = "target/test";

/// Time for programs to end in good order: QEMU's runner allows QEMU one second, and the lab
/// allows its own children four.
const GRACE: Duration = Duration::from_secs(8);

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("test: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the cases that the command line selects. Returns true if all have passed.
fn run() -> Result<bool> {
    let options = Options::read(env::args().skip(1))?;
    if options.is_help {
        print!("{OPTIONS}");
        return Ok(true);
    }
    let word = &options.word;
    // A word asks for all that has it in its name, and a list is to choose a word from.
    let project = Project::new(options.is_list || !word.is_empty())?;
    let mut cases = cases::all(&project)?;
    cases.retain(|case| case.name.contains(word));
    let mut out = io::stdout();
    if options.is_list {
        for case in &cases {
            writeln!(out, "{}", case.name)?;
        }
        return Ok(true);
    }
    let logs = Path::new(LOGS);
    if logs.exists() {
        fs::remove_dir_all(logs).context(LOGS)?;
    }
    let children = Children::new(GRACE);
    children.catch_signals()?;
    children.watch();
    let totals = frame::run(&cases, &project, &children, options.jobs, logs, &mut out)?;
    if children.stopped() {
        bail!("stopped by a signal; {totals} before");
    }
    if cases.is_empty() {
        eprintln!("T={word}: no check has that in its name; make test LAB=--list lists them");
    }
    writeln!(out, "{totals}")?;
    Ok(totals.is_good())
}

/// The text of `--help`.
const OPTIONS: &str = "\
test: --list    print the names of the tests
test: --jobs N  run N at a time (default: one for each CPU)
";

/// The options of a call, and the word that selects cases.
#[derive(Debug, PartialEq, Eq)]
struct Options {
    is_help: bool,
    is_list: bool,
    jobs: usize,
    /// Selects the cases whose names contain it. All run if it is empty.
    word: String,
}

impl Options {
    /// Reads the words after the program's name.
    ///
    /// # Errors
    /// An option is unknown, or its value is wrong.
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
                    let number = jobs.parse().ok().map(NonZero::<usize>::get);
                    options.jobs = number.with_context(|| {
                        format!("--jobs {jobs}: allowed is a whole number from 1 on")
                    })?;
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
    fn wrong_options_are_refused_and_the_allowed_ones_named() {
        for words in ["--jobs 0", "--jobs two", "--jobs", "--lst", "-x make:"] {
            let error = read(words).unwrap_err().to_string();
            assert!(error.contains("allowed"), "{words}: {error}");
        }
    }
}
