//! Draws a row for each task, with a bar as high as its share of the CPU. A line below goes from its
//! submission to its end: in the task's colour while it waits for a CPU, thin and grey while it is
//! blocked.

use super::chart::{Chart, Panel, Row, blocks};
use crate::draw::{
    Axis, BLUE, BOLD, Canvas, Drawn, FAINT, GRID, HEADER, HEADING, HPos, INK, MARGIN, ORANGE,
    RGBColor, SMALL, TEXT, WHITE, WIDTH, svg, widest, width,
};

const PANEL_TITLE: i32 = 28;
/// The line with the average and the heading of the values.
const PANEL_AVERAGE: i32 = 20;
const PANEL_GAP: i32 = 14;
/// The height of a row with the space above its bar, and that of a row if there are many.
const ROW: i32 = 26;
const ROW_OF_MANY: i32 = 16;
const MANY: usize = 12;
const ROW_SPACE: i32 = 4;
/// The line of a task that is ready. Its bar stands on it.
const WAITING: i32 = 4;
/// The line of a task that is blocked.
const BLOCKED: i32 = 1;
const DASH: i32 = 5;

const VALUES: &str = "turnaround, ms";

/// Neighbours differ in brightness too; after the last comes the first.
const COLOURS: [RGBColor; 8] = [
    BLUE,
    ORANGE,
    RGBColor(0x2e, 0x8b, 0x57),
    RGBColor(0xc9, 0x9a, 0x1e),
    RGBColor(0x7d, 0x5b, 0xa6),
    RGBColor(0x3f, 0xa7, 0xb5),
    RGBColor(0x9c, 0x4a, 0x3c),
    RGBColor(0x8a, 0x94, 0xa0),
];

/// Returns the chart as SVG.
pub fn draw(chart: &Chart) -> anyhow::Result<String> {
    let row = row_height(chart);
    let body = chart.panels.iter().map(|p| panel_height(p, row)).sum();
    let panels = |canvas: &Canvas| draw_panels(canvas, chart);
    svg(&chart.title, &chart.subtitle, body, panels)
}

fn row_height(chart: &Chart) -> i32 {
    let most = chart.panels.iter().map(|panel| panel.rows.len()).max();
    if most.unwrap_or(0) > MANY {
        ROW_OF_MANY
    } else {
        ROW
    }
}

fn panel_height(panel: &Panel, row: i32) -> i32 {
    PANEL_TITLE + PANEL_AVERAGE + row * panel.rows.len() as i32 + PANEL_GAP
}

fn draw_panels(canvas: &Canvas, chart: &Chart) -> Drawn {
    // Names to the left of the rows, turnarounds to the right.
    let rows = || chart.panels.iter().flat_map(|panel| &panel.rows);
    let name = widest(rows().map(|row| &row.name));
    let value = widest(rows().map(|row| ms(row.turnaround_ns))).max(width(VALUES));
    let sides = (MARGIN + name + 10, WIDTH - MARGIN - value - 16);
    let axis = Axis::new(chart.end_ns as f64 / 1e6);
    canvas.axis(&axis, "time since the start, ms", sides)?;
    let row = row_height(chart);
    let mut y = HEADER;
    for panel in &chart.panels {
        draw_panel(canvas, panel, &axis, sides, y, row)?;
        y += panel_height(panel, row);
    }
    legend(canvas)
}

fn draw_panel(
    canvas: &Canvas,
    panel: &Panel,
    axis: &Axis,
    sides: (i32, i32),
    y: i32,
    row_height: i32,
) -> Drawn {
    let (left, right) = sides;
    let x = |ns: u64| axis.place(ns as f64 / 1e6, sides);
    // On a white ground, as the grid would run through it.
    let top = y + PANEL_TITLE + PANEL_AVERAGE;
    canvas.rectangle((left - 1, y), (WIDTH - MARGIN, top), WHITE)?;
    let title = (MARGIN, y + PANEL_TITLE / 2);
    canvas.text(&panel.title, title, HEADING, HPos::Left)?;
    let words = y + PANEL_TITLE + PANEL_AVERAGE / 2;
    canvas.text(VALUES, (WIDTH - MARGIN, words), SMALL, HPos::Right)?;

    let column_ns = axis.end * 1e6 / f64::from(right - left);
    let mut below = top;
    for (row, colour) in panel.rows.iter().zip(COLOURS.iter().cycle()) {
        below += row_height;
        let middle = below - (row_height - ROW_SPACE) / 2;
        canvas.text(&row.name, (left - 8, middle), TEXT, HPos::Right)?;
        let turnaround = ms(row.turnaround_ns);
        canvas.text(&turnaround, (WIDTH - MARGIN, middle), TEXT, HPos::Right)?;
        let ground = (left, right, below);
        draw_row(canvas, row, *colour, column_ns, ground, row_height)?;
    }
    canvas.line((left, top), (left, below + 1), FAINT)?;
    canvas.line((left, below), (right, below), GRID)?;
    let average = x(panel.average_ns);
    draw_average(canvas, panel, average, sides, (words, top, below))
}

