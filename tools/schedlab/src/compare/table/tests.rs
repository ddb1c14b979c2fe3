use sched_tests_results::{PbgLine, ResultLine, TickPhase};

use super::*;
use crate::record::{
    parse_boots,
    tests::{sample, sample_at},
};

/// Returns the results of a cell on x86_64 whose boots printed these lines.
fn results_of(app: &str, policy: &str, boots: &[String]) -> Results {
    Results {
        cell: Cell::new("x86_64", app, policy),
        outcomes: parse_boots(&boots.join("\n")).unwrap(),
        sources: None,
    }
}

/// Returns the results of one boot with these phases and their averages in µs.
fn results(app: &str, policy: &str, phases: &[(&str, u64)]) -> Results {
    let phases: Vec<_> = phases
        .iter()
        .map(|(name, us)| (*name, us * 1_000))
        .collect();
    results_of(app, policy, &[sample(app, &short(policy), &phases)])
}

/// Returns the results of boots at as many tick phases as there are averages, in ms.
fn results_at(policy: &str, averages: &[u64]) -> Results {
    let boots = TickPhase::evenly(averages.len() as u16).zip(averages);
    let boot = |(at, ms): (TickPhase, &u64)| {
        sample_at(
            at.into(),
            "realtime",
            &short(policy),
            &[("run", ms * 1_000_000)],
        )
    };
    results_of("realtime", policy, &boots.map(boot).collect::<Vec<_>>())
}

/// Returns the results of boots in real time on four CPUs with these averages in ms. A boot of
/// PBG above 500 ms dropped its plan.
fn results_in_real_time(policy: &str, averages: &[u64]) -> Results {
    let is_pbg = policy == "sched_pbg";
    let boot = |ms: &u64| {
        let phase = if is_pbg { "replay" } else { "run" };
        let lines = sample("realtime", &short(policy), &[(phase, ms * 1_000_000)])
            .replace("icount", REAL)
            .replace(r#""smp":1"#, r#""smp":4"#);
        let followed = PbgLine::Followed(sched_tests_results::Followed {
            planned: 2,
            matched: 2,
            dropped: *ms > 500,
            ..Default::default()
        });
        let followed = is_pbg.then(|| followed.to_line() + "\n");
        lines + &followed.unwrap_or_default()
    };
    results_of(
        "realtime",
        policy,
        &averages.iter().map(boot).collect::<Vec<_>>(),
    )
}

/// Returns the tables of the results, with a row for CFS in each.
fn with_cfs(all: &[Results], is_long: bool) -> Vec<Table> {
    let mut policies = distinct(all.iter().map(|results| results.cell.policy.clone()));
    policies.insert(1, "sched_cfs".into());
    tables(all, &distinct(policies), is_long)
}

/// Returns the table of round robin, PBG that measures and replays, and stock round robin.
pub fn realtime(is_long: bool) -> Table {
    let pbg = [("measure", 1_500), ("replay", 2_000)];
    let all = [
        results("realtime", "sched_rr", &[("run", 3_000)]),
        results("realtime", "sched_pbg", &pbg),
        results("realtime", "stock_rr", &[("run", 3_100)]),
    ];
    with_cfs(&all, is_long).remove(0)
}

/// Returns a table over four tick phases in which CFS and SJF overlap.
pub fn over_tick_phases() -> Table {
    let all = [
        results_at("sched_rr", &[400, 401, 399, 400]),
        results_at("sched_cfs", &[200, 210, 205, 205]),
        results_at("sched_sjf", &[208, 212, 210, 210]),
        results_at("sched_mlfq", &[300, 303, 297, 300]),
    ];
    with_cfs(&all, false).remove(0)
}

/// Returns a table over five boots in real time, one of which the host disturbed. SJF and MLFQ
/// overlap by their quartiles.
pub fn over_boots() -> Table {
    let all = [
        results_in_real_time("sched_rr", &[400, 401, 399, 430, 400]),
        results_in_real_time("sched_sjf", &[300, 303, 297, 300, 398]),
        results_in_real_time("sched_mlfq", &[302, 303, 301, 302, 400]),
        results_in_real_time("sched_pbg", &[200, 210, 900, 205, 190]),
    ];
    with_cfs(&all, false).remove(0)
}

/// Returns a table of round robin and PBG with `count` tasks, the nth of which takes n² ms.
pub fn many_tasks(count: u64) -> Table {
    let all = ["sched_rr", "sched_pbg"].map(|policy| {
        let mut results = results("batch", policy, &[("run", 1_000)]);
        let phase = &mut results.outcomes[0].phases[0];
        let task = |n: u64| TaskLine {
            task: format!("compress{n}"),
            turnaround_ns: n * n * 1_000_000,
            ..phase.tasks[0].clone()
        };
        phase.tasks = (1..=count).map(task).collect();
        results
    });
    with_cfs(&all, false).remove(0)
}

/// Returns the tables of the yield app, which may measure the cost of a yield itself.
pub fn yields(ns_per_yield: Option<f64>) -> Vec<Table> {
    let mut all = ["sched_rr", "sched_fifo"].map(|policy| results("yield", policy, &[("run", 20)]));
    all[0].outcomes[0].phases[0].run.ns_per_yield = ns_per_yield;
    with_cfs(&all, false)
}

/// Returns tables by name, each name for what they show.
pub fn samples() -> Vec<(&'static str, Vec<Table>)> {
    let unequal = |groups: Option<u64>| {
        let mut rr = results("unequal", "sched_rr", &[("run", 2_000)]);
        for task in &mut rr.outcomes[0].phases[0].tasks {
            task.groups = groups;
        }
        with_cfs(&[rr], false)
    };
    let fewer_phases = [
        results_at("sched_rr", &[100]),
        results_at("sched_cfs", &[100, 200]),
    ];
    let fewer_boots = [1, 5].map(|boots| results_in_real_time("sched_rr", &vec![100; boots]));
    let [one, mut five] = fewer_boots;
    five.cell.policy = "sched_fifo".into();
    let mut scaled = results("realtime", "sched_fifo", &[("run", 1)]);
    scaled.outcomes[0].phases[0].run.scale = 10;
    let mut other_sources = results("realtime", "sched_fifo", &[("run", 1)]);
    other_sources.sources = Some(Inputs::default());
    let mixed = [
        results("realtime", "sched_rr", &[("run", 1)]),
        scaled,
        other_sources,
    ];
    let not_measured = [results("realtime", "sched_pbg", &[("run", 1)])];
    vec![
        ("one-boot", vec![realtime(false)]),
        ("long", vec![realtime(true)]),
        ("tick-phases", vec![over_tick_phases()]),
        ("real-time", vec![over_boots()]),
        ("both-times", vec![over_boots(), realtime(false)]),
        ("fewer-tick-phases", with_cfs(&fewer_phases, false)),
        ("fewer-boots", with_cfs(&[one, five], false)),
        ("not-measured", with_cfs(&not_measured, true)),
        ("settings-and-sources", with_cfs(&mixed, false)),
        ("yield-with-loop", yields(None)),
        ("yield", yields(Some(162.5))),
        ("unequal", unequal(None)),
        ("unequal-groups", unequal(Some(7))),
    ]
}
