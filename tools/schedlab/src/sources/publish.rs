//! Writing a published file, with what its cells were made from.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{
    ledger::stamp,
    list::Made,
    rows::{RowKey, file_name, merged},
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
