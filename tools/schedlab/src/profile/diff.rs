//! `schedlab profile diff`: the tasks that differ between two profiles.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use axsched_ext::pbg::stored::{Figures, Header, StoredProfile, StoredTask};

use super::{
    edit,
    file::{read, title},
    names::Names,
    quantity::Clock,
    show::mean,
};
use crate::{Verdict, cli::DiffArgs, output::print_line};

pub fn diff(args: &DiffArgs) -> Result<Verdict> {
    let (a, b) = (read(&args.first)?.profile, read(&args.second)?.profile);
    if a.header.frequency_hz != b.header.frequency_hz {
        bail!(
            "{}: expected counts of {} Hz as in {}, found {} Hz",
            args.second.display(),
            a.header.frequency_hz,
            args.first.display(),
            b.header.frequency_hz
        );
    }
    let found = differences(&a, &b, args.percent);
    for line in &found.lines {
        print_line(line)?;
    }
    print_line(format_args!(
        "{} and {} tasks: {} new, {} gone, {} changed, {} alike within {} %",
        a.tasks.len(),
        b.tasks.len(),
        found.new,
        found.gone,
        found.changed,
        a.tasks.len() - found.gone - found.changed,
        args.percent
    ))?;
    Ok(if found.lines.is_empty() {
        Verdict::Good
    } else {
        Verdict::Bad
    })
}

#[derive(Debug, Default, PartialEq)]
struct Differences {
    lines: Vec<String>,
    new: usize,
    gone: usize,
    changed: usize,
}

/// Returns the differences in the order of `a`, then the tasks that only `b` has.
fn differences(a: &StoredProfile, b: &StoredProfile, percent: f64) -> Differences {
    let mut found = Differences::default();
    let clock = Clock::new(a.header.frequency_hz);
    // The number of runs may differ.
    let is_same_run = Header {
        runs: a.header.runs,
        unrecorded: a.header.unrecorded,
        start: a.header.start,
        ..b.header
    } == a.header;
    if !is_same_run {
        found.lines.push(format!("{} -> {}", title(a), title(b)));
    }
    let (names_a, names_b) = (Names::of(a), Names::of(b));
    let mut left: BTreeMap<_, _> = (b.tasks.iter().enumerate())
        .map(|(index, task)| (task.key, index))
        .collect();
    for (index, task) in a.tasks.iter().enumerate() {
        let name = names_a.name(index);
        let Some(other) = left.remove(&task.key) else {
            found.gone += 1;
            found.lines.push(format!("gone: {name}"));
            continue;
        };
        let changes = changes(task, &b.tasks[other], clock, percent);
        if !changes.is_empty() {
            found.changed += 1;
            found.lines.push(format!("{name}: {}", changes.join("; ")));
        }
    }
    let mut new: Vec<_> = left.into_values().collect();
    new.sort_unstable();
    for index in new {
        found.new += 1;
        found.lines.push(format!("new: {}", names_b.name(index)));
    }
    found
}

/// Returns the means that differ by more than `percent` of the first, and each difference of a
/// priority or a deadline.
fn changes(a: &StoredTask, b: &StoredTask, clock: Clock, percent: f64) -> Vec<String> {
    let mut changes = Vec::new();
    let figures = a.figures.to_array().into_iter().zip(b.figures.to_array());
    for (index, (name, (of_a, of_b))) in Figures::NAMES.iter().zip(figures).enumerate() {
        let (from, to) = (mean(of_a, a.runs), mean(of_b, b.runs));
        if (to - from).abs() <= from * percent / 100.0 {
            continue;
        }
        let unit = if index < 3 { clock.unit() } else { "" };
        let show = |value| {
            format!("{} {unit}", clock.figure(index, value))
                .trim_end()
                .to_owned()
        };
        let by = match from {
            0.0 => String::new(),
            _ => format!(" ({:+.1} %)", (to - from) / from * 100.0),
        };
        changes.push(format!("{name} {} -> {}{by}", show(from), show(to)));
    }
    let (from, to) = (edit::shown(a, clock), edit::shown(b, clock));
    if from != to {
        changes.push(format!("{from} -> {to}"));
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use axsched_ext::{
        pbg::stored::{Figure, Place},
        units::TaskKey,
    };

    use super::*;
    use crate::{
        profile::tests::{sample, task},
        testing::assert_golden,
    };

    #[test]
    fn new_gone_and_changed_tasks_are_named() {
        let mut b = sample();
        b.header.program.hash = 1;
        b.tasks[0].figures.run = Figure::once(3_300_000_000);
        b.tasks[1].figures.run = Figure::once(20_000_000);
        b.tasks[1].figures.yields = Figure::once(0);
        b.tasks[1].figures.blocked = Figure::once(10_400_000);
        b.tasks[1].priority = NonZeroU8::new(2);
        b.tasks.remove(2);
        b.tasks.push(task(
            Place::Root { ordinal: 9 },
            TaskKey::ROOT.child(9),
            None,
            [0; 3],
        ));
        let a = sample();
        let all = [
            ("within 5 %", differences(&a, &b, 5.0)),
            ("within 1 %", differences(&a, &b, 1.0)),
            // From nothing there is no percentage, and any change is one.
            ("back, within 1000000 %", differences(&b, &a, 1e6)),
            ("equal profiles", differences(&a, &a, 0.0)),
        ];
        let all = all.map(|(what, found)| format!("- {what}\n{found:#?}\n"));
        assert_golden("profile-differences.txt", all.concat());
    }
}
