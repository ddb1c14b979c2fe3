//! `schedlab bench`: what each call of a scheduler costs on the host, by the number of tasks, in
//! instructions and in misses of a simulated cache; and what a task and a queue take.
//!
//! what Callgrind counted and `sched-memory` printed -> [`counts`] -> text, Markdown and CSV
//! ([`render`]) and a chart ([`draw`])

mod counts;
mod draw;
mod render;

use std::fs;

use anyhow::{Context, Result};

use crate::{
    Verdict,
    cli::BenchArgs,
    output::{print, print_line},
    store::write,
};
use counts::Bench;

pub fn bench(args: &BenchArgs) -> Result<Verdict> {
    let read = |path: &std::path::Path| {
        fs::read_to_string(path).with_context(|| path.display().to_string())
    };
    let mut bench = Bench::default();
    bench
        .add_counts(&read(&args.counts)?)
        .with_context(|| args.counts.display().to_string())?;
    bench
        .add_memory(&read(&args.memory)?)
        .with_context(|| args.memory.display().to_string())?;
    print(render::text(&bench))?;
    write(&args.out.join("bench.csv"), render::csv(&bench)?)?;
    write(&args.out.join("bench.md"), render::markdown(&bench))?;
    // A line needs two points.
    let drawn = bench.sizes().len() > 1;
    if drawn {
        let picture = draw::picture(&bench);
        write(&args.out.join("bench.svg"), picture.svg()?)?;
        write(&args.out.join("bench.png"), picture.png()?)?;
    }
    print_line(format_args!(
        "\nbench: bench.csv{} and bench.md in {}",
        if drawn { ", bench.svg, bench.png" } else { "" },
        args.out.display()
    ))?;
    Ok(Verdict::Good)
}
