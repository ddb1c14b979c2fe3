//! A chart of bars, or of [`dots`].
//!
//! Bars lie, as names and values are then read without turning the head. Over
//! several tick phases a bar is the mean, and a whisker on it the range.

mod dots;
mod legend;

use super::figure::{Bar, Bars, Figure, Group, Plot};
use crate::{
    draw::{
        AXIS, Axis, Canvas, Drawn, FAINT, FontStyle, HEADER, HPos, INK, LEGEND, MARGIN, Picture,
        TEXT, WHITE, WIDTH, width,
    },
    spread::reach,
};
use legend::{colour, legend};

/// A bar and the space around it.
const BAR: i32 = 20;
const BAR_SPACE: i32 = 3;
/// Half of the mark at a whisker's end.
const WHISKER: i32 = 4;
const GROUP_TITLE: i32 = 28;
const GROUP_GAP: i32 = 8;

pub fn picture(figure: &Figure) -> Picture<'_> {
    Picture {
        name: &figure.name,
        height: height(figure),
        title: figure.title.clone(),
        subtitle: figure.subtitle.clone(),
        draw: Box::new(|canvas| match &figure.plot {
            Plot::Bars(bars) => draw(canvas, bars),
            Plot::Dots(panels) => dots::draw(canvas, panels),
        }),
    }
}

fn height(figure: &Figure) -> i32 {
    match &figure.plot {
        Plot::Bars(bars) => bars_height(bars),
        Plot::Dots(panels) => dots::height(panels.len()),
    }
}

fn bars_height(figure: &Bars) -> i32 {
    let group = |group: &Group| title_height(group) + BAR * group.bars.len() as i32 + GROUP_GAP;
    HEADER + figure.groups.iter().map(group).sum::<i32>() + AXIS + LEGEND
}

fn title_height(group: &Group) -> i32 {
    if group.title.is_empty() {
        0
    } else {
        GROUP_TITLE
    }
}

fn draw(canvas: &Canvas, figure: &Bars) -> Drawn {
    // Names to the left of the bars, values to the right of the longest.
    let bars = || figure.groups.iter().flat_map(|group| &group.bars);
    let left = MARGIN + bars().map(|bar| width(&bar.label)).max().unwrap_or(0) + 10;
    let right = WIDTH
        - MARGIN
        - bars()
            .map(|bar| width(&value(figure, bar)))
            .max()
            .unwrap_or(0)
        - 8;
    let longest = bars().filter_map(|bar| Some(bar.value?.most));
    let axis = Axis::new(longest.fold(0.0, f64::max));
    let x = |value| axis.place(value, (left, right));
    let bottom = bars_height(figure) - AXIS - LEGEND;
    canvas.axis(&axis, &figure.axis, (left, right), bottom)?;

    let mut y = HEADER + GROUP_GAP / 2;
    for group in &figure.groups {
        if !group.title.is_empty() {
            canvas.text(
                &group.title,
                (MARGIN, y + GROUP_TITLE / 2),
                (TEXT + 1, FontStyle::Bold),
                INK,
                HPos::Left,
            )?;
        }
        y += title_height(group);
        for bar in &group.bars {
            bar_of(canvas, figure, bar, left, x, y)?;
            y += BAR;
        }
        y += GROUP_GAP;
    }
    canvas.line((left, HEADER), (left, bottom + 4), FAINT)?;
    let kinds = bars().map(|bar| bar.kind).collect::<Vec<_>>();
    legend(canvas, &kinds, bars_height(figure) - LEGEND / 2)
}

/// A name, a bar from `left` to where `x` has its value, and that in words.
fn bar_of(
    canvas: &Canvas,
    figure: &Bars,
    bar: &Bar,
    left: i32,
    x: impl Fn(f64) -> i32,
    y: i32,
) -> Drawn {
    let middle = y + BAR / 2;
    let (above, below) = (y + BAR_SPACE, y + BAR - BAR_SPACE);
    canvas.text(
        &bar.label,
        (left - 8, middle),
        (TEXT, FontStyle::Normal),
        INK,
        HPos::Right,
    )?;
    let (mean, most) = match bar.value {
        // A value that is not 0 must not look like 0.
        Some(value) if value.middle() > 0.0 => (x(value.middle()).max(left + 2), x(value.most)),
        _ => (left, left),
    };
    canvas.rectangle((left, above), (mean, below), colour(bar.kind))?;
    let text = value(figure, bar);
    let ink = if bar.value.is_some() { INK } else { FAINT };
    // On a ground of its own, as the grid would run through it.
    let end = mean.max(most) + 3;
    canvas.rectangle((end, above), (end + 4 + width(&text), below), WHITE)?;
    if let Some(value) = bar.value.filter(|value| value.count > 1) {
        whisker(canvas, (x(value.least), most), middle)?;
    }
    canvas.text(
        &text,
        (end + 3, middle),
        (TEXT, FontStyle::Normal),
        ink,
        HPos::Left,
    )
}

