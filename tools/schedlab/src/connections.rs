//! `schedlab connections`: what guests of the app `connections` printed, as one table of coroutines beside
//! threads, and as CSV for `schedlab docs`.
//!
//! consoles -> [`read`] -> text and CSV ([`render`])

mod read;
mod render;

use anyhow::Result;

use crate::{Verdict, cli::ConnectionsArgs, output::print, output::print_line, store::write};

pub fn connections(args: &ConnectionsArgs) -> Result<Verdict> {
    let lines = read::consoles(&args.consoles)?;
    print(render::text(&lines))?;
    if let Some(path) = &args.csv {
        write(path, render::csv(&lines)?)?;
        print_line(format_args!("\nconnections: written: {}", path.display()))?;
    }
    Ok(Verdict::Good)
}
