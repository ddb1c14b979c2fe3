//! `schedlab docs`: the tables of Markdown pages are those of the CSV files that
//! the pages name. It writes them, or says where a page says something else.
//!
//! A page marks its tables with HTML comments, which a reader does not see; their
//! words are JSON. A key that is no word of the mark is a column of the CSV file, and
//! its value what must stand there.
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
//! 1. `given` holds for all marks below it, until the next. A file of boots in real time has
//!    a column `median`: a table shows that, with the least and the most behind it:
//!    `310.6 (285.7 to 322.2)`.
//! 2. Between `table` and `end` stands what the CSV file says, and nothing
//!    else ([`mark`] has their words).
//! 3. A table that is not marked has no figures with a point or a comma in it, unless
//!    `<!-- by hand: … -->` above it says where they are from.
//!
//! | module | its business |
//! |---|---|
//! | [`page`] | finding the marks in a page, and what stands in them |
//! | [`mark`] | from a mark's words to the text that must stand there |
//! | [`data`] | the CSV files |

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
        // A page that has lost its marks would be right for ever.
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
    print_line(format_args!(
        "{wrong} line{} not as the CSV files have them",
        if wrong == 1 { " is" } else { "s are" }
    ))?;
    Ok(Verdict::Bad)
}
