//! Numbers for people.

use alloc::{format, string::String};

/// Nanoseconds as milliseconds, rounded to the microsecond.
pub fn ms(ns: u64) -> String {
    let us = ns / 1_000 + u64::from(ns % 1_000 >= 500);
    format!("{}.{:03}", us / 1_000, us % 1_000)
}

/// A ratio with four decimals; a dash if there is nothing to compare with.
pub fn ratio(of: u64, to: u64) -> String {
    if to == 0 {
        return "-".into();
    }
    format!("{:.4}", of as f64 / to as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_rounded_to_the_microsecond() {
        assert_eq!(ms(0), "0.000");
        assert_eq!(ms(1_499), "0.001");
        assert_eq!(ms(1_500), "0.002");
        assert_eq!(ms(999_999_999), "1000.000");
        assert_eq!(ms(u64::MAX), "18446744073709.552");
    }

    #[test]
    fn a_ratio_to_nothing_is_a_dash() {
        assert_eq!(ratio(3, 2), "1.5000");
        assert_eq!(ratio(0, 2), "0.0000");
        assert_eq!(ratio(3, 0), "-");
    }
}
