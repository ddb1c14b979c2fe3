//! The hash of a list of files in the present tree.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    path::PathBuf,
    time::SystemTime,
};

use anyhow::{Result, bail};

use super::{
    code::code,
    list::{Kind, Made, SourceList},
    policies::{has_code_of, is_left_out, is_list, is_other_crate, names, of_list},
};
use crate::{digest::digest, project::Project};

/// The scripts that build and boot an image.
const SCRIPTS: [&str; 9] = [
    "scripts/axconfig.sh",
    "scripts/build.sh",
    "scripts/features.mk",
    "scripts/kernel.mk",
    "scripts/qemu-run.sh",
    "scripts/qemu.mk",
    "scripts/tsc-rate.rs",
    "scripts/tsc-rate.sh",
    "scripts/workspace.sh",
];

/// The same for an image of the ArceOS of 2026.
const SCRIPTS_06: [&str; 7] = [
    "scripts/arceos-0.6.mk",
    "scripts/build-0.6.sh",
    "scripts/features.mk",
    "scripts/kernel.mk",
    "scripts/qemu-run.sh",
    "scripts/qemu.mk",
    "scripts/uefi.sh",
];

/// The files with cargo's settings in the project's root, in which make calls cargo.
const SETTINGS: [&str; 2] = [".cargo/config", ".cargo/config.toml"];

/// The sections of the workspace's manifest that change a build, with their subsections.
const SECTIONS: [&str; 5] = [
    "patch",
    "profile.release",
    "replace",
    "workspace.dependencies",
    "workspace.package",
];

/// The variables of the makefile that change no image.
const OF_NO_IMAGE: [&str; 3] = ["PORT", "T", "V"];

/// The files of which a part counts.
const IN_PART: [&str; 6] = [
    "Cargo.lock",
    "Cargo.toml",
    "Makefile",
    "arceos-0.6/Cargo.lock",
    "arceos-0.6/Cargo.toml",
    "scripts/setup.sh",
];

/// The manifest whose features are the policies.
const FEATURES: &str = "apps/sched-tests/common/Cargo.toml";

/// The project's files and tools.
pub struct Tree {
    root: PathBuf,
    policies: BTreeSet<String>,
    /// The compiler, then each QEMU.
    tools: Vec<String>,
    /// The workspaces of the two lines of ArceOS.
    workspaces: [Workspace; 2],
    defaults: String,
    /// The part that counts of each file that was read. This is the text of a list of policies, and
    /// the hash of any other file. The flag says that the part is for the ArceOS of 2026.
    contents: RefCell<HashMap<(String, bool), String>>,
}

/// The manifest and the lock file of a workspace.
struct Workspace {
    manifest: String,
    lock: Lock,
}

impl Tree {
    pub fn new(project: &Project) -> Result<Self> {
        Ok(Self::of(project.root.clone(), tools(project)?))
    }

    /// Reads the files of a project with these tools.
    pub fn of(root: PathBuf, tools: Vec<String>) -> Self {
        let read = |name: &str| fs::read_to_string(root.join(name)).unwrap_or_default();
        Self {
            workspaces: ["", "arceos-0.6/"].map(|folder| Workspace {
                manifest: sections(&read(&format!("{folder}Cargo.toml"))),
                lock: Lock::read(&read(&format!("{folder}Cargo.lock"))),
            }),
            defaults: defaults(&read("Makefile")) + &build_std(&read("scripts/setup.sh")),
            policies: names(&read(FEATURES)),
            tools,
            root,
            contents: RefCell::default(),
        }
    }

    /// Returns a list with its hash for figures of these schedulers.
    pub fn made(&self, list: SourceList, schedulers: &[&str]) -> Made {
        let hash = self.hash(&list, schedulers);
        Made { list, hash }
    }

    /// Checks a build that began at this moment and has ended.
    ///
    /// # Errors
    /// A file changed during the build, so the contents that were built are not known.
    pub fn check_unchanged(&self, list: &SourceList, begin: SystemTime) -> Result<()> {
        match self.changed_since(list, begin) {
            Some(file) => {
                bail!("{file} changed while the image was built: run the command again")
            }
            None => Ok(()),
        }
    }

