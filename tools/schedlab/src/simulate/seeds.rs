//! Runs with every task's time changed at random: the mean of each figure, and the range of nine runs
//! in ten.

use anyhow::Result;
use sched_sim::whatif::Change;

use super::{
    cells::{Play, Seeded},
    flavour::Flavour,
    render,
};
use crate::{grid, output::count};

/// The meaning of the figures.
pub const BY_SEED: &str = "average, slowest (the task that took longest) and makespan are
means over the runs, 5 % of the averages are below `5 %` and 5 % above `95 %`. In each run every
task's time is changed by a factor of its own, up to 1 + spread or down to one over that, and
the start lies anywhere in a tick; with one seed all policies have the same work.
";

/// A figure: its name in the CSV file, its decimals in a table, and its value in a run.
type Figure = (&'static str, usize, fn(&Seeded) -> f64);

/// In the order of the table.
const FIGURES: [Figure; 6] = [
    ("average", 3, |run| run.average),
    ("avg/bound", 3, |run| run.average / run.bound),
    ("slowest", 3, |run| run.slowest),
    ("makespan", 3, |run| run.makespan),
    ("switches", 0, |run| run.switches),
    ("Jain", 4, |run| run.jain),
];

/// Returns the mean of these values, at least one, and by nearest rank the values that 5 % are below
/// and above.
fn quantiles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    [mean, rank(5), rank(95)]
}

/// The results of a policy, one for each seed.
pub type Cell<'a> = (&'a Play<'a>, &'a Vec<Seeded>);

/// Returns the table of policies on one number of CPUs.
pub fn table(cells: &[Cell], preemptive: &Flavour, spread: u32, changes: &[Change]) -> String {
    let rows = cells.iter().map(|&(play, runs)| {
        let three = |of: fn(&Seeded) -> f64| quantiles(runs.iter().map(of));
        let words = |of: fn(&Seeded) -> f64| three(of).map(|value| format!("{value:.3}")).to_vec();
        let others = FIGURES[1..].iter();
        let others = others.map(|(_, decimals, of)| format!("{:.*}", decimals, three(*of)[0]));
        render::Row {
            play,
            bound: words(|run| run.bound),
            figures: words(FIGURES[0].2).into_iter().chain(others).collect(),
        }
    });
    let rows: Vec<_> = rows.collect();
    let over = format!("{}, spread {spread} %", count(cells[0].1.len(), "seed"));
    render::table(&rows, &over, [">5 %", ">95 %"], preemptive, changes)
}

/// Returns one line for each figure.
pub fn csv(cells: &[Cell], preemptive: &Flavour, spread: u32) -> Result<String> {
    let header = &preemptive.profile.header;
    let titles = [
        "arch",
        "app",
        "smp",
        "timing",
        "seeds",
        "spread",
        "scheduler",
        "figure",
        "mean",
        "5 %",
        "95 %",
    ];
    let rows = |&(play, runs): &Cell<'_>| {
        let cell = [
            header.architecture.name().to_owned(),
            header.program.name.to_string(),
            play.cpus.to_string(),
            "model".to_owned(),
            runs.len().to_string(),
            spread.to_string(),
            play.name(),
        ];
        FIGURES.map(|(name, _, of)| {
            let three = quantiles(runs.iter().map(of)).map(|value| format!("{value:.6}"));
            [&cell[..], &[name.to_owned()], &three].concat()
        })
    };
    grid::csv(titles, cells.iter().flat_map(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_the_mean_and_the_5th_and_95th_percentiles() {
        let found = [1, 2, 20, 100].map(|n: u32| quantiles((1..=n).rev().map(f64::from)));
        let expected = [
            [1.0, 1.0, 1.0],
            [1.5, 1.0, 2.0],
            [10.5, 1.0, 19.0],
            [50.5, 5.0, 95.0],
        ];
        assert_eq!(found, expected);
    }
}
