//! Files that have the code of one policy only, and entries of one policy in a list of all. A row of
//! another policy leaves them out.
//!
//! Policies are generic over the task. An image names one scheduler, and the code of the others is
//! not in it.

use std::{collections::BTreeSet, iter::Peekable};

use memchr::memmem;

/// The crate of policies. A policy has a file there, and may have a folder.
const POLICIES: &str = "modules/sched-policies/src/";
/// The crates of PBG.
const PBG: [&str; 3] = [
    "modules/pbg/src/",
    "modules/pbg-record/src/",
    "modules/pbg-profile/src/",
];
/// The policies with a crate of their own, which has the policy's name.
const CRATES: [&str; 1] = ["delegated"];
/// The files beside the manifests that have an entry for each policy.
const LISTS: [&str; 3] = [
    "modules/axsched-ext/src/lib.rs",
    "modules/axsched-ext/src/selected.rs",
    "modules/sched-policies/src/lib.rs",
];
/// The policy whose code counts for all: a worker of coroutines asks each task for its state.
const CALLED: &str = "coop";

/// Returns the names of the policies that are features of this manifest, as modules.
pub fn names(manifest: &str) -> BTreeSet<String> {
    let features = manifest.lines().filter_map(|line| {
        let (feature, _) = line.split_once(" = ")?;
        feature.strip_prefix("sched_").map(str::to_owned)
    });
    features.collect()
}

/// Returns the policies whose code the image of this scheduler has.
fn used(scheduler: &str) -> &[&str] {
    match scheduler {
        // PBG measures under RR.
        "pbg" | "pbg-coop" => &["pbg", "rr"],
        // They have the slice of RR.
        CALLED | "delegated" => &["rr"],
        _ => &[],
    }
}

/// Returns the policy whose code alone the file has; `None` if the file counts for all.
fn owner<'f>(file: &'f str, policies: &BTreeSet<String>) -> Option<&'f str> {
    if PBG.iter().any(|folder| file.starts_with(folder)) {
        return Some("pbg");
    }
    let of_crate = |name: &&&str| file.starts_with(&format!("modules/{name}/"));
    if let Some(name) = CRATES.iter().find(of_crate) {
        return Some(name);
    }
    let name = file.strip_prefix(POLICIES)?.split(['/', '.']).next()?;
    (policies.contains(name) && name != CALLED).then_some(name)
}

/// Returns true if one of these schedulers has the code of the policy.
fn is_used(policy: &str, schedulers: &[&str]) -> bool {
    let mut schedulers = schedulers.iter();
    schedulers.any(|name| name.replace('-', "_") == policy || used(name).contains(&policy))
}

/// Returns true if no figure of these schedulers depends on a package of the tree. That is the crate
/// of another policy.
pub fn is_other_crate(package: &str, schedulers: &[&str]) -> bool {
    CRATES.contains(&package) && !is_used(package, schedulers)
}

/// Returns true if no figure of these schedulers depends on the file.
pub fn is_left_out(file: &str, schedulers: &[&str], policies: &BTreeSet<String>) -> bool {
    owner(file, policies).is_some_and(|owner| !is_used(owner, schedulers))
}

/// Returns true if the file lists policies: a manifest, or one of [`LISTS`].
pub fn is_list(file: &str) -> bool {
    file.ends_with(".toml") || LISTS.contains(&file)
}

/// Returns the part of a list of policies that counts for these schedulers. It lacks the features and
/// the entries of all other policies. `code` is the file without comments, and for Rust its
/// [tokens](super::code::code).
pub fn of_list(file: &str, code: &str, schedulers: &[&str], policies: &BTreeSet<String>) -> String {
    let others = policies.iter();
    let others = others.filter(|name| *name != CALLED && !is_used(name, schedulers));
    let others: Vec<_> = others.map(|name| Name::of(name)).collect();
    let names_other = |line: &str| others.iter().any(|name| name.is_in(line));
    if file.ends_with(".toml") {
        let lines = code.lines().filter(|line| !names_other(line));
        return lines.collect::<Vec<_>>().join("\n");
    }
    let mut counted = Vec::new();
    // Signs that follow each other without a blank, as in `T>;`, are one line.
    let is_sign = |c: char| c.is_ascii_punctuation() && c != '"' && c != '\'';
    let tokens = code.lines().flat_map(|line| {
        let is_signs = line.chars().all(is_sign);
        line.split_inclusive(move |_| is_signs)
    });
    add_entries(&mut tokens.peekable(), &names_other, &mut counted);
    counted.join("\n")
}

