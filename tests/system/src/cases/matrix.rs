//! Every policy with every app: all have to run, to agree with themselves, and with PBG's
//! promise.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};

use super::{helpers::ANY_ARCH, host::own_suite};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

/// The apps that run under every policy, of [`ANY_ARCH`]. Not batch-at-once, which is batch without its
/// waits: a profile of it is replayed elsewhere.
const ALL_POLICIES: [&str; 3] = ["yield", "realtime", "batch"];
/// Those that run under every third of them: an image takes eight seconds to link, and all of them are in the
/// published tables, of which a sample is measured again.
const FEW_POLICIES: [&str; 4] = ["equal", "unequal", "held", "occupy"];
/// The app whose tasks wait for one another; a case of its own, so that it runs by its name.
const WAITING: &str = "pipeline";
/// The app whose tasks serve coroutines; likewise.
const COROUTINES: &str = "services";
/// The app that runs under every policy on the other architectures, and on several CPUs.
const ELSEWHERE: &str = "realtime";
/// At this scale a run is a moment, and a few ticks long.
const SCALE: &str = "SCALE=100";
/// How many CPUs the case has that has several.
const CPUS: u32 = 4;

pub fn cases(project: &Project) -> Result<Vec<Case>> {
    let mut cases = Vec::new();
    for arch in &project.arches {
        let apps = if arch == ANY_ARCH {
            &ALL_POLICIES[..]
        } else {
            &[ELSEWHERE][..]
        };
        cases.push(under("every policy", &project.policies, arch, apps, 1));
        for app in ["realtime", "yield"]
            .into_iter()
            .filter(|app| apps.contains(app))
        {
            let on = arch.clone();
            cases.push(
                case(
                    format!("qemu: PBG has the lowest average turnaround of all, {arch}, {app}"),
                    move |context| pbg_is_best(context, &on, app),
                )
                .boots(app, arch)
                .holds(&results_folder(arch, 1)),
            );
        }
    }
    let few = some(&project.policies);
    cases.push(under(
        "every third policy",
        &few,
        ANY_ARCH,
        &FEW_POLICIES,
        1,
    ));
    cases.push(under(
        "every policy",
        &project.policies,
        ANY_ARCH,
        &[WAITING],
        1,
    ));
    cases.push(under(
        "every third policy",
        &few,
        ANY_ARCH,
        &[COROUTINES],
        1,
    ));
    cases.push(
        case(
            format!("qemu: the most urgent coroutine's program gets the CPU, {ANY_ARCH}"),
            urgent_is_first,
        )
        .boots(COROUTINES, ANY_ARCH)
        .holds(&results_folder(ANY_ARCH, 1)),
    );
    // In real time.
    cases.push(
        under(
            "every policy",
            &project.policies,
            ANY_ARCH,
            &[ELSEWHERE],
            CPUS,
        )
        .alone_after(build_cells),
    );
    for folder in project.own_apps()? {
        let app = Path::new(&folder)
            .file_name()
            .context("no name")?
            .to_string_lossy()
            .into_owned();
        cases.push(own_suite(&app));
        cases.push(if project.apps.contains(&folder) {
            under("every third policy", &few, ANY_ARCH, &[&*app], 1)
        } else {
            let (name, few) = (
                format!("qemu: every third policy, {ANY_ARCH}, {app}"),
                few.clone(),
            );
            case(name, move |context| runs_under(context, &folder, &few)).builds(ANY_ARCH)
        });
    }
    Ok(cases)
}

/// Every third policy, ours and stock.
fn some(policies: &[String]) -> Vec<String> {
    policies.iter().skip(1).step_by(3).cloned().collect()
}

/// These apps under these policies, which are called so.
fn under(called: &str, policies: &[String], arch: &str, apps: &[&str], smp: u32) -> Case {
    let list = apps.join(",");
    let cpus = if smp == 1 {
        String::new()
    } else {
        format!(", {smp} CPUs")
    };
    let (on, of, policies) = (arch.to_owned(), list.clone(), policies.to_vec());
    let check = move |context: &Context| cells(context, &on, &of, smp, &policies);
    let name = format!("qemu: {called}, {arch}, {list}{cpus}");
    let all = case(name, check).holds(&results_folder(arch, smp));
    apps.iter().fold(all, |case, app| case.boots(app, arch))
}

