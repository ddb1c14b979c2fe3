//! Tables as text for a terminal, as Markdown for documents, as CSV for programs.

use std::{fmt::Write, ops::Range};

use anyhow::Result;

use crate::{
    grid::{self, TERMINAL},
    output::count,
    spread::Spread,
};

use super::{
    chart::charts,
    table::{AVERAGE, Row, Table},
};

/// The text of a cell without a result.
const MISSING: &str = "-";

const LEGEND: &str = "\
Turnaround is from a task's submission to its end.
Average and makespan are in ms. Jain's index: 1 is even. avg/SRPT is the average
turnaround over the least that any scheduler could reach at no cost. outside: CPU time
outside the tasks (main, gc, the rest), in % of CPUs x makespan, without idle time.";

const RANGES: &str = "\
Each cell was run at several phases of the timer tick: figures are means over them.
± %: how far the average of any of them is from the mean at most. ~: rows that share a
letter have ranges of the average that overlap, so there is no order between them.";

const BOOTS: &str = "\
Each cell was booted several times in real time, in which no two boots are the same: figures
are medians over the boots, least and most those of the average. The cells of an app and
architecture took turns. ~: rows that share a letter have averages whose quartiles overlap, so
the middle half of the boots of one is not ahead of that of the other. Not their ranges: the
host spoils a boot here and there, and with enough boots all ranges would overlap.";

const STALE: &str =
    "note: not all of these cells were made from the same sources; run the matrix again";

/// Returns the lines below a table.
fn notes(table: &Table) -> Vec<String> {
    let mut notes = Vec::new();
    if table.mixed {
        notes.push(STALE.to_owned());
    }
    let (fewest, most) = (table.boots.start(), table.boots.end());
    if fewest < most {
        let boots = match table.is_real() {
            true => format!("booted {fewest} to {most} times"),
            false => format!("run at {fewest} to {most} tick phases"),
        };
        notes.push(format!(
            "note: rows were {boots}; with fewer a range is too narrow"
        ));
    } else if table.is_real() && table.has_ranges() {
        notes.push(format!(
            "{most} boots in real time: the median, the least and the most"
        ));
    }
    for row in &table.followed {
        notes.push(format!(
            "{}: the plan was followed to its end, by all planned tasks and no others, in {} of {}",
            row.label,
            row.whole,
            count(row.boots, "boot")
        ));
    }
    notes
}

/// A column of a printed table: a text for each row, and whether it is the best.
struct Printed {
    title: String,
    cells: Vec<(String, bool)>,
}

/// Returns all columns but the first. If there are ranges, the average has several columns.
fn columns(table: &Table) -> Vec<Printed> {
    let mut columns = Vec::new();
    let mut push = |title: &str, cells: Vec<(String, bool)>| {
        let title = title.to_owned();
        columns.push(Printed { title, cells });
    };
    for (i, column) in table.columns.iter().enumerate() {
        let number = |value: f64| format!("{value:.*}", column.decimals);
        let cells = |of: &dyn Fn(Spread) -> Option<String>, is_best: &dyn Fn(&Row) -> bool| {
            let cell = |row: &Row| {
                let text = row.values[i].and_then(of);
                (text.unwrap_or_else(|| MISSING.to_owned()), is_best(row))
            };
            table.rows.iter().map(cell).collect()
        };
        let middle = |value: Spread| Some(number(value.middle()));
        let is_best = |row: &Row| table.is_best(row, i);
        push(&column.title, cells(&middle, &is_best));
        if column.title != AVERAGE || !table.has_ranges() {
            continue;
        }
        let plain = |of: &dyn Fn(Spread) -> Option<String>| cells(of, &|_| false);
        if table.is_real() {
            push("least", plain(&|value| Some(number(value.least))));
            push("most", plain(&|value| Some(number(value.most))));
        } else {
            let percent = |value: Spread| Some(format!("{:.2}", value.deviation_percent()?));
            push("± %", plain(&percent));
        }
        let letters = table.letters().into_iter();
        push("~", letters.map(|letters| (letters, false)).collect());
    }
    columns
}

