//! A figure as SVG and as PNG: bars that lie, as names and values are then read
//! without turning the head.
//!
//! The PNG is the SVG, rasterised. The font is built in: it is the one that is
//! measured and that a PNG shows; an SVG's reader may use another.

use std::sync::{Arc, LazyLock, Once};

use anyhow::{Context, Result, anyhow};
use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        register_font,
        text_anchor::{HPos, Pos, VPos},
    },
};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{self, fontdb},
};

use super::figure::{Bar, Figure, Group, Kind};

/// What an SVG asks its reader for; the reader of ours has DejaVu Sans.
const FONT: &str = "sans-serif";
const FONT_HERE: &str = "DejaVu Sans";
/// plotters divides a font's size by this before it writes it down.
const PLOTTERS_SIZE: f64 = 1.24;

/// A PNG has this many pixels for each unit of the layout.
const PNG_SCALE: f32 = 2.0;

const WIDTH: i32 = 860;
const MARGIN: i32 = 24;
const HEADER: i32 = 68;
const AXIS: i32 = 54;
const LEGEND: i32 = 34;
/// A bar and the space around it.
const BAR: i32 = 20;
const BAR_SPACE: i32 = 3;
const GROUP_TITLE: i32 = 28;
const GROUP_GAP: i32 = 8;

const TEXT: i32 = 12;
const SMALL: i32 = 11;

const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
const FAINT: RGBColor = RGBColor(0x66, 0x66, 0x66);
const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

/// Three colours that differ in brightness too.
const KINDS: [(Kind, RGBColor, &str); 3] = [
    (
        Kind::Ours,
        RGBColor(0x3b, 0x76, 0xaf),
        "this project's policies",
    ),
    (
        Kind::Pbg,
        RGBColor(0xd9, 0x6b, 0x0b),
        "PBG, following its plan",
    ),
    (Kind::Stock, RGBColor(0xb4, 0xb8, 0xbd), "stock axsched"),
];

pub fn svg(figure: &Figure) -> Result<String> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        for (style, font) in [
            (FontStyle::Normal, dejavu::sans::regular()),
            (FontStyle::Bold, dejavu::sans::bold()),
        ] {
            assert!(
                register_font(FONT, style, font).is_ok(),
                "the font that is built in is a font"
            );
        }
    });
    let mut out = String::new();
    let area = SVGBackend::with_string(&mut out, (WIDTH as u32, height(figure) as u32))
        .into_drawing_area();
    let drawn = Canvas { area }.figure(figure);
    drawn.map_err(|e| anyhow!("{} cannot be drawn: {e}", figure.name))?;
    Ok(out)
}

pub fn png(svg: &str) -> Result<Vec<u8>> {
    static FONTS: LazyLock<Arc<fontdb::Database>> = LazyLock::new(|| {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(dejavu::sans::regular().to_vec());
        fonts.load_font_data(dejavu::sans::bold().to_vec());
        fonts.set_sans_serif_family(FONT_HERE);
        Arc::new(fonts)
    });
    let options = usvg::Options {
        fontdb: FONTS.clone(),
        ..usvg::Options::default()
    };
    let tree = usvg::Tree::from_str(svg, &options)?;
    let size = tree
        .size()
        .to_int_size()
        .scale_by(PNG_SCALE)
        .context("a figure without an area")?;
    let mut picture =
        Pixmap::new(size.width(), size.height()).context("a figure that is too large")?;
    resvg::render(
        &tree,
        Transform::from_scale(PNG_SCALE, PNG_SCALE),
        &mut picture.as_mut(),
    );
    Ok(picture.encode_png()?)
}

