//! `schedlab simulate`: a recording under every policy's real code, on any number of CPUs, in
//! virtual time ([`sched_sim`]).
//!
//! recordings and costs -> [`Flavour`]s -> [`cells`] -> [`render`], and the tables and figures
//! of [`compare`](crate::compare)
//!
//! The costs are those of the committed tables: what a yield takes is in `cost.csv`, what the
//! instrument of the test programs takes in a switch follows from it and from `tables.csv`
//! ([`costs`]).

mod cells;
mod check;
mod costs;
mod render;

use std::{
    num::NonZeroUsize,
    path::Path,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
};

use anyhow::{Result, bail};
use axsched_ext::pbg::stored::{Program, StoredProfile, Timing};
use sched_sim::{
    calibrate::calibrate,
    play::Machine,
    policies::{POLICIES, Policy},
    time::Clock,
    workload::Workload,
};

use crate::{
    Verdict,
    cli::SimulateArgs,
    compare::{Results, table, write_report},
    output::print,
    profile::read,
    project::short,
};
use costs::Costs;

/// The time between two ticks of ArceOS, in nanoseconds. A recording does not say it.
const TICK_NS: u64 = 10_000_000;

/// What was recorded by kernels that preempt, or by those that do not: they do different work,
/// as guards cost something in the one and nothing in the other.
struct Flavour {
    profile: StoredProfile,
    workload: Workload,
    /// One CPU, at the first phase of the tick.
    machine: Machine,
}

pub fn simulate(args: &SimulateArgs) -> Result<Verdict> {
    let policies = chosen(&args.policy)?;
    let costs = Costs::read(&args.costs, &args.results)?;
    let profile = recording(&args.recording, args)?;
    let cooperative = match &args.cooperative {
        Some(file) => {
            let other = recording(file, args)?;
            of_one_program(&args.recording, &profile, &other)?;
            Flavour::of(other, false, args.metered, &costs)?
        }
        None => Flavour::of(profile.clone(), true, args.metered, &costs)?,
    };
    let preemptive = Flavour::of(profile, true, args.metered, &costs)?;
    let flavour = |policy: &Policy| match policy.is_preemptive() {
        true => &preemptive,
        false => &cooperative,
    };
    let cells: Vec<_> = (args.cpus.iter())
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
    let tables = all
        .chunks(policies.len())
        .zip(&args.cpus)
        .map(|(row, &cpus)| {
            let of = |policy: &&Policy| flavour(policy);
            let cells: Vec<_> = policies.iter().map(of).zip(row).collect();
            render::table(&cells, &preemptive, usize::from(cpus))
        });
    print(tables.collect::<Vec<_>>().join("\n"))?;
    if let Some(folder) = &args.check {
        print(check::text(&all, folder)?)?;
    }
    print(render::legend(args.cooperative.is_some()))?;
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
fn chosen(wanted: &[String]) -> Result<Vec<&'static Policy>> {
    for word in wanted {
        if Policy::named(&short(word)).is_none() {
            let names: Vec<_> = POLICIES.iter().map(Policy::name).collect();
            bail!("--policy {word}: expected some of {}", names.join(" "));
        }
    }
    let is_wanted = |policy: &&Policy| {
        wanted.is_empty() || wanted.iter().any(|word| short(word) == policy.name())
    };
    Ok(POLICIES.iter().filter(is_wanted).collect())
}

/// The recording in a file, if it is one that can be played.
fn recording(file: &Path, args: &SimulateArgs) -> Result<StoredProfile> {
    let profile = read(file)?.profile;
    let (header, file) = (&profile.header, file.display());
    if let Some(app) = &args.app
        && header.program != Program::scaled(app, args.scale)
    {
        bail!(
            "{file}: expected a recording of {app} at scale {}, found one of {} ({:016x}); A= and SCALE= say of what it is",
            args.scale,
            header.program.name,
            header.program.hash
        );
    }
    if header.timing == Timing::Real {
        bail!(
            "{file}: expected a recording in counted time, found one in real time, where a count is no instruction"
        );
    }
    if profile.tasks.is_empty() {
        bail!("{file}: expected a recording with tasks, found none");
    }
    Ok(profile)
}

/// Refuses two recordings that are not of the same program on the same architecture.
fn of_one_program(file: &Path, one: &StoredProfile, other: &StoredProfile) -> Result<()> {
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

impl Flavour {
    fn of(profile: StoredProfile, preempts: bool, is_metered: bool, costs: &Costs) -> Result<Self> {
        let arch = profile.header.architecture.name();
        let clock = Clock::of_frequency(profile.header.frequency_hz);
        let machine = Machine {
            cpus: 1,
            tick_ns: TICK_NS,
            phase_ns: 0,
            switch_ns: costs.switch_ns(arch, preempts)?,
            hook_ns: match is_metered {
                true => costs.instrument_ns(arch, preempts)?,
                false => 0,
            },
            clock,
        };
        let recorded = Workload::recorded(&profile, clock, TICK_NS);
        // What ran then: without preemption the base policy's slices end nothing.
        let (base, policy) = match preempts {
            true => ("rr", "pbg"),
            false => ("fifo", "pbg-coop"),
        };
        let base = Policy::named(base).expect("a policy of the list");
        let cost = costs.of_yield(arch, &format!("{policy} measure"))?;
        let calibrated = calibrate(&recorded, base, &profile, &cost, &machine)?;
        Ok(Self {
            workload: calibrated.workload,
            profile,
            machine,
        })
    }
}

/// What `of` says of each number below `count`, in this order; as many at a time as there are
/// cores. Each has a thread, hence a clock, of its own.
fn on_all_cores<T: Send>(count: usize, of: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let i = next.fetch_add(1, Relaxed);
            if i >= count {
                return done;
            }
            done.push((i, of(i)));
        }
    };
    let mut all: Vec<(usize, T)> = thread::scope(|scope| {
        let threads: Vec<_> = (0..cores.min(count)).map(|_| scope.spawn(work)).collect();
        let joined = threads.into_iter().map(|thread| thread.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    all.sort_by_key(|(i, _)| *i);
    all.into_iter().map(|(_, done)| done).collect()
}
