//! Compares two sets of result lines, figure by figure.

use anyhow::Result;
use serde_json::{Map, Value};

use crate::{
    distinct::distinct,
    record::{Outcome, parse_boots, split},
};

/// Compares the lines of one cell, boot by boot and figure by figure, in the order of `a`. Returns
/// a line for each difference: the place, the figure, and by how much it differs. A boot that only
/// one side has is one difference.
pub fn differences(a: &str, b: &str) -> Result<Vec<String>> {
    let (a, mut b) = (boots(a)?, boots(b)?);
    // A single boot on each side is compared whatever its tick phase.
    if let ([(name, _)], [(other, _)]) = (&a[..], &mut b[..]) {
        other.clone_from(name);
    }
    let mut found = Vec::new();
    for (boot, a, b) in pairs(a, b) {
        let (Some(a), Some(b)) = (&a, &b) else {
            let place = boot.strip_suffix(", ").unwrap_or("tick phase 0");
            let [a, b] = [a, b].map(|lines| lines.map(|lines| Value::from(lines.len())));
            found.extend(difference(place, "result lines", a.as_ref(), b.as_ref()));
            continue;
        };
        for (place, a, b) in pairs(a.clone(), b.clone()) {
            let place = format!("{boot}{place}");
            let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
            let keys = distinct(a.keys().chain(b.keys())).into_iter();
            found.extend(keys.filter_map(|key| difference(&place, key, a.get(key), b.get(key))));
        }
    }
    Ok(found)
}

/// Pairs the values of both sides by their names, in the order of `a` and then of `b`.
fn pairs<T>(a: Named<T>, b: Named<T>) -> Vec<(String, Option<T>, Option<T>)> {
    let a = a.into_iter().map(|(name, value)| (name, Some(value), None));
    let mut pairs: Vec<_> = a.collect();
    for (name, value) in b {
        let is_partner = |pair: &&mut (String, _, Option<T>)| pair.0 == name && pair.2.is_none();
        match pairs.iter_mut().find(is_partner) {
            Some(pair) => pair.2 = Some(value),
            None => pairs.push((name, None, Some(value))),
        }
    }
    pairs
}

/// Returns the lines of each boot's last phase, without the names of the phase and the policy, so
/// that those of two policies can be compared.
pub fn last_phase(text: &str) -> Result<String> {
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

type Named<T> = Vec<(String, T)>;

/// The figures of lines, each under the name of its phase and task.
type Places = Named<Map<String, Value>>;

/// Returns the boots of a cell, each under the name of its tick phase, or in real time of its
/// number. The name of tick phase 0 and of the first boot is empty.
fn boots(text: &str) -> Result<Named<Places>> {
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

/// Returns the line of a difference, or `None` if both sides are equal.
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
        let name = format!("{} {}", word("phase"), word("task"));
        Some((name.trim_end().to_owned(), figures))
    };
    lines.iter().copied().filter_map(place).collect()
}

#[cfg(test)]
mod tests {
    use sched_tests_results::{PbgLine, ResultLine};

    use super::*;
    use crate::record::tests::{sample, sample_at};

    /// Each pair of texts, and the lines of their differences.
    #[test]
    fn difference_names_place_figure_and_amount() {
        let rr = sample("realtime", "rr", &[("run", 100)]);
        let figures = rr
            .replace(r#""makespan_ns":100"#, r#""makespan_ns":101"#)
            .replace(r#""jain":0.5"#, r#""jain":0.25"#);
        let task = rr.replacen(r#""finish_ns":0"#, r#""finish_ns":4"#, 1);
        let added = rr.replace(r#""pass""#, r#""new":1,"pass""#);
        let reversed: Vec<_> = rr.lines().rev().collect();
        let at = |phase, avg| sample_at(phase, "realtime", "rr", &[("run", avg)]);
        let phases = format!("{}\n{}", at(0, 100), at(125, 200));
        let boot = |avg| sample("realtime", "pbg", &[("run", avg)]).replace("icount", "real");
        let pbg = PbgLine::default().to_line();
        let boots = format!("{}{pbg}\n\n{}{pbg}\n", boot(100), boot(200));
        let more = |text: &str| text.replace(r#""makespan_ns":200"#, r#""makespan_ns":210"#);
        for (a, b, expected) in [
            (&rr, &rr, &[][..]),
            (&rr, &reversed.join("\n"), &[]),
            (
                &rr,
                &figures,
                &[
                    "run: jain 0.5 -> 0.25 (-0.250000, -50.0000 %)",
                    "run: makespan_ns 100 -> 101 (+1, +1.0000 %)",
                ],
            ),
            (&rr, &task, &["run short: finish_ns 0 -> 4 (+4)"]),
            (&rr, &added, &["run: new nothing -> 1"]),
            (&added, &rr, &["run: new 1 -> nothing"]),
            (&phases, &phases, &[]),
            (
                &phases,
                &more(&phases),
                &["tick phase 125, run: makespan_ns 200 -> 210 (+10, +5.0000 %)"],
            ),
            (
                &phases,
                &at(0, 100),
                &["tick phase 125: result lines 3 -> nothing"],
            ),
            (&boots, &boots, &[]),
            (
                &boots,
                &more(&boots),
                &["boot 2, run: makespan_ns 200 -> 210 (+10, +5.0000 %)"],
            ),
            (&boots, &boot(100), &["boot 2: result lines 3 -> nothing"]),
        ] {
            assert_eq!(differences(a, b).unwrap(), expected, "{a}\n{b}");
        }
        for both in [phases, boots] {
            let last = last_phase(&both).unwrap();
            assert_eq!(parse_boots(&last).unwrap().len(), 2, "{last}");
        }
    }

    #[test]
    fn last_phases_of_two_policies_differ_in_figures_only() {
        let pbg = sample("realtime", "pbg", &[("measure", 200), ("replay", 100)]);
        let rr = sample("realtime", "rr", &[("run", 120)]);
        let [pbg, rr] = [pbg, rr].map(|text| last_phase(&text).unwrap());
        assert_eq!(differences(&pbg, &pbg).unwrap(), [""; 0]);
        let found = differences(&rr, &pbg).unwrap();
        let makespan = "last phase: makespan_ns 120 -> 100 (-20, -16.6667 %)".to_owned();
        assert!(found.contains(&makespan), "{found:?}");
        for word in ["measure", "sched", "phase \""] {
            assert!(found.iter().all(|line| !line.contains(word)), "{found:?}");
        }
    }
}
