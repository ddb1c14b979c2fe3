//! Panels beside and below each other, one for each policy, on the same axes: a dot for
//! each task, its slowdown over its own length. Both axes are logarithmic, as jobs and what
//! they suffer differ by orders of magnitude. However many policies there are, all are on
//! one screen.

use super::legend::{colour, legend};
use crate::{
    compare::figure::Dots,
    draw::{
        AXIS, Canvas, Drawn, FAINT, FontStyle, GRID, HEADER, HPos, INK, LEGEND, LogAxis, MARGIN,
        SMALL, Stroke, TEXT, WIDTH,
    },
};

/// The highest that a figure may be, in units of the layout: a screen.
const SCREEN: i32 = 1000;
const ACROSS: usize = 3;
/// The highest that a panel's plot is.
const PLOT: i32 = 130;
const PANEL_TITLE: i32 = 30;
const PANEL_GAP: i32 = 12;
/// The names of both axes.
const AXES: i32 = 24;
const NUMBERS: i32 = 34;
const BETWEEN: i32 = 24;
const RADIUS: i32 = 3;

const OVER: &str = "slowdown: turnaround / time on a CPU, of each task";
const LENGTH: &str = "length of the task: time on a CPU, ms";

/// How high a plot of so many policies is.
fn plot(rows: i32) -> i32 {
    let room = SCREEN - HEADER - AXES - AXIS - LEGEND;
    PLOT.min(room / rows.max(1) - PANEL_TITLE - PANEL_GAP)
}

fn rows(panels: usize) -> i32 {
    panels.div_ceil(ACROSS) as i32
}

pub fn height(panels: usize) -> i32 {
    let row = plot(rows(panels)) + PANEL_TITLE + PANEL_GAP;
    HEADER + AXES + rows(panels) * row + AXIS + LEGEND
}

pub fn draw(canvas: &Canvas, panels: &[Dots]) -> Drawn {
    let tasks = || panels.iter().flat_map(|panel| &panel.slowdowns);
    let across = LogAxis::new(tasks().map(|task| task.own_ms));
    let up = LogAxis::new(tasks().map(|task| task.times).chain([1.0]));
    let above = (MARGIN, HEADER + AXES / 2 - 4);
    let normal = (TEXT, FontStyle::Normal);
    canvas.text(OVER, above, normal, INK, HPos::Left)?;

    let plot = plot(rows(panels.len()));
    let wide = (WIDTH - 2 * MARGIN - NUMBERS - 2 * BETWEEN) / ACROSS as i32;
    for (i, panel) in panels.iter().enumerate() {
        let (column, row) = ((i % ACROSS) as i32, (i / ACROSS) as i32);
        let left = MARGIN + NUMBERS + column * (wide + BETWEEN);
        let title = HEADER + AXES + row * (plot + PANEL_TITLE + PANEL_GAP);
        let area = PanelArea {
            sides: (left, left + wide),
            ends: (title + PANEL_TITLE, title + PANEL_TITLE + plot),
            is_first: column == 0,
            is_last: i + ACROSS >= panels.len(),
        };
        draw_panel(canvas, panel, &across, &up, &area)?;
    }
    let bottom = height(panels.len()) - AXIS - LEGEND;
    let middle = (WIDTH / 2, bottom + 36);
    canvas.text(LENGTH, middle, normal, INK, HPos::Center)?;
    let kinds: Vec<_> = panels.iter().map(|panel| panel.kind).collect();
    legend(canvas, &kinds, height(panels.len()) - LEGEND / 2)
}

/// Where a panel is.
struct PanelArea {
    sides: (i32, i32),
    ends: (i32, i32),
    /// Of its row: it has the numbers of the axis that goes up.
    is_first: bool,
    /// Of its column: it has the numbers of the other one.
    is_last: bool,
}

