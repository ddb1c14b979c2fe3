//! The project's folder, its lists, and calls of its `make`.
//!
//! The make targets are the only interface. `make lab-list` names the policies, apps and
//! architectures, and `make lab-variables` the variables.

mod lists;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

pub use lists::{App, Cell, Lists, Titles, short};

use crate::cli::TreeArgs;

/// The file that marks the project's folder.
const MARK: &str = "scripts/lab.mk";

/// The variables that a `make` inside of `make` would inherit.
const MAKES_OWN: [&str; 4] = ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"];

/// The project's folder and its make.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    make: PathBuf,
    /// The names of the project's variables. No call inherits them, so a cell depends on its
    /// command line alone.
    variables: Vec<String>,
}

impl Project {
    pub fn find(args: &TreeArgs) -> Result<Self> {
        let root = match &args.project {
            Some(root) if root.join(MARK).is_file() => root.clone(),
            Some(root) => bail!(
                "--project {}: expected a folder with {MARK}, found none there",
                root.display()
            ),
            None => {
                let here = env::current_dir().context("the current folder cannot be read")?;
                let root = here.ancestors().find(|folder| folder.join(MARK).is_file());
                match root {
                    // A short path is easier to read.
                    Some(root) if root == here => PathBuf::from("."),
                    Some(root) => root.to_owned(),
                    None => bail!(
                        "no {MARK} in this folder or above it; --project DIR names the project"
                    ),
                }
            }
        };
        let mut project = Self {
            root,
            make: args.make.clone(),
            variables: Vec::new(),
        };
        let variables = project.ask("lab-variables").or_else(|error| {
            // A commit may be older than that goal: the names of the caller's tree apply.
            let caller = Self {
                root: ".".into(),
                ..project.clone()
            };
            match args.project {
                Some(_) => caller.ask("lab-variables"),
                None => Err(error),
            }
        })?;
        project.variables = variables.split_whitespace().map(str::to_owned).collect();
        Ok(project)
    }

    /// Returns a call of make that is not yet started.
    pub fn make(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(&self.make);
        command
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null());
        for name in MAKES_OWN {
            command.env_remove(name);
        }
        for name in &self.variables {
            command.env_remove(name);
        }
        // A cell must not overwrite a profile of the user.
        command.env("PROFILE_OUT", "");
        without_cargo_run(&mut command);
        command
    }

    /// Returns the policies, apps and architectures.
    pub fn lists(&self) -> Result<Lists> {
        Lists::parse(&self.ask("lab-list")?)
            .map_err(|e| e.context(format!("`{} -s lab-list`", self.make.display())))
    }

    /// Returns true if the project can list the sources of an image. Older commits cannot.
    pub fn can_list_sources(&self) -> bool {
        self.root.join("scripts/sources.sh").is_file()
    }

    /// Returns the versions of the compiler and of QEMU, on which results depend.
    pub fn tools(&self) -> Result<String> {
        self.ask("lab-tools")
    }

    /// Returns the version of the compiler that builds images.
    pub fn compiler(&self) -> Result<String> {
        let tools = self.tools()?;
        let first = tools.lines().next().unwrap_or_default();
        match first.trim() {
            "" => bail!(
                "`{} -s lab-tools`: expected the compiler's version, found nothing",
                self.make.display()
            ),
            compiler => Ok(compiler.to_owned()),
        }
    }

    fn ask(&self, target: &str) -> Result<String> {
        let command = format!("`{} -s {target}`", self.make.display());
        let output = self
            .make(&["-s", target])
            .output()
            .with_context(|| format!("{command} cannot be started"))?;
        if !output.status.success() {
            let errors = String::from_utf8_lossy(&output.stderr);
            let first = errors
                .lines()
                .find(|line| !line.is_empty())
                .unwrap_or("it said nothing");
            bail!("{command} failed: {first}");
        }
        String::from_utf8(output.stdout).with_context(|| format!("{command} did not print text"))
    }
}

/// Removes the variables of `cargo run` from the environment of a command: another cargo and
/// compiler than those of this program may build the kernel.
fn without_cargo_run(command: &mut Command) {
    if env::var_os("CARGO_MANIFEST_DIR").is_none() {
        return;
    }
    let own = env::current_exe().ok();
    // <toolchain>/bin/cargo
    let cargo = env::var_os("CARGO").map(PathBuf::from);
    let folders: Vec<&Path> = [
        own.as_deref().and_then(Path::parent),
        cargo.as_deref().and_then(|cargo| cargo.ancestors().nth(2)),
    ]
    .into_iter()
    .flatten()
    .collect();
    for (name, _) in env::vars_os() {
        let text = name.to_string_lossy();
        if text == "CARGO"
            || text == "RUSTUP_TOOLCHAIN"
            || text.starts_with("CARGO_PKG_")
            || text.starts_with("CARGO_MANIFEST_")
        {
            command.env_remove(&name);
        }
    }
    if let Some(paths) = env::var_os("LD_LIBRARY_PATH") {
        let is_other = |path: &PathBuf| !folders.iter().any(|folder| path.starts_with(folder));
        let rest = env::split_paths(&paths).filter(is_other);
        let rest: OsString = env::join_paths(rest).unwrap_or_default();
        if rest.is_empty() {
            command.env_remove("LD_LIBRARY_PATH");
        } else {
            command.env("LD_LIBRARY_PATH", rest);
        }
    }
}
