//! A plan that is wrong: rule 10.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;

#[test]
fn rule_10_the_plan_is_dropped_when_most_of_its_tasks_are_demoted() {
    let mut cpu = following(&[("a", 1), ("b", 2), ("c", 1 << 40), ("d", 1 << 41)], &[]);
    for name in ["a", "b"] {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    // Two of four is not most, and the two have their tenth.
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

/// Two demoted tasks of three are not enough, because the last may be all that matters.
#[test]
fn rule_10_two_thirds_are_not_most() {
    let mut cpu = following(&[("a", 1), ("b", 2), ("c", 1 << 40)], &[]);
    demote(&mut cpu);
    demote(&mut cpu);
    assert_eq!(cpu.shares(1000)["c"], 900);
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_an_unknown_task_that_runs_while_the_others_sleep_does_not_drop_the_plan() {
    let mut cpu = beside_an_outsider();
    for _ in 1..PLAN_TICKS {
        cpu.trace("block, 100x interrupt>outsider, wake planned");
        cpu.trace("interrupt>planned (at once, every time)");
    }
    cpu.trace("block, spawn child of the outsider");
    cpu.shares(1000);
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_a_program_that_keeps_to_the_plan_never_loses_it() {
    let mut cpu = beside_an_outsider();
    assert_eq!(cpu.shares(1000)["outsider"], 100, "a tenth is no drift");
    assert!(!cpu.status().dropped);
}

#[test]
fn rule_10_neither_outsiders_nor_the_root_drop_the_plan() {
    let mut cpu = measured(&[("a", 1000)]);
    cpu.spawn("older");
    cpu.control.start_pbg().unwrap();
    cpu.trace("spawn a, block>a, block, 100x interrupt>older");
    assert!(!cpu.status().dropped);
    cpu.trace("block, wake main, pick, 100x interrupt>main");
    assert!(!cpu.status().dropped);
}

const WRONG: [&str; 7] = ["w1", "w2", "w3", "w4", "w5", "w6", "w7"];

/// Follows a plan of ten tasks, of which the first seven are demoted. The next, `a`, runs, and `b`
/// and `c` are ready behind it, spawned in another order. The next tick drops the plan.
fn about_to_drop_its_plan() -> Cpu {
    let wrong = WRONG.map(|name| (name, 1));
    let all = [&wrong[..], &[("c", 3000), ("a", 1000), ("b", 2000)]].concat();
    let mut cpu = following(&all, &[]);
    for name in WRONG {
        assert_eq!(cpu.name(), name);
        demote(&mut cpu);
    }
    assert_eq!(cpu.name(), "a");
    cpu
}

#[test]
fn rule_10_ready_tasks_go_to_the_end_by_rank_and_the_root_behind_them() {
    let mut cpu = about_to_drop_its_plan();
    cpu.interrupt();
    assert!(cpu.status().dropped);
    cpu.trace("wake main, on>a, block>w1, block>w2, block>w3, block>w4, block>w5, block>w6");
    cpu.trace("block>w7, block>b, block>c, block>main, block>idle");
}

#[test]
fn rule_10_the_task_that_runs_when_the_plan_is_dropped_keeps_the_cpu_across_no_yield() {
    let mut cpu = about_to_drop_its_plan();
    cpu.trace("yield>a, interrupt>a (its slice is not over), yield>w1, yield>w2, yield>w3");
    cpu.trace("yield>w4, yield>w5, yield>w6, yield>w7, yield>b, yield>c, yield>a, yield>w1");
}

#[test]
fn rule_10_the_tick_that_drops_the_plan_is_the_first_of_a_slice() {
    let slice = std::format!("{}x interrupt>a, interrupt>w1", SLICE_TICKS - 1);
    about_to_drop_its_plan().trace(&slice);
}

#[test]
fn rule_10_no_task_is_lost_when_the_plan_is_dropped() {
    let names: Vec<(&'static str, u64)> = (0..50).map(|i| ("planned", 1000 + i)).collect();
    let mut cpu = replaying(&names);
    let all: Vec<_> = names.iter().map(|(name, _)| cpu.spawn(name)).collect();
    cpu.trace("spawn unknown, block");
    // Off the plan by the other way: every task runs for ever.
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
    let mut cpu = beside_an_outsider();
    demote(&mut cpu);
    cpu.trace("on>outsider, wake main, interrupt");
    assert!(cpu.status().dropped);
    cpu.trace("on>outsider, block>planned, block>main, block>idle");
}
