//! What a yield costs.

use std::fs;

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
            case(name, move |context| cheap_yields(context, &on)).boots("cost", arch)
        })
        .collect();
    let here =
        |name: String, check: fn(&Context) -> Result<()>| case(name, check).boots("cost", ANY_ARCH);
    cases.extend([
        here("qemu: make cost, sched_pbg".into(), cost_table),
        here(
            format!("qemu: the cost gate, every policy, {ANY_ARCH}"),
            gate,
        ),
        here(
            "qemu: the cost gate fails if a yield costs an instruction more".into(),
            gate_is_red,
        ),
    ]);
    cases
}

/// The table of `make cost` has a row for each phase of PBG and a figure for each number of tasks, and a
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
        let row = rows.find(|row| row.len() == 8 && row[..2] == ["pbg", phase]);
        let row = row.with_context(|| format!("no row of eight columns for pbg {phase}"))?;
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

/// No yield costs more than the committed figures say.
fn gate(context: &Context) -> Result<()> {
    let arch = format!("ARCH={ANY_ARCH}");
    context
        .make(["cost", "LAB=--gate"])
        .args([arch])
        .text()
        .map(drop)
}

/// The gate can fail: FIFO's yield costs an instruction more than a file of figures says.
fn gate_is_red(context: &Context) -> Result<()> {
    // Of this compiler, whatever the committed figures are of: those could not be updated in part.
    let copy = context.file("gate.csv")?;
    context
        .make(["cost", "FEATURES=sched_fifo"])
        .args([
            format!("ARCH={ANY_ARCH}"),
            format!("LAB=--gate {copy} --update"),
        ])
        .text()?;
    let text = fs::read_to_string(&copy)?;
    let row = format!("sched_fifo,{ANY_ARCH},256,");
    let less = |line: &str| -> Result<String> {
        let mut fields: Vec<_> = line.split(',').map(str::to_owned).collect();
        if line.starts_with(&row) {
            fields[3] = (fields[3].parse::<f64>()? - 1.0).to_string();
        }
        Ok(fields.join(",") + "\n")
    };
    fs::write(&copy, text.lines().map(less).collect::<Result<String>>()?)?;
    let said = context
        .make(["cost", "FEATURES=sched_fifo"])
        .args([format!("ARCH={ANY_ARCH}"), format!("LAB=--gate {copy}")])
        .failure()?;
    let more = format!("cost-gate: more: sched_fifo on {ANY_ARCH}, 256 tasks: ");
    let more = said.lines().find_map(|line| line.strip_prefix(&more));
    let more = more.context("the row is not named")?;
    ensure!(
        more.contains(" before, ") && more.contains(" after"),
        "without before and after: {more}"
    );
    ensure!(
        said.lines()
            .any(|line| line.starts_with("cost-gate: ") && line.contains(" 1 more, 0 less")),
        "expected one row more and none less"
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
