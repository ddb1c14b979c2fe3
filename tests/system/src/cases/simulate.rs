//! A recording under every policy, in virtual time, beside QEMU.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, folder};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case> {
    let name = "qemu: make simulate says what QEMU measures, to 1 %";
    vec![case(name, near_qemu).builds(ANY_ARCH)]
}

/// Three policies whose averages do not hang on the phase of the tick. The same call once more
/// records nothing, boots nothing, and prints the same bytes.
fn near_qemu(context: &Context) -> Result<()> {
    const POLICIES: [&str; 3] = ["fifo", "rr", "pbg"];
    let call = || {
        let variables = ["SCALE=10", "LAB=--check", "CPUS=1,2"];
        let policies = format!(
            "FEATURES={}",
            POLICIES.map(|name| format!("sched_{name}")).join(",")
        );
        let app = folder("realtime");
        context
            .make(["simulate"])
            .args(variables)
            .args([app, policies])
            .text()
    };
    let text = call()?;
    let (tables, check) = text
        .split_once("Average turnaround, ms")
        .context("expected the figures of QEMU")?;
    ensure!(tables.contains("realtime on x86_64, 2 CPUs"), "{tables}");
    for policy in POLICIES {
        let row: Vec<&str> = check
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .find(|words| words.first() == Some(&policy))
            .with_context(|| format!("expected a row for {policy}"))?;
        let difference: f64 = row.get(5).context("expected a difference")?.parse()?;
        context.say(format_args!("{policy}: {difference} %"));
        ensure!(difference.abs() <= 1.0, "{policy}: {difference} %");
    }
    let again = call()?;
    ensure!(!again.contains("recording realtime"), "recorded again");
    let printed = |text: &str| {
        text.split_once("turnaround in ms")
            .map(|(_, rest)| rest.to_owned())
    };
    ensure!(printed(&again) == printed(&text), "another text:\n{again}");
    Ok(())
}
