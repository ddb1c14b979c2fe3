//! The cost of coroutines, compared with that of threads.

use anyhow::{Context as _, Result, ensure};

use super::helpers::{ANY_ARCH, results};
use crate::frame::{Case, Context, case};

pub fn cases() -> Vec<Case<'static>> {
    let name = "qemu: coroutines switch, wake and take memory as promised";
    vec![case(name, check_limits).boots("coop-cost", ANY_ARCH)]
}

/// Checks that every figure is there, and that those with a limit keep it.
fn check_limits(context: &Context) -> Result<()> {
    let call = context.make("run A=apps/coop/coop-cost FEATURES=stock_fifo SCALE=64");
    let found = results(call.args(format!("ARCH={ANY_ARCH}")))?;
    found.passed("run")?;
    for figure in "connections left memory switch spread spawn batch wake".split(' ') {
        let line = found.coops.iter().find(|line| line.figure == figure);
        let line = line.with_context(|| format!("no figure `{figure}`"))?;
        ensure!(line.pass && line.coroutines >= 0.0, "{line:?}");
    }
    Ok(())
}
