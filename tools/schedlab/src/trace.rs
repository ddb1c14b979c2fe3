//! `schedlab trace`: each switch of a run, for Perfetto and as a table.
//!
//! A console by way of [`guest`], or a recording that is played by way of [`model`], becomes
//! [`timeline`]s. They become a file in [`perfetto`] with the messages of [`proto`], a table in
//! [`sched`], or a chart in [`picture`]. Another source of switches is one more [`Input`].

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
    cli::{TraceArgs, TreeArgs},
    gantt::{is_svg, write_chart},
    output::{note, print, print_line},
    record::Phase,
    store::write,
};
use model::Plays;
use timeline::Timeline;

/// The extension of the files that Perfetto reads.
const ENDING: &str = "perfetto-trace";

/// The first byte of a profile, which no console begins with.
const PROFILE: u8 = 0x89;

/// Runs whose switches are known, each of one phase or more.
enum Input {
    /// The boot of a guest: a name for its file, and its phases.
    Console(String, Vec<(Phase, Timeline)>),
    /// A recording, which is played run by run.
    Recording(Box<Plays>),
}

impl Input {
    fn read(args: &TraceArgs) -> Result<Self> {
        let file = &args.played.source.recording;
        let name = || file.display().to_string();
        let bytes = fs::read(file).with_context(name)?;
        if bytes.first() == Some(&PROFILE) {
            return Ok(Self::Recording(Box::new(Plays::new(args)?)));
        }
        if !args.played.policy.is_empty() || args.played.cpus() != [1] {
            bail!(
                "{}: expected a recording with --policy or --cpus, found a console",
                name()
            );
        }
        let phases = guest::timelines(&String::from_utf8_lossy(&bytes)).with_context(name)?;
        let stem = file.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Self::Console(stem.into_owned(), phases))
    }

    /// Returns the name of each run's file, without the extension.
    fn names(&self) -> Vec<String> {
        match self {
            Self::Console(name, _) => vec![name.clone()],
            Self::Recording(plays) => {
                let runs = plays.runs.iter();
                runs.map(|&run| plays.file_name(run)).collect()
            }
        }
    }

    /// Returns the phases of a run.
    fn phases(&mut self, run: usize) -> Result<Vec<(Phase, Timeline)>> {
        match self {
            Self::Console(_, phases) => Ok(std::mem::take(phases)),
            Self::Recording(plays) => Ok(vec![plays.play(plays.runs[run])?]),
        }
    }
}

pub fn trace(tree: &TreeArgs, args: &TraceArgs) -> Result<Verdict> {
    if let Some(chart) = &args.picture {
        is_svg(chart).context("--picture")?;
        if args.played.cpus().len() > 1 {
            bail!(
                "--picture {}: several numbers of CPUs; expected one, as a picture has one",
                chart.display()
            );
        }
    }
    let mut input = Input::read(args)?;
    let files = files(&input.names(), &args.out)?;
    let mut traced = Vec::new();
    for (run, file) in files.iter().enumerate() {
        let phases = input.phases(run)?;
        if args.picture.is_some() {
            traced.extend(phases.iter().map(picture::traced));
        }
        let lines: String = phases.iter().map(|(phase, _)| phase.lines()).collect();
        let timelines: Vec<_> = phases.into_iter().map(|(_, timeline)| timeline).collect();
        for timeline in &timelines {
            print(format_args!("{}\n", sched::Report::new(timeline).text()))?;
        }
        save(&timelines, file)?;
        if let Input::Recording(_) = input {
            // A guest's file has its console beside it as well.
            write(&file.with_extension("log"), lines)?;
        }
    }
    if let Some(chart) = &args.picture {
        write_chart(tree, &traced, chart)?;
    }
    Ok(Verdict::Good)
}

/// Returns the files of runs with these names: in the folder `out`, or `out` itself for one run.
fn files(names: &[String], out: &Path) -> Result<Vec<PathBuf>> {
    if out.extension() != Some(OsStr::new(ENDING)) {
        let files = names
            .iter()
            .map(|name| out.join(format!("{name}.{ENDING}")));
        return Ok(files.collect());
    }
    if names.len() > 1 {
        bail!(
            "--out {}: one file for {} runs; expected a folder, or one policy on one number of CPUs",
            out.display(),
            names.len()
        );
    }
    Ok(vec![out.to_owned()])
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
