//! The tables of what a yield costs: text for a terminal, Markdown, and CSV for
//! `schedlab docs`. In the tables a figure is the mean over its tick phases.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::CellAlignment;

use super::figures::{Figure, Figures};
use crate::{grid, spread::Spread};

/// The decimals that a figure is printed with.
const DECIMALS: usize = 1;

/// A table for each architecture, a line for each scheduler.
pub fn text(figures: &Figures) -> String {
    let mut tables = Vec::new();
    for arch in figures.arches() {
        let mut table = grid::plain();
        let sizes = figures.sizes();
        let titles = sizes.iter().map(usize::to_string);
        table.set_header(std::iter::once("scheduler".to_owned()).chain(titles));
        for (scheduler, row) in figures.rows(arch) {
            table.add_row(std::iter::once(scheduler).chain(means(&sizes, &row)));
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        tables.push(format!(
            "{}\n\n{}",
            title(figures, arch),
            grid::text(&table, "")
        ));
    }
    tables.join("\n")
}

pub fn markdown(figures: &Figures) -> String {
    let mut tables = Vec::new();
    for arch in figures.arches() {
        let sizes = figures.sizes();
        let mut table = format!("## {}\n\n| scheduler |", title(figures, arch));
        for size in &sizes {
            let _ = write!(table, " {size} |");
        }
        table += "\n|---|";
        table += &"---:|".repeat(sizes.len());
        table.push('\n');
        for (scheduler, row) in figures.rows(arch) {
            let cells = means(&sizes, &row).collect::<Vec<_>>().join(" | ");
            let _ = writeln!(table, "| {scheduler} | {cells} |");
        }
        tables.push(table);
    }
    tables.join("\n")
}

/// One line for each figure.
pub fn csv(figures: &Figures) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let cell = [
        "arch",
        "smp",
        "timing",
        "scale",
        "scheduler",
        "tasks",
        "unit",
    ];
    out.write_record(cell.iter().chain(&Spread::CSV_COLUMNS))?;
    for figure in &figures.0 {
        let cell = [
            figure.arch.clone(),
            figure.smp.to_string(),
            figure.timing.clone(),
            figure.scale.to_string(),
            figure.scheduler(),
            figure.tasks.to_string(),
            figure.unit.to_owned(),
        ];
        out.write_record(cell.into_iter().chain(figure.spread().csv_fields(DECIMALS)))?;
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

fn title(figures: &Figures, arch: &str) -> String {
    let unit = figures.0.first().map_or("", |figure| figure.unit);
    format!("{arch}: {unit} per yield, by the number of tasks")
}

/// The means of a scheduler; nothing where it has none of a size.
fn means(sizes: &[usize], row: &[&Figure]) -> impl Iterator<Item = String> {
    sizes.iter().map(move |size| {
        let figure = row.iter().find(|figure| figure.tasks == *size);
        figure.map_or(String::new(), |figure| {
            format!("{:.DECIMALS$}", figure.spread().mean)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::figures::tests::sample;

    fn figures() -> Figures {
        sample(&[
            ("sched_fifo", "run", [140.0, 140.04]),
            ("sched_pbg", "replay", [139.0, 139.46]),
        ])
    }

    #[test]
    fn text_has_a_line_for_each_scheduler() {
        let expected = "\
x86_64: instructions per yield, by the number of tasks

 scheduler        4     256
----------------------------
 fifo         140.0   140.0
 pbg replay   139.0   139.5
";
        assert_eq!(text(&figures()), expected, "{}", text(&figures()));
    }

    #[test]
    fn markdown_has_the_same_cells() {
        let expected = "\
## x86_64: instructions per yield, by the number of tasks

| scheduler | 4 | 256 |
|---|---:|---:|
| fifo | 140.0 | 140.0 |
| pbg replay | 139.0 | 139.5 |
";
        assert_eq!(markdown(&figures()), expected);
    }

    #[test]
    fn csv_has_a_line_for_each_figure() {
        let text = csv(&figures()).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "arch,smp,timing,scale,scheduler,tasks,unit,value,min,mean,max,phases"
        );
        assert_eq!(
            lines[4..],
            ["x86_64,1,icount,1,pbg replay,256,instructions,139.5,139.5,139.5,139.5,1"]
        );
    }
}
