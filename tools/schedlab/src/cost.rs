//! `schedlab cost`: the cost of a yield under every policy, by the number of tasks. With `--gate`
//! it compares the cost with committed figures.
//!
//! cells ([`crate::boot`]) -> [`figures`] -> text, Markdown and CSV ([`render`]), or [`gate`].

mod figures;
mod gate;
mod render;

use std::path::Path;

use anyhow::Result;
use sched_tests_results::TickPhase;

use crate::{
    Verdict,
    boot::{self, Booter, Failure, Message, Step},
    cli::{CostArgs, TreeArgs},
    output::{note, print, print_line},
    project::{App, Cell, Lists, Project},
    setting::Setting,
    sources::{Made, RowKey, write_rows},
    store::write,
};
use figures::Figures;
use gate::Committed;

/// The factor by which the gate counts fewer yields, which is precise enough (docs/cost-gate.md).
const GATE_SCALE: u64 = 8;

/// The number of lines of a failed guest's console that are shown.
const LAST_LINES: usize = 20;

pub fn cost(tree: &TreeArgs, args: &CostArgs) -> Result<Verdict> {
    let project = Project::find(tree)?;
    let mut of = args.boot.setting.clone();
    if args.gate.is_some() {
        of.scale = GATE_SCALE;
    }
    let setting = Setting::new(&of);
    setting.check()?;
    let tick_phases = setting.tick_phases(args.phases)?;
    let mut lists = project.lists()?;
    // The app is not in the lists of the matrix, as it prints no turnaround.
    lists.apps = vec![App::in_folder(&args.app)?];
    let mut wanted = lists.select(&args.boot.select, &[])?;
    let Some(gate) = &args.gate else {
        let (figures, made) = match measure(&project, &setting, args, &wanted, &tick_phases)? {
            Ok(measured) => measured,
            Err(verdict) => return Ok(verdict),
        };
        show(args, &figures, made, &project.root.join("target/cost"))?;
        return Ok(Verdict::Good);
    };
    let path = gate
        .as_deref()
        .unwrap_or(gate::file(args.boot.setting.arceos));
    let mut committed = Committed::read(path, args.update)?;
    let compiler = project.compiler()?;
    wanted.policies = gate::with_stock(&wanted.policies, &lists.policies);
    if args.update {
        committed.check_update(&wanted, &lists.policies, &compiler)?;
    }
    let (figures, _) = match measure(&project, &setting, args, &wanted, &tick_phases)? {
        Ok(measured) => measured,
        Err(verdict) => return Ok(verdict),
    };
    let verdicts = committed.judge(&figures, &wanted.policies, &compiler)?;
    print(gate::text(&verdicts))?;
    if args.update {
        committed.update(&verdicts, &lists);
        write(path, committed.csv()?)?;
        print_line(format_args!("cost-gate: written: {}", path.display()))?;
        return Ok(Verdict::Good);
    }
    let report = gate::report(&verdicts, path);
    print(report.text)?;
    Ok(if report.passed {
        Verdict::Good
    } else {
        Verdict::Bad
    })
}

/// The sources of the rows of each cell.
type MadeRows = Vec<(RowKey, Option<Made>)>;

/// Builds and boots the cells. If one failed or the user pressed Ctrl-C, prints the reason and
/// returns the verdict instead of figures.
fn measure(
    project: &Project,
    setting: &Setting,
    args: &CostArgs,
    wanted: &Lists,
    tick_phases: &[TickPhase],
) -> Result<Result<(Figures, MadeRows), Verdict>> {
    let children = boot::children()?;
    let booter = Booter::new(project, &children, setting, args.boot.timeout);
    let cells: Vec<Cell> = wanted.cells().collect();
    let mut figures: Vec<Option<Figures>> = cells.iter().map(|_| None).collect();
    let mut failed = false;
    booter.all(
        &cells,
        args.boot.jobs.map(Into::into),
        1,
        |cell, _| boots(&booter, cell, tick_phases),
        |number, message| {
            let cell = &cells[number];
            match message {
                Message::Begins(Step::Run(_)) => {
                    note(format_args!("cost: {} on {}", cell.policy, cell.arch));
                }
                Message::Begins(_) | Message::Waits | Message::Ends(Err(Failure::Stopped)) => {}
                Message::Ends(Ok(rounds)) => {
                    let (lines, good) = rounds.into_iter().next().expect("there is one round");
                    let file = format!("target/cost/{}-{}.txt", cell.arch, cell.policy);
                    write(&project.root.join(file), lines.join("\n") + "\n")?;
                    figures[number] = Some(good);
                }
                Message::Ends(Err(Failure::Bad { why, console })) => {
                    failed = true;
                    let first = console.len().saturating_sub(LAST_LINES);
                    for line in &console[first..] {
                        note(format_args!("        | {line}"));
                    }
                    note(format_args!("cost: {cell}: {why}"));
                }
            }
            Ok(())
        },
    )?;
    Ok(if children.stopped() {
        Err(Verdict::Interrupted)
    } else if failed {
        Err(Verdict::Bad)
    } else {
        let made = cells
            .iter()
            .map(|cell| (RowKey::of(cell), booter.made(cell)));
        Ok((
            Figures::joined(figures.into_iter().flatten().collect()),
            made.collect(),
        ))
    })
}

/// Boots a cell's image at each tick phase and returns its result lines and figures.
fn boots(
    booter: &Booter,
    cell: &Cell,
    tick_phases: &[TickPhase],
) -> Result<(Vec<String>, Figures), Failure> {
    let boots: Vec<_> = match tick_phases {
        [] => vec![None],
        phases => phases.iter().copied().map(Some).collect(),
    };
    let mut lines = Vec::new();
    let mut figures = Figures::default();
    for tick_phase in boots {
        let console = booter.boot(cell, tick_phase)?;
        // The app waits for the tick phase before each round, so its SCHED-RUN lines name none.
        let read = booter.judge(cell, None, &console).and_then(|(runs, _)| {
            let costs = figures::lines(&console);
            figures.add(cell, &costs)?;
            Ok((runs, costs))
        });
        match read {
            Ok((runs, costs)) => lines.extend(costs.into_iter().chain(runs)),
            Err(why) => return Err(Failure::Bad { why, console }),
        }
    }
    Ok((lines, figures))
}

/// Prints the tables, and writes them as Markdown and CSV.
fn show(args: &CostArgs, figures: &Figures, made: MadeRows, folder: &Path) -> Result<()> {
    let markdown = folder.join("table.md");
    print(render::text(figures))?;
    write(&markdown, render::markdown(figures))?;
    let csv = args.csv.clone().unwrap_or_else(|| folder.join("cost.csv"));
    write_rows(&csv, &render::csv(figures)?, made)?;
    print_line(format_args!(
        "\ncost: as Markdown in {}, as CSV in {}",
        markdown.display(),
        csv.display()
    ))
}
