//! Boots of random tasks: a short soak passes, and planted faults are found.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, expect_status};
use crate::frame::{Call, Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    let passing = case("soak: random tasks pass, on 4 CPUs", run_two_policies);
    let faulty = case("soak: planted faults are found and explained", plant_faults);
    [passing, faulty]
        .map(|case| case.boots("soak", ANY_ARCH))
        .into()
}

fn soak<'a>(context: &'a Context, policies: &str, more: &str) -> Call<'a> {
    let call = context.make(format!("soak SMP=4 ARCH={ANY_ARCH} FEATURES={policies}"));
    call.args(format!("LAB='--boots 1 --seed 7{more}'"))
}

fn run_two_policies(context: &Context) -> Result<()> {
    let said = soak(context, "sched_rr,sched_pbg", "").text()?;
    let rows: Vec<Vec<_>> = said
        .lines()
        .map(|line| line.split_whitespace().collect())
        .collect();
    for policy in ["rr", "pbg"] {
        let row = rows.iter().find(|row| row.starts_with(&[ANY_ARCH, policy]));
        let row = row.with_context(|| format!("expected a row of {policy}"))?;
        ensure!(row.ends_with(&["1", "passed"]), "{policy} has not passed");
        let steps: u64 = row[2].parse()?;
        ensure!(steps > 1_000, "{policy}: {steps} steps are few");
    }
    context.counts(2);
    Ok(())
}

/// The planted faults, and parts of their reports.
const FAULTS: [(&str, &[&str]); 3] = [
    (
        "stall",
        &[
            "soak: task 1000002 is ready and gets no CPU for 20", // 2,000 ms and some
            "seed 7",
            "CPU 3: runs task 1000001; its last tick",
            "the layer: CPU 0: ",
            "0b1000",
            "soak: once more: make soak LAB='--boots 1 --seed 7 --plant stall --bound 2'",
            "1 FAILED, 0 passed",
        ],
    ),
    ("outside", &["runs where its affinity forbids; seed 7"]),
    ("lock", &["has met another within a lock; seed 7"]),
];

fn plant_faults(context: &Context) -> Result<()> {
    for (fault, parts) in FAULTS {
        let plant = format!(" --plant {fault} --bound 2");
        let output = soak(context, "sched_rr", &plant).output()?;
        expect_status(&output, 2)?; // make's status
        for part in parts {
            ensure!(output.text.contains(part), "{fault}: expected `{part}`");
        }
    }
    context.counts(FAULTS.len());
    Ok(())
}
