//! A program recorded under policies other than PBG.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, last_line};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

pub fn cases() -> Vec<Case<'static>> {
    let cases = ["sched_cfs SMP=1", "stock_rr SMP=1", "sched_cfs SMP=2"].map(|with| {
        let name = format!("qemu: a program is recorded, {with}");
        case(name, move |context| record(context, with)).builds(ANY_ARCH)
    });
    cases.into()
}

/// Checks that the profile is saved, names its policy, and has each task of the run.
fn record(context: &Context, with: &str) -> Result<()> {
    let profile = context.file("recorded.pbg")?;
    let call = context.make(format!("record A=realtime SCALE=100 FEATURES={with}"));
    let said = call.args(format!("PROFILE_OUT={profile}")).text()?;
    let last = last_line(&said);
    ensure!(
        last.starts_with(&format!("profile: {profile}, 5 tasks, "))
            && last.ends_with(&format!("={profile}")),
        "expected where the recording is, found `{last}`"
    );
    let results = Results::of(&said)?;
    results.passed("run")?;
    let shown = context.make(format!("profile PROFILE={profile}"));
    let shown = shown.text()?;
    for task in &results.tasks {
        let name = &*task.task;
        ensure!(shown.contains(name), "expected task {name} in\n{shown}");
    }
    let policy = with.split(' ').next().unwrap_or_default();
    let policy = policy.trim_start_matches("sched_").replace('_', "-");
    ensure!(shown.contains(&policy), "expected {policy} in\n{shown}");
    if with.ends_with('1') {
        let call = context.make("simulate A=realtime SCALE=100 FEATURES=sched_rr");
        let simulated = call.args(format!("PROFILE={profile}")).text()?;
        ensure!(
            simulated.contains("realtime on x86_64, 1 CPU"),
            "{simulated}"
        );
    }
    Ok(())
}
