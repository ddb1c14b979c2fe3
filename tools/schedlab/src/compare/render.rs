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

/// What stands where there is no result.
const MISSING: &str = "-";

const LEGEND: &str = "\
Turnaround is from a task's submission to its end.
Average and makespan are in ms. Jain's index: 1 is even. avg/SRPT is the average
turnaround over the least that any scheduler could reach at no cost. outside: CPU time
that is no task's (main, gc, the rest), in % of CPUs x makespan; idle time is not in it.";

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

/// What is said below a table that people should know of it.
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
    let without = table.without_account();
    if !without.is_empty() {
        notes.push(format!(
            "note: no account of the CPU time in the results of {}; run the matrix again",
            without.join(", ")
        ));
    }
    notes
}

/// A column of a printed table: a text for each row, and whether it is the best.
struct Printed {
    title: String,
    cells: Vec<(String, bool)>,
}

/// All columns but the first. Where there are ranges, the average has more of them.
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

/// The legend of all tables.
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

/// Aligned columns; `*` marks the best of a column.
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

/// The text of a column, its title first; `*` behind the best.
fn marked(table: &Table) -> Vec<Vec<String>> {
    let mark = |(text, best): (String, bool)| text + if best { "*" } else { " " };
    let marked = |column: Printed| {
        let title = std::iter::once((column.title, false));
        title.chain(column.cells).map(mark).collect()
    };
    columns(table).into_iter().map(marked).collect()
}

/// Which columns stand together: all, if a terminal is wide enough, or else as many tasks
/// as there is room for, and the totals by themselves.
fn parts(table: &Table, columns: &[Vec<String>]) -> Vec<Range<usize>> {
    let wide = |texts: &mut dyn Iterator<Item = &str>| {
        texts.map(|text| text.chars().count()).max().unwrap_or(0)
    };
    let labels = table.rows.iter().map(|row| row.label.as_str());
    // The blanks on either side of it, and the line's first.
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

/// These columns of a table, beside the schedulers' names.
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

/// A section for each table, bold marks the best of a column. Its charts follow it where they
/// are files beside it.
pub fn markdown(tables: &[Table], has_charts: bool) -> Result<String> {
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
        for chart in charts(table).iter().filter(|_| has_charts) {
            let (title, subtitle, name) = (&chart.title, &chart.subtitle, &chart.name);
            writeln!(out, "![{title}: {subtitle}]({name}.svg)\n")?;
        }
    }
    Ok(out)
}

/// The kind of a line of a whole run.
const TOTAL: &str = "total";

/// Digits behind the point, at least, of what is no whole number.
const CSV_DECIMALS: usize = 3;

/// One line for each value, so that apps with other tasks need no other columns.
/// A missing value is empty. Of real time there are the median and the number of boots instead
/// of that of tick phases.
pub fn csv(tables: &[Table]) -> Result<String> {
    lines(tables, |_| true)
}

