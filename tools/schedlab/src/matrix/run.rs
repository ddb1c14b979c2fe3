//! One cell: build it, boot it, judge it.

use anyhow::Result;
use sched_tests_results::TickPhase;

use super::{Good, children::Children, variables};
use crate::{
    account,
    compare::differences,
    project::{Cell, Project},
    record::{Outcome, parse, result_lines},
    setting::Setting,
    store::belongs,
};

pub struct Runner<'a> {
    pub project: &'a Project,
    pub children: &'a Children,
    pub setting: &'a Setting,
    pub repeat: usize,
    pub timeout: Option<u64>,
}

/// What came out of a boot.
struct Boot {
    lines: Vec<String>,
    outcome: Outcome,
}

/// Why there are no figures.
pub enum Failure {
    /// Somebody wanted it so.
    Stopped,
    /// In a line, and all that was printed.
    Bad { why: String, console: Vec<String> },
}

impl Runner<'_> {
    pub fn build(&self, cell: &Cell) -> Result<(), Failure> {
        self.make("build", cell, None).map(drop)
    }

    /// Boots the cell's image at each tick phase as often as was asked; once, if there
    /// are none. The first run's lines count.
    pub fn run(&self, cell: &Cell, tick_phases: &[TickPhase]) -> Result<Good, Failure> {
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
            let boot = self
                .boots(cell, tick_phase)
                .map_err(|failure| match failure {
                    Failure::Bad { why, console } => Failure::Bad {
                        why: at + &why,
                        console,
                    },
                    Failure::Stopped => Failure::Stopped,
                })?;
            lines.push(boot.lines);
            outcomes.push(boot.outcome);
        }
        Ok(Good { lines, outcomes })
    }

    /// Boots the cell's image as often as was asked.
    fn boots(&self, cell: &Cell, tick_phase: Option<TickPhase>) -> Result<Boot, Failure> {
        let variable = tick_phase.map(|phase| format!("TICK_PHASE={phase}"));
        let mut good: Option<Boot> = None;
        for number in 1..=self.repeat {
            let console = self.make("justrun", cell, variable.as_ref())?;
            let next = match judge(cell, self.setting, tick_phase, &console) {
                Ok(next) => next,
                Err(why) => return Err(Failure::Bad { why, console }),
            };
            match &good {
                None => good = Some(next),
                Some(first) if self.setting.is_exact() && first.lines != next.lines => {
                    let what = first_difference(&first.lines, &next.lines);
                    let why = format!("run {number} differs from run 1: {what}");
                    return Err(Failure::Bad { why, console });
                }
                Some(_) => {}
            }
        }
        Ok(good.expect("a cell is run at least once"))
    }

    /// What a make target printed, if it succeeded.
    fn make(
        &self,
        target: &str,
        cell: &Cell,
        variable: Option<&String>,
    ) -> Result<Vec<String>, Failure> {
        let mut arguments = vec!["-s".to_owned(), target.to_owned()];
        arguments.extend(variables(cell, self.setting));
        arguments.extend(variable.cloned());
        arguments.extend(self.timeout.map(|seconds| format!("TIMEOUT={seconds}")));
        let (console, status) = match self.children.run(self.project.make(&arguments)) {
            Ok(end) => end,
            Err(error) => {
                return Err(Failure::Bad {
                    why: format!("make {target}: {error:#}"),
                    console: Vec::new(),
                });
            }
        };
        if self.children.stopped() {
            return Err(Failure::Stopped);
        }
        if status.success() {
            return Ok(console);
        }
        // The project's scripts say what went wrong as their last own line.
        let said = console
            .iter()
            .rev()
            .find_map(|line| line.strip_prefix("run: "));
        let why = said.map_or_else(|| format!("make {target}: {status}"), str::to_owned);
        Err(Failure::Bad { why, console })
    }
}

/// The figures of a boot that make was content with.
fn judge(
    cell: &Cell,
    setting: &Setting,
    tick_phase: Option<TickPhase>,
    console: &[String],
) -> Result<Boot, String> {
    let lines = result_lines(console);
    let outcome = parse(&lines.join("\n")).map_err(|e| format!("result line {e}"))?;
    belongs(&outcome, cell).map_err(|e| e.to_string())?;
    let made = setting.made(outcome.last(), tick_phase);
    made.map_err(|e| e.to_string())?;
    for phase in outcome.phases.iter().map(|phase| &phase.run) {
        if !phase.pass {
            return Err(format!("\"pass\":false in phase `{}`", phase.context.phase));
        }
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