    /// Checks that an image has no code of a file that the hash for its scheduler leaves out.
    ///
    /// # Errors
    /// It has code of one, so the hash would not show a change of it.
    pub fn check_left_out(&self, list: &SourceList, scheduler: &str, image: &[u8]) -> Result<()> {
        let mut files = list.files.iter();
        let found = files.find(|file| {
            is_left_out(file, &[scheduler], &self.policies) && has_code_of(image, file)
        });
        match found {
            Some(file) => bail!(
                "the image of {scheduler} has code of {file}, which its stamp leaves out; tools/schedlab/src/sources/policies.rs says what a scheduler uses"
            ),
            None => Ok(()),
        }
    }

    /// Returns a hash over the files of a list and all else that changes what is built from them.
    /// That is build scripts, cargo's settings, the packages in the lock, parts of the manifest,
    /// and the compiler. For an image it includes the scripts that build and boot it, make's
    /// defaults and QEMU. A file that does not exist has no content. Files that have the code of
    /// other policies only, and entries of such policies in lists, are left out.
    pub fn hash(&self, list: &SourceList, schedulers: &[&str]) -> String {
        let (kind, package) = list.package();
        let is_image = kind != Kind::Program;
        let is_2026 = kind == Kind::Image06;
        let workspace = &self.workspaces[usize::from(is_2026)];
        let mut text = String::new();
        let tools = if is_image { self.tools.len() } else { 1 };
        let mut add = |part: &str| {
            text += part;
            text.push('\n');
        };
        self.tools.iter().take(tools).for_each(|tool| add(tool));
        add(&of_list(
            "Cargo.toml",
            &workspace.manifest,
            schedulers,
            &self.policies,
        ));
        let lines = workspace
            .lock
            .of(package, |name| is_other_crate(name, schedulers));
        lines.iter().for_each(|line| add(line));
        let is_left_out = |file: &String| is_left_out(file, schedulers, &self.policies);
        for file in files(list).into_iter().filter(|file| !is_left_out(file)) {
            add(&format!(
                "{file} {}",
                self.content(&file, schedulers, is_2026)
            ));
        }
        if is_image {
            add(&self.defaults);
        }
        digest(text)[..16].to_owned()
    }

    /// Returns a file that counts for the list and was written after this moment, or a file of the
    /// list that does not exist.
    pub fn changed_since(&self, list: &SourceList, moment: SystemTime) -> Option<String> {
        let has_changed = |file: &String| {
            let of = fs::metadata(self.root.join(file)).and_then(|of| of.modified());
            of.map_or_else(|_| list.files.contains(file), |at| at > moment)
        };
        let in_part = IN_PART.map(str::to_owned);
        files(list).into_iter().chain(in_part).find(has_changed)
    }

    /// Returns the hash of the part of a file that counts for these schedulers.
    fn content(&self, file: &str, schedulers: &[&str], is_2026: bool) -> String {
        let mut contents = self.contents.borrow_mut();
        let counted = |text: &str| match file.rsplit_once('.').map(|(_, kind)| kind) {
            Some("rs") => code(text, is_2026),
            Some("mk" | "toml") => without_comments(text),
            // A line of a here-document may look like a comment.
            Some("sh") if !text.contains("<<") => without_comments(text),
            _ => text.to_owned(),
        };
        let kept = || match fs::read(self.root.join(file)) {
            Ok(bytes) => match str::from_utf8(&bytes).map(counted) {
                Ok(text) if is_list(file) => text,
                Ok(text) => digest(text),
                Err(_) => digest(bytes),
            },
            Err(_) => "-".to_owned(),
        };
        let kept = contents
            .entry((file.to_owned(), is_2026))
            .or_insert_with(kept);
        match is_list(file) {
            true => digest(of_list(file, kept, schedulers, &self.policies)),
            false => kept.clone(),
        }
    }
}

