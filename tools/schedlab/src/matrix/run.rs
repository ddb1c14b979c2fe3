//! Boots a cell as often as was asked, and judges the results.

use sched_tests_results::TickPhase;

use crate::{
    account,
    boot::{Booter, Failure},
    compare::differences,
    project::Cell,
    record::Outcome,
};

/// The results of a cell: one of each for every boot.
pub struct Good {
    pub lines: Vec<Vec<String>>,
    pub outcomes: Vec<Outcome>,
}

/// The results of a boot.
struct Boot {
    lines: Vec<String>,
    outcome: Outcome,
    /// All that was printed.
    console: Vec<String>,
}

impl Good {
    /// Joins the boots of all rounds in their order.
    pub fn joined(rounds: Vec<Self>) -> Self {
        let (mut lines, mut outcomes) = (Vec::new(), Vec::new());
        for round in rounds {
            lines.extend(round.lines);
            outcomes.extend(round.outcomes);
        }
        Self { lines, outcomes }
    }
}

/// Boots the cell's image in real time, once more after the boots `before`, of `of` in all. Their
/// figures may differ, but not their phases, as a row of a table is a phase.
pub fn real(booter: &Booter, cell: &Cell, before: &[Good], of: usize) -> Result<Good, Failure> {
    let at = match of {
        1 => String::new(),
        _ => format!("boot {} of {of}: ", before.len() + 1),
    };
    let boot = boot_once(booter, cell, None).map_err(|failure| failure.at(&at))?;
    if let Some(first) = before.first().and_then(|good| good.outcomes.first()) {
        let (expected, found) = (first.phase_names(), boot.outcome.phase_names());
        if expected != found {
            let why = format!("{at}expected phases `{expected}`, found `{found}`");
            let console = boot.console;
            return Err(Failure::Bad { why, console });
        }
    }
    Ok(Good {
        lines: vec![boot.lines],
        outcomes: vec![boot.outcome],
    })
}

/// Boots the cell's image in counted time, `repeat` times at each tick phase. These must agree.
pub fn counted(
    booter: &Booter,
    cell: &Cell,
    tick_phases: &[TickPhase],
    repeat: usize,
) -> Result<Good, Failure> {
    let several = tick_phases.len() > 1;
    let (mut lines, mut outcomes) = (Vec::new(), Vec::new());
    for &tick_phase in tick_phases {
        let at = match several {
            true => format!("tick phase {tick_phase}: "),
            false => String::new(),
        };
        let boot = boots_at(booter, cell, tick_phase, repeat);
        let boot = boot.map_err(|failure| failure.at(&at))?;
        lines.push(boot.lines);
        outcomes.push(boot.outcome);
    }
    Ok(Good { lines, outcomes })
}

/// Boots the cell's image `repeat` times at one tick phase.
fn boots_at(
    booter: &Booter,
    cell: &Cell,
    tick_phase: TickPhase,
    repeat: usize,
) -> Result<Boot, Failure> {
    let first = boot_once(booter, cell, Some(tick_phase))?;
    for number in 2..=repeat {
        let next = boot_once(booter, cell, Some(tick_phase))?;
        if first.lines != next.lines {
            let what = first_difference(&first.lines, &next.lines);
            let why = format!("run {number} differs from run 1: {what}");
            let console = next.console;
            return Err(Failure::Bad { why, console });
        }
    }
    Ok(first)
}

fn boot_once(booter: &Booter, cell: &Cell, tick_phase: Option<TickPhase>) -> Result<Boot, Failure> {
    let console = booter.boot(cell, tick_phase)?;
    match judge(booter, cell, tick_phase, &console) {
        Ok((lines, outcome)) => Ok(Boot {
            lines,
            outcome,
            console,
        }),
        Err(why) => Err(Failure::Bad { why, console }),
    }
}

/// Returns the figures of a boot, after a check of its lines and of its account of the CPU time.
fn judge(
    booter: &Booter,
    cell: &Cell,
    tick_phase: Option<TickPhase>,
    console: &[String],
) -> Result<(Vec<String>, Outcome), String> {
    let (lines, outcome) = booter.judge(cell, tick_phase, console)?;
    for phase in outcome.phases.iter().map(|phase| &phase.run) {
        account::check(phase).map_err(|why| format!("phase `{}`: {why}", phase.context.phase))?;
    }
    Ok((lines, outcome))
}

fn first_difference(a: &[String], b: &[String]) -> String {
    let differences = differences(&a.join("\n"), &b.join("\n"));
    let first = differences.ok().and_then(|all| all.into_iter().next());
    first.unwrap_or_else(|| "in its text".into())
}
