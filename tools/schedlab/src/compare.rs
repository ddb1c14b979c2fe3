//! `schedlab compare`: results to tables and figures, or one folder of results
//! against another.
//!
//! results -> [`table`] -> text, Markdown, CSV ([`render`]) and figures
//! ([`figure`], drawn by [`draw`]).

mod difference;
mod draw;
mod figure;
mod folders;
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
    store::{Store, write},
};
use figure::Figure;
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
    let lists = project.lists()?.select(&args.select)?;
    let folder = || {
        project
            .root
            .join("target")
            .join(Setting::new(&args.setting).folder())
    };
    let store = Store::new(args.first.clone().unwrap_or_else(folder));
    // Of a folder that was named it is not known what it would have been made from.
    let advice = match &args.first {
        Some(_) => String::new(),
        None => format!("; `{}` makes them", matrix_command(args)),
    };
    if !store.root.is_dir() {
        bail!(
            "{}: expected a folder of results, found none{advice}",
            store.root.display()
        );
    }

    let mut all = Vec::new();
    let mut missing = Vec::new();
    for cell in lists.cells() {
        match store.read(&cell)? {
            Some(outcomes) => all.push(Results {
                sources: store.origin(&cell).map(|o| o.sources),
                cell,
                outcomes,
            }),
            None => missing.push(cell),
        }
    }
    if all.is_empty() {
        bail!(
            "{}: expected results of {}, found none{advice}",
            store.root.display(),
            count(missing.len(), "cell")
        );
    }
    let tables = table::tables(&all, &lists.policies, args.long);

    match args.format {
        Format::Text => print(render::text(&tables)),
        Format::Markdown => print(render::markdown(&tables, |_| None)),
        Format::Csv => print(render::csv(&tables)?),
    }?;
    if let Some(folder) = &args.out {
        write_report(folder, &tables)?;
    }
    let last = last_line(&missing, all.len());
    // What a program reads must not have a line for people in it.
    if args.format == Format::Csv {
        note(last);
    } else {
        print_line(last)?;
    }
    Ok(if args.strict && !missing.is_empty() {
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
        ("A", &select.app),
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

/// `tables.md`, `tables.csv` and every figure as SVG and PNG.
pub fn write_report(folder: &Path, tables: &[Table]) -> Result<()> {
    let figures: Vec<Figure> = tables.iter().flat_map(figure::figures).collect();
    for figure in &figures {
        let picture = draw::picture(figure);
        write(&folder.join(format!("{}.png", figure.name)), picture.png()?)?;
        write(&folder.join(format!("{}.svg", figure.name)), picture.svg()?)?;
    }
    let of_table = |table: &Table| Some(figure::figures(table));
    write(
        &folder.join("tables.md"),
        render::markdown(tables, of_table),
    )?;
    write(&folder.join("tables.csv"), render::csv(tables)?)?;
    note(format_args!(
        "written: tables.md, tables.csv and {} (SVG and PNG) in {}",
        count(figures.len(), "figure"),
        folder.display()
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
