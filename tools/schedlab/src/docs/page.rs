//! Finds the marks in a page, and compares the tables in them.

use std::{fmt, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};

use super::{data::Files, mark::Table};

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
const END: &str = "<!-- end -->";

/// A wrong line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The number of the line, counted from 1.
    line: usize,
    /// True if the line has a figure of a table without a mark, which cannot be written.
    is_unmarked: bool,
    expected: String,
    found: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            expected,
            found,
            ..
        } = self;
        write!(f, "{line}: expected {expected}, found {found}")
    }
}

pub struct Page {
    /// The page as it should be.
    pub text: String,
    /// The number of marked tables.
    pub marks: usize,
    pub differences: Vec<Difference>,
}

/// A comment of the page: its first word, the rest, and its place.
struct Comment<'a> {
    word: &'a str,
    rest: &'a str,
    begin: usize,
    end: usize,
}

impl Page {
    /// Reads a page in this folder.
    ///
    /// # Errors
    /// Returns an error with the line number if a mark is wrong.
    pub fn read(text: &str, folder: &Path, files: &mut Files) -> Result<Self> {
        let mut page = Self {
            text: String::new(),
            marks: 0,
            differences: Vec::new(),
        };
        // The page without comments and marked tables, whose lines are empty.
        let mut by_people = String::new();
        let mut given = Map::new();
        let mut place = 0;
        while let Some(comment) = next(text, place)? {
            let line = line_of(text, comment.begin);
            let at_line = || format!("line {line}: {}", comment.word);
            let before = &text[place..comment.begin];
            page.text += before;
            page.text += &text[comment.begin..comment.end];
            by_people += before;
            by_people += &blank(&text[comment.begin..comment.end]);
            place = comment.end;
            match comment.word {
                "given" => given = words(comment.rest).with_context(at_line)?,
                "by" if comment.rest.starts_with("hand:") => {
                    let until = text[place..].find("\n\n").map_or(text.len(), |i| place + i);
                    page.text += &text[place..until];
                    by_people += &blank(&text[place..until]);
                    place = until;
                }
                "table" => {
                    let mut all = given.clone();
                    all.extend(words(comment.rest).with_context(at_line)?);
                    let found = until_end(text, place).with_context(at_line)?;
                    let table: Table = serde_json::from_value(Value::Object(all))
                        .map_err(|e| anyhow!("expected other words: {e}"))
                        .with_context(at_line)?;
                    let lines = table.lines(folder, files).with_context(at_line)?;
                    let expected = format!("\n{}\n", lines.join("\n"));
                    let first = line_of(text, place);
                    page.differences
                        .extend(differences(first, &expected, found));
                    page.marks += 1;
                    page.text += &expected;
                    by_people += &blank(found);
                    place += found.len();
                }
                _ => {}
            }
        }
        page.text += &text[place..];
        by_people += &text[place..];
        page.differences.extend(unmarked(&by_people));
        page.differences.sort_by_key(|difference| difference.line);
        Ok(page)
    }

    /// Returns the figures of tables without a mark.
    pub fn unmarked(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|d| d.is_unmarked)
    }
}

/// Returns the next comment at or behind a place.
fn next(text: &str, place: usize) -> Result<Option<Comment<'_>>> {
    let Some(begin) = text[place..].find(OPEN).map(|i| place + i) else {
        return Ok(None);
    };
    let inner = begin + OPEN.len();
    let Some(length) = text[inner..].find(CLOSE) else {
        bail!(
            "line {}: expected `{CLOSE}`, found none",
            line_of(text, begin)
        );
    };
    let body = text[inner..inner + length].trim();
    let (word, rest) = body.split_once(char::is_whitespace).unwrap_or((body, ""));
    Ok(Some(Comment {
        word,
        rest,
        begin,
        end: inner + length + CLOSE.len(),
    }))
}

/// Returns the text before the end of a mark. Another comment must not begin before that.
fn until_end(text: &str, place: usize) -> Result<&str> {
    let end = text[place..].find(END);
    let other = text[place..].find(OPEN);
    match end {
        Some(end) if other == Some(end) => Ok(&text[place..place + end]),
        _ => bail!("expected `{END}` before the next comment, found none"),
    }
}

fn words(json: &str) -> Result<Map<String, Value>> {
    serde_json::from_str(json)
        .map_err(|e| anyhow!("expected the words of a mark as JSON, found {e}"))
}

fn line_of(text: &str, place: usize) -> usize {
    text[..place].matches('\n').count() + 1
}

/// Returns as many empty lines.
fn blank(text: &str) -> String {
    "\n".repeat(text.matches('\n').count())
}

/// Compares two texts line by line; `first` is the number of their first line.
fn differences(first: usize, expected: &str, found: &str) -> Vec<Difference> {
    let (expected, found): (Vec<_>, Vec<_>) =
        (expected.split('\n').collect(), found.split('\n').collect());
    let quote = |line: Option<&&str>| line.map_or("nothing".to_owned(), |line| format!("`{line}`"));
    (0..expected.len().max(found.len()))
        .filter(|i| expected.get(*i) != found.get(*i))
        .map(|i| Difference {
            line: first + i,
            is_unmarked: false,
            expected: quote(expected.get(i)),
            found: quote(found.get(i)),
        })
        .collect()
}

