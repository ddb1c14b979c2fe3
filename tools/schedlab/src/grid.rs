//! Tables as text for a terminal, as Markdown for documents, and as CSV for programs.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::{CellAlignment, Row, Table, TableComponent, presets};

/// The largest width of a line of a table.
pub const TERMINAL: usize = 100;

/// The number of blanks before a number and behind it on a terminal.
pub type Padding = (u16, u16);
pub const WIDE: Padding = (1, 1);
pub const CLOSE: Padding = (1, 0);
pub const TIGHT: Padding = (0, 0);

/// Returns a table with a line below its titles, without blanks at the ends of lines. A title that
/// begins with `>` belongs to a column of numbers, which is aligned to the right.
pub fn text<T: AsRef<str>>(
    titles: &[T],
    rows: impl IntoIterator<Item: Into<Row>>,
    padding: Padding,
) -> String {
    let mut grid = Table::new();
    grid.load_preset(presets::NOTHING)
        .set_style(TableComponent::HeaderLines, '-')
        .set_style(TableComponent::MiddleHeaderIntersections, '-')
        .set_header(titles.iter().map(plain));
    for row in rows {
        grid.add_row(row);
    }
    for (column, title) in grid.column_iter_mut().zip(titles) {
        if title.as_ref().starts_with('>') {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_padding(padding);
        }
    }
    let mut text = String::new();
    for line in grid.to_string().lines() {
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

/// Returns a table in which all columns but the first are numbers.
pub fn markdown<T: AsRef<str>>(
    titles: &[T],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> String {
    let titles: Vec<_> = titles.iter().map(plain).collect();
    let rule = "---:|".repeat(titles.len() - 1);
    let mut table = format!("| {} |\n|---|{rule}\n", titles.join(" | "));
    for row in rows {
        let _ = writeln!(table, "| {} |", row.join(" | "));
    }
    table
}

/// Returns a table with a line of titles and a line for each row.
pub fn csv(
    titles: impl IntoIterator<Item: AsRef<[u8]>>,
    rows: impl IntoIterator<Item: IntoIterator<Item: AsRef<[u8]>>>,
) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(titles)?;
    for row in rows {
        out.write_record(row)?;
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

fn plain<T: AsRef<str>>(title: &T) -> &str {
    title.as_ref().trim_start_matches('>')
}
