//! The ArceOS of 2026: every policy boots on it, and several CPUs share the work.

use std::fs;

use anyhow::{Context as _, Result, ensure};

use super::helpers::{expect_failure, has_replay, list, phases, results, run_faults};
use crate::{
    frame::{Call, Case, Context, case},
    project::Project,
    results::Results,
};

/// The program that boots under every policy.
const APP: &str = "realtime";
const SCALE: &str = "SCALE=100";
/// The architecture of cases that do not depend on it. A boot takes a second there, and ten on x86_64, whose
/// firmware is UEFI.
const ANY_ARCH: &str = "riscv64";
/// The architecture of the cost gate.
const GATED: &str = "x86_64";

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let mut cases = vec![
        case("host: ax-sched stands below ax-task", invert),
        case(
            "host: the ArceOS of 2026 has every program of the matrix",
            list_programs,
        ),
    ];
    for arch in &project.arches {
        let name = format!("qemu: every policy on the ArceOS of 2026, {arch}");
        cases.push(of_2026(name, arch, 1, move |context| {
            boot_all(context, arch)
        }));
    }
    let mut here = |name: &str, cpus: u32, check: fn(&Context) -> Result<()>| {
        let name = format!("qemu: {name} on the ArceOS of 2026");
        cases.push(of_2026(name, ANY_ARCH, cpus, check));
    };
    here("tasks behind one that never yields are done", 4, share);
    here(
        "tasks behind one that never yields wait if CPUs do not share the work",
        4,
        keep,
    );
    here("an interrupt between CPUs is no yield", 4, count_yields);
    here("random tasks pass, on 4 CPUs", 4, soak);
    here("no task is lost under agents that fail", 4, |context| {
        run_faults(make(context, &format!("SMP=4 ARCH={ANY_ARCH}")))
    });
    cases
}

/// Returns the cost gate, for which all crates are built with the optimisation of the whole.
pub fn cost_gate() -> Case<'static> {
    let name = "qemu: the cost gate passes on the ArceOS of 2026".to_owned();
    of_2026(name, GATED, 1, run_gate)
}

/// Makes a case that builds in the folder of that line for this many CPUs.
fn of_2026<'a>(
    name: String,
    arch: &'a str,
    cpus: u32,
    check: impl Fn(&Context) -> Result<()> + Send + Sync + 'a,
) -> Case<'a> {
    let check = move |context: &Context| {
        begin_with_copy(context, arch, cpus)?;
        check(context)
    };
    case(name, check).builds(&format!("arceos-0.6 {arch}"))
}

