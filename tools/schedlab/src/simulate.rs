//! `schedlab simulate`: a recording under every policy's real code, on any number of CPUs, in
//! virtual time ([`sched_sim`]).
//!
//! recordings and costs -> [`flavour`]s -> [`cells`] -> [`render`], and the tables and figures
//! of [`compare`](crate::compare)
//!
//! The costs are those of the committed tables: what a yield takes is in `cost.csv`, what the
//! instrument of the test programs takes in a switch follows from it and from `tables.csv`
//! ([`costs`]).

mod cells;
mod check;
mod cores;
mod costs;
mod flavour;
mod render;

use std::path::Path;

use anyhow::{Result, bail};
use axsched_ext::pbg::stored::StoredProfile;
use sched_sim::policies::{Policy, policies as all_policies};

pub use cells::{MODEL, follows_plan, trace};
pub use cores::on_all_cores;
pub use costs::Costs;
pub use flavour::{Flavour, TICK_NS, recording};

use crate::{
    Verdict,
    cli::SimulateArgs,
    compare::{Results, table, write_report},
    distinct::distinct,
    output::print,
    project::short,
};

pub fn simulate(args: &SimulateArgs) -> Result<Verdict> {
    let policies = chosen(&args.policy)?;
    let source = &args.source;
    let costs = Costs::read(&source.costs, &source.results)?;
    let profile = recording(&source.recording, source)?;
    let cooperative = match &args.cooperative {
        Some(file) => {
            let other = recording(file, source)?;
            of_one_program(&source.recording, &profile, &other)?;
            Some(Flavour::of(other, false, source.metered, &costs)?)
        }
        None => None,
    };
    let preemptive = Flavour::of(profile, true, source.metered, &costs)?;
    let flavour = |policy: &Policy| match &cooperative {
        Some(cooperative) if !policy.is_preemptive() => cooperative,
        _ => &preemptive,
    };
    let cpus = distinct(args.cpus.iter().copied());
    let cells: Vec<_> = (cpus.iter())
        .flat_map(|&cpus| {
            policies
                .iter()
                .map(move |policy| (usize::from(cpus), *policy))
        })
        .collect();
    let played = on_all_cores(cells.len(), |i| {
        let (cpus, policy) = cells[i];
        cells::play(policy, cpus, args, flavour(policy), &costs)
    });
    let all: Vec<Results> = played.into_iter().collect::<Result<_>>()?;
    let tables = all.chunks(policies.len()).zip(&cpus).map(|(row, &cpus)| {
        let of = |policy: &&Policy| flavour(policy);
        let cells: Vec<_> = policies.iter().map(of).zip(row).collect();
        render::table(&cells, &preemptive, usize::from(cpus))
    });
    print(tables.collect::<Vec<_>>().join("\n"))?;
    if let Some(folder) = &args.check {
        print(check::text(&all, folder)?)?;
    }
    print(render::legend(&preemptive, cooperative.as_ref()))?;
    if let Some(folder) = &args.out {
        let names: Vec<_> = policies
            .iter()
            .map(|policy| cells::feature(policy))
            .collect();
        write_report(folder, &table::tables(&all, &names, false), &[])?;
    }
    Ok(Verdict::Good)
}

/// Those that were asked for, in the order of tables; all if none was.
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

/// Refuses two recordings that are not of the same program on the same architecture.
pub fn of_one_program(file: &Path, one: &StoredProfile, other: &StoredProfile) -> Result<()> {
    let [one, other] = [&one.header, &other.header];
    if (one.program, one.architecture) != (other.program, other.architecture) {
        bail!(
            "{}: expected a recording of {} on {}, as that of --cooperative is; found one of {} on {}",
            file.display(),
            other.program.name,
            other.architecture,
            one.program.name,
            one.architecture
        );
    }
    Ok(())
}
