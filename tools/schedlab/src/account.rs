//! The account of a phase's CPU time. Every nanosecond of every CPU has an owner, from the start of
//! the phase, just before the first submission, to the last end.
//!
//! 1. The account closes: tasks + main + gc + rest + idle = CPUs × makespan, by
//!    [`Account::is_balanced`]. The apps check the same.
//! 2. Time outside the tasks (main, gc, the rest) lengthens turnarounds, and no policy is to blame.
//!    It may be [`LIMIT_ONE_CPU_PERCENT`] of CPUs × makespan on one CPU and
//!    [`LIMIT_MORE_CPUS_PERCENT`] on several, and on each CPU [`START_NS`] or [`START_REAL_NS`]
//!    more, in which a short run starts its tasks. A program that holds the handles of ended tasks
//!    on purpose is exempt. An idle CPU delays no task and does not count.

use sched_tests_results::{Account, RunLine, TOLERANCE_PERCENT};

/// The time that may be outside the tasks, in % of CPUs × makespan.
const LIMIT_ONE_CPU_PERCENT: u64 = 2;
const LIMIT_MORE_CPUS_PERCENT: u64 = 5;
/// The time that may be outside the tasks of each CPU in any case: 32 tasks are spawned in 100 to
/// 200 us. In real time the host preempts main and gc as well, for some time slices of its own.
const START_NS: u64 = 200_000;
const START_REAL_NS: u64 = 40_000_000;

/// Checks the account of a run (rules 1 and 2).
pub fn check(run: &RunLine) -> Result<(), String> {
    let account = Account::of(run).map_err(|error| error.to_string())?;
    check_sum(&account)?;
    if run.holds_handles {
        return Ok(());
    }
    check_outside(&account)
}

/// Checks that the account closes (rule 1).
fn check_sum(account: &Account) -> Result<(), String> {
    if account.is_balanced() {
        return Ok(());
    }
    let ms = |ns: u64| ns as f64 / 1e6;
    Err(format!(
        "the account of the CPU time does not close: tasks {:.3} + main {:.3} + gc {:.3} + rest {:.3} + idle {:.3} = {:.3} ms, expected {} x {:.3} ms within {TOLERANCE_PERCENT} %",
        ms(account.tasks_run_ns),
        ms(account.main_run_ns),
        ms(account.gc_run_ns),
        ms(account.rest_run_ns),
        ms(account.idle_ns),
        account.sum_ns() as f64 / 1e6,
        account.cpus,
        ms(account.makespan_ns),
    ))
}

/// Checks that the time outside the tasks is within the limit (rule 2).
fn check_outside(account: &Account) -> Result<(), String> {
    let limit = if account.cpus == 1 {
        LIMIT_ONE_CPU_PERCENT
    } else {
        LIMIT_MORE_CPUS_PERCENT
    };
    let allowed = account.available_ns() * u128::from(limit);
    let start = account.per_cpu_ns(START_NS, START_REAL_NS);
    if account.outside_ns() * 100 <= allowed + start * 100 {
        return Ok(());
    }
    let mut parts = [
        ("main", account.main_run_ns),
        ("gc", account.gc_run_ns),
        ("rest", account.rest_run_ns),
    ];
    parts.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
    let [most, ..] = parts.map(|(name, _)| name);
    let shares = parts.map(|(name, ns)| format!("{name} {:.2} %", account.percent(ns.into())));
    Err(format!(
        "{most} had the CPU: {:.2} % of the time is outside the tasks ({}), allowed are {limit} %",
        account.percent(account.outside_ns()),
        shares.join(", ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{parse, tests::sample};
    use crate::testing::assert_has;

    /// Returns a phase of 1 s. The parts are tasks, main, gc, rest and idle, in 100 µs.
    fn run(cpus: u32, parts: [u64; 5]) -> RunLine {
        let text = sample("realtime", "rr", &[("run", 1_000_000_000)]);
        let [tasks, main, gc, rest, idle] = parts.map(|part| Some(part * 100_000));
        let mut run = parse(&text).unwrap().last().clone();
        run.context.smp = cpus;
        run.tasks_run_ns = tasks;
        run.main_run_ns = main;
        run.gc_run_ns = gc;
        run.rest_run_ns = rest;
        run.idle_ns = idle;
        run
    }

    /// Each account, and a part of the error; empty if there is none.
    #[test]
    fn account_closes_within_one_percent_and_limits_the_time_outside_the_tasks() {
        for (cpus, parts, error) in [
            (1, [9_900, 50, 30, 20, 0], ""),
            (1, [9_900, 0, 0, 0, 0], ""),
            (1, [10_100, 0, 0, 0, 0], ""),
            (1, [10_101, 0, 0, 0, 0], "does not close"),
            (2, [12_000, 500, 300, 200, 7_000], ""),
            // Within one percent of both CPUs, and the time to end of one.
            (2, [10_000, 0, 0, 0, 9_701], ""),
            (2, [10_000, 0, 0, 0, 9_699], "expected 2 x 1000.000 ms"),
            (
                1,
                [8_000, 100, 50, 1, 0],
                "the account of the CPU time does not close: tasks 800.000 + main 10.000 + gc 5.000 + rest 0.100 + idle 0.000 = 815.100 ms, expected 1 x 1000.000 ms within 1 %",
            ),
            (1, [9_800, 50, 100, 50, 0], ""),
            (
                1,
                [9_797, 50, 103, 50, 0],
                "gc had the CPU: 2.03 % of the time is outside the tasks (gc 1.03 %, main 0.50 %, rest 0.50 %), allowed are 2 %",
            ),
            (1, [9_700, 0, 0, 300, 0], "rest had the CPU"),
            (2, [19_000, 1_000, 0, 0, 0], ""),
            (2, [18_995, 1_005, 0, 0, 0], "allowed are 5 %"),
            (1, [5_000, 0, 0, 0, 5_000], ""),
        ] {
            match check(&run(cpus, parts)) {
                Ok(()) => assert_eq!(error, "", "{parts:?}"),
                Err(found) => assert!(!error.is_empty() && found.contains(error), "{found}"),
            }
        }
    }

    #[test]
    fn short_run_may_start_its_tasks_and_in_real_time_be_preempted_by_the_host() {
        let mut moment = run(2, [10, 6, 0, 4, 0]);
        moment.makespan_ns = 1_000_000;
        assert_has(check(&moment).unwrap_err(), "rest");
        moment.timing = "real".into();
        assert_eq!(check(&moment), Ok(()));
    }

    #[test]
    fn program_that_holds_handles_is_exempt_and_its_account_must_close() {
        let mut held = run(1, [5_000, 0, 5_000, 0, 0]);
        held.holds_handles = true;
        assert_eq!(check(&held), Ok(()));
        held.gc_run_ns = Some(0);
        assert_has(check(&held).unwrap_err(), "does not close");
        held.gc_run_ns = None;
        let why = "expected an account of the CPU time, found no gc_run_ns";
        assert_eq!(check(&held).unwrap_err(), why);
    }
}
