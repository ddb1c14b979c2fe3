//! `schedlab coop-cost`: the cost of coroutines beside threads, under every policy.
//!
//! cells ([`crate::boot`]) -> the `SCHED-COOP` lines of each -> a table for each architecture, and CSV
//! for `schedlab docs`. The guest judges its figures itself. A missed limit makes this command fail
//! after it has printed all figures.

use anyhow::Result;
use sched_tests_results::{CoopLine, Kind, ResultLine};

use crate::{
    Verdict,
    boot::{self, Booter, Failure, Message, Step},
    cli::{CoopCostArgs, TreeArgs},
    distinct::distinct,
    grid,
    output::{note, print, print_line},
    project::{App, Cell, Project},
    setting::Setting,
    sources::{RowKey, write_rows},
};

/// The number of lines that are shown of a failed guest's console.
const LAST_LINES: usize = 20;

/// A column: its title, the figure, among how many tasks if that matters, and the number of it.
const COLUMNS: [(&str, &str, Option<usize>, Of); 13] = [
    ("switch", "switch", Some(4), Of::Coroutines),
    ("100,000", "switch", Some(100_000), Of::Coroutines),
    ("/thread's", "switch", Some(4), Of::Ratio),
    ("spread", "spread", None, Of::Coroutines),
    ("spawn", "spawn", None, Of::Coroutines),
    ("/thread's", "spawn", None, Of::Ratio),
    ("250 at once", "batch", None, Of::Coroutines),
    ("/threads'", "batch", None, Of::Ratio),
    ("wake", "wake", None, Of::Coroutines),
    ("/thread's", "wake", None, Of::Ratio),
    ("bytes", "memory", None, Of::Coroutines),
    ("connections", "connections", None, Of::Coroutines),
    ("/threads'", "connections", None, Of::Ratio),
];

/// A number of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Coroutines,
    Threads,
    Ratio,
}

impl Of {
    const ALL: [(Self, &str); 3] = [
        (Self::Coroutines, "coroutines"),
        (Self::Threads, "threads"),
        (Self::Ratio, "ratio"),
    ];

    /// Returns the number as text, with the decimals that its unit has.
    fn text(self, line: &CoopLine) -> Option<String> {
        match self {
            Self::Coroutines => Some(format!("{:.1$}", line.coroutines, decimals(&line.unit))),
            Self::Threads => Some(format!("{:.1$}", line.threads?, decimals(&line.unit))),
            Self::Ratio => Some(format!("{:.3}", line.ratio?)),
        }
    }
}

fn decimals(unit: &str) -> usize {
    match unit {
        "connections" => 0,
        "ratio" => 3,
        _ => 1,
    }
}

/// The app that measures.
const APP: &str = "apps/coop/coop-cost";

pub fn coop_cost(tree: &TreeArgs, args: &CoopCostArgs) -> Result<Verdict> {
    let project = Project::find(tree)?;
    let setting = Setting::new(&args.boot.setting);
    setting.check()?;
    let mut lists = project.lists()?;
    // The matrix has no row for it: it prints no turnaround.
    lists.apps = vec![App::in_folder(APP)?];
    let wanted = lists.select(&args.boot.select, &[])?;
    let children = boot::children()?;
    let booter = Booter::new(&project, &children, &setting, args.boot.timeout);
    let cells: Vec<Cell> = wanted.cells().collect();
    let mut found: Vec<Vec<CoopLine>> = cells.iter().map(|_| Vec::new()).collect();
    let mut failed = false;
    booter.all(
        &cells,
        args.boot.jobs.map(Into::into),
        1,
        |cell, _| booter.boot(cell, None),
        |number, message| {
            let cell = &cells[number];
            let (console, why) = match message {
                Message::Begins(Step::Run(_)) => {
                    note(format_args!("coop-cost: {} on {}", cell.policy, cell.arch));
                    return Ok(());
                }
                Message::Begins(_) | Message::Waits | Message::Ends(Err(Failure::Stopped)) => {
                    return Ok(());
                }
                Message::Ends(Ok(rounds)) => {
                    (rounds.into_iter().next().expect("there is one round"), None)
                }
                Message::Ends(Err(Failure::Bad { why, console })) => (console, Some(why)),
            };
            let lines = lines(&console)?;
            if let Some(why) = why {
                failed = true;
                // A guest that has only missed limits names them below.
                let shown = if lines.is_empty() { LAST_LINES } else { 0 };
                for line in &console[console.len().saturating_sub(shown)..] {
                    note(format_args!("        | {line}"));
                }
                note(format_args!("coop-cost: {cell}: {why}"));
            }
            found[number] = lines;
            Ok(())
        },
    )?;
    if children.stopped() {
        return Ok(Verdict::Interrupted);
    }
    let has_lines: Vec<bool> = found.iter().map(|lines| !lines.is_empty()).collect();
    let lines: Vec<CoopLine> = found.into_iter().flatten().collect();
    print(tables(&lines))?;
    for line in lines.iter().filter(|line| !line.pass) {
        print_line(missed(line))?;
    }
    let csv = (args.csv.clone()).unwrap_or_else(|| project.root.join("target/coop-cost.csv"));
    // A cell that failed has no rows.
    let good = cells.iter().zip(&has_lines).filter(|(_, has)| **has);
    let made = good.map(|(cell, _)| (RowKey::of(cell), booter.made(cell)));
    write_rows(&csv, &as_csv(&lines)?, made)?;
    print_line(format_args!("coop-cost: as CSV in {}", csv.display()))?;
    Ok(match failed || lines.is_empty() {
        true => Verdict::Bad,
        false => Verdict::Good,
    })
}

