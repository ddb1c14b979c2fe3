//! `schedlab order`: CFS and EEVDF with a ready queue whose order is exact to one bucket,
//! and with the tree, whose order is exact: turnaround, fairness, and what a yield costs.
//!
//! results and `cost.csv` of two folders -> [`Line`]s -> text and CSV

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use comfy_table::CellAlignment;
use serde::Deserialize;

use crate::{
    Verdict,
    cli::OrderArgs,
    grid,
    output::{note, print},
    project::{App, Cell, short},
    record::Outcome,
    setting::ORDER,
    sources::{Made, RowKey, known, write_rows},
    spread::{Spread, deviation},
    store::Store,
};

/// What is compared.
const APPS: [&str; 4] = ["realtime", "unequal", "occupy", "batch"];
const POLICIES: [&str; 2] = ["sched_cfs", "sched_eevdf"];
/// Of these numbers of tasks, what a yield costs.
const SIZES: [usize; 3] = [4, 256, 4_096];
/// The app that says so.
const COST: &str = "cost";

/// The value of [`ORDER`], and how the name of a scheduler with the tree ends.
const EXACT: &str = "exact";

/// A figure of one scheduler, over the tick phases.
#[derive(Clone, Debug, PartialEq)]
struct Line {
    app: String,
    scheduler: String,
    figure: String,
    unit: &'static str,
    spread: Spread,
    decimals: usize,
}

pub fn order(args: &OrderArgs) -> Result<Verdict> {
    let mut lines = Vec::new();
    for policy in POLICIES {
        for (folder, is_exact) in [(&args.buckets, false), (&args.exact, true)] {
            let scheduler = name(policy, is_exact);
            for app in APPS {
                lines.extend(turnarounds(folder, &args.arch, app, policy, is_exact)?);
            }
            lines.extend(costs(folder, &args.arch, policy, &scheduler)?);
        }
    }
    print(text(&args.arch, &lines))?;
    let file = args.out.join("order.csv");
    write_rows(&file, &csv(&args.arch, &lines)?, false, made(args)?)?;
    note(format_args!("written: {}", file.display()));
    Ok(Verdict::Good)
}

/// The sources of the rows of each cell.
fn made(args: &OrderArgs) -> Result<Vec<(RowKey, Option<Made>)>> {
    let mut all = Vec::new();
    for (folder, variant) in [(&args.buckets, ""), (&args.exact, EXACT)] {
        for policy in POLICIES {
            let key = |app| RowKey::new(&args.arch, app, &short(policy), variant);
            let store = Store::new(folder.clone());
            for app in APPS {
                let origin = store.origin(&cell(&args.arch, app, policy));
                all.push((key(app), origin.and_then(|origin| origin.made)));
            }
            let plain = RowKey::new(&args.arch, COST, &short(policy), "");
            all.push((key(COST), known(&folder.join("cost.csv"), &plain)?));
        }
    }
    Ok(all)
}

fn cell(arch: &str, app: &str, policy: &str) -> Cell {
    Cell {
        arch: arch.to_owned(),
        app: App {
            name: app.to_owned(),
            folder: app.to_owned(),
        },
        policy: policy.to_owned(),
    }
}

/// `cfs`, `cfs-exact`.
fn name(policy: &str, is_exact: bool) -> String {
    let name = short(policy);
    if is_exact {
        format!("{name}-{EXACT}")
    } else {
        name
    }
}

/// Average turnaround and Jain's index of a cell.
fn turnarounds(
    folder: &Path,
    arch: &str,
    app: &str,
    policy: &str,
    is_exact: bool,
) -> Result<[Line; 2]> {
    let store = Store::new(folder.to_owned());
    let cell = cell(arch, app, policy);
    let variable = format!("{}={EXACT}", ORDER.variable);
    let (outcomes, _) = store.read_made(&cell, &variable, is_exact)?;
    let line = |figure: &str, unit, decimals, of: fn(&Outcome) -> f64| {
        let values: Vec<_> = outcomes.iter().map(of).collect();
        anyhow::Ok(Line {
            app: app.to_owned(),
            scheduler: name(policy, is_exact),
            figure: figure.to_owned(),
            unit,
            spread: Spread::of(&values)
                .with_context(|| format!("{}: {cell}: no boot", folder.display()))?,
            decimals,
        })
    };
    let average = |outcome: &Outcome| outcome.last().avg_turnaround_ns as f64 / 1e6;
    Ok([
        line("average", "ms", 3, average)?,
        line("Jain", "", 6, |outcome| outcome.last().jain)?,
    ])
}

