//! Real time, against the host's clock.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::helpers::{REAL_ARCH, built_then_alone, expect_refusal, pbg, results};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases(project: &Project) -> Vec<Case<'_>> {
    let name = "qemu: a profile of counted time is refused in real time, and the reverse";
    let mut cases = vec![case(name, refuse_other_time).boots("realtime", REAL_ARCH)];
    for arch in project.in_turn(&project.arches, 2, 3) {
        let name = format!("qemu: selftest clock {arch} real");
        let image = format!("A=selftest T=clock TIMING=real ARCH={arch}");
        let booted = image.clone();
        let compare = case(name, move |context| compare_clocks(context, &booted));
        cases.extend(built_then_alone(compare, arch, vec![image]));
    }
    cases
}

/// Checks that a profile of counted time is refused in real time and the reverse, on the host and
/// by the guest.
fn refuse_other_time(context: &Context) -> Result<()> {
    let profile = context.file("counted.pbg")?;
    let disk = context.file("disk.img")?;
    let boot = |timing| {
        let call =
            pbg(context, "realtime").args(format!("SCALE=100 ARCH={REAL_ARCH} BLK=y DISK={disk}"));
        call.args(format!("PROFILE_OUT={profile} {timing}"))
    };
    let build = |timing| {
        let call = context.make("-n run A=realtime FEATURES=sched_pbg SCALE=100");
        call.args(format!("ARCH={REAL_ARCH} PROFILE={profile}"))
            .args(timing)
    };
    let real = "TIMING=real TIMEOUT=60";
    boot("").text()?;
    for (timing, why) in [
        (real, "measured in real time, found one in counted time"),
        ("", "measured in counted time, found one in real time"),
    ] {
        expect_refusal(build(timing), why)?;
        let replaced = results(boot(timing))?;
        replaced.refused_and_replaced("disk", &format!("expected a profile {why}"))?;
        replaced.passed("measure replay")?;
    }
    Ok(())
}

/// Checks that the time which a guest reads across 3 s agrees with the host's clock to 1 %. The best of
/// three tries counts: a busy host delays some of them, but a wrong clock is wrong each time.
fn compare_clocks(context: &Context, image: &str) -> Result<()> {
    let mut tries = Vec::new();
    for _ in 0..3 {
        let (mut begin, mut end) = (None, None);
        let call = context.make(format!("lab-boot {image}"));
        let output = call.for_each_line(|line| {
            if line.contains("CLOCK-BEGIN") {
                begin = Some(Instant::now());
            } else if let Some((_, guest_ns)) = line.split_once("CLOCK-END ") {
                end = Some((Instant::now(), guest_ns.trim().parse()));
            }
        })?;
        ensure!(output.status.success(), "make lab-boot: {}", output.status);
        let begin = begin.context("the guest has not said when it began")?;
        let (end, guest_ns) = end.context("the guest has not said when it ended")?;
        let took = (Duration::from_nanos(guest_ns?), end - begin);
        context.say(format_args!("guest and host: {took:?}"));
        if took.0.abs_diff(took.1) <= took.1 / 100 {
            return Ok(());
        }
        tries.push(took);
    }
    bail!("expected equal times of guest and host to 1 %, found {tries:?}")
}
