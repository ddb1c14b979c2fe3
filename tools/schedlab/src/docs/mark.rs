//! The words of a mark, and the table that they describe.

use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use super::data::{Data, Figure, Files, Filter};
use crate::spread::{Spread, letters, reach};

/// The text of an empty value.
const MISSING: &str = "-";

/// The values of a figure that are shown.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Show {
    /// The mean over the tick phases.
    Mean,
    /// The mean over tick phases and its deviation, `±0.41 %`, or the median over boots and the
    /// range, `(285.7 to 322.2)`.
    Range,
}

/// The cells that share letters: those of a column, or those of a row.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Compare {
    Rows,
    Columns,
}

/// The rows or the columns of a table.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Axis {
    /// A line for each word in this column of the file.
    Of(String),
    /// The lines of the mark.
    These(Vec<Line>),
}

/// A row or a column: its title, and the lines of the file that it shows.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    title: String,
    /// The file of a column; by default that of the table.
    csv: Option<String>,
    decimals: Option<usize>,
    show: Option<Show>,
    #[serde(flatten)]
    filter: Filter,
}

/// The words of a mark `<!-- table {…} -->`.
#[derive(Debug, Deserialize)]
pub struct Table {
    csv: String,
    /// The title of the first column.
    title: String,
    rows: Axis,
    columns: Axis,
    /// The decimals, if the row and the column name none; by default those of the file.
    decimals: Option<usize>,
    /// The titles of rows and columns in bold.
    #[serde(default)]
    bold: Vec<String>,
    show: Option<Show>,
    /// The cells of which those that [overlap](Spread::overlaps) share a letter.
    compare: Option<Compare>,
    #[serde(flatten)]
    filter: Filter,
}

impl Table {
    /// Returns the lines of the table.
    pub fn lines(&self, folder: &Path, files: &mut Files) -> Result<Vec<String>> {
        let data = files.get(&folder.join(&self.csv))?;
        let rows = self.axis(&self.rows, data)?;
        let columns = self.axis(&self.columns, data)?;
        let mut cells = Vec::new();
        for row in &rows {
            let mut of_row = Vec::new();
            for column in &columns {
                let filter = joined(&joined(&self.filter, &row.filter), &column.filter);
                let csv = column.csv.as_ref().unwrap_or(&self.csv);
                of_row.push(files.get(&folder.join(csv))?.figure(&filter)?);
            }
            cells.push(of_row);
        }
        let letters = self.letters(&cells);
        let bold = |line: &Line| self.bold.contains(&line.title);
        let mark = |text: String, bold: bool| match bold {
            true => format!("**{text}**"),
            false => text,
        };
        let titles: Vec<_> = columns
            .iter()
            .map(|column| mark(column.title.clone(), bold(column)))
            .collect();
        let mut lines = vec![
            format!("| {} | {} |", self.title, titles.join(" | ")),
            format!("|---|{}", "--:|".repeat(columns.len())),
        ];
        for (i, row) in rows.iter().enumerate() {
            let cell = |(j, column): (usize, &Line)| {
                let Some(figure) = cells[i][j] else {
                    return MISSING.to_owned();
                };
                let decimals = row.decimals.or(column.decimals).or(self.decimals);
                let show = row.show.or(column.show).or(self.show);
                let show = show.unwrap_or(Show::Range);
                let text = number(&figure, decimals, show);
                let text = mark(text, bold(row) || bold(column));
                match letters[i][j].as_str() {
                    "" => text,
                    letters => format!("{text} <sup>{letters}</sup>"),
                }
            };
            let of_row: Vec<_> = columns.iter().enumerate().map(cell).collect();
            lines.push(format!(
                "| {} | {} |",
                mark(row.title.clone(), bold(row)),
                of_row.join(" | ")
            ));
        }
        Ok(lines)
    }

    fn axis(&self, axis: &Axis, data: &Data) -> Result<Vec<Line>> {
        match axis {
            Axis::These(lines) => Ok(lines.clone()),
            Axis::Of(column) => {
                let line = |word: String| Line {
                    title: word.clone(),
                    csv: None,
                    decimals: None,
                    show: None,
                    filter: [(column.clone(), word)].into(),
                };
                let words = data.words(column, &self.filter)?;
                Ok(words.into_iter().map(line).collect())
            }
        }
    }

    /// Returns the letters of each cell. There are none if every cell has a single boot, and so no
    /// range.
    fn letters(&self, cells: &[Vec<Option<Figure>>]) -> Vec<Vec<String>> {
        let of = |i: usize, j: usize| cells[i][j].map(|figure| figure.spread);
        let (rows, columns) = (cells.len(), cells.first().map_or(0, Vec::len));
        let mut found = vec![vec![String::new(); columns]; rows];
        let ranges = |line: Vec<Option<Spread>>| match line.iter().flatten().any(|s| s.count > 1) {
            true => letters(&line),
            false => vec![String::new(); line.len()],
        };
        match self.compare {
            None => {}
            Some(Compare::Columns) => {
                for (i, row) in found.iter_mut().enumerate() {
                    *row = ranges((0..columns).map(|j| of(i, j)).collect());
                }
            }
            Some(Compare::Rows) => {
                for j in 0..columns {
                    let words = ranges((0..rows).map(|i| of(i, j)).collect());
                    for (row, word) in found.iter_mut().zip(words) {
                        row[j] = word;
                    }
                }
            }
        }
        found
    }
}

/// Joins two filters; a column of `b` replaces that of `a`.
fn joined(a: &Filter, b: &Filter) -> Filter {
    let mut joined = a.clone();
    joined.extend(b.clone());
    joined
}

fn number(figure: &Figure, decimals: Option<usize>, show: Show) -> String {
    let number = |value| grouped(value, decimals.unwrap_or(figure.decimals));
    let spread = &figure.spread;
    match show {
        Show::Mean => number(spread.mean),
        Show::Range => {
            let text = format!("{} {}", number(spread.middle()), reach(spread, number));
            text.trim_end().to_owned()
        }
    }
}

/// Returns a number with groups of thousands: `1,683.9`. A last digit 5 that is dropped rounds up,
/// as in the text of the file.
fn grouped(value: f64, decimals: usize) -> String {
    // A binary fraction may be a little below the decimal text.
    const TIE: f64 = 1e-12;
    let value = value * (1.0 + TIE);
    let text = format!("{value:.decimals$}");
    let point = text.find('.').unwrap_or(text.len());
    let first = usize::from(text.starts_with('-')) + 1;
    let mut grouped = text;
    for place in (first..point)
        .rev()
        .filter(|place| (point - place) % 3 == 0)
    {
        grouped.insert(place, ',');
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn number_has_groups_of_thousands_and_rounds_half_up() {
        for (value, decimals, text) in [
            (1683.86, 1, "1,683.9"),
            (550056.0, 0, "550,056"),
            (999.96, 1, "1,000.0"),
            (392.012, 3, "392.012"),
            (808.5, 0, "809"),
            (1722.35, 1, "1,722.4"),
            (0.9675, 3, "0.968"),
            (-1234567.5, 1, "-1,234,567.5"),
            (-123.0, 0, "-123"),
        ] {
            assert_eq!(grouped(value, decimals), text);
        }
    }
}