/// Adds the entries up to the closing bracket that do not name another policy. An entry ends at a
/// comma, which does not count, at a semicolon or at a closing brace.
fn add_entries<'c>(
    tokens: &mut Peekable<impl Iterator<Item = &'c str>>,
    names_other: &impl Fn(&str) -> bool,
    counted: &mut Vec<&'c str>,
) {
    let (mut entry, mut is_other, mut angles) = (Vec::new(), false, 0);
    loop {
        let token = tokens.next();
        let is_end = match token {
            None | Some(";" | ")" | "]" | "}") => true,
            Some(",") if angles == 0 => true,
            Some(open @ ("(" | "[" | "{")) => {
                entry.push(open);
                add_entries(tokens, names_other, &mut entry);
                open == "{" && !matches!(tokens.peek(), Some(&("," | ";")))
            }
            Some(word) => {
                is_other |= names_other(word);
                angles = match word {
                    "<" => angles + 1,
                    ">" => i32::max(angles - 1, 0), // or of an arrow
                    _ => angles,
                };
                entry.push(word);
                false
            }
        };
        if !is_end {
            continue;
        }
        if !is_other {
            counted.append(&mut entry);
            counted.extend(token.filter(|token| *token == ";"));
        }
        (entry, is_other, angles) = (Vec::new(), false, 0);
        if let None | Some(")" | "]" | "}") = token {
            counted.extend(token);
            return;
        }
    }
}

/// The spellings of a policy's name.
struct Name<'a> {
    module: &'a str,
    feature: String,
    title: String,
}

impl<'a> Name<'a> {
    fn of(module: &'a str) -> Self {
        let (first, rest) = module.split_at(1);
        Self {
            module,
            feature: format!("sched_{module}"),
            title: first.to_uppercase() + rest,
        }
    }

    /// Returns true if a word is a type of the policy.
    fn is_type(&self, word: &str) -> bool {
        let rest = word.strip_prefix(&self.title);
        rest.is_some_and(|rest| rest.starts_with(char::is_uppercase))
    }

    /// Returns true if the line of a manifest is the policy's feature, or if a token names the policy.
    fn is_in(&self, line: &str) -> bool {
        let is_key = |rest: &str| rest.trim_start().starts_with('=');
        let is_crate = CRATES.contains(&self.module);
        line == self.module
            || is_crate && line.strip_prefix(self.module).is_some_and(is_key)
            || line.trim_matches('"') == self.feature
            || line.strip_prefix(&self.feature).is_some_and(is_key)
            || self.is_type(line)
    }
}

