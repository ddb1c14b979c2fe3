//! The result lines of a console, or of a file of them.

use std::fs;

use anyhow::{Context, Result, anyhow, bail, ensure};
use sched_tests_results::{
    CoopLine, CostLine, Followed, Kind, PbgLine, Refused, ResultLine, RunLine, TaskLine, TraceLine,
    WakeLine,
};

/// All that one run had to say, in its order.
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
    /// Of a console.
    ///
    /// # Errors
    /// A result line cannot be read.
    pub fn of(console: &str) -> Result<Self> {
        let mut results = Self::default();
        for line in console.lines() {
            let Some((kind, json)) = Kind::split(line) else {
                continue;
            };
            results
                .add(kind, json)
                .map_err(|error| anyhow!("{error}: {line}"))?;
        }
        Ok(results)
    }

    fn add(&mut self, kind: Kind, json: &str) -> Result<(), sched_tests_results::ReadError> {
        match kind {
            Kind::Task => self.tasks.push(TaskLine::from_json(json)?),
            Kind::Run => self.runs.push(RunLine::from_json(json)?),
            Kind::Trace => self.traces.push(TraceLine::from_json(json)?),
            Kind::Pbg => self.pbg.push(PbgLine::from_json(json)?),
            Kind::Events => {} // of the tool, and of the trace that it writes
            Kind::Cost => self.costs.push(CostLine::from_json(json)?),
            Kind::Wake => self.wakes.push(WakeLine::from_json(json)?),
            Kind::Coop => self.coops.push(CoopLine::from_json(json)?),
            Kind::Conn => {} // read by the tool that makes its table
        }
        Ok(())
    }

    /// The lines of a file.
    pub fn of_file(path: &str) -> Result<Self> {
        Self::of(&fs::read_to_string(path).with_context(|| path.to_owned())?)
            .with_context(|| path.to_owned())
    }

    /// Exactly these phases have passed, in this order, and with blanks between.
    pub fn passed(&self, phases: &str) -> Result<()> {
        let passed: Vec<_> = self.runs.iter().filter(|run| run.pass).collect();
        let passed: Vec<_> = passed.iter().map(|run| &*run.context.phase).collect();
        let passed = passed.join(" ");
        ensure!(
            passed == phases,
            "expected to have passed `{phases}`, found `{passed}`"
        );
        Ok(())
    }

    /// The only phase of this name.
    pub fn phase(&self, name: &str) -> Result<&RunLine> {
        let mut runs = self.runs.iter().filter(|run| run.context.phase == name);
        match (runs.next(), runs.next()) {
            (Some(run), None) => Ok(run),
            (first, _) => bail!(
                "expected one phase {name}, found {}",
                if first.is_some() { "more" } else { "none" }
            ),
        }
    }

    /// The only thing that is said of a profile: one from there was followed.
    pub fn followed(&self, from: &str) -> Result<&Followed> {
        match &self.pbg[..] {
            [PbgLine::Followed(line)] if line.from == from => Ok(line),
            lines => bail!("expected one profile to be followed, from {from}, found {lines:?}"),
        }
    }

    /// The only thing that is said of a profile: one from there was refused, for this reason.
    pub fn refused(&self, from: &str, why: &str) -> Result<()> {
        ensure!(
            self.pbg.len() == 1,
            "expected one SCHED-PBG line, found {:?}",
            self.pbg
        );
        self.refused_first(from, why).map(drop)
    }

    /// One profile was refused, for this reason, and after it another one was followed.
    pub fn refused_and_replaced(&self, from: &str, why: &str) -> Result<()> {
        self.refused_first(from, why)?;
        ensure!(
            matches!(&self.pbg[..], [PbgLine::Refused(_), PbgLine::Followed(_)]),
            "expected one that was refused and one that was followed, found {:?}",
            self.pbg
        );
        Ok(())
    }

    fn refused_first(&self, from: &str, why: &str) -> Result<&Refused> {
        let refused = self.pbg.iter().find_map(|line| match line {
            PbgLine::Refused(line) => Some(line),
            PbgLine::Followed(_) => None,
        });
        match refused {
            Some(line) if line.from == from && line.refused.contains(why) => Ok(line),
            found => bail!("expected one from {from} to be refused: {why}; found {found:?}"),
        }
    }
}

/// Whether two figures differ by at most one part in `parts`.
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
    fn phases_that_failed_have_not_passed() {
        let console = [&run("measure", true), "noise", &run("replay", false)]
            .map(str::to_owned)
            .join("\n");
        let results = Results::of(&console).unwrap();
        results.passed("measure").unwrap();
        results.passed("measure replay").unwrap_err();
        results.phase("replay").unwrap();
        results.phase("run").unwrap_err();
        let twice = format!("{console}\n{console}");
        Results::of(&twice).unwrap().phase("measure").unwrap_err();
    }

    #[test]
    fn a_line_that_cannot_be_read_is_an_error() {
        let error = Results::of("SCHED-RUN {\"app\":\"a\"}").unwrap_err();
        assert!(error.to_string().contains("lacks"), "{error}");
    }

    #[test]
    fn a_profile_is_followed_or_refused() {
        let followed = Followed {
            from: "disk".into(),
            ..Followed::default()
        };
        let refused = Refused {
            from: "disk".into(),
            refused: "a reason".into(),
            ..Refused::default()
        };
        let followed = PbgLine::Followed(followed).to_line();
        let refused = PbgLine::Refused(refused).to_line();
        let of = |lines: &[&String]| {
            let lines: Vec<_> = lines.iter().map(|line| line.as_str()).collect();
            Results::of(&lines.join("\n")).unwrap()
        };
        of(&[&followed]).followed("disk").unwrap();
        of(&[&followed]).followed("boot").unwrap_err();
        of(&[&followed, &followed]).followed("disk").unwrap_err();
        of(&[&refused]).followed("disk").unwrap_err();
        of(&[&refused]).refused("disk", "reason").unwrap();
        of(&[&refused]).refused("disk", "another").unwrap_err();
        of(&[&refused, &followed])
            .refused("disk", "reason")
            .unwrap_err();
        of(&[&refused, &followed])
            .refused_and_replaced("disk", "reason")
            .unwrap();
        of(&[&refused])
            .refused_and_replaced("disk", "reason")
            .unwrap_err();
        of(&[&followed, &followed])
            .refused_and_replaced("disk", "reason")
            .unwrap_err();
    }

    #[test]
    fn near_is_near() {
        assert!(near(1000, 1001, 1000) && near(1001, 1000, 1000) && near(7, 7, 1000));
        assert!(!near(1000, 1003, 1000) && !near(0, 0, 1000));
    }
}
