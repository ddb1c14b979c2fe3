//! `schedlab compare`: results to tables and figures, or one folder of results
//! against another.
//!
//! results -> [`table`] -> text, Markdown, CSV ([`render`]) and [`chart`]s.

mod chart;
mod difference;
mod folders;
mod pool;
mod present;
mod render;
pub mod table;

use std::path::Path;

use anyhow::{Result, bail};

pub use difference::differences;

use crate::{
    Verdict,
    cli::{CompareArgs, Format, TreeArgs},
    output::{count, note, print, print_line},
    project::{Cell, Project},
    setting::Setting,
    sources::{Made, RowKey, is_published, write_rows},
    store::{Store, write},
};
use chart::{Chart, charts};
use pool::Pool;
pub use table::Results;
use table::Table;

pub fn compare(tree: &TreeArgs, args: &CompareArgs) -> Result<Verdict> {
    if let (Some(first), Some(second)) = (&args.first, &args.second) {
        return folders::compare(
            &Store::new(first.clone()),
            &Store::new(second.clone()),
            args,
        );
    }
    let project = Project::find(tree)?;
    let lists = project.lists()?.select(&args.select, &args.app)?;
    let folder = || {
        project
            .root
            .join("target")
            .join(Setting::new(&args.setting).folder())
    };
    let pool = match args.results[..] {
        [] => Pool::one(Store::new(args.first.clone().unwrap_or_else(folder))),
        _ => Pool::parts(&args.results),
    };
    // Of a folder that was named it is not known what it would have been made from.
    let advice = match args.first.is_some() || !args.results.is_empty() {
        true => String::new(),
        false => format!("; `{}` makes them", matrix_command(args)),
    };
    if let Some(store) = pool.absent() {
        bail!(
            "{}: expected a folder of results, found none{advice}",
            store.root.display()
        );
    }

    let found = pool.read(lists.cells())?;
    if found.all.is_empty() {
        bail!(
            "{}: expected results of {}, found none{advice}",
            pool.names(),
            count(found.missing.len(), "cell")
        );
    }
    let mixed = pool.differences(&found, args.mixed)?;
    let tables = table::tables(&found.all, &lists.policies, args.long);

    match args.format {
        Format::Text => print(render::text(&tables)),
        Format::Markdown => print(render::markdown(&tables, false)?),
        Format::Csv => print(render::csv(&tables)?),
    }?;
    if let Some(folder) = &args.out {
        write_report(folder, &tables, &mixed, found.made())?;
    }
    if let Some(file) = &args.totals {
        write_rows(file, &render::totals(&tables)?, found.made())?;
        note(format_args!("written: {}", file.display()));
    }
    for line in mixed
        .iter()
        .chain([&last_line(&found.missing, found.all.len())])
    {
        // What a program reads must not have a line for people in it.
        if args.format == Format::Csv {
            note(line);
        } else {
            print_line(line)?;
        }
    }
    Ok(if args.strict && !found.missing.is_empty() {
        Verdict::Bad
    } else {
        Verdict::Good
    })
}

/// What makes the results that were asked for, as people type it.
fn matrix_command(args: &CompareArgs) -> String {
    let mut words = vec!["make matrix".to_owned()];
    let select = &args.select;
    for (name, list) in [
        ("A", &args.app),
        ("ARCH", &select.arch),
        ("FEATURES", &select.policy),
    ] {
        if !list.is_empty() {
            words.push(format!("{name}={}", list.join(",")));
        }
    }
    words.extend(Setting::new(&args.setting).not_default());
    words.join(" ")
}

/// Writes `tables.md`, `tables.csv` and every chart as SVG. In a folder of published figures `tables.csv`
/// keeps what it has of other apps and architectures, charts that are not there are not added, and no
/// `tables.md` is written: it would be a page of a part.
pub fn write_report(
    folder: &Path,
    tables: &[Table],
    mixed: &[String],
    made: Vec<(RowKey, Option<Made>)>,
) -> Result<()> {
    let csv = folder.join("tables.csv");
    let keep = is_published(&csv);
    // First, as it may be refused.
    write_rows(&csv, &render::csv(tables)?, made)?;
    let file = |chart: &Chart| folder.join(format!("{}.svg", chart.name));
    let mut charts: Vec<Chart> = tables.iter().flat_map(charts).collect();
    charts.retain(|chart| !keep || file(chart).exists());
    for chart in &charts {
        write(&file(chart), chart.svg()?)?;
    }
    let (drawn, place) = (count(charts.len(), "figure"), folder.display());
    if keep {
        note(format_args!(
            "written: tables.csv and {drawn} that {place} had"
        ));
        return Ok(());
    }
    let mut markdown = render::markdown(tables, true)?;
    for line in mixed {
        markdown += &format!("\n{line}\n");
    }
    write(&folder.join("tables.md"), markdown)?;
    note(format_args!(
        "written: tables.md, tables.csv and {drawn} in {place}"
    ));
    Ok(())
}

/// Says how much is missing, and where if that is not too much to say.
fn last_line(missing: &[Cell], present: usize) -> String {
    const ENOUGH: usize = 6;
    let total = missing.len() + present;
    if missing.is_empty() {
        return match total {
            1 => "the cell has results".to_owned(),
            _ => format!("all {total} cells have results"),
        };
    }
    let names: Vec<_> = missing
        .iter()
        .take(ENOUGH)
        .map(ToString::to_string)
        .collect();
    let more = if missing.len() > ENOUGH { " …" } else { "" };
    format!(
        "{} of {} {} no results: {}{more}",
        missing.len(),
        count(total, "cell"),
        if missing.len() == 1 { "has" } else { "have" },
        names.join(" ")
    )
}
