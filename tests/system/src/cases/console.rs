//! Runs that fail: make says why in one line.

use std::{fs, path::Path};

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, exits, fails_with, pbg, selftest};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    let selftests = [
        (
            "make: run fails if the guest panics",
            "panic",
            "panicked at",
        ),
        ("make: run fails if a check fails", "fail", "\"pass\":false"),
        (
            "make: run fails if the guest hangs",
            "hang",
            "within 5 s; TIMEOUT=",
        ),
    ];
    let selftests = selftests.map(|(name, what, text)| {
        let limit: &[&str] = if what == "hang" { &["TIMEOUT=5"] } else { &[] };
        case(name, move |context| {
            fails_with(selftest(context, what).args(limit), text)
        })
        .boots(&format!("selftest {what}"), ANY_ARCH)
    });
    let others = [
        case(
            "make: run fails if a profile arrives damaged",
            damaged_console,
        )
        .boots("realtime", ANY_ARCH),
        case("make: an image that does not fit into MEM", fits).builds(ANY_ARCH),
    ];
    others.into_iter().chain(selftests).collect()
}

/// One line, and the run fails.
fn damaged_console(context: &Context) -> Result<()> {
    pbg(context, "realtime").args(["SCALE=100"]).text()?;
    let console = fs::read(format!(
        "target/logs/realtime-{ANY_ARCH}-sched_pbg-scale100.log"
    ))?;
    let damaged = context.file("damaged.console")?;
    fs::write(&damaged, damage(&console))?;
    let image = context.file("damaged-console")?; // which names its log
    fs::write(&image, "")?;
    let never = context.file("never.pbg")?;
    let project = context.project;
    let save = [
        &[&*project.cargo, "run"],
        &*project
            .cargo_where
            .iter()
            .map(|word| &**word)
            .collect::<Vec<_>>(),
    ]
    .concat();
    let save = format!(
        "{} --quiet --profile tool --package pbg-save --",
        save.join(" ")
    );
    let output = context
        .program("scripts/qemu-run.sh")
        .args([&image, "10", "cat", &damaged])
        .env("PROFILE_OUT", &never)
        .env("NEXT", "")
        .env("PBG_SAVE", save)
        .output()?;
    exits(&output, 1)?;
    let last = output.text.lines().last().unwrap_or_default();
    ensure!(
        last.starts_with("run: no profile saved: ")
            && last.contains("the first missing is number 2"),
        "expected what is missing, found `{last}`"
    );
    ensure!(!Path::new(&never).exists(), "a profile was saved");
    Ok(())
}

/// A byte of the profile's second line is another.
fn damage(console: &[u8]) -> Vec<u8> {
    let begin = b"PBG-PROFILE 2 ";
    let mut damaged = console.to_vec();
    if let Some(at) = console
        .windows(begin.len())
        .position(|bytes| bytes == begin)
    {
        damaged[at + begin.len() + 3] = b'?';
    }
    damaged
}

/// An image that is larger than MEM is refused before it boots.
fn fits(context: &Context) -> Result<()> {
    context.make(["build", "A=realtime"]).text()?;
    let kernel = format!("target/kernel/{ANY_ARCH}-smp1");
    let image = format!("target/images/realtime-{ANY_ARCH}");
    let with = |memory: &str| {
        let config = format!("{kernel}/axconfig.toml");
        context
            .program("scripts/fits.sh")
            .args([&image, &config, memory])
    };
    with("16M").text()?;
    let said = with("2M").failure()?; // it begins there
    ensure!(said.lines().count() == 1, "expected one line");
    ensure!(
        said.starts_with("MEM=2M: the image ends ") && said.contains("allowed"),
        "expected where it ends"
    );
    Ok(())
}
