//! A program recorded under policies that are not PBG.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, folder};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

pub fn cases() -> Vec<Case> {
    ["sched_cfs SMP=1", "stock_rr SMP=1", "sched_cfs SMP=2"]
        .into_iter()
        .map(|of| {
            let name = format!("qemu: a program is recorded, {of}");
            case(name, move |context| recorded(context, of)).builds(ANY_ARCH)
        })
        .collect()
}

/// The profile is saved and says under what, and each task of the run is in it.
fn recorded(context: &Context, of: &str) -> Result<()> {
    let profile = context.file("recorded.pbg")?;
    let said = context
        .make(["record", "SCALE=100"])
        .args(format!("FEATURES={of}").split(' '))
        .args([folder("realtime"), format!("PROFILE_OUT={profile}")])
        .text()?;
    let last = said.lines().last().unwrap_or_default();
    ensure!(
        last.starts_with(&format!("profile: {profile}, 5 tasks, "))
            && last.ends_with(&format!("={profile}")),
        "expected where the recording is, found `{last}`"
    );
    let results = Results::of(&said)?;
    results.passed("run")?;
    let shown = context
        .make(["profile"])
        .args([format!("PBG_PROFILE={profile}")])
        .text()?;
    for task in &results.tasks {
        let name = &*task.task;
        ensure!(shown.contains(name), "expected task {name} in\n{shown}");
    }
    let policy = of.split(' ').next().unwrap_or_default();
    let policy = policy.trim_start_matches("sched_").replace('_', "-");
    ensure!(shown.contains(&policy), "expected {policy} in\n{shown}");
    if of.ends_with('1') {
        let simulated = context
            .make(["simulate", "SCALE=100", "FEATURES=sched_rr"])
            .args([folder("realtime"), format!("PROFILE={profile}")])
            .text()?;
        ensure!(
            simulated.contains("realtime on x86_64, 1 CPU"),
            "{simulated}"
        );
    }
    Ok(())
}
