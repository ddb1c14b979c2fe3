//! What policies are called.

/// A policy's name in result lines: `rr` of `sched_rr`, `stock-rr` of `stock_rr`.
pub fn short(policy: &str) -> String {
    policy
        .strip_prefix("sched_")
        .unwrap_or(policy)
        .replace('_', "-")
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
}