/// Returns true if a program has a symbol of the file's module, or the file's name, which a panic
/// there would print.
pub fn has_code_of(program: &[u8], file: &str) -> bool {
    let words: Vec<_> = file.split(['/', '.']).collect();
    let [_, krate, _, module, ..] = words[..] else {
        return false;
    };
    let krate = krate.replace('-', "_");
    let of_path = format!("{}{krate}{}{module}", krate.len(), module.len());
    // In the older mangling, of a trait's method.
    let of_trait = format!("{krate}..{module}..");
    let has = |text: &str| memmem::find(program, text.as_bytes()).is_some();
    [file, &of_path, &of_trait].into_iter().any(has)
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        path::{Path, PathBuf},
    };

    use super::*;
    use crate::sources::code::code;

    fn tree() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
    }

    /// The policies of this project.
    fn policies() -> BTreeSet<String> {
        names(&fs::read_to_string(tree().join("apps/sched-tests/common/Cargo.toml")).unwrap())
    }

    #[test]
    fn row_leaves_out_the_files_of_other_policies() {
        const EEVDF: &str = "modules/sched-policies/src/eevdf.rs";
        const PLAN: &str = "modules/pbg/src/plan/order.rs";
        const RECORD: &str = "modules/pbg-record/src/record.rs";
        const RR: &str = "modules/sched-policies/src/rr.rs";
        const RING: &str = "modules/delegated/src/ring.rs";
        const MANIFEST: &str = "modules/delegated/Cargo.toml";
        const ALL: [&str; 6] = [EEVDF, PLAN, RECORD, RR, RING, MANIFEST];
        for (schedulers, kept) in [
            (&["eevdf"][..], &[EEVDF][..]),
            (&["stock-rr"], &[]),
            (&["rr"], &[RR]),
            (&["delegated"], &[RR, RING, MANIFEST]),
            (&["pbg"], &[PLAN, RECORD, RR]),
            (&["pbg-coop"], &[PLAN, RECORD, RR]),
            (&["eevdf", "pbg"], &[EEVDF, PLAN, RECORD, RR]),
        ] {
            let counts = |file: &&str| !is_left_out(file, schedulers, &policies());
            let counted: Vec<_> = ALL.into_iter().filter(counts).collect();
            assert_eq!(counted, kept, "{schedulers:?}");
        }
    }

    /// The rows of SJF and of CFS, if EEVDF joins the lists.
    #[test]
    fn entry_of_another_policy_does_not_count() {
        let policies = BTreeSet::from(["cfs", "delegated", "eevdf", "sjf"].map(str::to_owned));
        let manifest =
            |more: &str| format!("[features]\nsched_cfs = []\n{more}sched_sjf = [\"a\"]\n");
        let list = |mid: &str, end: &str, more: &str| {
            let text = format!(
                "pub mod cfs; {mid} pub use a::{{CfsTask, cfs, sjf, SjfTask {end}}}; l! {{ \"sched_cfs\" cfs; \"sched_sjf\" sjf S<T>; {more} }} fn f() {{}}"
            );
            code(&text, false)
        };
        let rust = LISTS[0];
        let added = list(
            "pub mod eevdf; pub use eevdf::{EevdfTask, EevdfScheduler};",
            ", EevdfTask, eevdf",
            "\"sched_eevdf\" eevdf EevdfTask EevdfScheduler<T, C>;",
        );
        for (file, before, after, is_same) in [
            (
                "a/Cargo.toml",
                manifest(""),
                manifest("sched_eevdf = [\"b\"]\n"),
                true,
            ),
            (
                "a/Cargo.toml",
                manifest(""),
                manifest("eevdf = []\n"),
                false,
            ),
            (
                "a/Cargo.toml",
                manifest(""),
                manifest("delegated = { workspace = true }\n"),
                true,
            ),
            (rust, list("", "", ""), added, true),
            (rust, list("", "", ""), list("pub mod fair;", "", ""), false),
            (rust, list("", "", ""), list("", ", sjf", ""), false),
        ] {
            let of = |text: &str| of_list(file, text, &["sjf"], &policies);
            assert_eq!(of(&before) == of(&after), is_same, "{after}");
        }
        let of =
            |schedulers: &[&str]| of_list("a/Cargo.toml", &manifest(""), schedulers, &policies);
        assert_eq!(of(&["sjf"]), "[features]\nsched_sjf = [\"a\"]");
        assert_eq!(of(&["cfs", "sjf"]), manifest("").trim_end());
    }

    #[test]
    fn shared_file_counts_for_all() {
        for file in [
            "modules/sched-policies/src/lib.rs",
            "modules/sched-policies/src/fair.rs",
            "modules/sched-policies/src/coop/task.rs",
            "modules/sched-policies/Cargo.toml",
            "modules/sched-core/src/queue.rs",
            "modules/sched-smp/src/layer.rs",
            "modules/pbg/Cargo.toml",
            "modules/axsched-ext/src/syscall.rs",
            "apps/sched-tests/common/src/pbg.rs",
        ] {
            assert!(!is_left_out(file, &["fifo"], &policies()), "{file}");
        }
    }

    /// The program `cost` grows to this number of tasks under each policy, and no row of another policy
    /// has the file with the number.
    #[test]
    fn rows_of_cost_depend_on_the_most_tasks() {
        let most = axsched_ext::pbg::MAX_TASKS;
        assert_eq!(most, 4096, "measure all rows of cost.csv again");
    }

    /// A policy that uses another one is among those with an entry in [`used`].
    #[test]
    fn file_of_a_policy_names_no_other_that_its_row_leaves_out() {
        let policies = policies();
        let mut folders = vec![tree().join(POLICIES)];
        folders.extend(PBG.map(|folder| tree().join(folder)));
        folders.extend(CRATES.map(|name| tree().join("modules").join(name).join("src")));
        let mut owned = BTreeSet::new();
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let file = path.strip_prefix(tree()).unwrap().to_str().unwrap();
                let Some(owner) = owner(file, &policies) else {
                    continue;
                };
                owned.insert(owner.to_owned());
                if file.contains("test") {
                    continue;
                }
                let code = code(&fs::read_to_string(&path).unwrap(), true);
                let names = |policy: &&String| {
                    let name = Name::of(policy);
                    // A variable may have the name, too.
                    let is_path = [format!("::\n{policy}\n"), format!("\n{policy}\n::")];
                    is_path.iter().any(|path| code.contains(path))
                        || code.lines().any(|word| name.is_type(word))
                };
                // The files of COOP count for all.
                for policy in policies.iter().filter(names).filter(|name| *name != CALLED) {
                    let is_used = policy == owner || used(owner).contains(&policy.as_str());
                    assert!(is_used, "{file} names {policy}");
                }
            }
        }
        let is_owner = |name: &&String| ![CALLED, "pbg_coop"].contains(&name.as_str());
        let expected: BTreeSet<_> = policies.iter().filter(is_owner).collect();
        assert_eq!(owned.iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn code_is_found_by_a_symbol_or_by_the_file_name_in_a_panic() {
        const FILE: &str = "modules/sched-policies/src/cfs/level.rs";
        for (program, is_found) in [
            (
                "_RNvMs_NtNtCsdk_14sched_policies3cfs5levelNtB4_5Level3new",
                true,
            ),
            (
                "_ZN14sched_policies3cfs5level5Level3new17h0123456789abcdefE",
                true,
            ),
            (
                "_ZN64_$LT$sched_policies..cfs..level..Level$u20$as$u20$Ord$GT$3cmp",
                true,
            ),
            ("modules/sched-policies/src/cfs/level.rs", true),
            (
                "_RNvMs_NtNtCsdk_14sched_policies2rr5levelNtB4_5Level3new",
                false,
            ),
            ("modules/sched-policies/src/cfs.rs", false),
            ("", false),
        ] {
            assert_eq!(has_code_of(program.as_bytes(), FILE), is_found, "{program}");
        }
    }
}
