//! `schedlab bench`: what each call of a scheduler costs on the host, by the number of tasks, in
//! instructions and in misses of a simulated cache; and what a task and a queue take.
//!
//! what Callgrind counted and `sched-memory` printed -> [`counts`] -> text, Markdown and CSV
//! ([`render`]) and a chart ([`draw`])

mod counts;
mod draw;
mod render;

use std::{fs, path::Path};

use anyhow::{Context, Result};

use crate::{
    Verdict,
    cli::{BenchArgs, TreeArgs},
    output::{print, print_line},
    sources::{made_beside, write_rows_of_one},
    store::write,
};
use counts::Bench;

pub fn bench(tree: &TreeArgs, args: &BenchArgs) -> Result<Verdict> {
    let mut bench = Bench::default();
    bench
        .add_counts(&read(&args.counts)?)
        .with_context(|| args.counts.display().to_string())?;
    bench
        .add_memory(&read(&args.memory)?)
        .with_context(|| args.memory.display().to_string())?;
    print(render::text(&bench))?;
    let picture = draw::picture(&bench);
    let made = made_beside(tree, &args.counts.with_file_name("sources"))?;
    write_rows_of_one(&args.out.join("bench.csv"), &render::csv(&bench)?, made)?;
    write(&args.out.join("bench.svg"), picture.svg()?)?;
    // What no page needs is not among the pages' files.
    let beside = args.counts.with_file_name("bench");
    write(&beside.with_extension("md"), render::markdown(&bench))?;
    write(&beside.with_extension("png"), picture.png()?)?;
    print_line(format_args!(
        "\nbench: bench.csv and bench.svg in {}; also {1}.md and {1}.png",
        args.out.display(),
        beside.display()
    ))?;
    Ok(Verdict::Good)
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}
