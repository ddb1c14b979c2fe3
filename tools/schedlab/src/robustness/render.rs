//! A curve as text for a terminal, and as CSV for `schedlab docs`.

use anyhow::Result;
use comfy_table::CellAlignment;

use super::curve::{Curve, OTHERS, PLANNED};
use crate::{grid, quantiles::Quantiles};

pub fn text(curve: &Curve) -> String {
    let mut titles = vec!["spread, %".to_owned()];
    titles.extend(
        OTHERS
            .iter()
            .chain([&PLANNED])
            .map(|name| (*name).to_owned()),
    );
    titles.extend(OTHERS.iter().map(|name| format!("slower than {name}, %")));
    let mut table = grid::plain();
    table.set_header(titles);
    for point in &curve.points {
        let range = |q: &Quantiles| format!("{:.3} ({:.3} to {:.3})", q.mean, q.low, q.high);
        let mut row = vec![point.spread.to_string()];
        row.extend(point.of_policies.iter().map(range));
        row.extend(
            point
                .behind_percent
                .iter()
                .map(|percent| format!("{percent:.1}")),
        );
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{} on {}: average turnaround over the bound, mean (5 % to 95 %) of {} runs (model, 1 CPU)

{}
Each task's time is changed by a factor of its own, up to 1 + spread or down to one over that;
PBG's plan is that of the recording. The bound is shortest-remaining-first, of the work as it
came out. slower than: in how many of a hundred runs PBG's average was the larger one.
",
        curve.app,
        curve.arch,
        curve.seeds,
        grid::text(&table, "")
    )
}

/// One line for each value.
pub fn csv(curve: &Curve) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "arch",
        "app",
        "seeds",
        "spread",
        "scheduler",
        "figure",
        "value",
    ])?;
    for point in &curve.points {
        let mut line = |scheduler: &str, figure: &str, value: f64| {
            out.write_record([
                &curve.arch,
                &curve.app,
                &curve.seeds.to_string(),
                &point.spread.to_string(),
                scheduler,
                figure,
                &format!("{value:.4}"),
            ])
        };
        for (name, quantiles) in OTHERS.iter().chain([&PLANNED]).zip(&point.of_policies) {
            line(name, "mean", quantiles.mean)?;
            line(name, "5 %", quantiles.low)?;
            line(name, "95 %", quantiles.high)?;
        }
        for (name, percent) in OTHERS.iter().zip(&point.behind_percent) {
            line(PLANNED, &format!("slower than {name}"), *percent)?;
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}
