//! What was played beside what QEMU measured.

use std::path::Path;

use anyhow::{Result, bail};
use comfy_table::CellAlignment;

use super::render::{average, percent};
use crate::{compare::Results, grid, project::short, spread::Spread, store::Store};

const TITLES: [&str; 7] = [
    "scheduler",
    "model",
    "± %",
    "QEMU",
    "± %",
    "difference, %",
    "ranges",
];

/// The cells of one CPU beside those of a folder of results.
pub fn text(all: &[Results], folder: &Path) -> Result<String> {
    let store = Store::new(folder.to_owned());
    let mut table = grid::plain();
    table.set_header(TITLES);
    let mut rows = 0;
    for cell in all
        .iter()
        .filter(|cell| cell.outcomes[0].last().context.smp == 1)
    {
        let Some(measured) = store.read(&cell.cell)? else {
            continue;
        };
        rows += 1;
        let [model, qemu] = [average(&cell.outcomes), average(&measured)];
        table.add_row([
            short(&cell.cell.policy),
            format!("{:.3}", model.mean),
            percent(&model),
            format!("{:.3}", qemu.mean),
            percent(&qemu),
            format!("{:+.2}", difference(&model, &qemu)),
            match model.overlaps(&qemu) {
                true => "overlap",
                false => "",
            }
            .to_owned(),
        ]);
    }
    if rows == 0 {
        bail!(
            "{}: expected results of {} on one CPU, for what was played on one CPU; found none",
            folder.display(),
            all[0].cell.app.name
        );
    }
    for i in 1..TITLES.len() - 1 {
        let column = table.column_mut(i).expect("a column for each title");
        column.set_cell_alignment(CellAlignment::Right);
    }
    Ok(format!(
        "\nAverage turnaround, ms\n\n{}",
        grid::text(&table, "")
    ))
}

/// How much more the model has than QEMU, in %.
fn difference(model: &Spread, qemu: &Spread) -> f64 {
    (model.mean / qemu.mean - 1.0) * 100.0
}
