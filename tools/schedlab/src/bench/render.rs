//! The tables of `make bench`: text for a terminal, Markdown, and CSV for `schedlab docs`.

use std::fmt::Write;

use anyhow::Result;
use comfy_table::CellAlignment;

use super::counts::{Bench, Cost, OPERATIONS};
use crate::grid;

/// A figure of a call: its name, and the decimals that it is printed with.
struct Figure {
    name: &'static str,
    title: &'static str,
    decimals: usize,
    of: fn(&Cost) -> f64,
}

const FIGURES: [Figure; 2] = [
    Figure {
        name: "instructions",
        title: "instructions",
        decimals: 1,
        of: |cost| cost.instructions,
    },
    Figure {
        name: "l1d_misses",
        title: "misses of the first-level data cache",
        decimals: 2,
        of: |cost| cost.misses,
    },
];

impl Figure {
    fn text(&self, cost: &Cost) -> String {
        format!("{:.*}", self.decimals, (self.of)(cost))
    }
}

/// Rows of cells, under a title.
struct Table {
    title: String,
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One for each figure of each operation, and that of the memory.
fn tables(bench: &Bench) -> Vec<Table> {
    let sizes = bench.sizes();
    let header = std::iter::once("scheduler".to_owned()).chain(sizes.iter().map(usize::to_string));
    let header: Vec<_> = header.collect();
    let mut tables = Vec::new();
    for (operation, what) in OPERATIONS {
        for figure in &FIGURES {
            let rows: Vec<_> = (bench.schedulers().into_iter())
                .filter_map(|scheduler| {
                    let costs = bench.row(&scheduler, operation);
                    // Who knows no nice value has none.
                    (!costs.is_empty()).then(|| {
                        let cells = sizes.iter().map(|size| {
                            let cost = costs.iter().find(|cost| cost.tasks == *size);
                            cost.map_or(String::new(), |cost| figure.text(cost))
                        });
                        std::iter::once(scheduler.clone()).chain(cells).collect()
                    })
                })
                .collect();
            if !rows.is_empty() {
                tables.push(Table {
                    title: format!(
                        "{operation}, {what}: {}, by the number of tasks",
                        figure.title
                    ),
                    header: header.clone(),
                    rows,
                });
            }
        }
    }
    tables.push(memory(bench));
    tables
}

fn memory(bench: &Bench) -> Table {
    let rows = bench.memory.iter().map(|memory| {
        vec![
            memory.scheduler.clone(),
            memory.task.to_string(),
            memory.queue.to_string(),
            format!("{:.1}", memory.ready),
        ]
    });
    Table {
        title: "memory: bytes of a task, of a queue, and of a ready task on the heap".into(),
        header: ["scheduler", "task", "queue", "ready"]
            .map(str::to_owned)
            .into(),
        rows: rows.collect(),
    }
}

pub fn text(bench: &Bench) -> String {
    let tables = tables(bench).into_iter().map(|table| {
        let mut grid = grid::plain();
        grid.set_header(table.header);
        grid.add_rows(table.rows);
        for column in grid.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        format!("{}\n\n{}", table.title, grid::text(&grid, ""))
    });
    tables.collect::<Vec<_>>().join("\n")
}

pub fn markdown(bench: &Bench) -> String {
    let tables = tables(bench).into_iter().map(|table| {
        let mut out = format!(
            "## {}\n\n| {} |\n|---|",
            table.title,
            table.header.join(" | ")
        );
        out += &"---:|".repeat(table.header.len() - 1);
        out.push('\n');
        for row in table.rows {
            let _ = writeln!(out, "| {} |", row.join(" | "));
        }
        out
    });
    tables.collect::<Vec<_>>().join("\n")
}

/// One line for each figure; those of the operation `memory` are in bytes, for any number of
/// tasks.
pub fn csv(bench: &Bench) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record(["arch", "scheduler", "operation", "tasks", "figure", "value"])?;
    let arch = bench.arch.as_str();
    for cost in &bench.costs {
        let Cost {
            scheduler,
            operation,
            ..
        } = cost;
        for figure in &FIGURES {
            let (tasks, value) = (cost.tasks.to_string(), figure.text(cost));
            out.write_record([arch, scheduler, operation, &tasks, figure.name, &value])?;
        }
    }
    for memory in &bench.memory {
        for (figure, value) in [
            ("task_bytes", memory.task.to_string()),
            ("queue_bytes", memory.queue.to_string()),
            ("ready_bytes", format!("{:.1}", memory.ready)),
        ] {
            out.write_record([arch, &memory.scheduler, "memory", "", figure, &value])?;
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::counts::tests::sample;

    fn bench() -> Bench {
        sample(&[("cfs", [293, 483], 16), ("stock-cfs", [217, 799], 2)])
    }

    #[test]
    fn text_has_a_table_for_each_figure() {
        let expected = "\
yield, a put and the pick after it: instructions, by the number of tasks

 scheduler       4    1024
---------------------------
 cfs         293.0   483.0
 stock-cfs   217.0   799.0

yield, a put and the pick after it: misses of the first-level data cache, by the number of tasks

 scheduler      4    1024
--------------------------
 cfs         0.00   16.00
 stock-cfs   0.00    2.00

memory: bytes of a task, of a queue, and of a ready task on the heap

 scheduler   task   queue   ready
----------------------------------
 cfs           24     328    48.6
 stock-cfs     24     328    48.6
";
        assert_eq!(text(&bench()), expected, "{}", text(&bench()));
    }

    #[test]
    fn markdown_has_the_same_cells() {
        let markdown = markdown(&bench());
        let expected = "\
## yield, a put and the pick after it: instructions, by the number of tasks

| scheduler | 4 | 1024 |
|---|---:|---:|
| cfs | 293.0 | 483.0 |
| stock-cfs | 217.0 | 799.0 |

## yield";
        assert!(markdown.starts_with(expected), "{markdown}");
        assert!(
            markdown.ends_with("| stock-cfs | 24 | 328 | 48.6 |\n"),
            "{markdown}"
        );
    }

    #[test]
    fn csv_has_a_line_for_each_figure() {
        let csv = csv(&bench()).unwrap();
        let lines: Vec<_> = csv.lines().collect();
        assert_eq!(lines.len(), 1 + 2 * 2 * 2 + 2 * 3);
        assert_eq!(
            lines[..5],
            [
                "arch,scheduler,operation,tasks,figure,value",
                "x86_64,cfs,yield,4,instructions,293.0",
                "x86_64,cfs,yield,4,l1d_misses,0.00",
                "x86_64,cfs,yield,1024,instructions,483.0",
                "x86_64,cfs,yield,1024,l1d_misses,16.00",
            ]
        );
        assert_eq!(lines[14], "x86_64,stock-cfs,memory,,ready_bytes,48.6");
    }
}
