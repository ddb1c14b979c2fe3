//! The tree that is under test, and the facts about it that make knows.

use std::{
    env,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};

/// Facts that make knows and the cases need.
#[derive(Clone, Debug, Default)]
pub struct Project {
    /// The project's root, which is the working directory.
    pub root: PathBuf,
    /// The policies, as `FEATURES=` names them.
    pub policies: Vec<String>,
    /// The folders of the apps that print result lines for a table.
    pub apps: Vec<String>,
    /// The architectures, as `ARCH=` names them.
    pub arches: Vec<String>,
    /// The number that chooses what this commit's gate takes of the cases in turn. None takes all.
    pub turn: Option<usize>,
    /// The path of the host's cargo.
    pub cargo: String,
    /// Options that cargo gets behind each subcommand.
    pub options: String,
    /// Variables that the caller of `make test` may set.
    pub variables: Vec<String>,
    /// Variables that programs must not inherit: `variables` and [`MAKES_OWN`].
    pub caller_variables: Vec<String>,
}

/// Variables that make sets itself, and `CI`: there Cargo.lock must know all apps, and the tests add
/// apps.
const MAKES_OWN: &str = "MAKEFLAGS MFLAGS MAKEOVERRIDES MAKELEVEL CI KVM_DEVICE";

impl Project {
    /// Reads the environment that make has set, and asks make and git for the rest. Without
    /// `takes_all` the commit's hash chooses the [`turn`](Self::turn).
    pub fn new(takes_all: bool) -> Result<Self> {
        let variable = |name| env::var(name).with_context(|| format!("{name}: set by make test"));
        let mut project = Self {
            root: env::current_dir()?,
            cargo: variable("CARGO")?,
            options: variable("WHERE")?,
            caller_variables: words(MAKES_OWN),
            ..Self::default()
        };
        project.variables = words(&project.ask_make("lab-variables")?);
        project
            .caller_variables
            .extend_from_slice(&project.variables);
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
        if !takes_all {
            project.turn = Some(turn_of(&commit()?)?);
        }
        Ok(project)
    }

    /// Returns every `parts`-th of these from the one that the turn chooses, or all of them. The
    /// `offset` makes two cases choose differently at the same commit.
    pub fn in_turn<T>(
        &self,
        all: impl IntoIterator<Item = T>,
        offset: usize,
        parts: usize,
    ) -> Vec<T> {
        let all = all.into_iter();
        match self.turn {
            Some(turn) => all.skip((turn + offset) % parts).step_by(parts).collect(),
            None => all.collect(),
        }
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

    /// Returns the folders of the examples and of the user's own apps: those under `apps/`, but
    /// not under `apps/sched-tests`, `apps/coop` and `apps/delegated`, which have cases of their own.
    pub fn own_apps(&self) -> Result<Vec<String>> {
        let mut apps = Vec::new();
        for group in folders_in(Path::new("apps"))? {
            let has_cases = ["sched-tests", "coop", "delegated"];
            if !has_cases.iter().any(|name| group.ends_with(name)) {
                apps.extend(folders_in(&group)?);
            }
        }
        apps.retain(|app| app.join("Cargo.toml").is_file());
        let text = |app: PathBuf| app.into_os_string().into_string();
        let apps = apps.into_iter().map(text).collect::<Result<_, _>>();
        apps.ok()
            .context("a folder of an app whose name is no text")
    }
}

/// Returns the commit's hash, which is empty in a tree without git.
fn commit() -> Result<String> {
    let out = Command::new("git").args(["rev-parse", "HEAD"]).output()?;
    Ok(String::from_utf8(out.stdout)?.trim().to_owned())
}

/// Returns the number of a commit's turn.
fn turn_of(commit: &str) -> Result<usize> {
    let digits = commit.get(..6).unwrap_or("0");
    usize::from_str_radix(digits, 16).with_context(|| format!("{commit}: expected a hash"))
}

/// Returns the folders in a folder, sorted.
fn folders_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = folder.read_dir()?.map(|entry| Ok(entry?.path()));
    let mut paths = entries.collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.is_dir());
    paths.sort();
    Ok(paths)
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_taken_in_one_turn_and_all_without_a_turn() {
        let mut project = Project::default();
        assert_eq!(project.in_turn(0..7, 1, 3), Vec::from_iter(0..7));
        let mut taken = Vec::new();
        for turn in [5, 9, 1] {
            project.turn = Some(turn);
            taken.extend(project.in_turn(0..7, 1, 3));
        }
        assert_eq!(taken, [0, 3, 6, 1, 4, 2, 5]);
    }

    #[test]
    fn turn_is_read_from_the_hash() {
        assert_eq!(turn_of("00001f6e9").unwrap(), 31);
        assert_eq!(turn_of("").unwrap(), 0);
        assert!(turn_of("no hash").is_err());
    }
}
