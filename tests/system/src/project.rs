//! The tree that is tested, and what make says of it.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

/// What make knows, and the cases need.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The project's root, where this program works.
    pub root: PathBuf,
    /// The policies, as `FEATURES=` names them.
    pub policies: Vec<String>,
    /// The folders of the apps that print result lines for a table.
    pub apps: Vec<String>,
    /// The architectures.
    pub arches: Vec<String>,
    /// The host's cargo.
    pub cargo: String,
    /// What cargo is told whatever it does.
    pub cargo_where: Vec<String>,
    /// What the caller of `make test` may have set, and the makes in here must not see.
    pub caller_variables: Vec<String>,
}

/// What make sets itself; and what CI does, where Cargo.lock must know all apps: the tests
/// have some of their own.
const OF_MAKE: [&str; 6] = [
    "MAKEFLAGS",
    "MFLAGS",
    "MAKEOVERRIDES",
    "MAKELEVEL",
    "CI",
    "KVM_DEVICE",
];

impl Project {
    /// Reads what make has put into the environment, and asks make for the rest.
    pub fn new() -> Result<Self> {
        let variable = |name| env::var(name).with_context(|| format!("{name}: set by make test"));
        let mut project = Self {
            root: env::current_dir()?,
            cargo: variable("CARGO")?,
            cargo_where: words(&variable("WHERE")?),
            caller_variables: OF_MAKE.map(str::to_owned).into(),
            ..Self::default()
        };
        let variables = project.ask_make("lab-variables")?;
        project.caller_variables.extend(words(&variables));
        for line in project.ask_make("lab-list")?.lines() {
            match line.split_once(' ') {
                Some(("policies", names)) => project.policies = words(names),
                Some(("apps", names)) => project.apps = words(names),
                Some(("arches", names)) => project.arches = words(names),
                _ => {} // may say more
            }
        }
        if project.policies.is_empty() || project.apps.is_empty() || project.arches.is_empty() {
            bail!("make lab-list names no policies, apps or arches");
        }
        Ok(project)
    }

    fn ask_make(&self, goal: &str) -> Result<String> {
        let mut make = Command::new("make");
        for name in &self.caller_variables {
            make.env_remove(name);
        }
        let out = make.args(["-s", "--no-print-directory", goal]).output()?;
        let error = String::from_utf8_lossy(&out.stderr);
        ensure!(out.status.success(), "make {goal}: {error}");
        Ok(String::from_utf8(out.stdout)?)
    }

    /// Examples and apps of the user's own: the folders under `apps/` but `apps/sched-tests` and `apps/coop`.
    pub fn own_apps(&self) -> Result<Vec<String>> {
        let mut folders = Vec::new();
        for group in folders_in(Path::new("apps"))? {
            // Which have cases of their own.
            if !["sched-tests", "coop"]
                .iter()
                .any(|ours| group.ends_with(ours))
            {
                let apps = folders_in(&group)?;
                folders.extend(
                    apps.into_iter()
                        .filter(|app| app.join("Cargo.toml").is_file()),
                );
            }
        }
        let text = |folder: PathBuf| folder.into_os_string().into_string();
        let folders = folders.into_iter().map(text).collect::<Result<Vec<_>, _>>();
        folders
            .ok()
            .context("a folder of an app whose name is no text")
    }
}

/// The folders in a folder, sorted.
pub fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        if path.is_dir() {
            folders.push(path);
        }
    }
    folders.sort();
    Ok(folders)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
