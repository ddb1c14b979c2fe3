//! One folder of results, or several with a part of a matrix each, as shards leave them.
//!
//! 1. Parts of a matrix are made by one compiler, one QEMU and from one source tree: figures
//!    of others are no comparison of policies. Whoever wants them side by side says so, and
//!    what differs is said below the tables.
//! 2. A cell that several folders have is the same in all of them, always.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::table::Results;
use crate::{
    output::count,
    project::Cell,
    sources::{Made, RowKey},
    store::{Origin, Store},
};

/// Where results are read from.
pub struct Pool {
    stores: Vec<Store>,
    /// Whether rule 1 is checked.
    parts: bool,
}

/// What was found.
#[derive(Default)]
pub struct Found {
    pub all: Vec<Results>,
    pub missing: Vec<Cell>,
    /// Where each result is, and what it was made from.
    origins: Vec<(PathBuf, Cell, Option<Origin>)>,
}

impl Found {
    /// The sources of the rows of each cell.
    pub fn made(&self) -> Vec<(RowKey, Option<Made>)> {
        let made = |(_, cell, origin): &(PathBuf, Cell, Option<Origin>)| {
            let made = origin.as_ref().and_then(|origin| origin.made.clone());
            (RowKey::of(cell), made)
        };
        self.origins.iter().map(made).collect()
    }
}

/// Something in which results may differ that are to be compared, with every value of it
/// and the folders that have that.
#[derive(Debug, PartialEq)]
struct Aspect {
    what: String,
    values: Vec<(String, Vec<String>)>,
}

impl Pool {
    pub fn one(store: Store) -> Self {
        Self {
            stores: vec![store],
            parts: false,
        }
    }

    pub fn parts(folders: &[PathBuf]) -> Self {
        Self {
            stores: folders.iter().cloned().map(Store::new).collect(),
            parts: true,
        }
    }

    /// The folders, as people type them.
    pub fn names(&self) -> String {
        let names = self
            .stores
            .iter()
            .map(|store| store.root.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    /// A folder that is none.
    pub fn absent(&self) -> Option<&Store> {
        self.stores.iter().find(|store| !store.root.is_dir())
    }

    pub fn read(&self, cells: impl Iterator<Item = Cell>) -> Result<Found> {
        let mut found = Found::default();
        for cell in cells {
            match self.cell(&cell, &mut found.origins)? {
                Some(results) => found.all.push(results),
                None => found.missing.push(cell),
            }
        }
        Ok(found)
    }

    /// What differs between the parts, a line for each; rule 1 if none may.
    pub fn differences(&self, found: &Found, mixed: bool) -> Result<Vec<String>> {
        if !self.parts {
            return Ok(Vec::new());
        }
        let is_unknown = |(_, _, origin): &&(PathBuf, Cell, Option<Origin>)| origin.is_none();
        let mut unknown = found.origins.iter().filter(is_unknown);
        let first = unknown.next();
        let aspects = aspects(&found.origins);
        if mixed {
            let unknown = first.map(|(folder, cell, _)| {
                format!(
                    "mixed: of {} the origin is not known, as of {cell} in {}",
                    count(1 + unknown.count(), "cell"),
                    folder.display()
                )
            });
            let lines = aspects.iter().map(Aspect::line);
            return Ok(unknown.into_iter().chain(lines).collect());
        }
        if let Some((folder, cell, _)) = first {
            bail!(
                "{}: {cell}: expected what it was made from, found nothing; run it again, or --mixed takes it as it is",
                folder.display()
            );
        }
        match aspects.first() {
            None => Ok(Vec::new()),
            Some(aspect) => bail!(
                "expected results of one {}, found {}; run the matrix again for one of them, or --mixed shows them side by side",
                aspect.what,
                aspect.first_two()
            ),
        }
    }

    /// Rule 2.
    fn cell(
        &self,
        cell: &Cell,
        origins: &mut Vec<(PathBuf, Cell, Option<Origin>)>,
    ) -> Result<Option<Results>> {
        let mut first: Option<(&Store, String, Results)> = None;
        for store in &self.stores {
            let Some(outcomes) = store.read(cell)? else {
                continue;
            };
            let lines = store.lines(cell)?.context("the cell was there")?;
            let origin = store.origin(cell);
            origins.push((store.root.clone(), cell.clone(), origin.clone()));
            match &first {
                None => {
                    let results = Results {
                        cell: cell.clone(),
                        outcomes,
                        sources: origin.map(|origin| origin.sources),
                    };
                    first = Some((store, lines, results));
                }
                Some((other, expected, _)) if *expected != lines => bail!(
                    "{cell}: expected the same results in {} and {}, found others; `compare A B` shows the difference, and only one of them can be in the tables",
                    other.root.display(),
                    store.root.display()
                ),
                Some(_) => {}
            }
        }
        Ok(first.map(|(_, _, results)| results))
    }
}

/// In what these results differ. Sources and tools as a whole are told only where nothing
/// else is: they differ whenever a part of them does.
fn aspects(origins: &[(PathBuf, Cell, Option<Origin>)]) -> Vec<Aspect> {
    const SHORT: usize = 12;
    let short = |hash: &str| hash.chars().take(SHORT).collect::<String>();
    let mut each: Vec<Aspect> = Vec::new();
    let mut whole: Vec<Aspect> = Vec::new();
    for (folder, cell, origin) in origins {
        let Some(origin) = origin else { continue };
        let folder = folder.display().to_string();
        if let Some(inputs) = &origin.inputs {
            let (compiler, emulators) = inputs.versions();
            seen(&mut each, "compiler", compiler, &folder);
            seen(&mut each, "QEMU", emulators, &folder);
            seen(&mut each, "source tree", short(&inputs.shared), &folder);
            let own = format!("source tree of {}", cell.app.name);
            seen(&mut each, &own, short(&inputs.own), &folder);
        }
        let what = format!("source tree and tools for {}", cell.app.name);
        seen(&mut whole, &what, short(&origin.sources), &folder);
    }
    let differ = |mut aspects: Vec<Aspect>| {
        aspects.retain(|aspect| aspect.values.len() > 1);
        aspects
    };
    match differ(each) {
        none if none.is_empty() => differ(whole),
        some => some,
    }
}

/// A value of an aspect was seen in a folder.
fn seen(aspects: &mut Vec<Aspect>, what: &str, value: String, folder: &str) {
    let at = aspects.iter().position(|aspect| aspect.what == what);
    let at = at.unwrap_or_else(|| {
        aspects.push(Aspect {
            what: what.to_owned(),
            values: Vec::new(),
        });
        aspects.len() - 1
    });
    let values = &mut aspects[at].values;
    match values.iter_mut().find(|(known, _)| *known == value) {
        None => values.push((value, vec![folder.to_owned()])),
        Some((_, folders)) if folders.iter().all(|known| known != folder) => {
            folders.push(folder.to_owned());
        }
        Some(_) => {}
    }
}

impl Aspect {
    /// `rustc 1.95.0 in a and rustc 1.96.0 in b`.
    fn first_two(&self) -> String {
        let each = |(value, folders): &(String, Vec<String>)| format!("{value} in {}", folders[0]);
        let two: Vec<_> = self.values.iter().take(2).map(each).collect();
        two.join(" and ")
    }

    /// `mixed: compiler: rustc 1.95.0 in a, b; rustc 1.96.0 in c`.
    fn line(&self) -> String {
        let each =
            |(value, folders): &(String, Vec<String>)| format!("{value} in {}", folders.join(", "));
        let all: Vec<_> = self.values.iter().map(each).collect();
        format!("mixed: {}: {}", self.what, all.join("; "))
    }
}
