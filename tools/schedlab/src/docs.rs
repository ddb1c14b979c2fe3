//! `schedlab docs`: writes the tables of Markdown pages from the CSV files that the pages name, or
//! names the lines that differ.
//!
//! A page marks its tables with HTML comments, which a reader does not see. The rest of a comment
//! is JSON. A key that is no word of the mark is a column of the CSV file, and its value selects
//! the lines.
//!
//! ```text
//! <!-- given {"csv": "results/tables.csv", "app": "realtime"} -->
//! <!-- table {"figure": "average", "title": "ms", "rows": "scheduler", "columns": "arch"} -->
//! | ms | x86_64 |
//! |---|--:|
//! | rr | 1,683.9 |
//! <!-- end -->
//! ```
//!
//! 1. `given` applies to all marks below it, until the next `given`. A file of boots in real time
//!    has a column `median`. A table shows it with the least and the most, as in
//!    `310.6 (285.7 to 322.2)`.
//! 2. Between `table` and `end` is exactly the table of the CSV file ([`mark`] has the words). A
//!    column may name a file of its own.
//! 3. A table without a mark has no figures with a point or a comma, unless `<!-- by hand: … -->`
//!    above it names their origin.
//!
//! | module | content |
//! |---|---|
//! | [`page`] | finds the marks in a page and compares the tables |
//! | [`mark`] | makes the table of a mark |
//! | [`data`] | reads the CSV files |

mod data;
mod mark;
mod page;

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

use crate::{
    Verdict,
    cli::DocsArgs,
    output::{count, print_line},
    store::write,
};
use data::Files;
pub use data::{Data, Filter};

pub fn docs(args: &DocsArgs) -> Result<Verdict> {
    let mut files = Files::default();
    let (mut marks, mut wrong) = (0, 0);
    for path in &args.pages {
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let page = page::Page::read(&text, folder, &mut files)
            .map_err(|e| e.context(path.display().to_string()))?;
        // A page that has lost its marks would never differ.
        if page.marks == 0 {
            bail!("{}: expected marked tables, found none", path.display());
        }
        marks += page.marks;
        if args.check {
            for difference in &page.differences {
                print_line(format_args!("{}:{difference}", path.display()))?;
            }
            wrong += page.differences.len();
        } else {
            for difference in page.unmarked() {
                print_line(format_args!("{}:{difference}", path.display()))?;
                wrong += 1;
            }
            if page.text != text {
                write(path, &page.text)?;
                print_line(format_args!("written: {}", path.display()))?;
            }
        }
    }
    if wrong == 0 {
        print_line(format_args!(
            "{}, all as the CSV files have them",
            count(marks, "marked table")
        ))?;
        return Ok(Verdict::Good);
    }
    let are = if wrong == 1 { "is" } else { "are" };
    print_line(format_args!(
        "{} {are} not as the CSV files have them",
        count(wrong, "line")
    ))?;
    Ok(Verdict::Bad)
}
