//! `schedlab simulate`: a recording under every policy's real code, on any number of CPUs, in
//! virtual time ([`sched_sim`]).
//!
//! recordings and costs -> [`flavour`]s -> [`cells`] -> [`render`], and the tables and figures
//! of [`compare`](crate::compare)
//!
//! The costs are those of the committed tables. The time of a yield is in `cost.csv`. The time that
//! the instrument of the test programs takes in a switch follows from it and from `tables.csv`
//! ([`costs`]).

mod cells;
mod check;
mod cores;
mod costs;
mod flavour;
mod render;
mod seeds;
mod watch;

use std::path::Path;

use anyhow::{Result, bail};
use sched_sim::{
    policies::{Policy, policies as all_policies},
    whatif::Change,
};
use sched_tests_results::TickPhase;

pub use cells::{MODEL, Play, feature};
pub use cores::on_all_cores;
pub use flavour::{Flavour, Flavours, TICK_NS};
pub use watch::Watch;

use crate::{
    Verdict,
    cli::{SimulateArgs, TreeArgs},
    compare::{Results, table, write_report},
    distinct::distinct,
    output::{note, print},
    project::short,
    record::{Outcome, Phase},
    sources::made_by_model,
    store::{Store, write},
};

/// Ends the line that reports Ctrl-C.
pub const KEPT: &str = "what is done is kept";

pub fn simulate(tree: &TreeArgs, args: &SimulateArgs) -> Result<Verdict> {
    let of = &args.played;
    let policies = chosen(&of.policy)?;
    let changes = &args.changes.0;
    let mut flavours = Flavours::read(&of.source)?;
    if args.check.is_some() {
        flavours.forget_replays(); // the boots of QEMU have measured by themselves
    }
    flavours.change(changes)?;
    let cpus = of.cpus();
    let cells = cpus
        .iter()
        .flat_map(|&cpus| policies.iter().map(move |&policy| (cpus, policy)));
    let plays = cells.map(|(cpus, policy)| Play::new(policy, cpus, &flavours, of.balance));
    let played = Played {
        plays: plays.collect::<Result<_>>()?,
        cpus,
        changes,
        flavours: &flavours,
    };
    match args.seeds {
        Some(seeds) => played.by_seed(args, seeds),
        None => played.at_phases(tree, args),
    }
}

/// The cells that are played.
struct Played<'a> {
    /// Those of the first number of CPUs, then those of the next.
    plays: Vec<Play<'a>>,
    cpus: Vec<usize>,
    changes: &'a [Change],
    flavours: &'a Flavours,
}

