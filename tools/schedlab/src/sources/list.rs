//! The files that an image or a program was built from.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::digest::digest;

/// The start of a line of `make lab-sources`.
const SOURCE: &str = "source: ";

/// The kinds of what is built: an image of either line of ArceOS, or a program of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Image,
    Image06,
    Program,
}

impl Kind {
    const ALL: [(Self, &str); 3] = [
        (Self::Image, "image"),
        (Self::Image06, "image-0.6"),
        (Self::Program, "program"),
    ];

    /// Returns the kind of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, it)| *it == name)
            .map(|(kind, _)| *kind)
    }
}

/// A package and the files of this tree that it was built from.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SourceList {
    /// The kind, and the package.
    pub what: String,
    /// The paths from the project's root, sorted.
    pub files: Vec<String>,
}

impl SourceList {
    /// Reads a list: the kind and the package, then a file on each line.
    pub fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines().map(str::to_owned);
        match lines.next() {
            Some(what) if split(&what).is_some() => Ok(Self {
                what,
                files: lines.collect(),
            }),
            found => bail!(
                "a list of sources: expected `image NAME`, `image-0.6 NAME` or `program NAME`, found `{}`",
                found.unwrap_or_default()
            ),
        }
    }

    /// Reads the list in the output of `make lab-sources`.
    pub fn of_make(console: &[String]) -> Result<Self> {
        let lines = console.iter().filter_map(|line| line.strip_prefix(SOURCE));
        Self::read(&lines.collect::<Vec<_>>().join("\n"))
    }

    pub fn text(&self) -> String {
        format!("{}\n{}\n", self.what, self.files.join("\n"))
    }

    /// Returns the name of the list's file: the package and a hash of the content.
    pub fn name(&self) -> String {
        let hash = digest(self.text());
        let (_, package) = self.package();
        format!("{package}-{}", &hash[..8])
    }

    /// Returns the kind and the package.
    pub fn package(&self) -> (Kind, &str) {
        split(&self.what).expect("a list begins with a kind and a package")
    }
}

fn split(what: &str) -> Option<(Kind, &str)> {
    let (kind, package) = what.split_once(' ')?;
    Some((Kind::named(kind)?, package))
}

/// The stamp of a measurement: it was built from these files when they had this hash.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Made {
    pub list: SourceList,
    pub hash: String,
}
