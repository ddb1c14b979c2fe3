//! `schedlab compare`: makes tables and figures of results, or compares two folders of results.
//!
//! results -> [`table`] -> text, Markdown, CSV ([`render`]) and [`chart`]s.

mod chart;
mod difference;
mod folders;
mod kept;
mod pool;
mod render;
pub mod table;

use std::path::Path;

use anyhow::{Result, bail};

pub use difference::differences;

use crate::{
    Verdict,
    cli::{CompareArgs, TreeArgs},
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

/// The file with all figures of tables, in the folder of a report.
const TABLES: &str = "tables.csv";

pub fn compare(tree: &TreeArgs, args: &CompareArgs) -> Result<Verdict> {
    if let (Some(first), Some(second)) = (&args.first, &args.second) {
        return folders::compare(
            &Store::new(first.clone()),
            &Store::new(second.clone()),
            args,
        );
    }
    let project = Project::find(tree)?;
    let all = project.lists()?;
    let lists = all.select(&args.select, &args.app)?;
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
    // No command is known for a folder that was named.
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
    let mut tables = table::tables(&found.all, &lists.policies, args.long);
    let report = args.out.as_ref().map(|folder| folder.join(TABLES));
    for csv in [&report, &args.totals].into_iter().flatten() {
        if is_published(csv) && csv.exists() {
            kept::keep(&mut tables, csv, &all.policies, &project)?;
        }
    }

    print(render::text(&tables))?;
    if let Some(folder) = &args.out {
        write_report(folder, &tables, &mixed, found.made())?;
    }
    if let Some(file) = &args.totals {
        write_rows(file, &render::totals(&tables)?, found.made())?;
        note(format_args!("written: {}", file.display()));
    }
    mixed.iter().try_for_each(print_line)?;
    print_line(last_line(&found.missing, found.all.len()))?;
    Ok(if args.strict && !found.missing.is_empty() {
        Verdict::Bad
    } else {
        Verdict::Good
    })
}

/// Returns the command that makes the results of these options.
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

/// Writes `tables.md`, `tables.csv` and each chart as SVG.
///
/// In a folder of published figures `tables.csv` keeps the rows of other tables, no chart is
/// added, and no `tables.md` is written, as it would show a part.
pub fn write_report(
    folder: &Path,
    tables: &[Table],
    mixed: &[String],
    made: Vec<(RowKey, Option<Made>)>,
) -> Result<()> {
    let csv = folder.join(TABLES);
    let keep = is_published(&csv);
    // This comes first, as it may be refused.
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
    let mut markdown = render::markdown(tables)?;
    for line in mixed {
        markdown += &format!("\n{line}\n");
    }
    write(&folder.join("tables.md"), markdown)?;
    note(format_args!(
        "written: tables.md, tables.csv and {drawn} in {place}"
    ));
    Ok(())
}

/// Returns the closing line: the number of missing cells and the first of them.
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