/// Begins the folder of an architecture and a number of CPUs with a copy of another one in which no make
/// is building. Build scripts and macros are in each, and for the same architecture most crates.
/// Cargo checks each piece.
fn begin_with_copy(context: &Context, arch: &str, cpus: u32) -> Result<()> {
    const COPY: &str = "to=$1-$2-smp$3 new=$4
        [[ ! -e $to ]] || exit 0
        for from in $1-$2-smp* $1-*; do
            [[ -d $from/release ]] || continue
            parts=($from/release)
            [[ $from != $1-$2-* ]] || parts=($from/*)
            mkdir -p $new
            flock -n $from/.lock cp -a ${parts[@]} $new || continue
            mv -T $new $to || [[ -e $to ]]
            break
        done
        rm -rf $new";
    let bash = context.program("bash").args("-euo pipefail -c").arg(COPY);
    let new = context.file("new")?;
    let folders = format!("copy target/kernel/arceos-0.6 {arch} {cpus} {new}");
    bash.args(folders).text().map(drop)
}

/// Calls make for an image as it is published, but for the optimisation of the whole. That takes more time
/// than the rest of a build, and the cost gate has it.
fn make<'a>(context: &'a Context, words: &str) -> Call<'a> {
    let call = context.make(format!("{words} ARCEOS=0.6"));
    call.env("CARGO_PROFILE_RELEASE_LTO", "off")
}

fn invert(context: &Context) -> Result<()> {
    let call = context.program(&context.project.cargo).within("arceos-0.6");
    let said = call
        .args("tree --locked --package realtime --invert ax-sched@0.5.99 --target x86_64-unknown-none")
        .text()?;
    ensure!(said.contains("ax-task v0.6.11"), "ax-task does not use it");
    Ok(())
}

fn list_programs(context: &Context) -> Result<()> {
    let call = context.program(&context.project.cargo).within("arceos-0.6");
    let said = call
        .args("metadata --locked --no-deps --format-version 1")
        .quiet()
        .text()?;
    for app in &context.project.apps {
        let manifest = format!("/arceos-0.6/{app}/Cargo.toml\"");
        ensure!(said.contains(&manifest), "{app} is no member there");
    }
    Ok(())
}

/// Boots a program under every policy, ours and stock. PBG boots twice, prints the same lines, and
/// has the lowest average.
fn boot_all(context: &Context, arch: &str) -> Result<()> {
    let folder = format!("target/test/lab/arceos-0.6-{arch}");
    let matrix = |policies: &str, repeat: u32| {
        let call = make(
            context,
            &format!("matrix {SCALE} ARCH={arch} A={APP} FEATURES={policies}"),
        );
        let call = call.args(format!("LAB='--repeat {repeat} --results {folder}'"));
        call.text()
    };
    let policies = context.project.policies.iter();
    let others: Vec<_> = policies.filter(|policy| *policy != "sched_pbg").collect();
    matrix(&list(&others), 1)?;
    matrix("sched_pbg", 2)?;
    let of = |policy: &str| Results::of_file(&format!("{folder}/{arch}/{APP}/{policy}.jsonl"));
    let best = of("sched_pbg")?.phase("replay")?.avg_turnaround_ns;
    for policy in &context.project.policies {
        let found = of(policy)?;
        found
            .passed(phases(policy))
            .with_context(|| policy.clone())?;
        if !has_replay(policy) {
            let average = found.phase("run")?.avg_turnaround_ns;
            context.say(format_args!("{policy} {average}, sched_pbg {best}"));
            ensure!(best < average, "{policy} is as good as PBG");
        }
    }
    context.counts(context.project.policies.len());
    Ok(())
}

/// Without the layer all workers stay on the CPU of the task that never yields.
fn share(context: &Context) -> Result<()> {
    for policy in ["sched_rr", "sched_pbg"] {
        let call = make(context, &format!("run A=hog SMP=4 ARCH={ANY_ARCH}"));
        results(call.args(format!("FEATURES={policy}")))?.passed(phases(policy))?;
    }
    Ok(())
}

/// A yield costs no more than the committed figures say, under one of the first three policies in turn
/// and PBG.
fn run_gate(context: &Context) -> Result<()> {
    let mut policies = context
        .project
        .in_turn(&context.project.policies[..3], 0, 3);
    let pbg = "sched_pbg".to_owned();
    policies.push(&pbg);
    let policies = list(&policies);
    let call = context.make(format!("cost LAB=--gate ARCEOS=0.6 ARCH={GATED}"));
    let said = call.args(format!("FEATURES={policies}")).text()?;
    ensure!(said.contains(" 0 more, "), "no verdict");
    Ok(())
}

fn soak(context: &Context) -> Result<()> {
    let call = make(context, &format!("soak SMP=4 ARCH={ANY_ARCH}"));
    let call = call.args("FEATURES=sched_cfs LAB='--boots 1 --seed 7'");
    ensure!(call.text()?.contains("1 passed"), "it has not passed");
    Ok(())
}

fn keep(context: &Context) -> Result<()> {
    let call = make(context, &format!("run A=hog SMP=4 ARCH={ANY_ARCH}"));
    expect_failure(call.args("FEATURES=sched_rr,unbalanced TIMEOUT=5"), "5 s")
}

/// The tasks compute for longer than a slice, so ticks and interrupts between CPUs preempt them. PBG
/// has counted as many yields as the tasks have called.
fn count_yields(context: &Context) -> Result<()> {
    let profile = context.file("yields.pbg")?;
    let call = make(
        context,
        &format!("run A=batch-at-once SCALE=4 SMP=4 ARCH={ANY_ARCH}"),
    );
    let found = results(call.args(format!("FEATURES=sched_pbg PROFILE_OUT={profile}")))?;
    found.passed(phases("sched_pbg"))?;
    ensure!(fs::exists(&profile)?, "no profile");
    let shown = context
        .make(format!("-s profile PROFILE={profile}"))
        .text()?;
    let rows = shown.split_once("preemptions").context("no such table")?.1;
    let mut preemptions = 0;
    for task in found
        .tasks
        .iter()
        .filter(|task| task.context.phase == "measure")
    {
        let mut rows = rows
            .lines()
            .map(|line| Vec::from_iter(line.split_whitespace()));
        let row = rows
            .find(|row| row.first() == Some(&&*task.task))
            .with_context(|| format!("no row of {}", task.task))?;
        context.say(format_args!(
            "{} called {}, recorded {row:?}",
            task.task, task.yields
        ));
        ensure!(
            row[2] == task.yields.to_string(),
            "{}: a yield that was none",
            task.task
        );
        preemptions += row[3].parse::<u64>()?;
    }
    ensure!(preemptions > 0, "no task was preempted");
    Ok(())
}