fn draw_row(
    canvas: &Canvas,
    row: &Row,
    colour: RGBColor,
    column_ns: f64,
    (left, right, below): (i32, i32, i32),
    row_height: i32,
) -> Drawn {
    let x = |ns: u64| left + (ns as f64 / column_ns).round() as i32;
    let ground = below - WAITING;
    let full = row_height - ROW_SPACE - WAITING;
    let end = x(row.finish_ns);
    canvas.rectangle((x(row.submit_ns), ground), (end, below), pale(colour))?;
    for (from, to) in row.blocked(column_ns, (right - left) as usize) {
        let (from, to) = (left + from, left + to);
        canvas.rectangle((from, ground), (to, below), WHITE)?;
        canvas.rectangle((from, below - BLOCKED), (to, below), FAINT)?;
    }
    for (from, to, high) in blocks(&row.shares(column_ns, (right - left) as usize), full) {
        let (from, to) = (left + from, left + to);
        canvas.rectangle((from, ground - high), (to, below), colour)?;
    }
    canvas.rectangle((end - 1, ground - full), (end + 1, below), INK)
}

/// Draws a dashed line down the rows, and its meaning above them on the side with more room.
fn draw_average(
    canvas: &Canvas,
    panel: &Panel,
    x: i32,
    (left, right): (i32, i32),
    (words, top, below): (i32, i32, i32),
) -> Drawn {
    dashes(canvas, x, top - PANEL_AVERAGE + 3, below)?;
    let text = format!("average turnaround {} ms", ms(panel.average_ns));
    let (to, place) = if x > (left + right) / 2 {
        (HPos::Right, x - 6)
    } else {
        (HPos::Left, x + 6)
    };
    canvas.text(&text, (place, words), BOLD, to)
}

fn dashes(canvas: &Canvas, x: i32, top: i32, below: i32) -> Drawn {
    let mut y = top;
    while y < below {
        canvas.rectangle((x - 1, y), (x + 1, (y + DASH).min(below)), FAINT)?;
        y += DASH + 3;
    }
    Ok(())
}

/// Draws the meaning of the marks; the colours are those of tasks.
fn legend(canvas: &Canvas) -> Drawn {
    const MARK: i32 = 16;
    let (mut x, y) = (MARGIN, canvas.legend());
    let words = [
        "on a CPU, its share",
        "ready, waits for a CPU",
        "blocked",
        "done",
        "average turnaround",
    ];
    for (mark, words) in words.into_iter().enumerate() {
        let low = y + 7;
        match mark {
            0 => {
                canvas.rectangle((x, y - 7), (x + MARK / 2, low), BLUE)?;
                canvas.rectangle((x + MARK / 2, y), (x + MARK, low), BLUE)?;
            }
            1 => canvas.rectangle((x, low - WAITING - 5), (x + MARK, low - 5), pale(BLUE))?,
            2 => canvas.rectangle((x, low - BLOCKED - 5), (x + MARK, low - 5), FAINT)?,
            3 => canvas.rectangle((x + MARK - 2, y - 7), (x + MARK, low), INK)?,
            _ => dashes(canvas, x + MARK - 2, y - 7, low)?,
        }
        canvas.text(words, (x + MARK + 6, y), TEXT, HPos::Left)?;
        x += MARK + 6 + width(words) + 22;
    }
    Ok(())
}

fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}

/// Returns the colour with much white in it.
fn pale(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let mix = |c: u8| 255 - (255 - c) / 5 * 2;
    RGBColor(mix(r), mix(g), mix(b))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::testing::assert_has;
    use crate::{
        draw::tests::{assert_legible, rectangles},
        gantt::chart::tests::three_phases,
        project::Titles,
    };

    fn chart() -> Chart {
        Chart::new(&three_phases(), &Titles::new())
    }

    #[test]
    fn chart_has_all_its_texts() {
        let svg = draw(&chart()).unwrap();
        for text in [
            "When each task had the CPU: realtime on x86_64",
            "1 CPU, icount time (1 ns is 1 instruction), scale 1",
            ">\nrr\n</text>",
            ">\npbg, following its plan\n</text>",
            "average turnaround 3.0 ms",
            "average turnaround 0.1 ms",
            "turnaround, ms",
            "time since the start, ms",
            "on a CPU, its share",
            "ready, waits for a CPU",
            "blocked",
            "long",
            "short",
            "7.0",
        ] {
            assert_has(&svg, text);
        }
    }

    /// The average may be anywhere, and there may be many rows.
    #[test]
    fn texts_do_not_overlap() {
        for average_ns in (0..=7_000_000).step_by(250_000) {
            let mut chart = chart();
            chart.panels[0].average_ns = average_ns;
            if average_ns % 500_000 == 0 {
                let rows = Chart::new(&vec![three_phases().remove(0); 9], &Titles::new()).panels;
                chart.panels[0].rows = rows.into_iter().flat_map(|p| p.rows).collect();
            }
            assert_legible(&draw(&chart).unwrap());
        }
    }

    #[test]
    fn bar_is_as_long_as_its_time() {
        let svg = draw(&chart()).unwrap();
        // Blocks of the first row of each panel, and two pieces of the legend, by where they end.
        let mut wide = BTreeMap::new();
        for [_, y, width, height] in rectangles(&svg, BLUE) {
            *wide.entry(y + height).or_insert(0.0) += f64::from(width);
        }
        let wide: Vec<f64> = wide.into_values().collect();
        let [rr, measure, replay, _legend] = wide[..] else {
            panic!("{wide:?}")
        };
        // 6.0, 7.0 and 0.2 ms.
        assert!((rr / measure - 6.0 / 7.0).abs() < 0.01, "{wide:?}");
        assert!((replay / measure - 0.2 / 7.0).abs() < 0.01, "{wide:?}");
    }
}
