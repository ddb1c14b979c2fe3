//! A table on a terminal: the bound, and each policy beside it.

use comfy_table::CellAlignment;
use sched_sim::{play::INTERRUPT_NS, policies::Sharing, whatif::Change};

use super::{cells::Play, flavour::Flavour};
use crate::{
    compare::Results,
    grid,
    output::count,
    record::Outcome,
    spread::{Spread, deviation, letters},
};

const TITLES: [&str; 9] = [
    "scheduler",
    "average",
    "± %",
    "~",
    "avg/bound",
    "slowest",
    "makespan",
    "switches",
    "Jain",
];

/// A figure over the phases of the tick.
pub fn over(boots: &[Outcome], figure: fn(&Outcome) -> f64) -> Spread {
    let values: Vec<f64> = boots.iter().map(figure).collect();
    Spread::of(&values).expect("a phase at least")
}

/// The average turnaround in ms.
pub fn average(boots: &[Outcome]) -> Spread {
    over(boots, |boot| boot.last().avg_turnaround_ns as f64 / 1e6)
}

/// How far a figure is from its mean, in %, without the sign.
pub fn percent(spread: &Spread) -> String {
    deviation(spread).replace(['±', '%', ' '], "")
}

/// What was changed, in a line; none if nothing was.
pub fn what_if(changes: &[Change]) -> Vec<String> {
    let words: Vec<_> = changes.iter().map(ToString::to_string).collect();
    match words.is_empty() {
        true => Vec::new(),
        false => vec![format!("what if: {}", words.join("; "))],
    }
}

/// Under which of them CPUs share the work, in a line; none if they do under none.
pub fn who_shares(plays: &[&Play]) -> Vec<String> {
    let shares = |play: &&&Play| play.shared() == Sharing::Balanced;
    let names: Vec<_> = plays
        .iter()
        .filter(shares)
        .map(|play| play.name())
        .collect();
    match names.is_empty() {
        true => Vec::new(),
        false => vec![format!(
            "CPUs share the work under {}; an interrupt takes {} µs{}",
            names.join(" "),
            INTERRUPT_NS / 1000,
            match plays.iter().any(|play| play.preempted_stay()) {
                true => "; who is preempted stays",
                false => "",
            }
        )],
    }
}

/// The policies on so many CPUs, each with what it played.
pub fn table(
    cells: &[&(&Play, Results)],
    preemptive: &Flavour,
    cpus: usize,
    changes: &[Change],
) -> String {
    let header = &preemptive.profile.header;
    let phases = cells.first().map_or(0, |cell| cell.1.outcomes.len());
    let mut out = format!(
        "{} on {}, {}: turnaround in ms (model, {})\n",
        header.program.name,
        header.architecture,
        count(cpus, "CPU"),
        count(phases, "tick phase"),
    );
    let plays: Vec<_> = cells.iter().map(|(play, _)| *play).collect();
    for line in who_shares(&plays).into_iter().chain(what_if(changes)) {
        out += &(line + "\n");
    }
    out += "\n";
    let mut table = grid::plain();
    table.set_header(TITLES);
    // Kernels that do not preempt do less work, so their rows have a bound of their own.
    let mut bounds: Vec<(String, f64)> = Vec::new();
    for (play, _) in cells {
        let flavour = play.flavour;
        let bound = flavour.workload.bound(cpus);
        let name = match std::ptr::eq(flavour, preemptive) {
            true => bound.kind.name().to_owned(),
            false => format!("{} (coop)", bound.kind.name()),
        };
        if !bounds.iter().any(|(other, _)| *other == name) {
            bounds.push((name, bound.average_ns / 1e6));
        }
    }
    bounds.sort_by_key(|(name, _)| name.ends_with(')'));
    for (name, least) in bounds {
        let mut row = vec![name, format!("{least:.3}")];
        row.resize(TITLES.len(), String::new());
        table.add_row(row);
    }
    let averages = cells.iter().map(|cell| Some(average(&cell.1.outcomes)));
    let shared = letters(&averages.collect::<Vec<_>>());
    for ((play, cell), letters) in cells.iter().zip(shared) {
        let average = average(&cell.outcomes);
        let least = play.flavour.workload.bound(cpus).average_ns / 1e6;
        let mean = |figure| over(&cell.outcomes, figure).mean;
        table.add_row([
            play.name(),
            format!("{:.3}", average.mean),
            percent(&average),
            letters,
            format!("{:.3}", average.mean / least),
            format!(
                "{:.3}",
                mean(|boot| boot.last().max_turnaround_ns as f64 / 1e6)
            ),
            format!("{:.3}", mean(|boot| boot.last().makespan_ns as f64 / 1e6)),
            format!("{:.0}", mean(|boot| boot.last().context_switches as f64)),
            format!("{:.4}", mean(|boot| boot.last().jain)),
        ]);
    }
    for i in (1..TITLES.len()).filter(|&i| TITLES[i] != "~") {
        let column = table.column_mut(i).expect("a column for each title");
        column.set_cell_alignment(CellAlignment::Right);
    }
    out + &grid::text(&table, "")
}

/// What the figures are over phases of the tick.
pub const AT_PHASES: &str = "average, slowest (the task that took longest) and makespan are
means over the phases of the timer tick; ± %: how far the average at any of them is from the
mean at most; rows that share a letter have ranges that overlap. Nothing is claimed of single
tasks under policies that act on ticks.
";

/// What the figures are, and what all rest on.
pub fn legend(
    figures: &str,
    is_changed: bool,
    preemptive: &Flavour,
    cooperative: Option<&Flavour>,
) -> String {
    let mut out = "
The first row is the least average that any order of these tasks could reach on so many
CPUs if switching cost nothing; (coop): of the work as kernels do it that do not preempt, for
fifo, pbg-coop and stock-fifo. "
        .to_owned();
    out += figures;
    if is_changed {
        out += "\nPBG's plan is that of the recording, which knows nothing of what is changed.\n";
    }
    out += match preemptive.profile.header.start {
        None => {
            "
The recording does not say when tasks were spawned, nor for whom they waited: all of main's are
taken to be there at the start, those of others when these begin, and each wait for a sleep
as long as it was.
"
        }
        Some(_) => {
            "
What came after a sleep of main comes at that time whatever happens; what waited for a task waits
for it. A wait that did not happen, because what it was for was there already, is not recorded.
"
        }
    };
    let flavours = || cooperative.into_iter().chain([preemptive]);
    let rest = flavours().fold(0.0_f64, |rest, flavour| rest.max(flavour.rest));
    let broken: u64 = flavours().map(|flavour| flavour.broken_waits).sum();
    if broken > 0 {
        out += &format!(
            "Played as it was recorded, all tasks waited for each other {broken} times, and one was let go:\nthe recording does not say enough of who waits for whom, and these figures are far off.\n"
        );
    }
    out += &format!(
        "Played as it was recorded, no task's time is off by more than {:.2} %.\n",
        rest * 100.0
    );
    if cooperative.is_none() {
        out += "It is of a kernel that preempts; those that do not spend less on their guards.\n";
    }
    let unrecorded = preemptive.profile.header.unrecorded;
    if unrecorded > 0 {
        out += &format!("{unrecorded} tasks found it full and are not in it.\n");
    }
    out
}
