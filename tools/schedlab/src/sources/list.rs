//! The files that an image or a program was built from.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::digest::digest;

/// The start of a line of `make lab-sources`.
const SOURCE: &str = "source: ";

/// A package and the files of this tree that it was built from.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SourceList {
    /// The kind, `image` or `program`, and the package.
    pub what: String,
    /// The paths from the project's root, sorted.
    pub files: Vec<String>,
}

impl SourceList {
    /// Reads a list: the kind and the package, then a file on each line.
    pub fn read(text: &str) -> Result<Self> {
        let mut lines = text.lines().map(str::to_owned);
        match lines.next() {
            Some(what) if what.starts_with("image ") || what.starts_with("program ") => Ok(Self {
                what,
                files: lines.collect(),
            }),
            found => bail!(
                "a list of sources: expected `image NAME` or `program NAME`, found `{}`",
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

    /// Returns true if the list belongs to an image, and the package.
    pub fn package(&self) -> (bool, &str) {
        let (kind, package) = self.what.split_once(' ').unwrap_or_default();
        (kind == "image", package)
    }
}

/// The stamp of a measurement: it was built from these files when they had this hash.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Made {
    pub list: SourceList,
    pub hash: String,
}
