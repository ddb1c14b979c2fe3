//! `sources.csv` and the lists that it names: the sources of the rows in the CSV files beside it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::ErrorKind,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

use super::{
    list::{Made, SourceList},
    rows::{LEDGER, Published, RowKey, file_name},
};
use crate::{grid, store::write};

/// The folder of the lists.
const LISTS: &str = "sources";
const COLUMNS: [&str; 6] = ["file", "arch", "app", "scheduler", "list", "sources"];

/// The stamps of the rows in a folder's CSV files.
#[derive(Default)]
pub struct Ledger {
    folder: PathBuf,
    /// The name of a list and the hash, by file and cell.
    entries: BTreeMap<(String, RowKey), (String, String)>,
    lists: BTreeMap<String, SourceList>,
}

impl Ledger {
    /// Reads the ledger of a folder; it is empty if there is none.
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(LEDGER);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            Err(error) => return Err(error).with_context(|| path.display().to_string()),
        };
        Self::parse(folder, &text).with_context(|| path.display().to_string())
    }

    fn parse(folder: &Path, text: &str) -> Result<Self> {
        let mut ledger = Self {
            folder: folder.to_owned(),
            ..Self::default()
        };
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        for line in reader.deserialize() {
            let line: BTreeMap<String, String> = line?;
            let word = |column: &str| {
                let word = line.get(column).cloned();
                word.with_context(|| format!("expected the columns {}", COLUMNS.join(",")))
            };
            let key = RowKey {
                arch: word("arch")?,
                app: word("app")?,
                scheduler: word("scheduler")?,
            };
            let list = word("list")?;
            if !ledger.lists.contains_key(&list) {
                let path = ledger.list_file(&list);
                let text = fs::read_to_string(&path);
                let text = text.with_context(|| path.display().to_string())?;
                ledger.lists.insert(list.clone(), SourceList::read(&text)?);
            }
            let entry = (list, word("sources")?);
            ledger.entries.insert((word("file")?, key), entry);
        }
        Ok(ledger)
    }

    fn list_file(&self, name: &str) -> PathBuf {
        self.folder.join(LISTS).join(format!("{name}.txt"))
    }

    /// Returns the sources of a cell of this file.
    pub fn made(&self, file: &str, key: &RowKey) -> Option<Made> {
        let (list, hash) = self.entries.get(&(file.to_owned(), key.clone()))?;
        Some(Made {
            list: self.lists.get(list)?.clone(),
            hash: hash.clone(),
        })
    }

    fn add(&mut self, file: &str, key: RowKey, made: Made) {
        let name = made.list.name();
        self.entries
            .insert((file.to_owned(), key), (name.clone(), made.hash));
        self.lists.insert(name, made.list);
    }

    fn write(&self) -> Result<()> {
        let row = |((file, key), (list, hash)): (&(String, RowKey), &(String, String))| {
            [file, &key.arch, &key.app, &key.scheduler, list, hash].map(String::clone)
        };
        let named: BTreeSet<_> = self.entries.values().map(|(list, _)| list).collect();
        for (name, list) in &self.lists {
            let path = self.list_file(name);
            match named.contains(name) {
                true => write(&path, list.text())?,
                // The list may never have been written.
                false => drop(fs::remove_file(path)),
            }
        }
        let text = grid::csv(COLUMNS, self.entries.iter().map(row))?;
        write(&self.folder.join(LEDGER), text)
    }
}

/// Writes the sources of the cells of a published CSV file, and removes those of cells that have
/// none or are no longer in the file.
pub fn stamp(csv: &Path, cells: impl IntoIterator<Item = (RowKey, Option<Made>)>) -> Result<()> {
    let file = file_name(csv).to_owned();
    let Some(published) = Published::named(&file) else {
        return Ok(());
    };
    let folder = csv.parent().unwrap_or(Path::new(""));
    let mut ledger = Ledger::read(folder)?;
    for (key, made) in cells {
        match made {
            Some(made) => ledger.add(&file, key, made),
            None => drop(ledger.entries.remove(&(file.clone(), key))),
        }
    }
    let text = fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
    let there: BTreeSet<_> = published.keys(&text)?.into_iter().collect();
    ledger
        .entries
        .retain(|(of, key), _| *of != file || there.contains(key));
    ledger.write()
}
