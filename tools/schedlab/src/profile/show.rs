//! `schedlab profile show`: tables of the tasks for people, JSON for programs.

use std::{cmp::Reverse, collections::BTreeMap, fmt::Write};

use anyhow::Result;
use axsched_ext::pbg::stored::{
    Ended, Figure, Figures, PhaseOrder, Place, StoredPhase, StoredProfile, StoredTask, Waker,
};
use serde_json::{Map, Value, json};

use super::{
    file::{read, title},
    graph,
    names::Names,
    quantity::Clock,
};
use crate::{
    Verdict,
    cli::ShowArgs,
    grid,
    output::{print, print_line},
};

/// The number of characters in a bar.
const BAR: usize = 20;

pub fn show(args: &ShowArgs) -> Result<Verdict> {
    let profile = read(&args.file)?.profile;
    match args.json {
        true => print_line(format_args!("{:#}", json(&profile))),
        false => print(text(&profile)),
    }?;
    Ok(Verdict::Good)
}

/// Returns the mean over a task's runs, not rounded.
pub fn mean(figure: Figure, runs: u32) -> f64 {
    figure.total as f64 / f64::from(runs)
}

/// Returns a table of times, one of counts, and one of wakers if the profile knows any.
fn text(profile: &StoredProfile) -> String {
    let clock = Clock::new(profile.header.frequency_hz);
    let names_of = Names::of(profile);
    let runs = profile.header.runs;
    let mut out = title(profile);
    if profile.header.frequency_hz == 0 {
        out += "\nIt is not known how long a count is.";
    }
    let _ = write!(out, "\nTimes are in {}.\n\n", clock.unit());

    let tasks = || profile.tasks.iter();
    let figures = Figures::NAMES.iter().enumerate().map(|(i, name)| {
        let cells = tasks().map(|task| spread(task.figures.to_array()[i], task.runs, i, clock));
        column(&format!(">{name}"), cells)
    });
    let mut times: Vec<_> = figures.collect();
    let mut counts = times.split_off(3);
    let mut add = |title, cell: &dyn Fn(&StoredTask) -> Option<String>| {
        if tasks().any(|task| cell(task).is_some()) {
            let cells = tasks().map(|task| cell(task).unwrap_or_else(|| "-".to_owned()));
            counts.push(column(title, cells));
        }
    };
    add(">priority", &|task| Some(task.priority?.to_string()));
    add(">deadline", &|task| {
        Some(clock.show(task.deadline?.0 as f64))
    });
    add("varies", &|task| task.varies.then(|| "yes".to_owned()));
    add(">runs", &|task| (runs > 1).then(|| task.runs.to_string()));
    times.push(column("#run :ready .blocked", tasks().map(bar)));
    let names = (0..profile.tasks.len()).map(|index| names_of.name(index));
    let names = column("task", names);
    let tables = [Some(times), Some(counts), waits(profile, &names_of)];
    let tables = tables.into_iter().flatten().map(|mut columns| {
        columns.insert(0, names.clone());
        let line = |i: usize| columns.iter().map(move |column| &column[i]);
        let rows = (1..names.len()).map(line);
        grid::text(&line(0).collect::<Vec<_>>(), rows, grid::CLOSE)
    });
    out += &tables.collect::<Vec<_>>().join("\n");
    out += &graph::text(profile, &names_of, clock);
    if runs > 1 {
        out += "\nMean over a task's runs, ± half the way from the least to the most.\n";
    }
    out
}

/// Returns a title and a cell for each task.
fn column(title: &str, cells: impl Iterator<Item = String>) -> Vec<String> {
    [title.to_owned()].into_iter().chain(cells).collect()
}

