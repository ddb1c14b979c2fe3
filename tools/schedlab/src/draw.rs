//! The parts that all charts share: a canvas, a font, an axis and pens.
//!
//! A chart is an SVG. Texts are measured in a built-in font; a viewer of the SVG may use another.

use std::{error::Error, sync::Once};

use anyhow::{Result, anyhow};
use plotters::{
    coord::Shift,
    prelude::*,
    style::{
        register_font,
        text_anchor::{Pos, VPos},
    },
};

pub use plotters::style::{RGBColor, WHITE, text_anchor::HPos};

/// The font that an SVG names. The built-in font of this name is DejaVu Sans.
const FONT: &str = "sans-serif";
/// The factor by which plotters divides a font's size when it writes the SVG.
const PLOTTERS_SIZE: f64 = 1.24;

pub const WIDTH: i32 = 860;
pub const MARGIN: i32 = 24;
pub const HEADER: i32 = 68;
const AXIS: i32 = 54;
const LEGEND: i32 = 34;

pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub const FAINT: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

pub const BLUE: RGBColor = RGBColor(0x3b, 0x76, 0xaf);
pub const ORANGE: RGBColor = RGBColor(0xd9, 0x6b, 0x0b);

pub type Drawn = Result<(), Box<dyn Error + Send + Sync>>;
type Point = (i32, i32);

/// The size, style and colour of a text.
#[derive(Clone, Copy)]
pub struct Pen {
    size: i32,
    style: FontStyle,
    colour: RGBColor,
}

const fn pen(size: i32, style: FontStyle, colour: RGBColor) -> Pen {
    Pen {
        size,
        style,
        colour,
    }
}

pub const TITLE: Pen = pen(18, FontStyle::Bold, INK);
pub const HEADING: Pen = pen(13, FontStyle::Bold, INK);
pub const BOLD: Pen = pen(12, FontStyle::Bold, INK);
pub const TEXT: Pen = pen(12, FontStyle::Normal, INK);
pub const PALE: Pen = pen(12, FontStyle::Normal, FAINT);
pub const SMALL: Pen = pen(11, FontStyle::Normal, FAINT);

/// Returns a chart with a heading, the body that `draw` draws, an axis and a legend. `body` is the
/// height of the body.
pub fn svg(
    title: &str,
    subtitle: &str,
    body: i32,
    draw: impl FnOnce(&Canvas) -> Drawn,
) -> Result<String> {
    static FONTS: Once = Once::new();
    FONTS.call_once(|| {
        for (style, font) in [
            (FontStyle::Normal, dejavu::sans::regular()),
            (FontStyle::Bold, dejavu::sans::bold()),
        ] {
            let is_known = register_font(FONT, style, font).is_ok();
            assert!(is_known, "the font that is built in is a font");
        }
    });
    let mut svg = String::new();
    let size = (WIDTH as u32, (HEADER + body + AXIS + LEGEND) as u32);
    let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
    let canvas = Canvas {
        area,
        bottom: HEADER + body,
    };
    let drawn = || {
        canvas.area.fill(&WHITE)?;
        canvas.text(title, (MARGIN, 26), TITLE, HPos::Left)?;
        canvas.text(subtitle, (MARGIN, 48), PALE, HPos::Left)?;
        draw(&canvas)?;
        Ok(canvas.area.present()?)
    };
    drawn()
        .map_err(|e: Box<dyn Error + Send + Sync>| anyhow!("{title}: it cannot be drawn: {e}"))?;
    drop(canvas);
    Ok(svg)
}

/// The area of a chart.
pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
    /// The top of the axis.
    pub bottom: i32,
}

impl Canvas<'_> {
    /// Returns the middle line of the legend.
    pub fn legend(&self) -> i32 {
        self.bottom + AXIS + LEGEND / 2
    }

    /// Draws the lines of an axis from `HEADER` down, their labels, and its name.
    pub fn axis(&self, axis: &Axis, name: &str, (left, right): (i32, i32)) -> Drawn {
        for (x, label) in axis.labels((left, right)) {
            self.line((x, HEADER), (x, self.bottom + 4), GRID)?;
            self.text(&label, (x, self.bottom + 14), SMALL, HPos::Center)?;
        }
        let middle = ((left + right) / 2, self.bottom + 36);
        self.text(name, middle, TEXT, HPos::Center)
    }

    /// Draws a text. `place` is on its middle line, at the side `to`.
    pub fn text(&self, text: &str, place: Point, pen: Pen, to: HPos) -> Drawn {
        let style = TextStyle::from(font(pen)).color(&pen.colour);
        let style = style.pos(Pos::new(to, VPos::Center));
        // plotters centres small letters; digits and capitals are taller.
        Ok(self.area.draw_text(text, &style, (place.0, place.1 + 1))?)
    }

    pub fn line(&self, from: Point, to: Point, colour: RGBColor) -> Drawn {
        let line = PathElement::new([from, to], colour.stroke_width(1));
        Ok(self.area.draw(&line)?)
    }

    pub fn rectangle(&self, from: Point, to: Point, colour: RGBColor) -> Drawn {
        let rectangle = Rectangle::new([from, to], colour.filled());
        Ok(self.area.draw(&rectangle)?)
    }
}

