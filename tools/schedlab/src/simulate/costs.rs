//! Costs, from the committed tables.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sched_sim::costs::YieldCost;

use crate::docs::{Data, Filter};

/// The number of tasks of the program `yield`.
const FEW: u64 = 4;

/// `cost.csv`, by `make cost`, and `tables.csv`, by `make compare`.
pub struct Costs {
    costs: (PathBuf, Data),
    results: (PathBuf, Data),
}

impl Costs {
    pub fn read(costs: &Path, results: &Path) -> Result<Self> {
        let read = |path: &Path| {
            let data = Data::read(path).with_context(|| path.display().to_string())?;
            anyhow::Ok((path.to_owned(), data))
        };
        Ok(Self {
            costs: read(costs)?,
            results: read(results)?,
        })
    }

    /// Returns the cost of a yield under `scheduler`, a row of the table, as `cfs` or `pbg replay`.
    pub fn of_yield(&self, arch: &str, scheduler: &str) -> Result<YieldCost> {
        let (path, data) = &self.costs;
        let filter = filter([("arch", arch), ("scheduler", scheduler)]);
        let points = || {
            let tasks = data.words("tasks", &filter)?;
            let point = |tasks: &String| {
                let mut of = filter.clone();
                of.insert("tasks".to_owned(), tasks.clone());
                let cost = data.figure(&of)?.context("expected a cost, found none")?;
                Ok((tasks.parse()?, cost.spread.mean))
            };
            tasks.iter().map(point).collect::<Result<Vec<_>>>()
        };
        let points = points().with_context(|| path.display().to_string())?;
        Ok(YieldCost::new(points))
    }

    /// Returns the time of the test programs' instrument in a switch from one task to another, in
    /// nanoseconds, in a kernel that preempts or in one that does not. A yield of the program
    /// `yield` takes longer than one of `cost`, which has no instrument. The part that its loop
    /// takes is subtracted: it is the difference under PBG's replay, which does not switch.
    pub fn instrument_ns(&self, arch: &str, preempts: bool) -> Result<u64> {
        let (switching, keeping) = match preempts {
            true => ("rr", "pbg"),
            false => ("fifo", "pbg-coop"),
        };
        let yields = self.of_yield(arch, switching)?.switched_ns(FEW);
        let switched = self.per_yield(arch, switching)? - yields;
        let replay = self.of_yield(arch, &format!("{keeping} replay"))?;
        let kept = self.per_yield(arch, keeping)? - replay.alone_ns();
        Ok((switched - kept).round().max(0.0) as u64)
    }

    /// Returns the time of a switch itself, without an instrument. It is the cost of a yield to
    /// another task less that of a yield of a task alone, under a policy whose pick costs the same
    /// for both.
    pub fn switch_ns(&self, arch: &str, preempts: bool) -> Result<u64> {
        let cost = self.of_yield(arch, if preempts { "rr" } else { "fifo" })?;
        Ok((cost.switched_ns(FEW) - cost.alone_ns()).round().max(0.0) as u64)
    }

    fn per_yield(&self, arch: &str, scheduler: &str) -> Result<f64> {
        let (path, data) = &self.results;
        let of = [
            ("arch", arch),
            ("app", "yield"),
            ("scheduler", scheduler),
            ("figure", "ns/yield"),
        ];
        let cost = || {
            data.figure(&filter(of))?
                .context("expected a cost, found none")
        };
        Ok(cost()
            .with_context(|| path.display().to_string())?
            .spread
            .mean)
    }
}

/// Returns the filter that selects the lines with these words.
pub fn filter<const N: usize>(words: [(&str, &str); N]) -> Filter {
    let owned = words.map(|(column, word)| (column.to_owned(), word.to_owned()));
    owned.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    fn committed() -> Costs {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/results");
        Costs::read(&folder.join("cost.csv"), &folder.join("tables.csv")).unwrap()
    }

    /// The selftest `meter` counts 41, 46 and 44, too.
    #[test]
    fn instrument_is_that_of_the_selftest_and_takes_more_with_preemption() {
        for (arch, selftest) in [("x86_64", 41), ("riscv64", 46), ("aarch64", 44)] {
            let [with, without] =
                [true, false].map(|preempts| committed().instrument_ns(arch, preempts).unwrap());
            assert_eq!(without, selftest, "{arch}");
            assert!(with > without, "{arch}: {with} and {without}");
        }
    }

    #[test]
    fn unknown_row_is_named() {
        let error = committed().of_yield("x86_64", "lottery").unwrap_err();
        let text = format!("{error:#}");
        assert_has(&text, "cost.csv: expected lines with");
        assert_has(&text, "lottery");
    }
}
