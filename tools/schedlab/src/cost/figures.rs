//! The figures of the app `cost`: one for each scheduler and number of tasks.

use sched_tests_results::{CostLine, Kind, ResultLine};

use crate::{
    distinct::{distinct, entry},
    project::{Cell, short},
    spread::Spread,
};

/// The measurements of all boots of a cell for one number of tasks in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    /// The policy's name in make: `sched_pbg`.
    pub policy: String,
    /// The phase; `run` if the policy has only one.
    pub phase: String,
    pub tasks: usize,
    pub unit: &'static str,
    /// The value of each boot; at least one.
    values: Vec<f64>,
}

impl Figure {
    /// Returns the name in tables: `rr`, `pbg replay`.
    pub fn scheduler(&self) -> String {
        with_phase(&short(&self.policy), &self.phase)
    }

    /// Returns the policy's name in make and the phase: `sched_rr`, `sched_pbg replay`.
    pub fn policy_and_phase(&self) -> String {
        with_phase(&self.policy, &self.phase)
    }

    pub fn spread(&self) -> Spread {
        Spread::of(&self.values).expect("a figure has a value")
    }
}

fn with_phase(name: &str, phase: &str) -> String {
    match phase {
        "run" => name.to_owned(),
        phase => format!("{name} {phase}"),
    }
}

/// The figures of one cell after the other, in the order of the result lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(pub Vec<Figure>);

/// Returns the lines of figures in what a guest printed.
pub fn lines(console: &[String]) -> Vec<String> {
    let is_cost = |line: &&String| matches!(Kind::split(line), Some((Kind::Cost, _)));
    console.iter().filter(is_cost).cloned().collect()
}

impl Figures {
    pub fn joined(cells: Vec<Self>) -> Self {
        Self(cells.into_iter().flat_map(|cell| cell.0).collect())
    }

    /// Adds the figures of one boot of this cell.
    pub fn add(&mut self, cell: &Cell, lines: &[String]) -> Result<(), String> {
        if lines.is_empty() {
            return Err("expected a line SCHED-COST {…}, found none".into());
        }
        for line in lines {
            let json = Kind::split(line).map_or(&**line, |(_, json)| json);
            let line = CostLine::from_json(json).map_err(|e| format!("{e}, found `{json}`"))?;
            let (unit, value) = match (line.instructions_per_yield, line.ns_per_yield) {
                (Some(value), None) => ("instructions", value),
                (None, Some(value)) => ("ns", value),
                _ => return Err(format!("expected the cost of a yield, found `{json}`")),
            };
            for (key, expected, found) in [
                ("arch", &cell.arch, &line.context.arch),
                ("sched", &short(&cell.policy), &line.context.sched),
            ] {
                if expected != found {
                    return Err(format!(
                        "expected figures with {key} `{expected}`, found `{found}`"
                    ));
                }
            }
            let known = self
                .0
                .iter_mut()
                .find(|figure| figure.phase == line.context.phase && figure.tasks == line.tasks);
            match known {
                Some(figure) => figure.values.push(value),
                None => self.0.push(Figure {
                    arch: line.context.arch,
                    smp: line.context.smp,
                    timing: line.timing,
                    scale: line.scale,
                    policy: cell.policy.clone(),
                    phase: line.context.phase,
                    tasks: line.tasks,
                    unit,
                    values: vec![value],
                }),
            }
        }
        Ok(())
    }

    /// Returns each architecture once.
    pub fn arches(&self) -> Vec<&str> {
        distinct(self.0.iter().map(|figure| figure.arch.as_str()))
    }

    /// Returns each number of tasks once.
    pub fn sizes(&self) -> Vec<usize> {
        distinct(self.0.iter().map(|figure| figure.tasks))
    }

    /// Returns the schedulers of an architecture, each with its figures.
    pub fn rows(&self, arch: &str) -> Vec<(String, Vec<&Figure>)> {
        let of_arch = self.0.iter().filter(|figure| figure.arch == arch);
        let mut rows: Vec<(String, Vec<&Figure>)> = Vec::new();
        for figure in of_arch {
            entry(&mut rows, figure.scheduler()).push(figure);
        }
        rows
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::testing::assert_has;

    fn line(sched: &str, phase: &str, tasks: usize, cost: f64) -> String {
        format!(
            r#"SCHED-COST {{"app":"cost","arch":"x86_64","smp":1,"sched":"{sched}","phase":"{phase}","timing":"icount","scale":1,"tasks":{tasks},"instructions_per_yield":{cost}}}"#
        )
    }

    /// Returns figures on x86_64: policy, phase and the costs with 4 and 256 tasks.
    pub fn sample(policies: &[(&str, &str, [f64; 2])]) -> Figures {
        let mut all = Vec::new();
        for (policy, phase, [few, many]) in policies {
            let mut figures = Figures::default();
            let line = |tasks, cost| line(&short(policy), phase, tasks, cost);
            let lines = [line(4, *few), line(256, *many)];
            figures
                .add(&Cell::new("x86_64", "cost", policy), &lines)
                .unwrap();
            all.push(figures);
        }
        Figures::joined(all)
    }

    #[test]
    fn each_boot_adds_a_value_to_its_figures() {
        let mut figures = Figures::default();
        let cell = Cell::new("x86_64", "cost", "sched_pbg");
        for by in [0.0, 1.0] {
            let [idle, replay] = [("idle", 197.0), ("replay", 139.0)]
                .map(|(phase, cost)| line("pbg", phase, 4, cost + by));
            figures.add(&cell, &[idle, replay]).unwrap();
        }
        let [idle, replay] = &figures.0[..] else {
            panic!("{figures:?}")
        };
        assert_eq!(
            (&*idle.scheduler(), idle.spread().mean),
            ("pbg idle", 197.5)
        );
        let spread = replay.spread();
        assert_eq!((spread.first, spread.most, spread.count), (139.0, 140.0, 2));
        assert_eq!(replay.policy_and_phase(), "sched_pbg replay");
    }

    #[test]
    fn line_without_a_figure_of_the_cell_is_refused() {
        let good = line("rr", "run", 4, 140.0);
        for (lines, why) in [
            (vec![], "expected a line SCHED-COST {…}, found none"),
            (
                vec![line("fifo", "run", 4, 140.0)],
                "expected figures with sched `rr`, found `fifo`",
            ),
            (
                vec![good.replace("instructions_per_yield", "other")],
                "expected the cost of a yield, found `{",
            ),
            (
                vec![good.replace("\"tasks\":4,", "")],
                "SCHED-COST lacks `tasks`",
            ),
        ] {
            let cell = Cell::new("x86_64", "cost", "sched_rr");
            assert_has(Figures::default().add(&cell, &lines).unwrap_err(), why);
        }
    }
}
