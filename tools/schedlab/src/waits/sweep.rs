//! What was measured, and how far it is from one number of waits to the next.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};
use sched_tests_results::RunLine;

use crate::{
    project::{App, Cell, short},
    record::Outcome,
    setting::WAITS,
    sources::{Made, RowKey},
    spread::Spread,
    store::Store,
};

/// The program whose jobs wait as often as it was built to.
const APP: &str = "batch";

/// What is compared.
const POLICIES: [&str; 2] = ["sched_sjf", "sched_pbg"];

/// How much PBG's average may change with one wait more, either way, in %.
pub const ALLOWED_PERCENT: f64 = 3.0;

/// What one number of waits gave: average turnarounds in ms, over the tick phases.
#[derive(Clone, Debug)]
pub struct Point {
    pub waits: u32,
    pub sjf: Spread,
    pub pbg: Spread,
    /// The least of the replay's tasks in any order, if none of them waited.
    pub bound: Spread,
}

/// What all points have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Common {
    pub arch: String,
    pub smp: u32,
    pub timing: String,
    pub scale: u64,
    pub tick_phases: usize,
    pub sources: String,
}

impl fmt::Display for Common {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            arch,
            smp,
            timing,
            scale,
            tick_phases,
            sources,
        } = self;
        let sources: String = sources.chars().take(8).collect();
        write!(
            f,
            "{arch}, SMP={smp} TIMING={timing} SCALE={scale}, tick phases: {tick_phases}, sources {sources}"
        )
    }
}

/// At least two points, by their number of waits.
#[derive(Clone, Debug)]
pub struct Sweep {
    pub common: Common,
    pub points: Vec<Point>,
}

impl Sweep {
    /// What is in these folders.
    pub fn read(folders: &[PathBuf], arch: &str) -> Result<Self> {
        let mut points = Vec::new();
        let mut first: Option<Common> = None;
        for folder in folders {
            let waits = waits_of(folder)?;
            let cell = |policy| read_cell(folder, arch, policy, waits);
            let [sjf, pbg] = POLICIES.map(cell);
            let (sjf, pbg) = (sjf?, pbg?);
            for (common, _) in [&sjf, &pbg] {
                let expected = first.get_or_insert_with(|| common.clone());
                if expected != common {
                    bail!(
                        "{}: expected results of {expected}, as in {}, found some of {common}",
                        folder.display(),
                        folders[0].display()
                    );
                }
            }
            let spread = |outcomes, phase, of| {
                spread(outcomes, phase, of).with_context(|| folder.display().to_string())
            };
            points.push(Point {
                waits,
                sjf: spread(&sjf.1, "run", |run| run.avg_turnaround_ns)?,
                pbg: spread(&pbg.1, "replay", |run| run.avg_turnaround_ns)?,
                bound: spread(&pbg.1, "replay", |run| run.srpt_bound_ns)?,
            });
        }
        points.sort_by_key(|point| point.waits);
        points.dedup_by_key(|point| point.waits);
        match first {
            Some(common) if points.len() > 1 => Ok(Self { common, points }),
            _ => bail!(
                "expected results of two numbers of waits or more, found {}",
                points.len()
            ),
        }
    }

    pub fn title(&self) -> String {
        format!("The more often a job waits: {APP} on {}", self.common.arch)
    }

    /// `1 CPU, icount time, scale 1`, and the tick phases if there are several.
    pub fn setting(&self) -> String {
        let Common {
            smp,
            timing,
            scale,
            tick_phases,
            ..
        } = &self.common;
        let cpus = if *smp == 1 { "CPU" } else { "CPUs" };
        let phases = match tick_phases {
            1 => String::new(),
            several => format!(", mean over {several} tick phases"),
        };
        format!("{smp} {cpus}, {timing} time, scale {scale}{phases}")
    }

    /// PBG's average from each point to the next.
    pub fn steps(&self) -> Vec<Step> {
        let step = |pair: &[Point]| Step {
            waits: (pair[0].waits, pair[1].waits),
            average_ms: (pair[0].pbg.mean, pair[1].pbg.mean),
        };
        self.points.windows(2).map(step).collect()
    }
}

/// PBG's average at two numbers of waits with none between them in the sweep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub waits: (u32, u32),
    pub average_ms: (f64, f64),
}

impl Step {
    /// Up or down, in % of the lower. Of several waits it is what each would make if
    /// they were alike: where no single one makes more than that, they do not, either.
    pub fn percent_a_wait(&self) -> f64 {
        let (from, to) = self.average_ms;
        let ratio = f64::max(from, to) / f64::min(from, to);
        let waits = self.waits.1 - self.waits.0;
        (ratio.powf(1.0 / f64::from(waits)) - 1.0) * 100.0
    }

    pub fn is_cliff(&self) -> bool {
        self.percent_a_wait() > ALLOWED_PERCENT
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:.2} % a wait, from {} to {} waits ({:.3} and {:.3} ms)",
            self.percent_a_wait(),
            self.waits.0,
            self.waits.1,
            self.average_ms.0,
            self.average_ms.1
        )
    }
}

