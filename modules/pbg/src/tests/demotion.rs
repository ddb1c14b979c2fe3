//! Tasks that overrun the plan: rule 8.

use std::format;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;
use sched_core::units::TaskKey;

#[test]
fn rule_8_a_task_far_beyond_its_plan_is_demoted_and_the_rest_stands() {
    let plan = [("runaway", 5_000), ("next", 60_000), ("last", 70_000)];
    let mut cpu = following(&plan, &[]);
    // Beyond twice 5,000 at the 11th tick of 1,000; demoted at the second that says so.
    cpu.trace("11x tick>runaway, tick>next");
    assert_eq!(cpu.status().demoted, 1);
    // From now on it has the share of a task outside the plan.
    let had = cpu.shares(10);
    assert_eq!((had["next"], had["runaway"]), (9, 1));
    cpu.trace("block>last, block>runaway (it is not lost), yield>runaway");
}

#[test]
fn rule_8_a_task_that_runs_as_planned_is_never_demoted() {
    let mut cpu = following(&[("steady", 10_000)], &[]);
    // Up to twice the plan, in bursts cut by yields and ticks.
    (0..20).for_each(|_| cpu.trace("tick, yield"));
    assert_eq!(cpu.status().demoted, 0);
}

#[test]
fn rule_8_time_before_a_block_counts_too() {
    let mut cpu = measured(&[("blocks", 10)]);
    cpu.control.start_pbg_with(OnSlowReplay::KeepPlan).unwrap(); // it sleeps for so long
    cpu.trace("spawn blocks, block");
    (0..3).for_each(|_| cpu.trace("+8, block, +1_000_000, wake blocks, pick"));
    // 24 of 10: the first tick to find it so, and the second.
    for demoted in [0, 1] {
        cpu.trace("interrupt>blocks");
        assert_eq!(cpu.status().demoted, demoted);
    }
}

#[test]
fn rule_8_a_task_that_no_tick_ever_hits_is_demoted_too() {
    let mut cpu = following(&[("evades", 10), ("waits", 1_000_000_000)], &[]);
    for handover in 1..=OVERRUN_HANDOVERS {
        let found = (cpu.name(), cpu.status().demoted);
        assert_eq!(found, ("evades", 0), "{handover}");
        cpu.trace("+900, block>waits, wake evades, yield");
    }
    assert_eq!((cpu.name(), cpu.status().demoted), ("waits", 1));
}

#[test]
fn rule_8_a_demoted_task_goes_to_the_end_of_the_queue() {
    let mut cpu = following(&[("runaway", 10), ("planned", 1_000_000_000)], &["patient"]);
    while cpu.name() != "patient" {
        cpu.tick();
        let is_first = cpu.name() == "runaway" && cpu.status().demoted > 0;
        assert!(!is_first, "it has jumped the queue");
    }
}

#[test]
fn rule_8_a_task_demoted_at_its_first_tick_goes_there_too() {
    let mut cpu = replaying(&[("runaway", 10), ("planned", 1_000_000_000)]);
    cpu.trace("spawn runaway, block");
    for _ in 1..OVERRUN_HANDOVERS {
        cpu.trace("+1000, block, wake runaway, pick>runaway");
        assert_eq!(cpu.status().demoted, 0);
    }
    cpu.trace("spawn patient, spawn another, tick>patient");
    assert_eq!(cpu.status().demoted, 1);
    cpu.trace("block>another, block>runaway");
}

#[test]
fn rule_8_a_task_that_yields_far_more_than_recorded_is_demoted() {
    let mut cpu = following(&[("yielder", 1_000_000), ("next", 2_000_000)], &[]);
    cpu.trace(&format!("{UNPLANNED_YIELD_ALLOWANCE}x yield>yielder"));
    assert_eq!(cpu.status().demoted, 0);
    cpu.trace("yield>next");
    let first = cpu.status().first.unwrap();
    assert_eq!(cpu.status().demoted, 1);
    let found = (first.cause, first.task, first.expected, first.found);
    let yielder = TaskKey::ROOT.child(0);
    assert_eq!(
        found,
        (Cause::Yields, yielder, 0, UNPLANNED_YIELD_ALLOWANCE + 1)
    );
    cpu.trace("yield>next");
}