/// Returns the legend of all tables.
fn legend(tables: &[Table]) -> String {
    let mut legend = LEGEND.to_owned();
    let ranges = || tables.iter().filter(|table| table.has_ranges());
    for (text, is_real) in [(RANGES, false), (BOOTS, true)] {
        if ranges().any(|table| table.is_real() == is_real) {
            legend += &format!("\n{text}");
        }
    }
    legend
}

/// Returns tables for a terminal with aligned columns; `*` marks the best of a column.
pub fn text(tables: &[Table]) -> String {
    let mut out = String::new();
    for table in tables {
        let (app, arch) = (&table.app, &table.arch);
        let _ = writeln!(
            out,
            "{app} on {arch}: {} ({})\n",
            table.task_title,
            table.setting()
        );
        let columns = marked(table);
        for (i, part) in parts(table, &columns).into_iter().enumerate() {
            if i > 0 {
                out.push('\n');
            }
            for line in part_text(table, &columns[part]).lines() {
                let _ = writeln!(out, " {line}");
            }
        }
        for note in notes(table) {
            let _ = writeln!(out, "{note}");
        }
        out.push('\n');
    }
    let _ = writeln!(out, "* the best of its column. {}\n", legend(tables));
    out
}

/// Returns the texts of each column, its title first, with `*` behind the best.
fn marked(table: &Table) -> Vec<Vec<String>> {
    let mark = |(text, best): (String, bool)| text + if best { "*" } else { " " };
    let marked = |column: Printed| {
        let title = std::iter::once((column.title, false));
        title.chain(column.cells).map(mark).collect()
    };
    columns(table).into_iter().map(marked).collect()
}

/// Returns the columns that are printed side by side: all if a terminal is wide enough, or else
/// as many tasks as fit, and the totals together.
fn parts(table: &Table, columns: &[Vec<String>]) -> Vec<Range<usize>> {
    let wide = |texts: &mut dyn Iterator<Item = &str>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let labels = table.rows.iter().map(|row| row.label.as_str());
    // Beside the label are two blanks, and one begins the line.
    let label = 3 + wide(&mut labels.chain([SCHEDULER]));
    let columns: Vec<_> = columns
        .iter()
        .map(|column| 1 + wide(&mut column.iter().map(String::as_str)))
        .collect();
    if label + columns.iter().sum::<usize>() <= TERMINAL {
        return std::iter::once(0..columns.len()).collect();
    }
    let mut parts = Vec::new();
    let (mut from, mut used) = (0, label);
    for (column, wide) in columns.iter().enumerate() {
        if column > from && (column == table.tasks || used + wide > TERMINAL) {
            parts.push(from..column);
            (from, used) = (column, label);
        }
        used += wide;
    }
    parts.push(from..columns.len());
    parts
}

const SCHEDULER: &str = "scheduler";

/// Returns these columns of a table behind the names of the schedulers.
fn part_text(table: &Table, columns: &[Vec<String>]) -> String {
    let titles = columns.iter().map(|column| format!(">{}", column[0]));
    let titles: Vec<_> = std::iter::once(SCHEDULER.to_owned())
        .chain(titles)
        .collect();
    let rows = (1..).zip(&table.rows).map(|(i, row)| {
        let cells = columns.iter().map(|column| &column[i]);
        std::iter::once(&row.label).chain(cells).collect::<Vec<_>>()
    });
    grid::text(&titles, rows, grid::TIGHT)
}

/// Returns a section for each table and its charts, which are files beside the page. Bold marks the
/// best of a column.
pub fn markdown(tables: &[Table]) -> Result<String> {
    let mut out = format!(
        "Bold: the best of its column. {}\n\n",
        legend(tables).replace('\n', " ")
    );
    for table in tables {
        writeln!(out, "## {} on {}\n", table.app, table.arch)?;
        let (title, setting) = (table.task_title, table.setting());
        writeln!(out, "Columns of tasks: {title}. {setting}.\n")?;
        let columns = columns(table);
        let titles = columns.iter().map(|column| column.title.as_str());
        let titles: Vec<_> = std::iter::once(SCHEDULER).chain(titles).collect();
        let rows = table.rows.iter().enumerate().map(|(i, row)| {
            let cells = columns.iter().map(|column| match &column.cells[i] {
                (text, true) => format!("**{text}**"),
                (text, false) => text.clone(),
            });
            std::iter::once(row.label.clone()).chain(cells).collect()
        });
        writeln!(out, "{}", grid::markdown(&titles, rows))?;
        for note in notes(table) {
            writeln!(out, "{note}\n")?;
        }
        for chart in charts(table) {
            let (title, subtitle, name) = (&chart.title, &chart.subtitle, &chart.name);
            writeln!(out, "![{title}: {subtitle}]({name}.svg)\n")?;
        }
    }
    Ok(out)
}

