//! One cell: boot it, as often as was asked, and judge it.

use sched_tests_results::TickPhase;

use crate::{
    account,
    boot::{Booter, Failure},
    compare::differences,
    project::Cell,
    record::Outcome,
};

/// What came out of a cell: one of each for every boot.
pub struct Good {
    pub lines: Vec<Vec<String>>,
    pub outcomes: Vec<Outcome>,
}

/// What came out of a boot.
struct Boot {
    lines: Vec<String>,
    outcome: Outcome,
}

/// Boots the cell's image at each tick phase, `repeat` times; once, if there are no phases.
/// The first run's lines count.
pub fn run(
    booter: &Booter,
    cell: &Cell,
    tick_phases: &[TickPhase],
    repeat: usize,
) -> Result<Good, Failure> {
    let several = tick_phases.len() > 1;
    let boots: Vec<_> = match tick_phases {
        [] => vec![None],
        phases => phases.iter().copied().map(Some).collect(),
    };
    let (mut lines, mut outcomes) = (Vec::new(), Vec::new());
    for tick_phase in boots {
        let at = match tick_phase {
            Some(phase) if several => format!("tick phase {phase}: "),
            _ => String::new(),
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
    tick_phase: Option<TickPhase>,
    repeat: usize,
) -> Result<Boot, Failure> {
    let mut good: Option<Boot> = None;
    for number in 1..=repeat {
        let console = booter.boot(cell, tick_phase)?;
        let next = match judge(booter, cell, tick_phase, &console) {
            Ok(next) => next,
            Err(why) => return Err(Failure::Bad { why, console }),
        };
        match &good {
            None => good = Some(next),
            Some(first) if booter.setting.is_exact() && first.lines != next.lines => {
                let what = first_difference(&first.lines, &next.lines);
                let why = format!("run {number} differs from run 1: {what}");
                return Err(Failure::Bad { why, console });
            }
            Some(_) => {}
        }
    }
    Ok(good.expect("a cell is run at least once"))
}

/// The figures of a boot that make was content with, whose CPU time has an account.
fn judge(
    booter: &Booter,
    cell: &Cell,
    tick_phase: Option<TickPhase>,
    console: &[String],
) -> Result<Boot, String> {
    let (lines, outcome) = booter.judge(cell, tick_phase, console)?;
    for phase in outcome.phases.iter().map(|phase| &phase.run) {
        account::check(phase).map_err(|why| format!("phase `{}`: {why}", phase.context.phase))?;
    }
    Ok(Boot { lines, outcome })
}

fn first_difference(a: &[String], b: &[String]) -> String {
    let differences = differences(&a.join("\n"), &b.join("\n"));
    differences
        .ok()
        .and_then(|all| all.first().map(ToString::to_string))
        .unwrap_or_else(|| "in its text".into())
}
