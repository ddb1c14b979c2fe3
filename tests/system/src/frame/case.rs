//! A check with a name, and what it needs for itself.

use anyhow::Result;

use super::context::Context;

type Check = Box<dyn Fn(&Context) -> Result<()> + Send + Sync>;

/// One line of the result.
pub struct Case {
    /// What `T=` looks into.
    pub name: String,
    pub(super) needs: Needs,
    pub(super) check: Check,
}

/// What keeps cases apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Nothing else may run: it is timed, or copies what the others write.
    pub(super) alone: bool,
    /// Whose build folder it works in. Two of one architecture wait for each other's builds,
    /// which is no harm and no use.
    pub(super) arch: Option<String>,
    /// What one case at a time may have: an image, a folder.
    pub(super) holds: Vec<String>,
}

/// A case that goes with every other.
pub fn case(
    name: impl Into<String>,
    check: impl Fn(&Context) -> Result<()> + Send + Sync + 'static,
) -> Case {
    Case {
        name: name.into(),
        needs: Needs::default(),
        check: Box::new(check),
    }
}

impl Case {
    /// It builds and boots images of this app, of which two may not run at once.
    pub fn boots(mut self, app: &str, arch: &str) -> Self {
        self.needs.arch = Some(arch.into());
        self.holds(&format!("{app} {arch}"))
    }

    /// What one case at a time may have.
    pub fn holds(mut self, what: &str) -> Self {
        self.needs.holds.push(what.into());
        self
    }

    /// After all others, and with none beside it.
    pub fn alone(mut self) -> Self {
        self.needs.alone = true;
        self
    }
}

impl Needs {
    /// Whether both may run at once.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let apart = self.holds.iter().any(|what| other.holds.contains(what));
        !(self.alone || other.alone || apart)
    }
}
