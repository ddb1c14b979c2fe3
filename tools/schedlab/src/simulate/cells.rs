//! A cell: a policy on so many CPUs, at several phases of the tick, as result lines have it.

use anyhow::Result;
use std::num::NonZeroUsize;

use sched_sim::{
    costs::YieldCost,
    play::{Machine, Outcome as Played, play as played, play_traced},
    policies::Policy,
    trace::Traced,
    workload::Workload,
};
use sched_tests_results::{Context, RunLine, TaskLine, TickPhase};

use super::{
    costs::Costs,
    flavour::{Flavour, TICK_NS},
};
use crate::{
    cli::SimulateArgs,
    compare::Results,
    project::{App, Cell},
    record::{Outcome, Phase},
};

/// The value of `timing` in the lines of a simulation.
pub const MODEL: &str = "model";

/// What make calls a policy: `sched_rr`, `stock_rr`.
pub fn feature(policy: &Policy) -> String {
    let name = policy.name().replace('-', "_");
    match name.starts_with("stock_") {
        true => name,
        false => format!("sched_{name}"),
    }
}

/// Whether it follows its plan: on several CPUs PBG's calls say no, and its base policy runs.
pub fn follows_plan(policy: &Policy, cpus: usize) -> bool {
    policy.follows_plan() && cpus == 1
}

/// What a yield costs there, and what the lines say of it.
fn of_cell(
    policy: &Policy,
    cpus: usize,
    flavour: &Flavour,
    costs: &Costs,
) -> Result<(YieldCost, Context)> {
    let header = &flavour.profile.header;
    let arch = header.architecture.name();
    let row = match (follows_plan(policy, cpus), policy.follows_plan()) {
        (true, _) => format!("{} replay", policy.name()),
        (false, true) => format!("{} idle", policy.name()),
        (false, false) => policy.name().to_owned(),
    };
    let cost = costs.of_yield(arch, &row)?;
    let context = Context {
        app: header.program.name.to_string(),
        arch: arch.to_owned(),
        smp: cpus as u32,
        sched: policy.name().to_owned(),
        phase: match follows_plan(policy, cpus) {
            true => "replay",
            false => "run",
        }
        .to_owned(),
    };
    Ok((cost, context))
}

fn machine(cpus: usize, tick_phase: TickPhase, flavour: &Flavour) -> Machine {
    Machine {
        cpus,
        phase_ns: TICK_NS * u64::from(u16::from(tick_phase)) / 1000,
        ..flavour.machine.clone()
    }
}

/// A cell at one phase of the tick, with its first `most` switches and wakes.
pub fn trace(
    policy: &Policy,
    (cpus, tick_phase, scale): (usize, TickPhase, u64),
    flavour: &Flavour,
    costs: &Costs,
    most: NonZeroUsize,
) -> Result<(Phase, Traced)> {
    let (cost, context) = of_cell(policy, cpus, flavour, costs)?;
    let (workload, plan) = (&flavour.workload, &flavour.profile);
    let machine = machine(cpus, tick_phase, flavour);
    let (outcome, traced) = play_traced(workload, policy, plan, &cost, &machine, most)?;
    let phase = phase(&context, scale, tick_phase, &outcome, workload);
    Ok((phase, traced))
}

pub fn play(
    policy: &Policy,
    cpus: usize,
    args: &SimulateArgs,
    flavour: &Flavour,
    costs: &Costs,
) -> Result<Results> {
    let (cost, context) = of_cell(policy, cpus, flavour, costs)?;
    let outcomes = TickPhase::evenly(args.phases).map(|tick_phase| {
        let machine = machine(cpus, tick_phase, flavour);
        let outcome = played(&flavour.workload, policy, &flavour.profile, &cost, &machine)?;
        Ok(Outcome {
            phases: vec![phase(
                &context,
                args.source.scale,
                tick_phase,
                &outcome,
                &flavour.workload,
            )],
        })
    });
    Ok(Results {
        cell: Cell {
            arch: context.arch.clone(),
            app: App {
                name: context.app.clone(),
                folder: context.app.clone(),
            },
            policy: feature(policy),
        },
        outcomes: outcomes.collect::<Result<_>>()?,
        sources: None,
    })
}

fn phase(
    context: &Context,
    scale: u64,
    tick_phase: TickPhase,
    played: &Played,
    workload: &Workload,
) -> Phase {
    let tasks = played.tasks.iter().map(|task| TaskLine {
        context: context.clone(),
        task: task.name.clone(),
        submit_ns: task.submit_ns,
        first_run_ns: task.first_run_ns,
        finish_ns: task.finish_ns,
        turnaround_ns: task.finish_ns - task.submit_ns,
        run_ns: task.run_ns,
        dispatches: task.dispatches,
        yields: task.yields,
        ..TaskLine::default()
    });
    let tasks: Vec<TaskLine> = tasks.collect();
    let count = tasks.len() as u64;
    let runs_ns = tasks.iter().map(|task| task.run_ns);
    let turnarounds = || tasks.iter().map(|task| task.turnaround_ns);
    let run = RunLine {
        context: context.clone(),
        timing: MODEL.to_owned(),
        scale,
        tasks: tasks.len(),
        avg_turnaround_ns: turnarounds().sum::<u64>() / count,
        max_turnaround_ns: turnarounds().max().unwrap_or(0),
        makespan_ns: tasks.iter().map(|task| task.finish_ns).max().unwrap_or(0),
        context_switches: played.switches,
        srpt_bound_ns: workload.bound_of(runs_ns, context.smp as usize).average_ns as u64,
        jain: jain(tasks.iter().map(|task| task.finish_ns as f64)),
        tick_phase: Some(tick_phase),
        pass: true,
        ..RunLine::default()
    };
    Phase { tasks, run }
}

/// Jain's index, to six decimals.
fn jain(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let sum: f64 = values.clone().sum();
    let squares: f64 = values.clone().map(|value| value * value).sum();
    let n = values.count() as f64;
    (sum * sum / (n * squares) * 1e6).round() / 1e6
}
