//! What a case has to work with: its log, its folder, programs to call.

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

use anyhow::{Context as _, Result, bail, ensure};

use process_groups::{Children, Running};

use crate::project::Project;

/// A program that takes longer hangs. The longest is a matrix of some hundred cells.
const LIMIT: Duration = Duration::from_secs(3600);

/// For one case, while it runs.
pub struct Context<'a> {
    /// The tree that is tested.
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

    /// A line of the case's log, of which the last are shown if it fails.
    pub fn say(&self, line: impl fmt::Display) {
        // A log that cannot be written shows in what is missing from it.
        let _ = writeln!(self.log.borrow_mut(), "{line}");
    }

    /// So many tests are in this case, if it passes.
    pub fn counts(&self, tests: usize) {
        self.tests.set(tests);
    }

    pub(super) fn tests(&self) -> usize {
        self.tests.get()
    }

    /// A file of this case's own, from the project's root.
    pub fn file(&self, name: &str) -> Result<String> {
        fs::create_dir_all(&self.folder)?;
        let path = self.folder.join(name);
        Ok(path.to_str().context("cases have plain names")?.to_owned())
    }

    /// A program, without what the caller gave to `make test`.
    pub fn program(&self, program: impl AsRef<OsStr>) -> Call<'_> {
        let mut command = Command::new(program);
        for variable in &self.project.caller_variables {
            command.env_remove(variable);
        }
        command.env("PROFILE_OUT", ""); // what the user has kept stays as it is
        command.env("CARGO_INCREMENTAL", "0"); // state for the next edit: more than half of the disk
        Call {
            context: self,
            command,
            limit: LIMIT,
            is_quiet: false,
        }
    }

    /// Make, with a goal and variables.
    pub fn make<S: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = S>) -> Call<'_> {
        self.program("make").args(arguments)
    }

    /// The host's cargo, with what make tells it after the subcommand.
    pub fn cargo(&self, subcommand: &str) -> Call<'_> {
        self.program(&self.project.cargo)
            .args([subcommand])
            .args(&self.project.cargo_where)
    }
}

/// A program that is about to be called.
pub struct Call<'a> {
    context: &'a Context<'a>,
    command: Command,
    limit: Duration,
    is_quiet: bool,
}

/// What it said, and how it ended.
pub struct Output {
    /// Its output and its errors in their order, without carriage returns.
    pub text: String,
    /// How it ended.
    pub status: ExitStatus,
}

impl<'a> Call<'a> {
    /// More arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = S>) -> Self {
        self.command.args(arguments);
        self
    }

    /// A variable of its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// No such variable in its environment.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Where it works.
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// How long it may take.
    pub fn limit(mut self, seconds: u64) -> Self {
        self.limit = Duration::from_secs(seconds);
        self
    }

    /// What it says does not go into the log.
    pub fn quiet(mut self) -> Self {
        self.is_quiet = true;
        self
    }

    /// Calls it, whatever becomes of it; each line is shown to `line` as it comes.
    pub fn for_each_line(self, mut line: impl FnMut(&str)) -> Result<Output> {
        let context = self.context;
        context.say(said(&self.command));
        let mut text = String::new();
        let status = context
            .children
            .run(self.command, Some(self.limit), |next| {
                if !self.is_quiet {
                    context.say(next);
                }
                text.push_str(next);
                text.push('\n');
                line(next);
            })?;
        Ok(Output { text, status })
    }

    /// Calls it, whatever becomes of it.
    pub fn output(self) -> Result<Output> {
        self.for_each_line(|_| {})
    }

    /// What it says; it must succeed.
    pub fn text(self) -> Result<String> {
        let what = said(&self.command);
        let output = self.output()?;
        ensure!(output.status.success(), "{what}: {}", output.status);
        Ok(output.text)
    }

    /// What it says; it must fail.
    pub fn failure(self) -> Result<String> {
        let what = said(&self.command);
        let output = self.output()?;
        if output.status.success() {
            bail!("{what}: expected to fail, and did not");
        }
        Ok(output.text)
    }

    /// Starts it, with its output in a file.
    pub fn start(mut self, out: &str) -> Result<Running<'a>> {
        self.context.say(said(&self.command));
        let file = File::create(out)?;
        self.command.stdout(file.try_clone()?).stderr(file);
        self.context.children.start(self.command, self.limit)
    }
}

/// As somebody would type it.
fn said(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(OsStr::to_string_lossy).collect();
    format!("$ {}", words.join(" "))
}
