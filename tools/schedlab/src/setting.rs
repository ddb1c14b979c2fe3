//! What all cells of a matrix have in common, and what it is called.

use std::{env, path::Path};

use anyhow::{Result, bail};
use sched_tests_results::{RunLine, TickPhase};

use crate::{
    cli::{SettingArgs, Timing},
    record::REAL,
};

/// The variable that says how often the app `yield` yields. It is built into the image.
const YIELDS: &str = "SCHED_YIELDS";
/// How the name of the folder of those results ends, before the value.
const YIELDS_FOLDER: &str = "-yields";

/// Scale, CPUs and clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    scale: u64,
    smp: u32,
    timing: Timing,
    /// The value of [`YIELDS`] in the environment; only a folder of results that is named
    /// after it has it.
    yields: Option<String>,
}

impl Setting {
    pub fn new(args: &SettingArgs) -> Self {
        Self {
            scale: args.scale,
            smp: args.smp,
            timing: args.timing.unwrap_or(usual(args.smp)),
            yields: None,
        }
    }

    /// The setting of results that go there.
    pub fn for_folder(self, results: &Path) -> Self {
        self.with_yields(env::var(YIELDS).ok(), results)
    }

    fn with_yields(mut self, value: Option<String>, results: &Path) -> Self {
        let folder = results.file_name().unwrap_or_default().to_string_lossy();
        self.yields = value.filter(|value| folder.ends_with(&format!("{YIELDS_FOLDER}{value}")));
        self
    }

    /// Whether two runs must agree, and may disturb each other.
    pub fn is_exact(&self) -> bool {
        self.timing == Timing::Icount
    }

    /// Refuses what no guest can be asked for, before any is built.
    pub fn check(&self) -> Result<()> {
        if self.smp > 1 && self.is_exact() {
            bail!(
                "--smp {} --timing icount: counted time has one CPU; allowed are --smp 1 or --timing real",
                self.smp
            );
        }
        Ok(())
    }

    /// The tick phases to boot at; none where time is not counted, as a tick then
    /// comes when the host has it.
    pub fn tick_phases(&self, count: u16) -> Result<Vec<TickPhase>> {
        match (self.is_exact(), count) {
            (true, _) => Ok(TickPhase::evenly(count).collect()),
            (false, 1) => Ok(Vec::new()),
            (false, _) => bail!(
                "--phases {count} --smp {} --timing {}: only counted time starts at a phase of the tick; allowed are --phases 1 or --smp 1 --timing icount",
                self.smp,
                self.timing()
            ),
        }
    }

    /// Whether these figures were made in this setting and at this tick phase: a guest
    /// may have booted with fewer CPUs than it was given.
    pub fn made(&self, run: &RunLine, tick_phase: Option<TickPhase>) -> Result<()> {
        let or_none = |phase: Option<TickPhase>| phase.map_or("none".into(), |p| p.to_string());
        let mut found = vec![
            run.context.smp.to_string(),
            run.scale.to_string(),
            run.timing.clone(),
        ];
        let mut expected = vec![
            self.smp.to_string(),
            self.scale.to_string(),
            self.timing().into(),
        ];
        if tick_phase.is_some() {
            found.push(or_none(run.tick_phase));
            expected.push(or_none(tick_phase));
        }
        for (i, key) in ["smp", "scale", "timing", "tick_phase"]
            .into_iter()
            .take(expected.len())
            .enumerate()
        {
            if expected[i] != found[i] {
                bail!(
                    "expected results with {key} `{}`, found `{}`",
                    expected[i],
                    found[i]
                );
            }
        }
        Ok(())
    }

    const fn timing(&self) -> &'static str {
        match self.timing {
            Timing::Icount => "icount",
            Timing::Real => REAL,
        }
    }

    /// Variables for make.
    pub fn variables(&self) -> Vec<String> {
        let mut variables = vec![
            format!("SMP={}", self.smp),
            format!("SCALE={}", self.scale),
            format!("TIMING={}", self.timing()),
        ];
        let yields = self.yields.iter();
        variables.extend(yields.map(|value| format!("{YIELDS}={value}")));
        variables
    }

    /// Those of them that people type, as make has the others by itself.
    pub fn not_default(&self) -> Vec<String> {
        let usual = Self {
            scale: 1,
            smp: 1,
            timing: usual(self.smp),
            yields: None,
        };
        let mut variables = self.variables();
        variables.retain(|variable| !usual.variables().contains(variable));
        variables
    }

    /// The folder of results under `target/`. Its name has every value that is not the
    /// default, so that a quick try does not overwrite a long night's figures.
    pub fn folder(&self) -> String {
        let mut name = "lab".to_owned();
        if self.scale != 1 {
            name += &format!("-scale{}", self.scale);
        }
        if self.smp != 1 {
            name += &format!("-smp{}", self.smp);
        } else if !self.is_exact() {
            name += "-real";
        }
        name
    }
}

