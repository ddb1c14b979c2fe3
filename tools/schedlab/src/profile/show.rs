//! `schedlab profile show`: a table of tasks for people, and the same for programs.

use std::{cmp::Reverse, collections::BTreeMap, fmt::Write};

use anyhow::Result;
use axsched_ext::pbg::stored::{
    Ended, Figure, Figures, PhaseOrder, Place, Spawned, StoredPhase, StoredProfile, StoredTask,
    Waker,
};
use serde::Serialize;

use super::{
    file::{read, title},
    names::Names,
    quantity::Clock,
};
use crate::{
    Verdict,
    cli::ShowArgs,
    grid::{self, TERMINAL},
    output::{print, print_line},
};

/// Characters of a bar.
const BAR: usize = 20;

pub fn show(args: &ShowArgs) -> Result<Verdict> {
    let profile = read(&args.file)?.profile;
    match args.json {
        true => print_line(json(&profile)?),
        false => print(text(&profile)),
    }?;
    Ok(Verdict::Good)
}

/// The mean over a task's runs, not rounded.
pub fn mean(figure: Figure, runs: u32) -> f64 {
    figure.total as f64 / f64::from(runs)
}

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
    let each = |i: usize, show: &dyn Fn(Figure, u32) -> String| {
        let cells = tasks().map(|task| show(task.figures.to_array()[i], task.runs));
        Column::of_numbers(Figures::NAMES[i], cells)
    };
    let time = |figure, runs| spread(figure, runs, |counts| clock.show(counts));
    let often = |figure, runs| spread(figure, runs, number);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    let times: Vec<_> = (0..3).map(|i| each(i, &time)).collect();
    let mut counts: Vec<_> = (3..Figures::NAMES.len()).map(|i| each(i, &often)).collect();
    if tasks().any(|task| task.priority.is_some()) {
        let cells = tasks().map(|task| or_dash(task.priority.map(|priority| priority.to_string())));
        counts.push(Column::of_numbers("priority", cells));
    }
    if tasks().any(|task| task.deadline.is_some()) {
        let cells = tasks().map(|task| or_dash(task.deadline.map(|l| clock.show(l.0 as f64))));
        counts.push(Column::of_numbers("deadline", cells));
    }
    if runs > 1 {
        let cells = tasks().map(|task| task.runs.to_string());
        counts.push(Column::of_numbers("runs", cells));
    }
    let bars = Column::new("#run :ready .blocked", tasks().map(bar));
    let names = (0..profile.tasks.len()).map(|index| names_of.name(index));
    let names = [Column::new("task", names)];
    let whole = table(names.iter().chain(&times).chain(&counts).chain([&bars]));
    if whole.lines().all(|line| line.chars().count() <= TERMINAL) {
        out += &whole;
    } else {
        out += &table(names.iter().chain(&times).chain([&bars]));
        out.push('\n');
        out += &table(names.iter().chain(&counts));
    }
    if let Some(waits) = waits(profile, &names_of) {
        out.push('\n');
        out += &table(names.iter().chain([&waits]));
    }
    if runs > 1 {
        out += "\nMean over a task's runs, ± half the way from the least to the most.\n";
    }
    out
}

/// A title and a cell for each task.
struct Column(Vec<String>);

impl Column {
    fn new(title: &str, cells: impl Iterator<Item = String>) -> Self {
        Self(std::iter::once(title.to_owned()).chain(cells).collect())
    }

    /// Numbers stand to the right.
    fn of_numbers(title: &str, cells: impl Iterator<Item = String>) -> Self {
        Self::new(&format!(">{title}"), cells)
    }
}

fn table<'a>(columns: impl IntoIterator<Item = &'a Column>) -> String {
    let columns: Vec<_> = columns.into_iter().collect();
    let line = |i: usize| columns.iter().map(move |column| &column.0[i]);
    let titles: Vec<_> = line(0).collect();
    let rows = (1..columns[0].0.len()).map(line);
    grid::text(&titles, rows, grid::CLOSE)
}

