//! What all figures have in common: a canvas with a font of its own, an axis, a
//! look; as SVG, and as PNG.
//!
//! The PNG is the SVG, rasterised. The font is built in: it is the one that is
//! measured and that a PNG shows; an SVG's reader may use another.

use std::sync::{Arc, LazyLock, Once};

use anyhow::{Context, Result, anyhow};
use plotters::{
    coord::Shift,
    element::DashedPathElement,
    prelude::*,
    style::{
        register_font,
        text_anchor::{Pos, VPos},
    },
};
use resvg::{
    tiny_skia::{Pixmap, Transform},
    usvg::{self, fontdb},
};

pub use plotters::style::{FontStyle, RGBColor, WHITE, text_anchor::HPos};

/// What an SVG asks its reader for; the reader of ours has DejaVu Sans.
const FONT: &str = "sans-serif";
const FONT_HERE: &str = "DejaVu Sans";
/// plotters divides a font's size by this before it writes it down.
const PLOTTERS_SIZE: f64 = 1.24;

/// A PNG has this many pixels for each unit of the layout.
pub const PNG_SCALE: f32 = 2.0;

pub const WIDTH: i32 = 860;
pub const MARGIN: i32 = 24;
pub const HEADER: i32 = 68;
pub const AXIS: i32 = 54;
pub const LEGEND: i32 = 34;

pub const TEXT: i32 = 12;
pub const SMALL: i32 = 11;

pub const INK: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub const FAINT: RGBColor = RGBColor(0x66, 0x66, 0x66);
pub const GRID: RGBColor = RGBColor(0xdd, 0xdd, 0xdd);

pub const BLUE: RGBColor = RGBColor(0x3b, 0x76, 0xaf);
pub const ORANGE: RGBColor = RGBColor(0xd9, 0x6b, 0x0b);

pub type Drawn =
    Result<(), DrawingAreaErrorKind<<SVGBackend<'static> as DrawingBackend>::ErrorType>>;

/// A figure of the usual width, under its title. `name` is for the error.
pub fn svg(
    name: &str,
    height: i32,
    title: &str,
    subtitle: &str,
    draw: impl FnOnce(&Canvas) -> Drawn,
) -> Result<String> {
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
    let area = SVGBackend::with_string(&mut out, (WIDTH as u32, height as u32)).into_drawing_area();
    let canvas = Canvas { area };
    let drawn = canvas
        .heading(title, subtitle)
        .and_then(|()| draw(&canvas))
        .and_then(|()| canvas.area.present());
    drop(canvas);
    drawn.map_err(|e| anyhow!("{name} cannot be drawn: {e}"))?;
    Ok(out)
}

pub fn png(svg: &str) -> Result<Vec<u8>> {
    let tree = tree(svg)?;
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

/// With the texts where our font puts them.
fn tree(svg: &str) -> Result<usvg::Tree> {
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
    Ok(usvg::Tree::from_str(svg, &options)?)
}

pub struct Canvas<'a> {
    area: DrawingArea<SVGBackend<'a>, Shift>,
}

