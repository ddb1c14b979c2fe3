//! What all cells of a matrix have in common, and what it is called.

use crate::cli::{SettingArgs, Timing};

/// Scale, CPUs and clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    scale: u64,
    smp: u32,
    timing: Timing,
}

impl Setting {
    /// One CPU counts instructions unless told otherwise, as in make.
    pub fn new(args: &SettingArgs) -> Self {
        let usual = if args.smp == 1 {
            Timing::Icount
        } else {
            Timing::Real
        };
        Self {
            scale: args.scale,
            smp: args.smp,
            timing: args.timing.unwrap_or(usual),
        }
    }

    /// Whether two runs must agree, and may disturb each other.
    pub fn is_exact(&self) -> bool {
        self.timing == Timing::Icount
    }

    /// Variables for make.
    pub fn variables(&self) -> [String; 3] {
        let timing = match self.timing {
            Timing::Icount => "icount",
            Timing::Real => "real",
        };
        [
            format!("SMP={}", self.smp),
            format!("SCALE={}", self.scale),
            format!("TIMING={timing}"),
        ]
    }

    /// The folder of results under `target/`. Named after whatever is not a
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn the_folder_tells_what_is_not_a_default() {
        assert_eq!(setting(1, 1, None).folder(), "lab");
        assert_eq!(setting(1000, 1, None).folder(), "lab-scale1000");
        assert_eq!(setting(10, 4, None).folder(), "lab-scale10-smp4");
        assert_eq!(setting(1, 1, Some(Timing::Real)).folder(), "lab-real");
    }
}