fn font(pen: Pen) -> FontDesc<'static> {
    let size = f64::from(pen.size) * PLOTTERS_SIZE;
    (FONT, size).into_font().style(pen.style)
}

/// Returns the width of a text in the pen [`TEXT`].
pub fn width(text: &str) -> i32 {
    width_in(text, TEXT)
}

fn width_in(text: &str, pen: Pen) -> i32 {
    let size = font(pen).box_size(text);
    size.expect("the font is registered").0 as i32
}

/// Returns the width of the widest text; 0 if there are none.
pub fn widest<T: AsRef<str>>(texts: impl Iterator<Item = T>) -> i32 {
    texts.map(|text| width(text.as_ref())).max().unwrap_or(0)
}

/// An axis from 0 in steps of 1, 2 or 5 times a power of ten.
pub struct Axis {
    pub end: f64,
    step: f64,
    decimals: usize,
}

impl Axis {
    pub fn new(highest: f64) -> Self {
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

    /// Returns the place of a value between the ends of the axis.
    pub fn place(&self, value: f64, (left, right): (i32, i32)) -> i32 {
        left + (value / self.end * f64::from(right - left)).round() as i32
    }

    /// Returns the places of the lines between the ends of the axis, and their labels.
    fn labels(&self, ends: (i32, i32)) -> impl Iterator<Item = (i32, String)> {
        self.ticks()
            .map(move |tick| (self.place(tick, ends), format!("{tick:.*}", self.decimals)))
    }

    fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = (self.end / self.step + 1e-9).floor() as usize;
        (0..=count).map(|i| i as f64 * self.step)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns the value of an attribute of an element.
    fn attribute<'a>(element: &'a str, name: &str) -> &'a str {
        let value = element.split_once(&format!(" {name}=\"")).unwrap().1;
        value.split('"').next().unwrap()
    }

    /// Returns every text of a chart with its left, top, right and bottom in the built-in font.
    fn texts(svg: &str) -> Vec<(String, [f64; 4])> {
        let text = |element: &str| {
            let (head, words) = element.split_once('>').unwrap();
            let words = words.split("</text>").next().unwrap().trim();
            let words = words.replace("&lt;", "<").replace("&gt;", ">");
            let style = match head.contains("font-weight=\"bold\"") {
                true => FontStyle::Bold,
                false => FontStyle::Normal,
            };
            let [size, x, y] =
                ["font-size", "x", "y"].map(|name| attribute(head, name).parse::<f64>().unwrap());
            let wide = f64::from(width_in(&words, pen(size as i32, style, INK)));
            let left = match attribute(head, "text-anchor") {
                "start" => x,
                "middle" => x - wide / 2.0,
                _ => x - wide,
            };
            let half = size * 0.58; // from the highest letter to the lowest
            (words, [left, y - half, left + wide, y + half])
        };
        svg.split("<text").skip(1).map(text).collect()
    }

    /// Returns the rectangles of a colour: x, y, width and height.
    pub fn rectangles(svg: &str, RGBColor(r, g, b): RGBColor) -> Vec<[i32; 4]> {
        let fill = format!("fill=\"#{r:02X}{g:02X}{b:02X}\"");
        let ours = svg
            .lines()
            .filter(|line| line.starts_with("<rect ") && line.contains(&fill));
        let names = ["x", "y", "width", "height"];
        ours.map(|line| names.map(|name| attribute(line, name).parse().unwrap()))
            .collect()
    }

    /// Fails unless every text is on the page and none overlaps another.
    pub fn assert_legible(svg: &str) {
        let height: f64 = attribute(svg, "height").parse().unwrap();
        let found = texts(svg);
        assert!(!found.is_empty());
        for (i, (text, place)) in found.iter().enumerate() {
            let [left, top, right, bottom] = *place;
            assert!(
                0.0 <= left && right <= f64::from(WIDTH) && 0.0 <= top && bottom <= height,
                "{text} is not on the page: {place:?}"
            );
            for (other, there) in &found[..i] {
                let apart =
                    right <= there[0] || there[2] <= left || bottom <= there[1] || there[3] <= top;
                assert!(apart, "{text} {place:?} is on {other} {there:?}");
            }
        }
    }

    #[test]
    #[should_panic(expected = "second [28.0")]
    fn overlap_of_texts_is_found() {
        let second = |canvas: &Canvas| canvas.text("second", (28, 30), TEXT, HPos::Left);
        assert_legible(&svg("first", "", 0, second).unwrap());
    }

    #[test]
    fn axis_has_round_steps_from_0() {
        let ticks = |highest: f64| Axis::new(highest).ticks().collect::<Vec<_>>();
        assert_eq!(ticks(3346.3), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(ticks(162.5), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(ticks(0.0).len(), 6);
        let small = Axis::new(0.7);
        assert_eq!((small.step, small.decimals), (0.2, 1));
    }
}
