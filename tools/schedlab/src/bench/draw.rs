//! Two line charts, one below the other: what a yield costs in instructions, and in misses of
//! the first-level data cache. Tasks from left to right, each number four times the one before;
//! the cost upwards from 0. The registry's schedulers have the colour of ours of that name, and
//! dashes.

use super::counts::{Bench, Cost};
use crate::draw::{
    AXIS, Axis, BLUE, Canvas, Drawn, FAINT, FontStyle, GRID, HEADER, HPos, INK, LogAxis, MARGIN,
    ORANGE, Picture, RGBColor, SMALL, Stroke, TEXT, WIDTH, apart, width,
};

/// The operation that is drawn.
const DRAWN: &str = "yield";

const PLOT: i32 = 300;
/// The vertical axis has its name in it.
const AXIS_NAME: i32 = 30;
/// From the plot's left side to the page's margin: the numbers of the vertical axis.
const NUMBERS: i32 = 46;

struct Panel {
    name: &'static str,
    value: fn(&Cost) -> f64,
}

const PANELS: [Panel; 2] = [
    Panel {
        name: "instructions of a yield",
        value: |cost| cost.instructions,
    },
    Panel {
        name: "misses of a yield in the first-level data cache (simulated)",
        value: |cost| cost.misses,
    },
];

const PANEL: i32 = AXIS_NAME + PLOT + AXIS;

/// Each policy has one of them; after the last comes the first. They differ in brightness too.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0x8a, 0x94, 0xa0),
    RGBColor(0x2e, 0x8b, 0x57),
    BLUE,
    RGBColor(0x7d, 0x5b, 0xa6),
    RGBColor(0xc9, 0x9a, 0x1e),
    RGBColor(0x9c, 0x4a, 0x3c),
    ORANGE,
];

/// What the registry's schedulers are called before the policy's name.
const STOCK: &str = "stock-";

/// A scheduler's line.
struct Line {
    name: String,
    colour: RGBColor,
    stroke: Stroke,
}

fn lines(bench: &Bench) -> Vec<Line> {
    let mut policies: Vec<String> = Vec::new();
    let mut lines = Vec::new();
    for name in bench.schedulers() {
        let policy = name.strip_prefix(STOCK).unwrap_or(&name).to_owned();
        let known = policies.iter().position(|other| *other == policy);
        let place = known.unwrap_or_else(|| {
            policies.push(policy);
            policies.len() - 1
        });
        let is_stock = name.starts_with(STOCK);
        lines.push(Line {
            name,
            colour: COLOURS[place % COLOURS.len()],
            stroke: Stroke {
                width: 2,
                dash: is_stock.then_some((6, 4)),
            },
        });
    }
    lines
}

pub fn picture(bench: &Bench) -> Picture<'_> {
    Picture {
        name: "bench",
        height: HEADER + PANEL * PANELS.len() as i32,
        title: "What a yield costs, by the number of tasks".into(),
        subtitle: format!(
            "the scheduler's two calls on a host, {}, counted by Callgrind; dashes: the registry's axsched; less is better",
            bench.arch
        ),
        draw: Box::new(|canvas| {
            for (i, panel) in PANELS.iter().enumerate() {
                draw(canvas, bench, panel, HEADER + PANEL * i as i32)?;
            }
            Ok(())
        }),
    }
}

