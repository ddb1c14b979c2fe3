//! Runs that fail: make says why in one line.

use std::{fs, path::Path};

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, expect_failure, expect_status, last_line, pbg, selftest};
use crate::{
    frame::{Case, Context, case},
    project::Project,
};

pub fn cases() -> Vec<Case<'static>> {
    let damaged = case("make: run fails if a profile arrives damaged", save_damaged);
    let fits = case(
        "make: an image that does not fit into MEM",
        refuse_large_image,
    );
    let mut cases = vec![damaged.boots("realtime", ANY_ARCH), fits.builds(ANY_ARCH)];
    for (what, fault, limit, text) in [
        ("the guest panics", "panic", "", "panicked at"),
        ("a check fails", "fail", "", "\"pass\":false"),
        (
            "the guest hangs",
            "hang",
            "TIMEOUT=5",
            "within 5 s; TIMEOUT=",
        ),
    ] {
        let name = format!("make: run fails if {what}");
        let check = move |context: &Context| {
            expect_failure(selftest(context, "run", fault).args(limit), text)
        };
        cases.push(case(name, check).boots(&format!("selftest {fault}"), ANY_ARCH));
    }
    cases
}

/// Checks that a damaged profile gets one line, and that the run fails.
fn save_damaged(context: &Context) -> Result<()> {
    pbg(context, "realtime").args("SCALE=100").text()?;
    let log = format!("target/logs/realtime-{ANY_ARCH}-sched_pbg-scale100.log");
    let damaged = context.file("damaged.console")?;
    fs::write(&damaged, damage(&fs::read(log)?))?;
    let image = context.file("damaged-console")?; // names its log
    fs::write(&image, "")?;
    let never = context.file("never.pbg")?;
    let Project { cargo, options, .. } = context.project;
    let save = format!("{cargo} run {options} --quiet --profile tool --package pbg-save --");
    let output = context
        .program("scripts/qemu-run.sh")
        .args(format!("{image} 10 cat {damaged}"))
        .env("PROFILE_OUT", &never)
        .env("NEXT", "")
        .env("PBG_SAVE", save)
        .output()?;
    expect_status(&output, 1)?;
    let last = last_line(&output.text);
    ensure!(
        last.starts_with("run: no profile saved: ")
            && last.contains("the first missing is number 2"),
        "expected what is missing, found `{last}`"
    );
    ensure!(!Path::new(&never).exists(), "a profile was saved");
    Ok(())
}

/// Changes a byte of the profile's second line.
fn damage(console: &[u8]) -> Vec<u8> {
    let begin = b"PBG-PROFILE 2 ";
    let mut damaged = console.to_vec();
    let mut windows = console.windows(begin.len());
    if let Some(at) = windows.position(|bytes| bytes == begin) {
        damaged[at + begin.len() + 3] = b'?';
    }
    damaged
}

/// Checks that an image that is larger than MEM is refused before it boots.
fn refuse_large_image(context: &Context) -> Result<()> {
    context.make("build A=realtime").text()?;
    let image = format!("target/images/realtime-{ANY_ARCH}");
    let config = format!("target/kernel/{ANY_ARCH}-smp1/axconfig.toml");
    let with = |memory: &str| {
        let call = context.program("scripts/fits.sh");
        call.args(format!("{image} {config} {memory}"))
    };
    with("16M").text()?;
    let said = with("2M").failure()?; // the image begins there
    ensure!(said.lines().count() == 1, "expected one line");
    ensure!(
        said.starts_with("MEM=2M: the image ends ") && said.contains("allowed"),
        "expected where it ends"
    );
    Ok(())
}
