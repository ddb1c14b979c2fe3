//! What all tables on a terminal have in common.

use std::fmt::Write;

use comfy_table::{Table, TableComponent, presets};

/// The widest that a line of a table is.
pub const TERMINAL: usize = 100;

/// A table with nothing but a line below its titles.
pub fn plain() -> Table {
    let mut grid = Table::new();
    grid.load_preset(presets::NOTHING)
        .set_style(TableComponent::HeaderLines, '-')
        .set_style(TableComponent::MiddleHeaderIntersections, '-');
    grid
}

/// Its lines, each after `indent`, without blanks at their ends.
pub fn text(grid: &Table, indent: &str) -> String {
    let mut text = String::new();
    for line in grid.to_string().lines() {
        let _ = writeln!(text, "{indent}{}", line.trim_end());
    }
    text
}
