//! `schedlab trace` and `schedlab sched`: each switch of a run, for Perfetto and as a table.
//!
//! console -> [`guest`] -> [`timeline`] -> [`perfetto`] with the messages of [`proto`], or
//! [`sched`], or [`picture`]. Who has switches from elsewhere, as from a simulator, makes a
//! [`Timeline`](timeline::Timeline) of them.

mod guest;
mod perfetto;
mod picture;
mod proto;
mod sched;
mod timeline;

use std::{ffi::OsStr, fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{
    Verdict,
    cli::{SchedArgs, TraceArgs, TreeArgs},
    gantt::{is_svg, write_chart},
    output::{note, print, print_line},
    record::Phase,
    store::write,
};
use timeline::Timeline;

/// The end of the name of a file that Perfetto takes for one of its own.
const ENDING: &str = "perfetto-trace";

pub fn trace(tree: &TreeArgs, args: &TraceArgs) -> Result<Verdict> {
    if args.out.extension() != Some(OsStr::new(ENDING)) {
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
    for lost in timelines.iter().filter_map(sched::lost) {
        note(lost);
    }
    let mut bytes = Vec::new();
    perfetto::write(&timelines, &mut bytes)?;
    let length = bytes.len();
    write(&args.out, bytes)?;
    let stays: usize = timelines.iter().map(|timeline| timeline.stays.len()).sum();
    print_line(format_args!(
        "written: {}, stays on a CPU: {stays}, {length} bytes; open it at https://ui.perfetto.dev",
        args.out.display(),
    ))?;
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
