//! The charts of a table, with a horizontal bar for each policy. Over several boots a bar shows
//! the mean or the median, and a whisker on it the range.

use anyhow::Result;

use super::table::{AVERAGE, PER_YIELD, PER_YIELD_AND_LOOP, Row, Table};
use crate::{
    draw::{
        Axis, BLUE, Canvas, Drawn, FAINT, HEADER, HPos, INK, MARGIN, ORANGE, PALE, RGBColor, TEXT,
        WHITE, WIDTH, svg, widest, width,
    },
    setting::scaled,
    spread::{Spread, reach},
};

/// A bar and the space around it.
const BAR: i32 = 20;
const BAR_SPACE: i32 = 3;
/// The space above all bars and below them.
const SPACE: i32 = 4;
/// Half of the mark at a whisker's end.
const WHISKER: i32 = 4;

/// The colours of bars and their legend. They differ in brightness, too.
const KINDS: [(RGBColor, &str); 3] = [
    (BLUE, "this project's policies"),
    (ORANGE, "PBG, following its plan"),
    (RGBColor(0xb4, 0xb8, 0xbd), "stock axsched"),
];

#[derive(Debug)]
pub struct Chart {
    /// The file's name without its extension.
    pub name: String,
    pub title: String,
    pub subtitle: String,
    /// The axis, with its unit.
    axis: String,
    decimals: usize,
    bars: Vec<Bar>,
}

#[derive(Debug)]
struct Bar {
    label: String,
    /// The index in [`KINDS`].
    kind: usize,
    value: Option<Spread>,
}

/// Returns the charts whose column the table has.
pub fn charts(table: &Table) -> Vec<Chart> {
    let unit = match table.timing.as_str() {
        // 1 ns of counted time is 1 instruction.
        "icount" => "instructions",
        _ => "ns",
    };
    let per_yield = format!("{unit} per yield");
    let with_loop = format!("{per_yield}, with the loop before it");
    let mut columns = vec![
        (PER_YIELD, "yield-cost", "Cost of a yield", &*per_yield),
        (
            PER_YIELD_AND_LOOP,
            "yield-cost",
            "Cost of a yield and its loop",
            &*with_loop,
        ),
    ];
    if table.app == "realtime" {
        let axis = "average turnaround, ms";
        columns.push((AVERAGE, "average-turnaround", "Average turnaround", axis));
    }
    let charts = columns
        .into_iter()
        .filter_map(|(column, name, title, axis)| {
            let column = table.columns.iter().position(|c| c.title == column)?;
            let bar = |row: &Row| Bar {
                label: row.label.clone(),
                kind: match row.stock {
                    true => 2,
                    false => usize::from(row.label.starts_with("pbg")),
                },
                value: row.values[column],
            };
            Some(Chart {
                name: file_name(table, name),
                title: format!("{title}: {} on {}", table.app, table.arch),
                subtitle: subtitle(table),
                axis: axis.to_owned(),
                decimals: table.columns[column].decimals,
                bars: table.rows.iter().map(bar).collect(),
            })
        });
    charts.collect()
}

/// Returns the chart's file name, with each value of the setting that is not the default.
fn file_name(table: &Table, name: &str) -> String {
    let mut name = format!("{name}-{}{}", table.arch, scaled(table.scale));
    if table.smp != 1 {
        name += &format!("-smp{}", table.smp);
    } else if table.timing != "icount" {
        name += &format!("-{}", table.timing);
    }
    name
}

fn subtitle(table: &Table) -> String {
    let counted = "icount time (1 ns is 1 instruction)";
    let setting = table.setting().replace("icount time", counted);
    let bars = match (table.has_ranges(), table.is_real()) {
        (true, true) => "; median and range",
        (true, false) => "; mean and range",
        (false, _) => "",
    };
    format!("{setting}{bars}; less is better")
}

impl Chart {
    pub fn svg(&self) -> Result<String> {
        let body = BAR * self.bars.len() as i32 + 2 * SPACE;
        let draw = |canvas: &Canvas| self.draw(canvas);
        svg(&self.title, &self.subtitle, body, draw)
    }

    fn draw(&self, canvas: &Canvas) -> Drawn {
        // Names to the left of the bars, values to the right of the longest.
        let left = MARGIN + widest(self.bars.iter().map(|bar| &bar.label)) + 10;
        let right = WIDTH - MARGIN - widest(self.bars.iter().map(|bar| self.value(bar))) - 8;
        let longest = self.bars.iter().filter_map(|bar| Some(bar.value?.most));
        let axis = Axis::new(longest.fold(0.0, f64::max));
        canvas.axis(&axis, &self.axis, (left, right))?;
        let x = |value| axis.place(value, (left, right));
        for (y, bar) in (HEADER + SPACE..).step_by(BAR as usize).zip(&self.bars) {
            self.draw_bar(canvas, bar, left, x, y)?;
        }
        canvas.line((left, HEADER), (left, canvas.bottom + 4), FAINT)?;
        self.draw_legend(canvas)
    }

