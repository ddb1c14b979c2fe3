//! A table on a terminal: the bound, and each policy beside it.

use comfy_table::CellAlignment;
use sched_sim::bound::bound;

use super::flavour::Flavour;
use crate::{
    compare::Results,
    grid,
    output::count,
    project::short,
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

/// The policies on so many CPUs, each with what it played.
pub fn table(cells: &[(&Flavour, &Results)], preemptive: &Flavour, cpus: usize) -> String {
    let header = &preemptive.profile.header;
    let of_flavour = |flavour: &Flavour| {
        let jobs = flavour.workload.jobs.iter();
        let jobs: Vec<_> = jobs.map(|job| (0, job.run_ns() as u64)).collect();
        bound(&jobs, cpus)
    };
    let bound = of_flavour(preemptive);
    let phases = cells.first().map_or(0, |cell| cell.1.outcomes.len());
    let mut out = format!(
        "{} on {}, {}: turnaround in ms (model, {})\n\n",
        header.program.name,
        header.architecture,
        count(cpus, "CPU"),
        count(phases, "tick phase"),
    );
    let mut table = grid::plain();
    table.set_header(TITLES);
    let mut first = vec![
        bound.kind.name().to_owned(),
        format!("{:.3}", bound.average_ns / 1e6),
    ];
    first.resize(TITLES.len(), String::new());
    table.add_row(first);
    let averages = cells.iter().map(|cell| Some(average(&cell.1.outcomes)));
    let shared = letters(&averages.collect::<Vec<_>>());
    for ((flavour, cell), letters) in cells.iter().zip(shared) {
        let average = average(&cell.outcomes);
        let least = of_flavour(flavour).average_ns / 1e6;
        let mean = |figure| over(&cell.outcomes, figure).mean;
        table.add_row([
            name(cell),
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
    out += &grid::text(&table, "");
    out
}

/// The policy, and whether it is PBG without a plan.
fn name(cell: &Results) -> String {
    let name = short(&cell.cell.policy);
    match cell.outcomes[0].phases[0].name() {
        "run" if name.starts_with("pbg") => name + " (no plan)",
        _ => name,
    }
}

/// What the figures are and what they rest on.
pub fn legend(has_both: bool) -> String {
    let mut out = "
The first row is the least average that any order of these tasks could reach on so many
CPUs if switching cost nothing. average, slowest (the task that took longest) and makespan
are means over the phases of the timer tick; ± %: how far the average at any of them is from
the mean at most; rows that share a letter have ranges that overlap. Nothing is claimed of
single tasks under policies that act on ticks.

The recording does not say when tasks were spawned, nor for whom they waited: all are taken
to be there at the start, and each wait for a sleep as long as it was.
"
    .to_owned();
    if !has_both {
        out += "It is of a kernel that preempts; those that do not spend less on their guards.\n";
    }
    out
}
