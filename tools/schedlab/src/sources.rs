//! The sources of the rows of the published tables, to find the rows that are out of date.
//!
//! 1. A row belongs to a cell of a matrix: [`rows::RowKey`].
//! 2. The command that measures writes the sources of each cell into `sources.csv`, beside its CSV
//!    file. A line has the name of a list of files, which cargo reports, and a hash over their
//!    contents, the build settings and the tools ([`tree::Tree::hash`]).
//! 3. A row is out of date if its cell has no such line, or if the hash is different now. This is
//!    found without a build.
//! 4. Rows of real time are statistics. They have the same hash, and count for a release only.
//!
//! | module | content |
//! |---|---|
//! | [`list`] | the files that an image or a program was built from |
//! | [`code`] | the part of a Rust file that counts |
//! | [`policies`] | the files that have the code of one policy only |
//! | [`tree`] | the hash of a list now |
//! | [`made`] | the list and the hash of a measurement that this program did not boot |
//! | [`rows`] | the published files: the cells of their rows, and the commands that make them |
//! | [`ledger`] | `sources.csv` and the lists |
//! | [`publish`] | writes a published file and the sources of its cells |
//! | [`mod@stale`] | `schedlab stale` |

mod code;
mod ledger;
mod list;
mod made;
mod policies;
mod publish;
mod rows;
mod stale;
mod tree;

pub use list::{Made, SourceList};
pub use made::{made_beside, made_by_model};
pub use publish::{is_published, write_rows, write_whole};
pub use rows::RowKey;
pub use stale::{stale, up_to_date};
pub use tree::{Tree, tools};
