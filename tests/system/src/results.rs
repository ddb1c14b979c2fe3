//! The result lines in the output of a guest, or in a file.

use std::fs;

use anyhow::{Context, Result, anyhow, bail, ensure};
use sched_tests_results::{
    CoopLine, CostLine, Followed, Kind, PbgLine, Refused, ResultLine, RunLine, TaskLine, TraceLine,
    WakeLine,
};

/// The result lines of a run, by their kind and in their order.
#[derive(Debug, Default)]
pub struct Results {
    pub tasks: Vec<TaskLine>,
    pub runs: Vec<RunLine>,
    pub traces: Vec<TraceLine>,
    pub costs: Vec<CostLine>,
    pub wakes: Vec<WakeLine>,
    pub coops: Vec<CoopLine>,
    pbg: Vec<PbgLine>,
}

impl Results {
    /// Reads the output of a guest.
    ///
    /// # Errors
    /// A result line cannot be read.
    pub fn of(console: &str) -> Result<Self> {
        let mut results = Self::default();
        for (line, (kind, json)) in (console.lines()).filter_map(|l| Some((l, Kind::split(l)?))) {
            let added = results.add(kind, json);
            added.map_err(|error| anyhow!("{error}: {line}"))?;
        }
        Ok(results)
    }

    fn add(&mut self, kind: Kind, json: &str) -> Result<(), sched_tests_results::ReadError> {
        match kind {
            Kind::Task => self.tasks.push(TaskLine::from_json(json)?),
            Kind::Run => self.runs.push(RunLine::from_json(json)?),
            Kind::Trace => self.traces.push(TraceLine::from_json(json)?),
            Kind::Pbg => self.pbg.push(PbgLine::from_json(json)?),
            Kind::Events => {} // schedlab makes a trace of these
            Kind::Cost => self.costs.push(CostLine::from_json(json)?),
            Kind::Wake => self.wakes.push(WakeLine::from_json(json)?),
            Kind::Coop => self.coops.push(CoopLine::from_json(json)?),
            Kind::Conn => {} // schedlab makes a table of these
        }
        Ok(())
    }

    /// Reads a file of result lines, or the log of a console.
    pub fn of_file(path: &str) -> Result<Self> {
        let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
        Self::of(&text.replace('\r', "")).with_context(|| path.to_owned())
    }

    /// Checks that exactly these phases have passed, in this order. Blanks separate them.
    pub fn passed(&self, phases: &str) -> Result<()> {
        let passed = self.runs.iter().filter(|run| run.pass);
        let passed = Vec::from_iter(passed.map(|run| &*run.context.phase)).join(" ");
        ensure!(
            passed == phases,
            "expected to have passed `{phases}`, found `{passed}`"
        );
        Ok(())
    }

    /// Returns the only phase of this name.
    pub fn phase(&self, name: &str) -> Result<&RunLine> {
        let runs = self.runs.iter().filter(|run| run.context.phase == name);
        match &runs.collect::<Vec<_>>()[..] {
            [run] => Ok(run),
            runs => bail!("expected one phase {name}, found {}", runs.len()),
        }
    }

    /// Returns the only line about a profile, which must say that one `from` there was followed.
    pub fn followed(&self, from: &str) -> Result<&Followed> {
        match &self.pbg[..] {
            [PbgLine::Followed(line)] if line.from == from => Ok(line),
            lines => bail!("expected one profile to be followed, from {from}, found {lines:?}"),
        }
    }

    /// Checks that the only line about a profile refuses one `from` there, for the reason `why`.
    pub fn refused(&self, from: &str, why: &str) -> Result<()> {
        match &self.pbg[..] {
            [PbgLine::Refused(line)] if has_refused(line, from, why) => Ok(()),
            lines => bail!("expected one from {from} to be refused: {why}; found {lines:?}"),
        }
    }

    /// Checks that a profile `from` there was refused for the reason `why`, and that another one was
    /// followed after it.
    pub fn refused_and_replaced(&self, from: &str, why: &str) -> Result<()> {
        match &self.pbg[..] {
            [PbgLine::Refused(line), PbgLine::Followed(_)] if has_refused(line, from, why) => {
                Ok(())
            }
            lines => bail!(
                "expected one from {from} to be refused: {why}, and one to be followed; found \
                 {lines:?}"
            ),
        }
    }
}

/// Returns true if a line refuses a profile `from` there, for the reason `why`.
fn has_refused(line: &Refused, from: &str, why: &str) -> bool {
    line.from == from && line.refused.contains(why)
}

/// Returns true if two figures differ by at most one part in `parts`.
pub fn near(a: u64, b: u64, parts: u64) -> bool {
    a > 0 && a.abs_diff(b).saturating_mul(parts) <= b
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(phase: &str, pass: bool) -> String {
        let mut line = RunLine {
            pass,
            ..RunLine::default()
        };
        line.context.phase = phase.into();
        line.to_line()
    }

    #[test]
    fn failed_phases_have_not_passed() {
        let console = [run("measure", true), "noise".into(), run("replay", false)].join("\n");
        let results = Results::of(&console).unwrap();
        results.passed("measure").unwrap();
        results.passed("measure replay").unwrap_err();
        results.phase("replay").unwrap();
        results.phase("run").unwrap_err();
        let twice = format!("{console}\n{console}");
        Results::of(&twice).unwrap().phase("measure").unwrap_err();
    }

    #[test]
    fn unreadable_line_is_an_error() {
        let error = Results::of("SCHED-RUN {\"app\":\"a\"}").unwrap_err();
        assert!(error.to_string().contains("lacks"), "{error}");
    }

    #[test]
    fn profile_is_followed_or_refused() {
        let from = String::from("disk");
        let followed = PbgLine::Followed(Followed {
            from: from.clone(),
            ..Followed::default()
        });
        let refused = PbgLine::Refused(Refused {
            from,
            refused: "a reason".into(),
            ..Refused::default()
        });
        let (followed, refused) = (followed.to_line(), refused.to_line());
        let (f, r) = (followed.as_str(), refused.as_str());
        // Lines, and whether they report a profile that is followed, refused, and replaced.
        for (lines, expected) in [
            (&[f][..], [true, false, false]),
            (&[r], [false, true, false]),
            (&[r, f], [false, false, true]),
            (&[f, f], [false, false, false]),
        ] {
            let results = Results::of(&lines.join("\n")).unwrap();
            let found = |from, why| {
                [
                    results.followed(from).is_ok(),
                    results.refused(from, why).is_ok(),
                    results.refused_and_replaced(from, why).is_ok(),
                ]
            };
            assert_eq!(found("disk", "reason"), expected, "{lines:?}");
            assert_eq!(found("boot", "reason"), [false; 3], "{lines:?}");
            assert_eq!(found("disk", "another")[1..], [false; 2], "{lines:?}");
        }
    }

    #[test]
    fn near_figures_differ_by_one_part_at_most() {
        assert!(near(1000, 1001, 1000) && near(1001, 1000, 1000) && near(7, 7, 1000));
        assert!(!near(1000, 1003, 1000) && !near(0, 0, 1000));
    }
}
