//! The CSV files that pages name: one figure in a line, found by what stands in the
//! other columns.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    distinct::distinct,
    spread::{Quartiles, Spread},
};

/// Column and what must stand in it.
pub type Filter = BTreeMap<String, String>;

/// Files, each read once.
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

/// One figure, and with how many decimals the file has it.
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
        match self.columns.iter().position(|column| column == name) {
            Some(column) => Ok(column),
            None => bail!(
                "expected some of {}, found `{name}`",
                self.columns.join(" ")
            ),
        }
    }

    fn lines<'a>(&'a self, filter: &Filter) -> Result<Vec<&'a [String]>> {
        let wanted: Vec<(usize, &String)> = filter
            .iter()
            .map(|(name, word)| Ok((self.column(name)?, word)))
            .collect::<Result<_>>()?;
        let all = |line: &&Vec<String>| wanted.iter().all(|(column, word)| line[*column] == **word);
        Ok(self.lines.iter().filter(all).map(Vec::as_slice).collect())
    }

    /// What stands in a column of the lines that fit, each word once, in their order.
    pub fn words(&self, column: &str, filter: &Filter) -> Result<Vec<String>> {
        let column = self.column(column)?;
        let lines = self.lines(filter)?;
        let words = distinct(lines.iter().map(|line| line[column].clone()));
        if words.is_empty() {
            bail!("expected lines with {}, found none", show(filter));
        }
        Ok(words)
    }

    /// The one line that fits; nothing if its value is empty. A file without ranges
    /// has figures of one tick phase, and one of boots in real time has their medians.
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

/// `app realtime, arch x86_64`.
fn show(filter: &Filter) -> String {
    let words: Vec<_> = filter
        .iter()
        .map(|(name, word)| format!("{name} {word}"))
        .collect();
    words.join(", ")
}
