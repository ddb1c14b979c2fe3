//! The figures, their limits, and the verdicts.
//!
//! | figure | limit | where |
//! |---|---|---|
//! | `switch` | 0.50 of a thread's yield, 0.55 on x86_64 | under the registry's own schedulers, which are what one has without this project |
//! | `spread` | 1.02 | |
//! | `spawn` | 0.10 of what threads take | |
//! | `wake` | 0.10 | |
//! | `memory` | 128 bytes | |
//! | `connections` | 60 times as many | |
//! | `left` | 4,096 bytes | |
//!
//! The ratios of time are judged where time is counted; in real time they depend on the host.

use alloc::{format, string::String};

use sched_tests_common::results::{Setting, context};
use sched_tests_results::{COUNTED, CoopLine};

/// The limit that a figure, or its ratio, has to keep.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// An upper limit of the ratio if there is one, else of the figure.
    AtMost(f64),
    /// A lower limit, likewise.
    AtLeast(f64),
}

impl Limit {
    const fn value(self) -> f64 {
        match self {
            Self::AtMost(value) | Self::AtLeast(value) => value,
        }
    }
}

/// A figure of coroutines, with that of threads if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub what: &'static str,
    pub among: usize,
    pub unit: &'static str,
    pub coroutines: f64,
    pub threads: Option<f64>,
    pub limit: Option<Limit>,
}

impl Figure {
    /// Makes a figure of time, in the unit of the clock.
    pub fn of_time(
        setting: &Setting,
        what: &'static str,
        among: usize,
        coroutines: f64,
        threads: f64,
    ) -> Self {
        let is_counted = setting.timing == COUNTED;
        let limit = match what {
            "switch" if !setting.sched.starts_with("stock") => None,
            "switch" if setting.arch == "x86_64" => Some(Limit::AtMost(0.55)),
            "switch" => Some(Limit::AtMost(0.50)),
            "spawn" => Some(Limit::AtMost(0.10)),
            "wake" => Some(Limit::AtMost(0.10)),
            _ => None,
        };
        Self {
            what,
            among,
            unit: if is_counted { "instructions" } else { "ns" },
            coroutines,
            threads: Some(threads),
            limit: limit.filter(|_| is_counted),
        }
    }

    /// Makes the figure of the spread between the costs of switches among different numbers.
    pub fn spread(setting: &Setting, among: usize, costs: impl Iterator<Item = f64>) -> Self {
        let (least, most) = costs.fold((f64::MAX, 0.0_f64), |(least, most), cost| {
            (least.min(cost), most.max(cost))
        });
        Self {
            what: "spread",
            among,
            unit: "ratio",
            coroutines: most / least,
            threads: None,
            limit: (setting.timing == COUNTED).then_some(Limit::AtMost(1.02)),
        }
    }

    /// Returns `coroutines` / `threads`.
    pub fn ratio(&self) -> Option<f64> {
        Some(self.coroutines / self.threads?)
    }

    /// Returns true if it keeps its limit.
    pub fn pass(&self) -> bool {
        let judged = self.ratio().unwrap_or(self.coroutines);
        match self.limit {
            None => judged.is_finite(),
            Some(Limit::AtMost(most)) => judged <= most,
            Some(Limit::AtLeast(least)) => judged >= least,
        }
    }

    /// Returns its result line.
    pub fn line(&self, setting: &Setting, phase: &str) -> CoopLine {
        CoopLine {
            context: context(setting, phase),
            timing: setting.timing.into(),
            scale: setting.scale,
            figure: self.what.into(),
            among: self.among,
            unit: self.unit.into(),
            coroutines: rounded(self.coroutines, 100.0),
            threads: self.threads.map(|threads| rounded(threads, 100.0)),
            ratio: self.ratio().map(|ratio| rounded(ratio, 1_000.0)),
            limit: self.limit.map(Limit::value),
            pass: self.pass(),
        }
    }

