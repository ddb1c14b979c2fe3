//! The fingerprint of a cell: a hash over the sources that can reach its image, the tools that
//! make and run it, and its variables.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use ignore::WalkBuilder;

use crate::{
    digest::digest,
    project::{App, Lists, Project},
    store::Inputs,
};

/// The files and folders that count, but for what git ignores there.
const ROOTS: [&str; 8] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "Makefile",
    "apps",
    "arceos-0.6",
    "modules",
    "scripts",
];

/// The folders of a module that cargo does not build for an app.
const NOT_BUILT: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

/// A script that neither builds nor boots an image.
const NOT_CALLED: &str = "scripts/clippy.sh";

/// The files that count, read once.
pub struct Fingerprints {
    /// The paths from the project's root, sorted, each with a hash of the content.
    files: Vec<(PathBuf, String)>,
    tools: String,
    apps: Vec<App>,
}

impl Fingerprints {
    pub fn new(project: &Project, lists: &Lists) -> Result<Self> {
        Self::of_tree(&project.root, project.tools()?, lists.apps.clone())
    }

    fn of_tree(root: &Path, tools: String, apps: Vec<App>) -> Result<Self> {
        let mut files = Vec::new();
        for name in ROOTS.into_iter().filter(|name| root.join(name).exists()) {
            // The tree itself says which files are ignored; settings of the user do not count.
            let walk = WalkBuilder::new(root.join(name))
                .hidden(false)
                .ignore(false)
                .git_global(false)
                .git_exclude(false)
                .require_git(false)
                .build();
            for entry in walk {
                let entry = entry?;
                if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                    continue;
                }
                let path = entry
                    .path()
                    .strip_prefix(root)
                    .expect("the walk began there")
                    .to_owned();
                if is_built(&path) {
                    let text =
                        fs::read(entry.path()).with_context(|| path.display().to_string())?;
                    files.push((path, digest(text)));
                }
            }
        }
        files.sort();
        Ok(Self { files, tools, apps })
    }

    /// Returns the fingerprint of a cell: all that goes into the app's images, and the variables.
    /// Files of other apps do not count.
    pub fn cell(&self, app: &App, variables: &[String]) -> String {
        let others = self.apps.iter().filter(|other| *other != app);
        let sources = self.hash(&self.tools, |path| {
            !others.clone().any(|other| path.starts_with(&other.folder))
        });
        digest(format!("{sources}\n{}", variables.join("\n")))
    }

    /// Returns the inputs of an app's images.
    pub fn inputs(&self, app: &App) -> Inputs {
        let is_of_an_app = |path: &Path| self.apps.iter().any(|app| path.starts_with(&app.folder));
        Inputs {
            tools: self.tools.lines().map(str::to_owned).collect(),
            shared: self.hash("", |path| !is_of_an_app(path)),
            own: self.hash("", |path| path.starts_with(&app.folder)),
        }
    }

    /// Returns a hash over a text and the wanted files.
    fn hash(&self, text: &str, wanted: impl Fn(&Path) -> bool) -> String {
        let mut text = text.to_owned();
        for (path, content) in self.files.iter().filter(|(path, _)| wanted(path)) {
            text += &format!("{}\0{content}\n", path.display());
        }
        digest(text)
    }
}

/// Returns true if a file can reach an image: tests and the like cannot.
fn is_built(path: &Path) -> bool {
    // The coroutines are a folder of crates.
    let depth = if path.starts_with("modules/coop") {
        3
    } else {
        2
    };
    let folder = path.iter().nth(depth).and_then(|folder| folder.to_str());
    let is_left_out = folder.is_some_and(|folder| NOT_BUILT.contains(&folder));
    path != Path::new(NOT_CALLED) && !(path.starts_with("modules") && is_left_out)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each edit, whether it reaches the images of the apps a and b, and whether the file is
    /// shared.
    #[test]
    fn edit_changes_the_fingerprints_of_the_apps_that_it_reaches() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        let apps = ["a", "b"].map(|name| App {
            name: name.into(),
            folder: format!("apps/{name}"),
        });
        let tools = "rustc 1\nQEMU 7\nQEMU 7";
        let found = |tools: &str, variable: &str| {
            let of = Fingerprints::of_tree(folder.path(), tools.into(), apps.to_vec()).unwrap();
            [0, 1].map(|i| (of.cell(&apps[i], &[variable.into()]), of.inputs(&apps[i])))
        };
        write(".gitignore", "/target\n*.bak\n");
        for path in [
            "Cargo.toml",
            "apps/a/main.rs",
            "apps/b/main.rs",
            "apps/common/lib.rs",
        ] {
            write(path, "1");
        }
        for (path, reaches, is_shared) in [
            ("apps/a/main.rs", [true, false], false),
            ("apps/b/new.rs", [false, true], false),
            ("apps/common/lib.rs", [true, true], true),
            ("modules/m/src/lib.rs", [true, true], true),
            (".cargo/config.toml", [true, true], true),
            ("docs/x.md", [false, false], false),
            ("target/x", [false, false], false),
            ("apps/a/main.rs.bak", [false, false], false),
            ("modules/m/tests/x.rs", [false, false], false),
            ("modules/coop/m/tests/x.rs", [false, false], false),
            ("modules/coop/m/src/x.rs", [true, true], true),
            ("modules/m/benches/x.rs", [false, false], false),
            ("scripts/clippy.sh", [false, false], false),
        ] {
            let before = found(tools, "");
            assert_eq!(before, found(tools, ""));
            write(path, "2");
            let after = found(tools, "");
            for ((before, after), reaches) in before.into_iter().zip(after).zip(reaches) {
                assert_eq!(before.0 != after.0, reaches, "{path}");
                assert_eq!(before.1.shared != after.1.shared, is_shared, "{path}");
                assert_eq!(before.1.own != after.1.own, reaches && !is_shared, "{path}");
            }
        }
        let [(a, inputs), _] = found(tools, "");
        assert_eq!(inputs.versions(), ("rustc 1".into(), "QEMU 7".into()));
        assert_ne!(a, found("rustc 1\nQEMU 8", "")[0].0);
        assert_ne!(a, found(tools, "SCALE=2")[0].0);
    }
}
