//! What the rows of the published tables were made from, and which of them are out of date.
//!
//! 1. A row belongs to a cell of a matrix, whatever it says of it: [`RowKey`].
//! 2. The command that measures writes into `sources.csv`, beside its CSV file, what the cell
//!    was built from: the name of a list of files, which cargo told, and a hash over their
//!    contents, what else decides what is built, and the tools ([`Tree::hash`]).
//! 3. A row is out of date if its cell has no such line, or if the hash is another one today.
//!    Nothing is built to find out.
//! 4. Rows of real time are statistics. They have the same hash; a gate that is not of a release
//!    says that they are out of date, and passes.
//!
//! | module | its business |
//! |---|---|
//! | [`tree`] | the hash of a list of files, as the tree is now |
//! | [`rows`] | the published files: the cells of their rows, and the commands that make them |
//! | [`ledger`] | `sources.csv` and the lists |
//! | [`stale`] | `schedlab stale` |

mod ledger;
mod rows;
mod stale;
mod tree;

use std::{env, fs, path::Path};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};

use ledger::{Ledger, stamp};
use rows::Published;
pub use rows::RowKey;
pub use stale::stale;
pub use tree::Tree;

use crate::{cli::TreeArgs, digest::digest, output::note, project::Project, store::write};

/// Before a line of `make lab-sources`.
const SOURCE: &str = "source: ";

/// What was built of which files of this tree.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct SourceList {
    /// `image` or `program`, and the package.
    pub what: String,
    /// From the project's root, sorted.
    pub files: Vec<String>,
}

impl SourceList {
    /// Reads a list: what it is of, then a file on each line.
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

    /// Takes a list out of what `make lab-sources` printed.
    pub fn of_make(console: &[String]) -> Result<Self> {
        let lines = console.iter().filter_map(|line| line.strip_prefix(SOURCE));
        Self::read(&lines.collect::<Vec<_>>().join("\n"))
    }

    fn text(&self) -> String {
        format!("{}\n{}\n", self.what, self.files.join("\n"))
    }

    /// The name of its file: what is in it.
    fn name(&self) -> String {
        let hash = digest(self.text());
        let (_, package) = self.package();
        format!("{package}-{}", &hash[..8])
    }

    /// Whether it is an image, and the package.
    fn package(&self) -> (bool, &str) {
        let (kind, package) = self.what.split_once(' ').unwrap_or_default();
        (kind == "image", package)
    }
}

/// What was measured was built from these files when they had this hash.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub struct Made {
    pub list: SourceList,
    pub hash: String,
}

/// Writes a published CSV file, and beside it what its cells were made from. With `keep` the rows of
/// other cells stay. What is known of no cell is not written down: its rows are out of date.
pub fn write_rows(
    csv: &Path,
    text: &str,
    keep: bool,
    cells: impl IntoIterator<Item = (RowKey, Option<Made>)>,
) -> Result<()> {
    let text = match keep && csv.exists() {
        true => {
            let old = fs::read_to_string(csv).with_context(|| csv.display().to_string())?;
            rows::merged(file_name(csv), &old, text)?
        }
        false => text.to_owned(),
    };
    write(csv, text)?;
    stamp(csv, cells)
}

/// The same for a file whose cells were all made from the same.
pub fn write_rows_of_one(csv: &Path, text: &str, made: Option<Made>) -> Result<()> {
    let keys = match Published::named(file_name(csv)) {
        Some(published) => published.keys(text)?,
        None => Vec::new(),
    };
    write_rows(
        csv,
        text,
        false,
        keys.into_iter().map(|key| (key, made.clone())),
    )
}

/// What a cell of a published CSV file was made from, as it is written down beside the file.
pub fn known(csv: &Path, key: &RowKey) -> Result<Option<Made>> {
    let ledger = Ledger::read(csv.parent().unwrap_or(Path::new("")))?;
    Ok(ledger.made(file_name(csv), key))
}

/// What was measured was made from the files that make has listed there before: `None` if there
/// is no list, or if one of them has changed since.
pub fn made_beside(tree: &TreeArgs, list: &Path) -> Result<Option<Made>> {
    let Ok(text) = fs::read_to_string(list) else {
        return Ok(None);
    };
    let place = || list.display().to_string();
    let files = SourceList::read(&text).with_context(place)?;
    let tree = Tree::new(&Project::find(tree)?)?;
    if let Some(file) = tree.changed_since(&files, fs::metadata(list)?.modified()?) {
        note(format_args!(
            "{}: {file} has changed since: what was measured counts as out of date",
            place()
        ));
        return Ok(None);
    }
    Ok(Some(tree.made(files)))
}

/// What figures of the model are made from: a recording of this app under PBG, and the model,
/// which is in this program.
pub fn made_by_model(tree: &TreeArgs, app: &str, arch: &str) -> Result<Option<Made>> {
    let project = Project::find(tree)?;
    if !project.tells_sources() {
        return Ok(None);
    }
    let mut apps = project.lists()?.apps.into_iter();
    let found = apps.find(|of| of.name == app);
    let app = found.with_context(|| format!("expected an app called {app}, found none"))?;
    let words = ["-s", "lab-sources"].map(str::to_owned).into_iter().chain([
        format!("A={}", app.folder),
        format!("ARCH={arch}"),
        "FEATURES=sched_pbg".to_owned(),
    ]);
    let output = project.make(&words.collect::<Vec<_>>()).output()?;
    let console: Vec<_> = String::from_utf8(output.stdout)?
        .lines()
        .map(str::to_owned)
        .collect();
    let mut list = SourceList::of_make(&console)?;
    let program = env::current_exe()?.with_extension("d");
    let built = fs::read_to_string(&program).with_context(|| program.display().to_string())?;
    let root = fs::canonicalize(&project.root)?;
    let own = built
        .split(' ')
        .filter_map(|path| Path::new(path).strip_prefix(&root).ok());
    let model = own.filter(|path| MODEL.iter().any(|folder| path.starts_with(folder)));
    list.files
        .extend(model.map(|path| path.display().to_string().trim_end().to_owned()));
    list.files.sort();
    list.files.dedup();
    Ok(Some(Tree::new(&project)?.made(list)))
}

/// The part of this program that plays.
const MODEL: [&str; 2] = ["modules", "tools/sched-sim"];

/// The name of a file in its folder.
fn file_name(path: &Path) -> &str {
    path.file_name()
        .and_then(|name| name.to_str())
        .unwrap_or_default()
}
