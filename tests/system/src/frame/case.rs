//! A check with a name, and the resources that no other check may use meanwhile.

use anyhow::Result;

use super::context::Context;

pub(super) type Check<'a> = Box<dyn Fn(&Context) -> Result<()> + Send + Sync + 'a>;

/// A check, which gets one line of the report.
pub struct Case<'a> {
    /// The name, which `T=` searches.
    pub name: String,
    pub(super) needs: Needs,
    pub(super) check: Check<'a>,
}

/// Resources that keep two cases from running at once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// No other case may run: this one is timed, or copies what the others write.
    pub(super) alone: bool,
    /// The architecture whose build folder the case uses. Two cases of one architecture wait for
    /// each other's builds, which does no harm but wastes a CPU.
    pub(super) arch: Option<String>,
    /// Resources that one case at a time may use, such as an image or a folder.
    pub(super) holds: Vec<String>,
}

/// Makes a case that may run beside every other.
pub fn case<'a>(
    name: impl Into<String>,
    check: impl Fn(&Context) -> Result<()> + Send + Sync + 'a,
) -> Case<'a> {
    Case {
        name: name.into(),
        needs: Needs::default(),
        check: Box::new(check),
    }
}

impl Case<'_> {
    /// Declares that it builds for this architecture, and boots images of its own.
    pub fn builds(mut self, arch: &str) -> Self {
        self.needs.arch = Some(arch.into());
        self
    }

    /// Declares that it builds for this architecture, and boots images that other cases boot,
    /// too. All of them call the images by this name; an image cannot run twice at a time.
    pub fn boots(self, images: &str, arch: &str) -> Self {
        self.builds(arch).holds(&format!("{images} {arch}"))
    }

    /// Declares a resource that one case at a time may use.
    pub fn holds(mut self, resource: &str) -> Self {
        self.needs.holds.push(resource.into());
        self
    }

    /// Declares that it runs after all others, and with none beside it.
    pub fn alone(mut self) -> Self {
        self.needs.alone = true;
        self
    }
}

impl Needs {
    /// Returns true if two cases with these needs may run at once.
    pub(super) fn can_run_beside(&self, other: &Self) -> bool {
        let apart = self.holds.iter().any(|what| other.holds.contains(what));
        !(self.alone || other.alone || apart)
    }
}
