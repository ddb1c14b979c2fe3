//! The choice of a policy.
//!
//! 1. Each figure is an interval: its range over the phases of the tick, widened by the error of
//!    the model. The error is the largest known of the policy, or the distance of the model from
//!    what QEMU measured of this program. Policies whose intervals overlap are equal.
//! 2. Among policies that are equal to the best, the one that switches least is taken. If others
//!    switch no more than a tenth more, the first of them in the order of tables is taken. If that
//!    is a plan, and another plan's replay on QEMU was shorter by a hundredth, the other is taken.
//! 3. A plan that was behind or given up, on QEMU or in the model, is not taken.
//! 4. How often tasks poll depends on the order. Where tasks poll, a plan is judged by its replay
//!    on QEMU, and is not taken without one.
//! 5. A plan is fragile, and not taken, if it is better on the recording alone. Its mean must be
//!    lower than that of the best policy without a plan even if every task's time differs by up to
//!    [`SPREAD_PERCENT`].
//!
//! Policies are compared by the average turnaround. If some tasks run until they are stopped, the
//! average is that of the other tasks. If all do, policies are compared by the largest share of the
//! CPUs that one of them gets.

use crate::spread::{Spread, letters};

/// The error of a recording, in %, at which a plan must still be better.
pub const SPREAD_PERCENT: u32 = 25;

/// A policy and its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub name: String,
    /// Its feature for make.
    pub feature: String,
    /// The figure that is compared; less is better.
    pub figure: Spread,
    /// The error of the model, in % of the figure.
    pub error_percent: f64,
    pub worst_slowdown: f64,
    pub jain: f64,
    pub switches: f64,
    /// True if the policy follows a plan.
    pub is_planned: bool,
    pub preempts: bool,
    /// The average turnaround of its replay on QEMU, in ms.
    pub on_qemu: Option<f64>,
    /// The reason for which it is not taken.
    pub is_out: Option<Out>,
}

/// A reason for which a policy is not taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Out {
    /// Its replay on QEMU took `times` as long as the measured run, or was given up.
    BehindOnQemu { times: f64, given_up: bool },
    /// Its replay in the model was behind, or given up.
    BehindInModel { given_up: bool },
    /// Tasks poll, and there was no replay on QEMU.
    Polling,
    /// If times differ, it is no better than the best without a plan.
    Fragile,
}

/// The result of a plan's replay.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replay {
    /// Average turnaround over the measured one; 0 in the model, where none was measured.
    pub times: f64,
    pub behind: bool,
    pub dropped: bool,
}

/// Returns the reason for which a plan is not taken, before policies are compared (rules 3 and 4).
pub fn refused(on_qemu: Option<Replay>, in_model: Option<Replay>, polls: bool) -> Option<Out> {
    match (on_qemu, in_model) {
        (Some(replay), _) if replay.behind || replay.dropped => Some(Out::BehindOnQemu {
            times: replay.times,
            given_up: replay.dropped,
        }),
        (None, _) if polls => Some(Out::Polling),
        (_, Some(replay)) if replay.behind || replay.dropped => Some(Out::BehindInModel {
            given_up: replay.dropped,
        }),
        _ => None,
    }
}

/// The policy that is taken, and others, as indices of rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub taken: usize,
    /// The others that are equal to the best, in their order.
    pub equals: Vec<usize>,
    /// The best of the worse ones that may be taken.
    pub next: Option<usize>,
}

/// Chooses by rules 1 and 2. Returns `None` if no policy may be taken.
pub fn choose(rows: &[Row]) -> Option<Choice> {
    let mut good: Vec<usize> = (0..rows.len())
        .filter(|&i| rows[i].is_out.is_none())
        .collect();
    // A stable sort: the order of tables where figures are the same.
    good.sort_by(|&a, &b| rows[a].figure.mean.total_cmp(&rows[b].figure.mean));
    let best = *good.first()?;
    let is_equal = |i: &usize| known(&rows[*i]).overlaps(&known(&rows[best]));
    let mut equals: Vec<usize> = good.iter().copied().filter(is_equal).collect();
    equals.sort_unstable();
    let least = equals
        .iter()
        .map(|&i| rows[i].switches)
        .fold(f64::INFINITY, f64::min);
    let first = equals
        .iter()
        .copied()
        .find(|&i| rows[i].switches <= least * 1.1)?;
    let taken = shortest_replay(rows, &equals, first);
    equals.retain(|&i| i != taken);
    let next = good.iter().copied().find(|i| !is_equal(i));
    Some(Choice {
        taken,
        equals,
        next,
    })
}

/// Returns the plan with the shortest replay on QEMU (the end of rule 2).
fn shortest_replay(rows: &[Row], equals: &[usize], first: usize) -> usize {
    let Some(its) = rows[first].on_qemu else {
        return first;
    };
    let others = equals.iter().filter_map(|&i| Some((i, rows[i].on_qemu?)));
    let shorter = others.filter(|(_, ms)| *ms < 0.99 * its);
    shorter
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map_or(first, |(i, _)| i)
}

/// Returns true if a plan is fragile, by averages over the same seeds (rule 5).
pub fn is_fragile(planned: &[f64], other: &[f64]) -> bool {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    mean(planned) >= mean(other)
}

/// Returns the best policy without a plan that may be taken.
pub fn best_without_plan(rows: &[Row]) -> Option<usize> {
    let is_meant = |i: &usize| !rows[*i].is_planned && rows[*i].is_out.is_none();
    let all = (0..rows.len()).filter(is_meant);
    all.min_by(|&a, &b| rows[a].figure.mean.total_cmp(&rows[b].figure.mean))
}

