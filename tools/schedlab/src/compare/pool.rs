//! One folder of results, or several with a part of a matrix each, as shards leave them.
//!
//! 1. All parts of a matrix are made by one compiler and one QEMU, from one source tree: otherwise
//!    their figures do not compare policies. `--mixed` allows differences and lists them below the
//!    tables.
//! 2. A cell in several folders is the same in all of them, also with `--mixed`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use super::table::Results;
use crate::{
    distinct::entry,
    output::count,
    project::Cell,
    sources::{Made, RowKey},
    store::{Origin, Store},
};

/// The folders that results are read from.
pub struct Pool {
    stores: Vec<Store>,
    /// True if rule 1 is checked.
    are_parts: bool,
}

/// The results of a pool.
#[derive(Default)]
pub struct Found {
    pub all: Vec<Results>,
    pub missing: Vec<Cell>,
    origins: Vec<Place>,
}

/// A cell with results in a folder.
struct Place {
    folder: String,
    cell: Cell,
    /// The tools and sources of the results, if they are known.
    origin: Option<Origin>,
}

/// The values of an input, and the folders with results of each.
type Values = Vec<(String, Vec<String>)>;

impl Found {
    /// Returns what the rows of each cell were made from.
    pub fn made(&self) -> Vec<(RowKey, Option<Made>)> {
        let made = |place: &Place| {
            let made = place.origin.as_ref().and_then(|origin| origin.made.clone());
            (RowKey::of(&place.cell), made)
        };
        self.origins.iter().map(made).collect()
    }

    /// Returns the inputs that differ between the results, by name.
    fn differing_inputs(&self) -> Vec<(String, Values)> {
        const SHORT: usize = 12;
        let short = |hash: &str| hash.chars().take(SHORT).collect::<String>();
        let mut all: Vec<(String, Values)> = Vec::new();
        for Place {
            folder,
            cell,
            origin,
        } in &self.origins
        {
            let Some(Origin { inputs, .. }) = origin else {
                continue;
            };
            let (compiler, emulators) = inputs.versions();
            for (name, value) in [
                ("compiler".to_owned(), compiler),
                ("QEMU".to_owned(), emulators),
                ("source tree".to_owned(), short(&inputs.shared)),
                (
                    format!("source tree of {}", cell.app.name),
                    short(&inputs.own),
                ),
            ] {
                let folders = entry(entry(&mut all, name), value);
                if !folders.contains(folder) {
                    folders.push(folder.clone());
                }
            }
        }
        all.retain(|(_, values)| values.len() > 1);
        all
    }
}

impl Pool {
    pub fn one(store: Store) -> Self {
        Self {
            stores: vec![store],
            are_parts: false,
        }
    }

    pub fn parts(folders: &[PathBuf]) -> Self {
        Self {
            stores: folders.iter().cloned().map(Store::new).collect(),
            are_parts: true,
        }
    }

    /// Returns the folders as on a command line.
    pub fn names(&self) -> String {
        let names = self
            .stores
            .iter()
            .map(|store| store.root.display().to_string());
        names.collect::<Vec<_>>().join(" ")
    }

    /// Returns a folder that does not exist.
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

    /// Returns a line for each difference between the parts.
    ///
    /// # Errors
    /// Rule 1, unless `mixed` is true.
    pub fn differences(&self, found: &Found, mixed: bool) -> Result<Vec<String>> {
        if !self.are_parts {
            return Ok(Vec::new());
        }
        let mut unknown = found.origins.iter().filter(|place| place.origin.is_none());
        let first = unknown.next();
        let inputs = found.differing_inputs();
        if mixed {
            let unknown = first.map(|Place { folder, cell, .. }| {
                let number = count(1 + unknown.count(), "cell");
                format!("mixed: of {number} the origin is not known, as of {cell} in {folder}")
            });
            let line = |(name, values): &(String, Values)| {
                let each = values
                    .iter()
                    .map(|(value, folders)| format!("{value} in {}", folders.join(", ")));
                format!("mixed: {name}: {}", each.collect::<Vec<_>>().join("; "))
            };
            return Ok(unknown.into_iter().chain(inputs.iter().map(line)).collect());
        }
        if let Some(Place { folder, cell, .. }) = first {
            bail!(
                "{folder}: {cell}: expected what it was made from, found nothing; run it again, or --mixed takes it as it is"
            );
        }
        if let Some((name, values)) = inputs.first() {
            let [(one, in_one), (other, in_other), ..] = &values[..] else {
                unreachable!("it has several values");
            };
            bail!(
                "expected results of one {name}, found {one} in {} and {other} in {}; run the matrix again for one of them, or --mixed shows them side by side",
                in_one[0],
                in_other[0]
            );
        }
        Ok(Vec::new())
    }

    /// Reads a cell and checks rule 2.
    fn cell(&self, cell: &Cell, origins: &mut Vec<Place>) -> Result<Option<Results>> {
        let mut first: Option<(&Store, String, Results)> = None;
        for store in &self.stores {
            let Some(outcomes) = store.read(cell)? else {
                continue;
            };
            let lines = store.lines(cell)?.context("the cell was there")?;
            let origin = store.origin(cell);
            origins.push(Place {
                folder: store.root.display().to_string(),
                cell: cell.clone(),
                origin: origin.clone(),
            });
            match &first {
                None => {
                    let results = Results {
                        cell: cell.clone(),
                        outcomes,
                        sources: origin.map(|origin| origin.inputs),
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