/// How often jobs wait whose results are there.
fn waits_of(folder: &Path) -> Result<u32> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let number = name.rsplit_once(WAITS.folder).map(|(_, number)| number);
    let waits = number.and_then(|number| number.parse().ok());
    waits.with_context(|| {
        format!(
            "{}: expected a folder whose name ends in {} and a number",
            folder.display(),
            WAITS.folder
        )
    })
}

fn cell(arch: &str, policy: &str) -> Cell {
    Cell {
        arch: arch.to_owned(),
        app: App {
            name: APP.to_owned(),
            folder: APP.to_owned(),
        },
        policy: policy.to_owned(),
    }
}

/// The sources of the rows of each cell.
pub fn made(folders: &[PathBuf], arch: &str) -> Result<Vec<(RowKey, Option<Made>)>> {
    let mut all = Vec::new();
    for folder in folders {
        let waits = waits_of(folder)?.to_string();
        for policy in POLICIES {
            let origin = Store::new(folder.clone()).origin(&cell(arch, policy));
            let key = RowKey::new(arch, APP, &short(policy), &waits);
            all.push((key, origin.and_then(|origin| origin.made)));
        }
    }
    Ok(all)
}

fn read_cell(
    folder: &Path,
    arch: &str,
    policy: &str,
    waits: u32,
) -> Result<(Common, Vec<Outcome>)> {
    let store = Store::new(folder.to_owned());
    let cell = cell(arch, policy);
    let variable = format!("{}={waits}", WAITS.variable);
    let (outcomes, origin) = store.read_made(&cell, &variable, true)?;
    let run = outcomes[0].last();
    let common = Common {
        arch: run.context.arch.clone(),
        smp: run.context.smp,
        timing: run.timing.clone(),
        scale: run.scale,
        tick_phases: outcomes.len(),
        sources: origin.sources,
    };
    Ok((common, outcomes))
}

/// A time of this phase in every boot, in ms.
fn spread(outcomes: &[Outcome], phase: &str, of: fn(&RunLine) -> u64) -> Result<Spread> {
    let in_boot = |outcome: &Outcome| {
        let phases = &outcome.phases;
        let found = phases.iter().find(|one| one.name() == phase);
        let found = found.with_context(|| format!("expected a phase `{phase}`, found none"))?;
        Ok(of(&found.run) as f64 / 1e6)
    };
    let values: Vec<f64> = outcomes.iter().map(in_boot).collect::<Result<_>>()?;
    Spread::of(&values).context("expected a boot, found none")
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Points with these averages of PBG in ms; SJF has twice that, the bound is 700.
    pub fn sweep(averages_ms: &[(u32, f64)]) -> Sweep {
        let one = |ms: f64| Spread::of(&[ms]).unwrap();
        let point = |(waits, ms): &(u32, f64)| Point {
            waits: *waits,
            sjf: one(ms * 2.0),
            pbg: one(*ms),
            bound: one(700.0),
        };
        Sweep {
            common: Common {
                arch: "x86_64".into(),
                smp: 1,
                timing: "icount".into(),
                scale: 1,
                tick_phases: 1,
                sources: "s".into(),
            },
            points: averages_ms.iter().map(point).collect(),
        }
    }

    #[test]
    fn a_step_of_more_than_is_allowed_is_a_cliff_up_or_down() {
        let cliffs = |averages: &[(u32, f64)]| {
            let steps = sweep(averages).steps();
            let cliffs = steps.iter().filter(|step| step.is_cliff());
            cliffs.map(|step| step.waits).collect::<Vec<_>>()
        };
        assert_eq!(cliffs(&[(1, 800.0), (2, 823.9), (3, 800.0)]), []);
        assert_eq!(cliffs(&[(1, 800.0), (2, 824.1), (3, 824.1)]), [(1, 2)]);
        assert_eq!(cliffs(&[(1, 824.1), (2, 800.0)]), [(1, 2)]);
        // As it was before there was a weight, and as it is.
        assert_eq!(cliffs(&[(15, 874.0), (16, 1_043.0)]), [(15, 16)]);
        assert_eq!(cliffs(&[(15, 867.0), (16, 875.0)]), []);
    }

    #[test]
    fn of_several_waits_each_may_make_a_step() {
        let of = |averages: &[(u32, f64)]| sweep(averages).steps()[0];
        // 1.03 to the eighth is 1.2668.
        assert!(!of(&[(24, 100.0), (32, 126.6)]).is_cliff());
        assert!(of(&[(24, 100.0), (32, 126.8)]).is_cliff());
        let step = of(&[(4, 100.0), (6, 121.0)]);
        assert_eq!(
            step.to_string(),
            "10.00 % a wait, from 4 to 6 waits (100.000 and 121.000 ms)"
        );
    }

    #[test]
    fn a_folder_is_named_after_its_waits() {
        let of = |name: &str| waits_of(Path::new(name)).ok();
        assert_eq!(of("target/lab-waits16"), Some(16));
        assert_eq!(of("target/lab-scale10-waits4/"), Some(4));
        for other in ["target/lab", "lab-waits", "lab-waitsx", "lab-waits4/x86_64"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
