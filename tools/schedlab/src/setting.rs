//! The setting that all cells of a matrix share, and its name.

use std::num::NonZeroU64;

use anyhow::{Result, bail};
use sched_tests_results::{RunLine, TickPhase};

use crate::{
    cli::{Arceos, SettingArgs, Timing},
    record::REAL,
};

/// Scale, CPUs, clock and line of ArceOS.
#[derive(Clone, Debug)]
pub struct Setting {
    scale: u64,
    smp: u32,
    timing: Timing,
    arceos: Arceos,
    /// The yields of each task of the app `yield`, if they are not as many as usual.
    yields: Option<NonZeroU64>,
}

/// Returns the part of a file's name for a scale, as make writes it (`SCALED`); none for 1.
pub fn scaled(scale: u64) -> String {
    match scale {
        1 => String::new(),
        scale => format!("-scale{scale}"),
    }
}

impl Setting {
    pub fn new(args: &SettingArgs) -> Self {
        Self {
            scale: args.scale,
            smp: args.smp,
            timing: args.timing.unwrap_or(usual(args.smp)),
            arceos: args.arceos,
            yields: None,
        }
    }

    /// Returns the same setting with this number of yields.
    pub fn with_yields(self, yields: Option<NonZeroU64>) -> Self {
        Self { yields, ..self }
    }

    /// Returns true if time is counted: two runs agree, and may run at the same time.
    pub fn is_exact(&self) -> bool {
        self.timing == Timing::Icount
    }

    /// Refuses a setting that no guest has, before any is built.
    pub fn check(&self) -> Result<()> {
        if self.smp > 1 && self.is_exact() {
            bail!(
                "--smp {} --timing icount: counted time has one CPU; allowed are --smp 1 or --timing real",
                self.smp
            );
        }
        Ok(())
    }

    /// Returns the tick phases to boot at; none in real time, in which the host decides when a tick
    /// comes.
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

    /// Refuses figures of another setting or tick phase: a guest may have booted with fewer CPUs
    /// than it was given.
    pub fn check_figures(&self, run: &RunLine, tick_phase: Option<TickPhase>) -> Result<()> {
        let phase = |phase: Option<TickPhase>| phase.map_or("none".into(), |p| p.to_string());
        // The app `cost` names no phase, as it waits for it before each round.
        let expected_phase = tick_phase.or(run.tick_phase);
        for (key, expected, found) in [
            ("smp", self.smp.to_string(), run.context.smp.to_string()),
            ("scale", self.scale.to_string(), run.scale.to_string()),
            ("timing", self.timing().into(), run.timing.clone()),
            ("tick_phase", phase(expected_phase), phase(run.tick_phase)),
        ] {
            if expected != found {
                bail!("expected results with {key} `{expected}`, found `{found}`");
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

    /// Returns the variables for make.
    pub fn variables(&self) -> Vec<String> {
        let mut variables = vec![
            format!("SMP={}", self.smp),
            format!("SCALE={}", self.scale),
            format!("TIMING={}", self.timing()),
        ];
        variables.extend(self.yields.map(|yields| format!("T={yields}")));
        // The default is left out, so that a fingerprint of the old line stays what it was.
        if self.arceos == Arceos::Of2026 {
            variables.push("ARCEOS=0.6".into());
        }
        variables
    }

    /// Returns the variables that are not make's defaults.
    pub fn not_default(&self) -> Vec<String> {
        let usual = Self {
            scale: 1,
            smp: 1,
            timing: usual(self.smp),
            arceos: Arceos::Old,
            yields: None,
        };
        let mut variables = self.variables();
        variables.retain(|variable| !usual.variables().contains(variable));
        variables
    }

    /// Returns the name of the folder of results under `target/`. It has every value that is not
    /// the default, so that a short try does not overwrite the figures of a long run.
    pub fn folder(&self) -> String {
        let mut name = match self.arceos {
            Arceos::Old => "lab".to_owned(),
            Arceos::Of2026 => "lab-arceos-0.6".to_owned(),
        };
        name += &scaled(self.scale);
        if self.smp != 1 {
            name += &format!("-smp{}", self.smp);
        } else if !self.is_exact() {
            name += "-real";
        }
        if let Some(yields) = self.yields {
            name += &format!("-yields{yields}");
        }
        name
    }
}

/// Returns the default clock, as in make.
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
    use crate::record::{parse, tests::sample_at};

    fn setting(scale: u64, smp: u32, timing: Option<Timing>) -> Setting {
        let arceos = Arceos::Old;
        Setting::new(&SettingArgs {
            scale,
            smp,
            timing,
            arceos,
        })
    }

    #[test]
    fn folder_and_command_line_have_the_values_that_are_not_defaults() {
        let real = Some(Timing::Real);
        for (setting, folder, typed, all) in [
            (
                setting(1, 1, None),
                "lab",
                "",
                "SMP=1 SCALE=1 TIMING=icount",
            ),
            (
                setting(1000, 1, None),
                "lab-scale1000",
                "SCALE=1000",
                "SMP=1 SCALE=1000 TIMING=icount",
            ),
            (
                setting(10, 4, real),
                "lab-scale10-smp4",
                "SMP=4 SCALE=10",
                "SMP=4 SCALE=10 TIMING=real",
            ),
            (
                setting(1, 2, None),
                "lab-smp2",
                "SMP=2",
                "SMP=2 SCALE=1 TIMING=real",
            ),
            (
                setting(1, 1, real),
                "lab-real",
                "TIMING=real",
                "SMP=1 SCALE=1 TIMING=real",
            ),
        ] {
            assert_eq!(setting.folder(), folder);
            assert_eq!(setting.not_default().join(" "), typed);
            assert_eq!(setting.variables().join(" "), all);
            assert_eq!(setting.is_exact(), all.ends_with("icount"));
            assert!(setting.check().is_ok());
        }
    }

    #[test]
    fn number_of_yields_is_in_the_variables_and_in_the_folder() {
        let setting = setting(10, 1, None).with_yields(NonZeroU64::new(400_000));
        assert_eq!(setting.folder(), "lab-scale10-yields400000");
        assert_eq!(setting.not_default(), ["SCALE=10", "T=400000"]);
    }

    #[test]
    fn line_of_arceos_is_named_unless_it_is_the_default() {
        let args = SettingArgs {
            scale: 10,
            smp: 1,
            timing: None,
            arceos: Arceos::Of2026,
        };
        let setting = Setting::new(&args);
        assert_eq!(setting.folder(), "lab-arceos-0.6-scale10");
        assert_eq!(setting.not_default(), ["SCALE=10", "ARCEOS=0.6"]);
    }

    #[test]
    fn figures_of_another_setting_are_refused() {
        let text = sample_at(125, "realtime", "rr", &[("run", 100)]);
        let outcome = parse(&text).unwrap();
        let phases = setting(1, 1, None).tick_phases(8).unwrap();
        for (setting, phase, error) in [
            (setting(1, 1, None), None, ""),
            (setting(1, 1, None), Some(phases[1]), ""),
            (
                setting(1, 1, None),
                Some(phases[2]),
                "tick_phase `250`, found `125`",
            ),
            (setting(2, 1, None), None, "scale `2`, found `1`"),
            (setting(1, 4, None), None, "smp `4`, found `1`"),
            (
                setting(1, 1, Some(Timing::Real)),
                None,
                "timing `real`, found `icount`",
            ),
        ] {
            let found = setting.check_figures(outcome.last(), phase).err();
            let found = found.map_or(String::new(), |error| error.to_string());
            assert_eq!(found.trim_start_matches("expected results with "), error);
        }
    }
}
