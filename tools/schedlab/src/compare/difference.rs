//! Which figures of two sets of result lines differ, and by how much.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::record::{Outcome, ParseError, parse_boots, split};

/// Compares the lines of one cell, boot by boot and figure by figure, in the order of
/// `a`. A boot that only one side has is one difference. Returns a line for each: where it is,
/// the figure, and by how much it differs.
pub fn differences(a: &str, b: &str) -> Result<Vec<String>, ParseError> {
    let (a, mut b) = (boots(a)?, boots(b)?.into_iter().collect::<BTreeMap<_, _>>());
    // Where each side has one, they are compared as there is no other.
    if let ([(of_a, _)], 1) = (&a[..], b.len())
        && let Some((_, only)) = b.pop_first()
    {
        b.insert(of_a.clone(), only);
    }
    let alone = |boot: &str, a: Option<usize>, b: Option<usize>| {
        let place = boot.strip_suffix(", ").unwrap_or("tick phase 0");
        let [a, b] = [a, b].map(|lines| lines.map(Value::from));
        difference(place, "result lines", a.as_ref(), b.as_ref())
    };
    let mut found = Vec::new();
    for (boot, a) in a {
        match b.remove(&boot) {
            Some(b) => found.extend(of_boots(&boot, a, b)),
            None => found.extend(alone(&boot, Some(a.len()), None)),
        }
    }
    for (boot, b) in b {
        found.extend(alone(&boot, None, Some(b.len())));
    }
    Ok(found)
}

/// The lines of each boot's last phase, with neither its name nor the policy's: what is left
/// of two policies can be compared.
pub fn last_phase(text: &str) -> Result<String, ParseError> {
    let outcomes = parse_boots(text)?;
    let last = &outcomes[0].last().context.phase; // all boots of a cell have the same
    let mut out = String::new();
    for line in text.lines() {
        if line.trim().is_empty() {
            out.push('\n'); // between two boots
        }
        let Some((kind, json)) = split(line) else {
            continue;
        };
        let mut figures: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
        if figures.get("phase").and_then(Value::as_str) == Some(last) {
            figures.insert("phase".into(), "last phase".into());
            figures.insert("sched".into(), "either".into());
            out += &format!("{kind} {}\n", Value::from(figures));
        }
    }
    Ok(out)
}

/// A line's figures, under the name of what they are about.
type Places = Vec<(String, Map<String, Value>)>;

fn of_boots(boot: &str, a: Places, b: Places) -> Vec<String> {
    let mut b = b.into_iter().collect::<BTreeMap<_, _>>();
    let mut found = Vec::new();
    for (place, a) in a {
        let b = b.remove(&place).unwrap_or_default();
        let place = format!("{boot}{place}");
        let added = b.keys().filter(|key| !a.contains_key(*key));
        for key in a.keys().chain(added) {
            found.extend(difference(&place, key, a.get(key), b.get(key)));
        }
    }
    for (place, b) in b {
        let place = format!("{boot}{place}");
        let alone = |(key, value): (&String, &Value)| difference(&place, key, None, Some(value));
        found.extend(b.iter().filter_map(alone));
    }
    found
}

/// The boots of a cell, each under the words that say at which tick phase it was, or in real
/// time which boot; 0 is the usual one, and the first, and has none.
fn boots(text: &str) -> Result<Vec<(String, Places)>, ParseError> {
    let name = |(number, outcome): (usize, &Outcome)| match (
        number,
        outcome.tick_phase().map(u16::from),
    ) {
        (1, None) | (_, Some(0)) => String::new(),
        (number, None) => format!("boot {number}, "),
        (_, Some(phase)) => format!("tick phase {phase:03}, "),
    };
    let outcomes = parse_boots(text)?;
    let names = (1..).zip(&outcomes).map(name).collect::<Vec<_>>();
    let lines: Vec<_> = text.lines().collect();
    let boots = lines
        .split(|line| line.trim().is_empty())
        .filter(|lines| !lines.is_empty());
    Ok(names.into_iter().zip(boots.map(places)).collect())
}

