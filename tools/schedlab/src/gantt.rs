//! `schedlab gantt`: draws the time of each task of a traced run on a CPU.
//!
//! consoles -> [`record`](crate::record) -> [`chart`] -> [`draw`]

mod chart;
mod draw;

use std::{ffi::OsStr, fs, path::Path};

use anyhow::{Context, Result, bail};
use sched_tests_results::RunLine;

use crate::{
    Verdict,
    cli::{GanttArgs, TreeArgs},
    output::{count, print_line},
    project::{Project, Titles},
    record::{Traced, parse_traced},
    store::write,
};
use chart::Chart;

pub fn gantt(tree: &TreeArgs, args: &GanttArgs) -> Result<Verdict> {
    is_svg(&args.out).context("--out")?;
    let mut all: Vec<Traced> = Vec::new();
    for file in &args.files {
        let traced = read(file)?;
        if let (Some(first), Some((next, _))) = (all.first(), traced.first()) {
            check_title(&first.0.run, &next.run).with_context(|| file.display().to_string())?;
        }
        all.extend(traced);
    }
    if !args.long {
        chart::leave_out_measuring(&mut all);
    }
    let panels = write_chart(tree, &all, &args.out)?;
    let (out, panels) = (args.out.display(), count(panels, "panel"));
    print_line(format_args!("written: {out}; {panels}"))?;
    Ok(Verdict::Good)
}

/// Refuses a file that is no SVG by its name.
pub fn is_svg(out: &Path) -> Result<()> {
    if out.extension() != Some(OsStr::new("svg")) {
        bail!("{}: expected a name that ends in .svg", out.display());
    }
    Ok(())
}

/// Draws these phases, at least one, as SVG. Returns the number of panels.
pub fn write_chart(tree: &TreeArgs, all: &[Traced], out: &Path) -> Result<usize> {
    // A console may lie anywhere: outside of a project the titles of policies are their names.
    let titles = match Project::find(tree) {
        Ok(project) => project.lists()?.titles,
        Err(error) if tree.project.is_some() => return Err(error),
        Err(_) => Titles::new(),
    };
    let chart = Chart::new(all, &titles);
    write(out, draw::draw(&chart)?)?;
    Ok(chart.panels.len())
}

fn read(file: &Path) -> Result<Vec<Traced>> {
    let name = || file.display().to_string();
    let console = fs::read(file).with_context(name)?;
    parse_traced(&String::from_utf8_lossy(&console)).with_context(name)
}

/// Refuses a run of another app or setting than the first run, as a chart has one title.
fn check_title(first: &RunLine, next: &RunLine) -> Result<()> {
    let title = |run: &RunLine| {
        let context = &run.context;
        format!(
            "{} on {}, SMP={} TIMING={} SCALE={}",
            context.app, context.arch, context.smp, run.timing, run.scale
        )
    };
    let (expected, found) = (title(first), title(next));
    if expected != found {
        bail!("expected {expected}, as in the first file, found {found}");
    }
    Ok(())
}
