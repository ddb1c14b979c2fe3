//! Runs with every task's time changed at random: the mean of each figure, and within what
//! nine of ten runs are.

use anyhow::Result;
use comfy_table::CellAlignment;
use sched_sim::whatif::Change;

use super::{
    cells::{Play, Seeded},
    flavour::Flavour,
    render::{what_if, who_shares},
};
use crate::{grid, output::count, quantiles::Quantiles};

const TITLES: [&str; 9] = [
    "scheduler",
    "average",
    "5 %",
    "95 %",
    "avg/bound",
    "slowest",
    "makespan",
    "switches",
    "Jain",
];

/// What the figures are.
pub const BY_SEED: &str = "average, slowest (the task that took longest) and makespan are
means over the runs, 5 % of the averages are below `5 %` and 5 % above `95 %`. In each run every
task's time is changed by a factor of its own, up to 1 + spread or down to one over that, and
the start lies anywhere in a tick; with one seed all policies have the same work.
";

/// What a policy came to.
pub struct Row<'a> {
    pub cpus: usize,
    play: &'a Play<'a>,
    flavour: &'a Flavour,
    scheduler: String,
    seeds: usize,
    bound: Quantiles,
    /// As the CSV file calls them.
    figures: [(&'static str, Quantiles); 6],
}

impl<'a> Row<'a> {
    pub fn of((play, runs): (&'a Play<'a>, &Vec<Seeded>)) -> Self {
        let over = |figure: fn(&Seeded) -> f64| Quantiles::of(runs.iter().map(figure).collect());
        Self {
            cpus: play.cpus,
            play,
            flavour: play.flavour,
            scheduler: play.name(),
            seeds: runs.len(),
            bound: over(|run| run.bound),
            figures: [
                ("average", over(|run| run.average)),
                ("avg/bound", over(|run| run.average / run.bound)),
                ("slowest", over(|run| run.slowest)),
                ("makespan", over(|run| run.makespan)),
                ("switches", over(|run| run.switches)),
                ("Jain", over(|run| run.jain)),
            ],
        }
    }
}

/// The policies on as many CPUs as the rows have.
pub fn table(rows: &[&Row], preemptive: &Flavour, spread: u32, changes: &[Change]) -> String {
    let header = &preemptive.profile.header;
    let mut out = format!(
        "{} on {}, {}: turnaround in ms (model, {}, spread {spread} %)\n",
        header.program.name,
        header.architecture,
        count(rows[0].cpus, "CPU"),
        count(rows[0].seeds, "seed"),
    );
    let plays: Vec<_> = rows.iter().map(|row| row.play).collect();
    for line in who_shares(&plays).into_iter().chain(what_if(changes)) {
        out += &(line + "\n");
    }
    let mut table = grid::plain();
    table.set_header(TITLES);
    let mut bound_of = |is_preemptive: bool, end: &str| {
        let its = |row: &&&Row| std::ptr::eq(row.flavour, preemptive) == is_preemptive;
        if let Some(row) = rows.iter().find(its) {
            let name = row.flavour.workload.bound(row.cpus).kind.name();
            let Quantiles { mean, low, high } = row.bound;
            let mut words = vec![format!("{name}{end}")];
            words.extend([mean, low, high].map(|value| format!("{value:.3}")));
            words.resize(TITLES.len(), String::new());
            table.add_row(words);
        }
    };
    bound_of(true, "");
    bound_of(false, " (coop)");
    for row in rows {
        let [average, over, slowest, makespan, switches, jain] = row.figures.map(|(_, q)| q);
        table.add_row([
            row.scheduler.clone(),
            format!("{:.3}", average.mean),
            format!("{:.3}", average.low),
            format!("{:.3}", average.high),
            format!("{:.3}", over.mean),
            format!("{:.3}", slowest.mean),
            format!("{:.3}", makespan.mean),
            format!("{:.0}", switches.mean),
            format!("{:.4}", jain.mean),
        ]);
    }
    for i in 1..TITLES.len() {
        let column = table.column_mut(i).expect("a column for each title");
        column.set_cell_alignment(CellAlignment::Right);
    }
    out + "\n" + &grid::text(&table, "")
}

/// One line for each figure.
pub fn csv(rows: &[Row], preemptive: &Flavour, spread: u32) -> Result<String> {
    let header = &preemptive.profile.header;
    let mut out = csv::Writer::from_writer(Vec::new());
    out.write_record([
        "arch",
        "app",
        "smp",
        "timing",
        "seeds",
        "spread",
        "scheduler",
        "figure",
        "mean",
        "5 %",
        "95 %",
    ])?;
    for row in rows {
        for (figure, Quantiles { mean, low, high }) in row.figures {
            let mut words = vec![
                header.architecture.name().to_owned(),
                header.program.name.to_string(),
                row.cpus.to_string(),
                "model".to_owned(),
                row.seeds.to_string(),
                spread.to_string(),
                row.scheduler.clone(),
                figure.to_owned(),
            ];
            words.extend([mean, low, high].map(|value| format!("{value:.6}")));
            out.write_record(words)?;
        }
    }
    Ok(String::from_utf8(out.into_inner()?)?)
}
