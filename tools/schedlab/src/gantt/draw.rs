//! A row for each task: a bar as high as its share of the CPU. From its submission to its
//! end there is a line below: of its colour while it waits for a CPU, thin and grey while it
//! is blocked.

use super::chart::{Chart, Panel, Row, blocks};
use crate::draw::{
    AXIS, Axis, BLUE, Canvas, Drawn, FAINT, FontStyle, GRID, HEADER, HPos, INK, LEGEND, MARGIN,
    ORANGE, Picture, RGBColor, SMALL, TEXT, WHITE, WIDTH, width,
};

const PANEL_TITLE: i32 = 28;
/// The line with the average and the heading of the values.
const PANEL_AVERAGE: i32 = 20;
const PANEL_GAP: i32 = 14;
/// A row and the space above its bar; lower if there are many.
const ROW: i32 = 26;
const ROW_OF_MANY: i32 = 16;
const MANY: usize = 12;
const ROW_SPACE: i32 = 4;
/// The line below a bar: its task is ready, and nothing is on top of it while it waits.
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

pub fn picture(chart: &Chart) -> Picture<'_> {
    Picture {
        name: "the chart",
        height: height(chart),
        title: chart.title.clone(),
        subtitle: chart.subtitle.clone(),
        draw: Box::new(|canvas| draw(canvas, chart)),
    }
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

fn height(chart: &Chart) -> i32 {
    let row = row_height(chart);
    let panels: i32 = chart.panels.iter().map(|p| panel_height(p, row)).sum();
    HEADER + panels + AXIS + LEGEND
}

fn draw(canvas: &Canvas, chart: &Chart) -> Drawn {
    // Names to the left of the rows, turnarounds to the right.
    let rows = || chart.panels.iter().flat_map(|panel| &panel.rows);
    let name = rows().map(|row| width(&row.name)).max().unwrap_or(0);
    let value = rows().map(|row| width(&ms(row.turnaround_ns))).max();
    let sides = (
        MARGIN + name + 10,
        WIDTH - MARGIN - value.unwrap_or(0).max(width(VALUES)) - 16,
    );
    let axis = Axis::new(chart.end_ns as f64 / 1e6);
    let bottom = height(chart) - AXIS - LEGEND;
    canvas.axis(&axis, "time since the start, ms", sides, bottom)?;
    let row = row_height(chart);
    let mut y = HEADER;
    for panel in &chart.panels {
        draw_panel(canvas, panel, &axis, sides, y, row)?;
        y += panel_height(panel, row);
    }
    legend(canvas, height(chart) - LEGEND / 2)
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
    // On a ground of its own, as the grid would run through it.
    let top = y + PANEL_TITLE + PANEL_AVERAGE;
    canvas.rectangle((left - 1, y), (WIDTH - MARGIN, top), WHITE)?;
    let title = (MARGIN, y + PANEL_TITLE / 2);
    canvas.text(
        &panel.title,
        title,
        (TEXT + 1, FontStyle::Bold),
        INK,
        HPos::Left,
    )?;
    let words = y + PANEL_TITLE + PANEL_AVERAGE / 2;
    canvas.text(
        VALUES,
        (WIDTH - MARGIN, words),
        (SMALL, FontStyle::Normal),
        FAINT,
        HPos::Right,
    )?;

    let column_ns = axis.end * 1e6 / f64::from(right - left);
    let mut below = top;
    for (row, colour) in panel.rows.iter().zip(COLOURS.iter().cycle()) {
        below += row_height;
        let middle = below - (row_height - ROW_SPACE) / 2;
        canvas.text(
            &row.name,
            (left - 8, middle),
            (TEXT, FontStyle::Normal),
            INK,
            HPos::Right,
        )?;
        canvas.text(
            &ms(row.turnaround_ns),
            (WIDTH - MARGIN, middle),
            (TEXT, FontStyle::Normal),
            INK,
            HPos::Right,
        )?;
        let ground = (left, right, below);
        draw_row(canvas, row, *colour, column_ns, ground, row_height)?;
    }
    canvas.line((left, top), (left, below + 1), FAINT)?;
    canvas.line((left, below), (right, below), GRID)?;
    average(
        canvas,
        panel,
        x(panel.average_ns),
        sides,
        (words, top, below),
    )
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
        canvas.rectangle(
            (left + from, below - WAITING - high),
            (left + to, below),
            colour,
        )?;
    }
    canvas.rectangle((end - 1, ground - full), (end + 1, below), INK)
}

