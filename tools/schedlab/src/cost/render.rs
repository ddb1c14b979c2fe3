//! The tables of the cost of a yield: text for a terminal, Markdown, and CSV for `schedlab docs`.
//! A figure in a table is the mean over the tick phases.

use anyhow::Result;

use super::figures::{Figure, Figures};
use crate::{grid, spread::Spread};

/// The decimals of a figure.
const DECIMALS: usize = 1;

/// Returns a table for each architecture, with a line for each scheduler.
pub fn text(figures: &Figures) -> String {
    tables(figures, |title, titles, rows| {
        format!("{title}\n\n{}", grid::text(titles, rows, grid::WIDE))
    })
}

pub fn markdown(figures: &Figures) -> String {
    tables(figures, |title, titles, rows| {
        format!("## {title}\n\n{}", grid::markdown(titles, rows))
    })
}

fn tables(
    figures: &Figures,
    table: impl Fn(&str, &[String], Vec<Vec<String>>) -> String,
) -> String {
    let unit = figures.0.first().map_or("", |figure| figure.unit);
    let sizes = figures.sizes();
    let mut titles = vec!["scheduler".to_owned()];
    titles.extend(sizes.iter().map(|size| format!(">{size}")));
    let of_arch = |arch: &&str| {
        let title = format!("{arch}: {unit} per yield, by the number of tasks");
        let rows = figures.rows(arch).into_iter().map(|(scheduler, row)| {
            let cells = means(&sizes, &row);
            std::iter::once(scheduler).chain(cells).collect()
        });
        table(&title, &titles, rows.collect())
    };
    let tables: Vec<_> = figures.arches().iter().map(of_arch).collect();
    tables.join("\n")
}

/// Returns a line for each figure.
pub fn csv(figures: &Figures) -> Result<String> {
    let cell = [
        "arch",
        "smp",
        "timing",
        "scale",
        "scheduler",
        "tasks",
        "unit",
    ];
    let row = |figure: &Figure| {
        let cell = [
            figure.arch.clone(),
            figure.smp.to_string(),
            figure.timing.clone(),
            figure.scale.to_string(),
            figure.scheduler(),
            figure.tasks.to_string(),
            figure.unit.to_owned(),
        ];
        cell.into_iter().chain(figure.spread().csv_fields(DECIMALS))
    };
    let titles = cell.iter().chain(&Spread::CSV_COLUMNS);
    grid::csv(titles, figures.0.iter().map(row))
}

/// Returns the mean of a scheduler for each size; empty if it has none.
fn means(sizes: &[usize], row: &[&Figure]) -> impl Iterator<Item = String> {
    sizes.iter().map(move |size| {
        let figure = row.iter().find(|figure| figure.tasks == *size);
        figure.map_or(String::new(), |figure| {
            format!("{:.DECIMALS$}", figure.spread().mean)
        })
    })
}
