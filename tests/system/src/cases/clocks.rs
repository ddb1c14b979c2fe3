//! Real time, against the host's clock.

use std::{
    cell::Cell,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};

use super::helpers::{dry, folder, pbg, refused, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case> {
    let one_time = case(
        "qemu: a profile of one time is refused in the other",
        in_real_time,
    );
    let mut cases = vec![one_time.alone()];
    for arch in project.arches.clone() {
        let name = format!("qemu: selftest clock {arch} real");
        cases.push(case(name, move |context| real_clock(context, &arch)).alone());
    }
    cases
}

/// A profile of one time is refused in the other, on the host and by the guest.
fn in_real_time(context: &Context) -> Result<()> {
    let profile = context.file("counted.pbg")?;
    let with = ["SCALE=100", "FEATURES=sched_pbg", "A=realtime"];
    let real = ["TIMING=real", "TIMEOUT=60"];
    let disk = [
        "BLK=y".to_owned(),
        format!("DISK={}", context.file("disk.img")?),
    ];
    let out = [format!("PROFILE_OUT={profile}")];
    let built_in = [format!("PBG_PROFILE={profile}")];
    let is_real = "measured in real time, found one in counted time";
    let is_counted = "measured in counted time, found one in real time";
    let counted = || {
        let boot = pbg(context, "realtime").args(["SCALE=100"]);
        boot.args(&disk).args(&out).text()
    };
    counted()?;
    refused(
        dry(context, "run").args(with).args(real).args(&built_in),
        is_real,
    )?;
    let boot = || {
        let boot = pbg(context, "realtime").args(["SCALE=100"]).args(real);
        results(boot.args(&disk).args(&out))
    };
    // The account of a phase is wrong if the host takes the CPU away as the last task ends.
    let boot = boot().or_else(|error| {
        context.say(format_args!("once more, after: {error:#}"));
        counted()?;
        boot()
    })?;
    boot.refused_and_replaced("disk", &format!("expected a profile {is_real}"))?;
    boot.passed("measure replay")?;
    refused(dry(context, "run").args(with).args(&built_in), is_counted)?;
    let boot = results(pbg(context, "realtime").args(["SCALE=100"]).args(&disk))?;
    boot.refused_and_replaced("disk", &format!("expected a profile {is_counted}"))?;
    boot.passed("measure replay")
}

/// A guest's 3 s by the host's clock, to 1 %. A busy host can only be late, and not always; a
/// wrong clock is wrong each time: the best of three counts.
fn real_clock(context: &Context, arch: &str) -> Result<()> {
    let call = |goal: &str| {
        context
            .make([goal, "TIMING=real"])
            .args([folder("selftest"), format!("ARCH={arch}")])
            .env("SELFTEST", "clock")
    };
    call("build").text()?;
    let mut tries = Vec::new();
    for _ in 0..3 {
        let (begin, end) = (Cell::new(None), Cell::new(None));
        let output = call("lab-boot").for_each_line(|line| {
            if line.contains("CLOCK-BEGIN") {
                begin.set(Some(Instant::now()));
            } else if line.contains("CLOCK-END") {
                end.set(Some(Instant::now()));
            }
        })?;
        ensure!(output.status.success(), "make lab-boot: {}", output.status);
        let (Some(begin), Some(end)) = (begin.get(), end.get()) else {
            anyhow::bail!("the guest has not said when it began and ended");
        };
        let took = end - begin;
        context.say(format_args!("{} us", took.as_micros()));
        if took.abs_diff(Duration::from_secs(3)) <= Duration::from_millis(30) {
            return Ok(());
        }
        tries.push(took);
    }
    anyhow::bail!("expected 3 s to 1 %, found {tries:?}")
}
