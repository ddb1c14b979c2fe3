//! Writes a CSV file and, if it is published, the sources of its cells.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    ledger::stamp,
    list::Made,
    rows::{LEDGER, RowKey, file_name, merged},
};
use crate::store::write;

/// Returns true if the file is published: `sources.csv` is in its folder.
pub fn is_published(csv: &Path) -> bool {
    csv.with_file_name(LEDGER).exists()
}

/// Writes rows into a CSV file. In a published one the rows of other cells stay.
pub fn write_rows(
    csv: &Path,
    text: &str,
    cells: impl IntoIterator<Item = (RowKey, Option<Made>)>,
) -> Result<()> {
    if !is_published(csv) || !csv.exists() {
        return write_whole(csv, text, cells);
    }
    let old = fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
    write_whole(csv, &merged(file_name(csv), &old, text)?, cells)
}

/// Writes a whole CSV file and, if it is published, the sources of its cells. The rows of a cell
/// without sources are out of date.
pub fn write_whole(
    csv: &Path,
    text: &str,
    cells: impl IntoIterator<Item = (RowKey, Option<Made>)>,
) -> Result<()> {
    write(csv, text)?;
    match is_published(csv) {
        true => stamp(csv, cells),
        false => Ok(()),
    }
}
