//! Other ArceOS trees adopt the library.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, ensure};

use super::host::blocks;
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    // Each builds an ArceOS from nothing, which takes a minute.
    let mut trees = Vec::new();
    let mut page = |name: &str, check: fn(&Context) -> Result<()>| {
        let name = format!("own tree: {name}, from an empty folder to a boot, as the page says");
        trees.push(case(name, check));
    };
    // The page's block for the machine has all architectures.
    page("preview.3, x86_64", |context| {
        follow_own_tree(context, "x86_64")
    });
    page("preview.2 as in StarryOS, riscv64", follow_older_tree);
    page("ArceOS of 2026, aarch64", |context| {
        let folder = "target/test/own-tree-2026";
        follow(context, "docs/own-tree-2026.md", folder, "aarch64", "PBG")
    });
    let name = "own tree: a policy of one's own boots, x86_64";
    trees.push(case(name, follow_own_policy));
    let mut cases = project.in_turn(trees, 0, 4);
    cases.push(case("host: an ArceOS tree adopts it", adopt));
    cases
}

/// Checks that a tree adopts the library as the README says, with the lock file that it had.
fn adopt(context: &Context) -> Result<()> {
    let tree = context.file("tree")?;
    let tree = Path::new(&tree);
    fs::create_dir_all(tree.join("src"))?;
    fs::write(tree.join("src/main.rs"), "fn main() {}\n")?;
    let manifest = format!(
        r#"[workspace]
[package]
name = "adopted"
version = "0.0.0"
edition = "2024"
[dependencies]
axstd = {{ version = "=0.3.0-preview.3", features = ["multitask", "irq", "sched-rr"] }}
axsched = {{ version = "0.3.99", features = ["sched_pbg"] }}
[patch.crates-io]
axsched = {{ path = "{}/modules/axsched" }}
"#,
        context.project.root.display()
    );
    fs::write(tree.join("Cargo.toml"), manifest)?;
    fs::copy(lock_of_axstd(context)?, tree.join("Cargo.lock"))?;
    let call = context.program(&context.project.cargo).within(tree);
    let said = call
        .args("tree --invert axsched@0.3.99 --target x86_64-unknown-none")
        .text()?;
    ensure!(
        said.contains("axtask v0.3.0-preview.3"),
        "axtask does not use it"
    );
    Ok(())
}

/// Returns the lock file that axstd was published with, which names the registry's axsched.
fn lock_of_axstd(context: &Context) -> Result<String> {
    let mut json = String::new();
    // The output would be most of the log.
    let metadata = context.cargo("metadata", "--format-version 1").quiet();
    metadata.for_each_line(|line| {
        if line.starts_with('{') {
            json = line.to_owned();
        }
    })?;
    let metadata: serde_json::Value = serde_json::from_str(&json)?;
    let mut packages = metadata["packages"].as_array().into_iter().flatten();
    let axstd = packages
        .find(|package| package["name"] == "axstd" && package["version"] == "0.3.0-preview.3")
        .context("no axstd")?;
    let manifest = axstd["manifest_path"].as_str();
    let manifest = manifest.context("no manifest_path")?;
    Ok(manifest.replace("Cargo.toml", "Cargo.lock"))
}

/// Follows `docs/own-tree.md` to the letter. The page has all commands of the README's section.
fn follow_own_tree(context: &Context, arch: &str) -> Result<()> {
    let readme = fs::read_to_string("README.md")?;
    let page = fs::read_to_string("docs/own-tree.md")?;
    let section = readme.split_once("\n## In your own ArceOS tree\n");
    let (_, section) = section.context("no such section")?;
    let section = section.split_once("\n## ");
    let (section, _) = section.context("no end of the section")?;
    let mut quoted = blocks(section, |_| true);
    quoted.retain(|line| !line.starts_with("cargo tree"));
    ensure!(!quoted.is_empty(), "the README says nothing");
    for line in quoted {
        ensure!(
            page.lines().any(|other| other == line),
            "docs/own-tree.md lacks: {line}"
        );
    }
    let folder = "target/test/own-tree";
    follow(context, "docs/own-tree.md", folder, arch, "PBG")
}

/// Follows `docs/own-tree.md` with the version that it names for StarryOS.
fn follow_older_tree(context: &Context) -> Result<()> {
    let page = fs::read_to_string("docs/own-tree.md")?;
    let older = page.replace("=0.3.0-preview.3", "=0.3.0-preview.2");
    ensure!(page != older && page.contains("`=0.3.0-preview.2`"));
    let own_page = context.file("own-tree.md")?;
    fs::write(&own_page, older)?;
    let folder = "target/test/own-tree-older";
    follow(context, &own_page, folder, "riscv64", "PBG")
}

/// Follows `docs/own-tree.md` with the policy that `docs/new-policy.md` chooses. That page's two
/// lines of `axsched` replace those of `docs/own-tree.md`.
fn follow_own_policy(context: &Context) -> Result<()> {
    let page = fs::read_to_string("docs/own-tree.md")?;
    let guide = fs::read_to_string("docs/new-policy.md")?;
    let is_choice = |line: &&str| line.starts_with("axsched = ");
    let manifests = blocks(&guide, |language| language == "toml");
    let chosen: Vec<_> = manifests.into_iter().filter(is_choice).collect();
    let places = page.lines().filter(is_choice).count();
    ensure!(
        chosen.len() == places,
        "docs/own-tree.md has {places} lines of axsched, docs/new-policy.md has {chosen:?}"
    );
    let mut choices = chosen.iter();
    let lines = page.lines().map(|line| match is_choice(&line) {
        true => choices.next().unwrap_or(&line),
        false => line,
    });
    let own_page = context.file("own-tree.md")?;
    fs::write(&own_page, lines.collect::<Vec<_>>().join("\n") + "\n")?;

    let folder = "target/test/own-policy";
    let tree = Path::new(folder).join("hello");
    let manifest = fs::read_to_string(tree.join("Cargo.toml")).unwrap_or_default();
    let configuration = tree.join("axconfig.toml");
    if !chosen.iter().all(|line| manifest.contains(line)) && configuration.exists() {
        // The script skips the manifest where there is a configuration.
        fs::remove_file(configuration)?;
    }
    follow(context, &own_page, folder, "x86_64", "PACE")
}

/// Follows a page in a folder; its program must run to the end, under this policy.
fn follow(context: &Context, page: &str, folder: &str, arch: &str, policy: &str) -> Result<()> {
    let call = context.program(context.project.root.join("scripts/own-tree.sh"));
    let said = call
        .args(format!("{page} {folder} {arch}"))
        .limit(600) // beside another case
        .text()?;
    let said = without_colours(&said);
    ensure!(
        said.contains(&format!("use {policy} scheduler")),
        "ArceOS does not use {policy}"
    );
    let words = ["one", "two", "both are done"];
    let found: Vec<_> = said.lines().filter(|line| words.contains(line)).collect();
    ensure!(found == words, "expected {words:?}, found {found:?}");
    Ok(())
}

/// Removes the escape sequences that set colours.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !(c.is_ascii_digit() || c == ';'));
        match end {
            Some(end) if part[end..].starts_with('m') => plain.push_str(&part[end + 1..]),
            _ => plain.push_str(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_removed() {
        assert_eq!(without_colours("\x1b[37;1mone\x1b[m two\x1b[0m"), "one two");
        assert_eq!(without_colours("plain"), "plain");
    }
}
