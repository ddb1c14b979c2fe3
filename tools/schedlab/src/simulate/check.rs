//! The model beside QEMU.

use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{
    costs::filter,
    render::{average, percent},
};
use crate::{
    compare::Results,
    docs::Data,
    grid,
    project::{Cell, short},
    sources::{Made, RowKey, write_whole},
    spread::Spread,
    store::Store,
};

const TITLES: [&str; 7] = [
    "scheduler",
    ">model",
    ">± %",
    ">QEMU",
    ">± %",
    ">difference, %",
    "ranges",
];

/// The columns of a table of differences.
const COLUMNS: [&str; 6] = ["arch", "app", "scheduler", "figure", "unit", "value"];
/// The figure of each row.
const FIGURE: &str = "model over QEMU";

/// A cell of one CPU, played and measured.
pub struct Checked<'a> {
    results: &'a Results,
    model: Spread,
    qemu: Spread,
}

/// Returns the cells of one CPU beside those of a folder of results, or of a published table.
pub fn checked<'a>(all: &'a [Results], place: &Path) -> Result<Vec<Checked<'a>>> {
    let shown = || place.display().to_string();
    let is_table = place.extension().is_some_and(|kind| kind == "csv");
    let table = is_table.then(|| Data::read(place).with_context(shown));
    let table = table.transpose()?;
    let store = Store::new(place.to_owned());
    let mut checked = Vec::new();
    for results in all
        .iter()
        .filter(|results| results.outcomes[0].last().context.smp == 1)
    {
        let qemu = match &table {
            Some(table) => published(table, results).with_context(shown)?,
            None => store.read(&results.cell)?.as_deref().map(average),
        };
        let Some(qemu) = qemu else {
            continue;
        };
        // One boot is compared with the run at its phase, the first.
        let runs = match qemu.count {
            1 => &results.outcomes[..1],
            _ => &results.outcomes[..],
        };
        checked.push(Checked {
            results,
            model: average(runs),
            qemu,
        });
    }
    if checked.is_empty() {
        bail!(
            "{}: expected results of {} on one CPU, for what was played on one CPU; found none",
            place.display(),
            all[0].cell.app.name
        );
    }
    Ok(checked)
}

/// Returns the average turnaround of a cell in a published table; `None` if it has no such row.
fn published(table: &Data, results: &Results) -> Result<Option<Spread>> {
    let Cell { arch, app, policy } = &results.cell;
    let scale = results.outcomes[0].last().scale.to_string();
    let of = filter([
        ("arch", &**arch),
        ("app", &*app.name),
        ("smp", "1"),
        ("timing", "icount"),
        ("scale", &*scale),
        ("scheduler", &*short(policy)),
        ("kind", "total"),
        ("figure", "average"),
    ]);
    if !table.has(&of)? {
        return Ok(None);
    }
    Ok(table.figure(&of)?.map(|figure| figure.spread))
}

/// Returns the checked cells as a table.
pub fn text(all: &[Checked]) -> String {
    let row = |cell: &Checked| {
        let Checked { model, qemu, .. } = cell;
        let ranges = if model.overlaps(qemu) { "overlap" } else { "" };
        [
            short(&cell.results.cell.policy),
            format!("{:.3}", model.mean),
            percent(model),
            format!("{:.3}", qemu.mean),
            percent(qemu),
            format!("{:+.2}", cell.difference()),
            ranges.to_owned(),
        ]
    };
    let table = grid::text(&TITLES, all.iter().map(row), grid::WIDE);
    format!("\nAverage turnaround, ms\n\n{table}")
}

/// Writes the differences into a CSV file, in place of those of the same cells.
pub fn write_errors(all: &[Checked], file: &Path, made: Vec<(RowKey, Option<Made>)>) -> Result<()> {
    let found = match std::fs::read_to_string(file) {
        Ok(found) => found,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(error).with_context(|| file.display().to_string()),
    };
    let text = with_errors(&found, all).with_context(|| file.display().to_string())?;
    write_whole(file, &text, made)
}

/// Returns the keys of the cells' rows.
pub fn keys(all: &[Checked]) -> Vec<RowKey> {
    let key = |cell: &Checked| RowKey::of(&cell.results.cell);
    all.iter().map(key).collect()
}

fn with_errors(found: &str, all: &[Checked]) -> Result<String> {
    let mut reader = csv::Reader::from_reader(found.as_bytes());
    if !found.is_empty() && reader.headers()? != &csv::StringRecord::from(COLUMNS.to_vec()) {
        bail!("expected the columns {}", COLUMNS.join(","));
    }
    let mut rows: Vec<Vec<String>> = Vec::new();
    for record in reader.records() {
        rows.push(record?.iter().map(str::to_owned).collect());
    }
    let ours = all.iter().map(|cell| {
        let of = &cell.results.cell;
        let value = format!("{:.2}", cell.difference());
        [
            &of.arch,
            &of.app.name,
            &short(&of.policy),
            FIGURE,
            "%",
            &value,
        ]
        .map(str::to_owned)
    });
    for our in ours {
        let is_ours = |row: &Vec<String>| our[..3] == row[..3];
        let place = rows.iter().position(is_ours).unwrap_or(rows.len());
        rows.retain(|row| !is_ours(row));
        rows.insert(place, our.to_vec());
    }
    grid::csv(COLUMNS, rows)
}

impl Checked<'_> {
    /// Returns the difference of the model from QEMU, in %.
    fn difference(&self) -> f64 {
        (self.model.mean / self.qemu.mean - 1.0) * 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    #[test]
    fn differences_of_a_program_replace_the_old_ones() {
        let results = Results {
            cell: Cell::new("x86_64", "yield", "sched_rr"),
            outcomes: Vec::new(),
            sources: None,
        };
        let spread = |mean| Spread::of(&[mean]).unwrap();
        let all = [Checked {
            results: &results,
            model: spread(99.0),
            qemu: spread(100.0),
        }];
        let head = "arch,app,scheduler,figure,unit,value\n";
        let row = |arch, app, value| format!("{arch},{app},rr,model over QEMU,%,{value}\n");
        let (a, z) = (
            row("x86_64", "batch", "3.00"),
            row("riscv64", "yield", "4.00"),
        );
        let (old, new) = (
            row("x86_64", "yield", "2.00"),
            row("x86_64", "yield", "-1.00"),
        );
        let found = |text: &str| with_errors(text, &all).unwrap();
        assert_eq!(
            found(&format!("{head}{a}{old}{old}{z}")),
            format!("{head}{a}{new}{z}")
        );
        assert_eq!(
            found(&format!("{head}{a}{z}")),
            format!("{head}{a}{z}{new}")
        );
        assert_eq!(found(""), format!("{head}{new}"));
        let error = with_errors("app,value\n", &all).unwrap_err().to_string();
        assert_has(&error, "expected the columns arch,app");
    }
}
