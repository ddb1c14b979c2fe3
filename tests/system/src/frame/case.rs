//! A check with a name, and what it needs for itself.

use anyhow::Result;

use super::context::Context;

pub(super) type Check = Box<dyn Fn(&Context) -> Result<()> + Send + Sync>;

/// One line of the result.
pub struct Case {
    /// What `T=` looks into.
    pub name: String,
    pub(super) needs: Needs,
    pub(super) check: Check,
    pub(super) preparation: Option<Preparation>,
}

/// What of a case may be done before it, beside others.
pub(super) struct Preparation {
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
        preparation: None,
    }
}

impl Case {
    /// It builds for this architecture, and boots what no other case boots.
    pub fn builds(mut self, arch: &str) -> Self {
        self.needs.arch = Some(arch.into());
        self
    }

    /// It builds for this architecture, and boots images that are another case's, too: those
    /// that both call by this name. An image cannot run twice at a time.
    pub fn boots(self, images: &str, arch: &str) -> Self {
        self.builds(arch).holds(&format!("{images} {arch}"))
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

    /// As [`alone`](Self::alone), but for this, which is done beside others before: builds, so
    /// that not all CPUs but one are idle meanwhile. Nobody looks at how it ends. The case
    /// itself asks for all that it needs, which is then there, or fails once more.
    pub fn alone_after(
        mut self,
        preparation: impl Fn(&Context) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.preparation = Some(Preparation {
            needs: self.needs.clone(),
            check: Box::new(preparation),
        });
        self.alone()
    }
}

impl Needs {
    /// Whether both may run at once.
    pub(super) fn goes_with(&self, other: &Self) -> bool {
        let apart = self.holds.iter().any(|what| other.holds.contains(what));
        !(self.alone || other.alone || apart)
    }
}