/// A line of `cost.csv`; its other columns do not matter here.
#[derive(Debug, Deserialize)]
struct CostLine {
    arch: String,
    scheduler: String,
    tasks: usize,
    value: f64,
    min: f64,
    mean: f64,
    max: f64,
    phases: usize,
}

/// What a yield costs under this policy, by the number of tasks.
fn costs(folder: &Path, arch: &str, policy: &str, scheduler: &str) -> Result<Vec<Line>> {
    let path: PathBuf = folder.join("cost.csv");
    let place = || path.display().to_string();
    let read = || csv::Reader::from_path(&path)?.deserialize().collect();
    let known: csv::Result<Vec<CostLine>> = read();
    let known = known.with_context(place)?;
    let of_size = |tasks: usize| {
        let is_it = |line: &&CostLine| {
            (&*line.arch, line.scheduler.as_str(), line.tasks) == (arch, &short(policy), tasks)
        };
        let line = known.iter().find(is_it).with_context(|| {
            format!(
                "{}: expected {} on {arch} with {tasks} tasks, found none",
                place(),
                short(policy)
            )
        })?;
        Ok(Line {
            app: COST.to_owned(),
            scheduler: scheduler.to_owned(),
            figure: tasks.to_string(),
            unit: "instructions",
            spread: Spread {
                first: line.value,
                least: line.min,
                mean: line.mean,
                most: line.max,
                quartiles: None,
                count: line.phases,
            },
            decimals: 1,
        })
    };
    SIZES.into_iter().map(of_size).collect()
}

/// A line for each app and figure, a column for each scheduler.
fn text(arch: &str, lines: &[Line]) -> String {
    let mut schedulers: Vec<&str> = Vec::new();
    let mut rows: Vec<(&str, &str, &str)> = Vec::new();
    for line in lines {
        let row = (&*line.app, &*line.figure, line.unit);
        if !schedulers.contains(&&*line.scheduler) {
            schedulers.push(&line.scheduler);
        }
        if !rows.contains(&row) {
            rows.push(row);
        }
    }
    let mut table = grid::plain();
    let titles = ["app", "figure", "unit"].into_iter();
    table.set_header(titles.chain(schedulers.iter().copied()));
    for (app, figure, unit) in rows {
        let cell = |scheduler: &&str| {
            let is_it = |line: &&Line| {
                (&*line.app, &*line.figure, &*line.scheduler) == (app, figure, *scheduler)
            };
            lines.iter().find(is_it).map_or(String::new(), |line| {
                let decimals = line.decimals;
                let value = format!("{:.decimals$}", line.spread.mean);
                format!("{value} {}", deviation(&line.spread))
                    .trim_end()
                    .to_owned()
            })
        };
        let cells = schedulers.iter().map(cell);
        table.add_row(
            [app, figure, unit]
                .map(str::to_owned)
                .into_iter()
                .chain(cells),
        );
    }
    for column in table.column_iter_mut().skip(3) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    format!(
        "{arch}: order by buckets and exact order\n\n{}",
        grid::text(&table, "")
    )
}

/// One line for each value, as in `tables.csv`.
fn csv(arch: &str, lines: &[Line]) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let cell = ["arch", "app", "scheduler", "figure", "unit"];
    out.write_record(cell.iter().chain(&Spread::CSV_COLUMNS))?;
    for line in lines {
        let cell = [arch, &line.app, &line.scheduler, &line.figure, line.unit];
        let fields = line.spread.csv_fields(line.decimals);
        out.write_record(cell.into_iter().chain(fields.iter().map(String::as_str)))?;
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}