/// One CPU counts instructions unless told otherwise, as in make.
const fn usual(smp: u32) -> Timing {
    if smp == 1 {
        Timing::Icount
    } else {
        Timing::Real
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    fn setting(scale: u64, smp: u32, timing: Option<Timing>) -> Setting {
        Setting::new(&SettingArgs { scale, smp, timing })
    }

    #[test]
    fn several_cpus_mean_real_time() {
        assert!(setting(1, 1, None).is_exact());
        assert!(!setting(1, 2, None).is_exact());
        assert!(!setting(1, 1, Some(Timing::Real)).is_exact());
        assert_eq!(
            setting(5, 2, None).variables(),
            ["SMP=2", "SCALE=5", "TIMING=real"]
        );
    }

    #[test]
    fn what_is_typed_is_what_make_does_not_have_by_itself() {
        let typed = |setting: Setting| setting.not_default().join(" ");
        assert_eq!(typed(setting(1, 1, None)), "");
        assert_eq!(typed(setting(5, 2, Some(Timing::Real))), "SMP=2 SCALE=5");
        assert_eq!(typed(setting(1, 1, Some(Timing::Real))), "TIMING=real");
    }

    #[test]
    fn number_of_yields_is_built_in_where_the_folder_says_so() {
        let of = |folder: &str| {
            let yields = Some("400000".to_owned());
            let setting = setting(1, 1, None).with_yields(yields, Path::new(folder));
            setting.variables().pop()
        };
        for (folder, last) in [
            ("target/lab-yields400000", "SCHED_YIELDS=400000"),
            ("target/lab-scale10-yields400000", "SCHED_YIELDS=400000"),
            ("target/lab", "TIMING=icount"),
            ("target/lab-yields4000000", "TIMING=icount"),
            ("target/lab-yields100000", "TIMING=icount"),
            ("target/lab-yields400000/x86_64", "TIMING=icount"),
            ("..", "TIMING=icount"),
        ] {
            assert_eq!(of(folder).as_deref(), Some(last), "{folder}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert!(setting(1, 4, None).check().is_ok());
        let refused = setting(1, 4, Some(Timing::Icount)).check().unwrap_err();
        assert_has(refused.to_string(), "allowed");
    }

    #[test]
    fn figures_of_another_setting_are_noticed() {
        let text = crate::record::tests::sample("realtime", "rr", &[("run", 100)]);
        let outcome = crate::record::parse(&text).unwrap();
        let run = outcome.last();
        assert!(setting(1, 1, None).made(run, None).is_ok());
        for other in [
            setting(2, 1, None),
            setting(1, 4, None),
            setting(1, 1, Some(Timing::Real)),
        ] {
            assert!(other.made(run, None).is_err(), "{other:?}");
        }
        let text = crate::record::tests::sample_at(125, "realtime", "rr", &[("run", 100)]);
        let outcome = crate::record::parse(&text).unwrap();
        let phases = setting(1, 1, None).tick_phases(8).unwrap();
        let made = |i: usize| setting(1, 1, None).made(outcome.last(), Some(phases[i]));
        assert!(made(1).is_ok());
        let refused = made(2).unwrap_err().to_string();
        assert_eq!(
            refused,
            "expected results with tick_phase `250`, found `125`"
        );
    }

    #[test]
    fn only_counted_time_has_tick_phases() {
        assert_eq!(setting(1, 1, None).tick_phases(8).unwrap().len(), 8);
        assert_eq!(setting(1, 2, None).tick_phases(1).unwrap(), []);
        let refused = setting(1, 2, None).tick_phases(8).unwrap_err().to_string();
        assert_eq!(
            refused,
            "--phases 8 --smp 2 --timing real: only counted time starts at a phase of the tick; allowed are --phases 1 or --smp 1 --timing icount"
        );
    }

    #[test]
    fn the_folder_tells_what_is_not_a_default() {
        assert_eq!(setting(1, 1, None).folder(), "lab");
        assert_eq!(setting(1000, 1, None).folder(), "lab-scale1000");
        assert_eq!(setting(10, 4, None).folder(), "lab-scale10-smp4");
        assert_eq!(setting(1, 1, Some(Timing::Real)).folder(), "lab-real");
    }
}
