//! One figure over many runs at random: the mean, and within what nine of ten are.

/// Of at least one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantiles {
    pub mean: f64,
    /// 5 % of the runs are below it.
    pub low: f64,
    /// 5 % of the runs are above it.
    pub high: f64,
}

impl Quantiles {
    /// By nearest rank. There is a value at least.
    pub fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let rank = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        Self {
            mean: values.iter().sum::<f64>() / values.len() as f64,
            low: rank(5),
            high: rank(95),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_of_a_hundred_are_below_and_above() {
        let of = |n: u32| Quantiles::of((1..=n).rev().map(f64::from).collect());
        let found = [1, 2, 20, 100].map(|n| (of(n).low, of(n).mean, of(n).high));
        let expected = [
            (1.0, 1.0, 1.0),
            (1.0, 1.5, 2.0),
            (1.0, 10.5, 19.0),
            (5.0, 50.5, 95.0),
        ];
        assert_eq!(found, expected);
    }
}