/// Those of whole runs.
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
    // All tables of one call are of one setting; were they not, what all have is left.
    let real = !tables.is_empty() && tables.iter().all(Table::is_real);
    let columns: &[&str] = match real {
        true => &Spread::BOOTS_CSV_COLUMNS,
        false => &Spread::CSV_COLUMNS,
    };
    let mut rows = Vec::new();
    for table in tables {
        for row in &table.rows {
            for (i, column) in table.columns.iter().enumerate() {
                let kind = if i < table.tasks { "task" } else { TOTAL };
                if !is_wanted(kind) {
                    continue;
                }
                // More digits than people are shown: a range is made from these.
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
    use crate::compare::table::tests::{many_tasks, over_boots, over_tick_phases, realtime};
    use crate::testing::{assert_begins, assert_has, assert_lacks};

    #[test]
    fn a_table_fits_a_terminal_and_has_its_totals_together() {
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
            let words: Vec<_> = titles
                .iter()
                .flat_map(|title| title.split_whitespace())
                .collect();
            assert_eq!(
                words.len(),
                table.columns.len(),
                "each column once: {words:?}"
            );
            let totals = "average  makespan  switches      Jain  avg/SRPT  outside";
            assert!(
                titles.last().unwrap().ends_with(totals),
                "{tasks}: {titles:?}"
            );
            // As wide as can be.
            if let [.., one, two, _] = &titles[..] {
                assert!(one.len() >= TERMINAL - 30, "{one}, then {two}");
            }
        }
    }

    #[test]
    fn text_is_aligned_and_marks_the_best() {
        let text = text(&[realtime(true)]);
        let expected = "\
realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1)

  scheduler         long  short  average  makespan  switches      Jain  avg/SRPT  outside
 -----------------------------------------------------------------------------------------
  rr               6.000  0.000    3.000     3.000         7  0.500000    2.0000        -
  cfs                  -      -        -         -         -         -         -        -
  pbg              4.000* 0.000    2.000*    2.000*        7  0.500000    2.0000        -
  pbg (measuring)  5.000  0.000    2.500     2.500         7  0.500000    2.0000        -
  stock-rr         6.200  0.000    3.100     3.100         7  0.500000    2.0000        -
note: no account of the CPU time in the results of rr, pbg, pbg (measuring), stock-rr; run the matrix again

* the best of its column. ";
        assert_begins(&text, expected);
    }

    #[test]
    fn a_table_of_different_sources_says_so() {
        let mut table = realtime(false);
        assert_lacks(text(std::slice::from_ref(&table)), STALE);
        table.mixed = true;
        assert_has(text(std::slice::from_ref(&table)), STALE);
        assert!(markdown(&[table], false).unwrap().contains(STALE));
    }

    #[test]
    fn markdown_is_a_table_with_right_aligned_figures() {
        let text = markdown(&[realtime(false)], false).unwrap();
        let rows = "
| scheduler | long | short | average | makespan | switches | Jain | avg/SRPT | outside |
|---|---:|---:|---:|---:|---:|---:|---:|---:|
| rr | 6.000 | 0.000 | 3.000 | 3.000 | 7 | 0.500000 | 2.0000 | - |
| cfs | - | - | - | - | - | - | - | - |
| pbg | **4.000** | 0.000 | **2.000** | **2.000** | 7 | 0.500000 | 2.0000 | - |
| stock-rr | 6.200 | 0.000 | 3.100 | 3.100 | 7 | 0.500000 | 2.0000 | - |
";
        assert_has(&text, rows);
        assert_has(&text, "## realtime on x86_64\n");
    }

    #[test]
    fn csv_has_a_line_per_value() {
        let text = csv(&[realtime(false)]).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4 * 8);
        let long = ",task,long,ms";
        let one = "x86_64,realtime,1,icount,1";
        assert_eq!(
            lines[1],
            format!("{one},rr{long},6.000,6.000,6.000,6.000,1")
        );
        assert_eq!(lines[9], format!("{one},cfs{long},,,,,"));
        assert_eq!(
            lines[17],
            format!("{one},pbg{long},4.000,4.000,4.000,4.000,1")
        );
        assert_eq!(lines[21], format!("{one},pbg,total,switches,,7,7,7,7,1"));
    }

    #[test]
    fn over_several_tick_phases_the_average_has_its_range_and_letters() {
        let table = over_tick_phases();
        let all = text(std::slice::from_ref(&table));
        let expected = "\
realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1, 4 tick phases)

  scheduler     long  short  average   ± %  ~  makespan  switches      Jain  avg/SRPT  outside
 ----------------------------------------------------------------------------------------------
  rr         800.000  0.000  400.000  0.25      400.000         7  0.500000    2.0000     1.00
  cfs        410.000* 0.000  205.000* 2.44  a   205.000*        7  0.500000    2.0000     1.00
  sjf        420.000* 0.000  210.000* 0.95  a   210.000*        7  0.500000    2.0000     1.00
  mlfq       600.000  0.000  300.000  1.00      300.000         7  0.500000    2.0000     1.00

* the best of its column. ";
        assert_begins(&all, expected);
        assert_has(&all, "~: rows that share a\nletter have ranges");
        let all = markdown(std::slice::from_ref(&table), false).unwrap();
        for row in [
            "| scheduler | long | short | average | ± % | ~ | makespan |",
            "| sjf | **420.000** | 0.000 | **210.000** | 0.95 | a | **210.000** |",
        ] {
            assert_has(&all, row);
        }
        let all = csv(&[table]).unwrap();
        let row =
            "x86_64,realtime,1,icount,1,sjf,total,average,ms,208.000,208.000,210.000,212.000,4\n";
        assert_has(&all, row);
    }

    #[test]
    fn over_boots_in_real_time_the_average_is_the_median_with_the_least_and_the_most() {
        let table = over_boots();
        let all = text(std::slice::from_ref(&table));
        let expected = "\
realtime on x86_64: turnaround in ms (4 CPUs, real time, scale 1, 5 boots)

  scheduler     long  short
 ---------------------------
  rr         800.000  0.000
  sjf        600.000  0.000
  mlfq       604.000  0.000
  pbg        410.000* 0.000

  scheduler  average    least     most  ~  makespan  switches      Jain  avg/SRPT  outside
 ------------------------------------------------------------------------------------------
  rr         400.000  399.000  430.000      400.000         7  0.500000    2.0000        -
  sjf        300.000  297.000  398.000  a   300.000         7  0.500000    2.0000        -
  mlfq       302.000  301.000  400.000  a   302.000         7  0.500000    2.0000        -
  pbg        205.000* 190.000  900.000      205.000*        7  0.500000    2.0000        -
5 boots in real time: the median, the least and the most
pbg: the plan was followed to its end, by all planned tasks and no others, in 4 of 5 boots
note: no account of the CPU time in the results of rr, sjf, mlfq, pbg; run the matrix again

* the best of its column. ";
        assert_begins(&all, expected);
        for line in all.lines() {
            assert!(line.chars().count() <= TERMINAL, "{line}");
        }
        assert!(all.contains("figures\nare medians over the boots") && !all.contains('±'));
        let all = markdown(std::slice::from_ref(&table), false).unwrap();
        for row in [
            "| scheduler | long | short | average | least | most | ~ | makespan |",
            "| 300.000 | 297.000 | 398.000 | a | 300.000 |",
            "\npbg: the plan was followed to its end, by all planned tasks and no others, in 4 of 5 boots\n",
        ] {
            assert_has(&all, row);
        }
        let all = csv(std::slice::from_ref(&table)).unwrap();
        for row in [
            ",unit,value,min,q1,median,q3,max,mean,boots\n",
            "x86_64,realtime,4,real,1,sjf,total,average,ms,300.000,297.000,300.000,300.000,303.000,398.000,319.600,5\n",
            "x86_64,realtime,4,real,1,sjf,total,outside,%,,,,,,,,\n",
        ] {
            assert_has(&all, row);
        }
        // Beside one of counted time there are the columns that both have.
        let all = csv(&[table, realtime(false)]).unwrap();
        assert_has(&all, ",unit,value,min,mean,max,phases\n");
    }

    #[test]
    fn rows_of_fewer_boots_are_noted() {
        let mut table = over_boots();
        table.boots = 1..=5;
        let note = "note: rows were booted 1 to 5 times; with fewer a range is too narrow\n";
        let all = text(&[table]);
        assert!(all.contains(note) && !all.contains("boots in real time: the median"));
    }

    #[test]
    fn one_tick_phase_has_no_range_to_show() {
        let all = text(&[realtime(false)]);
        assert!(!all.contains('±') && !all.contains('~'), "{all}");
    }

    #[test]
    fn rows_of_fewer_tick_phases_are_noted() {
        let mut table = over_tick_phases();
        table.boots = 1..=4;
        let note = "note: rows were run at 1 to 4 tick phases; with fewer a range is too narrow\n";
        assert_has(text(std::slice::from_ref(&table)), note);
        assert!(markdown(&[table], false).unwrap().contains(note));
    }
}
