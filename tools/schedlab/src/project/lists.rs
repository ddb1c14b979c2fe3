//! The policies, apps and architectures of the project, and selections of them.

use std::{collections::BTreeMap, fmt, path::Path};

use anyhow::{Context, Result, bail};

use crate::cli::SelectArgs;

/// Returns a policy's name in result lines: `rr` for `sched_rr`, `stock-rr` for `stock_rr`.
pub fn short(policy: &str) -> String {
    let name = policy.strip_prefix("sched_").unwrap_or(policy);
    name.replace('_', "-")
}

/// An app of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    /// The name in result lines, which is that of the folder.
    pub name: String,
    /// The path of the folder from the project's root.
    pub folder: String,
}

impl App {
    pub fn in_folder(folder: &str) -> Result<Self> {
        let name = Path::new(folder).file_name();
        let name = name
            .and_then(|name| name.to_str())
            .with_context(|| format!("expected folders of apps, found `{folder}`"))?;
        Ok(Self {
            name: name.to_owned(),
            folder: folder.to_owned(),
        })
    }
}

/// One policy with one app on one architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    pub arch: String,
    pub app: App,
    /// The policy's name in make: `sched_rr`.
    pub policy: String,
}

impl Cell {
    /// Returns the cell of an app whose folder is not known: its name stands for it.
    pub fn new(arch: &str, app: &str, policy: &str) -> Self {
        Self {
            arch: arch.to_owned(),
            app: App {
                name: app.to_owned(),
                folder: app.to_owned(),
            },
            policy: policy.to_owned(),
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.arch, self.app.name, self.policy)
    }
}

/// The policies, apps and architectures.
#[derive(Clone, Debug)]
pub struct Lists {
    /// The policies in the order of rows.
    pub policies: Vec<String>,
    pub apps: Vec<App>,
    pub arches: Vec<String>,
    /// The titles of this project's policies, by their names in result lines.
    pub titles: Titles,
}

pub type Titles = BTreeMap<String, String>;

impl Lists {
    /// Reads the output of `make lab-list`: a name and words on each line.
    pub fn parse(text: &str) -> Result<Self> {
        let words = |name: &str| -> Result<Vec<String>> {
            let line = text
                .lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            let words: Vec<String> = line
                .unwrap_or("")
                .split_whitespace()
                .map(str::to_owned)
                .collect();
            if words.is_empty() {
                bail!("expected a line `{name} …`, found none");
            }
            Ok(words)
        };
        let titles = text.lines().filter_map(|line| {
            let (policy, title) = line.strip_prefix("title ")?.split_once(' ')?;
            Some((policy.to_owned(), title.to_owned()))
        });
        let apps = words("apps")?;
        let apps = apps.iter().map(|folder| App::in_folder(folder));
        Ok(Self {
            policies: words("policies")?,
            apps: apps.collect::<Result<_>>()?,
            arches: words("arches")?,
            titles: titles.collect(),
        })
    }

    /// Returns the selected part, in the same order.
    pub fn select(&self, wanted: &SelectArgs, apps: &[String]) -> Result<Self> {
        let policy = |policy: &String, word: &str| policy == word || short(policy) == short(word);
        let app =
            |app: &App, word: &str| app.name == word || app.folder == word.trim_end_matches('/');
        let arch = |arch: &String, word: &str| arch == word;
        Ok(Self {
            policies: choose(
                "--policy",
                &self.policies,
                &wanted.policy,
                policy,
                String::clone,
            )?,
            apps: choose("--app", &self.apps, apps, app, |app| app.name.clone())?,
            arches: choose("--arch", &self.arches, &wanted.arch, arch, String::clone)?,
            titles: self.titles.clone(),
        })
    }

    /// Returns every combination, one architecture and app after the other.
    pub fn cells(&self) -> impl Iterator<Item = Cell> {
        self.arches.iter().flat_map(move |arch| {
            self.apps.iter().flat_map(move |app| {
                let cell = |policy: &String| Cell {
                    arch: arch.clone(),
                    app: app.clone(),
                    policy: policy.clone(),
                };
                self.policies.iter().map(cell)
            })
        })
    }
}

/// Returns the items of `all` that a word means; all if there are no words.
fn choose<T: Clone>(
    option: &str,
    all: &[T],
    words: &[String],
    means: impl Fn(&T, &str) -> bool,
    name: impl Fn(&T) -> String,
) -> Result<Vec<T>> {
    for word in words {
        if !all.iter().any(|item| means(item, word)) {
            let names: Vec<_> = all.iter().map(name).collect();
            bail!("{option} {word}: expected some of {}", names.join(" "));
        }
    }
    let wanted = |item: &&T| words.is_empty() || words.iter().any(|word| means(item, word));
    Ok(all.iter().filter(wanted).cloned().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "policies sched_rr sched_pbg stock_rr\napps apps/a/realtime apps/b/yield\narches x86_64 riscv64\ntitle rr RR: in turn\n";

    fn select(policy: &[&str], app: &[&str], arch: &[&str]) -> String {
        let words = |list: &[&str]| list.iter().map(|word| (*word).to_owned()).collect();
        let args = SelectArgs {
            policy: words(policy),
            arch: words(arch),
        };
        match Lists::parse(TEXT).unwrap().select(&args, &words(app)) {
            Ok(lists) => {
                let cells: Vec<_> = lists.cells().map(|cell| cell.to_string()).collect();
                cells.join(" ")
            }
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn selection_has_the_order_of_the_lists_and_names_may_be_short() {
        let all = select(&[], &[], &[]);
        let first = "x86_64/realtime/sched_rr x86_64/realtime/sched_pbg x86_64/realtime/stock_rr x86_64/yield/sched_rr ";
        assert!(
            all.starts_with(first) && all.split(' ').count() == 12,
            "{all}"
        );
        assert_eq!(
            select(&["stock-rr", "rr"], &["apps/b/yield/"], &["riscv64"]),
            "riscv64/yield/sched_rr riscv64/yield/stock_rr"
        );
        assert_eq!(
            select(&["lottery"], &[], &[]),
            "--policy lottery: expected some of sched_rr sched_pbg stock_rr"
        );
        assert_eq!(
            select(&[], &["nope"], &[]),
            "--app nope: expected some of realtime yield"
        );
    }

    #[test]
    fn lists_have_titles_and_must_be_complete() {
        let titles = Lists::parse(TEXT).unwrap().titles;
        assert_eq!(titles, [("rr".to_owned(), "RR: in turn".to_owned())].into());
        let error = Lists::parse("policies sched_rr\napps\n").unwrap_err();
        assert_eq!(error.to_string(), "expected a line `apps …`, found none");
    }
}
