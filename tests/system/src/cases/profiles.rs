//! A profile that is kept: built in, on a disk, measured under another policy.

use std::fs;

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, folder, pbg, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let mut cases = Vec::new();
    for arch in &project.arches {
        cases.push(built_in(arch, "realtime", 100, 1));
        let on = arch.clone();
        let name = format!("qemu: a profile is kept on a disk, {arch}");
        cases.push(
            case(name, move |context| on_a_disk(context, &on)).boots("realtime with a disk", arch),
        );
    }
    cases.push(built_in(ANY_ARCH, "batch-at-once", 10, 5));
    cases.push(case("qemu: a profile is measured under FIFO", under_fifo).builds(ANY_ARCH));
    cases.push(case("qemu: a plain program prints its profile", plain).builds(ANY_ARCH));
    cases
}

fn built_in(arch: &str, app: &'static str, scale: u64, percent: u64) -> Case {
    let name = format!(
        "qemu: a profile is saved, built in and replayed, {arch}, {app}, {percent} % of the bound"
    );
    let on = arch.to_owned();
    case(name, move |context| {
        replayed(context, &on, app, scale, percent)
    })
    .boots(app, arch)
}

/// Recorded, saved, built in, booted: only replayed, and as near to the bound as this.
fn replayed(context: &Context, arch: &str, app: &str, scale: u64, percent: u64) -> Result<()> {
    let profile = context.file("kept.pbg")?;
    let variables = [format!("ARCH={arch}"), format!("SCALE={scale}")];
    let said = pbg(context, app)
        .args(&variables)
        .args([format!("PROFILE_OUT={profile}")])
        .text()?;
    ensure!(
        !said.contains("PBG-PROFILE"),
        "the log has the profile, people do not need it"
    );
    let last = said.lines().last().unwrap_or_default();
    ensure!(
        last.starts_with(&format!("profile: {profile}, "))
            && last.contains(" tasks, ")
            && last.ends_with(&format!(" PBG_PROFILE={profile}")),
        "expected how to replay it, found `{last}`"
    );
    Results::of(&said)?.followed("boot")?;
    // From the environment, as from the command line.
    let results = results(
        pbg(context, app)
            .args(&variables)
            .env("PBG_PROFILE", &profile),
    )?;
    results.passed("replay")?;
    results.followed("image")?;
    let replay = results.phase("replay")?;
    let (average, bound) = (replay.avg_turnaround_ns, replay.srpt_bound_ns);
    context.say(format_args!("{average} of {bound}"));
    ensure!(
        average * 100 <= bound * (100 + percent),
        "{average} ns of {bound}"
    );
    Ok(())
}

/// The same image, booted again with one disk.
fn on_a_disk(context: &Context, arch: &str) -> Result<()> {
    let disk = format!("DISK={}", context.file("disk.img")?);
    let variables = [folder("realtime"), format!("ARCH={arch}"), disk];
    let with = ["FEATURES=sched_pbg", "SCALE=100", "BLK=y"];
    let first = results(context.make(["run"]).args(with).args(&variables))?;
    first.passed("measure replay")?;
    first.followed("boot")?;
    let said = context.make(["run"]).args(with).args(&variables).text()?;
    let second = Results::of(&said)?;
    second.passed("replay")?;
    second.followed("disk")?;
    // What ArceOS says of a disk without partitions is in the log, and alarms nobody.
    let log = fs::read(format!(
        "target/logs/realtime-{arch}-sched_pbg-scale100-blk.log"
    ))?;
    ensure!(
        String::from_utf8_lossy(&log).contains("No partition table found"),
        "not in the log"
    );
    ensure!(
        !said.contains("axfs::") && !said.contains("axdriver"),
        "ArceOS alarms people"
    );
    Ok(())
}

/// What it was measured under is in the profile, and a plan can be made of it.
fn under_fifo(context: &Context) -> Result<()> {
    let profile = context.file("kept.pbg")?;
    let out = format!("PROFILE_OUT={profile}");
    let results = results(pbg(context, "realtime").args(["SCALE=100", "PBG_BASE=fifo", &out]))?;
    results.passed("measure replay")?;
    let says_so = fs::read(&profile)?.windows(4).any(|bytes| bytes == b"fifo");
    ensure!(
        says_so,
        "the profile does not say what it was measured under"
    );
    Ok(())
}

/// Of a program without the test programs' helpers: saved from its console, and shown.
fn plain(context: &Context) -> Result<()> {
    let profile = context.file("kept.pbg")?;
    let said = context
        .make(["run", "A=plain", "FEATURES=sched_pbg"])
        .args([format!("PROFILE_OUT={profile}")])
        .text()?;
    let last = said.lines().last().unwrap_or_default();
    ensure!(
        last.starts_with(&format!("profile: {profile}, 4 tasks, "))
            && last.ends_with(&format!("make profile PBG_PROFILE={profile}")),
        "expected how to look at it, found `{last}`"
    );
    let shown = context
        .make(["profile"])
        .args([format!("PBG_PROFILE={profile}")])
        .text()?;
    for text in [
        "plain (",
        " on x86_64, 1 CPU, in unknown time, under rr; 1 run, 4 tasks",
        "Times are in ms.",
    ] {
        ensure!(shown.contains(text), "expected `{text}`");
    }
    Ok(())
}