/// Returns nothing if both sides have the same.
fn difference(place: &str, key: &str, a: Option<&Value>, b: Option<&Value>) -> Option<String> {
    if a == b {
        return None;
    }
    let show = |value: Option<&Value>| value.map_or("nothing".to_owned(), ToString::to_string);
    let mut line = format!("{place}: {key} {} -> {}", show(a), show(b));
    let number = |value: Option<&Value>| value.and_then(Value::as_f64);
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        let by = b - a;
        // Fractions are indexes between 0 and 1; six decimals are printed.
        line += &match a.fract() == 0.0 && b.fract() == 0.0 {
            true => format!(" ({by:+}"),
            false => format!(" ({by:+.6}"),
        };
        line += &match a == 0.0 {
            true => ")".to_owned(),
            false => format!(", {:+.4} %)", by / a * 100.0),
        };
    }
    Some(line)
}

fn places(lines: &[&str]) -> Places {
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
    lines.iter().copied().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use sched_tests_results::{PbgLine, ResultLine};

    use super::*;
    use crate::record::tests::{sample, sample_at};

    fn shown(a: &str, b: &str) -> Vec<String> {
        differences(a, b).unwrap()
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

    #[test]
    fn two_policies_are_compared_by_their_last_phases() {
        let pbg = sample("realtime", "pbg", &[("measure", 200), ("replay", 100)]);
        let rr = sample("realtime", "rr", &[("run", 120)]);
        let of = |text: &str| last_phase(text).unwrap();
        let makespan = "last phase: makespan_ns 120 -> 100 (-20, -16.6667 %)".to_owned();
        let found = shown(&of(&rr), &of(&pbg));
        assert!(found.contains(&makespan), "{found:?}");
        let words = ["measure", "sched", "phase \""];
        let mut text = found.iter();
        assert!(
            !text.any(|line| words.iter().any(|word| line.contains(word))),
            "{found:?}"
        );
        assert!(shown(&of(&pbg), &of(&pbg)).is_empty());
        let both = |avg| {
            format!(
                "{}\n{}",
                sample_at(0, "a", "rr", &[("run", avg)]),
                sample_at(125, "a", "rr", &[("run", 7)])
            )
        };
        assert_eq!(parse_boots(&of(&both(5))).unwrap().len(), 2);
    }

    #[test]
    fn boots_are_compared_with_those_of_the_same_tick_phase() {
        let at = |phase, avg| sample_at(phase, "realtime", "rr", &[("run", avg)]);
        let both = format!("{}\n{}", at(0, 100), at(125, 200));
        assert!(shown(&both, &both).is_empty());
        let other = both.replace(r#""makespan_ns":200"#, r#""makespan_ns":210"#);
        assert_eq!(
            shown(&both, &other),
            ["tick phase 125, run: makespan_ns 200 -> 210 (+10, +5.0000 %)"]
        );
        assert_eq!(
            shown(&both, &at(0, 100)),
            ["tick phase 125: result lines 3 -> nothing"]
        );
    }

    #[test]
    fn boots_in_real_time_are_compared_in_their_order() {
        let boot = |avg| sample("realtime", "pbg", &[("run", avg)]).replace("icount", "real");
        let pbg = PbgLine::default().to_line();
        let both = format!("{}{pbg}\n\n{}{pbg}\n", boot(100), boot(200));
        assert!(shown(&both, &both).is_empty());
        let other = both.replace(r#""makespan_ns":200"#, r#""makespan_ns":210"#);
        assert_eq!(
            shown(&both, &other),
            ["boot 2, run: makespan_ns 200 -> 210 (+10, +5.0000 %)"]
        );
        assert_eq!(
            shown(&both, &boot(100)),
            ["boot 2: result lines 3 -> nothing"]
        );
        let last = last_phase(&both).unwrap();
        assert_eq!(parse_boots(&last).unwrap().len(), 2, "{last}");
    }
}
