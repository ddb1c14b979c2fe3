//! The known distance of the model from QEMU, by policy.

use std::path::Path;

use anyhow::{Context, Result};

use crate::docs::{Data, Filter};

/// `simulate.csv`: the difference of several programs, in %.
pub struct Errors {
    /// The largest difference between simulation and boot, for each policy.
    largest: Vec<(String, f64)>,
}

impl Errors {
    /// Reads the errors on an architecture.
    pub fn read(path: &Path, arch: &str) -> Result<Self> {
        let read = || {
            let data = Data::read(path)?;
            let here = Filter::from([("arch".to_owned(), arch.to_owned())]);
            let schedulers = data.words("scheduler", &here)?;
            let largest = schedulers.into_iter().map(|scheduler| {
                let mut filter = here.clone();
                filter.insert("scheduler".to_owned(), scheduler.clone());
                let apps = data.words("app", &filter)?;
                let off = apps.into_iter().map(|app| {
                    let mut of = filter.clone();
                    of.insert("app".to_owned(), app);
                    let off = data.figure(&of)?.context("expected a figure, found none")?;
                    Ok(off.spread.mean.abs())
                });
                let off: Vec<f64> = off.collect::<Result<_>>()?;
                Ok((scheduler, off.into_iter().fold(0.0, f64::max)))
            });
            anyhow::Ok(Self {
                largest: largest.collect::<Result<_>>()?,
            })
        };
        read().with_context(|| path.display().to_string())
    }

    /// Returns the error of a policy; of a policy that was never compared, the largest of all.
    pub fn of(&self, scheduler: &str) -> f64 {
        let known = self.largest.iter().find(|(name, _)| name == scheduler);
        let all = || self.largest.iter().map(|(_, off)| *off).fold(0.0, f64::max);
        known.map_or_else(all, |(_, off)| *off)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;

    #[test]
    fn largest_difference_counts_and_unknown_policies_have_that_of_all() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("simulate.csv");
        let rows = [
            "realtime,sjf,-1.52",
            "yield,sjf,0.19",
            "yield,stock-cfs,2.19",
            "yield,rr,-0.22",
        ];
        let rows = rows.map(|row| {
            let (of, off) = row.rsplit_once(',').unwrap();
            format!("x86_64,{of},model over QEMU,%,{off}\n")
        });
        let head = "arch,app,scheduler,figure,unit,value\n";
        std::fs::write(&file, head.to_owned() + &rows.concat()).unwrap();
        let errors = Errors::read(&file, "x86_64").unwrap();
        assert_eq!(errors.of("sjf"), 1.52);
        assert_eq!(errors.of("stock-cfs"), 2.19);
        assert_eq!(errors.of("lottery"), 2.19);
        assert_eq!(errors.of("rr"), 0.22);
        let error = Errors::read(&file, "m68k").err().unwrap();
        assert_has(format!("{error:#}"), "m68k");
    }
}
