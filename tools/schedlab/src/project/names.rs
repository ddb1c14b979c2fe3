//! What policies are called, and in which order they stand.

use std::cmp::Ordering;

/// The order of rows: the report's, then what it does not have, then the
/// registry's own schedulers.
const ORDER: [&str; 7] = ["fifo", "rr", "cfs", "sjf", "mlfq", "pbg", "pbg-coop"];

/// A policy's name in result lines: `rr` of `sched_rr`, `stock-rr` of `stock_rr`.
pub fn short(policy: &str) -> String {
    policy
        .strip_prefix("sched_")
        .unwrap_or(policy)
        .replace('_', "-")
}

/// Compares two short names.
pub fn order(a: &str, b: &str) -> Ordering {
    let key = |name: &str| {
        let plain = name.strip_prefix("stock-");
        let known = |name: &str| {
            ORDER
                .iter()
                .position(|known| *known == name)
                .unwrap_or(ORDER.len())
        };
        (
            plain.is_some(),
            known(plain.unwrap_or(name)),
            name.to_owned(),
        )
    };
    key(a).cmp(&key(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names_are_those_of_the_result_lines() {
        assert_eq!(short("sched_rr"), "rr");
        assert_eq!(short("stock_fifo"), "stock-fifo");
        assert_eq!(short("rr"), "rr");
    }

    #[test]
    fn rows_stand_in_the_reports_order_and_stock_comes_last() {
        let mut names = [
            "stock-rr",
            "zeta",
            "pbg",
            "stock-cfs",
            "cfs",
            "alpha",
            "rr",
            "stock-fifo",
            "mlfq",
            "fifo",
            "sjf",
        ];
        names.sort_by(|a, b| order(a, b));
        let expected = [
            "fifo",
            "rr",
            "cfs",
            "sjf",
            "mlfq",
            "pbg",
            "alpha",
            "zeta",
            "stock-fifo",
            "stock-rr",
            "stock-cfs",
        ];
        assert_eq!(names, expected);
    }
}