impl Played<'_> {
    /// Plays each cell at each phase of the tick.
    fn at_phases(&self, tree: &TreeArgs, args: &SimulateArgs) -> Result<Verdict> {
        let phases: Vec<TickPhase> = TickPhase::evenly(args.phases).collect();
        let watch = Watch::new(self.plays.len() * phases.len())?;
        let runs = on_all_cores(self.plays.len() * phases.len(), &watch, |i| {
            self.plays[i / phases.len()].at(phases[i % phases.len()])
        });
        watch.finish(KEPT);
        let mut runs = runs.into_iter();
        let mut all: Vec<(&Play, Results)> = Vec::new();
        for play in &self.plays {
            let done: Option<Vec<_>> = runs.by_ref().take(phases.len()).collect();
            // A cell that was not played at all phases is left out.
            let Some(done) = done else { break };
            let outcomes = done.into_iter().collect::<Result<_>>()?;
            all.push((play, play.results(outcomes)));
        }
        let tables = self.cpus.iter().filter_map(|&cpus| {
            let cells: Vec<_> = all.iter().filter(|(play, _)| play.cpus == cpus).collect();
            (!cells.is_empty())
                .then(|| render::at_phases(&cells, &self.flavours.preemptive, self.changes))
        });
        print(tables.collect::<Vec<_>>().join("\n"))?;
        let results: Vec<Results> = all.into_iter().map(|(_, results)| results).collect();
        if let Some(folder) = &args.check
            && !watch.stopped()
        {
            let checked = check::checked(&results, folder)?;
            print(check::text(&checked))?;
            if let Some(file) = &args.errors {
                let made = made_by_model(tree, check::keys(&checked))?;
                check::write_errors(&checked, file, made)?;
                note(format_args!("written: {}", file.display()));
            }
        }
        if !results.is_empty() {
            print(self.legend(render::AT_PHASES))?;
        }
        if let Some(folder) = &args.out
            && !results.is_empty()
        {
            write_lines(folder, &results)?;
            let features = distinct(self.plays.iter().map(|play| feature(play.policy)));
            let said = render::what_if(self.changes);
            let tables = table::tables(&results, &features, false);
            write_report(folder, &tables, &said, Vec::new())?;
        }
        Ok(verdict(&watch))
    }

    /// Plays each cell with each seed.
    fn by_seed(&self, args: &SimulateArgs, seeds: u64) -> Result<Verdict> {
        let spread = args.spread.expect("clap asks for it");
        let cells = self.plays.len();
        let watch = Watch::new(seeds as usize * cells)?;
        let runs = on_all_cores(seeds as usize * cells, &watch, |i| {
            self.plays[i % cells].by_seed(f64::from(spread) / 100.0, (i / cells) as u64)
        });
        watch.finish(KEPT);
        let mut of_cells: Vec<Vec<_>> = (0..cells).map(|_| Vec::new()).collect();
        // A seed that not all cells have played is left out, as cells are compared.
        let whole = runs
            .chunks_exact(cells)
            .take_while(|row| row.iter().all(Option::is_some));
        let whole = whole.count() * cells;
        for (i, run) in runs.into_iter().flatten().take(whole).enumerate() {
            of_cells[i % cells].push(run?);
        }
        if whole == 0 {
            return Ok(verdict(&watch));
        }
        let all: Vec<seeds::Cell> = self.plays.iter().zip(&of_cells).collect();
        // Each number of CPUs has as many cells, in the order of the numbers.
        let of_cpus = all.chunks(cells / self.cpus.len());
        let tables = of_cpus
            .map(|cells| seeds::table(cells, &self.flavours.preemptive, spread, self.changes));
        print(tables.collect::<Vec<_>>().join("\n"))?;
        print(self.legend(seeds::BY_SEED))?;
        if let Some(folder) = &args.out {
            let file = folder.join("seeds.csv");
            write(&file, seeds::csv(&all, &self.flavours.preemptive, spread)?)?;
            note(format_args!("written: {}", file.display()));
        }
        Ok(verdict(&watch))
    }

    fn legend(&self, figures: &str) -> String {
        render::legend(figures, !self.changes.is_empty(), self.flavours)
    }
}

fn verdict(watch: &Watch) -> Verdict {
    match watch.stopped() {
        true => Verdict::Interrupted,
        false => Verdict::Good,
    }
}

/// Writes the lines that guests would have printed into folders of results: `results` for one CPU,
/// `results-smpN` for more.
fn write_lines(folder: &Path, all: &[Results]) -> Result<()> {
    for results in all {
        let name = match results.outcomes[0].last().context.smp {
            1 => "results".to_owned(),
            cpus => format!("results-smp{cpus}"),
        };
        let lines = |outcome: &Outcome| outcome.phases.iter().map(Phase::lines).collect();
        let boots: Vec<String> = results.outcomes.iter().map(lines).collect();
        Store::new(folder.join(name)).write_played(&results.cell, &boots.join("\n"))?;
    }
    Ok(())
}

/// Returns the policies of these names in the order of tables, or all if there are no names.
pub fn chosen(wanted: &[String]) -> Result<Vec<&'static Policy>> {
    for word in wanted {
        if Policy::named(&short(word)).is_none() {
            let names: Vec<_> = all_policies().iter().map(Policy::name).collect();
            bail!("--policy {word}: expected some of {}", names.join(" "));
        }
    }
    let is_wanted = |policy: &&Policy| {
        wanted.is_empty() || wanted.iter().any(|word| short(word) == policy.name())
    };
    Ok(all_policies().iter().filter(is_wanted).collect())
}
