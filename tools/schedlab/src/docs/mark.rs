//! The words of a mark, and the table that they stand for.

use std::path::Path;

use anyhow::Result;
use serde::Deserialize;

use super::data::{Data, Figure, Files, Filter};
use crate::spread::{Spread, letters, reach};

/// What stands where the CSV file has an empty value.
const MISSING: &str = "-";

/// Which of a figure's values is shown.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Show {
    /// The mean over the tick phases.
    Mean,
    /// The mean over the tick phases or the median over boots, as the file has it, and behind it how far it goes if there are several:
    /// `±0.41 %` of tick phases, `(285.7 to 322.2)` of boots.
    Range,
}

/// Which cells of a table compete: those in a column with each other, or in a row.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Compare {
    Rows,
    Columns,
}

/// Which rows, or which columns, a table has.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum Axis {
    /// One for each word in this column of the file.
    Of(String),
    /// One for each of these, which the mark names.
    These(Vec<Line>),
}

/// A row or a column: its title, and which lines of the file it shows.
#[derive(Clone, Debug, Deserialize)]
struct Line {
    title: String,
    decimals: Option<usize>,
    show: Option<Show>,
    #[serde(flatten)]
    filter: Filter,
}

/// What a mark `<!-- table {…} -->` says.
#[derive(Debug, Deserialize)]
pub struct Table {
    csv: String,
    /// Above the titles of the rows.
    title: String,
    rows: Axis,
    columns: Axis,
    /// As the file has them if neither this nor the row or column says.
    decimals: Option<usize>,
    /// Titles of rows and columns in bold.
    #[serde(default)]
    bold: Vec<String>,
    show: Option<Show>,
    /// Cells that overlap share a letter ([`Spread::overlaps`]).
    compare: Option<Compare>,
    #[serde(flatten)]
    filter: Filter,
}

impl Table {
    /// The lines of the table.
    pub fn lines(&self, folder: &Path, files: &mut Files) -> Result<Vec<String>> {
        let data = files.get(&folder.join(&self.csv))?;
        let rows = self.axis(&self.rows, data)?;
        let columns = self.axis(&self.columns, data)?;
        let mut cells = Vec::new();
        for row in &rows {
            let mut of_row = Vec::new();
            for column in &columns {
                let filter = joined(&joined(&self.filter, &row.filter), &column.filter);
                of_row.push(data.figure(&filter)?);
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
                    decimals: None,
                    show: None,
                    filter: [(column.clone(), word)].into(),
                };
                let words = data.words(column, &self.filter)?;
                Ok(words.into_iter().map(line).collect())
            }
        }
    }

    /// For each cell the letters that it shares with the ones it overlaps with. One boot
    /// tells nothing of a range, so there are none of it.
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

/// The words of `a`, where `b` has none for the same column.
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

/// `1,683.9`. What ends in a 5 that is dropped goes up, as people round the file's text.
fn grouped(value: f64, decimals: usize) -> String {
    // Binary fractions are a little below or above what the text says.
    const TIE: f64 = 1e-12;
    let value = value * (1.0 + TIE);
    let text = format!("{value:.decimals$}");
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", text.as_str()),
    };
    let (whole, fraction) = match digits.split_once('.') {
        Some((whole, fraction)) => (whole, format!(".{fraction}")),
        None => (digits, String::new()),
    };
    let mut groups = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i) % 3 == 0 {
            groups.push(',');
        }
        groups.push(digit);
    }
    format!("{sign}{groups}{fraction}")
}

#[cfg(test)]
mod tests {
    use super::grouped;

    #[test]
    fn thousands_are_set_apart() {
        let of = |value, decimals| grouped(value, decimals);
        assert_eq!(of(1683.86, 1), "1,683.9");
        assert_eq!(of(550056.0, 0), "550,056");
        assert_eq!(of(999.96, 1), "1,000.0");
        assert_eq!(of(392.012, 3), "392.012");
        assert_eq!(
            [of(808.5, 0), of(1722.35, 1), of(0.9675, 3)],
            ["809", "1,722.4", "0.968"]
        );
        assert_eq!(of(-1234567.5, 1), "-1,234,567.5");
    }
}
