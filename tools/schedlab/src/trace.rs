//! `schedlab trace` and `schedlab sched`: each switch of a run, for Perfetto and as a table.
//!
//! console -> [`guest`] -> [`timeline`] -> [`perfetto`] with the messages of [`proto`], or
//! [`sched`], or [`picture`]. `schedlab model-trace` and `model-sched`: recording -> [`model`]
//! -> [`timeline`], and so on. Who has switches from elsewhere makes a
//! [`Timeline`](timeline::Timeline) of them.

mod guest;
mod model;
mod perfetto;
mod picture;
mod proto;
mod sched;
mod timeline;

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use crate::{
    Verdict,
    cli::{ModelArgs, ModelTraceArgs, SchedArgs, TraceArgs, TreeArgs},
    gantt::{is_svg, write_chart},
    output::{note, print, print_line},
    record::Phase,
    store::write,
};
use model::Plays;
use timeline::Timeline;

/// The end of the name of a file that Perfetto takes for one of its own.
const ENDING: &str = "perfetto-trace";

pub fn trace(tree: &TreeArgs, args: &TraceArgs) -> Result<Verdict> {
    if !is_trace(&args.out) {
        bail!(
            "--out {}: expected a name that ends in .{ENDING}",
            args.out.display()
        );
    }
    if let Some(chart) = &args.picture {
        is_svg(chart).context("--picture")?;
    }
    let phases = read(&args.file)?;
    if let Some(chart) = &args.picture {
        let traced: Vec<_> = phases.iter().map(picture::traced).collect();
        write_chart(tree, &traced, chart)?;
    }
    let timelines: Vec<_> = phases.into_iter().map(|(_, timeline)| timeline).collect();
    save(&timelines, &args.out)?;
    Ok(Verdict::Good)
}

fn is_trace(file: &Path) -> bool {
    file.extension() == Some(OsStr::new(ENDING))
}

fn save(timelines: &[Timeline], file: &Path) -> Result<()> {
    for lost in timelines.iter().filter_map(sched::lost) {
        note(lost);
    }
    let mut bytes = Vec::new();
    perfetto::write(timelines, &mut bytes)?;
    let length = bytes.len();
    write(file, bytes)?;
    let stays: usize = timelines.iter().map(|timeline| timeline.stays.len()).sum();
    print_line(format_args!(
        "written: {}, stays on a CPU: {stays}, {length} bytes; open it at https://ui.perfetto.dev",
        file.display(),
    ))
}

pub fn model_trace(tree: &TreeArgs, args: &ModelTraceArgs) -> Result<Verdict> {
    let plays = Plays::new(&args.model)?;
    let runs = &plays.runs;
    let file = |run| -> PathBuf {
        match is_trace(&args.out) {
            true => args.out.clone(),
            false => args.out.join(format!("{}.{ENDING}", plays.file_name(run))),
        }
    };
    if is_trace(&args.out) && runs.len() > 1 {
        bail!(
            "--out {}: one file for {} runs; expected a folder, or one policy on one number of CPUs",
            args.out.display(),
            runs.len()
        );
    }
    if let Some(chart) = &args.picture {
        is_svg(chart).context("--picture")?;
        if runs.iter().any(|run| run.cpus != runs[0].cpus) {
            bail!(
                "--picture {}: several numbers of CPUs; expected one, as a picture has one",
                chart.display()
            );
        }
    }
    let mut traced = Vec::new();
    for &run in runs {
        let played = plays.play(run)?;
        if args.picture.is_some() {
            traced.push(picture::traced(&played));
        }
        let (phase, timeline) = played;
        let file = file(run);
        save(&[timeline], &file)?;
        // Beside it, as a guest's console is.
        write(&file.with_extension("log"), phase.lines())?;
    }
    if let Some(chart) = &args.picture {
        write_chart(tree, &traced, chart)?;
    }
    Ok(Verdict::Good)
}

pub fn model_sched(args: &ModelArgs) -> Result<Verdict> {
    let plays = Plays::new(args)?;
    for &run in &plays.runs {
        let (_, timeline) = plays.play(run)?;
        print(format_args!("{}\n", sched::Report::new(&timeline).text()))?;
    }
    Ok(Verdict::Good)
}

pub fn sched(args: &SchedArgs) -> Result<Verdict> {
    for (_, timeline) in read(&args.file)? {
        print(format_args!("{}\n", sched::Report::new(&timeline).text()))?;
    }
    Ok(Verdict::Good)
}

fn read(file: &Path) -> Result<Vec<(Phase, Timeline)>> {
    let name = || file.display().to_string();
    let console = fs::read(file).with_context(name)?;
    guest::timelines(&String::from_utf8_lossy(&console)).with_context(name)
}
