//! Single boots: ArceOS's own lines, and the app that tests the instruments.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, expect_failure, has_replay, selftest};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for arch in &project.arches {
        let pbg = format!("ARCH={arch} FEATURES=sched_pbg");
        let changes = match arch.as_str() {
            ANY_ARCH => &["loops", "more", "less", "order", "order-labelled"][..],
            _ => &["order"],
        };
        for change in changes {
            let name = format!("qemu: a changed program, {arch}, {change}");
            cases.push(selftest_case(
                name,
                format!("changed-{change}"),
                arch,
                pbg.clone(),
            ));
        }
        let name = format!("qemu: selftest tasks {arch} sched_pbg");
        cases.push(selftest_case(name, "tasks", arch, pbg));
        let name = format!("qemu: selftest clock {arch} icount");
        cases.push(selftest_case(name, "clock", arch, format!("ARCH={arch}")));
    }
    let mut here = |name: String, what: &str, policy: &str| {
        let variables = format!("ARCH={ANY_ARCH} FEATURES={policy}");
        cases.push(selftest_case(name, what, ANY_ARCH, variables));
    };
    here("qemu: selftest calls sched_rr".into(), "calls", "sched_rr");
    for what in [
        "calls", "share-0", "share-1", "share-3", "share-9", "share-30", "meter",
    ] {
        here(
            format!("qemu: selftest {what} sched_pbg"),
            what,
            "sched_pbg",
        );
    }
    for policy in ["sched_fifo", "sched_coop"] {
        let name = format!("qemu: a coroutine whose awaits are ready at once yields, {policy}");
        here(name, "awaits", policy);
    }
    // FIFO never preempts and RR gives all tasks the same slice, so neither uses the CPU time that
    // a task has had.
    let goes_by_time = |policy: &&String| {
        let is_ours = policy.starts_with("sched_") && !has_replay(policy);
        is_ours && *policy != "sched_fifo" && *policy != "sched_rr"
    };
    for policy in project.policies.iter().filter(goes_by_time) {
        let name =
            format!("qemu: a job ends beside a task that yields and a gc that spins, {policy}");
        here(name, "yielders", policy);
    }
    for policy in ["sched_rr", "sched_mlfq", "stock_cfs"] {
        let name = format!("qemu: a handle of an ended task is noticed and refused, {policy}");
        let check = move |context: &Context| {
            let call = selftest(context, "run", "handle").args(format!("FEATURES={policy}"));
            expect_failure(call, "\"pass\":false")
        };
        cases.push(case(name, check).builds(ANY_ARCH));
    }
    for policy in project.in_turn(&project.policies, 0, 3) {
        let name = format!("qemu: boot log {policy}");
        cases.push(case(name, move |context| check_boot_log(context, policy)).builds(ANY_ARCH));
    }
    // Each has an image of its own.
    project.in_turn(cases, 1, 3)
}

/// Makes a case that passes if the selftest of that name ends well.
fn selftest_case<'a>(
    name: String,
    what: impl Into<String>,
    arch: &str,
    variables: String,
) -> Case<'a> {
    let what = what.into();
    let check = move |context: &Context| {
        let call = selftest(context, "run", &what).args(&variables);
        call.text().map(drop)
    };
    case(name, check).builds(arch)
}

/// Checks that ArceOS's boot log names the scheduler.
fn check_boot_log(context: &Context, policy: &str) -> Result<()> {
    let call = context.make("run A=realtime SCALE=1000 LOG=info");
    let said = call.args(format!("FEATURES={policy}")).text()?;
    let name = format!("use {} scheduler.", boot_name(policy));
    ensure!(said.contains(&name), "expected `{name}`");
    Ok(())
}

/// Returns the name of a policy in ArceOS's boot log.
fn boot_name(policy: &str) -> String {
    match policy {
        "stock_fifo" => "FIFO".into(),
        "stock_rr" => "Round-robin".into(),
        "stock_cfs" => "Completely Fair".into(),
        _ => {
            let short = policy.trim_start_matches("sched_");
            let name = short.split('_').next().unwrap_or(short); // pbg_coop is a PBG
            name.to_uppercase()
        }
    }
}