/// Returns a letter for each group of equal rows.
pub fn shared(rows: &[Row]) -> Vec<String> {
    letters(&rows.iter().map(|row| Some(known(row))).collect::<Vec<_>>())
}

/// Returns the interval of the figure.
fn known(row: &Row) -> Spread {
    let part = row.error_percent / 100.0;
    Spread {
        least: row.figure.least * (1.0 - part),
        most: row.figure.most * (1.0 + part),
        ..row.figure
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a policy whose figure is the same at all phases, with an error of 1 %.
    pub fn row(name: &str, figure: f64, switches: f64) -> Row {
        Row {
            name: name.to_owned(),
            feature: format!("sched_{name}"),
            figure: Spread::of(&[figure]).unwrap(),
            error_percent: 1.0,
            worst_slowdown: 2.0,
            jain: 0.5,
            switches,
            is_planned: name.starts_with("plan"),
            preempts: true,
            on_qemu: None,
            is_out: None,
        }
    }

    fn chosen(rows: &[Row]) -> (&str, Vec<&str>, Option<&str>) {
        let choice = choose(rows).unwrap();
        let name = |i: usize| rows[i].name.as_str();
        (
            name(choice.taken),
            choice.equals.into_iter().map(name).collect(),
            choice.next.map(name),
        )
    }

    #[test]
    fn rule_1_policies_with_overlapping_intervals_are_equal() {
        let mut rows = [row("first", 102.1, 5.0), row("second", 100.0, 5.0)];
        assert_eq!(chosen(&rows), ("second", vec![], Some("first")));
        rows[0].figure.mean = 101.9;
        rows[0].figure.least = 101.9;
        rows[0].figure.most = 101.9;
        assert_eq!(chosen(&rows), ("first", vec!["second"], None));
        assert_eq!(shared(&rows), ["a", "a"]);
        rows[0] = row("first", 110.0, 5.0);
        assert_eq!(shared(&rows), ["", ""]);
        // A large error, and a figure that depends on the phase of the tick.
        rows[0].error_percent = 10.0;
        assert_eq!(chosen(&rows).0, "first");
        rows[0] = row("first", 110.0, 5.0);
        rows[1].figure = Spread::of(&[90.0, 110.0]).unwrap();
        assert_eq!(chosen(&rows).0, "first");
    }

    #[test]
    fn rule_2_takes_the_equal_that_switches_least_and_then_the_first() {
        let rows = [
            row("second", 100.0, 12.0),
            row("third", 101.0, 11.0),
            row("fourth", 100.5, 20.0),
        ];
        assert_eq!(chosen(&rows), ("second", vec!["third", "fourth"], None));
        let rows = [row("second", 100.0, 13.0), row("third", 101.0, 11.0)];
        assert_eq!(chosen(&rows), ("third", vec!["second"], None));
        let mut rows = [row("plan", 100.0, 9.0), row("plan 2", 101.0, 9.0)];
        rows[0].on_qemu = Some(90.0);
        rows[1].on_qemu = Some(89.5);
        assert_eq!(chosen(&rows).0, "plan");
        rows[1].on_qemu = Some(88.0);
        assert_eq!(chosen(&rows), ("plan 2", vec!["plan"], None));
    }

    fn replay(times: f64, behind: bool, dropped: bool) -> Option<Replay> {
        Some(Replay {
            times,
            behind,
            dropped,
        })
    }

    #[test]
    fn rule_3_plan_that_was_behind_or_given_up_is_not_taken() {
        let good = replay(0.5, false, false);
        assert_eq!(refused(good, good, false), None);
        let (times, given_up) = (1.2, true);
        let out = Out::BehindOnQemu { times, given_up };
        assert_eq!(refused(replay(1.2, true, true), good, false), Some(out));
        let out = Out::BehindInModel { given_up: false };
        assert_eq!(refused(good, replay(0.0, true, false), false), Some(out));
        let out = Out::BehindInModel { given_up: true };
        assert_eq!(refused(None, replay(0.0, false, true), false), Some(out));
        let mut rows = [row("second", 100.0, 9.0), row("plan", 50.0, 1.0)];
        assert_eq!(chosen(&rows), ("plan", vec![], Some("second")));
        rows[1].is_out = Some(out);
        assert_eq!(chosen(&rows), ("second", vec![], None));
        rows[0].is_out = Some(out);
        assert_eq!(choose(&rows), None);
    }

    #[test]
    fn rule_4_if_tasks_poll_a_plan_needs_a_replay() {
        let good = replay(0.9, false, false);
        assert_eq!(refused(None, good, true), Some(Out::Polling));
        assert_eq!(refused(good, good, true), None);
    }

    #[test]
    fn rule_5_plan_that_loses_if_times_differ_is_fragile() {
        assert!(!is_fragile(&[80.0, 100.0], &[100.0, 95.0]));
        assert!(is_fragile(&[80.0, 120.0], &[100.0, 95.0]));
        assert!(is_fragile(&[1.0], &[1.0]));
        let mut rows = [
            row("second", 100.0, 9.0),
            row("plan", 50.0, 1.0),
            row("third", 70.0, 9.0),
        ];
        assert_eq!(best_without_plan(&rows), Some(2));
        rows[2].is_out = Some(Out::Fragile);
        assert_eq!(best_without_plan(&rows), Some(0));
    }
}
