//! CPUs that share the work: it is done by others if its own CPU never gets to it, and a yield that
//! has nothing to do with that costs as before.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, fails_with, folder, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let ours = project.policies.iter().filter(|p| p.starts_with("sched_"));
    let ours: Vec<String> = ours.cloned().collect();
    let mut cases: Vec<_> = (project.arches.iter())
        .map(|arch| {
            // Each policy somewhere, and all of them here.
            let here: Vec<_> = match arch == ANY_ARCH {
                true => ours.clone(),
                false => ours
                    .iter()
                    .filter(|p| replays(p))
                    .take(1)
                    .chain(ours.first())
                    .cloned()
                    .collect(),
            };
            let name =
                format!("qemu: what waits behind a task that never gives way is done, {arch}");
            let on = arch.clone();
            case(name, move |context| is_done(context, &on, &here)).boots("hog", arch)
        })
        .collect();
    cases.extend([
        case(
            "qemu: and is not if the CPUs do not share the work",
            is_not_done,
        )
        .boots("hog", ANY_ARCH),
        case(
            "qemu: a yield where several CPUs could share costs as on one, to 8 instructions",
            cheap,
        )
        .boots("cost", ANY_ARCH),
    ]);
    cases
}

fn is_done(context: &Context, arch: &str, policies: &[String]) -> Result<()> {
    for policy in policies {
        let call = context.make(["run", "SMP=4"]).args([
            folder("hog"),
            format!("ARCH={arch}"),
            format!("FEATURES={policy}"),
        ]);
        let phases = if replays(policy) {
            "measure replay"
        } else {
            "run"
        };
        results(call)?.passed(phases)?;
    }
    Ok(())
}

fn replays(policy: &str) -> bool {
    policy.starts_with("sched_pbg")
}

fn is_not_done(context: &Context) -> Result<()> {
    let call = context
        .make([
            "run",
            "SMP=4",
            "BALANCE=n",
            "FEATURES=sched_rr",
            "TIMEOUT=5",
        ])
        .args([folder("hog"), format!("ARCH={ANY_ARCH}")]);
    fails_with(call, "5 s")
}

/// Instructions that a yield may take more.
const MORE: f64 = 8.0;

/// The cheapest, the one that is the exception, and the one that is closest to the limit; each is two
/// images.
const COUNTED: [&str; 3] = ["sched_fifo", "sched_rr", "sched_sjf"];

/// RR's put is by a hair too large for the compiler to inline it (`docs/several-cpus.md`).
const MORE_RR: f64 = 16.0;

fn cheap(context: &Context) -> Result<()> {
    for policy in COUNTED {
        let yields = |more: &[&str]| -> Result<f64> {
            let call = context.make(["run"]).args([
                folder("cost"),
                format!("ARCH={ANY_ARCH}"),
                format!("FEATURES={policy},smp"),
            ]);
            let found = results(call.args(more.iter().map(ToString::to_string)))?;
            let of_four = found.costs.iter().find(|cost| cost.tasks == 4);
            of_four
                .and_then(|cost| cost.instructions_per_yield)
                .context("no figure of 4 tasks")
        };
        let (alone, shares) = (yields(&[])?, yields(&["BALANCE=y"])?);
        let most = if policy == "sched_rr" { MORE_RR } else { MORE };
        ensure!(
            alone != shares && shares <= alone + most,
            "{policy}: {shares} instructions for {alone}, allowed are {most} more"
        );
    }
    Ok(())
}
