//! What all figures have in common: a canvas with a font of its own, an axis, a
//! look; as SVG, and as PNG.
//!
//! A figure is drawn twice by the same code. The font is built in: it is the one that is
//! measured and that a PNG shows; an SVG's reader may use another.

use std::{
    error::Error,
    sync::{LazyLock, Once},
};

use ab_glyph::{Font, FontRef, PxScale, ScaleFont, point};
use anyhow::{Result, anyhow};
use plotters::{
    backend::RGBPixel,
    coord::Shift,
    element::{DashedPathElement, Drawable, PointCollection},
    prelude::*,
    style::{
        register_font,
        text_anchor::{Pos, VPos},
    },
};

pub use plotters::style::{FontStyle, RGBColor, WHITE, text_anchor::HPos};

/// What an SVG asks its reader for; the reader of ours has DejaVu Sans.
const FONT: &str = "sans-serif";
/// plotters divides a font's size by this before it writes it down.
const PLOTTERS_SIZE: f64 = 1.24;

/// A PNG has this many pixels for each unit of the layout.
pub const PNG_SCALE: i32 = 2;

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

pub type Drawn = Result<(), Box<dyn Error + Send + Sync>>;

/// A figure of the usual width, under its title.
pub struct Picture<'a> {
    /// What the figure is called in an error.
    pub name: &'a str,
    pub height: i32,
    pub title: String,
    pub subtitle: String,
    pub draw: Box<dyn Fn(&Canvas) -> Drawn + 'a>,
}

impl Picture<'_> {
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        let size = (WIDTH as u32, self.height as u32);
        let backend = SVGBackend::with_string(&mut svg, size);
        self.drawn(Canvas::Svg(backend.into_drawing_area()))?;
        Ok(svg)
    }

    pub fn png(&self) -> Result<Vec<u8>> {
        let [width, height] = [WIDTH, self.height].map(|length| (length * PNG_SCALE) as u32);
        let mut pixels = vec![0; width as usize * height as usize * RGB];
        let backend =
            BitMapBackend::<RGBPixel>::with_buffer_and_format(&mut pixels, (width, height))?;
        self.drawn(Canvas::Pixels(backend.into_drawing_area()))?;
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, width, height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.write_header()?.write_image_data(&pixels)?;
        Ok(out)
    }

    fn drawn(&self, canvas: Canvas) -> Result<()> {
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
        canvas
            .heading(&self.title, &self.subtitle)
            .and_then(|()| (self.draw)(&canvas))
            .and_then(|()| canvas.present())
            .map_err(|e| anyhow!("{} cannot be drawn: {e}", self.name))
    }
}

/// Bytes of a pixel.
const RGB: usize = 3;