    /// Returns its row in a table for people, as wide as [`HEADING`].
    pub fn row(&self) -> String {
        let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".into());
        let limit = self.limit.map(|limit| match limit {
            Limit::AtMost(most) => format!("<= {most}"),
            Limit::AtLeast(least) => format!(">= {least}"),
        });
        format!(
            "{:12}{:>8} {:13}{:>12.2}{:>12}{:>10}{:>10}{}",
            self.what,
            self.among,
            self.unit,
            self.coroutines,
            or_dash(self.threads.map(|threads| format!("{threads:.1}"))),
            or_dash(self.ratio().map(|ratio| format!("{ratio:.3}"))),
            or_dash(limit),
            if self.pass() { "" } else { "  MISSED" },
        )
    }
}

/// The heading of the rows.
pub const HEADING: &str =
    "figure         among unit           coroutines     threads     ratio     limit";

/// Rounds to this many parts of one; `core` has no `round`, and no figure is negative.
fn rounded(figure: f64, parts: f64) -> f64 {
    (figure * parts + 0.5) as u64 as f64 / parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTED_HERE: Setting = Setting {
        app: "coop-cost",
        arch: "x86_64",
        smp: 1,
        sched: "stock-fifo",
        timing: COUNTED,
        scale: 1,
    };

    fn switch(setting: &Setting, coroutines: f64) -> Figure {
        Figure::of_time(setting, "switch", 4, coroutines, 160.0)
    }

    #[test]
    fn ratio_passes_up_to_its_limit() {
        assert!(switch(&COUNTED_HERE, 88.0).pass());
        assert!(!switch(&COUNTED_HERE, 88.1).pass());
        let elsewhere = Setting {
            arch: "riscv64",
            ..COUNTED_HERE
        };
        assert!(switch(&elsewhere, 80.0).pass());
        assert!(!switch(&elsewhere, 80.1).pass());
        let spawn = |coroutines| Figure::of_time(&elsewhere, "spawn", 1, coroutines, 4_000.0);
        assert!(spawn(400.0).pass() && !spawn(400.1).pass());
    }

    #[test]
    fn switch_has_no_limit_under_other_schedulers_or_in_real_time() {
        for setting in [
            Setting {
                sched: "rr",
                ..COUNTED_HERE
            },
            Setting {
                timing: "real",
                ..COUNTED_HERE
            },
        ] {
            let figure = switch(&setting, 1_000.0);
            assert_eq!((figure.limit, figure.pass()), (None, true));
        }
    }

    #[test]
    fn spread_is_the_highest_cost_over_the_lowest() {
        let of = |costs: [f64; 3]| Figure::spread(&COUNTED_HERE, 100, costs.into_iter());
        assert_eq!(of([50.0, 51.0, 50.5]).coroutines, 1.02);
        assert!(of([50.0, 51.0, 50.5]).pass());
        assert!(!of([50.0, 51.1, 50.5]).pass());
        assert!(!of([0.0, 0.0, 0.0]).pass(), "nothing was measured");
    }

    #[test]
    fn connections_have_a_lower_limit() {
        let connections = |coroutines| Figure {
            what: "connections",
            among: 3,
            unit: "connections",
            coroutines,
            threads: Some(700.0),
            limit: Some(Limit::AtLeast(60.0)),
        };
        assert!(connections(42_000.0).pass() && !connections(41_999.0).pass());
    }

    #[test]
    fn line_is_rounded_and_row_marks_a_missed_limit() {
        let line = switch(&COUNTED_HERE, 76.4567).line(&COUNTED_HERE, "run");
        assert_eq!((line.coroutines, line.ratio), (76.46, Some(0.478)));
        let row = switch(&COUNTED_HERE, 100.0).row();
        assert!(row.ends_with("0.625   <= 0.55  MISSED"), "{row}");
        assert_eq!(switch(&COUNTED_HERE, 1.0).row().len(), HEADING.len());
    }
}
