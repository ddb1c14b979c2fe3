//! Single boots: what ArceOS says, and the app that tests the instruments.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, fails_with, folder, selftest};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let mut cases = Vec::new();
    for arch in &project.arches {
        let changed = match arch.as_str() {
            ANY_ARCH => &["loops", "more", "less", "order", "order-labelled"][..],
            _ => &["order"],
        };
        for what in changed {
            let name = format!("qemu: a changed program, {arch}, {what}");
            cases.push(runs(
                name,
                &format!("changed-{what}"),
                arch,
                Some("sched_pbg"),
            ));
        }
        let name = format!("qemu: selftest tasks {arch} sched_pbg");
        cases.push(runs(name, "tasks", arch, Some("sched_pbg")));
        cases.push(runs(
            format!("qemu: selftest clock {arch} icount"),
            "clock",
            arch,
            None,
        ));
    }
    for (what, policy) in [
        ("calls", "sched_pbg"),
        ("calls", "sched_rr"),
        ("share-0", "sched_pbg"),
        ("share-1", "sched_pbg"),
        ("share-3", "sched_pbg"),
        ("share-9", "sched_pbg"),
        ("share-30", "sched_pbg"),
        ("meter", "sched_pbg"),
    ] {
        cases.push(runs(
            format!("qemu: selftest {what} {policy}"),
            what,
            ANY_ARCH,
            Some(policy),
        ));
    }
    for policy in ["sched_fifo", "sched_coop"] {
        let name = format!("qemu: a coroutine whose awaits are ready at once gives way, {policy}");
        cases.push(runs(name, "awaits", ANY_ARCH, Some(policy)));
    }
    // FIFO never preempts, RR gives all the same turn: neither looks at what a task has had.
    let goes_by_time = |policy: &&String| {
        policy.starts_with("sched_")
            && !["sched_fifo", "sched_rr"].contains(&policy.as_str())
            && !policy.starts_with("sched_pbg")
    };
    for policy in project.policies.iter().filter(goes_by_time) {
        let name = format!(
            "qemu: a job gets done beside a task that yields and a gc that spins, {policy}"
        );
        cases.push(runs(name, "yielders", ANY_ARCH, Some(policy)));
    }
    for policy in ["sched_rr", "sched_mlfq", "stock_cfs"] {
        let name = format!("qemu: a handle of an ended task is noticed and refused, {policy}");
        let check = move |context: &Context| {
            let call = selftest(context, "handle").args([format!("FEATURES={policy}")]);
            fails_with(call, "\"pass\":false")
        };
        cases.push(case(name, check).builds(ANY_ARCH));
    }
    for policy in project.policies.clone() {
        let name = format!("qemu: boot log {policy}");
        let check = move |context: &Context| boot_log(context, &policy);
        cases.push(case(name, check).builds(ANY_ARCH));
    }
    cases
}

/// The selftest of that name ends well.
fn runs(name: String, what: &str, arch: &str, policy: Option<&str>) -> Case {
    let what = what.to_owned();
    let mut variables = vec![format!("ARCH={arch}")];
    variables.extend(policy.map(|policy| format!("FEATURES={policy}")));
    let check = move |context: &Context| selftest(context, &what).args(&variables).text().map(drop);
    case(name, check).builds(arch)
}

/// ArceOS itself names the scheduler.
fn boot_log(context: &Context, policy: &str) -> Result<()> {
    let variables = [folder("realtime"), format!("FEATURES={policy}")];
    let said = context
        .make(["run", "SCALE=1000", "LOG=info"])
        .args(variables)
        .text()?;
    let name = format!("use {} scheduler.", boot_name(policy));
    ensure!(said.contains(&name), "expected `{name}`");
    Ok(())
}

/// What a policy calls itself in ArceOS's boot log.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_are_called_in_capitals_and_stock_ones_as_arceos_has_it() {
        let names = ["sched_eevdf", "sched_pbg", "sched_pbg_coop", "stock_rr"].map(boot_name);
        assert_eq!(names, ["EEVDF", "PBG", "PBG", "Round-robin"]);
    }
}
