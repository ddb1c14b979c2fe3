//! The figures of the app `cost`: result lines to one figure for each scheduler and
//! number of tasks.

use sched_tests_results::{CostLine, Kind, ResultLine};

use crate::{
    distinct::distinct,
    project::{Cell, short},
    spread::Spread,
};

/// What all boots of a cell measured of one number of tasks in one phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    /// As make calls it: `sched_pbg`.
    pub policy: String,
    /// `run` if the policy has but one.
    pub phase: String,
    pub tasks: usize,
    pub unit: &'static str,
    /// One for each boot; at least one.
    values: Vec<f64>,
}

impl Figure {
    /// As in tables: `rr`, `pbg replay`.
    pub fn scheduler(&self) -> String {
        with_phase(&short(&self.policy), &self.phase)
    }

    /// As people type the policy: `sched_rr`, `sched_pbg replay`.
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

/// In the order in which they were printed, one cell after the other.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures(pub Vec<Figure>);

/// The lines of figures among what a guest printed.
pub fn lines(console: &[String]) -> Vec<String> {
    let is_cost = |line: &&String| matches!(Kind::split(line), Some((Kind::Cost, _)));
    console.iter().filter(is_cost).cloned().collect()
}

impl Figures {
    pub fn joined(cells: Vec<Self>) -> Self {
        Self(cells.into_iter().flat_map(|cell| cell.0).collect())
    }

    /// Takes the figures of one boot of this cell.
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

    /// Each architecture once.
    pub fn arches(&self) -> Vec<&str> {
        distinct(self.0.iter().map(|figure| figure.arch.as_str()))
    }

    /// Each number of tasks once.
    pub fn sizes(&self) -> Vec<usize> {
        distinct(self.0.iter().map(|figure| figure.tasks))
    }

    /// The schedulers of an architecture, and of each its figures, one for each size that
    /// it has.
    pub fn rows(&self, arch: &str) -> Vec<(String, Vec<&Figure>)> {
        let of_arch = || self.0.iter().filter(|figure| figure.arch == arch);
        distinct(of_arch().map(Figure::scheduler))
            .into_iter()
            .map(|scheduler| {
                let own = of_arch().filter(|figure| figure.scheduler() == scheduler);
                let own = own.collect();
                (scheduler, own)
            })
            .collect()
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::project::App;
    use crate::testing::{assert_begins, assert_has};

    pub fn cell(arch: &str, policy: &str) -> Cell {
        Cell {
            arch: arch.into(),
            app: App::in_folder("apps/cost").unwrap(),
            policy: policy.into(),
        }
    }

    fn line(sched: &str, phase: &str, tasks: usize, cost: f64) -> String {
        format!(
            r#"SCHED-COST {{"app":"cost","arch":"x86_64","smp":1,"sched":"{sched}","phase":"{phase}","timing":"icount","scale":1,"tasks":{tasks},"instructions_per_yield":{cost}}}"#
        )
    }

    /// On x86_64, of 4 and 256 tasks.
    pub fn sample(policies: &[(&str, &str, [f64; 2])]) -> Figures {
        let mut all = Vec::new();
        for (policy, phase, costs) in policies {
            let mut figures = Figures::default();
            let lines: Vec<_> = [4, 256]
                .into_iter()
                .zip(costs)
                .map(|(tasks, cost)| line(&short(policy), phase, tasks, *cost))
                .collect();
            figures.add(&cell("x86_64", policy), &lines).unwrap();
            all.push(figures);
        }
        Figures::joined(all)
    }

    #[test]
    fn each_boot_adds_a_value_to_its_figures() {
        let mut figures = Figures::default();
        let cell = cell("x86_64", "sched_pbg");
        for by in [0.0, 1.0] {
            let lines = [
                line("pbg", "idle", 4, 197.0 + by),
                line("pbg", "replay", 4, 139.0 + by),
            ];
            figures.add(&cell, &lines).unwrap();
        }
        let [idle, replay] = &figures.0[..] else {
            panic!("{figures:?}")
        };
        assert_eq!(
            (idle.scheduler().as_str(), idle.spread().mean),
            ("pbg idle", 197.5)
        );
        let spread = replay.spread();
        assert_eq!((spread.first, spread.most, spread.count), (139.0, 140.0, 2));
        assert_eq!(replay.policy_and_phase(), "sched_pbg replay");
    }

    #[test]
    fn what_is_no_figure_of_the_cell_is_refused() {
        let rr = cell("x86_64", "sched_rr");
        let refused = |lines: &[String]| Figures::default().add(&rr, lines).unwrap_err();
        assert_eq!(refused(&[]), "expected a line SCHED-COST {…}, found none");
        assert_eq!(
            refused(&[line("fifo", "run", 4, 140.0)]),
            "expected figures with sched `rr`, found `fifo`"
        );
        let neither = line("rr", "run", 4, 1.0).replace("instructions_per_yield", "other");
        assert_begins(
            refused(&[neither]),
            "expected the cost of a yield, found `{",
        );
        let half = line("rr", "run", 4, 1.0).replace("\"tasks\":4,", "");
        assert_has(refused(&[half]), "SCHED-COST lacks `tasks`");
    }
}
