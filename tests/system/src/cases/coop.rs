//! What coroutines cost beside threads.

use anyhow::{Context as _, Result, ensure};

use super::helpers::ANY_ARCH;
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

pub fn cases() -> Vec<Case> {
    vec![
        case(
            "qemu: coroutines switch, wake and take memory as promised",
            keeps_limits,
        )
        .boots("coop-cost", ANY_ARCH),
    ]
}

/// Every figure is there, and those with a limit keep it.
fn keeps_limits(context: &Context) -> Result<()> {
    let call = context
        .make([
            "run",
            "A=apps/coop/coop-cost",
            "FEATURES=stock_fifo",
            "SCALE=64",
        ])
        .args([format!("ARCH={ANY_ARCH}")]);
    let found = Results::of(&call.text()?)?;
    found.passed("run")?;
    let figures = [
        "connections",
        "left",
        "memory",
        "switch",
        "spread",
        "spawn",
        "batch",
        "wake",
    ];
    for figure in figures {
        let line = found.coops.iter().find(|line| line.figure == figure);
        let line = line.with_context(|| format!("no figure `{figure}`"))?;
        ensure!(line.pass && line.coroutines >= 0.0, "{line:?}");
    }
    Ok(())
}
