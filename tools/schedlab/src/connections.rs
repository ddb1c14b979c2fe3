//! `schedlab connections`: the lines of the app `connections` as one table of coroutines beside threads,
//! and as CSV for `schedlab docs`.
//!
//! consoles -> [`read`] -> text and CSV ([`render`])

mod read;
mod render;

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    Verdict,
    cli::{ConnectionsArgs, TreeArgs},
    distinct::distinct,
    output::{print, print_line},
    sources::{Made, RowKey, made_beside, write_rows},
};

pub fn connections(tree: &TreeArgs, args: &ConnectionsArgs) -> Result<Verdict> {
    let lines = read::consoles(&args.consoles)?;
    print(render::text(&lines))?;
    if let Some(path) = &args.csv {
        let made = made(tree, &args.consoles)?;
        write_rows(path, &render::csv(&lines)?, made)?;
        print_line(format_args!("\nconnections: written: {}", path.display()))?;
    }
    Ok(Verdict::Good)
}

/// Returns the sources of the rows of each guest, which `make cost A=connections` has listed beside its
/// console.
fn made(tree: &TreeArgs, consoles: &[PathBuf]) -> Result<Vec<(RowKey, Option<Made>)>> {
    let mut all = Vec::new();
    for console in consoles {
        let list = console.with_extension("sources");
        let lines = read::consoles(std::slice::from_ref(console))?;
        let keys = lines.iter().map(|line| {
            let context = &line.context;
            RowKey::new(&context.arch, &context.app, &context.sched)
        });
        for key in distinct(keys) {
            let made = made_beside(tree, &list, &key.scheduler)?;
            all.push((key, made));
        }
    }
    Ok(all)
}