/// Returns the files of a list and those that change what is built from them. Cargo runs a
/// `build.rs` beside a manifest that does not name it.
fn files(list: &SourceList) -> Vec<String> {
    let scripts: &[&str] = match list.package().0 {
        Kind::Image => &SCRIPTS,
        Kind::Image06 => &SCRIPTS_06,
        Kind::Program => &[],
    };
    let beside = |file: &String| Some(format!("{}build.rs", file.strip_suffix("Cargo.toml")?));
    let build_scripts = list.files.iter().filter_map(beside);
    let others = SETTINGS.iter().chain(scripts).map(|file| (*file).into());
    let files = list.files.iter().cloned();
    files.chain(build_scripts).chain(others).collect()
}

/// Asks make for the versions of the compiler and each QEMU, which takes half a second.
pub fn tools(project: &Project) -> Result<Vec<String>> {
    Ok(project.tools()?.lines().map(str::to_owned).collect())
}

/// Returns the sections of a manifest that change a build, and the resolver, without comments.
fn sections(manifest: &str) -> String {
    let mut is_wanted = false;
    let mut lines = Vec::new();
    for line in manifest.lines().map(str::trim) {
        if let Some(header) = line.strip_prefix('[') {
            let name = header.split(']').next().unwrap_or_default();
            let is_in = |section: &str| {
                let rest = name.strip_prefix(section);
                rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            };
            is_wanted = SECTIONS.into_iter().any(is_in);
        }
        let is_empty = line.is_empty() || line.starts_with('#');
        if is_wanted && !is_empty || line.starts_with("resolver") {
            lines.push(line);
        }
    }
    lines.join("\n")
}

/// Returns the lines of a makefile that assign a variable of the user: the defaults of an image.
fn defaults(makefile: &str) -> String {
    let lines = || {
        makefile
            .lines()
            .filter_map(|line| Some((assigned(line)?, line)))
    };
    let of_user = lines().filter(|((_, sign), _)| *sign == "?=");
    let mut names: BTreeSet<_> = of_user.map(|((name, _), _)| name).collect();
    names.retain(|name| !OF_NO_IMAGE.contains(name));
    let wanted = lines().filter(|((name, _), _)| names.contains(name));
    wanted.map(|(_, line)| format!("{line}\n")).collect()
}

/// Returns the variable that a line of a makefile assigns, and the operator.
fn assigned(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start_matches(' ');
    let line = line.strip_prefix("override ").unwrap_or(line);
    let end = line.find(|c: char| !c.is_ascii_uppercase() && c != '_')?;
    let (name, rest) = line.split_at(end);
    let rest = rest.trim_start();
    let mut signs = ["?=", ":=", "+=", "="].into_iter();
    Some((name, signs.find(|sign| rest.starts_with(sign))?))
}

/// Returns the line of `setup.sh` with the options to build the compiler's own library.
fn build_std(setup: &str) -> String {
    let line = setup.lines().find(|line| line.starts_with("BUILD_STD "));
    line.unwrap_or_default().to_owned()
}

/// Returns a makefile or manifest without its comments and empty lines. A line that ends with a
/// backslash, or follows such a line, stays, as it is a part of another one.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut goes_on = false;
    for line in text.lines() {
        let begin = line.trim_start();
        let is_part = goes_on || line.ends_with('\\');
        goes_on = line.ends_with('\\');
        if is_part || !begin.is_empty() && !begin.starts_with('#') {
            kept += line;
            kept.push('\n');
        }
    }
    kept
}

/// The packages of a lock file and their dependencies.
#[derive(Default)]
struct Lock {
    packages: BTreeMap<String, Vec<Locked>>,
}

struct Locked {
    version: String,
    /// The name, version and checksum.
    line: String,
    /// The names of dependencies, each with a version if the lock has several.
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
            // A package of the tree has no checksum, and its version is in its manifest.
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

