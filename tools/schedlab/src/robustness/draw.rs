//! A line chart: the spread from left to right, average turnaround over the bound upwards. Each
//! policy's mean is a line, and what 5 % of the runs are below and above are dashed.

use super::curve::{Curve, OTHERS, PLANNED, Point};
use crate::{
    draw::{
        AXIS, Axis, BLUE, Canvas, Drawn, FAINT, HEADER, MARGIN, ORANGE, Picture, RGBColor, Stroke,
        WIDTH, width,
    },
    quantiles::Quantiles,
};

const PLOT: i32 = 340;
/// The vertical axis has its name in it.
const AXIS_NAME: i32 = 24;
/// From the plot's left side to the page's margin: the numbers of the vertical axis.
const NUMBERS: i32 = 46;

const COLOURS: [RGBColor; OTHERS.len() + 1] = [BLUE, FAINT, ORANGE];
const MEAN: Stroke = Stroke {
    width: 2,
    dash: None,
};
const RANGE: Stroke = Stroke {
    width: 1,
    dash: Some((4, 4)),
};

pub fn picture(curve: &Curve) -> Picture<'_> {
    Picture {
        name: "robustness",
        height: HEADER + AXIS_NAME + PLOT + AXIS,
        title: format!(
            "If every task takes another time than recorded: {} on {}",
            curve.app, curve.arch
        ),
        subtitle: format!(
            "model, 1 CPU, {} runs a point; mean, dashed: 5 % and 95 %; less is better",
            curve.seeds
        ),
        draw: Box::new(|canvas| draw(canvas, curve)),
    }
}

fn draw(canvas: &Canvas, curve: &Curve) -> Drawn {
    let names: Vec<&str> = OTHERS.iter().chain([&PLANNED]).copied().collect();
    let widest = names.iter().map(|name| width(name)).max().unwrap_or(0);
    let sides = (MARGIN + NUMBERS, WIDTH - MARGIN - widest - 12);
    let top = HEADER + AXIS_NAME;
    let ends = (top, top + PLOT);
    let largest = |of: fn(&Quantiles) -> f64| {
        let all = curve.points.iter().flat_map(|point| &point.of_policies);
        all.map(of).fold(0.0, f64::max)
    };
    let spreads = curve.points.iter().map(|point| f64::from(point.spread));
    let across = Axis::new(spreads.fold(1.0, f64::max));
    let up = Axis::new(largest(|quantiles| quantiles.high));
    canvas.axis_below(&across, "spread, %", sides, ends)?;
    canvas.axis_beside(&up, "average turnaround over the bound", sides, ends)?;
    let mut named = Vec::new();
    for (i, name) in names.into_iter().enumerate() {
        let line = |of: fn(&Quantiles) -> f64| -> Vec<(i32, i32)> {
            let place = |point: &Point| {
                let x = across.place(f64::from(point.spread), sides);
                (x, up.place(of(&point.of_policies[i]), (ends.1, ends.0)))
            };
            curve.points.iter().map(place).collect()
        };
        canvas.path(&line(|q| q.low), COLOURS[i], RANGE)?;
        canvas.path(&line(|q| q.high), COLOURS[i], RANGE)?;
        let mean = line(|q| q.mean);
        canvas.path(&mean, COLOURS[i], MEAN)?;
        for point in &mean {
            canvas.dot(*point, 3, COLOURS[i])?;
        }
        named.extend(mean.last().map(|(_, y)| (*y, name)));
    }
    canvas.names_beside(named, sides.1, ends)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::tests::assert_legible;

    fn curve(last: f64) -> Curve {
        let point = |spread, pbg| Point {
            spread,
            of_policies: [2.0, 1.8, pbg]
                .map(|mean| Quantiles {
                    mean,
                    low: 0.9 * mean,
                    high: 1.1 * mean,
                })
                .to_vec(),
            behind_percent: vec![0.0, 5.0],
        };
        Curve {
            app: "batch".to_owned(),
            arch: "x86_64".to_owned(),
            seeds: 1000,
            points: vec![point(0, 1.0), point(300, last)],
        }
    }

    #[test]
    fn a_chart_says_everything_and_no_text_is_on_another() {
        for last in [1.0, 1.79, 1.8, 2.0, 5.0] {
            let svg = picture(&curve(last)).svg().unwrap();
            for text in [
                "If every task takes another time than recorded: batch on x86_64",
                "1000 runs a point",
                "spread, %",
                "average turnaround over the bound",
                "rr",
                "mlfq",
                "pbg",
            ] {
                assert!(svg.contains(text), "{text}");
            }
            assert_legible(&svg);
        }
    }
}
