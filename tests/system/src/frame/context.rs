//! Tools of a case: its log, its folder, and the programs that it calls.

use std::{
    cell::{Cell, RefCell},
    ffi::OsStr,
    fmt, fs,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::Duration,
};

use anyhow::{Context as _, Result, ensure};

use process_groups::{Children, Running};

use crate::project::Project;

/// The time after which a call fails. The longest call is a matrix of some hundred cells.
const LIMIT: Duration = Duration::from_secs(3600);

/// The tools of one case, while it runs.
pub struct Context<'a> {
    /// The tree that is under test.
    pub project: &'a Project,
    children: &'a Children,
    log: RefCell<File>,
    folder: PathBuf,
    tests: Cell<usize>,
}

impl<'a> Context<'a> {
    pub(super) fn new(project: &'a Project, children: &'a Children, log: &Path) -> Result<Self> {
        let file = File::create(log).with_context(|| log.display().to_string())?;
        Ok(Self {
            project,
            children,
            log: RefCell::new(file),
            folder: log.with_extension(""),
            tests: Cell::new(1),
        })
    }

    /// Writes a line into the case's log. If the case fails, the last lines are shown.
    pub fn say(&self, line: impl fmt::Display) {
        // A log that cannot be written lacks lines, which is no reason to fail the case.
        let _ = writeln!(self.log.borrow_mut(), "{line}");
    }

    /// Makes the case count as this many tests if it passes.
    pub fn counts(&self, tests: usize) {
        self.tests.set(tests);
    }

    pub(super) fn tests(&self) -> usize {
        self.tests.get()
    }

    /// Returns the path, from the project's root, of a file in the case's own folder.
    pub fn file(&self, name: &str) -> Result<String> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(name);
        Ok(path.to_str().context("cases have plain names")?.to_owned())
    }

    /// Prepares a call of a program, without the variables that `make test` was given.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Call<'_> {
        let mut command = Command::new(program);
        for variable in &self.project.caller_variables {
            command.env_remove(variable);
        }
        command.env("PROFILE_OUT", ""); // the user's own profiles stay as they are
        command.env("CARGO_INCREMENTAL", "0"); // state for the next edit: more than half of the disk
        Call {
            context: self,
            command,
            limit: LIMIT,
            is_quiet: false,
        }
    }

    /// Prepares a call of make, with words as in a shell.
    pub fn make(&self, words: impl AsRef<str>) -> Call<'_> {
        self.program("make").args(words)
    }

    /// Prepares a call of the host's cargo: a subcommand, make's own options, and more words.
    pub fn cargo(&self, subcommand: &str, words: impl AsRef<str>) -> Call<'_> {
        let Project { cargo, options, .. } = self.project;
        self.program(cargo)
            .arg(subcommand)
            .args(options)
            .args(words)
    }
}

/// A program that is about to be called.
pub struct Call<'a> {
    context: &'a Context<'a>,
    command: Command,
    limit: Duration,
    is_quiet: bool,
}

/// The outcome of a call.
pub struct Output {
    /// Standard output and standard error in their order, without carriage returns.
    pub text: String,
    /// The exit status of the program.
    pub status: ExitStatus,
}

impl<'a> Call<'a> {
    /// Adds arguments, split as a shell splits them: at blanks, but not within quotes.
    pub fn args(mut self, words: impl AsRef<str>) -> Self {
        let words = shlex::split(words.as_ref());
        self.command.args(words.expect("quotes are closed"));
        self
    }

    /// Adds one argument as it is.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Sets an environment variable of the program.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes a variable from the program's environment.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sets the program's working directory.
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets the time after which the call fails.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// Keeps the program's output out of the log.
    pub fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// Calls the program and passes each line to `line` as it comes. Returns the output and status,
    /// also if it fails.
    pub fn for_each_line(self, mut line: impl FnMut(&str)) -> Result<Output> {
        let Self {
            context, command, ..
        } = self;
        context.say(typed(&command));
        let mut text = String::new();
        let status = context.children.run(command, Some(self.limit), |next| {
            if !self.is_quiet {
                context.say(next);
            }
            text.push_str(next);
            text.push('\n');
            line(next);
        })?;
        Ok(Output { text, status })
    }

    /// Calls the program and returns its output and status, also if it fails.
    pub fn output(self) -> Result<Output> {
        self.for_each_line(|_| {})
    }

    /// Calls the program and returns its output.
    ///
    /// # Errors
    /// The call fails.
    pub fn text(self) -> Result<String> {
        let typed = typed(&self.command);
        let output = self.output()?;
        ensure!(output.status.success(), "{typed}: {}", output.status);
        Ok(output.text)
    }

    /// Calls the program and returns its output.
    ///
    /// # Errors
    /// The call succeeds.
    pub fn failure(self) -> Result<String> {
        let typed = typed(&self.command);
        let output = self.output()?;
        ensure!(
            !output.status.success(),
            "{typed}: expected to fail, and did not"
        );
        Ok(output.text)
    }

    /// Starts the program, with its output in a file.
    pub fn start(mut self, out: &str) -> Result<Running<'a>> {
        self.context.say(typed(&self.command));
        let file = File::create(out)?;
        self.command.stdout(file.try_clone()?).stderr(file);
        self.context.children.start(self.command, self.limit)
    }
}

/// Returns the command as a user would type it.
fn typed(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("$ {}", words.join(" "))
}
