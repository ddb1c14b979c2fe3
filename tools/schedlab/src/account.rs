//! The account of a phase's CPU time: every nanosecond of every CPU between the
//! start of the phase, just before the first submission, and the last end has an owner.
//!
//! 1. It closes: tasks + main + gc + rest + idle = CPUs × makespan, as
//!    [`Account::closes`] has it. The apps judge themselves by the same.
//! 2. What runs and is no task of the workload (main, gc, the rest) makes turnarounds
//!    longer than the policy has them: at most [`LIMIT_ONE_CPU_PERCENT`] of CPUs ×
//!    makespan on one CPU, [`LIMIT_MORE_CPUS_PERCENT`] on several, and [`START_NS`] or
//!    [`START_REAL_NS`] for each CPU, so that a short run may start its tasks. A program that
//!    holds the handles of ended tasks, on purpose, is let through. An idle CPU delays
//!    no task and does not count.

use sched_tests_results::{Account, RunLine, TOLERANCE_PERCENT};

/// How much may be outside the tasks, in % of CPUs × makespan.
const LIMIT_ONE_CPU_PERCENT: u64 = 2;
const LIMIT_MORE_CPUS_PERCENT: u64 = 5;
/// What may be outside in any case, for each CPU: 32 tasks are spawned in 100 to 200 us. In
/// real time the host takes the CPU away from main and gc, too, for some time slices of its own.
const START_NS: u64 = 200_000;
const START_REAL_NS: u64 = 40_000_000;

/// Whether this phase keeps rules 1 and 2.
pub fn check(run: &RunLine) -> Result<(), String> {
    let account = Account::of(run).map_err(|error| error.to_string())?;
    closes(&account)?;
    if run.holds_handles {
        return Ok(());
    }
    is_the_tasks_own(&account)
}

/// Rule 1: the account closes.
fn closes(account: &Account) -> Result<(), String> {
    if account.closes() {
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

/// Rule 2: not more than the limit is outside the tasks.
fn is_the_tasks_own(account: &Account) -> Result<(), String> {
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
    use crate::testing::{assert_begins, assert_ends, assert_has};

    /// A phase of 1 s with so many tenths of a millisecond for each: tasks, main, gc, rest, idle.
    fn run(cpus: u32, [tasks, main, gc, rest, idle]: [u64; 5]) -> RunLine {
        let mut run = parse(&sample("realtime", "rr", &[("run", 1_000_000_000)]))
            .unwrap()
            .last()
            .clone();
        run.context.smp = cpus;
        run.tasks_run_ns = Some(tasks * 100_000);
        run.main_run_ns = Some(main * 100_000);
        run.gc_run_ns = Some(gc * 100_000);
        run.rest_run_ns = Some(rest * 100_000);
        run.idle_ns = Some(idle * 100_000);
        run
    }

    fn fails(run: &RunLine) -> String {
        check(run).unwrap_err()
    }

    #[test]
    fn the_account_closes_within_one_percent() {
        for (cpus, parts) in [
            (1, [9_900, 50, 30, 20, 0]),
            (1, [9_900, 0, 0, 0, 0]),
            (1, [10_100, 0, 0, 0, 0]),
            (2, [12_000, 500, 300, 200, 7_000]),
        ] {
            assert_eq!(check(&run(cpus, parts)), Ok(()), "{parts:?}");
        }
        assert_eq!(
            fails(&run(1, [8_000, 100, 50, 1, 0])),
            "the account of the CPU time does not close: tasks 800.000 + main 10.000 + gc 5.000 + rest 0.100 + idle 0.000 = 815.100 ms, expected 1 x 1000.000 ms within 1 %"
        );
        assert_has(fails(&run(1, [10_101, 0, 0, 0, 0])), "does not close");
        // And what is booked while it ends, of another CPU.
        assert_eq!(check(&run(2, [10_000, 0, 0, 0, 9_701])), Ok(()));
        assert_has(
            fails(&run(2, [10_000, 0, 0, 0, 9_699])),
            "expected 2 x 1000.000 ms",
        );
    }

    #[test]
    fn time_outside_the_tasks_is_limited_and_said_whose_it_is() {
        assert_eq!(check(&run(1, [9_800, 50, 100, 50, 0])), Ok(()));
        assert_eq!(
            fails(&run(1, [9_797, 50, 103, 50, 0])),
            "gc had the CPU: 2.03 % of the time is outside the tasks (gc 1.03 %, main 0.50 %, rest 0.50 %), allowed are 2 %"
        );
        assert_begins(fails(&run(1, [9_700, 0, 0, 300, 0])), "rest had the CPU");
        // Of two CPUs, as a share of both.
        assert_eq!(check(&run(2, [19_000, 1_000, 0, 0, 0])), Ok(()));
        assert_ends(fails(&run(2, [18_995, 1_005, 0, 0, 0])), "allowed are 5 %");
        // A run of a moment may start its tasks; the host may come between in real time.
        let mut moment = run(2, [10, 6, 0, 4, 0]);
        moment.makespan_ns = 1_000_000;
        assert_has(fails(&moment), "rest");
        moment.timing = "real".into();
        assert_eq!(check(&moment), Ok(()));
        // An idle CPU is in nobody's way.
        assert_eq!(check(&run(1, [5_000, 0, 0, 0, 5_000])), Ok(()));
    }

    #[test]
    fn a_program_that_holds_handles_is_let_through_and_its_account_must_close() {
        let mut held = run(1, [5_000, 0, 5_000, 0, 0]);
        held.holds_handles = true;
        assert_eq!(check(&held), Ok(()));
        let account = Account::of(&held).unwrap();
        assert_eq!(account.percent(account.outside_ns()), 50.0);
        held.gc_run_ns = Some(0);
        assert_has(fails(&held), "does not close");
    }

    #[test]
    fn a_line_without_an_account_says_so() {
        let mut old = run(1, [10_000, 0, 0, 0, 0]);
        old.gc_run_ns = None;
        assert_eq!(
            fails(&old),
            "expected an account of the CPU time, found no gc_run_ns"
        );
    }
}
