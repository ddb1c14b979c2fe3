//! Promises of the policies, in figures at full scale.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::{Results, near},
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    // The published tables have these figures of every architecture.
    for arch in project.in_turn(&project.arches, 0, 3) {
        for policy in ["sched_cfs", "sched_rr"] {
            let name = format!("qemu: unequal {arch} {policy}, full scale, Jain's index >= 0.98");
            let check = move |context: &Context| check_jain(context, arch, policy);
            cases.push(case(name, check).builds(arch));
        }
        let name = format!("qemu: unequal {arch} sched_fifo, full scale, equal groups");
        let check = move |context: &Context| check_groups(context, arch);
        cases.push(case(name, check).builds(arch));
        let name = format!("qemu: realtime {arch} sched_pbg, full scale, 2 % of the bound");
        let check = move |context: &Context| check_bound(context, arch);
        cases.push(case(name, check).builds(arch));
    }
    for policy in project.in_turn(["sched_mlfq", "stock_cfs"], 0, 2) {
        let name =
            format!("qemu: figures do not depend on what else is in the image, realtime {policy}");
        let check = move |context: &Context| compare_images(context, policy);
        cases.push(case(name, check).builds(ANY_ARCH));
    }
    cases
}

/// Runs at full scale, because otherwise the window is shorter than a tick.
fn run_in_full(context: &Context, app: &str, arch: &str, policy: &str) -> Result<Results> {
    results(context.make(format!("run A={app} ARCH={arch} FEATURES={policy}")))
}

fn check_jain(context: &Context, arch: &str, policy: &str) -> Result<()> {
    let results = run_in_full(context, "unequal", arch, policy)?;
    let jain = results.phase("run")?.jain;
    ensure!((0.98..=1.0).contains(&jain), "Jain's index is {jain}");
    Ok(())
}

fn check_groups(context: &Context, arch: &str) -> Result<()> {
    let results = run_in_full(context, "unequal", arch, "sched_fifo")?;
    let tasks = results.tasks.iter();
    let groups = tasks.filter(|task| task.context.phase == "run");
    let groups: Option<Vec<_>> = groups.map(|task| task.groups).collect();
    let groups = groups.context("a task without its groups")?;
    let is_equal = groups.iter().all(|&n| n == groups[0] && n > 0);
    ensure!(
        groups.len() == 4 && is_equal,
        "expected four equal numbers, found {groups:?}"
    );
    Ok(())
}

/// Checks that PBG's replay is within 2 % of the SRPT bound, with fewer than 1,000 context switches.
fn check_bound(context: &Context, arch: &str) -> Result<()> {
    let results = run_in_full(context, "realtime", arch, "sched_pbg")?;
    let replay = results.phase("replay")?;
    let (average, bound) = (replay.avg_turnaround_ns, replay.srpt_bound_ns);
    ensure!(average * 100 <= bound * 102, "{average} ns of {bound}");
    let switches = replay.context_switches;
    ensure!(switches < 1000, "{switches} context switches");
    Ok(())
}

/// Checks that a cell's figures do not depend on what else is in the image. Each run starts at the
/// same phase of the timer tick, so with an unused feature the average turnaround is the same to
/// 0.1 %. At another phase of the tick it is not.
fn compare_images(context: &Context, policy: &str) -> Result<()> {
    let average = |features: &str, tick_phase: u16| -> Result<u64> {
        let call = context.make("run A=realtime SCALE=10");
        let call = call.args(format!("FEATURES={features} TICK_PHASE={tick_phase}"));
        let results = results(call)?;
        let run = results.phase("run")?;
        let found = run.tick_phase.map(u16::from);
        ensure!(found == Some(tick_phase), "found {found:?}");
        Ok(run.avg_turnaround_ns)
    };
    let more = format!("{policy},rtc");
    let at_tick = [average(policy, 0)?, average(&more, 0)?];
    let between = [average(policy, 500)?, average(&more, 500)?];
    context.say(format_args!(
        "at the tick {at_tick:?}, between two {between:?}"
    ));
    ensure!(
        near(at_tick[0], at_tick[1], 1000) && near(between[0], between[1], 1000),
        "an unused feature changes the average"
    );
    ensure!(
        !near(at_tick[0], between[0], 1000),
        "the tick's phase makes no difference"
    );
    Ok(())
}