/// Where the results of these cells are: what one case has run, another need not.
fn results_folder(arch: &str, smp: u32) -> String {
    format!("target/test/lab/{arch}-smp{smp}")
}

/// The images that the cells on several CPUs boot.
fn build_cells(context: &Context) -> Result<()> {
    for policy in &context.project.policies {
        context
            .make(["build", SCALE])
            .args([format!("SMP={CPUS}"), format!("ARCH={ANY_ARCH}")])
            .args([format!("A={ELSEWHERE}"), format!("FEATURES={policy}")])
            .text()?;
    }
    Ok(())
}

/// How often each cell is booted.
const BOOTS: usize = 2;

/// All cells of these apps; counted time must give the same lines each time.
fn run_cells(
    context: &Context,
    arch: &str,
    apps: &str,
    smp: u32,
    policies: &[String],
) -> Result<()> {
    context
        .make(["matrix", SCALE])
        .args([
            format!("ARCH={arch}"),
            format!("A={apps}"),
            format!("SMP={smp}"),
            format!("FEATURES={}", policies.join(",")),
        ])
        .args([format!(
            "LAB=--repeat {BOOTS} --results {}",
            results_folder(arch, smp)
        )])
        .text()
        .map(drop)
}

fn results_of(arch: &str, smp: u32, app: &str, policy: &str) -> Result<Results> {
    let folder = results_folder(arch, smp);
    Results::of_file(&format!("{folder}/{arch}/{app}/{policy}.jsonl"))
}

/// All phases have passed; PBG measures and replays. Of several CPUs, in real time, there are the
/// lines of each boot.
fn cells(context: &Context, arch: &str, apps: &str, smp: u32, policies: &[String]) -> Result<()> {
    run_cells(context, arch, apps, smp, policies)?;
    let boots = if smp == 1 { 1 } else { BOOTS };
    let mut count = 0;
    for app in apps.split(',') {
        for policy in policies {
            let results = results_of(arch, smp, app, policy)?;
            let replays = policy.starts_with("sched_pbg");
            let phases = if replays { "measure replay" } else { "run" };
            results
                .passed(&vec![phases; boots].join(" "))
                .with_context(|| format!("{app} under {policy}"))?;
            count += 1;
        }
    }
    context.counts(count);
    Ok(())
}

/// No row is before PBG's replay.
fn pbg_is_best(context: &Context, arch: &str, app: &str) -> Result<()> {
    let policies = &context.project.policies;
    if results_of(arch, 1, app, "sched_pbg").is_err() {
        run_cells(context, arch, app, 1, policies)?;
    }
    let best = results_of(arch, 1, app, "sched_pbg")?
        .phase("replay")?
        .avg_turnaround_ns;
    let mut others = 0;
    for policy in policies {
        if !policy.starts_with("sched_pbg") {
            let average = results_of(arch, 1, app, policy)?
                .phase("run")?
                .avg_turnaround_ns;
            context.say(format_args!("{policy} {average}, sched_pbg {best}"));
            ensure!(best < average, "{policy} is as good");
            others += 1;
        }
    }
    ensure!(others > 0, "there is no other policy");
    Ok(())
}

/// Under COOP the two programs with the most urgent coroutines are done before the two with the least
/// urgent ones, which are spawned before. (The one between them is done before the first timer at this scale.)
fn urgent_is_first(context: &Context) -> Result<()> {
    const ORDER: [&str; 4] = ["control", "web", "index", "backup"];
    let folder = || results_of(ANY_ARCH, 1, COROUTINES, "sched_coop");
    if folder().is_err() {
        run_cells(context, ANY_ARCH, COROUTINES, 1, &["sched_coop".to_owned()])?;
    }
    let results = folder()?;
    let ends = ORDER.map(|name| {
        let task = results.tasks.iter().find(|task| task.task == name);
        task.map(|task| task.finish_ns)
    });
    context.say(format_args!("{ORDER:?} are done at {ends:?} ns"));
    ensure!(ends.iter().all(Option::is_some), "one has no row");
    ensure!(ends.is_sorted(), "they are not done in this order");
    context.counts(ORDER.len());
    Ok(())
}

/// Of a program without result lines.
fn runs_under(context: &Context, folder: &str, policies: &[String]) -> Result<()> {
    for policy in policies {
        context
            .make(["run"])
            .args([format!("A={folder}"), format!("FEATURES={policy}")])
            .text()?;
    }
    context.counts(policies.len());
    Ok(())
}
