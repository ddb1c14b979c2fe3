//! Where the project is, what it has, and how its `make` is called.
//!
//! The make targets are the only interface: which policies, apps and architectures
//! (`make lab-list`) and which variables (`make lab-variables`) there are is asked, not known.

mod lists;
mod names;

use std::{
    env,
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

pub use lists::{App, Cell, Lists, Titles};
pub use names::short;

use crate::cli::TreeArgs;

/// What shows that a folder is the project's.
const MARK: &str = "scripts/lab.mk";

/// What a `make` inside of `make` would inherit.
const MAKES_OWN: [&str; 4] = ["MAKEFLAGS", "MFLAGS", "MAKEOVERRIDES", "MAKELEVEL"];

/// The project's folder and its make.
#[derive(Clone, Debug)]
pub struct Project {
    pub root: PathBuf,
    make: PathBuf,
    /// The names of its own variables. No call inherits them: a cell is what its command line
    /// says, whoever calls.
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
                    // Paths are shown to people: short if they can be.
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
            // A commit from before there was that goal: the names of the caller's tree will do.
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

    /// A call of make, not yet started.
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
        // What cells measure is not the profile that the user has kept.
        command.env("PROFILE_OUT", "");
        without_cargo_run(&mut command);
        command
    }

    /// What there is to choose from.
    pub fn lists(&self) -> Result<Lists> {
        Lists::parse(&self.ask("lab-list")?)
            .map_err(|e| e.context(format!("`{} -s lab-list`", self.make.display())))
    }

    /// Returns true if its make tells what an image was made from: an older commit's does not.
    pub fn tells_sources(&self) -> bool {
        self.root.join("scripts/sources.sh").is_file()
    }

    /// The versions of the compiler and of QEMU: results depend on them.
    pub fn tools(&self) -> Result<String> {
        self.ask("lab-tools")
    }

    /// The version of the compiler that builds images.
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

/// Takes out what `cargo run` put into the environment: the kernel may be built
/// by another cargo and compiler than this program was.
fn without_cargo_run(command: &mut Command) {
    if env::var_os("CARGO_MANIFEST_DIR").is_none() {
        return;
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    folders.extend(
        env::current_exe()
            .ok()
            .as_deref()
            .and_then(Path::parent)
            .map(Path::to_owned),
    );
    // <toolchain>/bin/cargo
    folders.extend(
        env::var_os("CARGO")
            .and_then(|cargo| Some(Path::new(&cargo).parent()?.parent()?.to_owned())),
    );
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
        let own = |path: &PathBuf| !folders.iter().any(|folder| path.starts_with(folder));
        let rest: OsString =
            env::join_paths(env::split_paths(&paths).filter(own)).unwrap_or_default();
        if rest.is_empty() {
            command.env_remove("LD_LIBRARY_PATH");
        } else {
            command.env("LD_LIBRARY_PATH", rest);
        }
    }
}