/// Where a figure is drawn. Places and lengths are those of the layout, whichever it is.
pub enum Canvas<'a> {
    Svg(DrawingArea<SVGBackend<'a>, Shift>),
    Pixels(DrawingArea<BitMapBackend<'a, RGBPixel>, Shift>),
}

impl<'a> Canvas<'a> {
    fn present(&self) -> Drawn {
        match self {
            Self::Svg(area) => area.present()?,
            Self::Pixels(area) => area.present()?,
        }
        Ok(())
    }

    /// Pixels for each unit of the layout.
    fn scale(&self) -> i32 {
        match self {
            Self::Svg(_) => 1,
            Self::Pixels(_) => PNG_SCALE,
        }
    }

    fn place(&self, (x, y): (i32, i32)) -> (i32, i32) {
        (x * self.scale(), y * self.scale())
    }

    fn draw<E>(&self, element: &E) -> Drawn
    where
        for<'e> &'e E: PointCollection<'e, (i32, i32)>,
        E: Drawable<SVGBackend<'a>> + Drawable<BitMapBackend<'a, RGBPixel>>,
    {
        match self {
            Self::Svg(area) => area.draw(element)?,
            Self::Pixels(area) => area.draw(element)?,
        }
        Ok(())
    }

    fn heading(&self, title: &str, subtitle: &str) -> Drawn {
        match self {
            Self::Svg(area) => area.fill(&WHITE)?,
            Self::Pixels(area) => area.fill(&WHITE)?,
        }
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
    pub fn axis(&self, axis: &Axis, name: &str, (left, right): (i32, i32), bottom: i32) -> Drawn {
        for (x, label) in axis.labels((left, right)) {
            self.line((x, HEADER), (x, bottom + 4), GRID)?;
            self.label(&label, (x, bottom + 14), HPos::Center)?;
        }
        let middle = ((left + right) / 2, bottom + 36);
        self.text(name, middle, (TEXT, FontStyle::Normal), INK, HPos::Center)
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
        // Centred is the middle of a small letter; digits and capitals are taller.
        let place = (place.0, place.1 + 1);
        match self {
            Self::Svg(area) => {
                let (size, style) = font;
                let font = (FONT, f64::from(size) * PLOTTERS_SIZE)
                    .into_font()
                    .style(style);
                let style = TextStyle::from(font)
                    .color(&colour)
                    .pos(Pos::new(to, VPos::Center));
                area.draw_text(text, &style, place)?;
            }
            Self::Pixels(area) => {
                // plotters itself forgets the space beside a letter.
                for (at, cover) in glyphs(text, self.place(place), font, self.scale(), to) {
                    area.draw_pixel(at, &colour.mix(cover))?;
                }
            }
        }
        Ok(())
    }

    pub fn line(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        self.path(
            &[from, to],
            colour,
            Stroke {
                width: 1,
                dash: None,
            },
        )
    }

    /// A line from point to point, dashed or not.
    pub fn path(&self, points: &[(i32, i32)], colour: RGBColor, stroke: Stroke) -> Drawn {
        let scale = self.scale() as u32;
        let style = colour.stroke_width(stroke.width * scale);
        let points = points.iter().map(|point| self.place(*point));
        match stroke.dash {
            None => self.draw(&PathElement::new(points.collect::<Vec<_>>(), style)),
            Some((dash, gap)) => self.draw(&DashedPathElement::new(
                points,
                dash * scale,
                gap * scale,
                style,
            )),
        }
    }

    pub fn dot(&self, place: (i32, i32), radius: i32, colour: RGBColor) -> Drawn {
        let radius = radius * self.scale();
        self.draw(&Circle::new(self.place(place), radius, colour.filled()))
    }

    pub fn rectangle(&self, from: (i32, i32), to: (i32, i32), colour: RGBColor) -> Drawn {
        let corners = [self.place(from), self.place(to)];
        self.draw(&Rectangle::new(corners, colour.filled()))
    }
}

/// The pixels of a text and how much of each is covered. `place` is the middle of its small
/// letters, and the side of it that `to` says.
fn glyphs(
    text: &str,
    place: (i32, i32),
    (size, style): (i32, FontStyle),
    scale: i32,
    to: HPos,
) -> Vec<((i32, i32), f64)> {
    static FONTS: LazyLock<[FontRef; 2]> = LazyLock::new(|| {
        [dejavu::sans::regular(), dejavu::sans::bold()]
            .map(|font| FontRef::try_from_slice(font).expect("it is a font"))
    });
    let font = &FONTS[usize::from(matches!(style, FontStyle::Bold))];
    // Of an em, as in an SVG, and not from the highest to the lowest of all letters.
    let em = font.units_per_em().expect("it has a size");
    let font = font.as_scaled(PxScale::from(
        (size * scale) as f32 * font.height_unscaled() / em,
    ));
    let mut x = 0.0;
    let mut before = None;
    let mut placed = Vec::new();
    for letter in text.chars() {
        let id = font.glyph_id(letter);
        x += before.map_or(0.0, |before| font.kern(before, id));
        placed.push((letter, x));
        x += font.h_advance(id);
        before = Some(id);
    }
    let left = match to {
        HPos::Left => 0.0,
        HPos::Center => x / 2.0,
        HPos::Right => x,
    };
    let small = font.outline_glyph(font.scaled_glyph('x'));
    let base = small.map_or(0.0, |small| small.px_bounds().height() / 2.0);
    let mut pixels = Vec::new();
    for (letter, x) in placed {
        let mut glyph = font.scaled_glyph(letter);
        glyph.position = point(place.0 as f32 + x - left, place.1 as f32 + base);
        if let Some(outline) = font.outline_glyph(glyph) {
            let corner = outline.px_bounds().min;
            outline.draw(|x, y, cover| {
                let at = (corner.x as i32 + x as i32, corner.y as i32 + y as i32);
                pixels.push((at, f64::from(cover.min(1.0))));
            });
        }
    }
    pixels
}

/// How a line looks without its colour.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    pub width: u32,
    /// How long a dash is, and the gap after it.
    pub dash: Option<(u32, u32)>,
}

/// The width of an ordinary text.
pub fn width(text: &str) -> i32 {
    width_in(text, (TEXT, FontStyle::Normal))
}

fn width_in(text: &str, (size, style): (i32, FontStyle)) -> i32 {
    let font = (FONT, f64::from(size) * PLOTTERS_SIZE)
        .into_font()
        .style(style);
    font.box_size(text).expect("the font is registered").0 as i32
}

/// An axis from 0, as bars need it, in steps of 1, 2 or 5 times a power of ten.
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

/// Logarithmic, with lines at powers of ten, or at 1, 2 and 5 times them where those would
/// be too few.
pub struct LogAxis {
    /// The logarithms of both ends.
    ends: (f64, f64),
}

impl LogAxis {
    /// For these values, with a little space at either end. Of what is not positive there is
    /// no logarithm: it is at the lower end.
    pub fn new(values: impl Iterator<Item = f64>) -> Self {
        const SPACE: f64 = 0.08;
        let (mut low, mut high) = (f64::MAX, f64::MIN);
        for value in values.filter(|value| *value > 0.0) {
            (low, high) = (low.min(value.log10()), high.max(value.log10()));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // What is all the same is in the middle.
        let space = ((high - low) * SPACE).max(0.05);
        Self {
            ends: (low - space, high + space),
        }
    }

    /// Where a value is, between two places.
    pub fn place(&self, value: f64, (left, right): (i32, i32)) -> i32 {
        let (low, high) = self.ends;
        let part = (value.log10().max(low) - low) / (high - low);
        left + (part * f64::from(right - left)).round() as i32
    }

    /// Where lines are, and what they stand for.
    pub fn ticks(&self) -> Vec<(f64, String)> {
        const FEW: usize = 2;
        let (low, high) = self.ends;
        let within = |times: &[f64]| {
            let mut ticks = Vec::new();
            for power in low.floor() as i32..=high.ceil() as i32 {
                for tick in times.iter().map(|times| times * 10f64.powi(power)) {
                    if (low..=high).contains(&tick.log10()) {
                        let decimals = usize::try_from(-power).unwrap_or(0);
                        ticks.push((tick, format!("{tick:.decimals$}")));
                    }
                }
            }
            ticks
        };
        let powers = within(&[1.0]);
        if powers.len() < FEW {
            return within(&[1.0, 2.0, 5.0]);
        }
        powers
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Every text of a figure with its left, top, right and bottom, in the font that is
    /// measured; as plotters writes texts.
    fn texts(svg: &str) -> Vec<(String, [f64; 4])> {
        let text = |element: &str| {
            let attribute = |name: &str| {
                let value = element.split_once(&format!(" {name}=\"")).unwrap().1;
                value.split('"').next().unwrap().to_owned()
            };
            let number = |name: &str| attribute(name).parse::<f64>().unwrap();
            let (head, words) = element.split_once('>').unwrap();
            let words = words.split("</text>").next().unwrap().trim();
            let words = words.replace("&lt;", "<").replace("&gt;", ">");
            let style = match head.contains("font-weight=\"bold\"") {
                true => FontStyle::Bold,
                false => FontStyle::Normal,
            };
            let size = number("font-size");
            let (x, y) = (number("x"), number("y"));
            let wide = f64::from(width_in(&words, (size as i32, style)));
            let left = match attribute("text-anchor").as_str() {
                "start" => x,
                "middle" => x - wide / 2.0,
                _ => x - wide,
            };
            let half = size * 0.58; // from the highest letter to the lowest
            (words, [left, y - half, left + wide, y + half])
        };
        svg.split("<text").skip(1).map(text).collect()
    }

    /// Every text is on the page, and none on another.
    pub fn assert_legible(svg: &str) {
        let height = svg.split_once(" height=\"").unwrap().1;
        let height: f64 = height.split('"').next().unwrap().parse().unwrap();
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

    /// What a PNG shows.
    pub struct Pixels {
        pub width: u32,
        pub height: u32,
        bytes: Vec<u8>,
    }

    impl Pixels {
        pub fn of(png: &[u8]) -> Self {
            let mut reader = png::Decoder::new(std::io::Cursor::new(png))
                .read_info()
                .unwrap();
            let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut bytes).unwrap();
            assert_eq!(info.color_type, png::ColorType::Rgb);
            Self {
                width: info.width,
                height: info.height,
                bytes,
            }
        }

        pub fn all(&self) -> impl Iterator<Item = RGBColor> {
            self.bytes
                .chunks_exact(RGB)
                .map(|p| RGBColor(p[0], p[1], p[2]))
        }

        /// The one in the middle of a place of the layout.
        pub fn at(&self, x: i32, y: i32) -> RGBColor {
            let [x, y] = [x, y].map(|at| (at * PNG_SCALE) as usize);
            let at = (y * self.width as usize + x) * RGB;
            RGBColor(self.bytes[at], self.bytes[at + 1], self.bytes[at + 2])
        }
    }

    fn of<'a>(draw: impl Fn(&Canvas) -> Drawn + 'a) -> Picture<'a> {
        Picture {
            name: "x",
            height: 100,
            title: "first".into(),
            subtitle: String::new(),
            draw: Box::new(draw),
        }
    }

    #[test]
    #[should_panic(expected = "second [28.0")]
    fn a_text_on_another_is_found() {
        let picture = of(|canvas| {
            canvas.text(
                "second",
                (28, 30),
                (TEXT, FontStyle::Normal),
                INK,
                HPos::Left,
            )
        });
        assert_legible(&picture.svg().unwrap());
    }

    #[test]
    fn a_text_of_a_png_is_where_its_svg_has_it() {
        for (to, x) in [(HPos::Left, 100), (HPos::Center, 400), (HPos::Right, 700)] {
            let drawn = of(|canvas| canvas.text("Weight", (x, 80), (18, FontStyle::Bold), INK, to));
            let (_, [left, top, right, bottom]) = texts(&drawn.svg().unwrap()).pop().unwrap();
            let pixels = Pixels::of(&drawn.png().unwrap());
            let dark = (60..pixels.height as i32 / PNG_SCALE).flat_map(|y| {
                let row = (0..WIDTH)
                    .filter(|x| pixels.at(*x, y).0 < 0x80)
                    .map(move |x| (x, y));
                row.collect::<Vec<_>>()
            });
            let dark: Vec<_> = dark.collect();
            let ends = |of: fn(&(i32, i32)) -> i32| {
                let places = || dark.iter().map(of).map(f64::from);
                (
                    places().fold(f64::MAX, f64::min),
                    places().fold(0.0, f64::max),
                )
            };
            let ((x0, x1), (y0, y1)) = (ends(|p| p.0), ends(|p| p.1));
            assert!(
                (x0 - left).abs() < 8.0 && (right - x1).abs() < 8.0,
                "{x0} {x1}"
            );
            assert!(top <= y0 && y1 <= bottom, "{y0} {y1} in {top} {bottom}");
        }
    }

    #[test]
    fn an_axis_has_round_steps_from_0() {
        let ticks = |highest: f64| Axis::new(highest).ticks().collect::<Vec<_>>();
        assert_eq!(ticks(3346.3), [0.0, 1000.0, 2000.0, 3000.0]);
        assert_eq!(ticks(162.5), [0.0, 50.0, 100.0, 150.0]);
        assert_eq!(ticks(0.0).len(), 6);
        let small = Axis::new(0.7);
        assert_eq!((small.step, small.decimals), (0.2, 1));
    }

    #[test]
    fn a_logarithmic_axis_has_powers_of_ten_or_lines_between_them() {
        let labels = |values: &[f64]| {
            let ticks = LogAxis::new(values.iter().copied()).ticks();
            ticks
                .into_iter()
                .map(|(_, label)| label)
                .collect::<Vec<_>>()
        };
        assert_eq!(labels(&[1.0, 500.0]), ["1", "10", "100"]);
        assert_eq!(labels(&[0.04, 20.0]), ["0.1", "1", "10"]);
        assert_eq!(labels(&[1.5, 8.0]), ["2", "5"]);
        let axis = LogAxis::new([1.0, 100.0].into_iter());
        assert_eq!(axis.place(10.0, (0, 200)), 100);
        assert_eq!(axis.place(0.0, (0, 200)), 0);
        let nothing = LogAxis::new([].into_iter());
        assert_eq!(nothing.ticks().len(), 2);
    }
}
