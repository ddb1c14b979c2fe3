//! A recording that is simulated under several policies, compared with QEMU.

use anyhow::{Context as _, Result, ensure};

use super::helpers::ANY_ARCH;
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    let name = "qemu: make simulate says what QEMU measures, to 1 %";
    vec![case(name, compare_with_qemu).builds(ANY_ARCH)]
}

/// Compares averages that do not depend on the phase of the tick. A second call records nothing,
/// boots nothing, and prints the same bytes.
fn compare_with_qemu(context: &Context) -> Result<()> {
    let call = || {
        let call = context.make("simulate A=realtime SCALE=10 LAB=--check CPUS=1,2");
        call.args("FEATURES=sched_fifo,sched_rr,sched_pbg").text()
    };
    let text = call()?;
    let (tables, check) = text
        .split_once("Average turnaround, ms")
        .context("expected the figures of QEMU")?;
    ensure!(tables.contains("realtime on x86_64, 2 CPUs"), "{tables}");
    let rows: Vec<Vec<_>> = check
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for policy in ["fifo", "rr", "pbg"] {
        let row = rows.iter().find(|row| row.first() == Some(&policy));
        let row = row.with_context(|| format!("expected a row for {policy}"))?;
        let difference: f64 = row.get(5).context("expected a difference")?.parse()?;
        context.say(format_args!("{policy}: {difference} %"));
        ensure!(difference.abs() <= 1.0, "{policy}: {difference} %");
    }
    let again = call()?;
    ensure!(!again.contains("recording realtime"), "recorded again");
    let printed = |text: &str| {
        let (_, rest) = text.split_once("turnaround in ms")?;
        Some(rest.to_owned())
    };
    ensure!(printed(&again) == printed(&text), "another text:\n{again}");
    Ok(())
}
