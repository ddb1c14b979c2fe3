//! Tables as text for a terminal, as Markdown for documents, as CSV for programs.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::{CellAlignment, Table as Grid, TableComponent, presets};

use super::{
    figure::Figure,
    table::{Row, Table},
};

/// What stands where there is no result.
const MISSING: &str = "-";

const LEGEND: &str = "\
Turnaround is from a task's submission to its end.
Average and makespan are in ms. Jain's index: 1 is even. avg/SRPT is the average
turnaround over the least that any scheduler could reach at no cost.";

const STALE: &str =
    "note: not all of these cells were made from the same sources; run the matrix again";

/// Aligned columns; `*` marks the best of a column.
pub fn text(tables: &[Table]) -> String {
    let mut out = String::new();
    for table in tables {
        let (app, arch) = (&table.app, &table.arch);
        let _ = writeln!(
            out,
            "{app} on {arch}: {} ({})\n",
            table.task_title(),
            table.setting()
        );
        let mut grid = Grid::new();
        grid.load_preset(presets::NOTHING)
            .set_style(TableComponent::HeaderLines, '-');
        grid.set_style(TableComponent::MiddleHeaderIntersections, '-');
        let mark = |text: String, best: bool| text + if best { "*" } else { " " };
        let titles = table
            .columns
            .iter()
            .map(|column| mark(column.title.clone(), false));
        grid.set_header(std::iter::once("scheduler".to_owned()).chain(titles));
        for row in &table.rows {
            let values =
                (0..table.columns.len()).map(|i| mark(value(table, row, i), table.is_best(row, i)));
            grid.add_row(std::iter::once(row.label.clone()).chain(values));
        }
        for column in grid.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
            column.set_padding((0, 0));
        }
        for line in grid.to_string().lines() {
            let _ = writeln!(out, " {}", line.trim_end());
        }
        if table.mixed {
            let _ = writeln!(out, "{STALE}");
        }
        out.push('\n');
    }
    let _ = writeln!(out, "* the best of its column. {LEGEND}\n");
    out
}

/// A section for each table, bold marks the best of a column. The figures that
/// `figures` knows for a table follow it.
pub fn markdown(tables: &[Table], figures: impl Fn(&Table) -> Option<Vec<Figure>>) -> String {
    let mut out = format!(
        "Bold: the best of its column. {}\n\n",
        LEGEND.replace('\n', " ")
    );
    for table in tables {
        let columns = 0..table.columns.len();
        let _ = writeln!(out, "## {} on {}\n", table.app, table.arch);
        let _ = writeln!(
            out,
            "Columns of tasks: {}. {}.\n",
            table.task_title(),
            table.setting()
        );
        let titles: Vec<_> = table
            .columns
            .iter()
            .map(|column| column.title.as_str())
            .collect();
        let _ = writeln!(out, "| scheduler | {} |", titles.join(" | "));
        let _ = writeln!(out, "|---|{}", "---:|".repeat(table.columns.len()));
        for row in &table.rows {
            let cell = |i| match value(table, row, i) {
                text if table.is_best(row, i) => format!("**{text}**"),
                text => text,
            };
            let cells: Vec<_> = columns.clone().map(cell).collect();
            let _ = writeln!(out, "| {} | {} |", row.label, cells.join(" | "));
        }
        out.push('\n');
        if table.mixed {
            let _ = writeln!(out, "{STALE}\n");
        }
        for figure in figures(table).into_iter().flatten() {
            let _ = writeln!(
                out,
                "![{}: {}]({}.svg)\n",
                figure.title, figure.subtitle, figure.name
            );
        }
    }
    out
}

/// One line for each value, so that apps with other tasks need no other columns.
/// A missing value is empty.
pub fn csv(tables: &[Table]) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "arch",
        "app",
        "smp",
        "timing",
        "scale",
        "scheduler",
        "kind",
        "figure",
        "unit",
        "value",
    ])?;
    for table in tables {
        for row in &table.rows {
            for (i, column) in table.columns.iter().enumerate() {
                let kind = if i < table.tasks { "task" } else { "total" };
                let value = row.values[i]
                    .map(|value| format!("{value:.*}", column.decimals))
                    .unwrap_or_default();
                out.write_record([
                    &table.arch,
                    &table.app,
                    &table.smp.to_string(),
                    &table.timing,
                    &table.scale.to_string(),
                    &row.label,
                    kind,
                    &column.title,
                    column.unit,
                    &value,
                ])?;
            }
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

fn value(table: &Table, row: &Row, column: usize) -> String {
    row.values[column].map_or_else(
        || MISSING.to_owned(),
        |value| format!("{value:.*}", table.columns[column].decimals),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::table::tests::realtime;

    #[test]
    fn text_is_aligned_and_marks_the_best() {
        let text = text(&[realtime(true)]);
        let expected = "\
realtime on x86_64: turnaround in ms (1 CPU, icount time, scale 1)

  scheduler         long  short  average  makespan  switches      Jain  avg/SRPT
 --------------------------------------------------------------------------------
  rr               6.000  0.000    3.000     3.000         7  0.500000    2.0000
  cfs                  -      -        -         -         -         -         -
  pbg              4.000* 0.000    2.000*    2.000*        7  0.500000    2.0000
  pbg (measuring)  5.000  0.000    2.500     2.500         7  0.500000    2.0000
  stock-rr         6.200  0.000    3.100     3.100         7  0.500000    2.0000

* the best of its column. ";
        assert!(text.starts_with(expected), "{text}");
    }

    #[test]
    fn a_table_of_different_sources_says_so() {
        let mut table = realtime(false);
        assert!(!text(std::slice::from_ref(&table)).contains(STALE));
        table.mixed = true;
        assert!(text(std::slice::from_ref(&table)).contains(STALE));
        assert!(markdown(&[table], |_| None).contains(STALE));
    }

    #[test]
    fn markdown_is_a_table_with_right_aligned_figures() {
        let text = markdown(&[realtime(false)], |_| None);
        let rows = "
| scheduler | long | short | average | makespan | switches | Jain | avg/SRPT |
|---|---:|---:|---:|---:|---:|---:|---:|
| rr | 6.000 | 0.000 | 3.000 | 3.000 | 7 | 0.500000 | 2.0000 |
| cfs | - | - | - | - | - | - | - |
| pbg | **4.000** | 0.000 | **2.000** | **2.000** | 7 | 0.500000 | 2.0000 |
| stock-rr | 6.200 | 0.000 | 3.100 | 3.100 | 7 | 0.500000 | 2.0000 |
";
        assert!(text.contains(rows), "{text}");
        assert!(text.contains("## realtime on x86_64\n"), "{text}");
    }

    #[test]
    fn csv_has_a_line_per_value() {
        let text = csv(&[realtime(false)]).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 1 + 4 * 7);
        assert_eq!(lines[1], "x86_64,realtime,1,icount,1,rr,task,long,ms,6.000");
        assert_eq!(lines[8], "x86_64,realtime,1,icount,1,cfs,task,long,ms,");
        assert_eq!(
            lines[15],
            "x86_64,realtime,1,icount,1,pbg,task,long,ms,4.000"
        );
        assert_eq!(
            lines[19],
            "x86_64,realtime,1,icount,1,pbg,total,switches,,7"
        );
    }
}