#[test]
fn rule_8_recorded_yields_may_be_twice_as_many() {
    let mut cpu = Cpu::measuring();
    cpu.trace("spawn yielder, block>gc, block>yielder, 100x yield>yielder, block");
    cpu.trace("wake main, pick");
    cpu.follow(1);
    cpu.trace("spawn yielder, spawn unknown, block>yielder");
    let may = OVERRUN_FACTOR * 100 + UNPLANNED_YIELD_ALLOWANCE;
    cpu.trace(&format!("{may}x yield>yielder, yield>unknown"));
}

/// Yields that were granted and not made are not counted when the task loses the CPU.
#[test]
fn rule_8_yields_before_a_preemption_are_counted_once() {
    let mut cpu = following(&[("yielder", 1_000_000)], &["unknown"]);
    for _ in 0..UNPLANNED_YIELD_ALLOWANCE / 3 {
        cpu.trace("3x yield>yielder, preempt>yielder");
    }
    assert_eq!(cpu.status().demoted, 0);
    let rest = UNPLANNED_YIELD_ALLOWANCE % 3;
    cpu.trace(&format!(
        "{rest}x yield>yielder, yield>unknown (one too many)"
    ));
}

/// They count if they keep the CPU and if they give it away.
#[test]
fn rule_8_yields_before_a_block_count_too() {
    let mut cpu = following(&[("yielder", 1_000_000)], &[]);
    let quarter = format!("{}x yield, block", UNPLANNED_YIELD_ALLOWANCE / 4);
    for demoted in [0, 0, 0, 0, 1] {
        cpu.trace(&quarter);
        assert_eq!(cpu.status().demoted, demoted);
        cpu.trace("wake yielder, pick");
    }
}

#[test]
fn rule_8_yields_before_a_block_are_not_granted_again() {
    let mut cpu = following(&[("yielder", 1_000_000), ("next", 2_000_000)], &[]);
    cpu.trace(&format!("{}x yield>yielder", UNPLANNED_YIELD_ALLOWANCE - 1));
    cpu.trace("block, wake yielder, yield>yielder, yield>yielder, yield>next");
}

#[test]
fn rule_8_yields_before_another_task_wakes_count_too() {
    let mut cpu = following(&[("yielder", 1_000_000), ("sleeper", 2_000_000)], &[]);
    let half = format!("{}x yield>yielder", UNPLANNED_YIELD_ALLOWANCE / 2);
    cpu.trace("block>sleeper, block, wake yielder, pick");
    cpu.trace(&half);
    cpu.trace("wake sleeper");
    cpu.trace(&half);
    cpu.trace("yield>sleeper");
    assert_eq!(cpu.status().demoted, 1);
}

/// It runs off the plan for so long that the last handover, to the root, is too many.
#[test]
fn rule_8_a_task_demoted_while_it_is_ready_leaves_its_place() {
    let mut cpu = following(&[("evades", 10)], &["outsider"]);
    cpu.run(30);
    for _ in 1..OVERRUN_HANDOVERS {
        cpu.trace("block, wake evades");
        while cpu.name() != "evades" {
            cpu.yield_now();
        }
    }
    assert_eq!(cpu.status().demoted, 0);
    cpu.trace("wake main, yield>main");
    assert_eq!(cpu.status().demoted, 1);
    cpu.trace("block>outsider (it was in the fallback queue before), yield>evades");
}

#[test]
fn rule_8_the_first_divergence_is_reported() {
    let mut cpu = following(&[("a", 10)], &["unknown"]);
    demote(&mut cpu);
    assert_eq!((cpu.status().unplanned, cpu.status().demoted), (1, 1));
    let first = cpu.status().first.unwrap();
    let unknown = TaskKey::ROOT.child(1);
    assert_eq!((first.cause, first.task), (Cause::Unknown, unknown));
}

/// On several CPUs another may put a task between a yield that keeps the CPU and its pick.
#[test]
fn rule_8_a_yield_counts_once_even_if_a_task_is_put_before_its_pick() {
    let mut cpu = following(&[("yields", 1_000_000)], &[]);
    let main = cpu.asleep("main").unwrap();
    for made in 1..=UNPLANNED_YIELD_ALLOWANCE {
        let yields = cpu.current.take().unwrap();
        cpu.scheduler.put_prev_task(yields, false);
        cpu.wake(&main);
        cpu.scheduler.remove_task(&main).expect("it is ready");
        assert_eq!(cpu.pick(), "yields");
        assert_eq!(cpu.status().demoted, 0, "after {made} yields");
    }
    cpu.yield_now();
    assert_eq!(cpu.status().demoted, 1);
}
