//! Writing a published file, with what its cells were made from.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    ledger::{Ledger, stamp},
    list::Made,
    rows::{Published, RowKey, file_name, merged},
};
use crate::store::write;

/// Writes a published CSV file, and beside it what its cells were made from. With `keep` the rows of
/// other cells stay. A cell without a stamp is not written down: its rows are out of date.
pub fn write_rows(
    csv: &Path,
    text: &str,
    keep: bool,
    cells: impl IntoIterator<Item = (RowKey, Option<Made>)>,
) -> Result<()> {
    let text = match keep && csv.exists() {
        true => {
            let old = fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
            merged(file_name(csv), &old, text)?
        }
        false => text.to_owned(),
    };
    write(csv, text)?;
    stamp(csv, cells)
}

/// The same for a file whose cells were all made from the same.
pub fn write_rows_of_one(csv: &Path, text: &str, made: Option<Made>) -> Result<()> {
    let keys = match Published::named(file_name(csv)) {
        Some(published) => published.keys(text)?,
        None => Vec::new(),
    };
    write_rows(
        csv,
        text,
        false,
        keys.into_iter().map(|key| (key, made.clone())),
    )
}

/// Returns what a cell of a published CSV file was made from, as it is written down beside the file.
pub fn known(csv: &Path, key: &RowKey) -> Result<Option<Made>> {
    let ledger = Ledger::read(csv.parent().unwrap_or(Path::new("")))?;
    Ok(ledger.made(file_name(csv), key))
}
