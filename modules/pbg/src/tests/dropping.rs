//! A plan that is wrong: rule 10.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;

#[test]
fn rule_10_the_plan_is_dropped_when_most_of_its_tasks_are_demoted() {
    let mut cpu = replaying(&[("a", 1), ("b", 2), ("c", 1 << 40), ("d", 1 << 41)]);
    for name in ["a", "b", "c", "d"] {
        cpu.spawn(name);
    }
    cpu.block();
    for name in ["a", "b"] {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    // Two of four is not most; these have their tenth.
    let had = cpu.shares(1000);
    assert_eq!((had["a"], had["b"], had["c"]), (50, 50, 900));
    while cpu.name() != "c" {
        cpu.interrupt();
    }
    demote(&mut cpu);
    assert_eq!((cpu.name(), cpu.status().dropped), ("d", false));
    cpu.interrupt();
    let status = cpu.status();
    assert!(status.dropped);
    assert_eq!(status.first.unwrap().cause, Cause::Yields);
    // Round robin from now on, with whole slices and all tasks.
    let had = cpu.shares(100);
    assert!(had.values().all(|&ticks| ticks == 25), "{had:?}");
    assert_eq!(cpu.status().demoted, 3);
}

/// What is left of a plan may be all that matters: two of three is not enough.
#[test]
fn rule_10_two_thirds_are_not_most() {
    let mut cpu = replaying(&[("a", 1), ("b", 2), ("c", 1 << 40)]);
    for name in ["a", "b", "c"] {
        cpu.spawn(name);
    }
    cpu.block();
    demote(&mut cpu);
    demote(&mut cpu);
    assert_eq!(cpu.shares(1000)["c"], 900);
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_an_unknown_task_that_runs_while_the_others_sleep_drops_nothing() {
    let (mut cpu, main) = following(&[("planned", 1 << 40)], &["unknown"]);
    for _ in 1..PLAN_TICKS {
        let planned = cpu.block();
        (0..100).for_each(|_| assert_eq!(cpu.interrupt(), "unknown"));
        cpu.wake(&planned);
        assert_eq!(cpu.interrupt(), "planned", "at once, every time");
    }
    cpu.block();
    cpu.spawn("and what it spawns");
    cpu.shares(1000);
    assert!(!cpu.status().dropped);
    drop(main);
}

#[test]
fn rule_10_a_program_that_keeps_to_the_plan_never_loses_it() {
    let (mut cpu, _) = following(&[("a", 1_000_000_000)], &["unknown"]);
    let had = cpu.shares(1000);
    assert_eq!(had["unknown"], 100, "a tenth is no drift");
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_neither_outsiders_nor_the_root_drop_it() {
    let mut cpu = measured(&[("a", 1000)]);
    cpu.spawn("older than the call");
    cpu.control.start_pbg().unwrap();
    cpu.spawn("a");
    let main = cpu.block();
    assert_eq!(cpu.name(), "a");
    cpu.block();
    (0..100).for_each(|_| assert_eq!(cpu.interrupt(), "older than the call"));
    assert!(!cpu.status().dropped);
    cpu.block();
    cpu.wake(&main);
    cpu.pick();
    (0..100).for_each(|_| assert_eq!(cpu.interrupt(), "main"));
    assert!(!cpu.status().dropped);
}

/// A plan of ten tasks, of which the first seven are demoted; the next, `a`, runs, and
/// `b` and `c` are ready behind it, spawned in another order. The next tick drops it.
fn about_to_drop_its_plan() -> (Cpu, Handle) {
    let wrong = WRONG.map(|name| (name, 1));
    let right = [("c", 3000), ("a", 1000), ("b", 2000)];
    let all = [&wrong[..], &right].concat();
    let mut cpu = replaying(&all);
    for (name, _) in all {
        cpu.spawn(name);
    }
    let main = cpu.block();
    for (name, _) in wrong {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    assert_eq!(cpu.name(), "a");
    (cpu, main)
}

#[test]
fn rule_10_what_was_ready_goes_to_the_end_by_rank_and_the_root_behind_it() {
    let (mut cpu, main) = about_to_drop_its_plan();
    cpu.interrupt();
    assert!(cpu.status().dropped);
    cpu.wake(&main);
    let mut order = Vec::new();
    while cpu.name() != "idle" {
        order.push(cpu.name());
        cpu.block();
    }
    let expected = [&["a"], &WRONG[..], &["b", "c", "main"]].concat();
    assert_eq!(order, expected);
}

#[test]
fn rule_10_who_has_the_cpu_when_the_plan_is_dropped_keeps_it_across_no_yield() {
    let (mut cpu, _main) = about_to_drop_its_plan();
    assert_eq!(cpu.yield_now(), "a");
    assert_eq!(cpu.interrupt(), "a", "its slice is not over");
    for expected in [&WRONG[..], &["b", "c", "a", "w1"]].concat() {
        assert_eq!(cpu.yield_now(), expected);
    }
}

#[test]
fn rule_10_the_tick_that_drops_the_plan_is_the_first_of_a_slice() {
    let (mut cpu, _main) = about_to_drop_its_plan();
    for _ in 1..SLICE_TICKS {
        assert_eq!(cpu.interrupt(), "a");
    }
    assert_eq!(cpu.interrupt(), "w1");
}

#[test]
fn rule_10_no_task_is_lost_when_the_plan_is_dropped() {
    let names: Vec<(&'static str, u64)> = (0..50).map(|i| ("planned", 1000 + i)).collect();
    let mut cpu = replaying(&names);
    let all: Vec<_> = names.iter().map(|(name, _)| cpu.spawn(name)).collect();
    cpu.spawn("unknown");
    cpu.block();
    // Off the plan by the other way: every one of them runs for ever.
    let dropped = (0..10_000).any(|_| {
        cpu.tick();
        cpu.status().dropped
    });
    assert!(dropped);
    let mut ended = 0;
    while cpu.name() != "idle" {
        ended += u64::from(cpu.name() == "planned");
        cpu.block();
    }
    assert_eq!(ended, 50);
    assert!(all.iter().all(|task| Arc::strong_count(task) == 1));
}

#[test]
fn rule_10_a_root_that_waits_to_go_first_is_not_lost_either() {
    let (mut cpu, main) = following(&[("planned", 1_000_000)], &["unknown"]);
    demote(&mut cpu);
    assert_eq!(cpu.name(), "unknown");
    cpu.wake(&main);
    cpu.interrupt();
    assert!(cpu.status().dropped);
    for expected in ["unknown", "planned", "main", "idle"] {
        assert_eq!(cpu.name(), expected);
        if expected != "idle" {
            cpu.block();
        }
    }
}
