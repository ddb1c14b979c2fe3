//! The CSV files that pages name. A line has one figure, and its other columns select it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    distinct::distinct,
    spread::{Quartiles, Spread},
};

/// The columns that select lines, with their values.
pub type Filter = BTreeMap<String, String>;

/// The files, each read once.
#[derive(Default)]
pub struct Files {
    read: BTreeMap<PathBuf, Data>,
}

impl Files {
    pub fn get(&mut self, path: &Path) -> Result<&Data> {
        if !self.read.contains_key(path) {
            let data = Data::read(path).with_context(|| path.display().to_string())?;
            self.read.insert(path.to_owned(), data);
        }
        Ok(&self.read[path])
    }
}

pub struct Data {
    columns: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// One figure, and its number of decimals in the file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    pub spread: Spread,
    pub decimals: usize,
}

impl Data {
    pub fn read(path: &Path) -> Result<Self> {
        let mut reader = csv::Reader::from_path(path)?;
        let words = |record: &csv::StringRecord| record.iter().map(str::to_owned).collect();
        let columns = words(reader.headers()?);
        let lines = reader
            .records()
            .map(|record| Ok(words(&record?)))
            .collect::<Result<_>>()?;
        Ok(Self { columns, lines })
    }

    fn column(&self, name: &str) -> Result<usize> {
        let column = self.columns.iter().position(|column| column == name);
        column.with_context(|| {
            format!(
                "expected some of {}, found `{name}`",
                self.columns.join(" ")
            )
        })
    }

    fn lines<'a>(&'a self, filter: &Filter) -> Result<Vec<&'a [String]>> {
        let wanted: Vec<(usize, &String)> = filter
            .iter()
            .map(|(name, word)| Ok((self.column(name)?, word)))
            .collect::<Result<_>>()?;
        let all = |line: &&Vec<String>| wanted.iter().all(|(column, word)| line[*column] == **word);
        Ok(self.lines.iter().filter(all).map(Vec::as_slice).collect())
    }

    /// Returns the words in a column of the selected lines, each once.
    pub fn words(&self, column: &str, filter: &Filter) -> Result<Vec<String>> {
        let column = self.column(column)?;
        let lines = self.lines(filter)?;
        let words = distinct(lines.iter().map(|line| line[column].clone()));
        if words.is_empty() {
            bail!("expected lines with {}, found none", show(filter));
        }
        Ok(words)
    }

    /// Returns true if a line is selected.
    pub fn has(&self, filter: &Filter) -> Result<bool> {
        Ok(!self.lines(filter)?.is_empty())
    }

    /// Returns the figure of the one selected line; `None` if its value is empty. A file without
    /// ranges has figures of one tick phase, and a file of boots in real time has medians.
    pub fn figure(&self, filter: &Filter) -> Result<Option<Figure>> {
        let lines = self.lines(filter)?;
        let [line] = lines[..] else {
            bail!(
                "expected one line with {}, found {}",
                show(filter),
                lines.len()
            );
        };
        let value = &line[self.column("value")?];
        if value.is_empty() {
            return Ok(None);
        }
        let number = |text: &str| -> Result<f64> {
            text.parse().with_context(|| {
                format!("expected a number where {}, found `{text}`", show(filter))
            })
        };
        let or_value = |name: &str| match self.column(name) {
            Ok(column) => number(&line[column]),
            Err(_) => number(value),
        };
        let of = |name: &str| number(&line[self.column(name)?]);
        let quartiles = match self.column("median") {
            Ok(_) => Some(Quartiles {
                low: of("q1")?,
                median: of("median")?,
                high: of("q3")?,
            }),
            Err(_) => None,
        };
        let count = match self.column("phases").or_else(|_| self.column("boots")) {
            Ok(column) => number(&line[column])? as usize,
            Err(_) => 1,
        };
        let spread = Spread {
            first: number(value)?,
            least: or_value("min")?,
            mean: or_value("mean")?,
            most: or_value("max")?,
            quartiles,
            count,
        };
        let decimals = value.split_once('.').map_or(0, |(_, digits)| digits.len());
        Ok(Some(Figure { spread, decimals }))
    }
}

/// Returns the filter as text: `app realtime, arch x86_64`.
fn show(filter: &Filter) -> String {
    let words: Vec<_> = filter
        .iter()
        .map(|(name, word)| format!("{name} {word}"))
        .collect();
    words.join(", ")
}
