//! The cost of a yield.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, list, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

pub fn cases<'a>(project: &'a Project) -> Vec<Case<'a>> {
    let on_arch = |arch: &'a String| {
        let name = format!("qemu: a replayed yield without preemption, {arch}, 3/4 of stock FIFO");
        case(name, move |context| compare_with_stock(context, arch)).boots("cost", arch)
    };
    let arches = project.in_turn(&project.arches, 1, 3);
    let mut cases: Vec<_> = arches.into_iter().map(on_arch).collect();
    let gate_name = format!("qemu: the cost gate, policies in turn, {ANY_ARCH}");
    let gated = project.in_turn(&project.policies, 2, 3);
    let here = [
        case("qemu: make cost, sched_pbg", check_table),
        case(gate_name, move |context| run_gate(context, &gated)),
        case(
            "qemu: the cost gate fails if a yield costs an instruction more",
            fail_gate,
        ),
    ];
    cases.extend(here.map(|case| case.boots("cost", ANY_ARCH)));
    cases
}

/// Checks that the table of `make cost` has a row for each phase of PBG and a figure for each number
/// of tasks. A yield that keeps the CPU must be cheaper than one that switches.
fn check_table(context: &Context) -> Result<()> {
    let call = context.make(format!("cost FEATURES=sched_pbg SCALE=100 ARCH={ANY_ARCH}"));
    let said = call.text()?;
    let rows: Vec<Vec<_>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    // With 4 tasks.
    let figure = |phase: &str| -> Result<f64> {
        let mut rows = rows.iter();
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

/// Checks that no yield costs more than the committed figures say.
fn run_gate(context: &Context, policies: &[&String]) -> Result<()> {
    let call = context.make(format!("cost LAB=--gate ARCH={ANY_ARCH}"));
    let call = call.args(format!("FEATURES={}", list(policies)));
    call.text().map(drop)
}

/// Checks that the gate fails if FIFO's yield costs an instruction more than a file of figures says.
fn fail_gate(context: &Context) -> Result<()> {
    // This compiler makes the file. The committed figures may be another compiler's, and these
    // cannot be updated in part.
    let copy = context.file("gate.csv")?;
    let gate = |more: &str| {
        let call = context.make(format!("cost FEATURES=sched_fifo ARCH={ANY_ARCH}"));
        call.args(format!("LAB='--gate {copy}{more}'"))
    };
    gate(" --update").text()?;
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
    let said = gate("").failure()?;
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

/// Checks that a replay's yield costs at most three quarters of stock FIFO's, with 4 tasks and with
/// 4,096. Neither preempts.
fn compare_with_stock(context: &Context, arch: &str) -> Result<()> {
    let of =
        |policy: &str| results(context.make(format!("run A=cost ARCH={arch} FEATURES={policy}")));
    let (stock, ours) = (of("stock_fifo")?, of("sched_pbg_coop")?);
    for tasks in [4, 4096] {
        let cost = |results: &Results, phase| {
            let mut lines = results.costs.iter();
            let line = lines.find(|line| line.context.phase == phase && line.tasks == tasks);
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
