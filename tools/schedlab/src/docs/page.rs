//! Finding the marks in a page, and comparing what stands in them.

use std::{fmt, path::Path};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Map, Value};

use super::{data::Files, mark::Table};

const OPEN: &str = "<!--";
const CLOSE: &str = "-->";
const END: &str = "<!-- end -->";

/// A line that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Its number in the page, counted from 1.
    line: usize,
    kind: Kind,
    expected: String,
    found: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Not what the CSV file says.
    Other,
    /// A figure that no CSV file is named for.
    Unmarked,
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
    /// How many tables are marked.
    pub marks: usize,
    pub differences: Vec<Difference>,
}

/// A comment of the page: its first word, the rest, and where it is.
struct Comment<'a> {
    word: &'a str,
    rest: &'a str,
    begin: usize,
    end: usize,
}

impl Page {
    /// Of a page in this folder. An error names the line of a mark that is wrong itself.
    pub fn read(text: &str, folder: &Path, files: &mut Files) -> Result<Self> {
        let mut page = Self {
            text: String::new(),
            marks: 0,
            differences: Vec::new(),
        };
        // The lines that people wrote: marked tables are blanked.
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
            // A comment of many lines must not move what is below it.
            by_people += &"\n".repeat(text[comment.begin..comment.end].matches('\n').count());
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

    /// Figures in tables that no CSV file is named for: those cannot be written anew.
    pub fn unmarked(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|d| d.kind == Kind::Unmarked)
    }
}

/// The next comment from a place on.
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

/// What stands before the end of a mark; another mark must not begin before that.
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

/// As many lines, with nothing in them.
fn blank(text: &str) -> String {
    "\n".repeat(text.matches('\n').count())
}

/// Line by line; `first` is the line where both begin.
fn differences(first: usize, expected: &str, found: &str) -> Vec<Difference> {
    let (expected, found): (Vec<_>, Vec<_>) =
        (expected.split('\n').collect(), found.split('\n').collect());
    let quote = |line: Option<&&str>| line.map_or("nothing".to_owned(), |line| format!("`{line}`"));
    (0..expected.len().max(found.len()))
        .filter(|i| expected.get(*i) != found.get(*i))
        .map(|i| Difference {
            line: first + i,
            kind: Kind::Other,
            expected: quote(expected.get(i)),
            found: quote(found.get(i)),
        })
        .collect()
}

/// Figures in the rows of tables that are not marked.
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
                kind: Kind::Unmarked,
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
    use crate::testing::assert_has;

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

    const GIVEN: &str = "<!-- given {\"csv\": \"t.csv\", \"figure\": \"average\"} -->\n";

    fn read(text: &str) -> Result<Page> {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("t.csv"), CSV).unwrap();
        Page::read(text, folder.path(), &mut Files::default())
    }

    fn shown(text: &str) -> Vec<String> {
        read(text)
            .unwrap()
            .differences
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    fn fails(text: &str) -> String {
        format!("{:#}", read(text).err().unwrap())
    }

    fn table(words: &str) -> String {
        let text = format!("{GIVEN}<!-- table {words} -->\n<!-- end -->\n");
        let page = read(&text).unwrap().text;
        let table = page.split("-->\n").nth(2).unwrap();
        table
            .strip_suffix("<!-- end -->\n")
            .unwrap_or(table)
            .replace("<!-- end ", "")
    }

    #[test]
    fn a_table_is_made_of_the_lines_that_fit() {
        assert_eq!(
            table(
                r#"{"title": "ms", "rows": "scheduler", "columns": "arch", "decimals": 1, "compare": "rows", "bold": ["sjf"]}"#
            ),
            "\
| ms | x86_64 | riscv64 |
|---|--:|--:|
| rr | 1,684.0 ±0.06 % | 1,722.4 |
| cfs | 820.0 ±1.22 % <sup>a</sup> | 932.3 |
| **sjf** | **825.0 ±1.21 %** <sup>a</sup> | - |
"
        );
        assert_eq!(
            table(
                r#"{"title": "", "rows": [{"title": "`sched_rr`", "scheduler": "rr"}], "arch": "x86_64", "show": "mean",
                "columns": [{"title": "average", "decimals": 3}, {"title": "switches", "figure": "switches"}]}"#
            ),
            "\
|  | average | switches |
|---|--:|--:|
| `sched_rr` | 1,684.000 | 550,056 |
"
        );
    }

    #[test]
    fn of_boots_in_real_time_the_median_and_its_range_are_shown() {
        let folder = tempfile::tempdir().unwrap();
        let csv = "\
scheduler,figure,value,min,q1,median,q3,max,mean,boots
pbg,average,310.64,285.71,300.00,310.64,480.00,1322.20,306.18,3
sjf,average,489.84,459.31,475.00,489.84,491.00,492.32,480.49,3
rr,average,700.00,700.00,700.00,700.00,700.00,700.00,700.00,1
";
        fs::write(folder.path().join("b.csv"), csv).unwrap();
        fs::write(folder.path().join("t.csv"), CSV).unwrap();
        let given = "<!-- given {\"csv\": \"b.csv\", \"figure\": \"average\"} -->\n";
        let made = |text: &str| Page::read(text, folder.path(), &mut Files::default());
        let table = r#"{"title": "ms", "rows": "scheduler", "decimals": 1, "compare": "rows",
            "columns": [{"title": "median"}, {"title": "mean", "show": "mean"}]}"#;
        let page = made(&format!("{given}<!-- table {table} -->\n<!-- end -->\n"));
        let rows = "\
| pbg | 310.6 (285.7 to 1,322.2) <sup>a</sup> | 306.2 <sup>a</sup> |
| sjf | 489.8 (459.3 to 492.3) <sup>a</sup> | 480.5 <sup>a</sup> |
| rr | 700.0 | 700.0 |
";
        let page = page.unwrap().text;
        assert_has(&page, rows);
    }

    #[test]
    fn what_is_right_stays_and_what_is_not_is_named_with_its_line() {
        let words = r#"{"title": "ms", "rows": "scheduler", "columns": "arch"}"#;
        let made = read(&format!("{GIVEN}\n<!-- table {words} -->\n<!-- end -->\n")).unwrap();
        assert_eq!(made.marks, 1);
        let again = read(&made.text).unwrap();
        assert_eq!((again.text, again.differences), (made.text.clone(), vec![]));
        assert_eq!(
            shown(&made.text.replace("932.3", "932.4")),
            [
                "7: expected `| cfs | 820.000 ±1.22 % | 932.3 |`, found `| cfs | 820.000 ±1.22 % | 932.4 |`"
            ]
        );
        let shorter: String = made
            .text
            .lines()
            .filter(|l| !l.starts_with("| sjf"))
            .map(|l| format!("{l}\n"))
            .collect();
        assert_eq!(
            shown(&shorter).len(),
            2,
            "a row is gone, and all that is below has moved"
        );
    }

    #[test]
    fn a_figure_in_a_table_that_is_not_marked_is_named() {
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
In prose 1.5 may stand.
";
        assert_eq!(
            shown(text),
            [
                "5: expected a figure of a table to be marked with its CSV file, found `1,683.9`",
                "12: expected a figure of a table to be marked with its CSV file, found `702.8`"
            ]
        );
    }

    #[test]
    fn a_mark_that_is_wrong_itself_is_refused_with_its_line() {
        let table = |words: &str| format!("{GIVEN}<!-- table {{{words}}} -->\n<!-- end -->");
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
            let found = fails(&text);
            assert_has(&found, expected);
        }
    }
}
