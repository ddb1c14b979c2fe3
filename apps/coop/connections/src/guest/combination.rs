//! What a run's two sides are made of.

/// What the service and the program are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Combination {
    /// Both are coroutines, of one executor.
    Kcuc,
    /// Both are coroutines, of an executor each, and each operation is one, as in the report: there they are in
    /// two address spaces.
    Kcuc2,
    /// The service is coroutines, the program threads.
    Kcut,
    /// Both are threads.
    Ktut,
    /// The service is one thread, the program coroutines.
    Ktuc,
    /// Coroutines that wait at their sockets themselves.
    Uc,
    /// Threads that do.
    Ut,
}

impl Combination {
    /// All of them, in the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Kcuc,
        Self::Kcuc2,
        Self::Kcut,
        Self::Ktut,
        Self::Ktuc,
        Self::Uc,
        Self::Ut,
    ];

    /// Its name in result lines.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Kcuc => "kcuc",
            Self::Kcuc2 => "kcuc-2",
            Self::Kcut => "kcut",
            Self::Ktut => "ktut",
            Self::Ktuc => "ktuc",
            Self::Uc => "uc",
            Self::Ut => "ut",
        }
    }
}
