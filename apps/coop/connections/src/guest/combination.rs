//! Combinations of components and waits.

/// The components of a run, and the way their reads wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Components are coroutines. A read that waits is another one of the same executor.
    Kcuc,
    /// Components are coroutines that wait at their sockets.
    Uc,
    /// Components are threads that wait at their sockets.
    Ut,
}

impl Combination {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 3] = [Self::Kcuc, Self::Uc, Self::Ut];

    /// Returns its name in result lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kcuc => "kcuc",
            Self::Uc => "uc",
            Self::Ut => "ut",
        }
    }
}