impl Canvas<'_> {
    fn heading(&self, title: &str, subtitle: &str) -> Drawn {
        self.area.fill(&WHITE)?;
        self.text(title, (MARGIN, 26), (18, FontStyle::Bold), INK, HPos::Left)?;
        self.text(
            subtitle,
            (MARGIN, 48),
            (TEXT, FontStyle::Normal),
            FAINT,
            HPos::Left,
        )
    }

    /// The lines of an axis from `HEADER` down, what they stand for, and its name.
    pub fn axis(&self, axis: &Axis, name: &str, sides: (i32, i32), bottom: i32) -> Drawn {
        self.axis_below(axis, name, sides, (HEADER, bottom))
    }

    /// The lines of an axis from `top` to `bottom`, what they stand for, and its name.
    pub fn axis_below(
        &self,
        axis: &Axis,
        name: &str,
        (left, right): (i32, i32),
        (top, bottom): (i32, i32),
    ) -> Drawn {
        for (x, label) in axis.labels((left, right)) {
            self.line((x, top), (x, bottom + 4), GRID)?;
            self.label(&label, (x, bottom + 14), HPos::Center)?;
        }
        let middle = ((left + right) / 2, bottom + 36);
        self.text(name, middle, (TEXT, FontStyle::Normal), INK, HPos::Center)
    }

    /// The lines of an axis that goes up, from `left` to `right`, and what they stand for;
    /// its name above them, from the left margin on.
    pub fn axis_beside(
        &self,
        axis: &Axis,
        name: &str,
        (left, right): (i32, i32),
        (top, bottom): (i32, i32),
    ) -> Drawn {
        for (y, label) in axis.labels((bottom, top)) {
            self.line((left - 4, y), (right, y), GRID)?;
            self.label(&label, (left - 8, y), HPos::Right)?;
        }
        let above = (MARGIN, top - 16);
        self.text(name, above, (TEXT, FontStyle::Normal), INK, HPos::Left)
    }

    /// What a line of an axis stands for.
    fn label(&self, text: &str, place: (i32, i32), to: HPos) -> Drawn {
        self.text(text, place, (SMALL, FontStyle::Normal), FAINT, to)
    }

    /// `place` is the text's middle line, and the side of it that `to` says.
    pub fn text(
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

    pub fn line(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&PathElement::new([from, to], colour))
    }

    /// A line from point to point, dashed or not.
    pub fn path(&self, points: &[(i32, i32)], colour: RGBColor, stroke: Stroke) -> Drawn {
        let style = colour.stroke_width(stroke.width);
        let points = points.iter().copied();
        match stroke.dash {
            None => self
                .area
                .draw(&PathElement::new(points.collect::<Vec<_>>(), style)),
            Some((dash, gap)) => self
                .area
                .draw(&DashedPathElement::new(points, dash, gap, style)),
        }
    }

    pub fn dot(&self, place: (i32, i32), radius: i32, colour: RGBColor) -> Drawn {
        self.area.draw(&Circle::new(place, radius, colour.filled()))
    }

    pub fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.area.draw(&Rectangle::new([from, to], colour.filled()))
    }
}

/// How a line looks without its colour.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    pub width: u32,
    /// How long a dash is, and the gap after it.
    pub dash: Option<(u32, u32)>,
}

/// Of an ordinary text.
pub fn width(text: &str) -> i32 {
    let font = (FONT, f64::from(TEXT) * PLOTTERS_SIZE).into_font();
    font.box_size(text).expect("the font is registered").0 as i32
}

/// From nought, as bars must be, in steps of 1, 2 or 5 times a power of ten.
pub struct Axis {
    pub end: f64,
    step: f64,
    pub decimals: usize,
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

    /// Where a value is, between two places.
    pub fn place(&self, value: f64, (left, right): (i32, i32)) -> i32 {
        left + (value / self.end * f64::from(right - left)).round() as i32
    }

    /// Where the lines are between two places, and what they stand for.
    fn labels(&self, ends: (i32, i32)) -> impl Iterator<Item = (i32, String)> {
        self.ticks()
            .map(move |tick| (self.place(tick, ends), format!("{tick:.*}", self.decimals)))
    }

    pub fn ticks(&self) -> impl Iterator<Item = f64> {
        let count = (self.end / self.step + 1e-9).floor() as usize;
        (0..=count).map(|i| i as f64 * self.step)
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Every text is on the page, and none on another.
    pub fn assert_legible(svg: &str) {
        fn texts(group: &usvg::Group, found: &mut Vec<(String, usvg::Rect)>) {
            for node in group.children() {
                match node {
                    usvg::Node::Group(group) => texts(group, found),
                    usvg::Node::Text(text) => {
                        let words = text.chunks().iter().map(|chunk| chunk.text()).collect();
                        found.push((words, text.abs_bounding_box()));
                    }
                    _ => {}
                }
            }
        }
        let tree = tree(svg).unwrap();
        let page = tree.size().to_rect(0.0, 0.0).unwrap();
        let mut found = Vec::new();
        texts(tree.root(), &mut found);
        assert!(!found.is_empty());
        for (i, (text, place)) in found.iter().enumerate() {
            assert!(
                page.left() <= place.left()
                    && place.right() <= page.right()
                    && page.top() <= place.top()
                    && place.bottom() <= page.bottom(),
                "{text} is not on the page: {place:?}"
            );
            for (other, there) in &found[..i] {
                let apart = place.right() <= there.left()
                    || there.right() <= place.left()
                    || place.bottom() <= there.top()
                    || there.bottom() <= place.top();
                assert!(apart, "{text} {place:?} is on {other} {there:?}");
            }
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