/// The kinds of a line: of a task, or of a whole run.
pub const TASK: &str = "task";
pub const TOTAL: &str = "total";

/// Digits behind the point, at least, of what is no whole number.
const CSV_DECIMALS: usize = 3;

/// Returns a line for each value, so that the tasks of an app add no columns. A missing value is
/// empty. In real time there are quartiles, and the number of boots instead of tick phases.
pub fn csv(tables: &[Table]) -> Result<String> {
    lines(tables, |_| true)
}

/// Returns the lines of [`csv()`] with figures of whole runs.
pub fn totals(tables: &[Table]) -> Result<String> {
    lines(tables, |kind| kind == TOTAL)
}

fn lines(tables: &[Table], is_wanted: impl Fn(&str) -> bool) -> Result<String> {
    let cell = [
        "arch",
        "app",
        "smp",
        "timing",
        "scale",
        "scheduler",
        "kind",
        "figure",
        "unit",
    ];
    // The tables of one call have one setting; otherwise only the columns of all are left.
    let real = !tables.is_empty() && tables.iter().all(Table::is_real);
    let columns: &[&str] = match real {
        true => &Spread::BOOTS_CSV_COLUMNS,
        false => &Spread::CSV_COLUMNS,
    };
    let mut rows = Vec::new();
    for table in tables {
        for row in &table.rows {
            for (i, column) in table.columns.iter().enumerate() {
                let kind = if i < table.tasks { TASK } else { TOTAL };
                if !is_wanted(kind) {
                    continue;
                }
                // More digits than in the tables, as ranges are computed from these.
                let decimals = match column.decimals {
                    0 => 0,
                    shown => shown.max(CSV_DECIMALS),
                };
                let mut line = vec![
                    table.arch.clone(),
                    table.app.clone(),
                    table.smp.to_string(),
                    table.timing.clone(),
                    table.scale.to_string(),
                    row.label.clone(),
                    kind.to_owned(),
                    column.title.clone(),
                    column.unit.to_owned(),
                ];
                match row.values[i] {
                    None => line.resize(cell.len() + columns.len(), String::new()),
                    Some(value) if real => line.extend(value.boots_csv_fields(decimals)),
                    Some(value) => line.extend(value.csv_fields(decimals)),
                }
                rows.push(line);
            }
        }
    }
    grid::csv(cell.iter().chain(columns), rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::table::tests::{many_tasks, samples};
    use crate::testing::assert_golden;

    #[test]
    fn table_fits_a_terminal_and_has_its_totals_together() {
        for tasks in [1, 2, 4, 5, 6, 8, 12, 17, 32, 100] {
            let table = many_tasks(tasks);
            let all = text(std::slice::from_ref(&table));
            for line in all.lines() {
                assert!(line.chars().count() <= TERMINAL, "{tasks}: {line}");
            }
            let titles: Vec<_> = all
                .lines()
                .filter_map(|line| line.trim().strip_prefix(SCHEDULER))
                .collect();
            let words = titles.iter().flat_map(|title| title.split_whitespace());
            assert_eq!(words.count(), table.columns.len(), "{titles:?}");
            let totals = "average  makespan  switches      Jain  avg/SRPT  outside";
            assert!(titles.last().unwrap().ends_with(totals), "{titles:?}");
            // Each part is as wide as can be.
            if let [.., one, two, _] = &titles[..] {
                assert!(one.len() >= TERMINAL - 30, "{one}, then {two}");
            }
        }
    }

    #[test]
    fn tables_are_text_markdown_and_csv() {
        for (name, tables) in samples() {
            let all = [
                text(&tables),
                markdown(&tables).unwrap(),
                csv(&tables).unwrap(),
            ];
            assert_golden(&format!("tables/{name}"), all.join("\n"));
        }
    }
}
