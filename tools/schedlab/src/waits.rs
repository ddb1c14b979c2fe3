//! `schedlab waits`: the average turnaround of `batch` the more often its jobs wait,
//! under SJF and in PBG's replay, beside the SRPT bound of the replay.
//!
//! A plan must not change its mind at some number of waits: nothing about a program
//! does. So PBG's average is judged from each number of waits to the next in the sweep.
//!
//! results -> [`sweep`] -> text and CSV ([`render`]) and a chart ([`draw`])

mod draw;
mod render;
mod sweep;

use anyhow::Result;

use crate::{
    Verdict,
    cli::WaitsArgs,
    output::{note, print, print_line},
    sources::write_rows,
    store::write,
};
use sweep::{ALLOWED_PERCENT, Sweep};

pub fn waits(args: &WaitsArgs) -> Result<Verdict> {
    let sweep = Sweep::read(&args.folders, &args.arch)?;
    print(render::text(&sweep))?;
    let picture = draw::picture(&sweep);
    let made = sweep::made(&args.folders, &args.arch)?;
    write_rows(
        &args.out.join("waits.csv"),
        &render::csv(&sweep)?,
        false,
        made,
    )?;
    write(&args.out.join("waits.png"), picture.png()?)?;
    write(&args.out.join("waits.svg"), picture.svg()?)?;
    note(format_args!(
        "written: waits.csv, waits.svg and waits.png in {}",
        args.out.display()
    ));
    let steps = sweep.steps();
    let cliffs: Vec<_> = steps.iter().filter(|step| step.is_cliff()).collect();
    for cliff in &cliffs {
        print_line(format_args!(
            "PBG: allowed are {ALLOWED_PERCENT:.2} % a wait, found {cliff}"
        ))?;
    }
    print_line(render::last_line(&steps))?;
    Ok(if cliffs.is_empty() {
        Verdict::Good
    } else {
        Verdict::Bad
    })
}