/// A dashed line down the rows, and what it stands for above them, on the side where
/// there is more room.
fn average(
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
    canvas.text(&text, (place, words), (TEXT, FontStyle::Bold), INK, to)
}

fn dashes(canvas: &Canvas, x: i32, top: i32, below: i32) -> Drawn {
    let mut y = top;
    while y < below {
        canvas.rectangle((x - 1, y), (x + 1, (y + DASH).min(below)), FAINT)?;
        y += DASH + 3;
    }
    Ok(())
}

/// What the marks mean; their colours are the tasks' own.
fn legend(canvas: &Canvas, y: i32) -> Drawn {
    const MARK: i32 = 16;
    let mut x = MARGIN;
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
        let place = (x + MARK + 6, y);
        canvas.text(words, place, (TEXT, FontStyle::Normal), INK, HPos::Left)?;
        x += MARK + 6 + width(words) + 22;
    }
    Ok(())
}

fn ms(ns: u64) -> String {
    format!("{:.1}", ns as f64 / 1e6)
}

/// The colour with much white in it.
fn pale(RGBColor(r, g, b): RGBColor) -> RGBColor {
    let mix = |c: u8| 255 - (255 - c) / 5 * 2;
    RGBColor(mix(r), mix(g), mix(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Titles;
    use crate::{
        draw::{
            PNG_SCALE,
            tests::{Pixels, assert_legible},
        },
        gantt::chart::tests::three_phases,
    };

    #[test]
    fn a_chart_says_everything() {
        let chart = Chart::new(&three_phases(), &Titles::new());
        let svg = picture(&chart).svg().unwrap();
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
            assert!(svg.contains(text), "{text}");
        }
    }

    /// Wherever the average is, and however many rows there are.
    #[test]
    fn no_text_is_on_another() {
        for average_ns in (0..=7_000_000).step_by(250_000) {
            let mut chart = Chart::new(&three_phases(), &Titles::new());
            chart.panels[0].average_ns = average_ns;
            if average_ns % 500_000 == 0 {
                let rows = Chart::new(&vec![three_phases().remove(0); 9], &Titles::new()).panels;
                chart.panels[0].rows = rows.into_iter().flat_map(|p| p.rows).collect();
            }
            assert_legible(&picture(&chart).svg().unwrap());
        }
    }

    #[test]
    fn a_bar_is_where_its_time_is() {
        let chart = Chart::new(&three_phases(), &Titles::new());
        let picture = Pixels::of(&picture(&chart).png().unwrap());
        assert_eq!(picture.width as i32, WIDTH * PNG_SCALE);
        assert_eq!(picture.height as i32, height(&chart) * PNG_SCALE);
        // Half-way up the first row of each panel.
        let count = |panel: usize, colour: RGBColor| {
            let above: i32 = chart.panels[..panel]
                .iter()
                .map(|p| panel_height(p, ROW))
                .sum();
            let y = HEADER + above + PANEL_TITLE + PANEL_AVERAGE + ROW / 2;
            let line = (0..WIDTH).map(|x| picture.at(x, y));
            line.filter(|pixel| *pixel == colour).count() as f64
        };
        // 6.0, 7.0 and 0.2 ms.
        let [rr, measure, replay] = [0, 1, 2].map(|panel| count(panel, BLUE));
        assert!((rr / measure - 6.0 / 7.0).abs() < 0.02, "{rr} {measure}");
        assert!((replay / measure - 0.2 / 7.0).abs() < 0.02, "{replay}");
        assert!(replay > 0.0);
    }
}
