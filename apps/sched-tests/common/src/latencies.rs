//! A summary of many latencies: their mean, quantiles, and bins with logarithmic bounds.

use alloc::vec::Vec;

/// The latencies in nanoseconds, the shortest first.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// Makes a summary of latencies in nanoseconds, which may come in any order.
    pub fn new(mut ns: Vec<u64>) -> Self {
        ns.sort_unstable();
        Self(ns)
    }

    /// Returns the number of latencies.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the mean, rounded down; 0 if there are none.
    pub fn mean(&self) -> u64 {
        let sum: u128 = self.0.iter().map(|&ns| u128::from(ns)).sum();
        sum.checked_div(self.0.len() as u128).unwrap_or(0) as u64
    }

    /// Returns the percentile of this number, 1 to 100, by nearest rank; 0 if there are none.
    pub fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.0.len() * percent).div_ceil(100);
        rank.checked_sub(1).map_or(0, |place| self.0[place])
    }

    /// Returns the numbers of latencies below 1 µs, from there to below 2 µs, to below 4 µs and so
    /// on. The last number is not 0.
    pub fn bins(&self) -> Vec<u64> {
        let mut bins = Vec::new();
        for ns in &self.0 {
            let bin = (u64::BITS - (ns / 1_000).leading_zeros()) as usize;
            bins.resize(bins.len().max(bin + 1), 0);
            bins[bin] += 1;
        }
        bins
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn quantiles_are_by_nearest_rank() {
        let of_100 = Latencies::new((1..=100).rev().collect());
        assert_eq!(
            [50, 99, 100].map(|percent| of_100.percentile(percent)),
            [50, 99, 100]
        );
        let of_3 = Latencies::new(vec![7, 5, 6]);
        assert_eq!(
            [1, 50, 99].map(|percent| of_3.percentile(percent)),
            [5, 6, 7]
        );
        assert_eq!(Latencies::default().percentile(50), 0);
        assert_eq!((of_100.count(), Latencies::default().count()), (100, 0));
    }

    #[test]
    fn a_mean_is_rounded_down_and_does_not_overflow() {
        assert_eq!(Latencies::new(vec![3, 4, 4]).mean(), 3);
        assert_eq!(Latencies::new(vec![u64::MAX; 3]).mean(), u64::MAX);
        assert_eq!(Latencies::default().mean(), 0);
    }

    #[test]
    fn a_bin_begins_at_a_power_of_two() {
        let us = |us: u64| us * 1_000;
        let all = vec![0, 999, us(1), us(2) - 1, us(2), us(3), us(4), us(1_000)];
        assert_eq!(
            Latencies::new(all).bins(),
            [2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 1]
        );
        assert!(Latencies::default().bins().is_empty());
    }
}
