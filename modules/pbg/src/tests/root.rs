//! The root goes first: rule 9.

use alloc::sync::Arc;

use super::cpu::*;
use crate::*;
use sched_core::BaseScheduler;

#[test]
fn rule_9_the_root_goes_first_when_it_wakes() {
    let mut cpu = beside_an_outsider();
    cpu.trace("wake main, on>planned, interrupt>main (at the next tick, before all others)");
    cpu.trace("interrupt>planned (and no longer than to the tick after that), reach main");
    cpu.trace("block, reach planned, wake main, yield>main (or at the next yield)");
}

#[test]
fn rule_9_the_root_goes_first_also_while_only_outsiders_run() {
    let mut cpu = beside_an_outsider();
    let main = cpu.asleep("main").unwrap();
    cpu.trace("block>outsider");
    // A waker may ask for rescheduling, too.
    cpu.scheduler.put_prev_task(main, true);
    cpu.trace("interrupt>main, block>outsider");
}

#[test]
fn rule_9_the_rest_of_a_turn_that_was_given_up_is_not_the_roots() {
    let mut cpu = beside_an_outsider();
    cpu.trace(&std::format!("{}x interrupt>planned", PLAN_TICKS - 1));
    cpu.trace("wake main, interrupt>main, block>outsider, wake main, block>main");
    assert_ne!(cpu.interrupt(), "main");
}

#[test]
fn rule_9_the_root_waits_for_the_end_of_a_turn_even_if_its_task_yields() {
    let mut cpu = beside_an_outsider();
    cpu.trace("reach outsider, wake main, yield>outsider, interrupt>main");
}

#[test]
fn rule_9_a_root_that_is_removed_takes_its_turn_with_it() {
    let mut cpu = beside_an_outsider();
    let main = cpu.asleep("main").unwrap();
    cpu.trace("wake main");
    let removed = cpu.scheduler.remove_task(&main).expect("it is ready");
    assert!(Arc::ptr_eq(&main, &removed));
    cpu.trace("interrupt>planned (and the outsider has not got it)");
}

#[test]
fn rule_9_the_root_goes_first_once_between_two_ticks_that_hit_planned_tasks() {
    let mut cpu = beside_an_outsider();
    let main = cpu.asleep("main").unwrap();
    cpu.trace("wake main, yield>main, block>planned, block>outsider, wake planned");
    cpu.trace("interrupt>planned (it has hit the outsider), wake main, yield>planned");
    cpu.scheduler.remove_task(&main).unwrap();
    cpu.interrupt();
    cpu.wake(&main);
    cpu.trace("yield>main");
}

#[test]
fn rule_9_a_turn_that_comes_due_while_the_root_goes_first_is_for_the_outsiders() {
    let mut cpu = beside_an_outsider();
    cpu.trace(&std::format!("{}x interrupt>planned", PLAN_TICKS - 1));
    cpu.trace("wake main, yield>main, interrupt>outsider");
}

#[test]
fn rule_9_a_root_that_sleeps_and_wakes_all_the_time_takes_no_turn_of_the_outsiders() {
    let mut cpu = beside_an_outsider();
    let mut had = std::collections::BTreeMap::new();
    for _ in 0..1000 {
        // The timer wakes it first, and then the tick comes.
        if cpu.asleep("main").is_some() {
            cpu.trace("wake main");
        }
        cpu.interrupt();
        let mut left = 1000;
        if cpu.name() == "main" {
            *had.entry("main").or_insert(0) += 900;
            cpu.trace("+900, block");
            left -= 900;
        }
        *had.entry(cpu.name()).or_insert(0) += left;
        cpu.run(left);
    }
    let fair = 1_000_000 / u64::from(PLAN_TICKS + 1);
    assert!(had["outsider"] >= fair / 2, "{had:?}"); // the root is an outsider, too
    assert!(had["planned"] > 0, "{had:?}");
}
