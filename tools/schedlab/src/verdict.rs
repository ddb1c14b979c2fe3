//! How a subcommand ends.

/// How a subcommand ended that did what it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing to complain about.
    Good,
    /// Some cell failed, is missing, or differs; a yield costs more; a profile is bad, or
    /// differs.
    Bad,
    /// Somebody pressed Ctrl-C.
    Interrupted,
}