/// Returns the figures in the rows of tables without a mark.
fn unmarked(text: &str) -> Vec<Difference> {
    let figure = |line: &str| {
        line.split(|c: char| !(c.is_ascii_digit() || c == '.' || c == ','))
            .map(|word| word.trim_matches(['.', ',']))
            .find(|word| word.contains(['.', ',']) && word.replace(',', "").parse::<f64>().is_ok())
            .map(str::to_owned)
    };
    (1..)
        .zip(text.lines())
        .filter(|(_, line)| line.starts_with('|'))
        .filter_map(|(number, line)| {
            Some(Difference {
                line: number,
                is_unmarked: true,
                expected: "a figure of a table to be marked with its CSV file".into(),
                found: format!("`{}`", figure(line)?),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::testing::{assert_golden, assert_has};

    const CSV: &str = "\
arch,scheduler,figure,value,min,mean,max,phases
x86_64,rr,average,1683.866,1683.000,1684.000,1685.000,8
x86_64,cfs,average,818.200,810.000,820.000,830.000,8
x86_64,sjf,average,825.000,815.000,825.000,835.000,8
riscv64,rr,average,1722.4,1722.4,1722.4,1722.4,1
riscv64,cfs,average,932.3,932.3,932.3,932.3,1
riscv64,sjf,average,,,,,
x86_64,rr,switches,550056,550056,550056,550056,8
";

    const BOOTS: &str = "\
scheduler,figure,value,min,q1,median,q3,max,mean,boots
pbg,average,310.64,285.71,300.00,310.64,480.00,1322.20,306.18,3
sjf,average,489.84,459.31,475.00,489.84,491.00,492.32,480.49,3
rr,average,700.00,700.00,700.00,700.00,700.00,700.00,700.00,1
";

    const GIVEN: &str = "<!-- given {\"csv\": \"t.csv\", \"figure\": \"average\"} -->\n";

    fn read(text: &str) -> Result<Page> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("t.csv"), CSV).unwrap();
        fs::write(folder.path().join("boots.csv"), BOOTS).unwrap();
        Page::read(text, folder.path(), &mut Files::default())
    }

    fn table(words: &str) -> String {
        format!("{GIVEN}<!-- table {{{words}}} -->\n<!-- end -->\n")
    }

    #[test]
    fn table_has_the_selected_lines() {
        let page = [
            r#""title": "ms", "rows": "scheduler", "columns": "arch", "decimals": 1, "compare": "rows", "bold": ["sjf"]"#,
            r#""title": "", "rows": [{"title": "`sched_rr`", "scheduler": "rr"}], "arch": "x86_64", "show": "mean",
                "columns": [{"title": "average", "decimals": 3}, {"title": "switches", "figure": "switches"}]"#,
            r#""title": "columns", "rows": [{"title": "x86_64"}], "arch": "x86_64", "columns": "scheduler", "compare": "columns""#,
            r#""csv": "boots.csv", "title": "ms", "rows": "scheduler", "decimals": 1, "compare": "rows",
                "columns": [{"title": "median"}, {"title": "mean", "show": "mean"}]"#,
            r#""csv": "boots.csv", "title": "two files", "rows": [{"title": "rr", "scheduler": "rr"}],
                "columns": [{"title": "boots"}, {"title": "phases", "csv": "t.csv", "arch": "x86_64"}]"#,
        ];
        let made = read(&page.map(table).join("\n")).unwrap();
        assert_eq!(made.marks, 5);
        assert_golden("docs/page", &made.text);
        let again = read(&made.text).unwrap();
        assert_eq!((again.text, again.differences), (made.text.clone(), vec![]));
        // A missing row moves the lines below it.
        let lines = made
            .text
            .lines()
            .filter(|line| !line.starts_with("| **sjf"));
        let shorter: String = lines.map(|line| format!("{line}\n")).collect();
        let differences = read(&shorter).unwrap().differences;
        assert_eq!(differences.len(), 2, "{differences:?}");
    }

    #[test]
    fn figure_in_a_table_without_a_mark_is_named() {
        let text = "\
# Page

| scheduler | ms |
|---|--:|
| rr | 1,683.9 |
| cfs | 5 ticks (50 ms), version 0.3.1 |

<!-- by hand: the report's -->
| fifo | 2,719 |
| rr | 0.95 |

| sjf | 702.8 |
In prose 1.5 is allowed.
";
        let page = read(text).unwrap();
        let found: Vec<_> = page.unmarked().map(ToString::to_string).collect();
        let line = |line: &str, figure: &str| {
            format!(
                "{line}: expected a figure of a table to be marked with its CSV file, found `{figure}`"
            )
        };
        assert_eq!(found, [line("5", "1,683.9"), line("12", "702.8")]);
    }

    #[test]
    fn wrong_mark_is_refused_with_its_line() {
        let rows = r#""title": "", "rows": "scheduler", "columns": "arch""#;
        for (text, expected) in [
            (
                table("nonsense"),
                "line 2: table: expected the words of a mark as JSON, found key must be a string",
            ),
            (
                table(&format!("{rows}, \"csv\": \"none.csv\"")),
                "none.csv: No such file",
            ),
            (
                table(rows).replace("<!-- end -->", "<!-- table {} --><!-- end -->"),
                "line 2: table: expected `<!-- end -->` before the next comment, found none",
            ),
            (
                table(r#""title": "", "rows": [{"title": "rr"}], "columns": "arch""#),
                "expected one line with arch x86_64, figure average, found 3",
            ),
            (
                table(&format!("{rows}, \"colour\": \"red\"")),
                "expected some of arch scheduler figure value min mean max phases, found `colour`",
            ),
            (
                table(r#""rows": "scheduler", "columns": "arch""#),
                "line 2: table: expected other words: missing field `title`",
            ),
            ("a <!-- table".into(), "line 1: expected `-->`, found none"),
        ] {
            let error = read(&text).err().unwrap();
            assert_has(format!("{error:#}"), expected);
        }
    }
}