/// Returns a column with what ended each task's waits, and how often in a run, the most frequent
/// first; `None` if the profile says nothing about it.
fn waits(profile: &StoredProfile, names: &Names) -> Option<Vec<Vec<String>>> {
    let mut is_known = false;
    let mut cell = |task: &StoredTask| {
        let mut waits: BTreeMap<Waker, u64> = BTreeMap::new();
        let phases = task.phases.list.iter();
        for phase in phases.filter(|phase| phase.ended == Ended::Block) {
            *waits.entry(phase.woken_by).or_default() += phase.intervals;
            is_known |= phase.woken_by != Waker::Unknown;
        }
        let mut waits: Vec<_> = waits.into_iter().collect();
        waits.sort_by_key(|&(_, times)| Reverse(times));
        let one = |(waker, times)| {
            let times = Clock::number(times as f64 / f64::from(task.runs));
            format!("{} {times}", named(waker, names))
        };
        waits.into_iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let cells: Vec<_> = profile.tasks.iter().map(&mut cell).collect();
    is_known.then(|| vec![column("woken by, times", cells.into_iter())])
}

fn named(waker: Waker, names: &Names) -> String {
    match waker {
        Waker::Unknown => "unknown".to_owned(),
        Waker::Timer => "timer".to_owned(),
        Waker::Outside => "no task of the program".to_owned(),
        Waker::Root => "main".to_owned(),
        Waker::Task(index) => names.name(index.into()),
    }
}

/// Returns the mean of the figure number `index`, and how far runs are from each other if they are.
fn spread(figure: Figure, runs: u32, index: usize, clock: Clock) -> String {
    let mean = clock.figure(index, mean(figure, runs));
    match figure.spread() {
        0 => mean,
        spread => format!("{mean} ± {}", clock.figure(index, spread as f64 / 2.0)),
    }
}

/// Returns the parts of a task's life: on a CPU, waiting for one, blocked.
fn bar(task: &StoredTask) -> String {
    let parts = [
        (task.figures.run.total, '#'),
        (task.figures.ready.total, ':'),
        (task.figures.blocked.total, '.'),
    ];
    let whole: u128 = parts.iter().map(|(total, _)| u128::from(*total)).sum();
    let mut bar = String::new();
    let mut before: u128 = 0;
    for (total, character) in parts {
        before += u128::from(total);
        // Rounding where parts end, and not their lengths, fills the bar exactly.
        let end = (before * BAR as u128 + whole / 2)
            .checked_div(whole)
            .unwrap_or(0);
        while bar.len() < end as usize {
            bar.push(character);
        }
    }
    bar
}

/// Returns the whole profile, with times in counts. Keys are 16 hexadecimal digits, since not every
/// reader of JSON has 64-bit numbers.
fn json(profile: &StoredProfile) -> Value {
    let names = Names::of(profile);
    let header = &profile.header;
    let tasks = (profile.tasks.iter().enumerate()).map(|(index, task)| {
        let figures = Figures::NAMES.iter().zip(task.figures.to_array());
        let figures = figures.map(|(name, figure)| {
            let figure = json!({
                "mean": mean(figure, task.runs),
                "total": figure.total,
                "least": figure.least,
                "most": figure.most,
            });
            ((*name).to_owned(), figure)
        });
        let phases = task.phases.list.iter().map(|one| phase(one, &names));
        let spawned = &task.spawned;
        json!({
            "task": names.name(index),
            "key": task.key.to_string(),
            "label": task.label.map(|label| label.to_string()),
            // Without a path it was spawned at several places.
            "path": (task.place != Place::Several).then(|| names.path(index)),
            // The parent's index among the tasks, if it is one of them.
            "parent": match task.place {
                Place::Child { parent, .. } => Some(parent),
                Place::Root { .. } | Place::Several => None,
            },
            "runs": task.runs,
            "priority": task.priority,
            "deadline_counts": task.deadline.map(|deadline| deadline.0),
            "varies": task.varies,
            "figures": figures.collect::<Map<_, _>>(),
            "phase_order": match task.phases.order {
                PhaseOrder::AsRun => "as-run",
                PhaseOrder::ByEnding => "by-ending",
            },
            "spawned": {
                "at_counts": mean(spawned.at, task.runs),
                "parent_run_counts": mean(spawned.parent_run, task.runs),
                "parent_blocks": mean(spawned.parent_blocks, task.runs),
                "parent_woken_counts": mean(spawned.parent_woken, task.runs),
                "after": (spawned.after != Waker::Unknown).then(|| named(spawned.after, &names)),
            },
            "phases": phases.collect::<Vec<_>>(),
        })
    });
    json!({
        "program": header.program.name.to_string(),
        "program_hash": format!("{:016x}", header.program.hash),
        "arch": header.architecture.name(),
        "smp": header.cpus,
        "timing": header.timing.name(),
        "sched": header.policy.to_string(),
        "frequency_hz": header.frequency_hz,
        "runs": header.runs,
        "unrecorded": header.unrecorded,
        "tasks": tasks.collect::<Vec<_>>(),
        "order": profile.order.as_ref().map(|order| {
            json!({ "smp": order.cpus, "groups": order.groups })
        }),
    })
}

fn phase(phase: &StoredPhase, names: &Names) -> Value {
    let wakes = phase.wakes.iter().map(|woken| {
        json!({
            "whom": named(woken.whom, names),
            "count": woken.count,
            "after_counts": woken.after.0,
        })
    });
    json!({
        "woken_by": (phase.ended == Ended::Block).then(|| named(phase.woken_by, names)),
        "wakes": wakes.collect::<Vec<_>>(),
        "ended": match phase.ended {
            Ended::Yield => "yield",
            Ended::Preemption => "preemption",
            Ended::Block => "block",
            Ended::Exit => "exit",
        },
        "bursts": phase.intervals,
        "run_counts": phase.run.0,
        "blocked_counts": phase.blocked.0,
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use axsched_ext::{pbg::stored::merge, units::Counts};

    use super::*;
    use crate::{profile::tests::sample, testing::assert_golden};

    /// Profiles as tables, and one as JSON.
    #[test]
    fn tables_have_every_figure_that_a_profile_has() {
        let mut set = sample();
        set.tasks[1].priority = NonZeroU8::new(1);
        set.tasks[1].deadline = Some(Counts(50_000_000));
        let mut waits = sample();
        let wait = |times, woken_by| StoredPhase {
            woken_by,
            ..StoredPhase::new(Ended::Block, times, Counts(times), Counts(times))
        };
        let wakers = [Waker::Timer, Waker::Task(1), Waker::Unknown, Waker::Task(1)];
        waits.tasks[0].phases.list = (1..).zip(wakers).map(|(n, by)| wait(n, by)).collect();
        waits.tasks[2].phases.list = vec![wait(1, Waker::Root)];
        let mut other = sample();
        other.tasks[1].figures.run = Figure::once(10_500_000);
        other.tasks[1].figures.yields = Figure::once(3);
        other.tasks.truncate(2);
        other.header.unrecorded = 1;
        let mut without_frequency = sample();
        without_frequency.header.frequency_hz = 0;
        let profiles = [
            ("a priority and a deadline", &set),
            ("known wakers", &waits),
            ("two runs", &merge(&[sample(), other]).unwrap()),
            ("no frequency", &without_frequency),
        ];
        let texts = profiles.map(|(what, profile)| format!("- {what}\n{}", text(profile)));
        assert_golden("profile-tables.txt", texts.concat());
        assert_golden("profile.json", format!("{:#}\n", json(&waits)));
    }

    #[test]
    fn bar_is_full_and_in_proportion() {
        let bar_of = |[run, ready, blocked]: [u64; 3]| {
            let mut task = sample().tasks.remove(0);
            task.figures.run.total = run;
            task.figures.ready.total = ready;
            task.figures.blocked.total = blocked;
            bar(&task)
        };
        assert_eq!(bar_of([1, 2, 1]), "#####::::::::::.....");
        assert_eq!(bar_of([u64::MAX; 3]), "#######::::::.......");
        assert_eq!(bar_of([0, 1, 0]), "::::::::::::::::::::");
        assert_eq!(bar_of([0, 0, 0]), "");
    }
}
