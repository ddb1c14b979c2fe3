//! A copy of this tree, to work in, with what is built already.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Result, ensure};

use crate::frame::{Call, Context};

pub struct Copy<'a> {
    context: &'a Context<'a>,
    root: PathBuf,
    /// What was in it at first.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// The same for all cases, which have it one after the other: what cargo has built of the
/// crates of one copy is no use to a copy elsewhere.
const ROOT: &str = "target/test/copy";

/// What cargo builds, under `target/`. All else goes with the case.
const BUILT: [&str; 3] = ["kernel", "tool", "debug"];

impl<'a> Copy<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        let root = context.project.root.join(ROOT);
        fs::create_dir_all(root.join("target"))?;
        remove_all_but(&root, &["target"])?;
        remove_all_but(&root.join("target"), &BUILT)?;
        // In shell, as git's list of names goes straight to cp. With the times of the files, by
        // which cargo knows what it has built.
        let script = "git ls-files -z | xargs -0 cp --parents --no-dereference --preserve=timestamps --target-directory \"$1\"
            for from in target/kernel target/tool*; do
                [[ ! -e $from || -e $1/$from ]] || cp -al \"$from\" \"$1/target\"
            done";
        context
            .program("bash")
            .args(["-euo", "pipefail", "-c", script, "copy"])
            .args([&root])
            .text()?;
        let mut copy = Self {
            context,
            root,
            files: BTreeMap::new(),
        };
        copy.files = copy.every_file()?;
        ensure!(!copy.files.is_empty(), "nothing was copied");
        Ok(copy)
    }

    /// A file of the copy.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Make, in the copy.
    pub fn make(&self, arguments: &[&str]) -> Call<'a> {
        self.context.make(arguments).within(&self.root)
    }

    /// A script of the copy.
    pub fn program(&self, name: &str) -> Call<'a> {
        self.context.program(self.path(name)).within(&self.root)
    }

    /// How many lines an app of `apps/mine` has.
    pub fn lines_of(&self, app: &str) -> Result<usize> {
        let lines = |name: &str| -> Result<usize> {
            let path = self.path(&format!("apps/mine/{app}/{name}"));
            Ok(fs::read_to_string(path)?.lines().count())
        };
        Ok(lines("Cargo.toml")? + lines("src/main.rs")?)
    }

    /// It is among what `make check` lints, and clean.
    pub fn is_linted(&self, app: &str) -> Result<()> {
        let said = self
            .program("scripts/clippy.sh")
            .env("CARGO", "echo")
            .env("RUSTC", "rustc")
            .env("WHERE", "")
            .env("POLICIES", "sched_rr")
            .text()?;
        let (one, all) = (
            format!("--package {app} --package "),
            "--all-targets --features sched_rr",
        );
        let lints = |line: &str| line.contains(&one) && line.contains(all);
        ensure!(said.lines().any(lints), "make check does not lint {app}");
        let cargo = |subcommand| {
            self.context
                .program(&self.context.project.cargo)
                .args([subcommand])
                .within(&self.root)
        };
        let is_there = |subcommand| cargo(subcommand).args(["--version"]).text().is_ok();
        let package = [
            "--manifest-path",
            "target/workspace/Cargo.toml",
            "--package",
            app,
        ];
        if is_there("fmt") {
            cargo("fmt").args(package).args(["--check"]).text()?;
        }
        if is_there("clippy") {
            let all = [
                "--target-dir",
                "target",
                "--all-targets",
                "--",
                "-D",
                "warnings",
            ];
            cargo("clippy")
                .args(["--locked"])
                .args(package)
                .args(all)
                .text()?;
        }
        Ok(())
    }

    /// Its tests are among those that `make test` runs.
    pub fn is_tested(&self, app: &str) -> Result<()> {
        let word = format!("T=host: {app}");
        let said = self.make(&["test", &word]).text()?;
        let name = format!("host: {app}");
        let is_good = |line: &str| line.starts_with("ok ") && line.contains(&name);
        ensure!(said.lines().any(is_good), "make test does not test {app}");
        Ok(())
    }

    /// Every file is what it was at first, and there is no other.
    pub fn is_unchanged(&self) -> Result<()> {
        let now = self.every_file()?;
        let name = |path: &Path| path.display().to_string();
        for (path, bytes) in &self.files {
            ensure!(
                now.get(path) == Some(bytes),
                "changed or gone: {}",
                name(path)
            );
        }
        let new = now.keys().find(|path| !self.files.contains_key(*path));
        ensure!(new.is_none(), "new: {new:?}");
        Ok(())
    }

    /// What is in each file, but for those in `target/`.
    fn every_file(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let (path, kind) =
                    entry.and_then(|entry| Ok((entry.path(), entry.file_type()?)))?;
                if kind.is_dir() && path != self.root.join("target") {
                    folders.push(path);
                } else if kind.is_file() {
                    let bytes = fs::read(&path)?;
                    files.insert(path, bytes);
                }
            }
        }
        Ok(files)
    }
}

fn remove_all_but(folder: &Path, kept: &[&str]) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if kept.iter().any(|name| entry.file_name() == *name) {
            continue;
        }
        if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
