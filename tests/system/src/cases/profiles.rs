//! Profiles that are kept: built in, on a disk, measured under another policy.

use std::fs;

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, last_line, pbg, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
    results::Results,
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    for arch in project.in_turn(&project.arches, 2, 3) {
        cases.push(built_in(arch, "realtime", 100, 1));
    }
    for arch in project.in_turn(&project.arches, 1, 3) {
        let name = format!("qemu: a profile is kept on a disk, {arch}");
        let check = move |context: &Context| keep_on_disk(context, arch);
        cases.push(case(name, check).boots("realtime with a disk", arch));
    }
    cases.push(built_in(ANY_ARCH, "batch-at-once", 10, 5));
    cases.push(case("qemu: a profile is measured under FIFO", measure_under_fifo).builds(ANY_ARCH));
    cases.push(case("qemu: a plain program prints its profile", save_plain).builds(ANY_ARCH));
    cases
}

fn built_in<'a>(arch: &'a str, app: &'a str, scale: u64, percent: u64) -> Case<'a> {
    let name = format!(
        "qemu: a profile is saved, built in and replayed, {arch}, {app}, {percent} % of the bound"
    );
    let check = move |context: &Context| {
        let boot = || pbg(context, app).args(format!("ARCH={arch} SCALE={scale}"));
        let profile = context.file("kept.pbg")?;
        let said = boot().args(format!("PROFILE_OUT={profile}")).text()?;
        ensure!(
            !said.contains("PBG-PROFILE"),
            "the log has the profile, people do not need it"
        );
        let last = last_line(&said);
        ensure!(
            last.starts_with(&format!("profile: {profile}, "))
                && last.contains(" tasks, ")
                && last.ends_with(&format!(" PROFILE={profile}")),
            "expected how to replay it, found `{last}`"
        );
        Results::of(&said)?.followed("boot")?;
        // The environment counts like the command line.
        let results = results(boot().env("PROFILE", &profile))?;
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
    };
    case(name, check).boots(app, arch)
}

/// Boots the same image twice with one disk.
fn keep_on_disk(context: &Context, arch: &str) -> Result<()> {
    let disk = context.file("disk.img")?;
    let boot = || {
        let call = pbg(context, "realtime").args("SCALE=100 BLK=y");
        call.args(format!("ARCH={arch} DISK={disk}")).text()
    };
    let first = Results::of(&boot()?)?;
    first.passed("measure replay")?;
    first.followed("boot")?;
    let said = boot()?;
    let second = Results::of(&said)?;
    second.passed("replay")?;
    second.followed("disk")?;
    // ArceOS's line on a disk without partitions is in the log, and does not alarm people.
    let log = format!("target/logs/realtime-{arch}-sched_pbg-scale100-blk.log");
    let log = fs::read(log)?;
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

/// Checks that the profile names the policy that it was measured under, and can be replayed.
fn measure_under_fifo(context: &Context) -> Result<()> {
    let profile = context.file("kept.pbg")?;
    let call = pbg(context, "realtime").args("SCALE=100 PBG_BASE=fifo");
    let results = results(call.args(format!("PROFILE_OUT={profile}")))?;
    results.passed("measure replay")?;
    let says_so = fs::read(&profile)?.windows(4).any(|bytes| bytes == b"fifo");
    ensure!(
        says_so,
        "the profile does not say what it was measured under"
    );
    Ok(())
}

/// Checks that the profile of a program without the test programs' helpers is saved from its
/// console, and shown.
fn save_plain(context: &Context) -> Result<()> {
    let profile = context.file("kept.pbg")?;
    let call = pbg(context, "plain").args(format!("PROFILE_OUT={profile}"));
    let said = call.text()?;
    let last = last_line(&said);
    ensure!(
        last.starts_with(&format!("profile: {profile}, 4 tasks, "))
            && last.ends_with(&format!("make profile PROFILE={profile}")),
        "expected how to look at it, found `{last}`"
    );
    let shown = context.make(format!("profile PROFILE={profile}"));
    let shown = shown.text()?;
    for text in [
        "plain (",
        " on x86_64, 1 CPU, in unknown time, under rr; 1 run, 4 tasks",
        "Times are in ms.",
    ] {
        ensure!(shown.contains(text), "expected `{text}`");
    }
    Ok(())
}
