//! Programs whose tasks poll. A replay takes at most 1.05 times as long as the measured run, or the
//! console and SCHED-PBG say that it is behind.

use anyhow::{Result, ensure};

use super::helpers::{ANY_ARCH, pbg};
use crate::{
    frame::{Case, Context, case},
    results::Results,
};

struct Expected {
    /// The beginning of the line for people.
    line: Option<&'static str>,
    /// `dropped`, `behind` and `slower` of SCHED-PBG.
    status: (bool, bool, bool),
    /// The limit of the replay, in percent of the measured run.
    limit: Option<u64>,
}

const AHEAD: Expected = Expected {
    line: None,
    status: (false, false, false),
    limit: Some(105),
};
/// The replay ends before its plan can be dropped.
const BEHIND: Expected = Expected {
    line: Some("PBG was behind the measured run and followed its plan to the end: "),
    status: (false, true, true),
    limit: None,
};
/// Dropping the plan pays. The replay would take 2.6 times as long.
const GIVEN_UP: Expected = Expected {
    line: Some("PBG was behind the measured run and gave its plan up: "),
    status: (true, true, true),
    limit: Some(150),
};

pub fn cases() -> Vec<Case<'static>> {
    let cases = [
        (", the replay is behind and says so", "sleep", BEHIND),
        (
            ", a plan that is behind is given up",
            "sleep-gate",
            GIVEN_UP,
        ),
        (" for long, the replay is ahead", "sleep-long", AHEAD),
        (" by yields", "yield", BEHIND),
    ];
    let cases = cases.map(|(name, program, expected)| {
        let name = format!("qemu: a program that polls{name}");
        case(name, move |context| run_poller(context, program, &expected)).builds(ANY_ARCH)
    });
    cases.into()
}

fn run_poller(context: &Context, program: &str, expected: &Expected) -> Result<()> {
    let call = pbg(context, "selftest");
    let said = call.args(format!("T=poll-{program}")).text()?;
    let results = Results::of(&said)?;
    results.passed("measure replay")?;
    let measured = results.phase("measure")?.avg_turnaround_ns;
    let replayed = results.phase("replay")?.avg_turnaround_ns;
    context.say(format_args!("{replayed} of {measured}"));
    if let Some(limit) = expected.limit {
        ensure!(replayed * 100 <= measured * limit, "above {limit} %");
    }
    let status = results.followed("boot")?;
    let found = (status.dropped, status.behind, status.slower);
    ensure!(
        found == expected.status,
        "dropped, behind, slower: {found:?}"
    );
    if status.dropped {
        let why = status.first.as_ref().map(|first| first.why.as_str());
        ensure!(why == Some("turnaround"), "why: {why:?}");
    }
    let line = said.lines().find(|line| line.starts_with("PBG was behind"));
    let is_expected = match (line, expected.line) {
        (Some(line), Some(begin)) => line.starts_with(begin),
        (line, begin) => line == begin,
    };
    ensure!(is_expected, "expected {:?}, found {line:?}", expected.line);
    Ok(())
}
