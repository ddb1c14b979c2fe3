//! A copy of this tree to work in, with the builds that are there already.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};

use crate::{
    cases::helpers::ANY_ARCH,
    frame::{Call, Context},
};

pub struct Copy<'a> {
    context: &'a Context<'a>,
    root: PathBuf,
    /// The files of the copy before a case changes them.
    files: BTreeMap<PathBuf, Vec<u8>>,
}

/// The folder of the copy, which the cases use one after the other: cargo's builds of one copy are
/// no use to a copy elsewhere.
const ROOT: &str = "target/test/copy";

/// Folders of cargo's builds under `target/`. All others are removed before a case.
const BUILT: [&str; 3] = ["kernel", "tool", "debug"];

impl<'a> Copy<'a> {
    pub fn new(context: &'a Context) -> Result<Self> {
        let root = context.project.root.join(ROOT);
        fs::create_dir_all(root.join("target"))?;
        remove_all_but(&root, &["target"])?;
        remove_all_but(&root.join("target"), &BUILT)?;
        // In shell, because git's list of names goes straight to cp. Times are kept, because cargo
        // decides by them what to build. Builds are copied while no other case builds there.
        let script = "git ls-files -z | xargs -0 cp --parents --no-dereference --preserve=timestamps --target-directory \"$1\"
            cp -a target/toolchain.mk target/tools \"$1/target\"
            for lock in target/tool/.cargo-lock target/kernel/$2-smp1/.lock; do
                from=${lock%/*}
                [[ ! -e $from || -e $1/$from ]] || flock \"$lock\" cp -a --parents \"$from\" \"$1\"
            done";
        let bash = context.program("bash").args("-euo pipefail -c");
        bash.arg(script)
            .arg("copy")
            .arg(&root)
            .arg(ANY_ARCH)
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

    /// Returns the path of a file of the copy.
    pub fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }

    /// Prepares a call of make in the copy.
    pub fn make(&self, words: impl AsRef<str>) -> Call<'a> {
        self.context.make(words).within(&self.root)
    }

    /// Prepares a call of a script of the copy.
    pub fn program(&self, name: &str) -> Call<'a> {
        self.context.program(self.path(name)).within(&self.root)
    }

    /// Returns the number of lines of an app in `apps/mine`.
    pub fn count_lines(&self, app: &str) -> Result<usize> {
        let lines = |name: &str| -> Result<usize> {
            let path = self.path(&format!("apps/mine/{app}/{name}"));
            Ok(fs::read_to_string(path)?.lines().count())
        };
        Ok(lines("Cargo.toml")? + lines("src/main.rs")?)
    }

    /// Returns true if `make matrix` runs an app.
    pub fn is_in_matrix(&self, app: &str) -> Result<bool> {
        let lists = self.make("lab-list").text()?;
        let apps = lists.lines().find_map(|line| line.strip_prefix("apps "));
        let mut apps = apps.context("no apps")?.split_whitespace();
        Ok(apps.any(|known| known.rsplit('/').next() == Some(app)))
    }

    /// Checks that `make check` lints an app, and that it is clean.
    pub fn check_lint(&self, app: &str) -> Result<()> {
        let lint = self.program("scripts/clippy.sh").env("WHERE", "");
        let lint = lint.env("CARGO", "echo").env("RUSTC", "rustc");
        let said = lint.env("POLICIES", "sched_rr").text()?;
        let one = format!("--package {app} --package ");
        let all = "--all-targets --features sched_rr";
        let lints = |line: &str| line.contains(&one) && line.contains(all);
        ensure!(said.lines().any(lints), "make check does not lint {app}");
        let cargo = |words: &str| {
            let call = self.context.program(&self.context.project.cargo);
            call.within(&self.root).args(words)
        };
        let package = format!("--manifest-path target/workspace/Cargo.toml --package {app}");
        if cargo("fmt --version").text().is_ok() {
            cargo(&format!("fmt {package} --check")).text()?;
        }
        if cargo("clippy --version").text().is_ok() {
            let all = "--target-dir target --all-targets -- -D warnings";
            cargo(&format!("clippy --locked {package} {all}")).text()?;
        }
        Ok(())
    }

    /// Checks that `make test` runs an app's tests.
    pub fn check_tests(&self, app: &str) -> Result<()> {
        let name = format!("host: {app}");
        let said = self.make(format!("test T='{name}'")).text()?;
        let done = said.lines().filter(|line| line.starts_with("ok "));
        let done: Vec<_> = done.collect();
        let is_alone = matches!(done[..], [line] if line.contains(&name));
        ensure!(
            is_alone,
            "expected the tests of {app} alone, found {done:?}"
        );
        Ok(())
    }

    /// Checks that every file is as it was before the case, and that none is new.
    pub fn check_unchanged(&self) -> Result<()> {
        let now = self.every_file()?;
        let all = self.files.keys().chain(now.keys());
        let changed = all
            .into_iter()
            .find(|path| self.files.get(*path) != now.get(*path));
        ensure!(changed.is_none(), "changed, gone or new: {changed:?}");
        Ok(())
    }

    /// Returns the contents of each file, except those in `target/`.
    fn every_file(&self) -> Result<BTreeMap<PathBuf, Vec<u8>>> {
        let mut files = BTreeMap::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                let (path, kind) = (entry.path(), entry.file_type()?);
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
        } else if entry.file_type()?.is_dir() {
            fs::remove_dir_all(entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