/// A line from the least to the most, with a mark at either end.
fn whisker(canvas: &Canvas, (least, most): (i32, i32), y: i32) -> Drawn {
    canvas.line((least, y), (most, y), INK)?;
    for end in [least, most] {
        canvas.line((end, y - WHISKER), (end, y + WHISKER), INK)?;
    }
    Ok(())
}

fn value(figure: &Bars, bar: &Bar) -> String {
    bar.value.map_or_else(
        || "no result".to_owned(),
        |value| {
            let number = |value| format!("{value:.*}", figure.decimals);
            format!("{} {}", number(value.middle()), reach(&value, number))
                .trim_end()
                .to_owned()
        },
    )
}

#[cfg(test)]
mod tests {
    use super::legend::KINDS;
    use super::*;
    use crate::{
        compare::{
            figure::figures,
            table::tests::{over_tick_phases, realtime},
        },
        draw::{
            PNG_SCALE, RGBColor,
            tests::{Pixels, assert_legible},
        },
    };

    #[test]
    fn an_svg_says_everything() {
        let figures = figures(&realtime(false));
        let names: Vec<_> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(
            names,
            ["average-turnaround-x86_64", "turnaround-realtime-x86_64"]
        );
        let average = picture(&figures[0]).svg().unwrap();
        for text in [
            "Average turnaround: realtime on x86_64",
            "1 CPU, icount time (1 ns is 1 instruction), scale 1; less is better",
            "average turnaround, ms",
            "rr",
            "pbg",
            "stock-rr",
            "stock axsched",
            "3.000",
            "no result",
        ] {
            assert!(average.contains(text), "{text}");
        }
        let tasks = picture(&figures[1]).svg().unwrap();
        assert!(tasks.contains("long") && tasks.contains("short") && tasks.contains("6.200"));
    }

    #[test]
    fn over_several_tick_phases_bars_have_whiskers() {
        let figure = &figures(&over_tick_phases())[0];
        let average = picture(figure).svg().unwrap();
        for text in [
            "4 tick phases; mean and range; less is better",
            "205.000 ±2.44 %",
            "400.000 ±0.25 %",
        ] {
            assert!(average.contains(text), "{text}");
        }
        assert_legible(&average);
        // Of each whisker the line along the bar; those of the axis and the grid stand.
        let ink = format!("#{:02X}{:02X}{:02X}", INK.0, INK.1, INK.2);
        let whiskers: Vec<(i32, i32)> = average
            .lines()
            .filter(|line| line.contains("<polyline") && line.contains(&ink))
            .filter_map(|line| {
                let points = line.split("points=\"").nth(1)?.split('"').next()?;
                let point: Vec<i32> = points
                    .split([' ', ','])
                    .filter_map(|number| number.parse().ok())
                    .collect();
                (point[1] == point[3]).then_some((point[0], point[2]))
            })
            .collect();
        let [rr, cfs, sjf, mlfq] = whiskers[..] else {
            panic!("{whiskers:?}")
        };
        // Longer where the range is wider; overlapping where it overlaps.
        assert!(cfs.1 - cfs.0 > rr.1 - rr.0, "{whiskers:?}");
        assert!(
            sjf.0 < cfs.1 && cfs.1 < mlfq.0 && mlfq.1 < rr.0,
            "{whiskers:?}"
        );
    }

    #[test]
    fn a_png_is_a_picture_with_every_colour_in_it() {
        for figure in figures(&realtime(false)) {
            let picture = Pixels::of(&picture(&figure).png().unwrap());
            assert_eq!(
                (picture.width as i32, picture.height as i32),
                (WIDTH * PNG_SCALE, height(&figure) * PNG_SCALE)
            );
            let has = |wanted: RGBColor| picture.all().any(|pixel| pixel == wanted);
            for (_, colour, words) in KINDS {
                assert!(has(colour), "{words}");
            }
            let is_dark = |RGBColor(red, _, blue): &RGBColor| *red < 0x60 && *blue < 0x60;
            let dark = picture.all().filter(is_dark).count();
            assert!(
                dark > 1000,
                "text leaves dark pixels, on any machine: {dark}"
            );
        }
    }
}
