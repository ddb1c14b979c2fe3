//! The variation of each task's run time over the runs of a program.

use std::collections::HashMap;

use axsched_ext::{
    pbg::stored::{StoredProfile, StoredTask},
    units::TaskKey,
};

use super::{names::Names, quantity::Clock, show::mean};
use crate::grid;

/// The moments of each task's run time. Runs are not kept, as there may be any number.
#[derive(Debug, Default)]
pub struct Variation {
    tasks: HashMap<TaskKey, Moments>,
    /// True if a profile had several runs of a task, and so only their mean.
    merged: bool,
}

/// Mean and variance of a quantity, one value at a time.
///
/// B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
/// Technometrics 4 (1962), with weights as D. H. D. West has them (1979): sums of
/// squares would lose the difference of two large numbers.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    mean: f64,
    /// The sum of the squared distances from the mean.
    squares: f64,
}

impl Moments {
    /// Adds a value `count` times.
    fn add(&mut self, value: f64, count: u32) {
        self.count += u64::from(count);
        let off = value - self.mean;
        self.mean += off * f64::from(count) / self.count as f64;
        self.squares += f64::from(count) * off * (value - self.mean);
    }

    /// Returns the standard deviation of the sample over the mean, in %; `None` if there are fewer than
    /// two values, or all are 0.
    fn percent(&self) -> Option<f64> {
        let known = self.count > 1 && self.mean > 0.0;
        known.then(|| (self.squares / (self.count - 1) as f64).sqrt() / self.mean * 100.0)
    }
}

impl Variation {
    /// Adds a profile. Runs that were merged before count with their mean.
    pub fn add(&mut self, profile: &StoredProfile) {
        for task in &profile.tasks {
            let of = self.tasks.entry(task.key).or_default();
            of.add(mean(task.figures.run, task.runs), task.runs);
            self.merged |= task.runs > 1;
        }
    }

    fn percent(&self, key: TaskKey) -> Option<f64> {
        self.tasks.get(&key).and_then(Moments::percent)
    }

    /// Returns a table of the tasks of a merged profile.
    pub fn text(&self, merged: &StoredProfile) -> String {
        let clock = Clock::new(merged.header.frequency_hz);
        let names = Names::of(merged);
        let mean_title = format!(">run, {}: mean", clock.unit());
        let titles = ["task", ">runs", &mean_title, ">least", ">most", ">CV, %"];
        let row = |(index, task): (usize, &StoredTask)| {
            let run = task.figures.run;
            let percent = self.percent(task.key);
            [
                names.name(index),
                task.runs.to_string(),
                clock.show(mean(run, task.runs)),
                clock.show(run.least as f64),
                clock.show(run.most as f64),
                percent.map_or_else(|| "-".to_owned(), |percent| format!("{percent:.2}")),
            ]
        };
        let rows = merged.tasks.iter().enumerate().map(row);
        let mut text = grid::text(&titles, rows, grid::CLOSE);
        text += "\nCV: the standard deviation of a task's run time over its mean.\n";
        if self.merged {
            text += "Some profiles are of several runs, which count with their mean: the runs differ by more.\n";
        }
        text += &self.summary(merged, &names);
        text
    }

    /// Returns the median variation, and the task that varies most.
    fn summary(&self, merged: &StoredProfile, names: &Names) -> String {
        let tasks = merged.tasks.iter().enumerate();
        let mut all: Vec<_> = tasks
            .filter_map(|(index, task)| Some((self.percent(task.key)?, index)))
            .collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        match (all.get(all.len() / 2), all.last()) {
            (Some((median, _)), Some((most, index))) => format!(
                "Run times vary by {median:.2} % (the median over the tasks), most for {}: {most:.2} %.\n",
                names.name(*index)
            ),
            _ => {
                "No task was seen in two runs, so it is not known how far runs differ.\n".to_owned()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moments(values: &[(f64, u32)]) -> Moments {
        let mut moments = Moments::default();
        values
            .iter()
            .for_each(|(value, count)| moments.add(*value, *count));
        moments
    }

    #[test]
    fn variation_is_that_of_all_values_at_once() {
        let values: Vec<f64> = (0..1000).map(|n| f64::from(n * 7919 % 1009)).collect();
        let mean = values.iter().sum::<f64>() / 1000.0;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let expected = (squares / 999.0).sqrt() / mean * 100.0;
        let ones: Vec<_> = values.iter().map(|value| (*value, 1)).collect();
        let found = moments(&ones).percent().unwrap();
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
        // A value three times is three values. Large values lose no digits.
        let many = [(2e12, 3), (2e12 + 4.0, 1)];
        let each = [(2e12, 1), (2e12 + 4.0, 1), (2e12, 1), (2e12, 1)];
        let (many, each) = (moments(&many), moments(&each));
        assert!((many.squares - 12.0).abs() < 1e-3, "{}", many.squares);
        assert!((many.squares - each.squares).abs() < 1e-3);
        assert_eq!(many.count, 4);
    }

    #[test]
    fn variation_of_fewer_than_two_values_is_unknown() {
        assert_eq!(moments(&[]).percent(), None);
        assert_eq!(moments(&[(5.0, 1)]).percent(), None);
        assert_eq!(moments(&[(0.0, 9)]).percent(), None);
        assert_eq!(moments(&[(5.0, 9)]).percent(), Some(0.0));
    }
}