/// Who ended each task's waits, and how often in a run, the most frequent first; `None` of a
/// profile that says nothing of it.
fn waits(profile: &StoredProfile, names: &Names) -> Option<Column> {
    let mut says = false;
    let mut cell = |task: &StoredTask| {
        let mut waits: BTreeMap<Waker, u64> = BTreeMap::new();
        let phases = task.phases.list.iter();
        for phase in phases.filter(|phase| phase.ended == Ended::Block) {
            *waits.entry(phase.woken_by).or_default() += phase.intervals;
            says |= phase.woken_by != Waker::Unknown;
        }
        let mut waits: Vec<_> = waits.into_iter().collect();
        waits.sort_by_key(|&(_, times)| Reverse(times));
        let runs = f64::from(task.runs);
        let one = |(waker, times)| {
            let times = number(times as f64 / runs);
            format!("{} {times}", named(waker, names))
        };
        waits.into_iter().map(one).collect::<Vec<_>>().join(", ")
    };
    let cells: Vec<_> = profile.tasks.iter().map(&mut cell).collect();
    says.then(|| Column::new("woken by, times", cells.into_iter()))
}

fn named(waker: Waker, names: &Names) -> String {
    match waker {
        Waker::Unknown => "somebody".to_owned(),
        Waker::Timer => "timer".to_owned(),
        Waker::Outside => "no task of the program".to_owned(),
        Waker::Root => "main".to_owned(),
        Waker::Task(index) => names.name(index.into()),
    }
}

/// The mean, and how far runs are from each other if they are.
fn spread(figure: Figure, runs: u32, show: impl Fn(f64) -> String) -> String {
    let mean = show(mean(figure, runs));
    match figure.spread() {
        0 => mean,
        spread => format!("{mean} ± {}", show(spread as f64 / 2.0)),
    }
}

/// As many digits as it takes, one decimal at most.
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

/// How a task's life was divided: on a CPU, waiting for one, blocked.
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

/// The whole profile; times in counts. Keys are 16 hexadecimal digits, since not
/// every reader of JSON has 64-bit numbers.
#[derive(Serialize)]
struct Json {
    program: String,
    program_hash: String,
    arch: &'static str,
    smp: u16,
    timing: &'static str,
    sched: String,
    frequency_hz: u64,
    runs: u32,
    unrecorded: u64,
    tasks: Vec<JsonTask>,
}

#[derive(Serialize)]
struct JsonTask {
    task: String,
    key: String,
    label: Option<String>,
    /// `None` if it was spawned at several places.
    path: Option<String>,
    /// The parent's index among the tasks; `None` if that is the root, or there are several.
    parent: Option<u32>,
    runs: u32,
    priority: Option<u8>,
    deadline_counts: Option<u64>,
    figures: serde_json::Map<String, serde_json::Value>,
    /// `None` in profiles of version 1.
    spawned: Option<JsonSpawned>,
    phase_order: &'static str,
    phases: Vec<JsonPhase>,
}

/// Means over the runs; times since the first spawn.
#[derive(Serialize)]
struct JsonSpawned {
    at_counts: f64,
    parent_run_counts: f64,
    parent_blocks: f64,
    parent_woken_counts: f64,
    /// Who had woken the parent last, if that is known.
    after: Option<String>,
}

#[derive(Serialize)]
struct JsonFigure {
    mean: f64,
    total: u64,
    least: u64,
    most: u64,
}

#[derive(Serialize)]
struct JsonPhase {
    ended: &'static str,
    bursts: u64,
    run_counts: u64,
    blocked_counts: u64,
    /// `None` unless they ended in a wait.
    woken_by: Option<String>,
    wakes: Vec<JsonWoken>,
}

#[derive(Serialize)]
struct JsonWoken {
    whom: String,
    count: u64,
    after_counts: u64,
}