fn draw_panel(
    canvas: &Canvas,
    panel: &Dots,
    across: &LogAxis,
    up: &LogAxis,
    area: &PanelArea,
) -> Drawn {
    let ((left, right), (top, bottom)) = (area.sides, area.ends);
    let small = (SMALL, FontStyle::Normal);
    let upwards = (bottom, top);
    for (tick, label) in across.ticks() {
        let x = across.place(tick, area.sides);
        canvas.line((x, top), (x, bottom), GRID)?;
        if area.is_last {
            canvas.text(&label, (x, bottom + 12), small, FAINT, HPos::Center)?;
        }
    }
    for (tick, label) in up.ticks() {
        let y = up.place(tick, upwards);
        canvas.line((left, y), (right, y), GRID)?;
        if area.is_first {
            canvas.text(&label, (left - 8, y), small, FAINT, HPos::Right)?;
        }
    }
    canvas.line((left, top), (left, bottom), FAINT)?;
    canvas.line((left, bottom), (right, bottom), FAINT)?;
    let title = top - 12;
    let bold = (TEXT, FontStyle::Bold);
    canvas.text(&panel.label, (left, title), bold, INK, HPos::Left)?;
    let Some(median) = panel.median() else {
        return canvas.text("no result", (right, title), small, FAINT, HPos::Right);
    };
    let words = format!("median {}", times(median));
    canvas.text(&words, (right, title), small, INK, HPos::Right)?;
    for task in &panel.slowdowns {
        let at = (
            across.place(task.own_ms, area.sides),
            up.place(task.times, upwards),
        );
        canvas.dot(at, RADIUS, colour(panel.kind))?;
    }
    let y = up.place(median, upwards);
    let dashed = Stroke {
        width: 1,
        dash: Some((5, 4)),
    };
    canvas.path(&[(left, y), (right, y)], INK, dashed)
}

/// As many digits as tell it from its like.
fn times(value: f64) -> String {
    let decimals = match value {
        ..10.0 => 2,
        ..100.0 => 1,
        _ => 0,
    };
    format!("{value:.decimals$} \u{d7}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        compare::{
            draw::{height as figure_height, picture},
            figure::{Plot, figures},
            table::{Slowdown, tests::many_tasks},
        },
        draw::{
            PNG_SCALE,
            tests::{Pixels, assert_legible},
        },
    };

    #[test]
    fn many_tasks_are_dots_on_one_screen() {
        let all = figures(&many_tasks(17));
        let [figure] = &all[..] else {
            panic!("{all:?}")
        };
        assert_eq!(figure.name, "slowdown-batch-x86_64");
        let drawn = picture(figure);
        assert_legible(&drawn.svg().unwrap());
        assert!(figure_height(figure) <= SCREEN);
        for text in [
            "Slowdown of each task: batch on x86_64",
            OVER,
            LENGTH,
            "rr",
            "median 9.00 \u{d7}",
            "no result",
        ] {
            assert!(drawn.svg().unwrap().contains(text), "{text}");
        }
        assert_eq!(drawn.svg().unwrap().matches("<circle").count(), 2 * 17);
        assert!(matches!(figures(&many_tasks(16))[0].plot, Plot::Bars(_)));
    }

    #[test]
    fn however_many_policies_there_are_they_are_on_one_screen() {
        let mut figure = figures(&many_tasks(17)).remove(0);
        for count in 1..24 {
            let Plot::Dots(panels) = &mut figure.plot else {
                panic!("dots")
            };
            panels.resize(count, panels[0].clone());
            assert!(height(count) <= SCREEN, "{count}");
            assert_legible(&picture(&figure).svg().unwrap());
        }
    }

    #[test]
    fn a_dot_is_where_its_task_is() {
        let mut figure = figures(&many_tasks(17)).remove(0);
        let Plot::Dots(panels) = &mut figure.plot else {
            panic!("dots")
        };
        panels.truncate(1);
        // The ends of both axes, and the middle in their logarithm.
        panels[0].slowdowns = [(1.0, 1.0), (10.0, 10.0), (100.0, 100.0)]
            .map(|(own_ms, times)| Slowdown { own_ms, times })
            .into();
        let (kind, pixels) = (panels[0].kind, Pixels::of(&picture(&figure).png().unwrap()));
        assert_eq!(pixels.height as i32, height(1) * PNG_SCALE);
        let left = MARGIN + NUMBERS;
        let wide = (WIDTH - 2 * MARGIN - NUMBERS - 2 * BETWEEN) / ACROSS as i32;
        let middle = left + wide / 2;
        let y = HEADER + AXES + PANEL_TITLE + PLOT / 2;
        assert_eq!(pixels.at(middle, y - 2), colour(kind));
        assert_ne!(pixels.at(middle, y - 20), colour(kind));
        assert_ne!(pixels.at(middle + 20, y), colour(kind));
    }
}
