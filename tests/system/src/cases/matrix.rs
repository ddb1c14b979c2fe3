//! Policies with apps. All cells run and repeat their figures, and PBG keeps its promise.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::{
    helpers::{ANY_ARCH, DELEGATED, built_then_alone, has_replay, list, phases, run_faults},
    host::own_suite,
};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

/// The app that runs on every architecture and on several CPUs. On the ArceOS of 2026 it runs under
/// every policy.
const EVERYWHERE: &str = "realtime";
/// The apps that run on [`ANY_ARCH`]. All of these cells are in the published tables, and a sample of
/// those is measured again.
const FEW_POLICIES: &[&str] = &[
    "yield", "batch", "equal", "unequal", "held", "occupy", "pipeline", COROUTINES,
];
/// The gate takes every twelfth policy for each app, because an image takes seconds to link, and others at
/// the next commit. `T=` takes all.
const PARTS: usize = 12;
/// It takes every third for [`EVERYWHERE`] on [`ANY_ARCH`], and PBG each time.
const PARTS_HERE: usize = 3;
/// The name of their cases.
const AGENTS: &str = "a program with agents";
/// The programs with agents, of which the gate takes a third.
const WITH_AGENTS: [&str; 5] = ["fifo", "fifo-per-cpu", "shinjuku", "planned", "bandwidth"];
/// The policy that measures and replays.
const PBG: &str = "sched_pbg";
/// The app whose tasks serve coroutines.
const COROUTINES: &str = "services";
/// The scale of all cells. A run is then a few ticks long.
const SCALE: &str = "SCALE=100";
/// The number of CPUs in the case with several.
const CPUS: u32 = 4;
/// The number of boots of each cell.
const BOOTS: usize = 2;

pub fn cases(project: &Project) -> Result<Vec<Case<'_>>> {
    let in_turn = |offset, parts| {
        let policies = project.in_turn(&project.policies, offset, parts);
        ("policies in turn", policies)
    };
    let mut cases = Vec::new();
    let others = project.arches.iter().enumerate();
    let others = others.filter(|(_, arch)| *arch != ANY_ARCH);
    cases.extend(others.map(|(at, arch)| under(&in_turn(at, PARTS), arch, EVERYWHERE, 1)));
    let (group, here) = in_turn(0, PARTS_HERE);
    let here = with(PBG, here, project);
    cases.push(under(&(group, here.clone()), ANY_ARCH, EVERYWHERE, 1));
    let name = format!("qemu: PBG has the lowest average turnaround, {ANY_ARCH}, {EVERYWHERE}");
    let best = case(name, move |context| check_pbg(context, &here));
    let best = best.boots(EVERYWHERE, ANY_ARCH);
    cases.push(best.holds(&results_folder(ANY_ARCH, 1)));
    let few = FEW_POLICIES.iter().enumerate();
    cases.extend(few.map(|(at, &app)| under(&in_turn(at, PARTS), ANY_ARCH, app, 1)));
    let name = format!("qemu: the most urgent coroutine's program gets the CPU, {ANY_ARCH}");
    let urgent = case(name, check_order).boots(COROUTINES, ANY_ARCH);
    cases.push(urgent.holds(&results_folder(ANY_ARCH, 1)));
    // Time is real on several CPUs.
    let several = in_turn(0, PARTS);
    let images = several.1.iter().map(|policy| {
        format!("{SCALE} SMP={CPUS} ARCH={ANY_ARCH} A={EVERYWHERE} FEATURES={policy}")
    });
    let images = images.collect();
    let several = under(&several, ANY_ARCH, EVERYWHERE, CPUS);
    cases.extend(built_then_alone(several, ANY_ARCH, images));
    for smp in project.in_turn([1, CPUS], 0, 2) {
        let name = format!("qemu: no task is lost under agents that fail, {ANY_ARCH}, {smp} CPUs");
        let faults = case(name, move |context| {
            run_faults(context.make(format!("SMP={smp} ARCH={ANY_ARCH}")))
        });
        cases.push(faults.builds(ANY_ARCH));
    }
    for app in project.in_turn(WITH_AGENTS, 1, 3) {
        let folder = format!("apps/delegated/{app}");
        cases.push(if project.apps.contains(&folder) {
            // It runs under every policy, and has agents under one.
            let policies = with(DELEGATED, in_turn(3, PARTS).1, project);
            under(&(AGENTS, policies), ANY_ARCH, app, 1)
        } else {
            let name = format!("qemu: {AGENTS}, {ANY_ARCH}, {app}");
            let run = format!("run A={folder} FEATURES={DELEGATED} ARCH={ANY_ARCH}");
            case(name, move |context| {
                context.make(run.as_str()).text().map(drop)
            })
            .builds(ANY_ARCH)
        });
    }
    for folder in project.own_apps()? {
        let app = Path::new(&folder).file_name().context("no name")?;
        let app = app.to_string_lossy().into_owned();
        cases.push(own_suite(&app));
        cases.push(if project.apps.contains(&folder) {
            under(&in_turn(1, PARTS), ANY_ARCH, &app, 1)
        } else {
            let (group, few) = in_turn(2, PARTS);
            let name = format!("qemu: {group}, {ANY_ARCH}, {app}");
            case(name, move |context| run_plain(context, &folder, &few)).builds(ANY_ARCH)
        });
    }
    Ok(cases)
}