fn json(profile: &StoredProfile) -> Result<String> {
    let names = Names::of(profile);
    let header = &profile.header;
    let tasks = (profile.tasks.iter().enumerate()).map(|(index, task)| {
        let figures = Figures::NAMES.iter().zip(task.figures.to_array());
        let figures = figures.map(|(name, figure)| {
            let figure = JsonFigure {
                mean: mean(figure, task.runs),
                total: figure.total,
                least: figure.least,
                most: figure.most,
            };
            Ok((name.to_string(), serde_json::to_value(figure)?))
        });
        Ok(JsonTask {
            task: names.name(index),
            key: task.key.to_string(),
            label: task.label.map(|label| label.to_string()),
            path: (task.place != Place::Several).then(|| names.path(index).to_owned()),
            parent: match task.place {
                Place::Child { parent, .. } => Some(parent),
                Place::Root { .. } | Place::Several => None,
            },
            runs: task.runs,
            priority: task.priority.map(|priority| priority.get()),
            deadline_counts: task.deadline.map(|deadline| deadline.0),
            figures: figures.collect::<Result<_>>()?,
            phase_order: match task.phases.order {
                PhaseOrder::AsRun => "as-run",
                PhaseOrder::ByEnding => "by-ending",
            },
            spawned: task.spawned.map(|one| spawned(&one, task.runs, &names)),
            phases: (task.phases.list.iter())
                .map(|one| phase(one, &names))
                .collect(),
        })
    });
    Ok(serde_json::to_string_pretty(&Json {
        program: header.program.name.to_string(),
        program_hash: format!("{:016x}", header.program.hash),
        arch: header.architecture.name(),
        smp: header.cpus,
        timing: header.timing.name(),
        sched: header.policy.to_string(),
        frequency_hz: header.frequency_hz,
        runs: header.runs,
        unrecorded: header.unrecorded,
        tasks: tasks.collect::<Result<_>>()?,
    })?)
}

fn spawned(spawned: &Spawned, runs: u32, names: &Names) -> JsonSpawned {
    JsonSpawned {
        at_counts: mean(spawned.at, runs),
        parent_run_counts: mean(spawned.parent_run, runs),
        parent_blocks: mean(spawned.parent_blocks, runs),
        parent_woken_counts: mean(spawned.parent_woken, runs),
        after: (spawned.after != Waker::Unknown).then(|| named(spawned.after, names)),
    }
}

