//! The registry's own `axsched` 0.3.1, untouched.

pub use axsched_upstream::*;

/// The name of the policy in result lines.
pub const NAME: &str = if cfg!(feature = "stock_rr") {
    "stock-rr"
} else if cfg!(feature = "stock_cfs") {
    "stock-cfs"
} else {
    "stock-fifo"
};
