//! The registry's own `axsched` 0.3.1, untouched.

pub use axsched_upstream::*;

/// Returns `None`, because the registry's policies know of no coroutines.
#[inline(always)]
pub const fn coop_of<T: ?Sized>(_task: &T) -> Option<&axsched_ext::coop::CoopState> {
    None
}

/// The name of the policy in result lines.
pub const NAME: &str = if cfg!(feature = "stock_rr") {
    "stock-rr"
} else if cfg!(feature = "stock_cfs") {
    "stock-cfs"
} else {
    "stock-fifo"
};
