//! The hash of a list of files, as the tree is now.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::PathBuf,
    time::SystemTime,
};

use anyhow::Result;

use super::list::{Made, SourceList};
use crate::{digest::digest, project::Project};

/// The scripts that say how an image is built and booted.
const SCRIPTS: [&str; 8] = [
    "scripts/axconfig.sh",
    "scripts/build.sh",
    "scripts/features.mk",
    "scripts/kernel.mk",
    "scripts/qemu-run.sh",
    "scripts/qemu.mk",
    "scripts/tsc-rate.rs",
    "scripts/tsc-rate.sh",
];

/// The parts of the workspace's manifest that reach what is built.
const SECTIONS: [&str; 4] = [
    "[patch.crates-io]",
    "[profile.release]",
    "[workspace.dependencies]",
    "[workspace.package]",
];

/// The project's files and tools.
pub struct Tree {
    root: PathBuf,
    /// The compiler, then each QEMU.
    tools: Vec<String>,
    /// `Cargo.lock`, by package.
    lock: Lock,
    manifest: String,
    defaults: String,
    contents: RefCell<HashMap<String, String>>,
}

impl Tree {
    pub fn new(project: &Project) -> Result<Self> {
        Ok(Self::of(project.root.clone(), tools(project)?))
    }

    /// Reads the files of a project whose tools are known.
    pub fn of(root: PathBuf, tools: Vec<String>) -> Self {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        Self {
            lock: Lock::read(&read("Cargo.lock")),
            manifest: sections(&read("Cargo.toml")),
            defaults: defaults(&read("Makefile")),
            tools,
            root,
            contents: RefCell::default(),
        }
    }

    /// The list and what it has come to.
    pub fn made(&self, list: SourceList) -> Made {
        let hash = self.hash(&list);
        Made { list, hash }
    }

    /// Returns a hash over the files of a list, the packages that the lock names for it, the parts of
    /// the manifest that reach what is built, and the compiler; and, of an image, over the scripts
    /// that build and boot it, make's defaults, and QEMU. A file that is gone has no contents.
    pub fn hash(&self, list: &SourceList) -> String {
        let (is_image, package) = list.package();
        let mut text = String::new();
        let tools = if is_image { self.tools.len() } else { 1 };
        let mut add = |part: &str| {
            text += part;
            text.push('\n');
        };
        self.tools.iter().take(tools).for_each(|tool| add(tool));
        add(&self.manifest);
        self.lock.of(package).iter().for_each(|line| add(line));
        let scripts = SCRIPTS.iter().filter(|_| is_image).copied();
        let files = list.files.iter().map(String::as_str);
        for file in files.chain(scripts) {
            add(&format!("{file} {}", self.content(file)));
        }
        if is_image {
            add(&self.defaults);
        }
        digest(text)[..16].to_owned()
    }

    /// A file of the list, or a script, that was written after this moment.
    pub fn changed_since(&self, list: &SourceList, moment: SystemTime) -> Option<String> {
        let files = list.files.iter().map(String::as_str).chain(SCRIPTS);
        let is_newer = |file: &&str| {
            let of = fs::metadata(self.root.join(file)).and_then(|of| of.modified());
            of.is_ok_and(|at| at > moment)
        };
        let mut files = files.filter(is_newer);
        files.next().map(str::to_owned)
    }

    fn content(&self, file: &str) -> String {
        let mut contents = self.contents.borrow_mut();
        let hash = || match fs::read(self.root.join(file)) {
            Ok(bytes) => digest(bytes),
            Err(_) => "-".to_owned(),
        };
        contents.entry(file.to_owned()).or_insert_with(hash).clone()
    }
}

/// Asks make for the compiler and each QEMU: half a second.
pub fn tools(project: &Project) -> Result<Vec<String>> {
    Ok(project.tools()?.lines().map(str::to_owned).collect())
}

/// The sections of a manifest that reach what is built, without comments.
fn sections(manifest: &str) -> String {
    let mut wanted = false;
    let is_wanted = |line: &&str| {
        if line.starts_with('[') {
            wanted = SECTIONS.contains(line);
        }
        wanted && !line.is_empty() && !line.starts_with('#')
    };
    let lines: Vec<_> = manifest.lines().filter(is_wanted).collect();
    lines.join("\n")
}

/// The lines of a makefile that give a variable its value: what an image is made with if nobody
/// says otherwise.
fn defaults(makefile: &str) -> String {
    let is_default = |line: &&str| {
        let name = line.split([' ', '=', '?', ':']).next().unwrap_or_default();
        let is_name = |c: char| c.is_ascii_uppercase() || c == '_';
        !name.is_empty() && name.chars().all(is_name) && line.contains("?=")
    };
    let lines: Vec<_> = makefile.lines().filter(is_default).collect();
    lines.join("\n")
}

/// The packages of a lock file and their dependencies.
#[derive(Default)]
struct Lock {
    packages: BTreeMap<String, Vec<Locked>>,
}

struct Locked {
    version: String,
    /// Its line: name, version, checksum.
    line: String,
    /// A name, and a version where there are several.
    needs: Vec<(String, Option<String>)>,
}

