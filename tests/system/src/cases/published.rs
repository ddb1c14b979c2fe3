//! The published figures: none is out of date, and a sample of them is what the tree measures.

use std::{collections::BTreeMap, fs};

use anyhow::{Context as _, Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

const TABLES: &str = "docs/results/tables.csv";
/// Number of columns that name a line's figure; the next column is the figure at the tick.
const NAMES: usize = 9;

pub fn cases() -> Vec<Case<'static>> {
    let stale = "host: no row of the published tables is out of date";
    let sample = "qemu: a sample of the published figures, to the digit";
    vec![
        case(stale, |context| context.make("stale").text().map(drop)),
        case(sample, measure_again).builds(ANY_ARCH),
    ]
}

/// Measures the cells that the commit's hash selects. Each is booted once, at the tick, like the
/// first figure of its lines.
fn measure_again(context: &Context) -> Result<()> {
    let commit = context.program("git").args("rev-parse HEAD").text()?;
    let sample = context.make(format!("-s stale LAB='--sample {}'", commit.trim()));
    let sample = sample.text()?;
    let cells: Vec<_> = sample
        .lines()
        .filter(|line| line.starts_with("A="))
        .collect();
    ensure!(
        !cells.is_empty(),
        "expected cells that are up to date, found none"
    );
    let published = figures(&fs::read_to_string(TABLES)?)?;
    let (results, out) = (context.file("results")?, context.file("out")?);
    for cell in cells {
        let matrix = context.make(format!("matrix {cell} LAB='--results {results}'"));
        matrix.text()?;
        let compare = context.make(format!("compare {cell} LAB='{results} --out {out}'"));
        compare.text()?;
        let measured = figures(&fs::read_to_string(format!("{out}/tables.csv"))?)?;
        ensure!(!measured.is_empty(), "{cell}: expected figures, found none");
        for (name, value) in measured.iter().filter(|(_, value)| !value.is_empty()) {
            let expected = published
                .get(name)
                .with_context(|| format!("{TABLES}: no line {name}"))?;
            ensure!(
                value == expected,
                "{TABLES}: {name}: published is {expected}, measured {value}"
            );
        }
    }
    Ok(())
}

/// Returns the figures of a table, by the names in their lines.
fn figures(text: &str) -> Result<BTreeMap<String, String>> {
    let figure = |line: &str| {
        let words: Vec<_> = line.split(',').collect();
        ensure!(
            words.len() > NAMES,
            "expected more than {NAMES} columns: {line}"
        );
        Ok((words[..NAMES].join(","), words[NAMES].to_owned()))
    };
    text.lines().skip(1).map(figure).collect()
}
