//! What a yield costs.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, folder, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let mut cases: Vec<_> = (project.arches.iter())
        .map(|arch| {
            let name =
                format!("qemu: a replayed yield without preemption, {arch}, 3/4 of stock FIFO");
            let on = arch.clone();
            case(name, move |context| cheap_yields(context, &on)).builds(arch)
        })
        .collect();
    cases.push(case("qemu: make cost, sched_pbg", cost_table).builds(ANY_ARCH));
    cases
}

/// The table of `make cost` has a row for each phase of PBG and a figure in each column, and a
/// yield that keeps the CPU is cheaper than one that switches.
fn cost_table(context: &Context) -> Result<()> {
    let said = context
        .make(["cost", "FEATURES=sched_pbg", "SCALE=100"])
        .args([format!("ARCH={ANY_ARCH}")])
        .text()?;
    // Of 4 tasks.
    let figure = |phase: &str| -> Result<f64> {
        let mut rows = said
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = rows.find(|row| row.len() == 6 && row[..2] == ["pbg", phase]);
        let row = row.with_context(|| format!("no row of six columns for pbg {phase}"))?;
        Ok(row[3].parse()?)
    };
    let (idle, replay) = (figure("idle")?, figure("replay")?);
    figure("measure")?;
    ensure!(
        0.0 < replay && replay < idle,
        "replay {replay}, idle {idle}"
    );
    Ok(())
}

/// Without preemption, as stock FIFO is, a yield of a replay costs at most three quarters of
/// stock FIFO's, for 4 tasks and for 4,096.
fn cheap_yields(context: &Context, arch: &str) -> Result<()> {
    let of = |policy: &str| -> Result<Results> {
        let variables = [
            folder("cost"),
            format!("ARCH={arch}"),
            format!("FEATURES={policy}"),
        ];
        results(context.make(["run"]).args(variables))
    };
    let (stock, ours) = (of("stock_fifo")?, of("sched_pbg_coop")?);
    for tasks in [4, 4096] {
        let cost = |results: &Results, phase| {
            let of_phase = |line: &&sched_tests_results::CostLine| {
                line.context.phase == phase && line.tasks == tasks
            };
            let line = results.costs.iter().find(of_phase);
            line.and_then(|line| line.instructions_per_yield)
                .with_context(|| format!("no cost of {phase} with {tasks} tasks"))
        };
        let (stock, ours) = (cost(&stock, "run")?, cost(&ours, "replay")?);
        context.say(format_args!("{tasks}: {ours} of {stock}"));
        ensure!(
            ours > 0.0 && ours * 4.0 <= stock * 3.0,
            "{tasks} tasks: {ours} of {stock}"
        );
    }
    Ok(())
}
