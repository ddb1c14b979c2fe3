//! Which figures of two sets of result lines differ, and by how much.

use std::{collections::BTreeMap, fmt};

use serde_json::{Map, Value};

use crate::record::{ParseError, parse, split};

/// One figure that is not the same.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The phase, and the task if it is a task's figure.
    pub place: String,
    pub key: String,
    /// `None`: that side has no such figure.
    pub a: Option<Value>,
    pub b: Option<Value>,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let show = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or("nothing".to_owned(), ToString::to_string)
        };
        write!(
            f,
            "{}: {} {} -> {}",
            self.place,
            self.key,
            show(&self.a),
            show(&self.b)
        )?;
        let number = |value: &Option<Value>| value.as_ref().and_then(Value::as_f64);
        if let (Some(a), Some(b)) = (number(&self.a), number(&self.b)) {
            let by = b - a;
            // Fractions are indexes between 0 and 1; six decimals are printed.
            if a.fract() == 0.0 && b.fract() == 0.0 {
                write!(f, " ({by:+}")?
            } else {
                write!(f, " ({by:+.6}")?
            }
            if a != 0.0 {
                write!(f, ", {:+.4} %)", by / a * 100.0)
            } else {
                write!(f, ")")
            }?;
        }
        Ok(())
    }
}

/// Compares the lines of one cell, figure by figure, in the order of `a`.
pub fn differences(a: &str, b: &str) -> Result<Vec<Difference>, ParseError> {
    parse(a)?;
    parse(b)?;
    let (a, mut b) = (places(a), places(b).into_iter().collect::<BTreeMap<_, _>>());
    let mut found = Vec::new();
    for (place, a) in a {
        let b = b.remove(&place).unwrap_or_default();
        let added = b.keys().filter(|key| !a.contains_key(*key));
        for key in a.keys().chain(added) {
            found.extend(difference(&place, key, a.get(key), b.get(key)));
        }
    }
    for (place, b) in b {
        found.extend(
            b.iter()
                .filter_map(|(key, value)| difference(&place, key, None, Some(value))),
        );
    }
    Ok(found)
}

fn difference(place: &str, key: &str, a: Option<&Value>, b: Option<&Value>) -> Option<Difference> {
    let new = || Difference {
        place: place.to_owned(),
        key: key.to_owned(),
        a: a.cloned(),
        b: b.cloned(),
    };
    (a != b).then(new)
}

/// Each line's figures under the name of what they are about.
fn places(text: &str) -> Vec<(String, Map<String, Value>)> {
    let place = |line: &str| {
        let (_, json) = split(line)?;
        let figures: Map<String, Value> = serde_json::from_str(json).ok()?;
        let word = |key: &str| figures.get(key).and_then(Value::as_str).unwrap_or_default();
        Some((
            format!("{} {}", word("phase"), word("task"))
                .trim_end()
                .to_owned(),
            figures,
        ))
    };
    text.lines().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::tests::sample;

    fn shown(a: &str, b: &str) -> Vec<String> {
        differences(a, b)
            .unwrap()
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    #[test]
    fn equal_lines_do_not_differ_whatever_their_order() {
        let a = sample("realtime", "pbg", &[("measure", 200), ("replay", 100)]);
        assert!(shown(&a, &a).is_empty());
        let mut lines: Vec<_> = a.lines().collect();
        lines.reverse();
        assert!(shown(&a, &lines.join("\n")).is_empty());
    }

    #[test]
    fn a_difference_says_where_what_and_by_how_much() {
        let a = sample("realtime", "rr", &[("run", 100)]);
        let b = a
            .replace(r#""makespan_ns":100"#, r#""makespan_ns":101"#)
            .replace(r#""jain":0.5"#, r#""jain":0.25"#);
        assert_eq!(
            shown(&a, &b),
            [
                "run: jain 0.5 -> 0.25 (-0.250000, -50.0000 %)",
                "run: makespan_ns 100 -> 101 (+1, +1.0000 %)"
            ]
        );
        let b = a.replacen(r#""finish_ns":0"#, r#""finish_ns":4"#, 1);
        assert_eq!(shown(&a, &b), ["run short: finish_ns 0 -> 4 (+4)"]);
    }

    #[test]
    fn what_only_one_side_has_is_a_difference() {
        let a = sample("realtime", "rr", &[("run", 100)]);
        let b = a.replace(r#""pass""#, r#""new":1,"pass""#);
        assert_eq!(shown(&a, &b), ["run: new nothing -> 1"]);
        assert_eq!(shown(&b, &a), ["run: new 1 -> nothing"]);
    }
}