fn draw(canvas: &Canvas, bench: &Bench, panel: &Panel, top: i32) -> Drawn {
    let lines = lines(bench);
    let names = lines.iter().map(|line| width(&line.name)).max();
    let sides = (
        MARGIN + NUMBERS,
        WIDTH - MARGIN - names.unwrap_or_default() - 12,
    );
    let ends = (top + AXIS_NAME, top + AXIS_NAME + PLOT);
    let sizes = bench.sizes();
    let across = LogAxis::new(sizes.iter().map(|size| *size as f64));
    let of_yield = bench.costs.iter().filter(|cost| cost.operation == DRAWN);
    let up = Axis::new(of_yield.map(panel.value).fold(0.0, f64::max));
    for size in &sizes {
        let x = across.place(*size as f64, sides);
        canvas.line((x, ends.0), (x, ends.1 + 4), GRID)?;
        let label = size.to_string();
        let below = (x, ends.1 + 14);
        canvas.text(
            &label,
            below,
            (SMALL, FontStyle::Normal),
            FAINT,
            HPos::Center,
        )?;
    }
    let below = ((sides.0 + sides.1) / 2, ends.1 + 36);
    canvas.text("tasks", below, (TEXT, FontStyle::Normal), INK, HPos::Center)?;
    canvas.axis_beside(&up, panel.name, sides, ends)?;

    let mut named = Vec::new();
    for line in &lines {
        let costs = bench.row(&line.name, DRAWN);
        let place = |cost: &&Cost| {
            let x = across.place(cost.tasks as f64, sides);
            (x, up.place((panel.value)(cost), (ends.1, ends.0)))
        };
        let points: Vec<_> = costs.iter().map(place).collect();
        canvas.path(&points, line.colour, line.stroke)?;
        for point in &points {
            canvas.dot(*point, 3, line.colour)?;
        }
        named.extend(points.last().map(|(_, y)| (*y, line)));
    }
    // There is room for names beside the axis's, too.
    for (y, line) in apart(named, (ends.0, ends.1 + 36)) {
        let beside = (sides.1 + 10, y);
        canvas.text(
            &line.name,
            beside,
            (TEXT, FontStyle::Bold),
            line.colour,
            HPos::Left,
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        bench::counts::tests::sample,
        draw::tests::{Pixels, assert_legible},
    };

    /// As many as there are.
    const ALL: [&str; 10] = [
        "fifo",
        "rr",
        "cfs",
        "eevdf",
        "sjf",
        "mlfq",
        "pbg",
        "stock-fifo",
        "stock-rr",
        "stock-cfs",
    ];

    #[test]
    fn a_chart_says_everything() {
        let bench = sample(&[("cfs", [293, 283], 3), ("stock-cfs", [217, 799], 5)]);
        let svg = picture(&bench).svg().unwrap();
        for text in [
            "What a yield costs, by the number of tasks",
            "counted by Callgrind",
            "instructions of a yield",
            "misses of a yield in the first-level data cache (simulated)",
            "1024",
            "600",
            "tasks",
            "stock-cfs",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    /// However close the lines end.
    #[test]
    fn no_text_is_on_another() {
        for (low, high) in [(20, 20), (20, 800), (790, 800)] {
            let cost = |(i, name)| {
                let many = if i % 2 == 0 { low } else { high };
                (name, [20, many], many / 100)
            };
            let costs: Vec<_> = ALL.into_iter().enumerate().map(cost).collect();
            assert_legible(&picture(&sample(&costs)).svg().unwrap());
        }
    }

    #[test]
    fn ours_and_the_registrys_have_one_colour() {
        // Fewer than there are colours, after which the first comes again.
        let costs = ["fifo", "rr", "cfs", "stock-cfs"].map(|name| (name, [20, 30], 1));
        let bench = sample(&costs);
        let lines = lines(&bench);
        let of = |name: &str| lines.iter().find(|line| line.name == name).unwrap();
        assert_eq!(of("cfs").colour, of("stock-cfs").colour);
        assert_ne!(of("cfs").colour, of("rr").colour);
        assert!(of("cfs").stroke.dash.is_none() && of("stock-cfs").stroke.dash.is_some());
    }

    #[test]
    fn a_line_is_where_its_values_are() {
        // The highest is 800: the other is a quarter of the way up, from left to right.
        let bench = sample(&[("fifo", [200, 200], 1), ("cfs", [800, 800], 4)]);
        let pixels = Pixels::of(&picture(&bench).png().unwrap());
        let quarter = HEADER + AXIS_NAME + PLOT * 3 / 4;
        for x in [WIDTH / 4, WIDTH / 2] {
            assert_eq!(pixels.at(x, quarter), COLOURS[0], "{x}");
            assert_ne!(pixels.at(x, quarter + 8), COLOURS[0], "{x}");
        }
        // Of the misses it is so where there are the more tasks: below, at the right.
        let right = WIDTH - MARGIN - width("fifo") - 12;
        let across = LogAxis::new([4.0, 1024.0].into_iter());
        let x = across.place(1024.0, (MARGIN + NUMBERS, right));
        assert_eq!(pixels.at(x, quarter + PANEL), COLOURS[0]);
    }
}