fn height(figure: &Figure) -> i32 {
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

struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

type Drawn = Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

impl Canvas<'_> {
    fn figure(&self, figure: &Figure) -> Drawn {
        self.area.fill(&WHITE)?;
        self.text(
            &figure.title,
            (MARGIN, 26),
            (18, FontStyle::Bold),
            INK,
            HPos::Left,
        )?;
        self.text(
            &figure.subtitle,
            (MARGIN, 48),
            (TEXT, FontStyle::Normal),
            FAINT,
            HPos::Left,
        )?;

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
        let axis = Axis::new(bars().filter_map(|bar| bar.value).fold(0.0, f64::max));
        let x = |value: f64| left + (value / axis.end * f64::from(right - left)).round() as i32;

        let bottom = height(figure) - AXIS - LEGEND;
        for tick in axis.ticks() {
            self.line((x(tick), HEADER), (x(tick), bottom + 4), GRID)?;
            let label = format!("{tick:.*}", axis.decimals);
            self.text(
                &label,
                (x(tick), bottom + 14),
                (SMALL, FontStyle::Normal),
                FAINT,
                HPos::Center,
            )?;
        }
        let middle = ((left + right) / 2, bottom + 36);
        self.text(
            &figure.axis,
            middle,
            (TEXT, FontStyle::Normal),
            INK,
            HPos::Center,
        )?;

        let mut y = HEADER + GROUP_GAP / 2;
        for group in &figure.groups {
            if !group.title.is_empty() {
                self.text(
                    &group.title,
                    (MARGIN, y + GROUP_TITLE / 2),
                    (TEXT + 1, FontStyle::Bold),
                    INK,
                    HPos::Left,
                )?;
            }
            y += title_height(group);
            for bar in &group.bars {
                self.bar(figure, bar, left, bar.value.map(x), y)?;
                y += BAR;
            }
            y += GROUP_GAP;
        }
        self.line((left, HEADER), (left, bottom + 4), FAINT)?;
        self.legend(figure, height(figure) - LEGEND / 2)?;
        self.area.present()
    }

    /// A name, a bar from `left` to `end`, and its value in words.
    fn bar(&self, figure: &Figure, bar: &Bar, left: i32, end: Option<i32>, y: i32) -> Drawn {
        let middle = y + BAR / 2;
        let (above, below) = (y + BAR_SPACE, y + BAR - BAR_SPACE);
        self.text(
            &bar.label,
            (left - 8, middle),
            (TEXT, FontStyle::Normal),
            INK,
            HPos::Right,
        )?;
        // A value that is not nought is not to look like nought.
        let least = if bar.value.is_some_and(|value| value > 0.0) {
            left + 2
        } else {
            left
        };
        let end = end.unwrap_or(left).max(least);
        self.rectangle((left, above), (end, below), colour(bar.kind))?;
        let text = value(figure, bar);
        let ink = if bar.value.is_some() { INK } else { FAINT };
        // On a ground of its own, as the grid would run through it.
        self.rectangle((end + 3, above), (end + 7 + width(&text), below), WHITE)?;
        self.text(
            &text,
            (end + 6, middle),
            (TEXT, FontStyle::Normal),
            ink,
            HPos::Left,
        )
    }

    /// The colours that occur.
    fn legend(&self, figure: &Figure, y: i32) -> Drawn {
        let mut x = MARGIN;
        for (kind, colour, words) in KINDS {
            if figure
                .groups
                .iter()
                .flat_map(|group| &group.bars)
                .any(|bar| bar.kind == kind)
            {
                self.rectangle((x, y - 6), (x + 12, y + 6), colour)?;
                self.text(
                    words,
                    (x + 18, y),
                    (TEXT, FontStyle::Normal),
                    INK,
                    HPos::Left,
                )?;
                x += 18 + width(words) + 24;
            }
        }
        Ok(())
    }

    /// `place` is the text's middle line, and the side of it that `to` says.
    fn text(
        &self,
        text: &str,
        place: (i32, i32),
        font: (i32, FontStyle),
        colour: RGBColor,
        to: HPos,
    ) -> Drawn {
        let (size, style) = font;
        let font = (FONT, f64::from(size) * PLOTTERS_SIZE)
            .into_font()
            .style(style);
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(to, VPos::Center));
        // Centred is the middle of a small letter; digits and capitals are taller.
        self.area.draw_text(text, &style, (place.0, place.1 + 1))
    }

    fn line(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&PathElement::new([from, to], colour))
    }

    fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], colour.filled()))
    }
}

/// Of an ordinary text.
fn width(text: &str) -> i32 {
    let font = (FONT, f64::from(TEXT) * PLOTTERS_SIZE).into_font();
    font.box_size(text).expect("the font is registered").0 as i32
}

fn value(figure: &Figure, bar: &Bar) -> String {
    bar.value.map_or_else(
        || "no result".to_owned(),
        |value| format!("{value:.*}", figure.decimals),
    )
}

fn colour(kind: Kind) -> RGBColor {
    KINDS
        .iter()
        .find(|(of, ..)| *of == kind)
        .map_or(INK, |(_, colour, _)| *colour)
}

/// From nought, as bars must be, in steps of 1, 2 or 5 times a power of ten.
struct Axis {
    end: f64,
    step: f64,
    decimals: usize,
}

impl Axis {
    fn new(highest: f64) -> Self {
        const STEPS: f64 = 6.0;
        let highest = if highest > 0.0 { highest } else { 1.0 };
        let power = 10f64.powf((highest / STEPS).log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0]
            .into_iter()
            .map(|times| times * power)
            .find(|step| step * STEPS >= highest);
        let step = step.unwrap_or(10.0 * power);
        let decimals = if step < 1.0 {
            -step.log10().floor() as usize
        } else {
            0
        };
        Self {
            end: highest,
            step,
            decimals,
        }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = (self.end / self.step + 1e-9).floor() as usize;
        (0..=count).map(|i| i as f64 * self.step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{figure::figures, table::tests::realtime};

    #[test]
    fn an_svg_says_everything() {
        let figures = figures(&realtime(false));
        let names: Vec<_> = figures.iter().map(|figure| figure.name.as_str()).collect();
        assert_eq!(
            names,
            ["average-turnaround-x86_64", "turnaround-realtime-x86_64"]
        );
        let average = svg(&figures[0]).unwrap();
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
        let tasks = svg(&figures[1]).unwrap();
        assert!(tasks.contains("long") && tasks.contains("short") && tasks.contains("6.200"));
    }

    #[test]
    fn a_png_is_a_picture_with_every_colour_in_it() {
        for figure in figures(&realtime(false)) {
            let picture = Pixmap::decode_png(&png(&svg(&figure).unwrap()).unwrap()).unwrap();
            assert_eq!(
                (picture.width(), picture.height()),
                (WIDTH as u32 * 2, height(&figure) as u32 * 2)
            );
            let has = |wanted: RGBColor| {
                picture
                    .pixels()
                    .iter()
                    .any(|p| (p.red(), p.green(), p.blue()) == wanted.rgb())
            };
            for (_, colour, words) in KINDS {
                assert!(has(colour), "{words}");
            }
            let dark = picture
                .pixels()
                .iter()
                .filter(|p| p.red() < 0x60 && p.blue() < 0x60)
                .count();
            assert!(
                dark > 1000,
                "text leaves dark pixels, on any machine: {dark}"
            );
        }
    }

    #[test]
    fn an_axis_has_round_steps_from_nought() {
        let ticks = |highest: f64| Axis::new(highest).ticks().collect::<Vec<_>>();
        assert_eq!(ticks(3346.3), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(ticks(162.5), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(ticks(0.0).len(), 6);
        let small = Axis::new(0.7);
        assert_eq!((small.step, small.decimals), (0.2, 1));
    }
}