    /// Draws a name, a bar from `left` to the place that `x` gives the value, and the value.
    fn draw_bar(
        &self,
        canvas: &Canvas,
        bar: &Bar,
        left: i32,
        x: impl Fn(f64) -> i32,
        y: i32,
    ) -> Drawn {
        let middle = y + BAR / 2;
        let (above, below) = (y + BAR_SPACE, y + BAR - BAR_SPACE);
        canvas.text(&bar.label, (left - 8, middle), TEXT, HPos::Right)?;
        let (mean, most) = match bar.value {
            // A small value must not look like 0.
            Some(value) if value.middle() > 0.0 => (x(value.middle()).max(left + 2), x(value.most)),
            _ => (left, left),
        };
        canvas.rectangle((left, above), (mean, below), KINDS[bar.kind].0)?;
        let text = self.value(bar);
        // A white ground covers the lines of the grid.
        let end = mean.max(most) + 3;
        canvas.rectangle((end, above), (end + 4 + width(&text), below), WHITE)?;
        if let Some(value) = bar.value.filter(|value| value.count > 1) {
            let least = x(value.least);
            canvas.line((least, middle), (most, middle), INK)?;
            for end in [least, most] {
                canvas.line((end, middle - WHISKER), (end, middle + WHISKER), INK)?;
            }
        }
        let pen = if bar.value.is_some() { TEXT } else { PALE };
        canvas.text(&text, (end + 3, middle), pen, HPos::Left)
    }

    /// Draws the legend of the colours that occur.
    fn draw_legend(&self, canvas: &Canvas) -> Drawn {
        let (mut x, y) = (MARGIN, canvas.legend());
        for (kind, (colour, words)) in KINDS.into_iter().enumerate() {
            if self.bars.iter().any(|bar| bar.kind == kind) {
                canvas.rectangle((x, y - 6), (x + 12, y + 6), colour)?;
                canvas.text(words, (x + 18, y), TEXT, HPos::Left)?;
                x += 18 + width(words) + 24;
            }
        }
        Ok(())
    }

    fn value(&self, bar: &Bar) -> String {
        let Some(value) = bar.value else {
            return "no result".to_owned();
        };
        let number = |value| format!("{value:.*}", self.decimals);
        let text = format!("{} {}", number(value.middle()), reach(&value, number));
        text.trim_end().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::assert_has;
    use crate::{
        compare::table::tests::{over_boots, over_tick_phases, realtime, yields},
        draw::tests::{assert_legible, rectangles},
    };

    #[test]
    fn chart_shows_names_values_and_setting() {
        let mut yields_in_real_time = yields(None).remove(0);
        yields_in_real_time.timing = "real".to_owned();
        for (table, texts) in [
            (
                realtime(false),
                "Average turnaround: realtime on x86_64|1 CPU, icount time (1 ns is 1 instruction), scale 1; less is better|average turnaround, ms|policies|PBG, following its plan|stock axsched|3.000|no result",
            ),
            (
                over_tick_phases(),
                "4 tick phases; mean and range; less is better|205.000 ±2.44 %",
            ),
            (
                over_boots(),
                "4 CPUs, real time, scale 1, 5 boots; median and range; less is better",
            ),
            (
                yields(None).remove(0),
                "Cost of a yield and its loop|instructions per yield, with the loop before it",
            ),
            (
                yields_in_real_time,
                ">\nns per yield, with the loop before it",
            ),
        ] {
            let all = charts(&table);
            let [chart] = &all[..] else { panic!("{all:?}") };
            let svg = chart.svg().unwrap();
            for text in texts.split('|') {
                assert_has(&svg, text);
            }
            assert_legible(&svg);
        }
    }

    #[test]
    fn bar_is_as_long_as_its_value_and_its_whisker_as_its_range() {
        let svg = charts(&over_tick_phases())[0].svg().unwrap();
        let bars = rectangles(&svg, BLUE);
        let [rr, cfs, sjf, mlfq, _legend] = bars[..] else {
            panic!("{bars:?}")
        };
        // The means are 400, 205, 210 and 300.
        for (bar, mean) in [(cfs, 205.0), (sjf, 210.0), (mlfq, 300.0)] {
            let found = f64::from(bar[2]) / f64::from(rr[2]) * 400.0;
            assert!((found - mean).abs() < 1.0, "{bars:?}");
        }
        let whisker = |bar: [i32; 4]| -> i32 {
            let y = bar[1] + BAR / 2 - BAR_SPACE;
            let line = |line: &str| {
                let points = line.split("points=\"").nth(1)?.split('"').next()?;
                let points = points.split([' ', ',']).filter_map(|n| n.parse().ok());
                let points: Vec<i32> = points.collect();
                (points[1] == y && points[3] == y).then_some(points[2] - points[0])
            };
            svg.lines().find_map(line).unwrap()
        };
        // The ranges are 399 to 401 and 200 to 210.
        let [rr, cfs] = [rr, cfs].map(whisker);
        assert!(cfs > 3 * rr && rr > 0, "{cfs} {rr}");
    }
}
