//! The root goes first: rule 9.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;

#[test]
fn rule_9_the_root_goes_first_when_it_wakes() {
    let (mut cpu, main) = following(&[("a", 1_000_000)], &["unknown"]);
    cpu.wake(&main);
    assert_eq!(cpu.name(), "a");
    assert_eq!(
        cpu.interrupt(),
        "main",
        "at the next tick, before a and the unknown"
    );
    assert_eq!(
        cpu.interrupt(),
        "a",
        "and for no longer than to the one after"
    );
    let main = main.clone();
    while cpu.name() != "main" {
        cpu.interrupt();
    }
    cpu.block();
    while cpu.name() != "a" {
        cpu.interrupt();
    }
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main", "or at the next yield");
}

#[test]
fn rule_9_the_root_goes_first_also_while_only_others_run() {
    let (mut cpu, main) = following(&[("a", 1_000_000)], &["unknown"]);
    cpu.block(); // a
    assert_eq!(cpu.name(), "unknown");
    // A waker may ask for rescheduling, too.
    cpu.scheduler.put_prev_task(main.clone(), true);
    assert_eq!(cpu.interrupt(), "main");
    cpu.block();
    assert_eq!(cpu.name(), "unknown");
}

#[test]
fn rule_9_a_turn_that_somebody_gave_up_is_not_the_roots() {
    let (mut cpu, main) = following(&[("planned", 1_000_000)], &["outsider"]);
    (1..PLAN_TICKS).for_each(|_| assert_eq!(cpu.interrupt(), "planned"));
    cpu.wake(&main);
    assert_eq!(cpu.interrupt(), "main");
    let main = cpu.block();
    assert_eq!(cpu.name(), "outsider");
    cpu.wake(&main);
    cpu.block(); // the outsider
    assert_eq!(cpu.name(), "main");
    assert_ne!(cpu.interrupt(), "main");
}

#[test]
fn rule_9_the_root_waits_for_the_end_of_a_turn_though_its_task_yields() {
    let (mut cpu, main) = following(&[("planned", 1_000_000)], &["outsider"]);
    while cpu.interrupt() != "outsider" {}
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "outsider");
    assert_eq!(cpu.interrupt(), "main");
}

#[test]
fn rule_9_a_root_that_is_removed_takes_its_turn_with_it() {
    let (mut cpu, main) = following(&[("a", 1_000_000)], &["unknown"]);
    cpu.wake(&main);
    let removed = cpu.scheduler.remove_task(&main).expect("it is ready");
    assert!(Arc::ptr_eq(&main, &removed));
    assert_eq!(cpu.interrupt(), "a", "and the unknown has not got it");
}

#[test]
fn rule_9_the_root_goes_first_once_between_two_ticks_that_hit_planned_tasks() {
    let (mut cpu, main) = following(&[("planned", 1_000_000)], &["outsider"]);
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    let main = cpu.block();
    let planned = cpu.block();
    assert_eq!(cpu.name(), "outsider");
    cpu.wake(&planned);
    assert_eq!(cpu.interrupt(), "planned", "it has hit the outsider");
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "planned");
    cpu.scheduler.remove_task(&main).unwrap();
    cpu.interrupt();
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
}

#[test]
fn rule_9_the_turn_that_comes_while_the_root_goes_first_is_for_the_others() {
    let (mut cpu, main) = following(&[("planned", 1_000_000)], &["outsider"]);
    (1..PLAN_TICKS).for_each(|_| assert_eq!(cpu.interrupt(), "planned"));
    cpu.wake(&main);
    assert_eq!(cpu.yield_now(), "main");
    assert_eq!(cpu.interrupt(), "outsider");
}

/// It sleeps and wakes all the time; the others have their share.
#[test]
fn rule_9_a_root_that_wakes_all_the_time_takes_nobodys_turn() {
    let (mut cpu, main) = following(&[("planned", 1_000_000_000)], &["outsider"]);
    let mut asleep = Some(main);
    let mut had = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        // The timer wakes it first, and then the tick comes.
        if let Some(main) = asleep.take() {
            cpu.wake(&main);
        }
        cpu.interrupt();
        let mut left = 1000;
        if cpu.name() == "main" {
            *had.entry("main").or_insert(0) += 900;
            cpu.run(900);
            left -= 900;
            asleep = Some(cpu.block());
        }
        *had.entry(cpu.name()).or_insert(0) += left;
        cpu.run(left);
    }
    let fair = 1_000_000 / u64::from(PLAN_TICKS + 1);
    assert!(had["outsider"] >= fair / 2, "{had:?}"); // the root is an outsider, too
    assert!(had["planned"] > 0, "{had:?}");
}
