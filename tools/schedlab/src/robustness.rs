//! `schedlab robustness`: how wrong may a recording be before its plan is worth nothing?
//!
//! The recording is played with every task's time changed at random, by up to a stated spread,
//! under PBG with the plan of the recording as it was, and under policies without a plan; many
//! times, each by a seed of its own. An average turnaround is told as a multiple of what
//! shortest-remaining-first reaches for the work as it came out.
//!
//! recording and costs -> [`Curve`] -> text and CSV ([`render`]) and a chart ([`draw`])

mod curve;
mod draw;
mod render;

use anyhow::Result;
use sched_sim::{
    play::{Machine, play},
    policies::Policy,
    vary::{phase_ns, varied},
};

use curve::{Curve, OTHERS, PLANNED, Point};

use crate::{
    Verdict,
    cli::{RobustnessArgs, TreeArgs},
    output::{note, print},
    quantiles::Quantiles,
    simulate::{Costs, Flavour, KEPT, TICK_NS, Watch, on_all_cores, recording},
    sources::{made_by_model, write_rows_of_one},
    store::write,
};

pub fn robustness(tree: &TreeArgs, args: &RobustnessArgs) -> Result<Verdict> {
    let source = &args.source;
    let costs = Costs::read(&source.costs, &source.results)?;
    let profile = recording(&source.recording, source)?;
    let flavour = Flavour::of(profile, true, source.metered, &costs)?;
    let watch = Watch::new(args.spread.len() * args.seeds as usize)?;
    let mut points = Vec::new();
    for &spread in &args.spread {
        points.extend(point(args, &flavour, &costs, spread, &watch)?);
    }
    watch.finish(KEPT);
    let header = &flavour.profile.header;
    let curve = Curve {
        app: header.program.name.to_string(),
        arch: header.architecture.name().to_owned(),
        seeds: args.seeds,
        points,
    };
    if watch.stopped() {
        // No chart of a part, where the whole one may be.
        print(render::text(&curve))?;
        return Ok(Verdict::Interrupted);
    }
    print(render::text(&curve))?;
    if let Some(folder) = &args.out {
        let name = format!("robustness-{}-{}", curve.app, curve.arch);
        let picture = draw::picture(&curve);
        let made = made_by_model(tree, &curve.app, &curve.arch)?;
        let csv = folder.join(format!("{name}.csv"));
        write_rows_of_one(&csv, &render::csv(&curve)?, made)?;
        write(&folder.join(format!("{name}.png")), picture.png()?)?;
        write(&folder.join(format!("{name}.svg")), picture.svg()?)?;
        note(format_args!(
            "written: {name}.csv, .svg and .png in {}",
            folder.display()
        ));
    }
    Ok(Verdict::Good)
}

/// Nothing of a spread whose runs have been interrupted.
fn point(
    args: &RobustnessArgs,
    flavour: &Flavour,
    costs: &Costs,
    spread: u32,
    watch: &Watch,
) -> Result<Option<Point>> {
    let arch = flavour.profile.header.architecture.name();
    let policies = OTHERS.iter().chain([&PLANNED]).map(|name| {
        let policy = Policy::named(name).expect("a policy of the list");
        let row = match policy.follows_plan() {
            true => format!("{name} replay"),
            false => (*name).to_owned(),
        };
        anyhow::Ok((policy, costs.of_yield(arch, &row)?))
    });
    let policies = policies.collect::<Result<Vec<_>>>()?;
    let runs = on_all_cores(args.seeds as usize, watch, |seed| {
        let seed = seed as u64;
        let workload = varied(&flavour.workload, f64::from(spread) / 100.0, seed);
        let least = workload.bound(1).average_ns;
        let machine = Machine {
            phase_ns: phase_ns(TICK_NS, seed),
            ..flavour.machine.clone()
        };
        let over = policies.iter().map(|(policy, cost)| {
            let outcome = play(&workload, policy, &flavour.profile, cost, &machine)?;
            anyhow::Ok(outcome.average_ns() / least)
        });
        over.collect::<Result<Vec<f64>>>()
    });
    let Some(runs) = runs.into_iter().collect::<Option<Vec<_>>>() else {
        return Ok(None);
    };
    let runs: Vec<Vec<f64>> = runs.into_iter().collect::<Result<_>>()?;
    let of = |i: usize| Quantiles::of(runs.iter().map(|run| run[i]).collect());
    let behind = |i: usize| {
        let slower = runs.iter().filter(|run| run[OTHERS.len()] > run[i]).count();
        slower as f64 / runs.len() as f64 * 100.0
    };
    Ok(Some(Point {
        spread,
        of_policies: (0..=OTHERS.len()).map(of).collect(),
        behind_percent: (0..OTHERS.len()).map(behind).collect(),
    }))
}