/// Returns the figures of a console.
fn lines(console: &[String]) -> Result<Vec<CoopLine>> {
    let of_kind = |line: &String| match Kind::split(line) {
        Some((Kind::Coop, json)) => Some(CoopLine::from_json(json)),
        _ => None,
    };
    let lines: Result<_, _> = console.iter().filter_map(of_kind).collect();
    Ok(lines?)
}

fn missed(line: &CoopLine) -> String {
    format!(
        "coop-cost: missed: {} among {} under {} on {}: {}, limit {}",
        line.figure,
        line.among,
        line.context.sched,
        line.context.arch,
        line.ratio.unwrap_or(line.coroutines),
        line.limit
            .map_or_else(|| "-".to_owned(), |limit| limit.to_string()),
    )
}

/// Returns a table for each architecture with a line for each scheduler.
fn tables(lines: &[CoopLine]) -> String {
    let mut tables = String::new();
    for arch in distinct(lines.iter().map(|line| line.context.arch.as_str())) {
        let here: Vec<_> = lines.iter().filter(|l| l.context.arch == arch).collect();
        let unit = here.iter().find(|line| line.figure == "switch");
        let titles: Vec<_> = ["scheduler".to_owned()]
            .into_iter()
            .chain(COLUMNS.map(|(title, ..)| format!(">{title}")))
            .collect();
        let row = |sched: &str| {
            let cell = |(_, figure, among, of): (&str, &str, Option<usize>, Of)| {
                let mut all = here.iter().filter(|line| line.context.sched == sched);
                let is_it = |line: &&&CoopLine| {
                    line.figure == figure && among.is_none_or(|among| line.among == among)
                };
                all.find(is_it)
                    .and_then(|line| of.text(line))
                    .unwrap_or_else(|| "-".into())
            };
            let cells = COLUMNS.map(cell).into_iter();
            std::iter::once(sched.to_owned())
                .chain(cells)
                .collect::<Vec<_>>()
        };
        let scheds = distinct(here.iter().map(|line| line.context.sched.as_str()));
        let table = grid::text(&titles, scheds.into_iter().map(row), grid::WIDE);
        let unit = unit.map_or("", |line| &line.unit);
        tables += &format!("{arch}: coroutines, {unit}\n\n{table}\n");
    }
    tables
}

/// Returns one line for each number.
fn as_csv(lines: &[CoopLine]) -> Result<String> {
    let row = |line: &CoopLine| {
        // The figure is found without it, as it has one number only.
        let among = match line.figure.as_str() {
            "connections" | "left" => String::new(),
            _ => line.among.to_string(),
        };
        let cell = [
            line.context.arch.clone(),
            line.context.sched.clone(),
            line.figure.clone(),
            among,
        ];
        let numbers = Of::ALL.map(|(of, name)| Some([name.to_owned(), of.text(line)?]));
        let numbers = numbers.into_iter().flatten();
        let rows = numbers.map(|number| [&cell[..], &number].concat());
        rows.collect::<Vec<_>>()
    };
    let titles = ["arch", "scheduler", "figure", "among", "of", "value"];
    grid::csv(titles, lines.iter().flat_map(row))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_golden;

    const SWITCH: &str = r#"SCHED-COOP {"app":"coop-cost","arch":"x86_64","smp":1,"sched":"stock-fifo","phase":"run","timing":"icount","scale":1,"figure":"switch","among":4,"unit":"instructions","coroutines":68.86,"threads":160.01,"ratio":0.43,"limit":0.55,"pass":true}"#;
    const LEFT: &str = r#"SCHED-COOP {"app":"coop-cost","arch":"x86_64","smp":1,"sched":"stock-fifo","phase":"run","timing":"icount","scale":1,"figure":"left","among":180036,"unit":"bytes","coroutines":5000.0,"limit":4096.0,"pass":false}"#;

    #[test]
    fn figures_become_a_table_and_csv_and_misses_are_named() {
        let other = SWITCH.replace("stock-fifo", "rr").replace("68.86", "70.0");
        let console = ["booting", SWITCH, "SCHED-RUN {}", LEFT, &other].map(String::from);
        let lines = lines(&console).unwrap();
        assert_eq!(lines.len(), 3);
        let missed = lines.iter().filter(|line| !line.pass).map(missed);
        let missed: Vec<_> = missed.collect();
        let csv = as_csv(&lines).unwrap();
        assert_golden(
            "coop-cost.txt",
            format!("{}{}\n\n{csv}", tables(&lines), missed.join("\n")),
        );
    }

    #[test]
    fn garbled_line_is_refused() {
        assert!(lines(&[SWITCH.replace("\"smp\":1,", "")]).is_err());
    }
}
