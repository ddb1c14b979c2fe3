//! PBG as a guest of a scheduler that cannot be replaced (`ARCEOS=0.8`).

use anyhow::{Context as _, Result, ensure};

use super::helpers::results;
use crate::frame::{Call, Case, Context, case};

/// The only architecture of that line.
const ARCH: &str = "riscv64";

/// Returns the case on the host.
pub fn rules() -> Case<'static> {
    case("host: the replay of a guest keeps its rules", test)
}

/// Returns the cases that boot.
pub fn boots() -> [Case<'static>; 2] {
    let here =
        |name, check: fn(&Context) -> Result<()>| case(name, check).builds("arceos-0.8 riscv64");
    [
        here(
            "qemu: a guest replays ahead of the policies of ax-task 0.8",
            beat,
        ),
        here("qemu: a guest has the limits that its page states", limit),
    ]
}

fn make<'a>(context: &'a Context, words: &str) -> Call<'a> {
    context.make(format!("run ARCEOS=0.8 ARCH={ARCH} {words}"))
}

fn test(context: &Context) -> Result<()> {
    let cargo = context.program(&context.project.cargo).within("arceos-0.8");
    let said = cargo.args("test --locked --package pbg-guest").text()?;
    ensure!(said.contains("rule_7_"), "no tests of the rules");
    Ok(())
}

/// Measured and replayed, a program is faster than under FIFO, which has the cheapest switch. A second boot prints the
/// same lines.
fn beat(context: &Context) -> Result<()> {
    let run = |policy| {
        make(
            context,
            &format!("A=realtime SCALE=100 FEATURES={policy} PROFILE_OUT="),
        )
    };
    let fifo = results(run("stock_fifo"))?;
    fifo.passed("run")?;
    let guest = results(run("sched_pbg"))?;
    guest.passed("measure replay")?;
    let [fifo, replay] =
        [fifo.phase("run")?, guest.phase("replay")?].map(|run| run.avg_turnaround_ns);
    context.say(format_args!("stock_fifo {fifo}, guest {replay}"));
    ensure!(replay < fifo, "the replay is as slow as FIFO");
    let again = results(run("sched_pbg"))?;
    ensure!(
        again.phase("replay")?.avg_turnaround_ns == replay,
        "two boots differ"
    );
    Ok(())
}

/// The program checks its findings itself.
fn limit(context: &Context) -> Result<()> {
    let said = make(context, "A=arceos-0.8/limits").text()?;
    let mut found = said.lines().filter(|line| line.contains("LIMITS "));
    let last = found.next_back().context("no findings")?;
    ensure!(last.contains("dropped: true"), "{last}");
    Ok(())
}
