//! A line chart: waits from left to right, average turnaround upwards from 0. Lines
//! differ in width and dashes too, and have their names at their ends.

use super::sweep::{Point, Sweep};
use crate::draw::{
    AXIS, Axis, BLUE, Canvas, Drawn, FAINT, HEADER, MARGIN, ORANGE, Picture, RGBColor, Stroke,
    WIDTH, width,
};

const PLOT: i32 = 340;
/// The vertical axis has its name in it.
const AXIS_NAME: i32 = 24;
/// From the plot's left side to the page's margin: the numbers of the vertical axis.
const NUMBERS: i32 = 46;

struct Line {
    name: &'static str,
    value: fn(&Point) -> f64,
    colour: RGBColor,
    stroke: Stroke,
    /// The radius of the mark at each point that was measured.
    dot: i32,
}

const LINES: [Line; 3] = [
    Line {
        name: "SJF",
        value: |point| point.sjf.mean,
        colour: BLUE,
        stroke: Stroke {
            width: 1,
            dash: None,
        },
        dot: 2,
    },
    Line {
        name: "PBG",
        value: |point| point.pbg.mean,
        colour: ORANGE,
        stroke: Stroke {
            width: 3,
            dash: None,
        },
        dot: 3,
    },
    Line {
        name: "SRPT bound",
        value: |point| point.bound.mean,
        colour: FAINT,
        stroke: Stroke {
            width: 1,
            dash: Some((6, 4)),
        },
        dot: 0,
    },
];

pub fn picture(sweep: &Sweep) -> Picture<'_> {
    let setting = sweep
        .setting()
        .replace("icount time", "icount time (1 ns is 1 instruction)");
    Picture {
        name: "waits",
        height: HEADER + AXIS_NAME + PLOT + AXIS,
        title: sweep.title(),
        subtitle: format!("{setting}; less is better"),
        draw: Box::new(|canvas| draw(canvas, sweep)),
    }
}

fn draw(canvas: &Canvas, sweep: &Sweep) -> Drawn {
    let names = LINES.iter().map(|line| width(line.name)).max();
    let sides = (
        MARGIN + NUMBERS,
        WIDTH - MARGIN - names.unwrap_or_default() - 12,
    );
    let top = HEADER + AXIS_NAME;
    let ends = (top, top + PLOT);
    let values = |line: &Line| sweep.points.iter().map(line.value).fold(0.0, f64::max);
    let across = Axis::new(
        sweep
            .points
            .iter()
            .map(|p| p.waits)
            .max()
            .map_or(0.0, f64::from),
    );
    let up = Axis::new(LINES.iter().map(values).fold(0.0, f64::max));
    let name = "waits of each job that waits";
    canvas.axis_below(&across, name, sides, ends)?;
    canvas.axis_beside(&up, "average turnaround, ms", sides, ends)?;

    let place = |point: &Point, line: &Line| {
        let x = across.place(f64::from(point.waits), sides);
        (x, up.place((line.value)(point), (ends.1, ends.0)))
    };
    let mut named = Vec::new();
    for line in &LINES {
        let points: Vec<_> = sweep.points.iter().map(|p| place(p, line)).collect();
        canvas.path(&points, line.colour, line.stroke)?;
        if line.dot > 0 {
            for point in &points {
                canvas.dot(*point, line.dot, line.colour)?;
            }
        }
        named.extend(points.last().map(|(_, y)| (*y, line.name)));
    }
    canvas.names_beside(named, sides.1, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        draw::tests::{Pixels, assert_legible},
        waits::sweep::tests::sweep,
    };

    #[test]
    fn a_chart_says_everything() {
        let sweep = sweep(&[(1, 800.0), (32, 950.0), (64, 1_150.0)]);
        let svg = picture(&sweep).svg().unwrap();
        for text in [
            "The more often a job waits: batch on x86_64",
            "1 CPU, icount time (1 ns is 1 instruction), scale 1; less is better",
            "waits of each job that waits",
            "average turnaround, ms",
            "SJF",
            "PBG",
            "SRPT bound",
            "2000",
            "60",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    /// The names of the lines have room, however close the lines end.
    #[test]
    fn no_text_is_on_another() {
        for pbg in [690.0, 700.0, 720.0, 1_400.0, 0.5] {
            let mut sweep = sweep(&[(1, 800.0), (2, pbg)]);
            assert_legible(&picture(&sweep).svg().unwrap());
            sweep.points[1].sjf = sweep.points[1].pbg;
            sweep.points[1].bound = sweep.points[1].pbg;
            assert_legible(&picture(&sweep).svg().unwrap());
        }
    }

    #[test]
    fn a_line_is_where_its_values_are() {
        // The highest is SJF's, at 1,600: PBG is half-way up, all the way.
        let sweep = sweep(&[(1, 800.0), (9, 800.0)]);
        let pixels = Pixels::of(&picture(&sweep).png().unwrap());
        let top = HEADER + AXIS_NAME;
        for x in [WIDTH / 4, WIDTH / 2, WIDTH * 3 / 4] {
            assert_eq!(pixels.at(x, top + PLOT / 2), ORANGE, "{x}");
            assert_ne!(pixels.at(x, top + PLOT / 2 + 8), ORANGE, "{x}");
        }
    }
}
