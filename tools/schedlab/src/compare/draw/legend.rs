//! Which colour is whose.

use crate::{
    compare::figure::Kind,
    draw::{BLUE, Canvas, Drawn, FontStyle, HPos, INK, MARGIN, ORANGE, RGBColor, TEXT, width},
};

/// Three colours that differ in brightness too.
pub const KINDS: [(Kind, RGBColor, &str); 3] = [
    (Kind::Ours, BLUE, "this project's policies"),
    (Kind::Pbg, ORANGE, "PBG, following its plan"),
    (Kind::Stock, RGBColor(0xb4, 0xb8, 0xbd), "stock axsched"),
];

/// The colours that occur.
pub fn legend(canvas: &Canvas, kinds: &[Kind], y: i32) -> Drawn {
    let mut x = MARGIN;
    for (kind, colour, words) in KINDS {
        if kinds.contains(&kind) {
            canvas.rectangle((x, y - 6), (x + 12, y + 6), colour)?;
            canvas.text(
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

/// The colour of its kind.
pub fn colour(kind: Kind) -> RGBColor {
    KINDS
        .iter()
        .find(|(of, ..)| *of == kind)
        .map_or(INK, |(_, colour, _)| *colour)
}
