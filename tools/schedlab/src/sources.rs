//! The sources of the rows of the published tables, and which of them are out of date.
//!
//! 1. A row belongs to a cell of a matrix, whatever it says of it: [`rows::RowKey`].
//! 2. The command that measures writes into `sources.csv`, beside its CSV file, what the cell
//!    was built from: the name of a list of files, which cargo told, and a hash over their
//!    contents, what else decides what is built, and the tools ([`tree::Tree::hash`]).
//! 3. A row is out of date if its cell has no such line, or if the hash is another one today.
//!    Nothing is built to find out.
//! 4. Rows of real time are statistics. They have the same hash, and count for a release only.
//!
//! | module | its business |
//! |---|---|
//! | [`list`] | the files that something was built from |
//! | [`code`] | the part of a Rust file that counts |
//! | [`tree`] | their hash, as the tree is now |
//! | [`made`] | both, of what was not booted by this program |
//! | [`rows`] | the published files: the cells of their rows, and the commands that make them |
//! | [`ledger`] | `sources.csv` and the lists |
//! | [`publish`] | writing a published file, with what its cells were made from |
//! | [`stale`] | `schedlab stale` |

mod code;
mod ledger;
mod list;
mod made;
mod publish;
mod rows;
mod stale;
mod tree;

pub use list::{Made, SourceList};
pub use made::{made_beside, made_by_model};
pub use publish::{is_published, write_rows, write_whole};
pub use rows::RowKey;
pub use stale::stale;
pub use tree::{Tree, tools};