impl Lock {
    fn read(text: &str) -> Self {
        let mut lock = Self::default();
        for block in text.split("[[package]]").skip(1) {
            let value = |key: &str| {
                let mut lines = block.lines();
                let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "));
                value.unwrap_or_default().trim_matches('"').to_owned()
            };
            let (name, version) = (value("name"), value("version"));
            // A package of the tree has no checksum; its version is in its manifest.
            let line = match value("checksum").as_str() {
                "" => name.clone(),
                checksum => format!("{name} {version} {checksum}"),
            };
            let needs = block.lines().filter_map(|line| {
                let words = line.strip_prefix(" \"")?.strip_suffix("\",")?;
                let mut words = words.split(' ').map(str::to_owned);
                Some((words.next()?, words.next()))
            });
            let needs = needs.collect();
            lock.packages.entry(name).or_default().push(Locked {
                version,
                line,
                needs,
            });
        }
        lock
    }

    /// The lines of a package and of all that it needs, sorted. Packages that only its tests
    /// need are among them, as a lock does not tell them apart. Returns all lines if it does not know the package.
    fn of(&self, package: &str) -> BTreeSet<&str> {
        let mut lines = BTreeSet::new();
        let all = || self.packages.values().flatten();
        if !self.packages.contains_key(package) {
            return all().map(|locked| locked.line.as_str()).collect();
        }
        let mut next = vec![(package.to_owned(), None)];
        while let Some((name, version)) = next.pop() {
            let found = self.packages.get(&name).into_iter().flatten();
            let is_it = |locked: &&Locked| version.as_ref().is_none_or(|v| *v == locked.version);
            for locked in found.filter(is_it) {
                if lines.insert(locked.line.as_str()) {
                    next.extend(locked.needs.iter().cloned());
                }
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCK: &str = r#"
[[package]]
name = "app"
version = "0.1.0"
dependencies = [
 "near 1.0.0",
]

[[package]]
name = "near"
version = "1.0.0"
source = "registry"
checksum = "aa"
dependencies = [
 "far",
]

[[package]]
name = "near"
version = "2.0.0"
checksum = "bb"

[[package]]
name = "far"
version = "3.0.0"
checksum = "cc"

[[package]]
name = "other"
version = "4.0.0"
checksum = "dd"
"#;

    struct Project(tempfile::TempDir);

    impl Project {
        fn new() -> Self {
            let project = Self(tempfile::tempdir().unwrap());
            project.write("Cargo.lock", LOCK);
            project.write(
                "Cargo.toml",
                "[workspace]\nmembers = [\"a\"]\n\n[profile.release]\nlto = true\n",
            );
            project.write("Makefile", "MEM ?= 128M\nhelp:\n\techo 1\n");
            project.write("a.rs", "1");
            project.write("scripts/qemu.mk", "1");
            project
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn edit(&self, path: &str, from: &str, to: &str) {
            let text = fs::read_to_string(self.0.path().join(path)).unwrap();
            assert!(text.contains(from));
            self.write(path, &text.replace(from, to));
        }

        fn hash(&self, what: &str, tools: &[&str]) -> String {
            let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
            let list = SourceList::read(&format!("{what}\na.rs\nb.rs")).unwrap();
            Tree::of(self.0.path().to_owned(), tools).hash(&list)
        }

        fn both(&self) -> [String; 2] {
            ["image app", "program app"].map(|what| self.hash(what, &["rustc 1", "QEMU 7"]))
        }
    }

    /// Each edit, and whether it reaches an image and a program of the host.
    #[test]
    fn hash_changes_with_what_is_built_and_with_nothing_else() {
        for (path, from, to, reaches) in [
            ("a.rs", "1", "2", [true, true]),
            ("scripts/qemu.mk", "1", "2", [true, false]),
            ("Makefile", "128M", "64M", [true, false]),
            ("Makefile", "echo 1", "echo 2", [false, false]),
            ("Cargo.toml", "true", "false", [true, true]),
            ("Cargo.toml", "\"a\"", "\"a\", \"b\"", [false, false]),
            ("Cargo.lock", "cc", "ce", [true, true]),
            ("Cargo.lock", "\"aa\"", "\"ab\"", [true, true]),
            ("Cargo.lock", "bb", "be", [false, false]),
            ("Cargo.lock", "dd", "de", [false, false]),
        ] {
            let project = Project::new();
            let before = project.both();
            assert_eq!(project.both(), before);
            project.edit(path, from, to);
            let after = project.both();
            let changed = [0, 1].map(|i| before[i] != after[i]);
            assert_eq!(changed, reaches, "{path}: {from} -> {to}");
        }
        let project = Project::new();
        let before = project.both();
        project.write("b.rs", "");
        let after = project.both();
        assert!(before[0] != after[0] && before[1] != after[1]);
    }

    #[test]
    fn tools_count_where_they_are_used() {
        let project = Project::new();
        let of = |what, tools: &[&str]| project.hash(what, tools);
        let image = of("image app", &["rustc 1", "QEMU 7"]);
        let program = of("program app", &["rustc 1", "QEMU 7"]);
        assert_ne!(image, of("image app", &["rustc 1", "QEMU 8"]));
        assert_ne!(image, of("image app", &["rustc 2", "QEMU 7"]));
        assert_eq!(program, of("program app", &["rustc 1", "QEMU 8"]));
        assert_ne!(program, of("program app", &["rustc 2", "QEMU 7"]));
    }
}
