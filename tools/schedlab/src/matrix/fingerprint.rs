//! Did a cell's inputs change? A hash over the sources that can reach its image,
//! the tools that make and run it, and its variables.

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

/// What matters in the project. Whatever git would ignore there does not.
const ROOTS: [&str; 7] = [
    ".cargo",
    "Cargo.lock",
    "Cargo.toml",
    "Makefile",
    "apps",
    "modules",
    "scripts",
];

/// Folders of a module that cargo does not build for an app.
const NOT_BUILT: [&str; 4] = ["benches", "examples", "fuzz", "tests"];

/// A script that neither builds nor boots an image.
const NOT_CALLED: &str = "scripts/clippy.sh";

/// The files that matter, read once.
pub struct Fingerprints {
    /// From the project's root, sorted; and a hash of what is in it.
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
            // Ignored files are those that the tree itself says are; not those
            // of the user's own settings, which others do not have.
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

    /// Of all that goes into this app's images but the variables. What belongs
    /// to another app does not.
    pub fn sources(&self, app: &App) -> String {
        let others: Vec<_> = self.apps.iter().filter(|other| *other != app).collect();
        let of_another = |path: &Path| others.iter().any(|other| path.starts_with(&other.folder));
        self.hash(&self.tools, |path| !of_another(path))
    }

    /// What that is a fingerprint of.
    pub fn inputs(&self, app: &App) -> Inputs {
        let of_an_app = |path: &Path| self.apps.iter().any(|app| path.starts_with(&app.folder));
        Inputs {
            tools: self.tools.lines().map(str::to_owned).collect(),
            shared: self.hash("", |path| !of_an_app(path)),
            own: self.hash("", |path| path.starts_with(&app.folder)),
        }
    }

    /// Of this and the files that are wanted.
    fn hash(&self, before: &str, wanted: impl Fn(&Path) -> bool) -> String {
        let mut text = before.to_owned();
        for (path, content) in self.files.iter().filter(|(path, _)| wanted(path)) {
            text += &format!("{}\0{content}\n", path.display());
        }
        digest(text)
    }
}

/// The fingerprint of a cell.
pub fn of(sources: &str, variables: &[String]) -> String {
    digest(format!("{sources}\n{}", variables.join("\n")))
}

/// Tests and the like are not part of any image.
fn is_built(path: &Path) -> bool {
    if path == Path::new(NOT_CALLED) {
        return false;
    }
    let mut parts = path.iter().map(|part| part.to_string_lossy());
    let of_a_module = parts.next().is_some_and(|first| first == "modules");
    !(of_a_module
        && parts
            .nth(1)
            .is_some_and(|third| NOT_BUILT.contains(&third.as_ref())))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Tree {
        folder: tempfile::TempDir,
        apps: Vec<App>,
    }

    impl Tree {
        fn new() -> Self {
            let app = |name: &str| App {
                name: name.into(),
                folder: format!("apps/{name}"),
            };
            let tree = Self {
                folder: tempfile::tempdir().unwrap(),
                apps: vec![app("a"), app("b")],
            };
            tree.write(".gitignore", "/target\n*.bak\n");
            for path in [
                "Cargo.toml",
                "apps/a/main.rs",
                "apps/b/main.rs",
                "apps/common/lib.rs",
                "modules/m/src/lib.rs",
            ] {
                tree.write(path, "1");
            }
            tree
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// The fingerprints of both apps.
        fn both(&self) -> [String; 2] {
            let all = Fingerprints::of_tree(self.folder.path(), "tools".into(), self.apps.clone())
                .unwrap();
            [0, 1].map(|i| all.sources(&self.apps[i]))
        }
    }

    #[test]
    fn a_change_reaches_exactly_the_apps_it_can_reach() {
        let tree = Tree::new();
        let [a, b] = tree.both();
        assert_eq!([a.clone(), b.clone()], tree.both());
        tree.write("apps/a/main.rs", "2");
        let [a2, b2] = tree.both();
        assert!(a2 != a && b2 == b);
        tree.write("apps/common/lib.rs", "2");
        let [a3, b3] = tree.both();
        assert!(a3 != a2 && b3 != b2);
        tree.write("modules/m/src/new.rs", "");
        let [a4, b4] = tree.both();
        assert!(a4 != a3 && b4 != b3);
        tree.write(".cargo/config.toml", "");
        let [a5, b5] = tree.both();
        assert!(a5 != a4 && b5 != b4);
    }

    #[test]
    fn the_inputs_say_where_a_change_was() {
        let tree = Tree::new();
        let inputs = |tools: &str| {
            let all =
                Fingerprints::of_tree(tree.folder.path(), tools.into(), tree.apps.clone()).unwrap();
            [0, 1].map(|i| all.inputs(&tree.apps[i]))
        };
        let [a, b] = inputs("rustc 1\nQEMU 7\nQEMU 7\n");
        assert_eq!(a.tools, ["rustc 1", "QEMU 7", "QEMU 7"]);
        assert_eq!(a.versions(), ("rustc 1".into(), "QEMU 7".into()));
        assert!(a.shared == b.shared && a.own != b.own);
        tree.write("apps/a/main.rs", "2");
        let [a2, b2] = inputs("rustc 2");
        assert!(a2.shared == a.shared && a2.own != a.own && b2.own == b.own);
        tree.write("apps/common/lib.rs", "2");
        let [a3, b3] = inputs("rustc 2");
        assert!(a3.shared != a2.shared && a3.shared == b3.shared && a3.own == a2.own);
    }

    #[test]
    fn what_is_ignored_or_not_built_does_not_count() {
        let tree = Tree::new();
        let before = tree.both();
        for path in [
            "docs/x.md",
            "target/x",
            "apps/a/main.rs.bak",
            "modules/m/tests/x.rs",
            "modules/m/benches/x.rs",
            "scripts/clippy.sh",
        ] {
            tree.write(path, "new");
        }
        assert_eq!(tree.both(), before);
    }

    #[test]
    fn tools_and_variables_count() {
        let tree = Tree::new();
        let with = |tools: &str| {
            Fingerprints::of_tree(tree.folder.path(), tools.into(), tree.apps.clone())
                .unwrap()
                .sources(&tree.apps[0])
        };
        assert_ne!(with("QEMU 7"), with("QEMU 8"));
        assert_ne!(of("s", &["SCALE=1".into()]), of("s", &["SCALE=2".into()]));
    }
}
