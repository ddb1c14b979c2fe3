//! Programs whose tasks poll: a replay takes 1.05 times what was measured at most, or people
//! and SCHED-PBG are told that it is behind.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, pbg};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

const BEHIND: &str = "PBG was behind the measured run and followed its plan to the end: ";
const GIVEN_UP: &str = "PBG was behind the measured run and gave its plan up: ";

/// What is to be seen.
#[derive(Clone, Copy)]
enum Ends {
    Ahead,
    /// All of it is over before a plan could be given up.
    Behind,
    /// Which pays: it would be 2.6 times as long.
    GivenUp,
}

pub fn cases() -> Vec<Case> {
    [
        ("the replay is behind and says so", "sleep", Ends::Behind),
        (
            "a plan that is behind is given up",
            "sleep-gate",
            Ends::GivenUp,
        ),
    ]
    .map(|(what, program, ends)| (format!("qemu: a program that polls, {what}"), program, ends))
    .into_iter()
    .chain([
        (
            "qemu: a program that polls for long, the replay is ahead".into(),
            "sleep-long",
            Ends::Ahead,
        ),
        (
            "qemu: a program that polls by yields".into(),
            "yield",
            Ends::Behind,
        ),
    ])
    .map(|(name, program, ends)| {
        case(name, move |context| polls(context, program, ends)).builds(ANY_ARCH)
    })
    .collect()
}

fn polls(context: &Context, program: &str, ends: Ends) -> Result<()> {
    let said = pbg(context, "selftest")
        .env("SELFTEST", format!("poll-{program}"))
        .text()?;
    let results = Results::of(&said)?;
    results.passed("measure replay")?;
    let measured = results.phase("measure")?.avg_turnaround_ns;
    let replayed = results.phase("replay")?.avg_turnaround_ns;
    context.say(format_args!("{replayed} of {measured}"));
    let line = results.followed("boot")?;
    let found = (line.dropped, line.behind, line.slower);
    let says = |begin: &str| said.lines().any(|line| line.starts_with(begin));
    let why = line.first.as_ref().map(|first| first.why.as_str());
    match ends {
        Ends::Ahead => {
            ensure!(replayed * 20 <= measured * 21, "longer than 1.05 times");
            ensure!(
                found == (false, false, false),
                "dropped, behind, slower: {found:?}"
            );
            ensure!(!says("PBG was behind"), "people are told that it is behind");
        }
        Ends::Behind => {
            ensure!(
                found == (false, true, true),
                "dropped, behind, slower: {found:?}"
            );
            ensure!(says(BEHIND), "expected `{BEHIND}`");
        }
        Ends::GivenUp => {
            ensure!(replayed * 2 <= measured * 3, "longer than 1.5 times");
            ensure!(
                found == (true, true, true),
                "dropped, behind, slower: {found:?}"
            );
            ensure!(why == Some("turnaround"), "why: {why:?}");
            ensure!(says(GIVEN_UP), "expected `{GIVEN_UP}`");
        }
    }
    Ok(())
}