fn phase(phase: &StoredPhase, names: &Names) -> JsonPhase {
    JsonPhase {
        woken_by: (phase.ended == Ended::Block).then(|| named(phase.woken_by, names)),
        wakes: (phase.wakes.iter())
            .map(|woken| JsonWoken {
                whom: named(woken.whom, names),
                count: woken.count,
                after_counts: woken.after.0,
            })
            .collect(),
        ended: match phase.ended {
            Ended::Yield => "yield",
            Ended::Preemption => "preemption",
            Ended::Block => "block",
            Ended::Exit => "exit",
        },
        bursts: phase.intervals,
        run_counts: phase.run.0,
        blocked_counts: phase.blocked.0,
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU8;

    use axsched_ext::{pbg::stored::merge, units::Counts};

    use super::*;
    use crate::profile::tests::sample;
    use crate::testing::{assert_ends, assert_has};

    #[test]
    fn the_table_of_one_run() {
        let mut profile = sample();
        profile.tasks[1].priority = NonZeroU8::new(1);
        profile.tasks[1].deadline = Some(Counts(50_000_000));
        let expected = "\
realtime (0123456789abcdef) on x86_64, 1 CPU, in counted time, under rr; 1 run, 3 tasks
Times are in ms.

 task          run   ready  blocked  #run :ready .blocked
----------------------------------------------------------
 0        3200.105   0.000    0.000  ####################
 worker     10.000  20.000   10.000  #####::::::::::.....
 1.0         0.002   0.001    0.000  ###############:::::

 task     dispatches  yields  preemptions  blocks  priority  deadline
---------------------------------------------------------------------
 0                 4       2            1       1         -         -
 worker            4       2            1       1         1    50.000
 1.0               4       2            1       1         -         -
";
        assert_eq!(text(&profile), expected);
    }

    #[test]
    fn who_ended_waits_is_shown_if_somebody_has_noted_it() {
        let mut profile = sample();
        let wait = |times, woken_by| StoredPhase {
            woken_by,
            ..StoredPhase::new(Ended::Block, times, Counts(times), Counts(times))
        };
        let wakers = [Waker::Timer, Waker::Task(1), Waker::Unknown, Waker::Task(1)];
        profile.tasks[0].phases.list = (1..).zip(wakers).map(|(n, by)| wait(n, by)).collect();
        profile.tasks[2].phases.list = vec![wait(1, Waker::Root)];
        let expected = "
 task     woken by, times
----------------------------------------
 0        worker 6, somebody 3, timer 1
 worker
 1.0      main 1
";
        let found = text(&profile);
        assert_ends(&found, expected);
        let json: serde_json::Value = serde_json::from_str(&json(&profile).unwrap()).unwrap();
        assert_eq!(json["tasks"][0]["phases"][1]["woken_by"], "worker");
        assert!(json["tasks"][1]["phases"][0]["woken_by"].is_null());
    }

    #[test]
    fn the_table_of_several_runs_has_spreads() {
        let mut other = sample();
        other.tasks[1].figures.run = Figure::once(10_500_000);
        other.tasks[1].figures.yields = Figure::once(3);
        other.tasks.truncate(2);
        other.header.unrecorded = 1;
        let text = text(&merge(&[sample(), other]).unwrap());
        let expected = "\
realtime (0123456789abcdef) on x86_64, 1 CPU, in counted time, under rr; 2 runs, 3 tasks and 1 unrecorded
Times are in ms.

 task                run   ready  blocked  #run :ready .blocked
----------------------------------------------------------------
 0              3200.105   0.000    0.000  ####################
 worker   10.250 ± 0.250  20.000   10.000  #####::::::::::.....
 1.0               0.002   0.001    0.000  ###############:::::

 task     dispatches     yields  preemptions  blocks  runs
----------------------------------------------------------
 0                 4          2            1       1     2
 worker            4  2.5 ± 0.5            1       1     2
 1.0               4          2            1       1     1

Mean over a task's runs, ± half the way from the least to the most.
";
        assert_eq!(text, expected);
    }

    #[test]
    fn without_a_frequency_times_are_counts() {
        let mut profile = sample();
        profile.header.frequency_hz = 0;
        let text = text(&profile);
        assert_has(&text, "It is not known how long a count is.\n");
        assert!(
            text.contains("\nTimes are in counts.\n") && text.contains(" 3200105000 "),
            "{text}"
        );
    }

    #[test]
    fn a_table_fits_a_terminal_or_is_two() {
        let wide = |text: &str| text.lines().map(|line| line.chars().count()).max();
        let one = text(&sample());
        assert!(
            wide(&one) <= Some(TERMINAL) && one.matches(" task ").count() == 1,
            "{one}"
        );
        let mut long = sample();
        long.tasks[0].figures.run = Figure::once(u64::MAX / 2);
        let two = text(&long);
        assert!(
            wide(&two) <= Some(TERMINAL) && two.matches(" task ").count() == 2,
            "{two}"
        );
    }

    #[test]
    fn a_bar_is_full_and_in_proportion() {
        let bar_of = |[run, ready, blocked]: [u64; 3]| {
            let mut task = sample().tasks.remove(0);
            task.figures.run.total = run;
            task.figures.ready.total = ready;
            task.figures.blocked.total = blocked;
            bar(&task)
        };
        assert_eq!(bar_of([1, 2, 1]), "#####::::::::::.....");
        assert_eq!(
            bar_of([u64::MAX, u64::MAX, u64::MAX]),
            "#######::::::......."
        );
        assert_eq!(bar_of([0, 1, 0]), "::::::::::::::::::::");
        assert_eq!(bar_of([0, 0, 0]), "");
    }

    #[test]
    fn json_has_every_figure() {
        let json: serde_json::Value = serde_json::from_str(&json(&sample()).unwrap()).unwrap();
        assert_eq!(json["program_hash"], "0123456789abcdef");
        assert_eq!(json["arch"], "x86_64");
        let child = &json["tasks"][2];
        assert_eq!(
            (&child["path"], &child["parent"]),
            (&"1.0".into(), &1.into())
        );
        let figures = child["figures"].as_object().unwrap();
        assert!(
            Figures::NAMES
                .iter()
                .all(|name| figures.contains_key(*name))
        );
        assert_eq!(figures["ready"]["total"], 500);
        assert_eq!(child["phases"][0]["ended"], "yield");
    }
}