/// Returns these policies with one that is among them each time, as the last.
fn with<'a>(policy: &str, mut of: Vec<&'a String>, project: &'a Project) -> Vec<&'a String> {
    of.retain(|name| *name != policy);
    of.extend(project.policies.iter().find(|name| *name == policy));
    of
}

/// Makes the case of an app under these policies. The group of policies has a name, which is part of
/// the case's.
fn under<'a>(
    (name, policies): &(&str, Vec<&'a String>),
    arch: &'a str,
    app: &str,
    smp: u32,
) -> Case<'a> {
    let cpus = if smp == 1 {
        String::new()
    } else {
        format!(", {smp} CPUs")
    };
    let name = format!("qemu: {name}, {arch}, {app}{cpus}");
    let (app, policies) = (app.to_owned(), policies.clone());
    let images = app.clone();
    let check = move |context: &Context| check_cells(context, arch, &app, smp, &policies);
    let all = case(name, check).holds(&results_folder(arch, smp));
    all.boots(&images, arch)
}

/// Returns the folder of these cells' results. A case does not run cells again whose results are
/// there.
fn results_folder(arch: &str, smp: u32) -> String {
    format!("target/test/lab/{arch}-smp{smp}")
}

/// Runs all cells of an app. In counted time all boots must print the same lines.
fn run_cells(
    context: &Context,
    arch: &str,
    app: &str,
    smp: u32,
    policies: &[&String],
) -> Result<()> {
    let results = results_folder(arch, smp);
    let call = context.make(format!("matrix {SCALE} ARCH={arch} A={app} SMP={smp}"));
    call.args(format!("FEATURES={}", list(policies)))
        .args(format!("LAB='--repeat {BOOTS} --results {results}'"))
        .text()
        .map(drop)
}

fn results_of(arch: &str, smp: u32, app: &str, policy: &str) -> Result<Results> {
    let folder = results_folder(arch, smp);
    Results::of_file(&format!("{folder}/{arch}/{app}/{policy}.jsonl"))
}

/// Checks that all phases have passed, and that PBG measures and replays. On several CPUs, in real
/// time, each boot has its lines.
fn check_cells(
    context: &Context,
    arch: &str,
    app: &str,
    smp: u32,
    policies: &[&String],
) -> Result<()> {
    run_cells(context, arch, app, smp, policies)?;
    let boots = if smp == 1 { 1 } else { BOOTS };
    for policy in policies {
        let results = results_of(arch, smp, app, policy)?;
        results
            .passed(&vec![phases(policy); boots].join(" "))
            .with_context(|| format!("{app} under {policy}"))?;
    }
    context.counts(policies.len());
    Ok(())
}

/// Checks that none of these policies has an average as low as that of PBG's replay.
fn check_pbg(context: &Context, policies: &[&String]) -> Result<()> {
    if results_of(ANY_ARCH, 1, EVERYWHERE, PBG).is_err() {
        run_cells(context, ANY_ARCH, EVERYWHERE, 1, policies)?;
    }
    let average = |policy: &str, phase: &str| -> Result<u64> {
        let results = results_of(ANY_ARCH, 1, EVERYWHERE, policy)?;
        Ok(results.phase(phase)?.avg_turnaround_ns)
    };
    let best = average(PBG, "replay")?;
    let mut others = 0;
    for policy in policies.iter().filter(|policy| !has_replay(policy)) {
        let average = average(policy, "run")?;
        context.say(format_args!("{policy} {average}, {PBG} {best}"));
        ensure!(best < average, "{policy} is as good");
        others += 1;
    }
    ensure!(others > 0, "there is no other policy");
    Ok(())
}

/// Checks that under COOP the two programs with the most urgent coroutines are done before the two
/// with the least urgent ones, which are spawned before. (At this scale the fifth program is done
/// before the first timer.)
fn check_order(context: &Context) -> Result<()> {
    const ORDER: [&str; 4] = ["control", "web", "index", "backup"];
    let results = || results_of(ANY_ARCH, 1, COROUTINES, "sched_coop");
    if results().is_err() {
        run_cells(
            context,
            ANY_ARCH,
            COROUTINES,
            1,
            &[&"sched_coop".to_owned()],
        )?;
    }
    let results = results()?;
    let ends = ORDER.map(|name| {
        let task = results.tasks.iter().find(|task| task.task == name);
        task.map(|task| task.finish_ns)
    });
    context.say(format_args!("{ORDER:?} are done at {ends:?} ns"));
    ensure!(ends.iter().all(Option::is_some), "one has no row");
    ensure!(ends.is_sorted(), "expected the order {ORDER:?}");
    context.counts(ORDER.len());
    Ok(())
}

/// Runs a program without result lines under these policies.
fn run_plain(context: &Context, folder: &str, policies: &[&String]) -> Result<()> {
    for policy in policies {
        let call = context.make(format!("run A={folder} FEATURES={policy}"));
        call.text()?;
    }
    context.counts(policies.len());
    Ok(())
}
