//! What is said of many latencies: quantiles, and a histogram with logarithmic bins.

use alloc::{format, string::String, vec, vec::Vec};

/// Latencies in nanoseconds, from the shortest.
#[derive(Debug, Default)]
pub struct Latencies(Vec<u64>);

impl Latencies {
    /// These, in any order.
    pub fn new(mut ns: Vec<u64>) -> Self {
        ns.sort_unstable();
        Self(ns)
    }

    /// How many there are.
    pub const fn count(&self) -> usize {
        self.0.len()
    }

    /// The shortest that so many per cent of them do not exceed, 1 to 100; 0 of none.
    pub fn percentile(&self, percent: usize) -> u64 {
        let rank = (self.0.len() * percent).div_ceil(100);
        rank.checked_sub(1).map_or(0, |place| self.0[place])
    }

    /// How many are below 1 µs, from there to below 2 µs, to below 4 µs and so on, to the last of
    /// these numbers that is not 0.
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

/// The width of the longest bar.
const WIDTH: usize = 30;

/// Histograms side by side, with titles, from the first bin that has something to the last.
pub fn histogram(columns: &[(&str, &[u64])]) -> String {
    let bins = columns.iter().map(|(_, bins)| bins.len()).max();
    let first = columns
        .iter()
        .filter_map(|(_, bins)| bins.iter().position(|&n| n > 0));
    let mut text = format!("{:>17}", "µs");
    for (title, _) in columns {
        text += &format!("  {title:<width$}", width = WIDTH + 6);
    }
    let mut lines = vec![text];
    for bin in first.min().unwrap_or(0)..bins.unwrap_or(0) {
        let from = (1u64 << bin) >> 1;
        let mut line = format!("{from:>7} – {:>7}", 1u64 << bin);
        for (_, bins) in columns {
            let count = bins.get(bin).copied().unwrap_or(0);
            let most = bins.iter().max().copied().unwrap_or(1).max(1);
            let length = (count as usize * WIDTH).div_ceil(most as usize);
            let bar = "#".repeat(length);
            line += &format!("  {count:>5} {bar:<WIDTH$}");
        }
        lines.push(line);
    }
    let mut text = String::new();
    for line in lines {
        text += line.trim_end();
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
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
    fn a_bin_begins_at_a_power_of_two() {
        let us = |us: u64| us * 1_000;
        let all = vec![0, 999, us(1), us(2) - 1, us(2), us(3), us(4), us(1_000)];
        assert_eq!(
            Latencies::new(all).bins(),
            [2, 2, 2, 1, 0, 0, 0, 0, 0, 0, 1]
        );
        assert!(Latencies::default().bins().is_empty());
    }

    #[test]
    fn a_histogram_has_what_is_between_the_first_and_the_last() {
        let text = histogram(&[("one", &[0, 0, 30, 1]), ("two", &[0, 0, 0, 0, 2])]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 4, "{text}");
        assert!(lines[1].contains("2 –       4     30 ####"), "{text}");
        assert!(lines[2].contains(" 1 #  "), "what is there shows: {text}");
        assert!(lines[3].ends_with(&"#".repeat(WIDTH)), "{text}");
    }
}