    /// Returns the lines of a package and its dependencies, sorted. A lock does not tell apart the
    /// packages that only tests need, so they are included. Packages of the tree for which
    /// `is_left_out` is true are not, nor what only they need. Returns all lines for an unknown
    /// package.
    fn of(&self, package: &str, is_left_out: impl Fn(&str) -> bool) -> BTreeSet<&str> {
        let mut lines = BTreeSet::new();
        let all = || self.packages.values().flatten();
        if !self.packages.contains_key(package) {
            return all().map(|locked| locked.line.as_str()).collect();
        }
        let mut next = vec![(package.to_owned(), None)];
        while let Some((name, version)) = next.pop() {
            let found = self.packages.get(&name).into_iter().flatten();
            let is_it = |locked: &&Locked| version.as_ref().is_none_or(|v| *v == locked.version);
            for locked in found
                .filter(is_it)
                .filter(|locked| !is_left_out(&locked.line))
            {
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
    use std::{thread, time::Duration};

    use super::*;
    use crate::testing::assert_begins;

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

    const MANIFEST: &str = r#"
[workspace]
resolver = "3"
members = ["a"]

[profile.release] # as small as can be
lto = true

[profile.release.package.a]
opt-level = 1
[profile.release.build-override]
opt-level = 2
[profile.tool]
opt-level = 0
[patch."a registry"]
b = { path = "b" }
"#;

    const MAKEFILE: &str = "MEM ?= 128M
PORT ?= 5555
ifneq (1,2)
  override MEM := 256M
  APP := 1
endif
help:
\techo 1
";

    struct Project(tempfile::TempDir);

    impl Project {
        fn new() -> Self {
            let project = Self(tempfile::tempdir().unwrap());
            project.write("Cargo.lock", LOCK);
            project.write("Cargo.toml", MANIFEST);
            project.write("Makefile", MAKEFILE);
            project.write("a.rs", "f(1); #[cfg(arceos = \"0.6\")] sleep();");
            project.write("a/Cargo.toml", "");
            project.write("scripts/qemu.mk", "# 1\nA = \\\n#2\nB = 3\n");
            project.write("scripts/workspace.sh", "1");
            project.write("scripts/uefi.sh", "1");
            project.write("arceos-0.6/Cargo.lock", LOCK);
            project.write("arceos-0.6/Cargo.toml", MANIFEST);
            project.write("scripts/setup.sh", "BUILD_STD := 1\nHOST := 2\n");
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
            let list = SourceList::read(&format!("{what}\na.rs\na/Cargo.toml\nb.rs")).unwrap();
            Tree::of(self.0.path().to_owned(), tools).hash(&list, &["rr"])
        }

        fn all(&self) -> [String; 3] {
            ["image app", "program app", "image-0.6 app"]
                .map(|what| self.hash(what, &["rustc 1", "QEMU 7"]))
        }
    }

    /// Each edit, and whether it changes the hash of an image, of a program of the host, and of an
    /// image of the ArceOS of 2026.
    #[test]
    fn hash_changes_with_what_is_built_and_with_nothing_else() {
        for (path, from, to, reaches) in [
            ("a.rs", "1", "2", [true, true, true]),
            ("scripts/qemu.mk", "3", "4", [true, false, true]),
            ("Makefile", "128M", "64M", [true, false, true]),
            ("Makefile", "256M", "512M", [true, false, true]),
            ("Makefile", "5555", "5556", [false, false, false]),
            ("Makefile", "APP := 1", "APP := 2", [false, false, false]),
            ("Makefile", "echo 1", "echo 2", [false, false, false]),
            ("Cargo.toml", "true", "false", [true, true, false]),
            ("Cargo.toml", "level = 1", "level = 3", [true, true, false]),
            ("Cargo.toml", "level = 2", "level = 3", [true, true, false]),
            (
                "Cargo.toml",
                "level = 0",
                "level = 3",
                [false, false, false],
            ),
            (
                "Cargo.toml",
                "path = \"b\"",
                "path = \"c\"",
                [true, true, false],
            ),
            ("Cargo.toml", "\"3\"", "\"2\"", [true, true, false]),
            (
                "Cargo.toml",
                "[\"a\"]",
                "[\"a\", \"b\"]",
                [false, false, false],
            ),
            ("scripts/qemu.mk", "# 1", "# 2\n\n", [false, false, false]),
            ("scripts/qemu.mk", "#2", "#4", [true, false, true]),
            ("scripts/workspace.sh", "1", "2", [true, false, false]),
            ("scripts/setup.sh", "1", "3", [true, false, true]),
            ("scripts/setup.sh", "2", "3", [false, false, false]),
            ("Cargo.lock", "cc", "ce", [true, true, false]),
            ("Cargo.lock", "\"aa\"", "\"ab\"", [true, true, false]),
            ("Cargo.lock", "bb", "be", [false, false, false]),
            ("Cargo.lock", "dd", "de", [false, false, false]),
            (
                "arceos-0.6/Cargo.toml",
                "true",
                "false",
                [false, false, true],
            ),
            ("arceos-0.6/Cargo.lock", "cc", "ce", [false, false, true]),
            ("arceos-0.6/Cargo.lock", "dd", "de", [false, false, false]),
            ("scripts/uefi.sh", "1", "2", [false, false, true]),
            ("a.rs", "sleep", "wait", [false, false, true]),
        ] {
            let project = Project::new();
            let before = project.all();
            assert_eq!(project.all(), before);
            project.edit(path, from, to);
            let after = project.all();
            let changed = [0, 1, 2].map(|i| before[i] != after[i]);
            assert_eq!(changed, reaches, "{path}: {from} -> {to}");
        }
        for path in ["b.rs", "a/build.rs", ".cargo/config.toml", ".cargo/config"] {
            let project = Project::new();
            let before = project.all();
            project.write(path, "");
            let after = project.all();
            assert!([0, 1, 2].iter().all(|&i| before[i] != after[i]), "{path}");
            project.write(path, "1");
            let later = project.all();
            assert!([0, 1, 2].iter().all(|&i| later[i] != after[i]), "{path}");
        }
    }

    /// The file of a policy counts for its rows.
    #[test]
    fn hash_of_another_policy_stays() {
        let project = Project::new();
        project.write(FEATURES, "[features]\nsched_rr = []\nsched_cfs = []\n");
        let file = "modules/sched-policies/src/cfs.rs";
        project.write(file, "1");
        let list = SourceList::read(&format!("image app\n{file}")).unwrap();
        let hash = |schedulers: &[&str]| {
            Tree::of(project.0.path().to_owned(), Vec::new()).hash(&list, schedulers)
        };
        let all = || [hash(&["cfs"]), hash(&["rr", "cfs"]), hash(&["rr"])];
        let before = all();
        project.write(file, "2");
        let after = all();
        assert_eq!(
            [0, 1, 2].map(|i| before[i] != after[i]),
            [true, true, false]
        );
    }

    #[test]
    fn file_that_changes_during_a_build_is_named() {
        let changed = |change: &dyn Fn(&Project)| {
            let project = Project::new();
            project.write("b.rs", "1");
            let begin = SystemTime::now();
            thread::sleep(Duration::from_millis(20));
            change(&project);
            let list = SourceList::read("image app\na.rs\na/Cargo.toml\nb.rs").unwrap();
            let tree = Tree::of(project.0.path().to_owned(), Vec::new());
            let checked = tree.check_unchanged(&list, begin);
            checked.map_err(|error| error.to_string()).err()
        };
        assert_eq!(changed(&|_| {}), None);
        assert_eq!(changed(&|project| project.write("c.rs", "")), None);
        for path in ["a.rs", "a/build.rs", ".cargo/config.toml", "Cargo.lock"] {
            let why = changed(&|project| project.write(path, "2")).unwrap();
            assert_begins(why, format!("{path} changed while"));
        }
        let why = changed(&|project| fs::remove_file(project.0.path().join("b.rs")).unwrap());
        assert_begins(why.unwrap(), "b.rs changed while");
    }

    #[test]
    fn tools_count_for_what_they_make() {
        let project = Project::new();
        for (tools, reaches) in [
            (["rustc 1", "QEMU 8"], [true, false]),
            (["rustc 2", "QEMU 7"], [true, true]),
        ] {
            let after = ["image app", "program app"].map(|what| project.hash(what, &tools));
            let before = project.all();
            assert_eq!([0, 1].map(|i| before[i] != after[i]), reaches, "{tools:?}");
        }
    }
}
