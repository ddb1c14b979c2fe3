//! The verdict of a subcommand.

/// The verdict of a subcommand that ran to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All is well.
    Good,
    /// A cell failed, is missing or differs, a yield costs more, or a profile is bad or differs.
    Bad,
    /// The user pressed Ctrl-C.
    Interrupted,
}
