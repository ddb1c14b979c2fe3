//! A sweep as text for a terminal, and as CSV for `schedlab docs`.

use anyhow::Result;
use comfy_table::CellAlignment;

use super::sweep::{ALLOWED_PERCENT, Step, Sweep};
use crate::{grid, spread::Spread};

/// A line for each point; the step is PBG's, from the point before it.
pub fn text(sweep: &Sweep) -> String {
    let mut table = grid::plain();
    table.set_header(["waits", "sjf", "pbg", "SRPT bound", "pbg/SRPT", "step, %"]);
    let mut before: Option<f64> = None;
    for point in &sweep.points {
        let pbg = point.pbg.mean;
        let step = before.map(|before| format!("{:+.2}", (pbg / before - 1.0) * 100.0));
        before = Some(pbg);
        table.add_row([
            point.waits.to_string(),
            ms(point.sjf.mean),
            ms(pbg),
            ms(point.bound.mean),
            format!("{:.4}", pbg / point.bound.mean),
            step.unwrap_or_default(),
        ]);
    }
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let mut out = format!(
        "{}: average turnaround in ms ({})\n\n",
        sweep.title(),
        sweep.setting()
    );
    out += &grid::text(&table, "");
    out.push('\n');
    out
}

/// One line for each value, as in `tables.csv`.
pub fn csv(sweep: &Sweep) -> Result<String> {
    let mut out = csv::Writer::from_writer(Vec::new());
    let cell = [
        "arch",
        "smp",
        "timing",
        "scale",
        "waits",
        "scheduler",
        "figure",
        "unit",
    ];
    out.write_record(cell.iter().chain(&Spread::CSV_COLUMNS))?;
    let common = &sweep.common;
    for point in &sweep.points {
        for (scheduler, figure, value) in [
            ("sjf", "average", &point.sjf),
            ("pbg", "average", &point.pbg),
            ("pbg", "SRPT bound", &point.bound),
        ] {
            let cell: [&str; 8] = [
                &common.arch,
                &common.smp.to_string(),
                &common.timing,
                &common.scale.to_string(),
                &point.waits.to_string(),
                scheduler,
                figure,
                "ms",
            ];
            let fields = value.csv_fields(DECIMALS);
            out.write_record(cell.into_iter().chain(fields.iter().map(String::as_str)))?;
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}

/// What was judged, and how it came out.
pub fn last_line(steps: &[Step]) -> String {
    let by_size = |a: &&Step, b: &&Step| a.percent_a_wait().total_cmp(&b.percent_a_wait());
    let largest = steps.iter().max_by(by_size);
    let cliffs = steps.iter().filter(|step| step.is_cliff()).count();
    let verdict = match cliffs {
        0 => String::new(),
        1 => "; 1 is more".to_owned(),
        several => format!("; {several} are more"),
    };
    largest.map_or_else(String::new, |largest| {
        format!(
            "{} steps of PBG, the largest {largest}; allowed are {ALLOWED_PERCENT:.2} % a wait{verdict}",
            steps.len()
        )
    })
}

/// Digits behind the point of a time in milliseconds.
const DECIMALS: usize = 3;

fn ms(value: f64) -> String {
    format!("{value:.DECIMALS$}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::waits::sweep::tests::sweep;

    #[test]
    fn text_has_a_line_for_each_point() {
        let expected = "\
The more often a job waits: batch on x86_64: average turnaround in ms (1 CPU, icount time, scale 1)

 waits        sjf       pbg   SRPT bound   pbg/SRPT   step, %
--------------------------------------------------------------
     1   1600.000   800.000      700.000     1.1429
     2   1640.000   820.000      700.000     1.1714     +2.50
     4   1600.000   800.000      700.000     1.1429     -2.44

";
        let text = text(&sweep(&[(1, 800.0), (2, 820.0), (4, 800.0)]));
        assert_eq!(text, expected, "{text}");
    }

    #[test]
    fn csv_has_a_line_per_value() {
        let text = csv(&sweep(&[(1, 800.0), (2, 820.0)])).unwrap();
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "arch,smp,timing,scale,waits,scheduler,figure,unit,value,min,mean,max,phases"
        );
        assert_eq!(
            lines[4..],
            [
                "x86_64,1,icount,1,2,sjf,average,ms,1640.000,1640.000,1640.000,1640.000,1",
                "x86_64,1,icount,1,2,pbg,average,ms,820.000,820.000,820.000,820.000,1",
                "x86_64,1,icount,1,2,pbg,SRPT bound,ms,700.000,700.000,700.000,700.000,1",
            ]
        );
    }

    #[test]
    fn the_last_line_names_the_largest_step() {
        let line = |averages: &[(u32, f64)]| last_line(&sweep(averages).steps());
        assert_eq!(
            line(&[(1, 800.0), (2, 816.0), (3, 818.0)]),
            "2 steps of PBG, the largest 2.00 % a wait, from 1 to 2 waits (800.000 and 816.000 ms); allowed are 3.00 % a wait"
        );
        assert!(line(&[(1, 800.0), (2, 832.0), (3, 800.0)]).ends_with("3.00 % a wait; 2 are more"));
    }
}
